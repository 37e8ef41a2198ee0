//! What the tables are to each other: which are types, which only link, who owns what, what is inside what.

use std::collections::{BTreeMap, BTreeSet};

use super::names::{fresh, role, singular};
use super::{ForeignKey, Table, Tables, Taken};
use crate::compiler::ident::{Ident, QualName};

/// A column by which a row belongs to someone.
const OWNERS: [&str; 14] = [
    "owner",
    "author",
    "creator",
    "created_by",
    "user",
    "account",
    "person",
    "customer",
    "employee",
    "owned_by",
    "uploader",
    "sender",
    "member",
    "profile",
];
/// A column by which a row is inside another of its table.
const PARENTS: [&str; 5] = ["parent", "up", "above", "container", "super"];

/// A relation: its name and the rest of its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Relation {
    pub(super) name: String,
    pub(super) body: String,
}

/// A type of the draft.
#[derive(Debug, Clone)]
pub(super) struct Type<'t> {
    pub(super) name: String,
    pub(super) table: &'t Table,
    /// Key columns with their types.
    pub(super) key: Vec<(Ident, &'static str)>,
    /// Whose it is.
    pub(super) owners: Vec<Relation>,
    /// Who is in it.
    pub(super) members: Vec<Relation>,
    /// Who runs it.
    pub(super) admins: Vec<Relation>,
    /// The row of its own table that it is inside of.
    pub(super) parent: Option<Relation>,
    /// What it belongs to.
    pub(super) containers: Vec<Relation>,
    /// Groups whose members may see it.
    pub(super) groups: Vec<Relation>,
    /// What else could be a relation, and why it is not.
    pub(super) notes: Vec<String>,
}

/// The tables, sorted out.
pub(super) struct Shape<'t> {
    /// The users' first.
    pub(super) types: Vec<Type<'t>>,
    /// Tables that only link.
    pub(super) links: Vec<&'t Table>,
    /// Tables that can be no type, and why.
    pub(super) left_out: Vec<(&'t Table, &'static str)>,
}

/// The types of a table's key columns as the policy writes them; `None` where it has no key or one of another type.
pub(super) fn key_types(table: &Table) -> Option<Vec<(Ident, &'static str)>> {
    let written = |column: &Ident| {
        let found = table.columns.iter().find(|c| c.name == *column)?;
        Some(match found.ty.as_str() {
            "bigint" => "bigint",
            "integer" => "integer",
            "smallint" => "smallint",
            "text" => "text",
            "uuid" => "uuid",
            other if other.starts_with("character varying") => "varchar",
            _ => return None,
        })
    };
    let key: Option<Vec<_>> = table.key.iter().map(|column| Some((column.clone(), written(column)?))).collect();
    key.filter(|key| !key.is_empty())
}

impl<'t> Shape<'t> {
    pub(super) fn of(tables: &'t [Table], by_name: &Tables<'t>, users: &'t Table) -> Self {
        let mut shape = Shape { types: Vec::new(), links: Vec::new(), left_out: Vec::new() };
        let mut taken = Taken::from(["user".to_owned()]);
        shape.types.extend(key_types(users).map(|key| new_type("user".to_owned(), users, key)));
        for table in tables.iter().filter(|table| table.name != users.name) {
            if is_link(table, by_name, users) {
                shape.links.push(table);
            } else if let Some(key) = key_types(table) {
                let one = singular(&table.name.name);
                let longer = format!("{}_{one}", table.name.schema.as_str());
                shape.types.push(new_type(fresh(&[one, longer], &mut taken), table, key));
            } else if table.key.is_empty() {
                shape.left_out.push((table, "it has no primary key"));
            } else {
                shape.left_out.push((table, "its key is of a type that keys cannot have"));
            }
        }
        let names: BTreeMap<&QualName, (usize, String)> =
            shape.types.iter().enumerate().map(|(at, ty)| (&ty.table.name, (at, ty.name.clone()))).collect();
        shape.memberships(&names, users);
        shape.columns(&names, users);
        shape.group_links(&names, users);
        shape.types.iter_mut().for_each(Type::drop_lonely_parent);
        shape
    }

