//! Which permissions depend on themselves.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};

use super::{nodes, permission, title};
use crate::compiler::diagnostic::Diagnostic;
use crate::compiler::model::{Expr, PermId, Target, TypeDef, TypeId};

/// A permission of a type.
pub type Node = (TypeId, PermId);

/// How a permission depends on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dependency {
    /// The permission asked for.
    pub on: Node,
    /// It is asked of another object, over a relation.
    pub followed: bool,
}

/// What the expression of a permission of `ty` asks for.
pub fn dependencies(ty: TypeId, expr: &Expr) -> Vec<Dependency> {
    let mut found = Vec::new();
    collect(ty, expr, &mut found);
    found
}

fn collect(ty: TypeId, expr: &Expr, found: &mut Vec<Dependency>) {
    match expr {
        Expr::Or(all) | Expr::And(all) => all.iter().for_each(|e| collect(ty, e, found)),
        Expr::Not(inner) => collect(ty, inner, found),
        Expr::Permission(id, _) => found.push(Dependency { on: (ty, *id), followed: false }),
        Expr::Follow { targets, .. } => found.extend(targets.iter().filter_map(|(to, target)| match target {
            Target::Permission(id) => Some(Dependency { on: (*to, *id), followed: true }),
            Target::Relation(_) => None,
        })),
        Expr::Relation(..) | Expr::SignedIn(_) | Expr::Anyone(_) | Expr::Nobody(_) | Expr::Sql(_) => {}
    }
}

/// What each permission asks for.
pub(super) type Edges = HashMap<Node, Vec<Dependency>>;

pub(super) fn edges(types: &[TypeDef]) -> Edges {
    let of = |node: Node| permission(types, node).map(|p| dependencies(node.0, &p.expr)).unwrap_or_default();
    nodes(types).map(|node| (node, of(node))).collect()
}

/// The sets of permissions that depend on each other, and the single ones that depend on themselves, in the order
/// first written.
pub(super) fn groups(types: &[TypeDef], edges: &Edges) -> Vec<Vec<Node>> {
    let mut groups: Vec<Vec<Node>> = components(types, edges)
        .into_iter()
        .filter(|group| match group.as_slice() {
            [one] => edges.get(one).is_some_and(|all| all.iter().any(|d| d.on == *one)),
            _ => true,
        })
        .collect();
    groups.iter_mut().for_each(|group| group.sort());
    groups.sort();
    groups
}

/// Strongly connected components, by Tarjan's algorithm with its stack on the heap.
fn components(types: &[TypeDef], edges: &Edges) -> Vec<Vec<Node>> {
    #[derive(Clone, Copy)]
    struct Seen {
        index: usize,
        low: usize,
        on_path: bool,
    }
    let mut seen: HashMap<Node, Seen> = HashMap::new();
    let mut path: Vec<Node> = Vec::new();
    let mut out = Vec::new();
    for root in nodes(types) {
        let mut work: Vec<(Node, usize)> = if seen.contains_key(&root) { Vec::new() } else { vec![(root, 0)] };
        while let Some((node, next)) = work.pop() {
            if next == 0 {
                let index = seen.len();
                seen.insert(node, Seen { index, low: index, on_path: true });
                path.push(node);
            }
            let dependency = edges.get(&node).and_then(|all| all.get(next));
            if let Some(dependency) = dependency {
                work.push((node, next + 1));
                match seen.get(&dependency.on).copied() {
                    None => work.push((dependency.on, 0)),
                    Some(there) if there.on_path => lower(&mut seen, node, there.index, |s, to| s.low = s.low.min(to)),
                    Some(_) => {}
                }
                continue;
            }
            let Some(done) = seen.get(&node).copied() else { continue };
            if let Some((parent, _)) = work.last() {
                lower(&mut seen, *parent, done.low, |s, to| s.low = s.low.min(to));
            }
            if done.low == done.index {
                let start = path.iter().rposition(|n| *n == node).unwrap_or(0);
                let group = path.split_off(start);
                for member in &group {
                    lower(&mut seen, *member, 0, |s, _| s.on_path = false);
                }
                out.push(group);
            }
        }
    }
    return out;

    fn lower(seen: &mut HashMap<Node, Seen>, node: Node, to: usize, change: impl Fn(&mut Seen, usize)) {
        if let Some(entry) = seen.get_mut(&node) {
            change(entry, to);
        }
    }
}

/// Whether permissions that depend on each other do so only by inheriting: each asks for the others on other objects, and
/// there is one of each type.
pub(super) fn inherits(edges: &Edges, group: &[Node]) -> bool {
    let types: HashSet<TypeId> = group.iter().map(|node| node.0).collect();
    let inside = |node: &Node| edges.get(node).into_iter().flatten().filter(|d| group.contains(&d.on));
    // One alone is split, which says better what is wrong with it.
    group.len() == 1 || (types.len() == group.len() && group.iter().all(|node| inside(node).all(|d| d.followed)))
}

/// Why permissions that depend on each other are refused.
pub(super) fn explain(types: &[TypeDef], edges: &Edges, group: &[Node]) -> Diagnostic {
    let members: HashSet<Node> = group.iter().copied().collect();
    let inside = |node: &Node| edges.get(node).into_iter().flatten().filter(|d| members.contains(&d.on));
    let first = group.first().copied().unwrap_or((TypeId(0), PermId(0)));
    let path: Vec<String> = around(edges, &members, first).into_iter().map(|n| title(types, n)).collect();
    let span = permission(types, first).map(|p| p.span).unwrap_or_default();
    let (title, path) = (title(types, first), path.join(" -> "));
    let help = if group.iter().all(|node| inside(node).all(|d| d.followed)) {
        "permissions that inherit from each other must be one of each type: write \"parent.view\" in view, and a stronger one beside it, \"edit or parent.view\""
    } else {
        "a permission may depend on itself only by inheriting: on the same permission of another object, as in \"or parent.view\""
    };
    Diagnostic::error(302, span, format!("{title} depends on itself: {path}")).with_help(help)
}

/// The shortest way from a permission back to itself inside its group.
fn around(edges: &Edges, group: &HashSet<Node>, start: Node) -> Vec<Node> {
    let mut came_from: HashMap<Node, Node> = HashMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for dependency in edges.get(&node).into_iter().flatten().filter(|d| group.contains(&d.on)) {
            if let Entry::Vacant(entry) = came_from.entry(dependency.on) {
                entry.insert(node);
                queue.push_back(dependency.on);
            }
        }
    }
    let mut path = vec![start];
    let mut at = start;
    while let Some(before) = came_from.get(&at).copied() {
        path.push(before);
        at = before;
        if at == start {
            break;
        }
    }
    path.reverse();
    path
}
