//! What follows from a policy alone, and what changes with it: invariants tried in many small worlds, and who gains and
//! loses what between two policies on the same facts.

mod diff;
pub mod sample;
pub mod shape;

use serde::Serialize;

pub use diff::{Change, Example, diff};

use super::evaluate::facts::{Caller, Datum, Facts, Holder, Key, key_text};
use super::evaluate::{Evaluated, World};
use super::model::{Model, TypeId};
use sample::{Random, Sampler};

/// What became of an invariant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// Its number in the policy, from 1.
    pub invariant: usize,
    /// The type it is about.
    #[serde(rename = "type")]
    pub ty: String,
    /// Worlds that were tried.
    pub worlds: u64,
    /// The smallest world found in which it does not hold.
    pub counterexample: Option<Counterexample>,
}

/// A world in which an invariant does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counterexample {
    /// `user 2`, or `nobody`.
    pub principal: String,
    /// `folder 1`
    pub object: String,
    /// `app.folders: id 1, parent_id NULL, owner_id 2`
    pub rows: Vec<String>,
    /// `viewer of folder 1 is shared with user 2`
    pub shares: Vec<String>,
}

/// Tries each invariant in so many worlds.
///
/// # Errors
/// A condition that cannot be worked out.
pub fn prove(model: &Model, worlds: u64, seed: u64) -> Evaluated<Vec<Proof>> {
    let shape = shape::shape(model)?;
    (0..model.invariants.len()).map(|invariant| one(model, &shape, invariant, worlds, seed)).collect()
}

fn one(model: &Model, shape: &shape::Shape, invariant: usize, worlds: u64, seed: u64) -> Evaluated<Proof> {
    let ty = model.invariants.get(invariant).map(|never| never.ty).unwrap_or(model.user);
    let name = model.ty(ty).map(|def| def.name.clone()).unwrap_or_default();
    let mut proof = Proof { invariant: invariant + 1, ty: name, worlds: 0, counterexample: None };
    for world in 0..worlds {
        let mut random = Random(seed.wrapping_add(world.wrapping_mul(0x9E37_79B9)));
        // Small worlds first: what is wrong mostly shows in them, and is easier to read there.
        let most = 1 + usize::try_from(world.min(90) / 30).unwrap_or_default();
        let sizes = model.types.iter().map(|_| 1 + random.below(most)).collect();
        let mut sampler = Sampler { model, shape, sizes, random };
        let facts = sampler.facts(4, 4);
        proof.worlds += 1;
        if let Some(found) = violated(model, &facts, invariant)? {
            proof.counterexample = Some(smallest(model, facts, invariant, found)?);
            break;
        }
    }
    Ok(proof)
}

/// Who holds what may never hold, and on which object.
fn violated(model: &Model, facts: &Facts, invariant: usize) -> Evaluated<Option<(Caller, Key)>> {
    let world = World::new(model, facts, 1)?;
    let people = model.principals().flat_map(|ty| world.keys(ty).iter().map(move |key| Caller::of(ty, key.clone())));
    for mut caller in std::iter::once(Caller::nobody()).chain(people) {
        let found = world.ask(&caller)?.violates(invariant)?.first().map(|key| (*key).clone());
        if let Some(key) = found {
            return Ok(Some((caller, key)));
        }
        // Whoever holds a share link is no other person.
        caller.links = facts
            .shares
            .iter()
            .filter_map(|s| if let Holder::Link(l) = &s.with { Some(l.clone()) } else { None })
            .collect();
        if !caller.links.is_empty() {
            let found = world.ask(&caller)?.violates(invariant)?.first().map(|key| (*key).clone());
            if let Some(key) = found {
                return Ok(Some((caller, key)));
            }
        }
    }
    Ok(None)
}

