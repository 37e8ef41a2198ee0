//! What the scale benchmark found, and whether the gate holds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Made, Steps};
use crate::bench::environment::Environment;
use crate::bench::live::LiveReport;
use crate::bench::result::{RunResult, Target};
use crate::bench::scenario::Verdict;
use crate::bench::scenarios::{LIVE, SCALE};

/// The result.
#[derive(Debug)]
pub struct ScaleReport {
    /// How the database was made.
    pub made: Made,
    /// What it ran on.
    pub environment: Environment,
    /// When measuring began, in UTC.
    pub started: String,
    /// What was measured.
    pub steps: Steps,
    /// Bytes of the database afterwards.
    pub bytes: i64,
    /// Seconds it all took.
    pub seconds: f64,
    /// Reads asked for, a second.
    pub reads: f64,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// The gate's reads a second.
const GATE_READS: f64 = 400.0;

impl ScaleReport {
    /// In the format that all scenarios share: the counts and latencies are the gate's.
    pub fn result(&self) -> RunResult {
        let steps = &self.steps;
        let mut broken = Vec::new();
        if steps.verified == Some(false) {
            broken.push("authz.verify() is false after the writes".to_owned());
        }
        for list in &steps.lists {
            broken.extend(list.criterion.broken.iter().map(|one| format!("{}: {one}", list.scenario)));
        }
        for (clients, one) in &steps.clients {
            broken.extend(one.criterion.broken.iter().map(|line| format!("tree writes by {clients}: {line}")));
        }
        let failed_moves = steps.big_move.iter().flat_map(|report| &report.measured.big_moves);
        broken.extend(failed_moves.filter_map(|big| big.error.as_ref().map(|error| format!("the big move: {error}"))));
        let failure = steps.failure.clone().or_else(|| self.left_behind());
        let base = RunResult::empty(SCALE.name, self.environment.clone());
        let mut result = match &steps.gate {
            Some(gate) => RunResult {
                scenario: SCALE.name.to_owned(),
                environment: self.environment.clone(),
                ..gate.result(&LIVE, self.reads, Ok(true))
            },
            None => base,
        };
        let data = json!({ "size": self.made.size, "seed": self.made.seed, "files": self.made.files });
        let met = broken.is_empty();
        result.criterion = Verdict { words: SCALE.criterion.words.to_owned(), met, broken };
        result.complete = failure.is_none();
        result.failure = failure;
        result.started_at.clone_from(&self.started);
        result.target = "a server of its own".to_owned();
        result.seed = self.made.seed;
        result.data = data;
        result.targets = self.targets();
        result.notes = self.notes();
        result.details = self.details();
        result
    }

    fn left_behind(&self) -> Option<String> {
        let live = [&self.steps.reads, &self.steps.gate, &self.steps.big_move].into_iter().flatten();
        let runs = self.steps.clients.iter().map(|(_, one)| one).chain(&self.steps.lists);
        live.filter_map(|one| one.failure.clone()).chain(runs.filter_map(|one| one.failure.clone())).next()
    }

    fn targets(&self) -> BTreeMap<String, Target> {
        self.steps.gate.as_ref().map(gate_targets).unwrap_or_default()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        if (self.reads - GATE_READS).abs() > 0.5 {
            notes.push(format!("reads scaled to {:.0} a second; the gate is meant at {GATE_READS:.0}", self.reads));
        }
        let Made { load_seconds, apply_seconds, .. } = &self.made;
        notes.push(format!("loaded in {load_seconds:.1} s, policy applied with the backfill in {apply_seconds:.1} s"));
        let p95 = |report: &Option<LiveReport>| report.as_ref().and_then(|one| one.measured.reads.latency.p95);
        if let Some(p95) = p95(&self.steps.reads) {
            notes.push(format!("reads alone: p95 {p95:.2} ms"));
        }
        for (clients, one) in &self.steps.clients {
            let p95 = one.latency_ms.p95.map_or_else(|| "–".to_owned(), |p95| format!("{p95:.1}"));
            notes.push(format!("tree writes by {clients}: {:.0}/s, p95 {p95} ms (service time)", one.throughput_per_s));
        }
        for big in self.steps.big_move.iter().flat_map(|report| &report.measured.big_moves) {
            let took = big.milliseconds.map_or_else(|| "not over".to_owned(), |took| format!("{took:.0} ms"));
            let others = big
                .others
                .max
                .map_or_else(String::new, |max| format!("; slowest of {} other tree writes {max:.1} ms", big.others.n));
            notes.push(format!("big move, {} folders below: {took}{others}", big.below));
        }
        for list in &self.steps.lists {
            let cell = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.0}"));
            let (p50, max) = (cell(list.latency_ms.p50), cell(list.latency_ms.max));
            notes.push(format!("{}: n {}, p50 {p50} ms, slowest {max} ms", list.scenario, list.operations));
        }
        if let Some(verified) = self.steps.verified {
            notes.push(format!("authz.verify(): {verified} in {:.1} s", self.steps.verify_seconds));
        }
        notes.push(format!("the database has {:.0} MB", self.bytes as f64 / 1e6));
        notes
    }

    fn details(&self) -> Value {
        let live = |report: &Option<LiveReport>| report.as_ref().map(|one| json!({ "measured": one.measured }));
        let steps = &self.steps;
        let clients: BTreeMap<String, &RunResult> =
            steps.clients.iter().map(|(clients, one)| (clients.to_string(), one)).collect();
        json!({
            "made": self.made,
            "database_bytes": self.bytes,
            "seconds": self.seconds,
            "reads_alone": live(&steps.reads),
            "tree_writes_by_clients": clients,
            "gate": live(&steps.gate),
            "big_move": live(&steps.big_move),
            "lists": steps.lists,
            "verify": { "ok": steps.verified, "seconds": steps.verify_seconds },
        })
    }
}

/// In place of a latency that nothing has: an hour.
const NONE_MS: f64 = 3_600_000.0;

/// What the gate asks of a run of both beside each other.
pub fn gate_targets(gate: &LiveReport) -> BTreeMap<String, Target> {
    let measured = &gate.measured;
    let mut targets = BTreeMap::new();
    for (name, class, most) in [("reads", &measured.reads, 5.0), ("tree writes", &measured.writes, 50.0)] {
        // Where there are too few for a 95th percentile the slowest is judged; with none at all the gate fails.
        let p95 = class.latency.p95.or(class.latency.max).unwrap_or(NONE_MS);
        targets.insert(format!("gate: {name}, p95 ms"), Target::most(p95, most));
    }
    targets.insert("gate: failed tree writes".to_owned(), Target::most(measured.writes.failed as f64, 0.0));
    targets
}
