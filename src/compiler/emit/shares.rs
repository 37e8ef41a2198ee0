//! Shares made at run time: a table for each shared relation and kind of subject, with the keys' own types, and the
//! triggers by which a share ends with its object or its subject. Roles that people make are shared the same way, from a
//! table for each type and kind of holder.

use std::collections::BTreeMap;

use crate::compiler::ident::{Ident, literal};
use crate::compiler::model::{Condition, PermId, Place, RelId, Source, Subject, TypeId};
use crate::compiler::objects::{Lock, LockMode, Object, ObjectKind, Phase};

use super::context::{Emit, Policy, not_built};
use super::key::Key;
use super::names::{self, ShareSubject};

/// One shared source, or one kind of holder of roles: its table and the types at its ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The type of the object.
    pub object: TypeId,
    /// What is shared: the relation's policy name, or nothing for a role.
    pub relation: Option<String>,
    /// The kind of subject.
    pub subject: ShareSubject,
    /// The subject's type, where it has one.
    pub subject_type: Option<TypeId>,
    /// `schema.table`.
    pub table: String,
    /// The permission that may share it.
    pub by: PermId,
    /// It can be made only while this holds on the object's row.
    pub condition: Option<Condition>,
    /// Permissions are inherited through it, so it counts until it is taken back.
    pub lasting: bool,
}

