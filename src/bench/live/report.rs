//! What a run leaves: one JSON object, or a few lines of text.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;
use serde_json::json;

use super::record::{CUT_OFF, KindLatencies};
use super::snapshot::{Kind, Snapshot};
use crate::bench::cleanup::Cleanup;
use crate::bench::engine::{OutcomeTally, Tally};
use crate::bench::environment::Environment;
use crate::bench::histogram::{Latencies, Summary};
use crate::bench::result::RunResult;
use crate::bench::scenario::Scenario;

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
    /// The same, to go on counting with.
    #[serde(skip)]
    pub latencies: BTreeMap<Kind, KindLatencies>,
    /// What random choices followed from.
    pub seed: u64,
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

impl LiveReport {
    /// The same in the format that all scenarios share. `verified` is what `authz.verify()` said afterwards.
    pub fn result(&self, scenario: &Scenario, rate: f64, verified: Result<bool, String>) -> RunResult {
        let mut tally = Tally::default();
        for (kind, latencies) in &self.latencies {
            for (word, latency) in [("ok", &latencies.done), ("refused", &latencies.denied)] {
                if latency.n() > 0 {
                    let outcome = OutcomeTally { count: latency.n(), latency: latency.clone(), words: None };
                    tally.outcomes.insert(format!("{}:{word}", kind.word()), outcome);
                    tally.latency.merge(latency);
                }
            }
            tally.service.merge(&latencies.service);
        }
        for (code, error) in &self.measured.errors {
            let label = match code.as_str() {
                CUT_OFF => "timeout".to_owned(),
                "lost" | "client" | "no-row" | "unprepared" => code.clone(),
                code => format!("sqlstate_{code}"),
            };
            let words = Some(error.last.clone());
            tally.outcomes.insert(label, OutcomeTally { count: error.count, latency: Latencies::new(), words });
        }
        let measured = &self.measured;
        tally.missed = measured.reads.missed + measured.writes.missed;
        tally.unstarted = measured.reads.unstarted + measured.writes.unstarted;
        let mut broken: Vec<String> = measured
            .big_moves
            .iter()
            .filter_map(|big| big.error.as_ref().map(|error| format!("the big move at {:.0} s: {error}", big.at)))
            .collect();
        let mut failure = self.failure.clone();
        match verified {
            Ok(true) => {}
            Ok(false) => broken.push("authz.verify() is false".to_owned()),
            Err(why) => failure = failure.or(Some(format!("authz.verify(): {why}"))),
        }
        let outcomes = tally.outcomes.iter();
        let outcomes = outcomes.map(|(label, one)| (label.as_str(), one.count, one.words.as_deref()));
        let criterion = scenario.criterion.judge(outcomes, broken);
        let mut result = RunResult {
            complete: failure.is_none(),
            failure,
            criterion,
            target: self.target.clone(),
            started_at: self.started.clone(),
            pace: "open".to_owned(),
            latency_is: "from the intended start".to_owned(),
            rate: Some(rate),
            concurrency: measured.connections,
            seed: self.seed,
            data: json!(self.data),
            notes: self.text().lines().skip(1).filter(|line| line.contains("big move")).map(str::to_owned).collect(),
            details: json!({
                "measured": measured, "buckets": self.buckets, "cleanup": self.cleanup, "statements": self.statements,
            }),
            ..RunResult::empty(scenario.name, self.environment.clone())
        };
        result.count(&tally, measured.elapsed);
        result
    }

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
