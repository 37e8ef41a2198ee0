//! The live benchmark: steady tree writes and reads at chosen rates beside each other, with a big move on demand.
//!
//! [`start`] prepares, measures in the background and returns a [`Handle`]: commands go in, [`Snapshot`]s come out a
//! few times a second. Whatever ends the run (a command, the handle going away, an error), what it wrote is taken back.

mod app;
mod record;
mod report;
mod run;
mod snapshot;

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

pub use app::{APP_ROLE, statement};
pub use record::KindLatencies;
pub use report::LiveReport;
pub use run::start;
pub use snapshot::{BigMove, Class, ErrorCount, Kind, Operation, Phase, SERIES, Second, Slice, Snapshot};

pub use super::cleanup::Cleanup;
use super::error::BenchError;
use crate::db::target::Target;

/// The length of a measuring period: one line of the series.
pub const PERIOD: Duration = Duration::from_secs(1);

/// A statement that runs longer than four periods is cut off and counted as a timeout.
pub const CUT_OFF: Duration = Duration::from_secs(4);

/// How to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The owner's target: for reading the tree, and for taking back what was written.
    pub target: Target,
    /// The app's target, when its role signs in by itself; else the owner's target and `SET ROLE`.
    pub app: Option<Target>,
    /// Reads a second.
    pub reads: f64,
    /// Tree writes a second.
    pub writes: f64,
    /// Connections that read.
    pub read_connections: usize,
    /// Connections that write.
    pub write_connections: usize,
    /// What random choices follow from.
    pub seed: u64,
    /// A statement that runs longer is cut off and counted as a timeout: four periods.
    pub cut_off: Duration,
}

impl Options {
    /// The gate's rates, 400 reads and 20 tree writes a second.
    pub fn new(target: Target) -> Self {
        Options {
            target,
            app: None,
            reads: 400.0,
            writes: 20.0,
            read_connections: 8,
            write_connections: 16,
            seed: 1,
            cut_off: CUT_OFF,
        }
    }
}

/// What a run can be told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Command {
    /// Move the folder with the most below it into another root; the next time, back.
    BigMove,
    /// Go on at other rates.
    SetRates {
        /// Reads a second.
        reads: f64,
        /// Tree writes a second.
        writes: f64,
    },
    /// Stop, and take back what was written.
    Stop,
}

/// A run under way.
#[derive(Debug)]
pub struct Handle {
    /// Commands to it. Dropping the sender stops the run as [`Command::Stop`] does.
    pub commands: mpsc::Sender<Command>,
    /// The newest state.
    pub snapshots: watch::Receiver<Snapshot>,
    /// Ends with the report once everything written is taken back. Wait for it before the program ends.
    pub done: JoinHandle<Result<LiveReport, BenchError>>,
}