impl Policy<'_> {
    /// Every shared source of the policy and every kind of holder of roles, in the order written.
    pub fn shares(&self) -> Emit<Vec<Share>> {
        let mut shares: Vec<Share> = Vec::new();
        for (at, def) in self.model.types.iter().enumerate() {
            let ty = TypeId(at);
            for (rel, relation) in def.relations.iter().enumerate() {
                for (number, source) in relation.sources.iter().enumerate() {
                    shares.extend(self.share(ty, RelId(rel), number, source)?);
                }
            }
            for subject in def.roles.iter().flat_map(|roles| &roles.subjects) {
                let kind = ShareSubject::of(self.model, *subject)
                    .ok_or_else(|| not_built(def.span, "a holder of roles of another policy"))?;
                let by = def.roles.as_ref().map_or(PermId(0), |roles| roles.by);
                shares.push(Share {
                    object: ty,
                    relation: None,
                    subject_type: subject_type(*subject),
                    table: names::role_shares(def, &kind),
                    by,
                    subject: kind,
                    condition: None,
                    lasting: false,
                });
            }
        }
        Ok(shares)
    }

    fn share(&self, object: TypeId, relation: RelId, number: usize, source: &Source) -> Emit<Option<Share>> {
        let Place::Shared { by, condition } = &source.place else { return Ok(None) };
        let def = self.ty(object)?;
        let name = &self.relation(object, relation)?.name;
        let subject = ShareSubject::of(self.model, source.subject)
            .ok_or_else(|| not_built(source.span, "a subject of another policy"))?;
        let inherited = |link: &crate::compiler::model::GraphLink| {
            link.child == object && link.relation == relation && link.source == number
        };
        Ok(Some(Share {
            object,
            relation: Some(name.clone()),
            subject_type: subject_type(source.subject),
            table: names::shares(def, name, &subject),
            by: *by,
            subject,
            condition: condition.clone(),
            lasting: self.model.graphs.iter().any(|graph| graph.links.iter().any(inherited)),
        }))
    }

    /// The columns of a share's subject: its type's key, a link's hash, or none.
    pub fn subject_columns(&self, share: &Share) -> Emit<Vec<String>> {
        Ok(match (share.subject_type, &share.subject) {
            (Some(ty), _) => self.key(ty)?.named("subject"),
            (None, ShareSubject::Link) => vec!["hash".to_owned()],
            (None, _) => Vec::new(),
        })
    }

    /// The tables of the shares. They outlive the policy: shares are the app's data.
    pub fn share_tables(&self, shares: &[Share]) -> Emit<Vec<Object>> {
        let mut objects = Vec::new();
        for share in shares {
            let typed = |key: Key<'_>, prefix: &str| {
                let typed = key.named(prefix).into_iter().zip(key.part_types());
                typed.map(|(name, ty)| format!("  {name} {ty} NOT NULL,\n")).collect::<String>()
            };
            let object_key = self.key(share.object)?;
            let mut columns = typed(object_key, "object");
            if let Some(ty) = share.subject_type {
                columns.push_str(&typed(self.key(ty)?, "subject"));
            }
            if share.subject == ShareSubject::Link {
                columns.push_str("  hash bytea NOT NULL CHECK (length(hash) = 32),\n  link bigint NOT NULL DEFAULT nextval('authz_int.link_number') UNIQUE,\n");
            }
            let mut unique = self.subject_columns(share)?;
            unique.extend(object_key.named("object"));
            if share.relation.is_none() {
                columns.push_str("  role bigint NOT NULL REFERENCES authz_int.roles ON DELETE CASCADE,\n");
                unique.push("role".to_owned());
            }
            let table = format!(
                "CREATE TABLE IF NOT EXISTS {} (\n{columns}  starts timestamptz,\n  expires timestamptz,\n  \
                 caveat text,\n  args jsonb,\n  made_by text NOT NULL,\n  made_at timestamptz NOT NULL DEFAULT clock_timestamp(),\n  \
                 UNIQUE ({})\n)",
                share.table,
                unique.join(", ")
            );
            objects.push(object(ObjectKind::Table, &share.table, table, Phase::Tables, Vec::new()));
            let mut by_object = object_key.named("object");
            if unique.len() > by_object.len() {
                by_object.extend(self.subject_columns(share)?);
                objects.push(index(share, "by object", &by_object));
            }
            if share.relation.is_none() {
                objects.push(index(share, "by role", &["role".to_owned()]));
            }
        }
        Ok(objects)
    }

    /// The triggers by which shares end with the rows at their ends, also when a row's key changes, and roles with the
    /// row that owns them.
    pub fn share_upkeep(&self, shares: &[Share]) -> Emit<Vec<Object>> {
        let mut ends: BTreeMap<TypeId, Vec<(&str, &str)>> = BTreeMap::new();
        for share in shares {
            ends.entry(share.object).or_default().push((&share.table, "object"));
            if let Some(ty) = share.subject_type {
                ends.entry(ty).or_default().push((&share.table, "subject"));
            }
        }
        for roles in self.model.types.iter().filter_map(|def| def.roles.as_ref()) {
            let tables = ends.entry(roles.owner).or_default();
            if !tables.contains(&("authz_int.roles", "owner")) {
                tables.push(("authz_int.roles", "owner"));
            }
        }
        let mut objects = Vec::new();
        for (ty, tables) in ends {
            objects.extend(self.end_triggers(ty, &tables)?);
        }
        Ok(objects)
    }

    fn end_triggers(&self, ty: TypeId, tables: &[(&str, &str)]) -> Emit<Vec<Object>> {
        let def = self.ty(ty)?;
        let key = self.key(ty)?;
        let kind = literal(&def.name);
        let text = |row: &str| key.text(&key.of_row(row));
        let of_type = format!("s.owner_type = {kind}");
        let same = |column: &str, row: &str| match column {
            "owner" => format!("{of_type} AND s.owner_id = {}", text(row)),
            _ => key.of_columns("s", column).equals(&key.of_row(row)),
        };
        let body = |statement: &dyn Fn(&str, &str) -> String| {
            tables.iter().map(|(table, column)| format!("  {};\n", statement(table, column))).collect::<String>()
        };
        let guard = |ends: &str| format!("  PERFORM authz_int.guard_gone({ends});\n");
        let prefix = literal(&format!("{} ", def.name));
        let differs = format!("{} IS DISTINCT FROM {}", key.of_row("OLD").row(), key.of_row("NEW").row());
        let gone = body(&|table, column| format!("DELETE FROM {table} s USING gone WHERE {}", same(column, "gone")));
        let gone = guard(&format!("ARRAY(SELECT {prefix} || {} FROM gone)", text("gone"))) + &gone;
        let changed = body(&|table, column| format!("DELETE FROM {table} s WHERE {}", same(column, "OLD")));
        let changed = guard(&format!("ARRAY[{prefix} || {}]", text("OLD"))) + &changed;
        let all = body(&|table, column| match column {
            "owner" => format!("DELETE FROM {table} s WHERE {of_type}"),
            _ => format!("DELETE FROM {table} s"),
        });
        let all = guard("NULL") + &all;
        let mut objects = Vec::new();
        for (what, event, statements) in [
            ("deleted", "AFTER DELETE ON {} REFERENCING OLD TABLE AS gone FOR EACH STATEMENT", gone),
            ("rekeyed", "AFTER UPDATE ON {} FOR EACH ROW WHEN ({differs})", changed),
            ("truncated", "AFTER TRUNCATE ON {} FOR EACH STATEMENT", all),
        ] {
            let function = format!("{}.{}", names::INT, Ident::generated(&["shares", "", &def.name, "", what]));
            let sql = format!(
                "CREATE OR REPLACE FUNCTION {function}() RETURNS trigger\nLANGUAGE plpgsql SECURITY DEFINER\n\
                 SET search_path = pg_catalog, pg_temp\nAS $authz$\nBEGIN\n{statements}  RETURN NULL;\nEND $authz$"
            );
            objects.push(object(ObjectKind::Function, &function, sql, Phase::Upkeep, Vec::new()));
            let event = event.replace("{}", &def.table.to_string()).replace("{differs}", &differs);
            let lock = Lock { table: def.table.clone(), mode: LockMode::ShareRowExclusive };
            objects.push(object(
                ObjectKind::Trigger,
                &format!("{}: shares {what}", def.table.plain()),
                format!("CREATE TRIGGER authz_shares_{what} {event} EXECUTE FUNCTION {function}()"),
                Phase::Upkeep,
                vec![lock],
            ));
        }
        Ok(objects)
    }
}

fn subject_type(subject: Subject) -> Option<TypeId> {
    match subject {
        Subject::Type(ty) | Subject::Group(ty, _) => Some(ty),
        _ => None,
    }
}

/// An index of a share table, named by a hash when its name is too long.
fn index(share: &Share, what: &str, columns: &[String]) -> Object {
    let bare = share.table.rsplit_once('.').map_or(share.table.as_str(), |(_, name)| name).trim_matches('"');
    let (first, second) = what.split_once(' ').unwrap_or((what, ""));
    let name = Ident::generated(&[bare, first, second]);
    let sql = format!("CREATE INDEX IF NOT EXISTS {name} ON {} ({})", share.table, columns.join(", "));
    object(ObjectKind::Index, &format!("{}: {what}", share.table), sql, Phase::Tables, Vec::new())
}

fn object(kind: ObjectKind, name: &str, sql: String, phase: Phase, locks: Vec<Lock>) -> Object {
    Object { kind, name: name.to_owned(), sql, locks, phase, graph: None }
}
