//! What [`super::update`] wants done. Only [`super::runtime`] does it.

use std::path::PathBuf;

use super::model::activity::End;
use super::model::bench::Rates;
use super::model::inspect::Ask;
use super::model::policy::DiskStamp;
use crate::db::progress::Wrong;

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Compile this text; a newer one replaces it.
    Compile {
        /// Its revision.
        revision: u64,
        /// Its file, or what it is called when it has none.
        name: PathBuf,
        /// The text.
        text: String,
    },
    /// Read a file.
    Load(PathBuf),
    /// Write a file, whole or not at all.
    Save {
        /// Where.
        path: PathBuf,
        /// What.
        text: String,
        /// Its revision.
        revision: u64,
        /// What the file was when it was read; it must still be that. `None` overwrites whatever is there.
        expect: Option<DiskStamp>,
    },
    /// Keep this unsaved text where a crash cannot reach it.
    Keep {
        /// The text.
        text: String,
    },
    /// Throw the kept text away: it is saved, or not wanted.
    DropKept,
    /// Throw away the text a console left that has ended since.
    DropFound,
    /// That text is ours now: it is kept under our name, at once.
    AdoptFound,
    /// Connect again now.
    Reconnect,
    /// Plan an apply of this text.
    Plan {
        /// The policy's file.
        name: PathBuf,
        /// The text.
        text: String,
        /// Its revision.
        revision: u64,
    },
    /// Apply this text.
    Apply {
        /// The policy's file.
        name: PathBuf,
        /// The text, kept in the database.
        text: String,
        /// The plan that was agreed to; anything else is refused.
        plan: String,
    },
    /// Cancel the apply on the server.
    CancelApply,
    /// Check one batch.
    VerifyBatch {
        /// Where it starts.
        cursor: Option<String>,
        /// How many objects.
        size: u32,
    },
    /// Repair these.
    Repair(Vec<Wrong>),
    /// Ask the database.
    Ask {
        /// The number of the question.
        asked: u64,
        /// The question.
        ask: Ask,
    },
    /// Read what is watched again now.
    WatchNow,
    /// Cancel what a session runs, or end it.
    EndSession {
        /// Its process.
        pid: i32,
        /// When that process started.
        started: f64,
        /// Which of both.
        how: End,
    },
    /// Try a statement and roll it back.
    Try {
        /// The number of the run.
        asked: u64,
        /// Whom to be: `user 31`, `nobody`.
        who: String,
        /// The statement.
        statement: String,
        /// It may write before it is rolled back.
        writes: bool,
    },
    /// Cancel the statement that is tried.
    CancelTry,
    /// Connect to this target of rowdeck.toml instead.
    SwitchTarget(String),
    /// Start the load.
    BenchStart(Rates),
    /// Go on at these rates.
    BenchRates(Rates),
    /// Move a big subtree now.
    BenchMove,
    /// Stop the load.
    BenchStop,
    /// Run the policy's tests.
    RunTests {
        /// The policy's file.
        name: PathBuf,
        /// The text.
        text: String,
    },
    /// Write a new file.
    Export {
        /// Its name, in the folder for exports unless it has a folder.
        name: String,
        /// Its text.
        text: String,
    },
    /// Copy to the terminal's clipboard.
    Copy(String),
    /// Use the next theme.
    NextTheme,
    /// Draw everything again.
    Redraw,
    /// Give the terminal back and stop, until continued.
    Suspend,
    /// Leave.
    Quit,
}
