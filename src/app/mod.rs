//! The console. [`update()`] is pure: a model, a message, effects. [`runtime`] alone spawns tasks, reads keys and draws;
//! [`crate::views`] only read the model.

pub mod command;
pub mod effect;
pub mod estimate;
pub mod keymap;
pub mod message;
pub mod model;
pub mod theme;
pub mod update;

pub use update::update;