    /// Link tables with users: who is in what.
    fn memberships(&mut self, names: &BTreeMap<&QualName, (usize, String)>, users: &Table) {
        for link in &self.links {
            let Some((object, person)) = ends(link, users) else { continue };
            let Some(ty) = names.get(&object.table).and_then(|(at, _)| self.types.get_mut(*at)) else { continue };
            let plain = link.name.name.as_str().to_lowercase();
            let admin = ["admin", "owner", "manager"].into_iter().find(|word| plain.contains(word));
            let wanted = admin.unwrap_or("member").to_owned();
            let name = fresh(&[wanted, singular(&link.name.name)], &mut used(ty));
            let body = format!("user = {}", link_source(link, object, person));
            match admin {
                Some(_) => ty.admins.push(Relation { name, body }),
                None => ty.members.push(Relation { name, body }),
            }
            if let Some(column) = link.columns.iter().find(|c| matches!(c.name.as_str(), "role" | "level" | "kind")) {
                let column = column.name.plain();
                ty.notes.push(format!(
                    "LOOK: {}.{column} may tell members apart: ... where {{{column} = 'admin'}} makes a relation of some",
                    link.name.plain()
                ));
            }
        }
    }

    /// Foreign keys of the types themselves.
    fn columns(&mut self, names: &BTreeMap<&QualName, (usize, String)>, users: &Table) {
        // What belongs to what must not go in a ring: whoever sees one would see the other, and so on without a start.
        let mut inside: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for at in 0..self.types.len() {
            let Some(table) = self.types.get(at).map(|ty| ty.table) else { continue };
            let mut foreign: Vec<&ForeignKey> = table.foreign.iter().filter(|key| key.to_key).collect();
            foreign.sort_by_key(|key| (!key.cascades, !required(table, key)));
            for key in foreign {
                let Some((target, target_name)) = names.get(&key.table) else { continue };
                let reached = reaches(&inside, *target, at);
                let Some(ty) = self.types.get_mut(at) else { continue };
                let said = key.columns.first().map(role).unwrap_or_default();
                let source = columns_source(&key.columns);
                if key.table == table.name {
                    let parent = PARENTS.iter().any(|word| said.starts_with(word));
                    if at != 0 && parent && ty.parent.is_none() {
                        let name = fresh(&["parent".to_owned()], &mut used(ty));
                        ty.parent = Some(Relation { name, body: format!("{target_name} = {source}") });
                    } else {
                        ty.notes.push(format!("LOOK: {said} : {target_name} = {source} links to the same table"));
                    }
                } else if key.table == users.name {
                    if OWNERS.contains(&said.as_str()) {
                        let name = fresh(&[said, "owner".to_owned()], &mut used(ty));
                        ty.owners.push(Relation { name, body: format!("user = {source}") });
                    } else {
                        ty.notes
                            .push(format!("LOOK: {said} : user = {source} names a user, who gets nothing by it here"));
                    }
                } else if at != 0 && !reached && ty.containers.is_empty() {
                    inside.entry(at).or_default().insert(*target);
                    let name = fresh(&[said, target_name.clone()], &mut used(ty));
                    ty.containers.push(Relation { name, body: format!("{target_name} = {source}") });
                } else {
                    ty.notes.push(format!("LOOK: {said} : {target_name} = {source} gives nothing here"));
                }
            }
        }
    }

    /// Link tables between a group and something: its members may see it.
    fn group_links(&mut self, names: &BTreeMap<&QualName, (usize, String)>, users: &Table) {
        for link in &self.links {
            if ends(link, users).is_some() {
                continue;
            }
            let [first, second] = link.foreign.as_slice() else { continue };
            let (Some((one, one_name)), Some((other, other_name))) =
                (names.get(&first.table), names.get(&second.table))
            else {
                continue;
            };
            let is_group = |at: &usize| self.types.get(*at).is_some_and(|ty| !ty.members.is_empty());
            let (object, group, group_key, object_key, group_name) = match (is_group(one), is_group(other)) {
                (false, true) => (*one, *other, second, first, other_name),
                (true, false) => (*other, *one, first, second, one_name),
                _ => {
                    if let Some(ty) = self.types.get_mut(*one) {
                        let table = link.name.plain();
                        ty.notes
                            .push(format!("LOOK: {table} links {one_name} and {other_name}; it gives nothing here"));
                    }
                    continue;
                }
            };
            let member = self.types.get(group).and_then(|ty| ty.members.first()).map(|m| m.name.clone());
            let (Some(member), Some(ty)) = (member, self.types.get_mut(object).filter(|_| object != 0)) else {
                continue;
            };
            let name = fresh(std::slice::from_ref(group_name), &mut used(ty));
            let body = format!("{group_name}#{member} = {}", link_source(link, object_key, group_key));
            ty.groups.push(Relation { name, body });
        }
    }
}

