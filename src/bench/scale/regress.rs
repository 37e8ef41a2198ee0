//! A small run compared with what this machine recorded before.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Options, ScaleReport, ScaleSize};
use crate::bench::environment::Environment;
use crate::bench::error::BenchError;
use crate::bench::live::LiveReport;
use crate::db::cancel::Stop;
use crate::db::error::DbError;
use crate::db::progress::Reporter;

/// A script that ran fewer times is not judged.
const ENOUGH: u64 = 50;

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Version of this format.
    pub format_version: u32,
    /// The program that recorded it.
    pub tool: String,
    /// When, in UTC.
    pub at: String,
    /// The machine and the server: a baseline belongs to the machine that recorded it.
    pub machine: String,
    /// The 95th percentile of each script in each step, in milliseconds, with how often it ran.
    pub p95_ms: BTreeMap<String, (u64, f64)>,
    /// The slowest of the big moves, in milliseconds.
    pub big_move_ms: f64,
    /// Writes that failed or timed out.
    pub failed_writes: u64,
    /// What `authz.verify()` said.
    pub verified: bool,
    /// The gate's speed, shown and not judged.
    pub gate: Vec<String>,
}

/// A run beside its baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// This run.
    pub now: Recorded,
    /// What it is compared with; none when it was recorded.
    pub before: Option<Recorded>,
    /// What got slower or went wrong, one line each.
    pub regressed: Vec<String>,
    /// What was measured too rarely to be judged.
    pub not_judged: Vec<String>,
}

/// How the small version runs: 10,000 folders, short steps, 25 reads a second for each CPU up to 400.
pub fn options(folders: usize, step: Duration) -> Options {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Options {
        reads: (25.0 * cpus as f64).min(400.0),
        step,
        clients: Vec::new(),
        lists: false,
        ..Options::new(ScaleSize::Folders(folders))
    }
}

/// Measures once.
pub async fn record(options: &Options, stop: &Stop, reporter: &Reporter) -> Result<Recorded, BenchError> {
    let report = super::run(options, stop, reporter).await?;
    if let Some(failure) = &report.steps.failure {
        return Err(BenchError::Unsuitable(format!("the run is not complete: {failure}")));
    }
    Recorded::of(&report).ok_or_else(|| BenchError::Unsuitable("the run is not complete".to_owned()))
}

impl Recorded {
    fn of(report: &ScaleReport) -> Option<Recorded> {
        let steps = &report.steps;
        let (reads, gate, big_move) = (steps.reads.as_ref()?, steps.gate.as_ref()?, steps.big_move.as_ref()?);
        let mut p95_ms = BTreeMap::new();
        for (step, of) in [("reads alone", reads), ("gate", gate)] {
            for one in &of.measured.operations {
                let name = format!("{step}: {}", one.kind.word());
                p95_ms.insert(name, (one.latency.n, one.latency.p95.unwrap_or_default()));
            }
        }
        let moves = big_move.measured.big_moves.iter();
        let moved = moves.map(|big| big.milliseconds.filter(|_| big.error.is_none()));
        let failed = |of: &LiveReport| of.measured.writes.failed;
        let targets = report.result().targets;
        Some(Recorded {
            format_version: 1,
            tool: format!("rowdeck {}", env!("CARGO_PKG_VERSION")),
            at: report.started.clone(),
            machine: machine(&report.environment),
            p95_ms,
            // A move that failed counts as an hour.
            big_move_ms: moved.map(|took| took.unwrap_or(3_600_000.0)).fold(0.0, f64::max),
            failed_writes: failed(gate) + failed(big_move),
            verified: steps.verified?,
            gate: targets
                .iter()
                .map(|(name, one)| format!("{name}: {:.2} (limit {:.0})", one.value, one.target))
                .collect(),
        })
    }
}

fn machine(environment: &Environment) -> String {
    let server: String = environment.server.split(',').next().unwrap_or_default().to_owned();
    format!(
        "{} × {}, {} GB, {}, {}",
        environment.cpus,
        environment.cpu_model.as_deref().unwrap_or("unknown CPU"),
        environment.memory_bytes.unwrap_or_default() / (1 << 30),
        server,
        if environment.optimized { "optimized build" } else { "unoptimized build" }
    )
}

impl Compared {
    /// 4 when something got slower.
    pub fn exit_code(&self) -> u8 {
        if self.regressed.is_empty() { 0 } else { 4 }
    }
}

