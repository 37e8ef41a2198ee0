//! The whole console drawn on a test backend from key strings, with messages as the runtime would send them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

#[path = "ui/editing.rs"]
mod editing;
#[path = "ui/fixture.rs"]
mod fixture;
#[path = "ui/operator.rs"]
mod operator;
#[path = "ui/random.rs"]
mod random;
#[path = "ui/rules.rs"]
mod rules;
#[path = "ui/screens.rs"]
mod screens;
#[path = "ui/settings.rs"]
mod settings;
