//! Small worlds made of a policy alone: what could be in its tables.

pub mod sample;
pub mod shape;
