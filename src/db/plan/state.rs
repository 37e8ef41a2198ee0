//! What an apply left in the database: the policy in force, what it made, and which indexes are built.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio_postgres::Client;

use super::locks::Touched;
use super::{Policy, names};
use crate::compiler::ident::QualName;
use crate::compiler::model::{Command, Place};
use crate::compiler::objects::{Emitted, GraphTables, Object, ObjectKind};
use crate::db::error::DbError;

/// The newest row of `authz.policy_versions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InForce {
    /// Its version.
    pub version: i64,
    /// Its file's name.
    pub name: String,
    /// Digest of the SQL it became.
    pub digest: String,
    /// When it was applied, as the server writes it.
    pub applied_at: String,
    /// Its text.
    #[serde(skip)]
    pub source: String,
    /// What it made.
    #[serde(skip)]
    pub record: Record,
}

/// What an apply made, kept in `authz.policy_versions.objects` so that the next one knows what changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Record {
    /// The app role it granted to.
    #[serde(default)]
    pub app_role: Option<String>,
    /// Tables with rules, as schema and name: what stands here is by name, so that a restored database has it too.
    #[serde(default)]
    pub governed: Vec<Vec<String>>,
    /// Tables whose rows the rules or an index trust: those of the types and those that relations are read from.
    #[serde(default)]
    pub reads: Vec<Vec<String>>,
    /// Columns with masks, as schema, table and column.
    #[serde(default)]
    pub masks: Vec<Vec<String>>,
    /// Its objects, in the order they were made.
    #[serde(default)]
    pub objects: Vec<Made>,
    /// Share tables of earlier policies that were kept because they hold rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Made>,
}

/// One object of a [`Record`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// The word of its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// SHA-256 of its SQL, in hex.
    pub sql: String,
    /// The graph it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
}

impl Record {
    /// The record of what is about to be made.
    pub fn of(policy: &Policy<'_>) -> Record {
        let mut reads = BTreeSet::new();
        let mut masks = BTreeSet::new();
        for ty in &policy.model.types {
            reads.insert(words(&ty.table));
            for source in ty.relations.iter().flat_map(|relation| &relation.sources) {
                if let Place::Table { table, .. } = &source.place {
                    reads.insert(words(table));
                }
            }
        }
        for rules in &policy.model.rules {
            let Some(ty) = policy.model.ty(rules.ty) else { continue };
            for rule in &rules.rules {
                let Command::Mask(columns) = &rule.command else { continue };
                masks.extend(columns.iter().map(|column| {
                    let mut mask = words(&ty.table);
                    mask.push(column.as_str().to_owned());
                    mask
                }));
            }
        }
        let governed: BTreeSet<_> = policy.emitted.tables.iter().map(|table| words(&table.table)).collect();
        Record {
            app_role: Some(policy.model.app_role.as_str().to_owned()),
            governed: governed.into_iter().collect(),
            reads: reads.into_iter().collect(),
            masks: masks.into_iter().collect(),
            objects: policy.emitted.objects.iter().map(Made::of).collect(),
            left: Vec::new(),
        }
    }

    /// Everything of it that may still be there.
    pub fn all(&self) -> impl Iterator<Item = &Made> {
        self.objects.iter().chain(&self.left)
    }

    /// The same by kind and name.
    pub fn by_name(&self) -> BTreeMap<(&str, &str), &Made> {
        self.all().map(|made| ((made.kind.as_str(), made.name.as_str()), made)).collect()
    }
}

fn words(table: &QualName) -> Vec<String> {
    vec![table.schema.as_str().to_owned(), table.name.as_str().to_owned()]
}

impl Made {
    /// The record of one object.
    pub fn of(object: &Object) -> Made {
        Made {
            kind: object.kind.word().to_owned(),
            name: object.name.clone(),
            sql: hex_digest([object.sql.as_bytes()]),
            graph: object.graph.clone(),
        }
    }
}

/// SHA-256 of some parts, each with its length so that they cannot run into each other, in hex.
pub fn hex_digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is in the database now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State {
    /// The policy in force.
    pub in_force: Option<InForce>,
    /// The graphs whose index is registered as built and whose tables are there.
    pub built: BTreeSet<String>,
    /// All graphs registered, also those whose tables are gone.
    pub registered: BTreeSet<String>,
    /// Names of tables, views, indexes, functions, policies and triggers of the policy that are not there.
    pub missing: BTreeSet<String>,
    /// Names of objects that are there and that their tables outgrew: they are made again, in place where that can be.
    pub outgrown: BTreeSet<String>,
    /// Policies and triggers of ours that are there.
    pub touched: Touched,
    /// What is made again though it is as it was made.
    pub again: Again,
}

/// What an apply makes again though it is as it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Again {
    /// Nothing.
    #[default]
    No,
    /// Everything but what holds data: the indexes and the shares.
    Rules,
    /// The indexes too, built from the tables; the shares stay.
    Everything,
}

