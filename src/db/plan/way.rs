//! Which objects an apply leaves untouched, and whom it must keep out while it switches.
//!
//! Two ways lead from one policy to the next. *Whole*: all policies, functions and views go and are made again; always
//! right, and every governed table is closed meanwhile. *In place*: only what changed is replaced, and only the tables
//! whose rules come to something else are closed. A table is closed as soon as anything its rules reach changes, though
//! its own policies stay: a statement that is half done must not go on under another policy.

use std::collections::{BTreeMap, BTreeSet};

use super::state::{self, Again, Made, State};
use super::{Policy, names};
use crate::compiler::ident::QualName;
use crate::compiler::objects::{Object, ObjectKind, Phase};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// The objects left untouched, by their positions in [`crate::compiler::objects::Emitted::objects`].
    pub kept: BTreeSet<usize>,
    /// Set when the switch is made in place.
    pub in_place: Option<InPlace>,
}

/// What a switch in place touches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InPlace {
    /// Tables whose policies are dropped and made again.
    pub policies: BTreeSet<QualName>,
    /// Tables closed meanwhile.
    pub tables: BTreeSet<QualName>,
    /// True when grants changed: they are all taken back and given again.
    pub grants: bool,
}

/// True when the SQL of the policy is in force and nothing of it is missing.
pub fn is_in_force(policy: &Policy<'_>, state: &State) -> bool {
    state.again == Again::No
        && state.in_force.as_ref().is_some_and(|v| v.digest == policy.emitted.digest)
        && state.missing.is_empty()
        && state.outgrown.is_empty()
        && policy.emitted.graphs.iter().all(|graph| state::is_built(state, graph))
}

/// Objects as they were made, and not missing.
pub(super) struct Same<'a> {
    made: BTreeSet<(&'a str, &'a str, &'a str)>,
    state: &'a State,
}

