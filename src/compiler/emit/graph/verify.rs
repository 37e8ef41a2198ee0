//! Verify and repair. Nothing here shares derivation SQL with the upkeep it judges.

use super::super::super::objects::Object;
use super::GraphEmitted;
use super::shape::Shape;

/// The policy's verify functions of one graph: the part of the name after the graph's, and the statement.
pub(super) fn functions(_shape: &Shape) -> Vec<(&'static str, String)> {
    Vec::new()
}

/// The public functions that cover all graphs of a policy: `authz.verify_batch`, `authz.verify`, `authz.repair`.
pub fn emit_verify(_graphs: &[GraphEmitted]) -> Vec<Object> {
    Vec::new()
}
