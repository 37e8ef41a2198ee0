//! What runs on a real server, which these tests start and stop themselves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

#[path = "../common/server.rs"]
mod server;

mod agree;
mod apply;
mod apply_docs;
mod apply_faults;
mod apply_preflight;
mod apply_world;
mod around;
mod bench;
mod build;
mod conditions;
mod docs;
mod graphs;
mod hostile;
mod keys;
mod measure;
mod operator;
mod pairs;
mod people;
mod plain;
mod plans;
mod races;
mod read_plans;
mod relay;
mod restore;
mod rules;
mod sign_in;
mod tiers;
mod tools;
mod trees;
mod verify;
mod world;
