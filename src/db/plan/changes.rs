//! What changes between the policy in force and the one to apply.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};
use tokio_postgres::Client;

use super::locks::Touched;
use super::state::{self, Made, State};
use super::{Policy, Step};
use crate::compiler::ident::QualName;
use crate::compiler::objects::{Lock, LockMode, Object, ObjectKind, Phase};
use crate::db::error::DbError;

/// What becomes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The policy in force did not have it.
    New,
    /// It had it with other SQL.
    Changed,
    /// It had it with the same SQL, but it is not in the database any more.
    Missing,
    /// It had it with the same SQL.
    Same,
    /// This policy no longer has it.
    Dropped,
}

impl Change {
    /// One word for people.
    pub fn word(self) -> &'static str {
        match self {
            Change::New => "new",
            Change::Changed => "changed",
            Change::Missing => "missing",
            Change::Same => "same",
            Change::Dropped => "dropped",
        }
    }
}

/// One object of the plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedObject {
    /// What it is.
    #[serde(serialize_with = "kind_word")]
    pub kind: ObjectKind,
    /// Its name for people.
    pub name: String,
    /// What becomes of it.
    pub change: Change,
    /// The graph it belongs to.
    pub graph: Option<String>,
    /// True when the apply leaves it untouched; other objects that are the same are made again as they were.
    pub kept: bool,
}

/// One inheritance index of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedGraph {
    /// Its name.
    pub name: String,
    /// Its links, for people.
    pub title: String,
    /// The table it indexes.
    pub table: String,
    /// Rows of that table, as the planner estimates them.
    pub rows: u64,
    /// True when it must be built, false when the one in the database is kept.
    pub build: bool,
}

fn kind_word<S: Serializer>(kind: &ObjectKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.word())
}

/// True when the SQL of the policy is in force and nothing of it is missing.
pub fn is_in_force(policy: &Policy<'_>, state: &State) -> bool {
    state.in_force.as_ref().is_some_and(|v| v.digest == policy.emitted.digest)
        && state.missing.is_empty()
        && policy.emitted.graphs.iter().all(|graph| state::is_built(state, graph))
}

/// True when the policy's text is the one kept with the version in force.
pub fn is_same_text(policy: &Policy<'_>, state: &State) -> bool {
    state.in_force.as_ref().is_some_and(|v| v.source == policy.text())
}

/// The objects an apply leaves untouched, by their positions in [`crate::compiler::objects::Emitted::objects`]: the
/// tables and indexes of graphs that are built, their upkeep when all of it is as it was made, and share tables that
/// are as they were made.
pub fn kept(policy: &Policy<'_>, state: &State) -> BTreeSet<usize> {
    let objects = &policy.emitted.objects;
    if is_in_force(policy, state) {
        return (0..objects.len()).collect();
    }
    let made = made(state);
    let same = |object: &Object| {
        made.contains(&(object.kind.word(), object.name.as_str(), Made::of(object).sql.as_str()))
            && state::lookup_name(object).is_none_or(|name| !state.missing.contains(name))
    };
    let built: BTreeSet<&str> =
        policy.emitted.graphs.iter().filter(|g| state::is_built(state, g)).map(|g| g.name.as_str()).collect();
    let early = |object: &Object| matches!(object.phase, Phase::Tables | Phase::Upkeep);
    // Upkeep of a graph is kept whole or made again whole.
    let stale: BTreeSet<&str> =
        objects.iter().filter(|o| early(o) && !is_storage(o) && !same(o)).filter_map(|o| o.graph.as_deref()).collect();
    let keep = |object: &Object| match object.graph.as_deref() {
        Some(graph) if early(object) => built.contains(graph) && (is_storage(object) || !stale.contains(graph)),
        None => object.phase == Phase::Tables && is_storage(object) && same(object),
        Some(_) => false,
    };
    objects.iter().enumerate().filter_map(|(at, object)| keep(object).then_some(at)).collect()
}