impl<'a> Same<'a> {
    pub(super) fn new(state: &'a State) -> Same<'a> {
        let record = state.in_force.iter().flat_map(|v| v.record.all());
        let made = record.map(|made| (made.kind.as_str(), made.name.as_str(), made.sql.as_str())).collect();
        Same { made, state }
    }

    pub(super) fn is(&self, object: &Object) -> bool {
        (self.state.again == Again::No || is_storage(object))
            && self.made.contains(&(object.kind.word(), object.name.as_str(), Made::of(object).sql.as_str()))
            && !state::is_missing(self.state, object)
    }
}

/// True for the phases before the switch.
fn early(object: &Object) -> bool {
    matches!(object.phase, Phase::Tables | Phase::Upkeep)
}

/// Tables and indexes: what holds data.
fn is_storage(object: &Object) -> bool {
    matches!(object.kind, ObjectKind::Table | ObjectKind::Index)
}

/// The whole way: kept are the tables and indexes of graphs that are built, upkeep where all of a graph's (or all of
/// the shares') is as it was made, and share tables that are as they were made.
pub fn whole(policy: &Policy<'_>, state: &State) -> Way {
    let objects = &policy.emitted.objects;
    if is_in_force(policy, state) {
        return Way { kept: (0..objects.len()).collect(), in_place: None };
    }
    let same = Same::new(state);
    let built: BTreeSet<&str> =
        policy.emitted.graphs.iter().filter(|g| state::is_built(state, g)).map(|g| g.name.as_str()).collect();
    let stale: BTreeSet<Option<&str>> = objects
        .iter()
        .filter(|object| early(object) && !is_storage(object) && !same.is(object))
        .map(|object| object.graph.as_deref())
        .collect();
    let keep = |object: &Object| match object.graph.as_deref() {
        _ if !early(object) => false,
        Some(graph) => built.contains(graph) && (is_storage(object) || !stale.contains(&Some(graph))),
        None if is_storage(object) => same.is(object),
        None => !stale.contains(&None),
    };
    let kept = objects.iter().enumerate().filter_map(|(at, object)| keep(object).then_some(at)).collect();
    Way { kept, in_place: None }
}

/// The way that touches least: in place where that can be known to come to the same.
pub fn best(policy: &Policy<'_>, state: &State) -> Way {
    let way = whole(policy, state);
    if is_in_force(policy, state) {
        return way;
    }
    match in_place(policy, state) {
        Some((make, in_place)) => {
            let late = policy.emitted.objects.iter().enumerate().filter(|(_, object)| !early(object));
            let rest = late.map(|(at, _)| at).filter(|at| !make.contains(at));
            Way { kept: way.kept.into_iter().chain(rest).collect(), in_place: Some(in_place) }
        }
        None => way,
    }
}

/// The late objects to make and what that touches; `None` where only the whole way is sure.
fn in_place(policy: &Policy<'_>, state: &State) -> Option<(BTreeSet<usize>, InPlace)> {
    let before = state.in_force.as_ref().filter(|_| state.again == Again::No)?;
    let used = |name: &String| policy.emitted.graphs.iter().any(|graph| graph.name == *name);
    if before.record.app_role.as_deref() != Some(policy.model.app_role.as_str())
        || !state.missing.is_empty()
        || !state.registered.iter().all(used)
    {
        return None;
    }
    let same = Same::new(state);
    let objects = &policy.emitted.objects;
    let late = || objects.iter().enumerate().filter(|(_, object)| !early(object));
    let now: BTreeSet<(&str, &str)> = objects.iter().map(|o| (o.kind.word(), o.name.as_str())).collect();
    let dropped = || before.record.objects.iter().filter(|m| !now.contains(&(m.kind.as_str(), m.name.as_str())));
    // A composite type cannot be replaced under the functions that use it.
    if dropped().any(|made| made.kind == ObjectKind::Type.word())
        || late().any(|(_, object)| object.kind == ObjectKind::Type && !same.is(object) && changes_one(before, object))
    {
        return None;
    }
    let mut out = InPlace::default();
    for made in dropped().filter(|made| made.kind == ObjectKind::Policy.word()) {
        out.policies.insert(table_of(&made.name, state.touched.policies.iter())?);
    }
    for made in dropped().filter(|made| made.kind == ObjectKind::Trigger.word()) {
        out.tables.insert(table_of(&made.name, state.touched.triggers.iter().map(|(table, _)| table))?);
    }
    for (_, object) in late().filter(|(_, object)| object.kind == ObjectKind::Policy && !same.is(object)) {
        out.policies.insert(object.locks.first()?.table.clone());
    }
    out.grants = dropped().any(|made| made.kind == ObjectKind::Grant.word())
        || late().any(|(_, object)| object.kind == ObjectKind::Grant && !same.is(object));
    let reached = reached(late().map(|(_, object)| object), &same, dropped());
    let closed = |object: &Object| {
        matches!(object.kind, ObjectKind::Policy | ObjectKind::Trigger)
            && (!same.is(object) || names::mentions(&object.sql).iter().any(|name| reached.contains(name)))
    };
    let tables = late().filter(|(_, object)| closed(object)).flat_map(|(_, object)| &object.locks);
    out.tables.extend(tables.map(|lock| lock.table.clone()));
    out.tables.extend(out.policies.iter().cloned());
    let again = |object: &Object| {
        !same.is(object)
            || object.kind == ObjectKind::Grant
            || object.kind == ObjectKind::Policy && object.locks.iter().any(|lock| out.policies.contains(&lock.table))
    };
    let make = late().filter(|(_, object)| again(object)).map(|(at, _)| at).collect();
    Some((make, out))
}

/// Whether the policy in force has an object of this kind and name.
fn changes_one(before: &state::InForce, object: &Object) -> bool {
    before.record.by_name().contains_key(&(object.kind.word(), object.name.as_str()))
}

/// The table of an object named `app.files: select`.
fn table_of<'a>(name: &str, mut tables: impl Iterator<Item = &'a QualName>) -> Option<QualName> {
    tables.find(|table| name.strip_prefix(&table.plain()).is_some_and(|rest| rest.starts_with(':'))).cloned()
}

/// The names of functions and views that change, go, or use one that does.
fn reached<'a>(
    late: impl Iterator<Item = &'a Object>,
    same: &Same<'_>,
    dropped: impl Iterator<Item = &'a Made>,
) -> BTreeSet<String> {
    let mut users: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut todo: Vec<String> = dropped.filter_map(|made| names::qualified(&made.name)).collect();
    for object in late.filter(|object| matches!(object.kind, ObjectKind::Function | ObjectKind::View)) {
        let Some(name) = names::qualified(&object.name) else { continue };
        for used in names::mentions(&object.sql) {
            users.entry(used).or_default().push(name.clone());
        }
        if !same.is(object) {
            todo.push(name);
        }
    }
    let mut out = BTreeSet::new();
    while let Some(name) = todo.pop() {
        if let Some(by) = users.get(&name) {
            todo.extend(by.iter().filter(|user| !out.contains(*user)).cloned());
        }
        out.insert(name);
    }
    out
}
