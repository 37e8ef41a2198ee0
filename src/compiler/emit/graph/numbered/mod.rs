//! Numbered graphs: over several types, over keys of several columns, or with links whose parent stands in a pair of
//! columns. Each object has a number, held in one table per type, and the index holds numbers; the upkeep is the same as
//! of any other graph. Only what goes between keys and numbers is different, and all of it is here.
//!
//! A number is given when a row is inserted and taken when it is gone, by the trigger that then keeps the index. Columns
//! of the number tables begin with `authz__`, because conditions of the policy stand beside them.

pub(super) mod fragments;
pub(super) mod triggers;
pub(super) mod verify;

use super::super::super::ident::{Ident, QualName, literal};
use super::super::super::model::{Condition, GraphLink, Model, Place, Source, TypeDef, TypeId};
use super::super::super::objects::{Object, ObjectKind, Phase};
use super::super::in_row::from_text;
use super::super::key::{Id, Key, held_type};
use super::super::names::{self, ShareSubject};
use super::SCHEMA;
use super::fragments::and;

/// What the templates need to know of a numbered graph.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbered {
    /// Its types, in the order first linked.
    pub(super) members: Vec<Member>,
    /// Links in the child's own row.
    pub(super) columns: Vec<RowLink>,
    /// Links in tables of their own.
    pub(super) tables: Vec<TableLink>,
}

/// A type in the graph.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) id: TypeId,
    /// Its policy name.
    pub(super) name: String,
    pub(super) table: QualName,
    /// Its key columns with the types in which they are held.
    pub(super) key: Vec<(Ident, &'static str)>,
    /// Which rows are objects, when not all.
    pub(super) objects: Option<String>,
    /// Its number table; named once the graph is.
    pub(super) numbers: String,
}

/// A link in the child's row.
#[derive(Debug, Clone)]
pub(super) struct RowLink {
    pub(super) child: usize,
    pub(super) parent: usize,
    /// The parent's key, SQL over `this`.
    pub(super) id: Vec<String>,
    /// The columns that hold it.
    pub(super) holds: Vec<Ident>,
    /// The column holds the text of keys of several types.
    pub(super) as_text: bool,
    /// It names a parent of this type where this holds (SQL over `this`).
    pub(super) test: Option<String>,
    /// It counts where this holds on the child's row.
    pub(super) condition: Option<String>,
}

/// A link in a table of its own.
#[derive(Debug, Clone)]
pub(super) struct TableLink {
    pub(super) child: usize,
    pub(super) parent: usize,
    pub(super) table: QualName,
    /// Made by the apply, so it cannot be locked before.
    pub(super) ours: bool,
    pub(super) object: Vec<Ident>,
    pub(super) subject: Vec<Ident>,
    pub(super) rows: Option<String>,
    pub(super) condition: Option<String>,
}

impl Member {
    fn new(id: TypeId, def: &TypeDef) -> Member {
        Member {
            id,
            name: def.name.clone(),
            table: def.table.clone(),
            key: def.key.iter().map(|k| (k.column.clone(), held_type(k.ty))).collect(),
            objects: def.condition.as_ref().map(|c| c.sql.clone()),
            numbers: String::new(),
        }
    }

    /// The names of the key's columns in the number table.
    pub(super) fn named(&self) -> Vec<String> {
        match self.key.len() {
            1 => vec![KEY.to_owned()],
            n => (1..=n).map(|at| format!("{KEY}{at}")).collect(),
        }
    }

    /// `authz__m.authz__k = this.id AND ...`
    pub(super) fn is_numbered(&self, alias: &str, id: &[String]) -> String {
        let pairs = self.named().into_iter().zip(id).map(|(k, id)| format!("{alias}.{k} = {id}"));
        pairs.collect::<Vec<_>>().join(" AND ")
    }

    /// `number table AS alias ON (its key is id)`, for JOIN.
    pub(super) fn join(&self, alias: &str, id: &[String]) -> String {
        format!("{} AS {alias} ON {}", self.numbers, self.is_numbered(alias, id))
    }

    /// Its key in the row `this`.
    pub(super) fn own(&self) -> Vec<String> {
        self.key.iter().map(|(column, _)| format!("this.{column}")).collect()
    }

