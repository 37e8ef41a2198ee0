//! The ratios, and whether they meet what was aimed for.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;
use serde_json::json;

use super::Options;
use super::reads::Reads;
use super::writes::TreeWrites;
use crate::bench::environment::Environment;
use crate::bench::generate::Dataset;
use crate::bench::histogram::Summary;
use crate::bench::result::{RunResult, Target};
use crate::bench::scenario::Verdict;
use crate::bench::scenarios::VERSUS;

/// One subject's numbers.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Measured {
    /// Seconds from the loaded tables to an index in force; for rowdeck the whole apply, with its rules.
    pub build_seconds: f64,
    /// Bytes of the stored inheritance, indexes included, right after the build.
    pub index_bytes: i64,
    /// New folders a second by one client that waits for its answers, each round.
    pub creates_by_1: Vec<f64>,
    /// By eight.
    pub creates_by_8: Vec<f64>,
    /// Tree writes by fifty clients, each round.
    pub tree_writes_by_50: Vec<TreeWrites>,
    /// Milliseconds of a thousand folders in one INSERT, each round.
    pub thousand_ms: Vec<f64>,
    /// Seconds of one COPY of many folders.
    pub bulk_load_seconds: f64,
    /// Seconds to check the whole index; for closure by working it all out again.
    pub verify_seconds: f64,
    /// Milliseconds of each big move, beside steady creates.
    pub big_moves: Vec<f64>,
    /// Folders below the moved one.
    pub below: u64,
    /// Latency, from the intended start, of creates that were due or under way during big moves.
    pub beside: Summary,
    /// Creates beside big moves that failed.
    pub failed: u64,
    /// Whether the index was exact at the end; `None` without an index.
    pub exact: Option<bool>,
}

/// The result.
#[derive(Debug, Clone, Serialize)]
pub struct VersusReport {
    /// Version of this format.
    pub format: u32,
    /// The program and its version.
    pub tool: String,
    /// Which benchmark.
    pub scenario: &'static str,
    /// True when every step ran and every index was exact.
    pub complete: bool,
    /// When it began, in UTC.
    pub started: String,
    /// What it ran on.
    pub environment: Environment,
    /// The data: size, seed, folders.
    pub size: String,
    /// See `size`.
    pub seed: u64,
    /// Seconds it all took.
    pub seconds: f64,
    /// See `size`.
    pub folders: usize,
    /// Each subject: `plain` (no index), `closure`, `rowdeck`.
    pub subjects: BTreeMap<&'static str, Measured>,
    /// Reads, with and without rules.
    pub reads: Reads,
    /// The gate on rowdeck's database.
    pub gate: RunResult,
    /// Milliseconds to compile the docs policy, and one of a thousand tables.
    pub compile_ms: (f64, f64),
    /// The ratios.
    pub targets: BTreeMap<&'static str, Target>,
}

/// What is measured beside the three subjects.
#[derive(Debug)]
pub(super) struct Beside {
    pub reads: Reads,
    pub gate: RunResult,
    pub compile_ms: (f64, f64),
}

impl VersusReport {
    pub(super) fn new(
        options: &Options,
        (started, seconds): (String, f64),
        environment: Environment,
        data: &Dataset,
        subjects: BTreeMap<&'static str, Measured>,
        beside: Beside,
    ) -> Self {
        let Beside { reads, gate, compile_ms } = beside;
        let none = Measured::default();
        let of = |name| subjects.get(name).unwrap_or(&none);
        let mut targets = targets(of("plain"), of("closure"), of("rowdeck"));
        targets.extend(reads.targets());
        for (name, target) in &gate.targets {
            targets.insert(gate_name(name), *target);
        }
        targets.insert("compile the docs policy, ms", Target::most(compile_ms.0, 2.0));
        targets.insert("compile a policy of 1,000 tables, ms", Target::most(compile_ms.1, 200.0));
        VersusReport {
            format: 1,
            tool: format!("rowdeck {}", env!("CARGO_PKG_VERSION")),
            scenario: "versus-closure",
            complete: subjects.values().all(|one| one.exact != Some(false)),
            started,
            environment,
            size: options.size.to_string(),
            seed: options.seed,
            seconds,
            folders: data.folders.len(),
            targets,
            subjects,
            reads,
            gate,
            compile_ms,
        }
    }

    /// The same in the format that all scenarios share.
    pub fn result(&self) -> RunResult {
        let exact = |(name, one): (&&str, &Measured)| match one.exact {
            Some(false) => Some(format!("the index of {name} is not exact")),
            _ => None,
        };
        let mut broken: Vec<String> = self.subjects.iter().filter_map(exact).collect();
        broken.extend(
            self.subjects
                .iter()
                .filter(|(_, one)| one.failed > 0)
                .map(|(name, one)| format!("{} statements of {name} failed", one.failed)),
        );
        let met = broken.is_empty();
        RunResult {
            complete: true,
            criterion: Verdict { words: VERSUS.criterion.words.to_owned(), met, broken },
            target: "a server of its own".to_owned(),
            started_at: self.started.clone(),
            duration_s: self.seconds,
            seed: self.seed,
            concurrency: 8,
            data: json!({ "size": self.size, "folders": self.folders }),
            targets: self.targets.iter().map(|(name, target)| ((*name).to_owned(), *target)).collect(),
            notes: self.text().lines().skip(1).take(1 + self.subjects.len()).map(str::to_owned).collect(),
            details: json!({
                "subjects": self.subjects, "reads": self.reads, "gate": self.gate,
                "compile_ms": { "docs": self.compile_ms.0, "thousand_tables": self.compile_ms.1 },
            }),
            ..RunResult::empty(VERSUS.name, self.environment.clone())
        }
    }

