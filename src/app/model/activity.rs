//! The Activity screen: sessions of the database, and who waits for whom.

pub use crate::db::sessions::{End, SessionRow, Sessions};

/// The Activity screen.
#[derive(Debug, Clone, Default)]
pub struct Activity {
    /// What was read last.
    pub read: Option<Sessions>,
    /// The process of the marked session, which stays marked when the order changes.
    pub marked: Option<i32>,
    /// Why nothing could be read.
    pub failure: Option<String>,
    /// The session a question is about.
    pub asked: Option<(i32, f64)>,
}

impl Activity {
    /// The sessions.
    pub fn rows(&self) -> &[SessionRow] {
        self.read.as_ref().map_or(&[], |read| &read.rows)
    }

    /// The number of the marked line.
    pub fn at(&self) -> usize {
        self.rows().iter().position(|row| Some(row.pid) == self.marked).unwrap_or(0)
    }

    /// The marked session.
    pub fn here(&self) -> Option<&SessionRow> {
        self.rows().get(self.at())
    }

    /// How many sessions wait for this one.
    pub fn waiting_for(&self, pid: i32) -> usize {
        self.rows().iter().filter(|row| row.blocked_by.contains(&pid)).count()
    }
}