    /// Whether `this` has a whole key.
    pub(super) fn has_key(&self) -> String {
        self.own().iter().map(|k| format!("{k} IS NOT NULL")).collect::<Vec<_>>().join(" AND ")
    }

    /// `table AS this` joined with its number under `authz__m`.
    pub(super) fn numbered_rows(&self) -> String {
        format!("{} AS this JOIN {}", self.table, self.join("authz__m", &self.own()))
    }

    /// `EXISTS (...)`: the object with the key in `alias` is there and counts.
    pub(super) fn exists(&self, alias: &str, prefix: &str) -> String {
        let names = self.named().into_iter().map(|k| format!("{alias}.{}", k.replacen(KEY, prefix, 1)));
        let same: Vec<String> = self.own().into_iter().zip(names).map(|(a, b)| format!("{a} = {b}")).collect();
        format!(
            "EXISTS (SELECT FROM {} AS this WHERE {}{})",
            self.table,
            same.join(" AND "),
            and(self.objects.as_deref())
        )
    }

    /// The API's id from columns of `alias`.
    pub(super) fn text(&self, alias: &str) -> String {
        let columns: Vec<String> = self.named().into_iter().map(|k| format!("{alias}.{k}")).collect();
        text_of(&columns)
    }
}

/// The API's id of a key.
fn text_of(key: &[String]) -> String {
    match key {
        [one] => format!("{one}::text"),
        several => format!("ROW({})::text", several.join(", ")),
    }
}

/// What a key's columns are called in a number table, before their numbers.
pub(in super::super) const KEY: &str = "authz__k";
/// What the number is called there.
pub(in super::super) const NUMBER: &str = "authz__n";

impl Numbered {
    /// Adds a link; `None` for one that cannot inherit.
    pub(super) fn link(&mut self, model: &Model, link: &GraphLink) -> Option<()> {
        let child_type = model.ty(link.child)?;
        let source = child_type.relation(link.relation)?.sources.get(link.source)?;
        let (child, parent) = (self.member(model, link.child)?, self.member(model, link.parent)?);
        let condition = text(link.condition.as_ref());
        let this = |columns: &[Ident]| columns.iter().map(|c| format!("this.{c}")).collect::<Vec<_>>();
        match &source.place {
            Place::Column { columns } => self.columns.push(RowLink {
                child,
                parent,
                id: this(columns),
                holds: columns.clone(),
                as_text: false,
                test: None,
                condition,
            }),
            Place::Polymorphic { type_column, id_column } => {
                let to = model.ty(link.parent)?;
                // The column may be text or an enumeration.
                let test = format!("this.{type_column}::text = {}", literal(&to.name));
                let column = format!("this.{id_column}");
                let as_text = model.pair_holds_text(link.child, id_column);
                let id = match to.key.first() {
                    Some(key) if as_text => from_text(key.ty, &test, &column),
                    _ => column,
                };
                self.columns.push(RowLink {
                    child,
                    parent,
                    id: vec![id],
                    holds: vec![id_column.clone()],
                    as_text,
                    test: Some(test),
                    condition,
                });
            }
            _ => {
                let LinkTable { table, ours, object, subject, rows } = link_table(model, link, source)?;
                self.tables.push(TableLink { child, parent, table, ours, object, subject, rows, condition });
            }
        }
        Some(())
    }

    fn member(&mut self, model: &Model, id: TypeId) -> Option<usize> {
        if let Some(at) = self.members.iter().position(|m| m.id == id) {
            return Some(at);
        }
        self.members.push(Member::new(id, model.ty(id)?));
        Some(self.members.len() - 1)
    }

    /// A link's child and parent.
    pub(super) fn ends(&self, child: usize, parent: usize) -> Option<(&Member, &Member)> {
        Some((self.members.get(child)?, self.members.get(parent)?))
    }

    /// What makes this graph what it is, for its name.
    pub(super) fn parts(&self) -> Vec<String> {
        let mut parts = vec!["numbered ancestor index 1".to_owned()];
        let plain = |m: &Member| format!("{} {} {:?} {:?}", m.name, m.table, m.key, m.objects);
        parts.extend(self.members.iter().map(plain));
        parts.extend(self.columns.iter().map(|l| format!("{l:?}")));
        parts.extend(self.tables.iter().map(|l| format!("{l:?}")));
        parts
    }

