//! The result of any scenario: one JSON format, published as `bench/schema.json`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Write as _;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::cpu::Cpu;
use super::engine::Tally;
use super::environment::Environment;
use super::histogram::Latencies;
use super::scenario::Verdict;
use crate::db::error::DbError;

/// The version of the format. It changes when a reader of the old one would misread the new one.
pub const FORMAT_VERSION: u32 = 1;

/// What a run leaves.
#[derive(Debug, Clone, Serialize)]
pub struct RunResult {
    /// The program and its version.
    pub tool: String,
    /// [`FORMAT_VERSION`].
    pub format_version: u32,
    /// Which scenario.
    pub scenario: String,
    /// True only when measuring finished as asked and everything written was taken back.
    pub complete: bool,
    /// Why it is not complete.
    pub failure: Option<String>,
    /// What the scenario's criterion says.
    pub criterion: Verdict,
    /// Where it ran: role, host and database, no secret.
    pub target: String,
    /// When measuring began, in UTC.
    pub started_at: String,
    /// Seconds measured.
    pub duration_s: f64,
    /// Seconds warmed up before, and whether the speed had settled by then.
    pub warm_up: WarmUp,
    /// `open` (due at a rate, whoever is busy) or `closed` (the next starts when the last one ended).
    pub pace: String,
    /// `from the intended start` in an open loop, `service time` in a closed one.
    pub latency_is: String,
    /// Operations asked for, a second; none in a closed loop.
    pub rate: Option<f64>,
    /// Connections.
    pub concurrency: usize,
    /// Separate client processes.
    pub processes: usize,
    /// What the random choices follow from.
    pub seed: u64,
    /// What was in the tables.
    pub data: Value,
    /// Operations counted.
    pub operations: u64,
    /// By label.
    pub outcomes: BTreeMap<String, OutcomeResult>,
    /// Operations a second.
    pub throughput_per_s: f64,
    /// Of all that came to an answer.
    pub latency_ms: Percentiles,
    /// The same, whole: enough to merge results later.
    pub histogram: Vec<Bucket>,
    /// Time on the connection alone.
    pub service_ms: Percentiles,
    /// The first operation of each connection, before the warm-up.
    pub cold_ms: Percentiles,
    /// Starts more than 5 ms after they were due.
    pub missed_starts: u64,
    /// Due and never started.
    pub unstarted: u64,
    /// Under way when measuring ended, and not counted.
    pub unfinished: u64,
    /// What was aimed for.
    pub targets: BTreeMap<String, Target>,
    /// CPU seconds while measuring.
    pub cpu: Cpu,
    /// Bytes of tables with their indexes, when it ended.
    pub table_bytes: BTreeMap<String, i64>,
    /// The statements that took the server longest, where `pg_stat_statements` is there.
    pub top_statements: Vec<TopStatement>,
    /// The machine, the server, the build.
    pub environment: Environment,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// What only this scenario has.
    pub details: Value,
}

/// Warming up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct WarmUp {
    /// How long.
    pub seconds: f64,
    /// Whether the last second was as fast as the one before, within a tenth.
    pub settled: bool,
}

/// One label.
#[derive(Debug, Clone, Serialize)]
pub struct OutcomeResult {
    /// How often.
    pub count: u64,
    /// How long those took.
    pub latency_ms: Percentiles,
    /// The last words about it.
    pub last_words: Option<String>,
}

/// Milliseconds. A percentile that too few samples support is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// How many samples.
    pub n: u64,
    /// The mean.
    pub mean: Option<f64>,
    /// Half were at most this.
    pub p50: Option<f64>,
    /// From 10 samples on.
    pub p90: Option<f64>,
    /// From 20 on.
    pub p95: Option<f64>,
    /// From 100 on.
    pub p99: Option<f64>,
    /// From 1,000 on.
    pub p999: Option<f64>,
    /// The slowest.
    pub max: Option<f64>,
}

/// Samples of one width of the histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// At most so many microseconds.
    pub le_us: u64,
    /// How many.
    pub count: u64,
}

/// A number, what was aimed for, and whether that was met.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Target {
    /// The number.
    pub value: f64,
    /// What was aimed for.
    pub target: f64,
    /// True when it was met.
    pub met: bool,
}

impl Target {
    /// Met when at least so much.
    pub fn least(value: f64, target: f64) -> Target {
        Target { value, target, met: value >= target }
    }

    /// Met when at most so much.
    pub fn most(value: f64, target: f64) -> Target {
        Target { value, target, met: value <= target }
    }
}

/// A statement of `pg_stat_statements`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TopStatement {
    /// Its text, without values.
    pub query: String,
    /// How often it ran.
    pub calls: i64,
    /// Milliseconds altogether.
    pub total_ms: f64,
}

impl Percentiles {
    /// Of these.
    pub fn of(latencies: &Latencies) -> Percentiles {
        Percentiles {
            n: latencies.n(),
            mean: latencies.mean(),
            p50: latencies.percentile(50.0),
            p90: latencies.percentile(90.0),
            p95: latencies.percentile(95.0),
            p99: latencies.percentile(99.0),
            p999: latencies.percentile(99.9),
            max: latencies.max(),
        }
    }
}

