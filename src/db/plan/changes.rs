//! What changes between the policy in force and the one to apply.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Serialize, Serializer};
use tokio_postgres::Client;

use super::locks::Touched;
use super::state::{self, State};
use super::way::{self, Same, Way};
use super::{Policy, Step, estimate};
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
    /// What its statement locks, beyond the object itself.
    #[serde(serialize_with = "super::lock_words")]
    pub locks: Vec<Lock>,
    /// Seconds its statement takes, estimated.
    pub seconds: f64,
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
    /// Bytes on disk that it takes, estimated.
    pub bytes: u64,
}

fn kind_word<S: Serializer>(kind: &ObjectKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.word())
}

/// True when the policy's text is the one kept with the version in force.
pub fn is_same_text(policy: &Policy<'_>, state: &State) -> bool {
    state.in_force.as_ref().is_some_and(|v| v.source == policy.text())
}

/// Every object with what becomes of it: those to make in their order, then those to drop.
pub fn objects(policy: &Policy<'_>, state: &State, way: &Way) -> Vec<PlannedObject> {
    let same = Same::new(state);
    let before = state.in_force.as_ref().map(|v| v.record.by_name()).unwrap_or_default();
    let mut out = Vec::with_capacity(policy.emitted.objects.len());
    for (at, object) in policy.emitted.objects.iter().enumerate() {
        let key = (object.kind.word(), object.name.as_str());
        let is_kept = way.kept.contains(&at);
        let change = match (before.contains_key(&key), state::is_missing(state, object)) {
            _ if is_kept || same.is(object) => Change::Same,
            (false, _) => Change::New,
            (true, true) => Change::Missing,
            (true, false) => Change::Changed,
        };
        let graph = object.graph.clone();
        out.push(PlannedObject {
            kind: object.kind,
            name: object.name.clone(),
            change,
            graph,
            kept: is_kept,
            locks: if is_kept { Vec::new() } else { object.locks.clone() },
            seconds: if is_kept { 0.0 } else { estimate::object(object.kind) },
        });
    }
    let now: BTreeSet<(&str, &str)> = policy.emitted.objects.iter().map(|o| (o.kind.word(), o.name.as_str())).collect();
    for (key, made) in before {
        if !now.contains(&key)
            && let Some(kind) = kind_named(&made.kind)
        {
            let graph = made.graph.clone();
            let (name, locks, seconds) = (made.name.clone(), Vec::new(), estimate::object(kind));
            out.push(PlannedObject { kind, name, change: Change::Dropped, graph, kept: false, locks, seconds });
        }
    }
    out
}

fn kind_named(word: &str) -> Option<ObjectKind> {
    use ObjectKind as K;
    [K::Schema, K::Type, K::Table, K::Index, K::Function, K::View, K::Trigger, K::Policy, K::Grant]
        .into_iter()
        .find(|kind| kind.word() == word)
}

/// The graphs with their sizes.
pub(super) async fn graphs(client: &Client, policy: &Policy<'_>, state: &State) -> Result<Vec<PlannedGraph>, DbError> {
    let mut out = Vec::with_capacity(policy.emitted.graphs.len());
    for graph in &policy.emitted.graphs {
        let rows = rows_of(client, &graph.table).await?;
        out.push(PlannedGraph {
            name: graph.name.clone(),
            title: graph.title.clone(),
            table: graph.table.plain(),
            rows,
            bytes: estimate::bytes(rows),
            build: !state::is_built(state, graph),
        });
    }
    Ok(out)
}

/// How many rows the planner thinks a table has; it also guesses for tables never analyzed, and adds up partitions. A
/// table that is not there, or may not be read, is the preflight's to name.
async fn rows_of(client: &Client, table: &QualName) -> Result<u64, DbError> {
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
    way: &Way,
    objects: &[PlannedObject],
    graphs: &[PlannedGraph],
) -> Vec<Step> {
    if way::is_in_force(policy, state) {
        let title = "keep the new text of a policy whose SQL is in force".to_owned();
        return vec![Step { title, objects: 0, rows: 0, seconds: 0.0, locks: Vec::new() }];
    }
    let run = |phase: Phase| {
        let all = policy.emitted.objects.iter().enumerate();
        all.filter(|(at, o)| o.phase == phase && !way.kept.contains(at)).map(|(_, o)| o).collect::<Vec<_>>()
    };
    let seconds = |objects: &[&Object]| objects.iter().map(|object| estimate::object(object.kind)).sum::<f64>();
    let step = |title: &str, objects: usize, seconds: f64, locks: Vec<Lock>| {
        let title = title.to_owned();
        Step { title, objects, rows: 0, seconds, locks }
    };
    let early = |phase: Phase, title: &str| {
        let objects = run(phase);
        let locks = strongest(objects.iter().flat_map(|object| &object.locks).cloned());
        step(title, objects.len(), seconds(&objects), locks)
    };
    let mut out = vec![early(Phase::Tables, "make the tables of the index and of shares")];
    out.push(early(Phase::Upkeep, "install the triggers that keep the index"));
    for graph in graphs.iter().filter(|graph| graph.build) {
        let (title, seconds) = (format!("build the index of {}", graph.title), estimate::build(graph.rows));
        out.push(Step { title, objects: 0, rows: graph.rows, seconds, locks: Vec::new() });
    }
    let dropped = objects.iter().filter(|o| o.change == Change::Dropped);
    let (dropped, gone) = dropped.fold((0, 0.0), |(n, sum), object| (n + 1, sum + object.seconds));
    // Everything after these locks happens under them.
    let locks = exclusive(policy, &state.touched, way);
    let locks = locks.into_iter().map(|table| Lock { table, mode: LockMode::AccessExclusive }).collect();
    out.push(step("close the tables whose rules change, drop what goes", dropped, gone, locks));
    for (phase, title) in [(Phase::Functions, "make functions and views"), (Phase::Rules, "switch the rules")] {
        let objects = run(phase);
        out.push(step(title, objects.len(), seconds(&objects), Vec::new()));
    }
    out
}

/// The tables that a switch keeps everybody out of: those whose rules change, and those that lose triggers of ours.
pub(crate) fn exclusive(policy: &Policy<'_>, touched: &Touched, way: &Way) -> BTreeSet<QualName> {
    let objects = &policy.emitted.objects;
    let late = |object: &&Object| matches!(object.phase, Phase::Functions | Phase::Rules);
    let (mut out, stale) = match &way.in_place {
        Some(in_place) => (in_place.tables.clone(), touched.stale(objects.iter())),
        None => {
            let mut out = touched.policies.clone();
            out.extend(objects.iter().filter(late).flat_map(|o| &o.locks).map(|lock| lock.table.clone()));
            // Triggers of rules go with the functions they call.
            (out, touched.stale(objects.iter().filter(|object| !late(object))))
        }
    };
    out.extend(stale.into_iter().map(|(table, _)| table));
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
pub(super) fn notes(policy: &Policy<'_>, state: &State) -> Vec<String> {
    let mut out = Vec::new();
    let governed: BTreeSet<&QualName> = policy.emitted.tables.iter().map(|t| &t.table).collect();
    for table in state.touched.policies.iter().filter(|table| !governed.contains(table)) {
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
