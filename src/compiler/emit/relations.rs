//! What a relation becomes: a view of the ids on which the caller is in it, a function with the same ids, and for
//! memberships and groups a function that gives them as an array.

use crate::compiler::ident::literal;
use crate::compiler::model::{Condition, PermId, Place, RelId, Source, Subject, Target, TypeId};

use super::context::{Asker, Emit, Form, Policy, Scope, not_built, owner_function};
use super::key::Id;
use super::names::{self, ShareSubject};
use super::nodes::Nodes;
use super::views::Made;

/// A source as rows: a FROM item and the columns with the object's and the subject's key in it.
pub struct Rows {
    /// `schema.table alias`.
    pub from: String,
    /// The object's id.
    pub object: Id,
    /// The subject's id; `None` where there is none (everyone).
    pub subject: Option<Id>,
    /// Which rows count, SQL text without AND; `None` when all.
    pub condition: Option<String>,
}

impl Policy<'_> {
    /// The rows of a source of `relation`.
    pub fn rows(&self, ty: TypeId, relation: RelId, source: &Source) -> Emit<Rows> {
        let def = self.ty(ty)?;
        match &source.place {
            Place::Column { .. } | Place::Polymorphic { .. } => {
                let named = self.named_in_row(ty, source, "this")?;
                let (subject, test) = named.map_or((None, None), |named| (Some(named.id), named.test));
                let mut conditions: Vec<String> = test.into_iter().collect();
                conditions.extend(def.condition.as_ref().map(|c| self.on_row(&def.table, c, "this")));
                Ok(Rows {
                    from: format!("{} AS this", def.table),
                    object: self.key(ty)?.of_row("this"),
                    subject,
                    condition: joined(conditions),
                })
            }
            Place::Table { table, object, subject, condition } => {
                let (object, subject) = (Id::of("l", object), Id::of("l", subject));
                let mut conditions = Vec::new();
                if let Some(condition) = condition {
                    conditions.push(self.on_row(table, condition, "l"));
                }
                conditions.extend(self.counted(ty, &object)?);
                Ok(Rows {
                    from: format!("{table} AS l"),
                    object,
                    subject: Some(subject),
                    condition: joined(conditions),
                })
            }
            Place::Shared { condition, .. } => {
                let name = &self.relation(ty, relation)?.name;
                let kind = ShareSubject::of(self.model, source.subject)
                    .ok_or_else(|| not_built(source.span, "a subject of another policy"))?;
                let object = self.key(ty)?.of_columns("l", "object");
                // What would end by itself passes nothing on, since nothing would say when it ended.
                let live = if self.is_inherited(ty, relation, source) {
                    "l.starts IS NULL AND l.expires IS NULL AND l.caveat IS NULL".to_owned()
                } else {
                    self.live("l")
                };
                let mut conditions = vec![live];
                conditions.extend(self.counted_and(ty, &object, condition.as_ref())?);
                Ok(Rows {
                    from: format!("{} AS l", names::shares(def, name, &kind)),
                    object,
                    subject: self.share_subject(source.subject)?,
                    condition: joined(conditions),
                })
            }
            Place::Role { permission } => self.role_rows(ty, *permission, source),
        }
    }

    /// Whether permissions are inherited over a source.
    fn is_inherited(&self, ty: TypeId, relation: RelId, source: &Source) -> bool {
        let sources = self.ty(ty).ok().and_then(|def| def.relation(relation)).map(|found| found.sources.as_slice());
        self.model.graphs.iter().flat_map(|graph| &graph.links).any(|link| {
            let same = link.child == ty && link.relation == relation;
            same && sources.and_then(|all| all.get(link.source)) == Some(source)
        })
    }

    /// The subject in the row `l` of a share's table.
    fn share_subject(&self, subject: Subject) -> Emit<Option<Id>> {
        Ok(match subject {
            Subject::Type(to) | Subject::Group(to, _) => Some(self.key(to)?.of_columns("l", "subject")),
            Subject::Link => Some(Id::one("l.hash")),
            Subject::Everyone(_) | Subject::Anyone => None,
        })
    }

    /// Roles that include a permission and belong to the object's owner of roles, as rows.
    fn role_rows(&self, ty: TypeId, permission: PermId, source: &Source) -> Emit<Rows> {
        let def = self.ty(ty)?;
        let kind = ShareSubject::of(self.model, source.subject)
            .ok_or_else(|| not_built(source.span, "a subject of another policy"))?;
        let object = self.key(ty)?.of_columns("l", "object");
        let owner = def.roles.as_ref().map_or(ty, |roles| roles.owner);
        let same = self.key(ty)?.of_row("this").equals(&object);
        let conditions = [
            self.live("l"),
            format!("r.type = {}", literal(&def.name)),
            format!("{} = ANY (r.permissions)", literal(&self.permission(ty, permission)?.name)),
            format!("r.owner_type = {}", literal(&self.ty(owner)?.name)),
            format!(
                "(SELECT true FROM {} AS this WHERE {same} AND r.owner_id = {}{} LIMIT 1)",
                def.table,
                self.role_owner_text(ty, "this")?,
                self.counts(ty, "this")?
            ),
        ];
        Ok(Rows {
            from: format!("{} AS l JOIN authz_int.roles AS r ON r.id = l.role", names::role_shares(def, &kind)),
            object,
            subject: self.share_subject(source.subject)?,
            condition: Some(conditions.join(" AND ")),
        })
    }

    /// The id, as text, of what owns the roles that count on the row `row`.
    pub fn role_owner_text(&self, ty: TypeId, row: &str) -> Emit<String> {
        let key = self.key(ty)?;
        let Some((owner, from)) = self.ty(ty)?.roles.as_ref().and_then(|r| Some((r.owner, r.from?))) else {
            return Ok(key.text(&key.of_row(row)));
        };
        let source = self.relation(ty, from)?.sources.first();
        let Some(Source { place: Place::Column { columns }, .. }) = source else {
            return Err(not_built(self.ty(ty)?.span, "an owner of roles that no column names"));
        };
        Ok(self.key(owner)?.text(&Id::of(row, columns)))
    }

    /// The condition that the object `id` of type `ty` counts; `None` when every row of the type does.
    fn counted(&self, ty: TypeId, id: &Id) -> Emit<Option<String>> {
        self.counted_and(ty, id, None)
    }

    /// The condition that the object `id` of type `ty` counts and that `also` holds on its row.
    fn counted_and(&self, ty: TypeId, id: &Id, also: Option<&Condition>) -> Emit<Option<String>> {
        let def = self.ty(ty)?;
        let conditions: Vec<String> =
            def.condition.iter().chain(also).map(|condition| self.on_row(&def.table, condition, "this")).collect();
        if conditions.is_empty() {
            return Ok(None);
        }
        let same = self.key(ty)?.of_row("this").equals(id);
        let conditions = conditions.join(" AND ");
        Ok(Some(format!("(SELECT true FROM {} AS this WHERE {same} AND {conditions} LIMIT 1)", def.table)))
    }

    /// `SELECT` of the ids of the objects on which the caller is in the relation, from the sources that `keep` takes.
    pub fn held_rows(
        &self,
        scope: &mut Scope,
        ty: TypeId,
        relation: RelId,
        keep: impl Fn(&Source) -> bool,
    ) -> Emit<Vec<String>> {
        let found = self.relation(ty, relation)?;
        found
            .sources
            .iter()
            .filter(|source| keep(source))
            .map(|source| {
                let rows = self.rows(ty, relation, source)?;
                let holder = match (source.subject, &rows.subject, scope.asker) {
                    (Subject::Group(group, member), Some(subject), Asker::Variables) => {
                        let mine = scope.mine(self, group, member)?;
                        self.key(group)?.starts_among(subject, &mine)
                    }
                    (_, subject, _) => self.is_caller(scope, source.subject, subject.as_ref())?,
                };
                let condition = rows.condition.map(|c| format!(" AND {c}")).unwrap_or_default();
                let ids = scope.ids(self.key(ty)?, &rows.object);
                Ok(format!("SELECT {ids} FROM {} WHERE {holder}{condition}", rows.from))
            })
            .collect()
    }

    /// The views and functions of every relation to people of one type.
    pub fn relation_objects(&self, ty: TypeId, made: &mut Made) -> Emit<()> {
        let def = self.ty(ty)?;
        for (at, found) in def.relations.iter().enumerate().filter(|(_, r)| !r.to_objects) {
            let relation = RelId(at);
            let is_listed = |s: &Source| !s.place.is_in_row();
            self.relation_pair(ty, relation, &found.name, |_| true, made)?;
            let listed = self.listed_part(ty, relation)?;
            if listed != found.name && found.sources.iter().any(is_listed) {
                self.relation_pair(ty, relation, &listed, is_listed, made)?;
            }
            self.mine_function(ty, relation, made)?;
        }
        Ok(())
    }

    /// The view and the set, called `part`, of the sources of a relation that `keep` takes.
    fn relation_pair(
        &self,
        ty: TypeId,
        relation: RelId,
        part: &str,
        keep: impl Fn(&Source) -> bool,
        made: &mut Made,
    ) -> Emit<()> {
        let def = self.ty(ty)?;
        let mut scope = Scope::new(ty, "this", Asker::Statement, Form::Probe);
        let rows = self.held_rows(&mut scope, ty, relation, &keep)?;
        // Such a row names no view, so its parts have nothing of the scope to divide.
        let parts = rows.into_iter().map(|row| (row, scope.clone())).collect();
        made.union_view(&names::view(def, part), self.key(ty)?, parts);
        let mut scope = Scope::new(ty, "this", Asker::Variables, Form::Set);
        let rows = self.held_rows(&mut scope, ty, relation, &keep)?;
        self.set_function(ty, part, &scope, &rows.join("\nUNION ALL\n"), made)
    }

    /// The function `set__TYPE__PART` that returns what `query` selects.
    pub fn set_function(&self, ty: TypeId, part: &str, scope: &Scope, query: &str, made: &mut Made) -> Emit<()> {
        let name = names::function("set", self.ty(ty)?, part);
        let body = format!("  RETURN QUERY\n{};", indented(query));
        let returns = self.key(ty)?.set_of();
        made.function(&name, owner_function(self, &name, "", &returns, &scope.mine, &body)?, true);
        Ok(())
    }

    /// The ids of the objects in whose relation the caller is, through groups in groups, as an array.
    fn mine_function(&self, ty: TypeId, relation: RelId, made: &mut Made) -> Emit<()> {
        let def = self.ty(ty)?;
        let found = self.relation(ty, relation)?;
        let own_group = |s: &Source| s.subject == Subject::Group(ty, relation);
        let mut scope = Scope::new(ty, "this", Asker::Variables, Form::Set);
        let key = self.key(ty)?;
        let start = self.held_rows(&mut scope, ty, relation, |s| !own_group(s))?;
        let steps: Vec<String> = found
            .sources
            .iter()
            .filter(|s| own_group(s))
            .map(|source| {
                let rows = self.rows(ty, relation, source)?;
                let condition = rows.condition.map(|c| format!(" WHERE {c}")).unwrap_or_default();
                let member = rows.subject.as_ref().map(|subject| key.typed(subject, "member")).unwrap_or_default();
                Ok(format!("SELECT {member}, {} FROM {}{condition}", key.typed(&rows.object, "id"), rows.from))
            })
            .collect::<Emit<_>>()?;
        if start.is_empty() {
            return Err(not_built(found.span, format!("\"{}\", a group made only of itself", found.name)));
        }
        let start = start.join("\nUNION ALL\n");
        let id = key.named("id").join(", ");
        let query = if steps.is_empty() {
            start
        } else {
            // A step is an id and the ids it is a member of; UNION ends loops of groups.
            let step = steps.join("\nUNION ALL\n");
            format!(
                "WITH RECURSIVE mine({id}) AS (\n  (\n{}\n  )\n  UNION\n  SELECT {} FROM mine m JOIN (\n{}\n  ) s ON {}\n)\n\
                 SELECT {} FROM mine m",
                indented(&start),
                key.of_view("s").list(),
                indented(&step),
                key.of_columns("s", "member").equals(&key.of_view("m")),
                key.of_view("m").list(),
            )
        };
        let name = names::function("mine", def, &found.name);
        let query = if key.is_composite() {
            // An array holds one value for each id.
            format!("SELECT {} FROM (\n{}\n) q", key.value(&key.of_view("q")), indented(&query))
        } else {
            query
        };
        let body = format!("  RETURN ARRAY(\n{}\n  );", indented(&query));
        let returns = format!("{}[]", key.sql());
        made.function(&name, owner_function(self, &name, "", &returns, &scope.mine, &body)?, true);
        Ok(())
    }

    /// The view and the set from which a relation that does not stand in the row, followed, finds `target`.
    pub fn followed_objects(
        &self,
        ty: TypeId,
        relation: RelId,
        targets: &[(TypeId, Target)],
        made: &mut Made,
    ) -> Emit<()> {
        let def = self.ty(ty)?;
        let found = self.relation(ty, relation)?;
        let key = self.key(ty)?;
        let mut name = None;
        let mut view = Vec::new();
        let mut set = Vec::new();
        let mut setting = Scope::new(ty, "this", Asker::Variables, Form::Set);
        for source in found.sources.iter().filter(|s| !s.place.is_in_row()) {
            let Subject::Type(reached) = source.subject else { continue };
            let Some((_, target)) = targets.iter().find(|(ty, _)| *ty == reached) else { continue };
            let rows = self.rows(ty, relation, source)?;
            let Some(value) = rows.subject else { continue };
            let condition = rows.condition.map(|c| format!(" AND {c}")).unwrap_or_default();
            name = Some(self.target_name(reached, *target)?);
            let query = |scope: &Scope, reached: &str| {
                format!("SELECT {} FROM {} WHERE {reached}{condition}", scope.ids(key, &rows.object), rows.from)
            };
            let mut probing = Scope::new(ty, "this", Asker::Statement, Form::Probe);
            let holds = self.reached(&mut probing, reached, *target, &value)?;
            view.push((query(&probing, &holds), probing));
            let holds = self.reached(&mut setting, reached, *target, &value)?;
            set.push(query(&setting, &holds));
        }
        let Some(target) = name else { return Ok(()) };
        let view_name = names::followed(def, &found.name, target);
        if made.has(&view_name) {
            return Ok(());
        }
        made.union_view(&view_name, key, view);
        self.set_function(ty, &format!("{}__{target}", found.name), &setting, &set.join("\nUNION ALL\n"), made)
    }

    /// A probe of the relation over a path: any object whose id is in the array `path` on which the caller is in it
    /// through a listed source.
    pub fn path_probes(&self, scope: &mut Scope, relation: RelId, nodes: &Nodes<'_>, path: &str) -> Emit<Vec<String>> {
        let ty = scope.ty;
        let found = self.relation(ty, relation)?;
        found
            .sources
            .iter()
            .filter(|s| !s.place.is_in_row())
            .map(|source| {
                let rows = self.rows(ty, relation, source)?;
                let holder = self.is_caller(scope, source.subject, rows.subject.as_ref())?;
                let condition = rows.condition.map(|c| format!(" AND {c}")).unwrap_or_default();
                let (from, on_path) = nodes.rows_on(&rows.from, &rows.object, path);
                Ok(format!("(SELECT true FROM {from} WHERE {on_path} AND {holder}{condition} LIMIT 1)"))
            })
            .collect()
    }

    /// A look-up of a row of the type itself, for terms that need its columns: any object of the path on which one of
    /// `tests` (SQL text on `this`) holds.
    pub fn path_row_probe(&self, ty: TypeId, tests: &[String], nodes: &Nodes<'_>, path: &str) -> Emit<String> {
        let def = self.ty(ty)?;
        let own = self.key(ty)?.of_row("this");
        let (from, on_path) = nodes.rows_on(&format!("{} AS this", def.table), &own, path);
        Ok(format!(
            "(SELECT true FROM {from} WHERE {on_path} AND ({}){} LIMIT 1)",
            tests.join(" OR "),
            self.counts(ty, "this")?
        ))
    }
}

fn joined(conditions: Vec<String>) -> Option<String> {
    (!conditions.is_empty()).then(|| conditions.join(" AND "))
}

/// Text moved two columns to the right.
pub fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
