//! Inheritance: finds the permissions that name themselves through relations to objects, and splits each into the part
//! that starts it and the links it is passed on over.
//!
//! `can view = viewer or parent.view or (shown.view and {open})` holds on an object when `viewer` holds on it or on
//! any of its ancestors, where the ancestors are what `parent` reaches, and what `shown` reaches where `open` is true.
//! Permissions of several types that inherit from each other, one of each type, are passed on in one graph.
//! Everything else in which a permission depends on itself is a mistake.

mod cycles;
mod denies;
mod limits;
mod split;

use std::collections::{BTreeMap, HashMap, HashSet};

use super::diagnostic::Diagnostic;
use super::model::{Expr, Graph, GraphId, GraphLink, Inheritance, PermId, TypeDef, TypeId};
use split::Parts;

pub use cycles::{Dependency, Node, dependencies};

/// Fills in [`super::model::Permission::inherits`] and returns the graphs. Broken permissions are left alone.
pub fn find(types: &mut [TypeDef], broken: &HashSet<Node>, diagnostics: &mut Vec<Diagnostic>) -> Vec<Graph> {
    let edges = cycles::edges(types);
    let groups: Vec<Vec<Node>> = (cycles::groups(types, &edges).into_iter())
        .filter(|group| !group.iter().any(|node| broken.contains(node)))
        .collect();
    let mut all: HashMap<Node, Parts> = HashMap::new();
    let mut whole: Vec<&Vec<Node>> = Vec::new();
    for group in &groups {
        if !cycles::inherits(&edges, group) {
            diagnostics.push(cycles::explain(types, &edges, group));
            continue;
        }
        let members: HashSet<Node> = group.iter().copied().collect();
        let mut mistakes = Vec::new();
        let parts: Vec<(Node, Parts)> =
            group.iter().map(|node| (*node, split::split(types, *node, &members, &mut mistakes))).collect();
        if mistakes.is_empty() {
            let conditions = parts.iter().flat_map(|(_, p)| &p.links).flat_map(|link| &link.conditions);
            mistakes.extend(conditions.filter_map(limits::check_condition));
        }
        if mistakes.is_empty() && parts.iter().all(|(_, p)| p.base.is_none()) {
            mistakes.push(never_starts(types, group));
        }
        if mistakes.is_empty() {
            all.extend(parts);
            whole.push(group);
        }
        diagnostics.append(&mut mistakes);
    }
    denies::check(types, &groups, &all, diagnostics);

    let mut graphs = Graphs::default();
    for group in whole {
        let links = group.iter().filter_map(|node| all.get(node)).flat_map(|p| &p.links);
        let graph = graphs.with(links.map(split::Link::graph_link).collect());
        for node in group {
            let (Some(parts), Some(permission)) = (all.get(node), permission_mut(types, *node)) else { continue };
            permission.inherits = Some(Inheritance {
                graph,
                base: parts.base.clone().unwrap_or(Expr::Nobody(permission.span)),
                denies: parts.denies.iter().map(|&(id, span)| Expr::Permission(id, span)).collect(),
                members: group.clone(),
            });
        }
    }
    graphs.all
}

fn never_starts(types: &[TypeDef], group: &[Node]) -> Diagnostic {
    let first = group.first().copied().unwrap_or((TypeId(0), PermId(0)));
    let span = permission(types, first).map(|p| p.span).unwrap_or_default();
    let message =
        format!("{} is inherited and never starts: nobody has it on any object of their own", title(types, first));
    let help = "name who has it without inheriting, as in \"viewer or parent.view\"";
    Diagnostic::error(303, span, message).with_help(help)
}

#[derive(Default)]
struct Graphs {
    all: Vec<Graph>,
    known: HashMap<Vec<LinkKey>, GraphId>,
}

/// What makes two links the same, wherever they are written: types, relation, source, and the condition's text.
type LinkKey = (TypeId, TypeId, usize, usize, Option<String>);

impl Graphs {
    /// The graph with these links; a new one when no permission has used them before.
    fn with(&mut self, links: Vec<GraphLink>) -> GraphId {
        let links: BTreeMap<LinkKey, GraphLink> = links.into_iter().map(|link| (key(&link), link)).collect();
        let next = GraphId(self.all.len());
        let id = *self.known.entry(links.keys().cloned().collect()).or_insert(next);
        if id == next {
            self.all.push(Graph { links: links.into_values().collect() });
        }
        id
    }
}

fn key(link: &GraphLink) -> LinkKey {
    let condition = link.condition.as_ref().map(|c| c.sql.trim().to_owned());
    (link.child, link.parent, link.relation.0, link.source, condition)
}

fn permission_mut(types: &mut [TypeDef], (ty, id): Node) -> Option<&mut super::model::Permission> {
    types.get_mut(ty.0)?.permissions.get_mut(id.0)
}

fn permission(types: &[TypeDef], (ty, id): Node) -> Option<&super::model::Permission> {
    types.get(ty.0)?.permission(id)
}

/// `folder.view`, for messages.
fn title(types: &[TypeDef], node: Node) -> String {
    let ty = types.get(node.0.0).map_or("", |t| t.name.as_str());
    let name = permission(types, node).map_or("", |p| p.name.as_str());
    format!("{ty}.{name}")
}

/// Every permission there is.
fn nodes(types: &[TypeDef]) -> impl Iterator<Item = Node> + '_ {
    (types.iter().enumerate()).flat_map(|(ty, def)| (0..def.permissions.len()).map(move |id| (TypeId(ty), PermId(id))))
}
