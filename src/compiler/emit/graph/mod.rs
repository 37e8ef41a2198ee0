//! The two-level ancestor index of one inheritance graph: its tables, the functions and triggers that keep it, and the
//! functions that verify and repair it.
//!
//! Objects are grouped into clusters. A node row holds an object's cluster and its ancestors inside it (`local`,
//! nearest first); a cluster row holds all ancestors outside (`above`), the same for everything in the cluster; an
//! edge row holds an effective parent of a cluster's roots. So `ancestors(x) = local(x) || above(cluster(x))`, and
//! moving a subtree rewrites one row per cluster below, never a row per object.
//!
//! Invariants, which verify checks one by one:
//! * every object has one node; every cluster has at least one root (`local = '{}'`);
//! * the roots of a cluster have one and the same set of effective parents: the parents in its edges;
//! * an object with two or more effective parents is the only root of its cluster;
//! * any other node has one effective parent, in its cluster, and `local = parent || local(parent)`;
//! * `above` of a cluster is the least set that holds, for each of its edges, the parent, the parent's `local` and the
//!   `above` of the parent's cluster.
//!
//! The SQL stands in `sql/graph/`; what depends on the policy (the table, its links and their conditions) is in small
//! SQL functions, apart from the PL/pgSQL, so that a name in a condition never meets a variable of ours.

mod fragments;
pub(super) mod numbered;
mod shape;
mod template;
mod triggers;
mod verify;

pub use verify::emit_verify;

use super::super::diagnostic::Diagnostic;
use super::super::ident::{Ident, QualName};
use super::super::model::{GraphId, Model};
use super::super::objects::{GraphTables, Object, ObjectKind, Phase};
use shape::Shape;
use template::Template;

/// The schema of the index.
pub(crate) const SCHEMA: &str = "authz_int";

/// One graph, emitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphEmitted {
    /// Its tables, and how to read what they are built from.
    pub tables: GraphTables,
    /// Its objects in the order they must be made: tables, functions, then the triggers.
    pub objects: Vec<Object>,
}

/// Emits the index of one graph. Clusters hold about `cluster_size` objects (256 serves well; tests use 2 and 3).
///
/// A link that cannot be kept is refused.
pub fn emit_graph(model: &Model, graph: GraphId, cluster_size: u32) -> Result<GraphEmitted, Vec<Diagnostic>> {
    let shape = Shape::of(model, graph).map_err(|d| vec![d])?;
    let fill = values(&shape, cluster_size).map_err(|e| vec![shape.internal(&e)])?;
    let mut objects = shape.numbered.as_ref().map(|n| n.objects(&shape.name)).unwrap_or_default();
    let mut add = |kind, phase, name: String, text: &str| -> Result<(), Vec<Diagnostic>> {
        let sql = fill.fill(text).map_err(|e| vec![shape.internal(&format!("{name}: {e}"))])?;
        objects.push(Object { kind, name, sql, locks: Vec::new(), phase, graph: Some(shape.name.clone()) });
        Ok(())
    };
    for (kind, part, text) in TABLES {
        add(*kind, Phase::Tables, format!("{SCHEMA}.{}{part}", shape.name), text)?;
    }
    let own = match &shape.numbered {
        Some(numbered) => numbered::fragments::functions(numbered),
        None => fragments::functions(&shape),
    };
    for (part, text) in own {
        add(ObjectKind::Function, Phase::Upkeep, format!("{SCHEMA}.{}{part}", shape.name), &text)?;
    }
    for (part, text) in FUNCTIONS {
        add(ObjectKind::Function, Phase::Upkeep, format!("{SCHEMA}.{}{part}", shape.name), text)?;
    }
    for (part, text) in verify::functions(&shape) {
        add(ObjectKind::Function, Phase::Upkeep, format!("{SCHEMA}.{}{part}", shape.name), &text)?;
    }
    objects.extend(triggers::objects(&shape, &fill).map_err(|e| vec![shape.internal(&e)])?);
    let revokes: Vec<Object> = objects.iter().filter(|o| o.kind == ObjectKind::Function).filter_map(revoke).collect();
    objects.extend(revokes);
    objects.sort_by_key(|o| o.phase);
    Ok(GraphEmitted { tables: shape.tables(), objects })
}

