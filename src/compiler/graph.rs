//! Inheritance: finds the permissions that name themselves through relations to objects, and splits each into the part
//! that starts it and the links it is passed on over.
//!
//! `can view = viewer or parent.view or (shown.view and {open})` holds on an object when `viewer` holds on it or on
//! any of its ancestors, where the ancestors are what `parent` reaches, and what `shown` reaches where `open` is true.
//! Everything else in which a permission depends on itself is a mistake.

mod cycles;
mod split;

use std::collections::HashSet;

use super::diagnostic::Diagnostic;
use super::model::{Graph, GraphId, GraphLink, Inheritance, PermId, TypeDef, TypeId};

pub use cycles::{Dependency, Node, dependencies};

/// Fills in [`super::model::Permission::inherits`] and returns the graphs. Broken permissions are left alone.
pub fn find(types: &mut [TypeDef], broken: &HashSet<Node>, diagnostics: &mut Vec<Diagnostic>) -> Vec<Graph> {
    let mut graphs: Vec<Graph> = Vec::new();
    for group in cycles::groups(types) {
        if group.iter().any(|node| broken.contains(node)) {
            continue;
        }
        match group.as_slice() {
            [node] => {
                let Some((base, links)) = split::split(types, *node, diagnostics) else { continue };
                let graph = graph_of(&mut graphs, links);
                if let Some(permission) = permission_mut(types, *node) {
                    permission.inherits = Some(Inheritance { graph, base });
                }
            }
            several => diagnostics.push(cycles::explain(types, several)),
        }
    }
    graphs
}

/// The graph with these links; a new one when no permission has used them before.
fn graph_of(graphs: &mut Vec<Graph>, mut links: Vec<GraphLink>) -> GraphId {
    links.sort_by(|a, b| key(a).cmp(&key(b)));
    links.dedup_by(|a, b| key(a) == key(b));
    let same = |graph: &Graph| graph.links.iter().map(key).eq(links.iter().map(key));
    if let Some(at) = graphs.iter().position(same) {
        return GraphId(at);
    }
    graphs.push(Graph { links });
    GraphId(graphs.len() - 1)
}

/// What makes two links the same, wherever they are written.
fn key(link: &GraphLink) -> (TypeId, TypeId, usize, usize, Option<&str>) {
    let condition = link.condition.as_ref().map(|c| c.sql.trim());
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