/// What got slower: twice, and by more than 2 ms (half a second for the big move).
pub fn compare(now: &Recorded, before: &Recorded) -> Compared {
    let mut regressed = Vec::new();
    let mut not_judged = Vec::new();
    for (name, (n, p95)) in &now.p95_ms {
        match before.p95_ms.get(name) {
            Some((n_before, _)) if *n < ENOUGH || *n_before < ENOUGH => {
                not_judged.push(format!("{name}: ran {n} and {n_before} times"));
            }
            Some((_, was)) if slower(*p95, *was, 2.0) => {
                regressed.push(format!("{name}: p95 {p95:.2} ms, was {was:.2} ms"));
            }
            Some(_) => {}
            None => not_judged.push(format!("{name}: not in the baseline")),
        }
    }
    if slower(now.big_move_ms, before.big_move_ms, 500.0) {
        regressed.push(format!("the big move: {:.0} ms, was {:.0} ms", now.big_move_ms, before.big_move_ms));
    }
    if now.failed_writes > 0 {
        regressed.push(format!("{} writes failed or timed out", now.failed_writes));
    }
    if !now.verified {
        regressed.push("authz.verify() is false after the writes".to_owned());
    }
    Compared { now: now.clone(), before: Some(before.clone()), regressed, not_judged }
}

fn slower(now: f64, was: f64, by_more_than: f64) -> bool {
    now > 2.0 * was && now - was > by_more_than
}

/// The baseline, if there is one.
pub fn read(path: &Path) -> Result<Option<Recorded>, DbError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(DbError::io(format!("cannot read {}", path.display()), error)),
    };
    serde_json::from_str(&text).map(Some).map_err(|error| DbError::Unreadable(format!("{}: {error}", path.display())))
}

/// Keeps a run as the baseline, in place of the last one.
pub fn write(path: &Path, recorded: &Recorded) -> Result<(), DbError> {
    let failed = |error| DbError::io(format!("cannot write {}", path.display()), error);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let json = serde_json::to_string_pretty(recorded).map_err(|error| DbError::Unexpected(error.to_string()))?;
    std::fs::write(path, json + "\n").map_err(failed)
}

/// Runs, compares, and runs once more when something got slower: a busy machine is slow for a while, a slower program is
/// slow both times.
pub async fn run(
    options: &Options,
    baseline: &Recorded,
    stop: &Stop,
    reporter: &Reporter,
) -> Result<Compared, BenchError> {
    let mut compared = compare(&record(options, stop, reporter).await?, baseline);
    same_machine(&compared.now, baseline)?;
    if !compared.regressed.is_empty() && !stop.asked() {
        let words = format!("{}; once more, since only a second failure counts", compared.regressed.join("; "));
        super::say(reporter, words).await;
        compared = compare(&record(options, stop, reporter).await?, baseline);
    }
    Ok(compared)
}

fn same_machine(now: &Recorded, before: &Recorded) -> Result<(), BenchError> {
    if now.machine == before.machine {
        return Ok(());
    }
    Err(BenchError::Unsuitable(format!(
        "the baseline was recorded on another machine ({}; this is {}); record one here with --record",
        before.machine, now.machine
    )))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    fn recorded(create: (u64, f64), big_move_ms: f64) -> Recorded {
        Recorded {
            format_version: 1,
            tool: String::new(),
            at: String::new(),
            machine: String::new(),
            p95_ms: BTreeMap::from([("gate: create".to_owned(), create)]),
            big_move_ms,
            failed_writes: 0,
            verified: true,
            gate: Vec::new(),
        }
    }

    #[test]
    fn twice_as_slow_and_by_enough_is_a_regression() {
        let before = recorded((100, 10.0), 300.0);
        let regressed = |now: &Recorded| compare(now, &before).regressed.len();
        assert_eq!(regressed(&recorded((100, 19.9), 300.0)), 0);
        assert_eq!(regressed(&recorded((100, 20.1), 300.0)), 1);
        assert_eq!(regressed(&recorded((100, 10.0), 799.0)), 0, "more than twice, but not by half a second");
        assert_eq!(regressed(&recorded((100, 10.0), 801.0)), 1);
        assert_eq!(regressed(&Recorded { failed_writes: 1, ..before.clone() }), 1);
        assert_eq!(regressed(&Recorded { verified: false, ..before.clone() }), 1);
        assert_eq!(compare(&before, &before).exit_code(), 0);
        assert_eq!(compare(&recorded((100, 20.1), 300.0), &before).exit_code(), 4);
        let fast = recorded((100, 0.5), 300.0);
        assert!(compare(&recorded((100, 2.4), 300.0), &fast).regressed.is_empty(), "by less than 2 ms");
    }

    #[test]
    fn a_baseline_belongs_to_its_machine() {
        let here = recorded((100, 1.0), 1.0);
        assert!(same_machine(&here, &here.clone()).is_ok());
        let elsewhere = Recorded { machine: "64 × another".to_owned(), ..here.clone() };
        assert!(same_machine(&here, &elsewhere).unwrap_err().to_string().contains("--record"));
    }

    #[test]
    fn what_ran_rarely_is_not_judged() {
        let compared = compare(&recorded((49, 900.0), 0.0), &recorded((100, 1.0), 0.0));
        assert!(compared.regressed.is_empty());
        assert_eq!(compared.not_judged, ["gate: create: ran 49 and 100 times"]);
    }
}