impl State {
    /// The same, with more to be made again.
    pub fn again(mut self, again: Again) -> State {
        self.again = again;
        if again == Again::Everything {
            self.built.clear();
        }
        self
    }
}

const VERSIONS: &str = "
SELECT v.version, v.name, v.digest, v.source,
       to_char(v.applied_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS applied_at,
       to_jsonb(v) ->> 'objects' AS objects
FROM authz.policy_versions v ORDER BY v.version DESC LIMIT 1";

/// Relations by their quoted names, functions by schema and name whatever their arguments.
const MISSING: &str = "
SELECT n.name FROM unnest($1::text[]) AS n(name)
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace s ON s.oid = c.relnamespace
                  WHERE s.nspname = (parse_ident(n.name))[1] AND c.relname = (parse_ident(n.name))[2])
UNION ALL
SELECT n.name FROM unnest($2::text[]) AS n(name)
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace s ON s.oid = p.pronamespace
                  WHERE s.nspname = (parse_ident(n.name))[1] AND p.proname = (parse_ident(n.name))[2])";

/// Our tables that this role may read. A role that may not read them owns none of our schemas, which the preflight
/// says; `to_regclass` would be an error for it.
const READABLE: &str = "
SELECT format('%s.%s', n.nspname, c.relname) FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE (n.nspname, c.relname) IN (('authz', 'policy_versions'), ('authz_int', 'graphs'))
  AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')";

const GRAPHS: &str = "
SELECT g.name, 3 = (SELECT count(*) FROM pg_catalog.pg_class c
                    WHERE c.relnamespace = (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname = 'authz_int')
                      AND c.relname IN (g.name || '_node', g.name || '_cluster', g.name || '_edge'))
FROM authz_int.graphs g";

/// Reads the state. It changes nothing, and a database that never saw us reads as empty.
pub async fn read(client: &Client, emitted: &Emitted) -> Result<State, DbError> {
    let mut state = State::default();
    let mut readable = BTreeSet::new();
    for row in client.query(READABLE, &[]).await? {
        readable.insert(row.try_get::<_, String>(0)?);
    }
    let (versions, graphs) = (readable.contains("authz.policy_versions"), readable.contains("authz_int.graphs"));
    if versions && let Some(row) = client.query_opt(VERSIONS, &[]).await? {
        let objects: Option<String> = row.try_get("objects")?;
        state.in_force = Some(InForce {
            version: row.try_get("version")?,
            name: row.try_get("name")?,
            digest: row.try_get("digest")?,
            source: row.try_get("source")?,
            applied_at: row.try_get("applied_at")?,
            record: match objects {
                // A row that was not written by an apply of ours holds the column's default, an empty list.
                Some(text) if text.starts_with('{') => serde_json::from_str(&text).map_err(|error| {
                    DbError::Unexpected(format!("authz.policy_versions.objects does not read: {error}"))
                })?,
                _ => Record::default(),
            },
        });
    }
    if graphs {
        for row in client.query(GRAPHS, &[]).await? {
            let name: String = row.try_get(0)?;
            if row.try_get(1)? {
                state.built.insert(name.clone());
            }
            state.registered.insert(name);
        }
    }
    state.touched = super::locks::touched_now(client).await?;
    state.missing.extend(missing_rules(emitted, &state.touched));
    let (relations, functions) = named(&emitted.objects);
    for row in client.query(MISSING, &[&relations, &functions]).await? {
        state.missing.insert(row.try_get(0)?);
    }
    state.outgrown = outgrown(client, emitted).await?;
    Ok(state)
}

/// Governed tables that have a partition or child open to direct reading, and masked views without a column that their
/// table has: both come with changes of the schema after the last apply.
const OUTGROWN: &str = "
WITH RECURSIVE governed(at, oid, view) AS (
  SELECT g.at, c.oid, v.oid
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS g(s, t, vs, vt, at)
  JOIN pg_catalog.pg_namespace n ON n.nspname = g.s
  JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = g.t
  LEFT JOIN pg_catalog.pg_namespace vn ON vn.nspname = g.vs
  LEFT JOIN pg_catalog.pg_class v ON v.relnamespace = vn.oid AND v.relname = g.vt
), below(at, oid) AS (
  SELECT g.at, i.inhrelid FROM governed g JOIN pg_catalog.pg_inherits i ON i.inhparent = g.oid
  UNION SELECT b.at, i.inhrelid FROM below b JOIN pg_catalog.pg_inherits i ON i.inhparent = b.oid
), columns(oid, names) AS (
  SELECT a.attrelid, array_agg(a.attname ORDER BY a.attname) FROM pg_catalog.pg_attribute a
  WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attrelid IN (SELECT oid FROM governed UNION SELECT view FROM governed)
  GROUP BY 1)
SELECT DISTINCT b.at, false FROM below b JOIN pg_catalog.pg_class c ON c.oid = b.oid
WHERE c.relkind IN ('r', 'p') AND NOT c.relrowsecurity
UNION ALL
SELECT g.at, true FROM governed g JOIN columns t ON t.oid = g.oid JOIN columns v ON v.oid = g.view
WHERE t.names <> v.names";

