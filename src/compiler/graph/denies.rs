//! Denies under inheritance: `(viewer or parent.view) and not hidden`.
//!
//! Where `hidden` is passed on over at least the links that `view` is, an object below a hidden one is hidden too. So
//! whoever has `view` on an object or an ancestor has it on the object exactly when `hidden` does not hold on the object
//! itself. A deny for which that is not so is refused: it would have to be asked for at every step.

use std::collections::{HashMap, HashSet};

use super::cycles::Node;
use super::split::{DENY_HELP, Link, Parts, split};
use super::title;
use crate::compiler::diagnostic::Diagnostic;
use crate::compiler::model::{PermId, TypeDef};
use crate::compiler::span::Span;

/// What is wrong with the denies of permissions that are inherited together.
pub(super) fn check(
    types: &[TypeDef],
    groups: &[Vec<Node>],
    parts: &HashMap<Node, Parts>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut known: HashMap<Node, Option<Parts>> = HashMap::new();
    let mut deny = |node: Node| -> Option<Parts> {
        let found = known.entry(node).or_insert_with(|| {
            let group = groups.iter().find(|group| group.contains(&node))?;
            // Its own mistakes are reported where it is split itself.
            Some(split(types, node, &group.iter().copied().collect::<HashSet<_>>(), &mut Vec::new()))
        });
        found.clone()
    };
    let mut nodes: Vec<&Node> = parts.keys().collect();
    nodes.sort();
    for node in nodes {
        let Some(own) = parts.get(node) else { continue };
        for &(id, span) in &own.denies {
            let name = title(types, (node.0, id));
            let view = title(types, *node);
            let mut refuse =
                |message: String| diagnostics.push(Diagnostic::error(306, span, message).with_help(DENY_HELP));
            match deny((node.0, id)) {
                None => refuse(format!(
                    "{name} is not inherited, so it would only cut {view} on one object and not below it"
                )),
                Some(parts) if !parts.denies.is_empty() => refuse(format!(
                    "{name} is denied itself somewhere, so what it cuts of {view} might not be cut below"
                )),
                Some(_) => {}
            }
        }
        for link in &own.links {
            let above = parts.get(&(link.parent, link.target)).map(|p| p.denies.as_slice()).unwrap_or_default();
            for &(denied, span) in above {
                let mut passed_on = false;
                for &(id, _) in &own.denies {
                    passed_on |= deny((node.0, id)).is_some_and(|d| d.links.iter().any(|l| covers(l, link, denied)));
                }
                if !passed_on {
                    diagnostics.push(uncovered(types, *node, (link.parent, denied), own, span));
                }
            }
        }
    }
}

/// Whether a deny's link passes `denied` on wherever `link` passes on what it is to cut.
fn covers(deny: &Link, link: &Link, denied: PermId) -> bool {
    let same = deny.relation == link.relation && deny.source == link.source && deny.parent == link.parent;
    let among = |sql: &str| link.conditions.iter().any(|c| c.sql.trim() == sql.trim());
    same && deny.target == denied && deny.conditions.iter().all(|c| among(&c.sql))
}

fn uncovered(types: &[TypeDef], node: Node, denied: Node, own: &Parts, span: Span) -> Diagnostic {
    let (view, name) = (title(types, node), title(types, denied));
    let (message, span) = match own.denies.first() {
        Some((id, at)) => {
            let own = title(types, (node.0, *id));
            (format!("{own} is not inherited everywhere {view} is, so it would let through what it should cut"), *at)
        }
        None => {
            (format!("{view} has no deny that inherits {name}, so it would let through what {name} should cut"), span)
        }
    };
    Diagnostic::error(306, span, message).with_help(DENY_HELP)
}
