//! The Bench screen: the chosen rates, and what is measured while they run.

pub use crate::bench::live::{BigMove, Second, Snapshot};

/// The rates of the next run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Reads a second.
    pub reads: u32,
    /// Tree writes a second.
    pub writes: u32,
}

/// What the load does.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum State {
    /// Nothing was started.
    #[default]
    Idle,
    /// Sessions are being opened.
    Starting,
    /// It runs.
    Running,
    /// What it wrote is being taken back.
    Stopping,
    /// It stopped; what was measured stays.
    Stopped,
    /// It failed, in words; what was measured stays.
    Failed(String),
}

/// The Bench screen.
#[derive(Debug, Clone)]
pub struct Bench {
    /// What it does.
    pub state: State,
    /// The rates of the next run.
    pub rates: Rates,
    /// What was measured.
    pub snapshot: Option<Snapshot>,
}

impl Default for Bench {
    fn default() -> Self {
        Bench { state: State::Idle, rates: Rates { reads: 400, writes: 20 }, snapshot: None }
    }
}
