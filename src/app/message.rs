//! What can happen: keys, files, compiles, the connection, and news of work.

use std::path::PathBuf;
use std::time::Duration;

use super::keymap::Key;
use super::model::activity::{End, Sessions};
use super::model::apply::{NotApplied, Plan};
use super::model::inspect::Told;
use super::model::link::Facts;
use super::model::overview::{InNumbers, Read};
use super::model::policy::{DiskStamp, Outcome, TestRun};
use super::model::try_it::Tried;
use crate::bench::live::Snapshot;
use crate::db::progress::{ApplyReport, Progress, VerifyBatch};
use crate::policy_text::Table;

/// One thing that happened.
#[derive(Debug, Clone)]
pub enum Message {
    /// A key.
    Key(Key),
    /// Text pasted in one piece. It never acts as keys.
    Paste(String),
    /// The terminal has this many columns and rows now.
    Resize(u16, u16),
    /// The console's clock.
    Clock(Duration),
    /// Something to say, from the runtime.
    Said(super::model::Level, String),
    /// A file was read.
    Loaded {
        /// Which.
        path: PathBuf,
        /// Its text and what identifies it (nothing, when it is not there yet), or why not.
        result: Result<(String, Option<DiskStamp>), String>,
    },
    /// A text that was not saved when the console ended last time.
    Recovered(String),
    /// A file was written.
    Saved {
        /// The revision of the text that was written.
        revision: u64,
        /// What identifies the file now, or why not.
        result: Result<DiskStamp, SaveProblem>,
    },
    /// The tables of the database and their columns, for completion.
    Tables(Vec<Table>),
    /// The compiler ended.
    Compiled(Box<Outcome>),
    /// The connection stands.
    LinkUp(Box<Facts>),
    /// The connection is lost, or could not be made; the next try is due in so long.
    LinkDown {
        /// Why.
        reason: String,
        /// When the next try is due.
        retry_in: Option<Duration>,
    },
    /// A plan was made, or why not.
    Planned(Result<Box<Plan>, String>),
    /// News of a running apply.
    Applying(Progress),
    /// The apply ended.
    Applied(Result<ApplyReport, NotApplied>),
    /// A batch was checked.
    Verified(Result<VerifyBatch, String>),
    /// How many objects there are to check, about.
    VerifyTotal(u64),
    /// A repair ended: how many objects were derived anew.
    Repaired(Result<u64, String>),
    /// The database answered question `asked`.
    Told {
        /// The number of the question.
        asked: u64,
        /// The answer.
        told: Box<Told>,
    },
    /// What the Overview screen shows was read, or why not.
    Overview(Result<(Box<Read>, Option<InNumbers>), String>),
    /// What the Activity screen shows was read, or why not.
    Sessions(Result<Box<Sessions>, String>),
    /// A session was cancelled or ended (or there was nothing to be), or why not.
    SessionEnded {
        /// Its process.
        pid: i32,
        /// What was done.
        how: End,
        /// Whether the server did it.
        result: Result<bool, String>,
    },
    /// A statement was tried and rolled back, or why not.
    Tried {
        /// The number of the run.
        asked: u64,
        /// What it did.
        result: Result<Box<Tried>, String>,
    },
    /// A table was written to a file, or why not.
    Exported {
        /// The file.
        path: String,
        /// Why not.
        result: Result<(), String>,
    },
    /// News of the load.
    Bench(BenchNews),
    /// The policy's tests ran.
    Tested(Result<TestRun, String>),
}

/// Why a file was not written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SaveProblem {
    /// It changed on disk since it was read.
    ChangedOnDisk,
    /// Something else, in words.
    Other(String),
}

/// News of the load.
#[derive(Debug, Clone)]
pub enum BenchNews {
    /// What was measured so far.
    Snapshot(Box<Snapshot>),
    /// It has ended and what it wrote is taken back, or why not.
    Ended(Result<(), String>),
}
