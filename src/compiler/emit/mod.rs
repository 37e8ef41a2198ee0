//! From the model to SQL.

pub mod graph;