/// Tables and indexes: what holds data.
fn is_storage(object: &Object) -> bool {
    matches!(object.kind, ObjectKind::Table | ObjectKind::Index)
}

fn made(state: &State) -> BTreeSet<(&str, &str, &str)> {
    let record = state.in_force.iter().flat_map(|v| v.record.all());
    record.map(|made| (made.kind.as_str(), made.name.as_str(), made.sql.as_str())).collect()
}

/// Every object with what becomes of it: those to make in their order, then those to drop.
pub fn objects(policy: &Policy<'_>, state: &State) -> Vec<PlannedObject> {
    let same = made(state);
    let kept = kept(policy, state);
    let before = state.in_force.as_ref().map(|v| v.record.by_name()).unwrap_or_default();
    let mut out = Vec::with_capacity(policy.emitted.objects.len());
    for (at, object) in policy.emitted.objects.iter().enumerate() {
        let key = (object.kind.word(), object.name.as_str());
        let is_kept = kept.contains(&at);
        let there = state::lookup_name(object).is_none_or(|name| !state.missing.contains(name));
        let change = match (before.contains_key(&key), there) {
            _ if is_kept => Change::Same,
            (false, _) => Change::New,
            (true, false) => Change::Missing,
            (true, true) if same.contains(&(key.0, key.1, Made::of(object).sql.as_str())) => Change::Same,
            (true, true) => Change::Changed,
        };
        let graph = object.graph.clone();
        out.push(PlannedObject { kind: object.kind, name: object.name.clone(), change, graph, kept: is_kept });
    }
    let now: BTreeSet<(&str, &str)> = policy.emitted.objects.iter().map(|o| (o.kind.word(), o.name.as_str())).collect();
    for (key, made) in before {
        if !now.contains(&key)
            && let Some(kind) = kind_named(&made.kind)
        {
            let graph = made.graph.clone();
            out.push(PlannedObject { kind, name: made.name.clone(), change: Change::Dropped, graph, kept: false });
        }
    }
    out
}

fn kind_named(word: &str) -> Option<ObjectKind> {
    use ObjectKind as K;
    [K::Schema, K::Table, K::Index, K::Function, K::View, K::Trigger, K::Policy, K::Grant]
        .into_iter()
        .find(|kind| kind.word() == word)
}

/// The graphs with their sizes.
pub(super) async fn graphs(client: &Client, policy: &Policy<'_>, state: &State) -> Result<Vec<PlannedGraph>, DbError> {
    let mut out = Vec::with_capacity(policy.emitted.graphs.len());
    for graph in &policy.emitted.graphs {
        out.push(PlannedGraph {
            name: graph.name.clone(),
            title: graph.title.clone(),
            table: graph.table.plain(),
            rows: estimate(client, &graph.table).await?,
            build: !state::is_built(state, graph),
        });
    }
    Ok(out)
}

/// How many rows the planner thinks a table has; it also guesses for tables never analyzed, and adds up partitions. A
/// table that is not there, or may not be read, is the preflight's to name.
async fn estimate(client: &Client, table: &QualName) -> Result<u64, DbError> {
    let readable = client
        .query_one(
            "SELECT coalesce((SELECT has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
                FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p')), false)",
            &[&table.schema.as_str(), &table.name.as_str()],
        )
        .await?;
    if !readable.try_get::<_, bool>(0)? {
        return Ok(0);
    }
    let row = client.query_one(&format!("EXPLAIN (FORMAT JSON) SELECT FROM {table}"), &[]).await?;
    let json: serde_json::Value = row.try_get(0)?;
    let rows = json.pointer("/0/Plan/Plan Rows").and_then(serde_json::Value::as_f64);
    let rows = rows.ok_or_else(|| DbError::Unexpected("EXPLAIN names no number of rows".to_owned()))?;
    // A float of the planner's, never negative; the cast saturates.
    Ok(rows.round() as u64)
}

