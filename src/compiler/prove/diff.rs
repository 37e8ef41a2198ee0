//! Who gains and loses what when one policy takes another's place, on the same facts.

use std::collections::BTreeSet;

use serde::Serialize;

use super::object_name;
use crate::compiler::evaluate::facts::{Caller, Facts, Key, key_text};
use crate::compiler::evaluate::{Evaluated, Held, World};
use crate::compiler::model::{Model, PermId, TypeId};

/// What changes for one principal in one permission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The objects' type.
    #[serde(rename = "type")]
    pub ty: String,
    /// The permission.
    pub permission: String,
    /// `user 3`, or `nobody`.
    pub principal: String,
    /// On how many objects it is gained.
    pub gained: usize,
    /// On how many it is lost.
    pub lost: usize,
    /// One that is gained, and how.
    pub gains: Option<Example>,
    /// One that is lost, and how it was held.
    pub loses: Option<Example>,
}

/// An object, and the rows from which a permission on it follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Example {
    /// `folder 4`
    pub object: String,
    /// One step after the other.
    pub how: Vec<String>,
}

/// What changes from `old` to `new`, permission by permission: each a policy and what it decides from, read at the same
/// moment. A permission or type that only one of them has is held by nobody in the other.
///
/// # Errors
/// A condition that cannot be worked out.
pub fn diff(old: (&Model, &Facts), new: (&Model, &Facts), now: i64) -> Evaluated<Vec<Change>> {
    let (before, after) = (World::new(old.0, old.1, now)?, World::new(new.0, new.1, now)?);
    let mut changes = Vec::new();
    for who in principals(&[&before, &after]) {
        let (old_caller, new_caller) = (caller(old.0, who.as_ref()), caller(new.0, who.as_ref()));
        let (had, has) = (before.ask(&old_caller)?, after.ask(&new_caller)?);
        let principal = who.map_or_else(|| "nobody".to_owned(), |(ty, key)| format!("{ty} {}", key_text(&key)));
        for (ty, permission) in permissions(&[old.0, new.0]) {
            let (old_ids, new_ids) = (ids(old.0, &had, &ty, &permission), ids(new.0, &has, &ty, &permission));
            let gained: Vec<&Key> = new_ids.difference(&old_ids).copied().collect();
            let lost: Vec<&Key> = old_ids.difference(&new_ids).copied().collect();
            if gained.is_empty() && lost.is_empty() {
                continue;
            }
            let gains = gained.first().map(|key| example(new.0, &has, &ty, &permission, key)).transpose()?.flatten();
            let loses = lost.first().map(|key| example(old.0, &had, &ty, &permission, key)).transpose()?.flatten();
            let principal = principal.clone();
            changes.push(Change { ty, permission, principal, gained: gained.len(), lost: lost.len(), gains, loses });
        }
    }
    changes.sort_by(|a, b| (&a.ty, &a.permission).cmp(&(&b.ty, &b.permission)));
    Ok(changes)
}

/// Whoever may sign in under either policy, by type name and key; `None` is nobody.
fn principals(worlds: &[&World<'_>]) -> BTreeSet<Option<(String, Key)>> {
    let mut found = BTreeSet::from([None]);
    for world in worlds {
        for ty in world.model().principals() {
            let name = world.model().ty(ty).map(|def| def.name.clone()).unwrap_or_default();
            found.extend(world.keys(ty).iter().map(|key| Some((name.clone(), key.clone()))));
        }
    }
    found
}

fn caller(model: &Model, who: Option<&(String, Key)>) -> Caller {
    let found = who.and_then(|(name, key)| Some((model.type_named(name)?, key.clone())));
    found.map_or_else(Caller::nobody, |(ty, key)| Caller::of(ty, key))
}

fn permissions(models: &[&Model]) -> BTreeSet<(String, String)> {
    let all = models.iter().flat_map(|model| &model.types);
    all.flat_map(|def| def.permissions.iter().map(|p| (def.name.clone(), p.name.clone()))).collect()
}

fn named(model: &Model, ty: &str, permission: &str) -> Option<(TypeId, PermId)> {
    let ty = model.type_named(ty)?;
    Some((ty, model.ty(ty)?.permission_named(permission)?))
}

fn ids<'h>(model: &Model, held: &'h Held<'_, '_>, ty: &str, permission: &str) -> BTreeSet<&'h Key> {
    named(model, ty, permission).map(|(ty, p)| held.permitted(ty, p).into_iter().collect()).unwrap_or_default()
}

fn example(model: &Model, held: &Held<'_, '_>, ty: &str, permission: &str, key: &Key) -> Evaluated<Option<Example>> {
    let Some((ty, permission)) = named(model, ty, permission) else { return Ok(None) };
    let how = held.why(ty, permission, key)?.iter().map(ToString::to_string).collect();
    Ok(Some(Example { object: object_name(model, ty, key), how }))
}