/// The statements that make the tables, in order.
const TABLES: &[(ObjectKind, &str, &str)] = &[
    (ObjectKind::Table, "_cluster_id", include_str!("../../../../sql/graph/cluster_id.sql")),
    (ObjectKind::Table, "_cluster", include_str!("../../../../sql/graph/cluster.sql")),
    (ObjectKind::Table, "_node", include_str!("../../../../sql/graph/node.sql")),
    (ObjectKind::Index, "_node_cluster", include_str!("../../../../sql/graph/node_cluster.sql")),
    (ObjectKind::Table, "_edge", include_str!("../../../../sql/graph/edge.sql")),
    (ObjectKind::Index, "_edge_parent_cluster", include_str!("../../../../sql/graph/edge_parent_cluster.sql")),
    (ObjectKind::Index, "_edge_parent", include_str!("../../../../sql/graph/edge_parent.sql")),
];

/// The upkeep functions that are the same for every graph but for names, in the order they must be made.
const FUNCTIONS: &[(&str, &str)] = &[
    ("_above", include_str!("../../../../sql/graph/above.sql")),
    ("_ring", include_str!("../../../../sql/graph/ring.sql")),
    ("_rederive", include_str!("../../../../sql/graph/rederive.sql")),
    ("_refresh", include_str!("../../../../sql/graph/refresh.sql")),
];

/// The placeholders of the templates and what they stand for in this graph.
fn values(shape: &Shape, cluster_size: u32) -> Result<Template, String> {
    let mut fill = Template::default();
    let int = |part: &str| QualName::new(SCHEMA, format!("{}{part}", shape.name)).to_string();
    for (name, part) in [
        ("node", "_node"),
        ("cluster", "_cluster"),
        ("edge", "_edge"),
        ("cluster_id", "_cluster_id"),
        ("objects", "_objects"),
        ("is_object", "_is_object"),
        ("parents", "_parents"),
        ("parents_of", "_parents_of"),
        ("children_of", "_children_of"),
        ("children", "_children"),
        ("columns", "_columns"),
        ("all_links", "_all_links"),
        ("above", "_above"),
        ("ring", "_ring"),
        ("rederive", "_rederive"),
        ("refresh", "_refresh"),
        ("expect", "_expect"),
        ("walk", "_walk"),
        ("range", "_range"),
        ("wrong", "_wrong"),
        ("verify", "_verify"),
        ("repair", "_repair"),
        ("type", "_type"),
        ("text", "_text"),
    ] {
        fill.set(name, int(part));
    }
    for (name, part) in [
        ("node_cluster_index", "_node_cluster"),
        ("edge_parent_cluster_index", "_edge_parent_cluster"),
        ("edge_parent_index", "_edge_parent"),
    ] {
        fill.set(name, Ident::new(format!("{}{part}", shape.name)).to_string());
    }
    fill.set("key", shape.key_sql.to_owned());
    fill.set("size", cluster_size.max(1).to_string());
    fill.set("table", shape.table.to_string());
    fill.set("key_column", shape.key.to_string());
    fill.set("type_name", super::super::ident::literal(&shape.type_name));
    fill.set("title", super::super::ident::literal(&shape.title));
    verify::values(shape, &mut fill)?;
    Ok(fill)
}

/// `REVOKE ALL ... FROM PUBLIC` for a function, whose signature is read off its own statement.
fn revoke(function: &Object) -> Option<Object> {
    let head = function.sql.split_once("FUNCTION ")?.1;
    let end = head.find(" RETURNS ")?;
    let signature = head.get(..end)?;
    Some(Object {
        kind: ObjectKind::Grant,
        name: format!("{}: owner only", function.name),
        sql: format!("REVOKE ALL ON FUNCTION {} FROM PUBLIC", signature.trim()),
        locks: Vec::new(),
        phase: Phase::Upkeep,
        graph: function.graph.clone(),
    })
}