/// The names of the objects that must be made again because a table outgrew them.
async fn outgrown(client: &Client, emitted: &Emitted) -> Result<BTreeSet<String>, DbError> {
    let all = || emitted.tables.iter();
    let schemas: Vec<&str> = all().map(|t| t.table.schema.as_str()).collect();
    let tables: Vec<&str> = all().map(|t| t.table.name.as_str()).collect();
    let view_schemas: Vec<Option<&str>> = all().map(|t| t.view.as_ref().map(|v| v.schema.as_str())).collect();
    let views: Vec<Option<&str>> = all().map(|t| t.view.as_ref().map(|v| v.name.as_str())).collect();
    let mut out = BTreeSet::new();
    for row in client.query(OUTGROWN, &[&schemas, &tables, &view_schemas, &views]).await? {
        let at = usize::try_from(row.try_get::<_, i64>(0)? - 1).unwrap_or(usize::MAX);
        let Some(table) = emitted.tables.get(at) else { continue };
        match (row.try_get(1)?, &table.view) {
            (true, Some(view)) => out.insert(view.to_string()),
            _ => out.insert(format!("{}: {}", table.table.plain(), crate::compiler::emit::BELOW)),
        };
    }
    Ok(out)
}

/// Policies and triggers that are not on their tables.
fn missing_rules(emitted: &Emitted, touched: &Touched) -> BTreeSet<String> {
    let there = |object: &Object| {
        let Some(table) = object.locks.first().map(|lock| &lock.table) else { return true };
        let in_set = |set: &BTreeSet<(QualName, String)>, word: &str| {
            names::created(&object.sql, word).is_none_or(|name| set.contains(&(table.clone(), name)))
        };
        match object.kind {
            ObjectKind::Policy => in_set(&touched.named_policies, "POLICY"),
            ObjectKind::Trigger => in_set(&touched.triggers, "TRIGGER"),
            _ => true,
        }
    };
    emitted.objects.iter().filter(|object| !there(object)).map(|object| object.name.clone()).collect()
}

/// True when the object is not in the database.
pub fn is_missing(state: &State, object: &Object) -> bool {
    let name = lookup_name(object).unwrap_or(&object.name);
    state.missing.contains(name) || state.outgrown.contains(name)
}

/// The names that can be looked up: `schema.name`, with a function's arguments cut off. Other names are for people.
fn named(objects: &[Object]) -> (Vec<&str>, Vec<&str>) {
    let (mut relations, mut functions) = (Vec::new(), Vec::new());
    for object in objects {
        let Some(name) = lookup_name(object) else { continue };
        match object.kind {
            ObjectKind::Function => functions.push(name),
            _ => relations.push(name),
        }
    }
    (relations, functions)
}

/// The name under which an object's existence can be looked up, where its kind has one.
pub fn lookup_name(object: &Object) -> Option<&str> {
    let name = match object.kind {
        ObjectKind::Table | ObjectKind::View | ObjectKind::Index => object.name.as_str(),
        ObjectKind::Function => object.name.split('(').next().unwrap_or(&object.name).trim_end(),
        _ => return None,
    };
    is_qualified(name).then_some(name)
}

/// True for `schema.name` where each part is plain or quoted.
pub(crate) fn is_qualified(name: &str) -> bool {
    let mut parts = 1;
    let mut quoted = false;
    let mut empty = true;
    for c in name.chars() {
        match c {
            '"' => quoted = !quoted,
            '.' if !quoted => {
                if empty {
                    return false;
                }
                parts += 1;
                empty = true;
                continue;
            }
            c if !(quoted || c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit()) => return false,
            _ => {}
        }
        empty = false;
    }
    parts == 2 && !quoted && !empty
}

/// True when the graph's index needs no building.
pub fn is_built(state: &State, graph: &GraphTables) -> bool {
    state.built.contains(&graph.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_for_people_are_not_looked_up() {
        assert!(is_qualified("authz_gen.folder_view"));
        assert!(is_qualified("authz_gen.\"Folder view\""));
        assert!(!is_qualified("app.files: select"));
        assert!(!is_qualified("folder"));
        assert!(!is_qualified("a.b.c"));
        assert!(!is_qualified("a."));
    }

    #[test]
    fn parts_of_a_digest_do_not_run_into_each_other() {
        assert_ne!(hex_digest([b"ab".as_slice(), b"c"]), hex_digest([b"a".as_slice(), b"bc"]));
    }

    #[test]
    fn a_record_reads_back() {
        let record = Record {
            app_role: Some("app_user".into()),
            objects: vec![Made {
                kind: "view".into(),
                name: "authz_gen.v".into(),
                sql: "00".into(),
                graph: Some("g1".into()),
            }],
            left: Vec::new(),
            ..Record::default()
        };
        let text = serde_json::to_string(&record).unwrap_or_default();
        assert_eq!(serde_json::from_str::<Record>(&text).ok(), Some(record));
        assert_eq!(serde_json::from_str::<Record>("{}").ok(), Some(Record::default()));
    }
}