/// The steps of an apply, as [`crate::db::apply`] runs them.
pub(super) fn steps(
    policy: &Policy<'_>,
    state: &State,
    objects: &[PlannedObject],
    graphs: &[PlannedGraph],
    touched: &Touched,
) -> Vec<Step> {
    if is_in_force(policy, state) {
        let title = "keep the new text of a policy whose SQL is in force".to_owned();
        return vec![Step { title, objects: 0, rows: 0, locks: Vec::new() }];
    }
    let kept = kept(policy, state);
    let run = |phase: Phase| {
        let all = policy.emitted.objects.iter().enumerate();
        all.filter(|(at, o)| o.phase == phase && !kept.contains(at)).map(|(_, o)| o).collect::<Vec<_>>()
    };
    let step = |title: &str, objects: &[&Object], rows: u64| Step {
        title: title.to_owned(),
        objects: objects.len(),
        rows,
        locks: strongest(objects.iter().flat_map(|object| &object.locks).cloned()),
    };
    let mut out = vec![step("make the tables of the index and of shares", &run(Phase::Tables), 0)];
    out.push(step("install the triggers that keep the index", &run(Phase::Upkeep), 0));
    for graph in graphs.iter().filter(|graph| graph.build) {
        out.push(step(&format!("build the index of {}", graph.title), &[], graph.rows));
    }
    // Dropping what was takes the locks; everything after that happens under them.
    let later: Vec<&Object> = run(Phase::Functions).into_iter().chain(run(Phase::Rules)).collect();
    let exclusive = |table: &QualName| Lock { table: table.clone(), mode: LockMode::AccessExclusive };
    let old = touched.policies.iter().chain(&touched.triggers_outside(policy)).map(exclusive).collect::<Vec<_>>();
    let locks = strongest(later.iter().flat_map(|o| &o.locks).cloned().chain(old));
    let dropped = objects.iter().filter(|o| o.change == Change::Dropped).count();
    out.push(Step { title: "drop what is no longer needed".to_owned(), objects: dropped, rows: 0, locks });
    out.push(step("make functions and views", &run(Phase::Functions), 0));
    out.push(step("switch the rules on", &run(Phase::Rules), 0));
    // The locks of the last two are held already.
    for last in out.iter_mut().rev().take(2) {
        last.locks.clear();
    }
    out
}

/// One lock for each table, the strongest of those asked for, in the order of names.
pub fn strongest(locks: impl IntoIterator<Item = Lock>) -> Vec<Lock> {
    let mut by_table: BTreeMap<QualName, LockMode> = BTreeMap::new();
    for lock in locks {
        let mode = by_table.entry(lock.table).or_insert(lock.mode);
        *mode = (*mode).max(lock.mode);
    }
    by_table.into_iter().map(|(table, mode)| Lock { table, mode }).collect()
}

/// What is worth knowing of a plan.
pub(super) fn notes(policy: &Policy<'_>, state: &State, touched: &Touched) -> Vec<String> {
    let mut out = Vec::new();
    let governed: BTreeSet<&QualName> = policy.emitted.tables.iter().map(|t| &t.table).collect();
    for table in touched.policies.iter().filter(|table| !governed.contains(table)) {
        out.push(left_closed(table));
    }
    let before = state.in_force.as_ref().and_then(|v| v.record.app_role.as_deref());
    if let Some(before) = before.filter(|before| *before != policy.model.app_role.as_str()) {
        out.push(format!(
            "the app role changes from {before} to {}: {before} loses what the policy granted it",
            policy.model.app_role.as_str()
        ));
    }
    out
}

/// The sentence about a table the policy governs no more.
pub(crate) fn left_closed(table: &QualName) -> String {
    format!(
        "{} has no rules in this policy: row-level security stays on, so that only its owner reads it; \
         ALTER TABLE {table} DISABLE ROW LEVEL SECURITY opens it",
        table.plain()
    )
}
