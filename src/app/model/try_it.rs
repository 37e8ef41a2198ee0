//! The Try it screen: one statement as anyone, always rolled back.

use super::field::Field;
pub use crate::db::try_it::{Apart, Tried};

/// What the typed text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Typing {
    /// Whom to be.
    #[default]
    Who,
    /// The statement.
    Statement,
}

/// The Try it screen.
#[derive(Debug, Clone, Default)]
pub struct TryIt {
    /// Whom to be, as typed: `user 31`, `nobody`.
    pub who: String,
    /// The statement.
    pub statement: String,
    /// What is being typed.
    pub field: Option<Field>,
    /// What it is for.
    pub typing: Typing,
    /// The number of the run we wait for.
    pub waiting: Option<u64>,
    /// Counts runs.
    pub asked: u64,
    /// What the last run did.
    pub result: Option<Tried>,
    /// Whom it was run as, and whether it could write.
    pub ran_as: (String, bool),
    /// The marked row of the result.
    pub at: usize,
    /// The first column shown.
    pub left: usize,
    /// Why there is no result.
    pub failure: Option<String>,
}
