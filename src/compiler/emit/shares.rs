//! Shares made at run time: a table for each shared relation and kind of subject, with the keys' own types, and the
//! triggers by which a share ends with its object or its subject.

use std::collections::BTreeMap;

use crate::compiler::model::{Place, RelId, Source, Subject, TypeId};
use crate::compiler::objects::{Lock, LockMode, Object, ObjectKind, Phase};

use super::context::{Emit, Policy, not_built};
use super::key::Key;
use super::names::{self, ShareSubject};

/// One shared source: its table and the types at its ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The type of the object.
    pub object: TypeId,
    /// The relation.
    pub relation: RelId,
    /// Its policy name.
    pub relation_name: String,
    /// The kind of subject.
    pub subject: ShareSubject,
    /// The subject's type, where it has one.
    pub subject_type: Option<TypeId>,
    /// `schema.table`.
    pub table: String,
    /// The name of the permission that may share it.
    pub by: String,
}

impl Policy<'_> {
    /// Every shared source of the policy, in the order written.
    pub fn shares(&self) -> Emit<Vec<Share>> {
        let mut shares = Vec::new();
        for (at, def) in self.model.types.iter().enumerate() {
            for (rel, relation) in def.relations.iter().enumerate() {
                for source in &relation.sources {
                    if let Some(share) = self.share(TypeId(at), RelId(rel), source)?
                        && !shares.contains(&share)
                    {
                        shares.push(share);
                    }
                }
            }
        }
        Ok(shares)
    }

    fn share(&self, object: TypeId, relation: RelId, source: &Source) -> Emit<Option<Share>> {
        let Place::Shared { by, .. } = &source.place else { return Ok(None) };
        let def = self.ty(object)?;
        let name = &self.relation(object, relation)?.name;
        let subject =
            ShareSubject::of(self.model, source.subject).ok_or_else(|| not_built(source.span, "share links"))?;
        Ok(Some(Share {
            object,
            relation,
            relation_name: name.clone(),
            subject_type: match source.subject {
                Subject::Type(ty) | Subject::Group(ty, _) => Some(ty),
                _ => None,
            },
            table: names::shares(def, name, &subject),
            by: self.permission(object, *by)?.name.clone(),
            subject,
        }))
    }

    /// The tables of the shares. They outlive the policy: shares are the app's data.
    pub fn share_tables(&self, shares: &[Share]) -> Emit<Vec<Object>> {
        let mut objects = Vec::new();
        for share in shares {
            let columns = |key: Key<'_>, prefix: &str| {
                let typed = key.named(prefix).into_iter().zip(key.part_types());
                typed.map(|(name, ty)| format!("  {name} {ty} NOT NULL,\n")).collect::<String>()
            };
            let object_key = self.key(share.object)?;
            let objects_columns = columns(object_key, "object");
            let object_names = object_key.named("object").join(", ");
            let (subject, subject_names) = match share.subject_type {
                Some(ty) => (columns(self.key(ty)?, "subject"), self.key(ty)?.named("subject").join(", ")),
                None => (String::new(), String::new()),
            };
            let unique = match share.subject_type {
                Some(_) => format!("({subject_names}, {object_names})"),
                None => format!("({object_names})"),
            };
            let table = format!(
                "CREATE TABLE IF NOT EXISTS {} (\n{objects_columns}{subject}  starts timestamptz,\n  \
                 expires timestamptz,\n  made_by text NOT NULL,\n  made_at timestamptz NOT NULL DEFAULT clock_timestamp(),\n  \
                 UNIQUE {unique}\n)",
                share.table
            );
            objects.push(object(ObjectKind::Table, &share.table, table, Phase::Tables, Vec::new()));
            if share.subject_type.is_some() {
                let index = index_name(&share.table);
                let sql =
                    format!("CREATE INDEX IF NOT EXISTS {index} ON {} ({object_names}, {subject_names})", share.table);
                objects.push(object(
                    ObjectKind::Index,
                    &format!("{}: by object", share.table),
                    sql,
                    Phase::Tables,
                    Vec::new(),
                ));
            }
        }
        Ok(objects)
    }

    /// The triggers by which shares end with the rows at their ends, also when a row's key changes.
    pub fn share_upkeep(&self, shares: &[Share]) -> Emit<Vec<Object>> {
        let mut ends: BTreeMap<TypeId, Vec<(&str, &str)>> = BTreeMap::new();
        for share in shares {
            ends.entry(share.object).or_default().push((&share.table, "object"));
            if let Some(ty) = share.subject_type {
                ends.entry(ty).or_default().push((&share.table, "subject"));
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
        let body = |statement: &dyn Fn(&str, &str) -> String| {
            tables.iter().map(|(table, column)| format!("  {};\n", statement(table, column))).collect::<String>()
        };
        let same = |column: &str, row: &str| key.of_columns("s", column).equals(&key.of_row(row));
        let differs = format!("{} IS DISTINCT FROM {}", key.of_row("OLD").row(), key.of_row("NEW").row());
        let gone = body(&|table, column| format!("DELETE FROM {table} s USING gone WHERE {}", same(column, "gone")));
        let changed = body(&|table, column| format!("DELETE FROM {table} s WHERE {}", same(column, "OLD")));
        let all = body(&|table, _| format!("DELETE FROM {table} s"));
        let mut objects = Vec::new();
        for (what, event, statements) in [
            ("deleted", "AFTER DELETE ON {} REFERENCING OLD TABLE AS gone FOR EACH STATEMENT", gone),
            ("rekeyed", "AFTER UPDATE ON {} FOR EACH ROW WHEN ({differs})", changed),
            ("truncated", "AFTER TRUNCATE ON {} FOR EACH STATEMENT", all),
        ] {
            let function = format!(
                "{}.{}",
                names::INT,
                crate::compiler::ident::Ident::generated(&["shares", "", &def.name, "", what])
            );
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

/// `"by_object"` index of a share table, named by a hash when too long.
fn index_name(table: &str) -> String {
    let bare = table.rsplit_once('.').map_or(table, |(_, name)| name).trim_matches('"');
    crate::compiler::ident::Ident::generated(&[bare, "by", "object"]).to_string()
}

fn object(kind: ObjectKind, name: &str, sql: String, phase: Phase, locks: Vec<Lock>) -> Object {
    Object { kind, name: name.to_owned(), sql, locks, phase, graph: None }
}
