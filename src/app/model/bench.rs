//! The Bench screen: the chosen rates, and what is measured while they run.

/// The rates of the next run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Reads a second.
    pub reads: u32,
    /// Tree writes a second.
    pub writes: u32,
}

/// One kind of operation, as measured so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OutcomeRow {
    /// The operation, or an SQLSTATE for what failed.
    pub name: String,
    /// How many.
    pub count: u64,
    /// Milliseconds at the median, the 95th and the 99th percentile (where there are enough), and the longest.
    pub p50: Option<f64>,
    /// See `p50`.
    pub p95: Option<f64>,
    /// See `p50`.
    pub p99: Option<f64>,
    /// See `p50`.
    pub max: Option<f64>,
}

/// One second of a run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Second {
    /// Reads that ended.
    pub reads: u64,
    /// Writes that ended.
    pub writes: u64,
    /// Their 95th percentile, in milliseconds.
    pub read_p95: Option<f64>,
    /// See `read_p95`.
    pub write_p95: Option<f64>,
    /// A big move ran in it.
    pub big_move: bool,
}

/// What was measured so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// Seconds since the start.
    pub elapsed: f64,
    /// By operation.
    pub operations: Vec<OutcomeRow>,
    /// What failed, by SQLSTATE.
    pub errors: Vec<(String, u64)>,
    /// Second by second, the newest last.
    pub seconds: Vec<Second>,
    /// Operations that could not start on time.
    pub missed: u64,
    /// The last big move, in words, when there was one.
    pub big_move: Option<String>,
    /// The longest any other writer waited during the last big move, in milliseconds.
    pub longest_pause: Option<f64>,
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
    /// It stops.
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
