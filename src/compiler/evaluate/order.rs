//! Which relations and permissions are worked out together: those that depend on each other, and before those that
//! depend on them. What is denied is complete before anything that denies it.

use super::{CannotEvaluate, Definition, Evaluated, Term, To, Var};
use crate::compiler::span::Span;

/// What a var depends on, and whether by not having it.
fn dependencies(term: &Term, edges: &[Vec<Vec<super::Edge>>], denied: bool, found: &mut Vec<(Var, bool)>) {
    match term {
        Term::Any(parts) | Term::All(parts) => {
            parts.iter().for_each(|part| dependencies(part, edges, denied, found));
        }
        Term::Not(inner) => dependencies(inner, edges, true, found),
        Term::Var(var) | Term::Via(_, _, var) => found.push((*var, denied)),
        Term::Among(source) => {
            let groups = edges.get(*source).into_iter().flatten().flatten().filter_map(|edge| match &edge.to {
                To::Group(_, var, _) => Some(*var),
                _ => None,
            });
            found.extend(groups.map(|var| (var, denied)));
        }
        Term::SignedIn | Term::Always | Term::Never | Term::Same(_) | Term::Varies(_) => {}
    }
}

/// The groups of vars in the order to work them out.
///
/// # Errors
/// When something is denied by what depends on it.
pub(super) fn strata(vars: &[Definition], edges: &[Vec<Vec<super::Edge>>]) -> Evaluated<Vec<Vec<Var>>> {
    let outgoing: Vec<Vec<(Var, bool)>> = vars
        .iter()
        .map(|def| {
            let mut found = Vec::new();
            dependencies(&def.term, edges, false, &mut found);
            found.sort_unstable();
            found.dedup();
            found
        })
        .collect();
    let mut incoming = vec![Vec::new(); vars.len()];
    for (at, found) in outgoing.iter().enumerate() {
        for (var, _) in found {
            if let Some(list) = incoming.get_mut(var.0) {
                list.push(at);
            }
        }
    }
    // Kosaraju: groups come out dependencies first when the finishing order of the reversed edges is taken backwards.
    let forward: Vec<Vec<usize>> = outgoing.iter().map(|list| list.iter().map(|(var, _)| var.0).collect()).collect();
    let mut seen = vec![false; vars.len()];
    let mut finished = Vec::new();
    for start in 0..vars.len() {
        walk(start, &incoming, &mut seen, &mut finished);
    }
    let mut group = vec![usize::MAX; vars.len()];
    let mut seen = vec![false; vars.len()];
    let mut groups: Vec<Vec<Var>> = Vec::new();
    for start in finished.into_iter().rev() {
        let mut members = Vec::new();
        walk(start, &forward, &mut seen, &mut members);
        if members.is_empty() {
            continue;
        }
        for member in &members {
            if let Some(entry) = group.get_mut(*member) {
                *entry = groups.len();
            }
        }
        groups.push(members.into_iter().map(Var).collect());
    }
    for (at, found) in outgoing.iter().enumerate() {
        let own = group.get(at);
        if found.iter().any(|(var, denied)| *denied && group.get(var.0) == own) {
            return Err(CannotEvaluate::new(Span::default(), "a deny that depends on what it denies"));
        }
    }
    Ok(groups)
}

/// Everything new that is reached from `start`, each after what it reaches.
fn walk(start: usize, edges: &[Vec<usize>], seen: &mut [bool], finished: &mut Vec<usize>) {
    let mut enter = |at: usize| seen.get_mut(at).is_some_and(|seen| !std::mem::replace(seen, true));
    if !enter(start) {
        return;
    }
    let mut stack = vec![(start, 0)];
    while let Some((at, next)) = stack.pop() {
        match edges.get(at).and_then(|list| list.get(next)) {
            Some(to) => {
                stack.push((at, next + 1));
                if enter(*to) {
                    stack.push((*to, 0));
                }
            }
            None => finished.push(at),
        }
    }
}
