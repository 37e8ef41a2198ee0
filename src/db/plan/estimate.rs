//! What an apply takes, estimated. Measured on two cores with PostgreSQL 15: good for telling a second from a minute, and
//! said with an "about".

use super::changes::PlannedGraph;
use crate::compiler::objects::ObjectKind;

/// Rows of an index built in a second.
const ROWS: f64 = 40_000.0;

/// Bytes of a row of an index, with its share of the indexes on it.
const BYTES: u64 = 190;

/// Seconds to make or drop one object.
pub(super) fn object(kind: ObjectKind) -> f64 {
    match kind {
        ObjectKind::Table | ObjectKind::Index | ObjectKind::Schema => 0.008,
        ObjectKind::Function | ObjectKind::View | ObjectKind::Type => 0.004,
        ObjectKind::Trigger | ObjectKind::Policy | ObjectKind::Grant => 0.002,
    }
}

/// Seconds to build so many rows.
pub(super) fn build(rows: u64) -> f64 {
    // A float is exact enough for an estimate.
    rows as f64 / ROWS
}

/// Bytes on disk that an index of so many rows takes.
pub(super) fn bytes(rows: u64) -> u64 {
    rows.saturating_mul(BYTES)
}

/// Bytes on disk that the indexes to be built take, all together.
pub(super) fn disk(graphs: &[PlannedGraph]) -> u64 {
    graphs.iter().filter(|graph| graph.build).map(|graph| graph.bytes).sum()
}
