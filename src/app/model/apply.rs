//! The Apply screen: the plan, what happens, and how it ended.

use std::time::Duration;

use crate::db::progress::{ApplyReport, Progress};

/// A plan, in words: everything that is known before the first statement.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// The digest of the generated SQL.
    pub digest: String,
    /// The revision of the text it was made from.
    pub revision: u64,
    /// The version in force, when there is one.
    pub from: Option<i64>,
    /// This very policy is in force already.
    pub unchanged: bool,
    /// The steps, in order.
    pub steps: Vec<PlanStep>,
    /// The inheritance indexes, built and kept, each a sentence.
    pub graphs: Vec<String>,
    /// Entries of the server's lock table it needs at most, and how many are free.
    pub locks: Option<(u64, u64)>,
    /// What must be known first, each a sentence (lints of the database, missing indexes, long transactions).
    pub warnings: Vec<String>,
    /// What makes it impossible, each a sentence.
    pub refusals: Vec<String>,
}

impl Plan {
    /// True when applying it would do something, and nothing makes that impossible.
    pub fn can_be_applied(&self) -> bool {
        !self.unchanged && self.refusals.is_empty()
    }
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanStep {
    /// What it does.
    pub what: String,
    /// What it locks.
    pub lock: String,
    /// How long, or how many rows, in words.
    pub cost: String,
}

/// A phase of the running apply.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseState {
    /// Its number, from 1.
    pub number: usize,
    /// Of how many.
    pub of: usize,
    /// What it does.
    pub title: String,
    /// What it holds locked.
    pub locks: String,
    /// Batches done, of how many.
    pub batches: (u64, Option<u64>),
    /// Rows done, of how many.
    pub rows: (u64, Option<u64>),
    /// Rows a second.
    pub rate: f64,
    /// Seconds left.
    pub left: Option<f64>,
    /// When it began, on the console's clock.
    pub began: Duration,
    /// When it ended.
    pub ended: Option<Duration>,
}

/// How far an apply is.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Stage {
    /// Nothing was planned.
    #[default]
    Idle,
    /// A plan is being made.
    Planning,
    /// There is a plan.
    Planned,
    /// It runs.
    Running,
    /// A cancel was sent; the server has not answered yet.
    Cancelling,
    /// It ended well.
    Done(ApplyReport),
    /// It ended, and the database is as it was; why, in words.
    Failed(String),
    /// It ended in its commit, and nobody could be asked how; why, in words.
    Unknown(String),
}

/// Why an apply did not end well, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotApplied {
    /// Nothing was changed.
    RolledBack(String),
    /// All of it is in force or nothing was changed; the connection was lost in the commit itself.
    Unknown(String),
}

impl<T: Into<String>> From<T> for NotApplied {
    fn from(why: T) -> Self {
        NotApplied::RolledBack(why.into())
    }
}

/// The Apply screen.
#[derive(Debug, Clone, Default)]
pub struct Apply {
    /// How far it is.
    pub stage: Stage,
    /// The plan, when there is one.
    pub plan: Option<Plan>,
    /// The phases so far.
    pub phases: Vec<PhaseState>,
    /// Who holds a lock we wait for, and for how many seconds we have.
    pub waiting: Option<(f64, Vec<String>)>,
    /// The number of the phase that waits, or waited last.
    pub waits_in: usize,
    /// Notes, the newest last.
    pub log: Vec<String>,
    /// First line shown.
    pub top: usize,
    /// When it began, on the console's clock.
    pub began: Duration,
}

impl Apply {
    /// Takes one piece of news of a running apply.
    pub fn progress(&mut self, progress: Progress, clock: Duration) {
        match progress {
            Progress::Phase { number, of, title, locks } => {
                self.end_phase(clock);
                // A try that starts over still waits for the same lock until it is past the phase that waited.
                if number > self.waits_in {
                    self.waiting = None;
                }
                // What it did from this phase on was rolled back, and is done again.
                self.phases.retain(|phase| phase.number < number);
                self.phases.push(PhaseState {
                    number,
                    of,
                    title: crate::text::line(&title).into_owned(),
                    locks: crate::text::line(&locks).into_owned(),
                    batches: (0, None),
                    rows: (0, None),
                    rate: 0.0,
                    left: None,
                    began: clock,
                    ended: None,
                });
            }
            Progress::Batch { batch, of, rows, rows_of, rate, left } => {
                if self.phases.last().is_some_and(|phase| phase.number >= self.waits_in) {
                    self.waiting = None;
                }
                if let Some(phase) = self.phases.last_mut() {
                    phase.batches = (batch, of);
                    phase.rows = (rows, rows_of);
                    phase.rate = rate;
                    phase.left = left;
                }
            }
            Progress::Waiting { seconds, blockers } => {
                let clean = blockers.iter().map(|b| crate::text::line(b).into_owned()).collect();
                self.waiting = Some((seconds, clean));
                self.waits_in = self.phases.last().map_or(0, |phase| phase.number);
            }
            Progress::Note { text } => {
                self.log.push(crate::text::line(&text).into_owned());
                if self.log.len() > 200 {
                    self.log.remove(0);
                }
            }
        }
    }

    /// Marks the open phase as ended.
    pub fn end_phase(&mut self, clock: Duration) {
        if let Some(phase) = self.phases.last_mut()
            && phase.ended.is_none()
        {
            phase.ended = Some(clock);
        }
    }
}
