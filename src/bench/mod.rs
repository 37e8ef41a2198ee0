//! Measuring: the docs example's data at any size, the arithmetic of latencies, and the live benchmark.
//!
//! Everything here talks to a database from outside, as an app would: through the tables an app reads and writes and
//! through the `authz` functions, on connections that have the app's role. Only preparing and cleaning up use the
//! owner's connection. `docs/BENCHMARKS.md` says what is measured and what the numbers do not say.

mod cleanup;
pub mod compare;
pub mod cpu;
pub mod engine;
pub mod environment;
pub mod error;
mod facts;
pub mod generate;
pub(crate) mod guard;
pub mod headless;
pub mod histogram;
pub mod live;
pub mod load;
pub mod page;
pub mod random;
pub mod result;
pub mod run;
pub mod scale;
pub mod scenario;
pub mod scenarios;
pub mod schedule;
pub mod seed;
pub mod soak;
mod statements;
mod svg;
pub mod versus;
mod world;

/// The docs example's tables, as SQL. Run it as the role that will own them.
pub const EXAMPLE_SCHEMA: &str = include_str!("../../examples/docs/schema.sql");

/// The docs example's policy and its tests.
pub const EXAMPLE_POLICY: &str = include_str!("../../examples/docs/docs.authz");

/// The name the example's policy is known by.
pub const EXAMPLE_POLICY_NAME: &str = "docs.authz";