fn new_type<'t>(name: String, table: &'t Table, key: Vec<(Ident, &'static str)>) -> Type<'t> {
    Type {
        name,
        table,
        key,
        owners: Vec::new(),
        members: Vec::new(),
        admins: Vec::new(),
        parent: None,
        containers: Vec::new(),
        groups: Vec::new(),
        notes: Vec::new(),
    }
}

impl Type<'_> {
    /// Every relation, in the order written.
    pub(super) fn relations(&self) -> impl Iterator<Item = &Relation> {
        let objects = self.containers.iter().chain(&self.parent);
        objects.chain(&self.owners).chain(&self.admins).chain(&self.members).chain(&self.groups)
    }
}

impl Type<'_> {
    /// What is inside another of its kind inherits, and inheriting needs somewhere to start from.
    fn drop_lonely_parent(&mut self) {
        let starts = [&self.owners, &self.admins, &self.members, &self.groups, &self.containers];
        if starts.iter().all(|relations| relations.is_empty())
            && let Some(parent) = self.parent.take()
        {
            self.notes.push(format!("LOOK: {} : {} has nothing to pass on", parent.name, parent.body));
        }
    }
}

/// The names a type uses already.
fn used(ty: &Type<'_>) -> Taken {
    ty.relations().map(|relation| relation.name.clone()).chain(["self".to_owned()]).collect()
}

/// Whether `from` is, or belongs in some steps to, `to`.
fn reaches(inside: &BTreeMap<usize, BTreeSet<usize>>, from: usize, to: usize) -> bool {
    let mut open = vec![from];
    let mut seen = BTreeSet::new();
    while let Some(at) = open.pop() {
        if at == to {
            return true;
        }
        if seen.insert(at) {
            open.extend(inside.get(&at).into_iter().flatten());
        }
    }
    false
}

/// Two foreign keys, and nothing else that would make it a thing of its own.
fn is_link(table: &Table, tables: &Tables<'_>, users: &Table) -> bool {
    let [first, second] = table.foreign.as_slice() else { return false };
    let known = |key: &ForeignKey| key.to_key && tables.get(&key.table).is_some_and(|t| key_types(t).is_some());
    if !known(first) || !known(second) {
        return false;
    }
    let linked: BTreeSet<&Ident> = first.columns.iter().chain(&second.columns).collect();
    let key: BTreeSet<&Ident> = table.key.iter().collect();
    let words = ["member", "admin", "participant", "collaborator", "assignment", "manager"];
    let name = table.name.name.as_str().to_lowercase();
    let of_people = (first.table == users.name) != (second.table == users.name);
    key.iter().all(|column| linked.contains(column)) && (key == linked || key.is_empty())
        || (of_people && words.iter().any(|word| name.contains(word)))
}

/// A link table's foreign keys, the one to users last; `None` when not exactly one of them names users.
fn ends<'k>(link: &'k Table, users: &Table) -> Option<(&'k ForeignKey, &'k ForeignKey)> {
    let [first, second] = link.foreign.as_slice() else { return None };
    match (first.table == users.name, second.table == users.name) {
        (false, true) => Some((first, second)),
        (true, false) => Some((second, first)),
        _ => None,
    }
}

fn required(table: &Table, key: &ForeignKey) -> bool {
    key.columns.iter().all(|column| table.columns.iter().any(|c| c.name == *column && c.required))
}

/// `owner_id` or `[org_id, owner_id]`
fn columns_source(columns: &[Ident]) -> String {
    match columns {
        [one] => one.plain(),
        many => format!("[{}]", many.iter().map(Ident::plain).collect::<Vec<_>>().join(", ")),
    }
}

fn link_source(link: &Table, object: &ForeignKey, subject: &ForeignKey) -> String {
    format!("{}({} -> {})", link.name.plain(), columns_source(&object.columns), columns_source(&subject.columns))
}
