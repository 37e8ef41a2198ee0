//! The console. [`update()`] is pure: a model, a message, effects. [`runtime`] alone spawns tasks, reads keys and draws;
//! [`crate::views`] only read the model.

pub mod clipboard;
pub mod command;
pub mod compile;
pub mod effect;
pub mod estimate;
pub mod export;
pub mod files;
pub mod jobs;
pub mod keymap;
pub mod link;
pub mod message;
pub mod model;
pub mod plain;
pub mod runtime;
pub mod settings;
pub mod signals;
pub mod terminal;
pub mod theme;
pub mod update;
pub mod work;

pub use runtime::{Options, run};
pub use terminal::Exit;
pub use update::update;
