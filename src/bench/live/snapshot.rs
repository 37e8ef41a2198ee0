//! What the live benchmark shows: plain data, no connection and no clock in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::bench::histogram::Summary;

/// One kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One file by its id.
    OpenFile,
    /// The files of one folder.
    OpenFolder,
    /// `authz.can` for a file.
    Can,
    /// A new folder.
    Create,
    /// A small folder into another one.
    Move,
    /// A folder also shown in another one.
    Link,
    /// The folder with the most below it into another root, or back.
    BigMove,
}

impl Kind {
    /// All of them: reads first, then tree writes, then the big move.
    pub const ALL: [Kind; 7] =
        [Kind::OpenFile, Kind::OpenFolder, Kind::Can, Kind::Create, Kind::Move, Kind::Link, Kind::BigMove];

    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Kind::OpenFile => "open-file",
            Kind::OpenFolder => "open-folder",
            Kind::Can => "can",
            Kind::Create => "create",
            Kind::Move => "move",
            Kind::Link => "link",
            Kind::BigMove => "big-move",
        }
    }

    /// True for the reads.
    pub fn is_read(self) -> bool {
        matches!(self, Kind::OpenFile | Kind::OpenFolder | Kind::Can)
    }
}

/// How far a run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Phase {
    /// Connecting, reading the tree.
    #[default]
    Preparing,
    /// Measuring.
    Running,
    /// Stopped measuring; what was written is being removed.
    CleaningUp,
    /// Over, and everything it wrote is removed.
    Ended,
    /// Over, with what went wrong.
    Failed {
        /// One sentence.
        why: String,
    },
}

/// The run as it stands, a few times a second.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Snapshot {
    /// How far it is.
    #[serde(flatten)]
    pub phase: Phase,
    /// Seconds since measuring began.
    pub elapsed: f64,
    /// Reads asked for, a second.
    pub reads_rate: f64,
    /// Tree writes asked for, a second.
    pub writes_rate: f64,
    /// Second by second, oldest first; the last [`SERIES`] of them, the current one not among them.
    #[serde(serialize_with = "as_list")]
    pub series: Arc<Vec<Second>>,
    /// Each kind of operation over the whole run, in the order of [`Kind::ALL`]; kinds that did not run are left out.
    pub operations: Vec<Operation>,
    /// All reads over the whole run.
    pub reads: Class,
    /// All tree writes but big moves, over the whole run.
    pub writes: Class,
    /// Big moves, oldest first.
    pub big_moves: Vec<BigMove>,
    /// What failed, by SQLSTATE (or `lost`, for a connection that ended; `no-row`, for a write that found nothing).
    pub errors: BTreeMap<String, ErrorCount>,
    /// Connections that sign in and run operations.
    pub connections: usize,
    /// The newest thing worth a line.
    pub note: Option<String>,
}

fn as_list<S: serde::Serializer>(series: &Arc<Vec<Second>>, to: S) -> Result<S::Ok, S::Error> {
    series.as_slice().serialize(to)
}

/// How many seconds of the series are kept: an hour.
pub const SERIES: usize = 3600;

/// One second of the run, of what ended in it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Second {
    /// Which, from 0.
    pub second: u64,
    /// Reads.
    pub reads: Slice,
    /// Tree writes but big moves.
    pub writes: Slice,
    /// Whether a big move ran in it.
    pub big_move: bool,
}

/// One second of one class.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Slice {
    /// Operations that succeeded.
    pub done: u64,
    /// That failed, timeouts included.
    pub failed: u64,
    /// That started late.
    pub missed: u64,
    /// Latency from the intended start, of those that succeeded.
    pub latency: Summary,
}

/// Reads, or tree writes, over the whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Class {
    /// Operations that succeeded.
    pub done: u64,
    /// That failed, timeouts included.
    pub failed: u64,
    /// Cut off after four periods.
    pub timeouts: u64,
    /// That started more than 5 ms after their intended start: no connection was free.
    pub missed: u64,
    /// That were due when the run stopped and were never started.
    pub unstarted: u64,
    /// Successes a second over the run.
    pub per_second: f64,
    /// Latency from the intended start, of those that succeeded.
    pub latency: Summary,
}

/// One kind of operation over the whole run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Operation {
    /// Which.
    pub kind: Kind,
    /// That succeeded.
    pub done: u64,
    /// Reads among them that found nothing, or `authz.can` that said no: the reader may not see it.
    pub denied: u64,
    /// That failed, timeouts included.
    pub failed: u64,
    /// Cut off after four periods.
    pub timeouts: u64,
    /// Latency from the intended start, of those that succeeded.
    pub latency: Summary,
    /// Time on the connection alone (from BEGIN to the end of COMMIT), of those that succeeded.
    pub service: Summary,
}

/// What failed one way.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ErrorCount {
    /// How often.
    pub count: u64,
    /// In the server's words, the last time.
    pub last: String,
}

/// A big move.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BigMove {
    /// When it began, in seconds since measuring began.
    pub at: f64,
    /// The folder moved.
    pub folder: i64,
    /// Where to: another root, or back.
    pub to: Option<i64>,
    /// Folders below it when the run began.
    pub below: u64,
    /// From BEGIN to the end of COMMIT, in milliseconds; `None` while it runs.
    pub milliseconds: Option<f64>,
    /// Why it failed.
    pub error: Option<String>,
    /// Latency from the intended start of the other tree writes that were due or under way while it ran; the slowest is
    /// the longest pause it caused.
    pub others: Summary,
}