    /// Names the number tables of the graph `graph`.
    pub(super) fn name(&mut self, graph: &str) {
        for (at, member) in self.members.iter_mut().enumerate() {
            member.numbers = QualName::new(SCHEMA, format!("{graph}_number{at}")).to_string();
        }
    }

    /// The statements that make the number tables.
    pub(super) fn objects(&self, graph: &str) -> Vec<Object> {
        let sequence = QualName::new(SCHEMA, format!("{graph}_number"));
        let object = |name: String, sql: String| Object {
            kind: ObjectKind::Table,
            name,
            sql,
            locks: Vec::new(),
            phase: Phase::Tables,
            graph: Some(graph.to_owned()),
        };
        let mut out = vec![object(
            format!("{SCHEMA}.{graph}_number"),
            format!("CREATE SEQUENCE IF NOT EXISTS {sequence} AS bigint"),
        )];
        for (at, member) in self.members.iter().enumerate() {
            let columns = member.named().into_iter().zip(&member.key).map(|(name, (_, ty))| format!("{name} {ty}, "));
            let sql = format!(
                "CREATE TABLE IF NOT EXISTS {} (\n  {}{NUMBER} bigint NOT NULL UNIQUE DEFAULT nextval({}),\n  PRIMARY KEY ({})\n)",
                member.numbers,
                columns.collect::<String>(),
                literal(&sequence.to_string()),
                member.named().join(", ")
            );
            out.push(object(format!("{SCHEMA}.{graph}_number{at}"), sql));
        }
        out
    }

    /// What gives every row its number, before a build.
    pub(super) fn prepare(&self) -> Vec<String> {
        let tables: Vec<&str> = self.members.iter().map(|m| m.numbers.as_str()).collect();
        let mut out = vec![format!("TRUNCATE {}", tables.join(", "))];
        for m in &self.members {
            out.push(m.give_numbers(&m.table.to_string()));
            out.push(format!("ANALYZE {}", m.numbers));
        }
        out
    }
}

impl Member {
    /// Gives every row of `rows` a number, where it has none.
    pub(super) fn give_numbers(&self, rows: &str) -> String {
        format!(
            "INSERT INTO {} ({}) SELECT DISTINCT {} FROM {rows} AS this WHERE {} ON CONFLICT DO NOTHING",
            self.numbers,
            self.named().join(", "),
            self.own().join(", "),
            self.has_key()
        )
    }
}

/// A source that is a table of its own.
pub(super) struct LinkTable {
    pub(super) table: QualName,
    pub(super) ours: bool,
    pub(super) object: Vec<Ident>,
    pub(super) subject: Vec<Ident>,
    pub(super) rows: Option<String>,
}

/// The table of a link, when it has one.
pub(super) fn link_table(model: &Model, link: &GraphLink, source: &Source) -> Option<LinkTable> {
    let child = model.ty(link.child)?;
    match &source.place {
        Place::Table { table, object, subject, condition } => Some(LinkTable {
            table: table.clone(),
            ours: false,
            object: object.clone(),
            subject: subject.clone(),
            rows: text(condition.as_ref()),
        }),
        Place::Shared { .. } => {
            let kind = ShareSubject::of(model, source.subject)?;
            let named = names::shares(child, &child.relation(link.relation)?.name, &kind);
            let (_, table) = named.split_once('.')?;
            let idents = |def, prefix: &str| Key::new(def).named(prefix).into_iter().map(Ident::new).collect();
            Some(LinkTable {
                table: QualName::new(names::INT, table.trim_matches('"')),
                ours: true,
                object: idents(child, "object"),
                subject: idents(model.ty(link.parent)?, "subject"),
                // What would end by itself passes nothing on: nothing would say when it ended.
                rows: Some("this.starts IS NULL AND this.expires IS NULL AND this.caveat IS NULL".to_owned()),
            })
        }
        _ => None,
    }
}

pub(super) fn text(condition: Option<&Condition>) -> Option<String> {
    condition.map(|c| c.sql.clone())
}

/// The id of an object in its number table under `alias`, for the rest of the emitter.
pub(in super::super) fn id_in(key: Key<'_>, alias: &str) -> Id {
    key.of_columns(alias, KEY)
}
