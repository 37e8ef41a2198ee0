//! The Verify screen: batches, what they found, and where to go on.

use std::time::Duration;

use crate::db::progress::{VerifyBatch, Wrong};

/// What a verify does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Nothing was checked yet.
    #[default]
    Idle,
    /// One batch is being checked, then it waits.
    Stepping,
    /// Batch after batch.
    Running,
    /// The batch that runs is the last; then it waits.
    Pausing,
    /// It waits; run or step go on.
    Paused,
    /// The batch that runs is the last; then it is stopped.
    Stopping,
    /// Stopped; resume goes on, run begins anew.
    Stopped,
    /// Everything was checked.
    Done,
    /// The batch failed; the cursor is kept.
    Failed,
}

impl Mode {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Idle => "not started",
            Mode::Stepping => "checking one batch",
            Mode::Running => "running",
            Mode::Pausing => "pausing after this batch",
            Mode::Paused => "paused",
            Mode::Stopping => "stopping after this batch",
            Mode::Stopped => "stopped",
            Mode::Done => "done",
            Mode::Failed => "failed",
        }
    }

    /// A batch is being checked.
    pub fn busy(self) -> bool {
        matches!(self, Mode::Stepping | Mode::Running | Mode::Pausing | Mode::Stopping)
    }
}

/// One square of the map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Square {
    /// Checked and right.
    Right,
    /// Checked; so many wrong.
    Wrong(usize),
}

/// The Verify screen.
#[derive(Debug, Clone)]
pub struct Verify {
    /// What it does now.
    pub mode: Mode,
    /// Objects in a batch.
    pub size: u32,
    /// A square for each batch of this run.
    pub map: Vec<Square>,
    /// Objects checked in this run.
    pub checked: u64,
    /// Objects there are, about, when known.
    pub total: Option<u64>,
    /// Seconds the batches took.
    pub seconds: f64,
    /// Where the next batch starts.
    pub cursor: Option<String>,
    /// What is wrong, as found.
    pub wrong: Vec<Wrong>,
    /// The marked one.
    pub at: usize,
    /// The server's words when a batch failed.
    pub failure: Option<String>,
    /// When this run began, on the console's clock.
    pub began: Duration,
    /// Wrong objects not kept because there were too many.
    pub not_kept: u64,
}

impl Default for Verify {
    fn default() -> Self {
        Verify {
            mode: Mode::Idle,
            size: 1000,
            map: Vec::new(),
            checked: 0,
            total: None,
            seconds: 0.0,
            cursor: None,
            wrong: Vec::new(),
            at: 0,
            failure: None,
            began: Duration::ZERO,
            not_kept: 0,
        }
    }
}

/// Wrong objects kept for the screen.
const KEPT: usize = 10_000;

impl Verify {
    /// Forgets the last run.
    pub fn begin(&mut self, clock: Duration) {
        *self = Verify { size: self.size, total: self.total, began: clock, ..Verify::default() };
    }

    /// Takes the result of a batch; true when the next one is wanted at once.
    pub fn batch(&mut self, batch: VerifyBatch) -> bool {
        self.checked += batch.checked;
        self.seconds += batch.seconds;
        self.map.push(if batch.wrong.is_empty() { Square::Right } else { Square::Wrong(batch.wrong.len()) });
        for wrong in batch.wrong {
            if self.wrong.len() < KEPT {
                self.wrong.push(wrong);
            } else {
                self.not_kept += 1;
            }
        }
        let more = batch.cursor.is_some();
        self.cursor = batch.cursor;
        self.failure = None;
        self.mode = match self.mode {
            _ if !more => Mode::Done,
            Mode::Running => Mode::Running,
            Mode::Stopping => Mode::Stopped,
            _ => Mode::Paused,
        };
        self.mode == Mode::Running
    }

    /// Objects a second over this run.
    pub fn rate(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.checked as f64 / self.seconds)
    }

    /// All wrong objects found, kept or not.
    pub fn wrong_total(&self) -> u64 {
        self.wrong.len() as u64 + self.not_kept
    }
}