    /// True when every target was met.
    pub fn met(&self) -> bool {
        self.targets.values().all(|target| target.met)
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "versus-closure · {} · {} folders · seed {}", self.size, self.folders, self.seed);
        let _ = writeln!(
            out,
            "{:<10}{:>9}{:>12}{:>14}{:>14}{:>13}{:>14}{:>14}{:>8}",
            "",
            "build s",
            "index MB",
            "creates/s, 1",
            "creates/s, 8",
            "big move ms",
            "beside p50 ms",
            "beside max ms",
            "exact"
        );
        for (name, one) in &self.subjects {
            let cell = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.1}"));
            let _ = writeln!(
                out,
                "{name:<10}{:>9.2}{:>12.2}{:>14.0}{:>14.0}{:>13.1}{:>14}{:>14}{:>8}",
                one.build_seconds,
                one.index_bytes as f64 / 1e6,
                median(&one.creates_by_1),
                median(&one.creates_by_8),
                median(&one.big_moves),
                cell(one.beside.p50),
                cell(one.beside.max),
                match one.exact {
                    Some(true) => "yes",
                    Some(false) => "NO",
                    None => "–",
                },
            );
        }
        for (name, Target { value, target, met }) in &self.targets {
            let verdict = if *met { "met" } else { "missed" };
            let _ = writeln!(out, "{name:<34}{value:>10.2}   target {target:>6.2}   {verdict}");
        }
        out
    }
}

fn targets(plain: &Measured, closure: &Measured, rowdeck: &Measured) -> BTreeMap<&'static str, Target> {
    let least = |value: f64, target: f64| Target { value, target, met: value >= target };
    let most = |value: f64, target: f64| Target { value, target, met: value <= target };
    let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
    let big_move = ratio(median(&closure.big_moves), median(&rowdeck.big_moves));
    let mut targets = BTreeMap::from([
        ("big move, times faster", least(big_move, 10.0)),
        ("build, times faster", least(ratio(closure.build_seconds, rowdeck.build_seconds), 10.0)),
        ("bytes, share of closure's", most(ratio(rowdeck.index_bytes as f64, closure.index_bytes as f64), 0.1)),
    ]);
    for (name, ours, theirs) in [
        ("creates by 1, share of plain's", &rowdeck.creates_by_1, &plain.creates_by_1),
        ("creates by 8, share of plain's", &rowdeck.creates_by_8, &plain.creates_by_8),
    ] {
        targets.insert(name, least(ratio(median(ours), median(theirs)), 1.0 / 3.0));
    }
    let medians = |of: &Measured| {
        let rates: Vec<f64> = of.tree_writes_by_50.iter().map(|one| one.per_second).collect();
        median(&rates)
    };
    let wanted = (10.0 * medians(closure)).min(medians(plain) / 2.0);
    let p95s: Vec<f64> = rowdeck.tree_writes_by_50.iter().filter_map(|one| one.latency_ms.p95).collect();
    if wanted > 0.0 {
        // What is wanted is the lesser of ten times closure's and half of plain's.
        targets.insert("tree writes by 50, share of what is wanted", least(medians(rowdeck) / wanted, 1.0));
    }
    if !p95s.is_empty() {
        targets.insert("tree writes by 50, p95 ms", most(median(&p95s), 100.0));
    }
    if !rowdeck.thousand_ms.is_empty() {
        let times = ratio(median(&rowdeck.thousand_ms), median(&plain.thousand_ms));
        targets.insert("1,000 folders in one INSERT, times plain", most(times, 4.0));
    }
    if rowdeck.bulk_load_seconds > 0.0 {
        let times = ratio(rowdeck.bulk_load_seconds, plain.bulk_load_seconds);
        targets.insert("one COPY of folders, times plain", most(times, 4.0));
    }
    if rowdeck.verify_seconds > 0.0 {
        let faster = ratio(closure.build_seconds, rowdeck.verify_seconds);
        targets.insert("verify, times faster than a closure rebuild", least(faster, 20.0));
    }
    // Under 100 samples there is no 99th percentile; then the slowest is judged, and called that.
    match (rowdeck.beside.p99, rowdeck.beside.max) {
        (Some(p99), _) => targets.insert("creates beside big moves, p99 ms", most(p99, 50.0)),
        (None, Some(max)) => targets.insert("creates beside big moves, max ms", most(max, 50.0)),
        (None, None) => None,
    };
    targets
}

/// The gate's targets by names that stay.
fn gate_name(name: &str) -> &'static str {
    match name {
        "gate: reads, p95 ms" => "gate: reads, p95 ms",
        "gate: tree writes, p95 ms" => "gate: tree writes, p95 ms",
        _ => "gate: failed tree writes",
    }
}

/// The middle one, or the mean of the middle two; 0 of none.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |place: usize| sorted.get(place).copied().unwrap_or_default();
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { at(half) } else { (at(half.saturating_sub(1)) + at(half)) / 2.0 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[]).to_bits(), 0.0_f64.to_bits());
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
    }

    #[test]
    fn targets_are_judged_by_ratios() {
        let one = |build_seconds, index_bytes, creates: f64, big: f64| Measured {
            build_seconds,
            index_bytes,
            creates_by_1: vec![creates],
            creates_by_8: vec![creates],
            big_moves: vec![big],
            ..Measured::default()
        };
        let plain = one(0.0, 0, 900.0, 1.0);
        let targets = targets(&plain, &one(10.0, 1000, 200.0, 400.0), &one(2.0, 90, 250.0, 20.0));
        assert!(targets["big move, times faster"].met);
        assert!(!targets["build, times faster"].met);
        assert!(targets["bytes, share of closure's"].met);
        assert!(!targets["creates by 1, share of plain's"].met);
        assert_eq!(targets.len(), 5, "nothing is said of what was not measured");
    }
}
