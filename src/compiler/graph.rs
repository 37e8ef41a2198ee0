//! Inheritance: finds the permissions that name themselves through relations to objects, and splits each into the part
//! that starts it and the links it is passed on over.
//!
//! `can view = viewer or parent.view or (shown.view and {open})` holds on an object when `viewer` holds on it or on
//! any of its ancestors, where the ancestors are what `parent` reaches, and what `shown` reaches where `open` is true.
//! Everything else in which a permission depends on itself is a mistake.

mod cycles;
mod split;

use std::collections::{BTreeMap, HashMap, HashSet};

use super::diagnostic::Diagnostic;
use super::model::{Graph, GraphId, GraphLink, Inheritance, PermId, TypeDef, TypeId};

pub use cycles::{Dependency, Node, dependencies};

/// Fills in [`super::model::Permission::inherits`] and returns the graphs. Broken permissions are left alone.
pub fn find(types: &mut [TypeDef], broken: &HashSet<Node>, diagnostics: &mut Vec<Diagnostic>) -> Vec<Graph> {
    let mut graphs = Graphs::default();
    let edges = cycles::edges(types);
    for group in cycles::groups(types, &edges) {
        if group.iter().any(|node| broken.contains(node)) {
            continue;
        }
        match group.as_slice() {
            [node] => {
                let Some((base, links)) = split::split(types, *node, diagnostics) else { continue };
                let graph = graphs.with(links);
                if let Some(permission) = permission_mut(types, *node) {
                    permission.inherits = Some(Inheritance { graph, base });
                }
            }
            several => diagnostics.push(cycles::explain(types, &edges, several)),
        }
    }
    graphs.all
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