/// The world without every row and share that it can do without.
fn smallest(model: &Model, mut facts: Facts, invariant: usize, mut found: (Caller, Key)) -> Evaluated<Counterexample> {
    let mut smaller = |facts: &mut Facts, candidate: Facts| -> Evaluated<bool> {
        Ok(match violated(model, &candidate, invariant)? {
            Some(still) => {
                (*facts, found) = (candidate, still);
                true
            }
            None => false,
        })
    };
    let names: Vec<_> = facts.tables.keys().cloned().collect();
    for name in names {
        let mut at = facts.tables.get(&name).map(|t| t.rows.len()).unwrap_or_default();
        while at > 0 {
            at -= 1;
            let mut candidate = facts.clone();
            if let Some(table) = candidate.tables.get_mut(&name) {
                table.rows.remove(at);
            }
            if smaller(&mut facts, candidate)? {
                continue;
            }
            for column in 0..facts.tables.get(&name).map(|t| t.columns.len()).unwrap_or_default() {
                let mut candidate = facts.clone();
                let value =
                    candidate.tables.get_mut(&name).and_then(|t| t.rows.get_mut(at)).and_then(|r| r.get_mut(column));
                if let Some(value) = value.filter(|value| **value != Datum::Null) {
                    *value = Datum::Null;
                    smaller(&mut facts, candidate)?;
                }
            }
        }
    }
    for at in (0..facts.shares.len()).rev() {
        let mut candidate = facts.clone();
        candidate.shares.remove(at);
        smaller(&mut facts, candidate)?;
    }
    for at in (0..facts.roles.len()).rev() {
        let mut candidate = facts.clone();
        candidate.roles.remove(at);
        smaller(&mut facts, candidate)?;
    }
    let ty = model.invariants.get(invariant).map(|never| never.ty).unwrap_or(model.user);
    Ok(Counterexample {
        principal: principal_name(model, &found.0),
        object: object_name(model, ty, &found.1),
        rows: rows(&facts),
        shares: shares(model, &facts),
    })
}

fn object_name(model: &Model, ty: TypeId, key: &[Datum]) -> String {
    format!("{} {}", model.ty(ty).map(|def| def.name.as_str()).unwrap_or_default(), key_text(key))
}

fn principal_name(model: &Model, caller: &Caller) -> String {
    let name = match &caller.principal {
        Some((ty, key)) => object_name(model, *ty, key),
        None => "nobody".to_owned(),
    };
    if caller.links.is_empty() { name } else { format!("{name} with the link") }
}

fn rows(facts: &Facts) -> Vec<String> {
    let mut out = Vec::new();
    for (name, table) in &facts.tables {
        for row in &table.rows {
            let values: Vec<String> =
                table.columns.iter().zip(row).map(|(c, value)| format!("{} {value}", c.plain())).collect();
            out.push(format!("{}: {}", name.plain(), values.join(", ")));
        }
    }
    out
}

fn shares(model: &Model, facts: &Facts) -> Vec<String> {
    let with = |holder: &Holder| match holder {
        Holder::One(ty, key) => object_name(model, *ty, key),
        Holder::Group(ty, relation, key) => {
            let name = model.ty(*ty).and_then(|def| def.relation(*relation)).map(|r| r.name.as_str());
            format!("{} of {}", name.unwrap_or_default(), object_name(model, *ty, key))
        }
        Holder::Everyone(ty) => format!("every {}", model.ty(*ty).map(|def| def.name.as_str()).unwrap_or_default()),
        Holder::Anyone => "anyone".to_owned(),
        Holder::Link(_) => "whoever holds the link".to_owned(),
    };
    let shares = facts.shares.iter().map(|share| {
        let relation = model.ty(share.ty).and_then(|def| def.relation(share.relation)).map(|r| r.name.as_str());
        let object = object_name(model, share.ty, &share.object);
        format!("{} of {object} is shared with {}", relation.unwrap_or_default(), with(&share.with))
    });
    let roles = facts.roles.iter().map(|held| {
        let object = object_name(model, held.share.ty, &held.share.object);
        let owner = object_name(model, held.owner.0, &held.owner.1);
        let names = held.permissions.iter().filter_map(|(ty, p)| Some(model.ty(*ty)?.permission(*p)?.name.as_str()));
        let names: Vec<&str> = names.collect();
        format!("a role of {owner} with {} on {object} is held by {}", names.join(", "), with(&held.share.with))
    });
    shares.chain(roles).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
mod tests;
