//! What a run leaves: one JSON object, or a few lines of text.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;
use tokio_postgres::Client;

use super::cleanup::Cleanup;
use super::snapshot::{Kind, Snapshot};
use crate::bench::error::BenchError;
use crate::bench::histogram::Summary;

/// The result of a run.
#[derive(Debug, Clone, Serialize)]
pub struct LiveReport {
    /// Version of this format.
    pub format: u32,
    /// The program and its version.
    pub tool: String,
    /// Which benchmark: `live`.
    pub scenario: &'static str,
    /// True when measuring ended as asked and everything written was taken back.
    pub complete: bool,
    /// Why it is not complete.
    pub failure: Option<String>,
    /// When measuring began, in UTC.
    pub started: String,
    /// Where it ran: role, host and database, no secret.
    pub target: String,
    /// What it ran on.
    pub environment: Environment,
    /// Rows there were.
    pub data: Data,
    /// What was measured.
    pub measured: Snapshot,
    /// Every latency of each kind in microseconds from the intended start, with how often: for merging runs.
    pub buckets: BTreeMap<Kind, Vec<(u64, u64)>>,
    /// What was taken back.
    pub cleanup: Cleanup,
    /// The statements, and how each operation was made.
    pub statements: BTreeMap<&'static str, &'static str>,
}

/// Rows there were when the run began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Data {
    /// Folders.
    pub folders: usize,
    /// Files, or as many of them as were chosen from.
    pub files_chosen_from: usize,
    /// Active users.
    pub active_users: usize,
}

/// The machine and the server.
#[derive(Debug, Clone, Serialize)]
pub struct Environment {
    /// CPUs this program may use. The server often shares them.
    pub cpus: usize,
    /// How many processes wanted a CPU over the last minute, where the system says. Well above what the run itself
    /// needs, it means that others took part.
    pub load_average: Option<f64>,
    /// Operating system and architecture of this program.
    pub platform: String,
    /// Whether this program was built with optimizations.
    pub optimized: bool,
    /// The server's version in its own words.
    pub server: String,
    /// Its settings that matter most.
    pub settings: BTreeMap<String, String>,
}

impl Environment {
    /// Reads it on any connection.
    pub async fn read(client: &Client) -> Result<Environment, BenchError> {
        let doing = || BenchError::database("reading the server's settings");
        let names = [
            "shared_buffers",
            "work_mem",
            "jit",
            "fsync",
            "synchronous_commit",
            "max_connections",
            "max_parallel_workers_per_gather",
            "random_page_cost",
        ];
        let mut settings = BTreeMap::new();
        for name in names {
            let row = client.query_one("SELECT current_setting($1)", &[&name]).await.map_err(doing())?;
            settings.insert(name.to_owned(), row.try_get(0).map_err(doing())?);
        }
        let row = client.query_one("SELECT version()", &[]).await.map_err(doing())?;
        Ok(Environment {
            cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            load_average: load_average(),
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            optimized: !cfg!(debug_assertions),
            server: row.try_get(0).map_err(doing())?,
            settings,
        })
    }
}

fn load_average() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

impl LiveReport {
    /// For people.
    pub fn text(&self) -> String {
        let measured = &self.measured;
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "live · {} folders · {:.0} reads/s beside {:.0} tree writes/s · {:.0} s · {} connections · open loop",
            self.data.folders, measured.reads_rate, measured.writes_rate, measured.elapsed, measured.connections
        );
        let _ = writeln!(
            out,
            "{:<12}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}   ms from the intended start",
            "", "n", "failed", "timeout", "p50", "p95", "p99", "max"
        );
        let mut line = |name: &str, done: u64, failed: u64, timeouts: u64, latency: &Summary| {
            let [p50, p95, p99, max] = [latency.p50, latency.p95, latency.p99, latency.max].map(cell);
            let _ = writeln!(out, "{name:<12}{done:>9}{failed:>9}{timeouts:>9}{p50:>9}{p95:>9}{p99:>9}{max:>9}");
        };
        for one in &measured.operations {
            line(one.kind.word(), one.done, one.failed, one.timeouts, &one.latency);
        }
        for (name, class) in [("all reads", &measured.reads), ("all writes", &measured.writes)] {
            line(name, class.done, class.failed, class.timeouts, &class.latency);
        }
        let _ = writeln!(
            out,
            "missed starts: {} reads, {} writes; due but not started at the end: {} reads, {} writes",
            measured.reads.missed, measured.writes.missed, measured.reads.unstarted, measured.writes.unstarted
        );
        for big in &measured.big_moves {
            let took = big.milliseconds.map_or_else(|| "not over".to_owned(), |took| format!("{took:.0} ms"));
            let _ = write!(out, "big move at {:.0} s: folder {} with {} below, {took}", big.at, big.folder, big.below);
            let _ = match (&big.error, big.others.max) {
                (Some(error), _) => writeln!(out, "; failed: {error}"),
                (None, Some(max)) => {
                    writeln!(out, "; slowest of {} other tree writes meanwhile {max:.1} ms", big.others.n)
                }
                (None, None) => writeln!(out, "; no other tree write meanwhile"),
            };
        }
        for (code, error) in &measured.errors {
            let _ = writeln!(out, "{} times {code}: {}", error.count, error.last);
        }
        let _ = writeln!(
            out,
            "taken back: {} new folders, {} moves, {} links",
            self.cleanup.deleted, self.cleanup.moved_back, self.cleanup.unlinked
        );
        if let Some(failure) = &self.failure {
            let _ = writeln!(out, "incomplete: {failure}");
        }
        out
    }
}

fn cell(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.1}"))
}
