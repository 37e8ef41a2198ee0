//! The ratios, and whether they meet what was aimed for.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::Options;
use crate::bench::generate::Dataset;
use crate::bench::histogram::Summary;
use crate::bench::live::Environment;

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
    /// See `size`.
    pub folders: usize,
    /// Each subject: `plain` (no index), `closure`, `rowdeck`.
    pub subjects: BTreeMap<&'static str, Measured>,
    /// The ratios.
    pub targets: BTreeMap<&'static str, Target>,
}

impl VersusReport {
    pub(super) fn new(
        options: &Options,
        started: String,
        environment: Environment,
        data: &Dataset,
        subjects: BTreeMap<&'static str, Measured>,
    ) -> Self {
        let none = Measured::default();
        let of = |name| subjects.get(name).unwrap_or(&none);
        let targets = targets(of("plain"), of("closure"), of("rowdeck"));
        VersusReport {
            format: 1,
            tool: format!("rowdeck {}", env!("CARGO_PKG_VERSION")),
            scenario: "versus-closure",
            complete: subjects.values().all(|one| one.exact != Some(false)),
            started,
            environment,
            size: options.size.to_string(),
            seed: options.seed,
            folders: data.folders.len(),
            targets,
            subjects,
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
    // Under 100 samples there is no 99th percentile; then the slowest is judged, and called that.
    match (rowdeck.beside.p99, rowdeck.beside.max) {
        (Some(p99), _) => targets.insert("creates beside big moves, p99 ms", most(p99, 50.0)),
        (None, Some(max)) => targets.insert("creates beside big moves, max ms", most(max, 50.0)),
        (None, None) => None,
    };
    targets
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