/// The buckets of these.
pub fn histogram(latencies: &Latencies) -> Vec<Bucket> {
    latencies.buckets().into_iter().map(|(le_us, count)| Bucket { le_us, count }).collect()
}

impl RunResult {
    /// Fills in what was counted.
    pub fn count(&mut self, tally: &Tally, seconds: f64) {
        self.duration_s = seconds;
        self.operations = tally.operations();
        self.outcomes = tally
            .outcomes
            .iter()
            .map(|(label, one)| {
                let latency_ms = Percentiles::of(&one.latency);
                (label.clone(), OutcomeResult { count: one.count, latency_ms, last_words: one.words.clone() })
            })
            .collect();
        self.throughput_per_s = if seconds > 0.0 { self.operations as f64 / seconds } else { 0.0 };
        self.latency_ms = Percentiles::of(&tally.latency);
        self.histogram = histogram(&tally.latency);
        self.service_ms = Percentiles::of(&tally.service);
        self.cold_ms = Percentiles::of(&tally.cold);
        (self.missed_starts, self.unstarted, self.unfinished) = (tally.missed, tally.unstarted, tally.unfinished);
    }

    /// The exit code: 1 when it did not complete, 3 when its criterion or a target failed.
    pub fn exit_code(&self) -> u8 {
        match (self.complete, self.criterion.met && self.targets.values().all(|target| target.met)) {
            (false, _) => 1,
            (true, false) => 3,
            (true, true) => 0,
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let rate = self.rate.map_or_else(String::new, |rate| format!(" · {rate:.0}/s asked for"));
        let _ = writeln!(
            out,
            "{} · {:.1} s · {} connections · {} loop{rate} · {:.1} operations/s",
            self.scenario, self.duration_s, self.concurrency, self.pace, self.throughput_per_s
        );
        if !self.outcomes.is_empty() {
            let _ = writeln!(
                out,
                "{:<34}{:>9}{:>9}{:>9}{:>9}{:>10}   ms, {}",
                "", "n", "p50", "p95", "p99", "max", self.latency_is
            );
        }
        let mut line = |name: &str, n: u64, of: &Percentiles| {
            let [p50, p95, p99, max] = [of.p50, of.p95, of.p99, of.max].map(cell);
            let _ = writeln!(out, "{name:<34}{n:>9}{p50:>9}{p95:>9}{p99:>9}{max:>10}");
        };
        for (label, one) in &self.outcomes {
            line(label, one.count, &one.latency_ms);
        }
        if self.outcomes.len() > 1 {
            line("all answers", self.latency_ms.n, &self.latency_ms);
        }
        if self.cold_ms.n > 0 {
            line("cold: each connection's first", self.cold_ms.n, &self.cold_ms);
        }
        for (label, one) in &self.outcomes {
            if let Some(words) = &one.last_words {
                let _ = writeln!(out, "{} times {label}: {words}", one.count);
            }
        }
        if self.pace == "open" {
            let _ = writeln!(out, "missed starts: {}; due but not started: {}", self.missed_starts, self.unstarted);
        }
        for (name, Target { value, target, met }) in &self.targets {
            let verdict = if *met { "met" } else { "MISSED" };
            let _ = writeln!(out, "{name:<58}{value:>10.2}   target {target:>7.2}   {verdict}");
        }
        for note in &self.notes {
            let _ = writeln!(out, "note: {note}");
        }
        let verdict = if self.criterion.met { "passes" } else { "FAILS" };
        let _ = writeln!(out, "{verdict}: {}", self.criterion.words);
        for broken in &self.criterion.broken {
            let _ = writeln!(out, "  {broken}");
        }
        if let Some(failure) = &self.failure {
            let _ = writeln!(out, "incomplete: {failure}");
        }
        out
    }
}

fn cell(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"))
}

/// Refuses a path that is there already: results are never written over.
pub fn refuse_used(path: &Path) -> Result<(), DbError> {
    if path.symlink_metadata().is_ok() {
        return Err(DbError::Usage(format!("{} is there already; results are not written over", path.display())));
    }
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) if !parent.is_dir() => Err(DbError::Usage(format!("{} is no folder", parent.display()))),
        _ => Ok(()),
    }
}

/// Writes a result to a path that is not there yet.
pub fn save<T: Serialize>(path: &Path, result: &T) -> Result<(), DbError> {
    let json = serde_json::to_string_pretty(result).map_err(|e| DbError::Unexpected(format!("no JSON of it: {e}")))?;
    let failed = |error| DbError::io(format!("cannot write {}", path.display()), error);
    let mut file = std::fs::File::create_new(path).map_err(failed)?;
    file.write_all(json.as_bytes()).and_then(|()| file.write_all(b"\n")).and_then(|()| file.sync_all()).map_err(failed)
}
