//! Two subjects in turns, their ratios with an interval, and how much the first one differs from itself.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use super::environment::Environment;
use super::error::BenchError;
use super::result::{FORMAT_VERSION, RunResult};
use super::run::{self, Plan, say};
use crate::db::cancel::Stop;
use crate::db::progress::Reporter;

type Measure = fn(&RunResult) -> Option<f64>;

/// What is compared. Never the slowest: one sample says nothing about a subject.
const MEASURES: [(&str, Measure); 3] = [
    ("throughput_per_s", |result| Some(result.throughput_per_s)),
    ("p50_ms", |result| result.latency_ms.p50),
    ("p95_ms", |result| result.latency_ms.p95),
];

/// The result.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The program and its version.
    pub tool: String,
    /// Version of the format.
    pub format_version: u32,
    /// Always true: what tells a comparison from a result.
    pub comparison: bool,
    /// Which scenario.
    pub scenario: String,
    /// True when every round ran.
    pub complete: bool,
    /// Why it is not complete.
    pub failure: Option<String>,
    /// The first subject.
    pub a: String,
    /// The second.
    pub b: String,
    /// Rounds that ran whole.
    pub rounds: usize,
    /// The second in relation to the first.
    pub ratios: BTreeMap<String, Ratio>,
    /// The first in relation to itself: differences smaller than these are noise.
    pub noise: BTreeMap<String, Ratio>,
    /// What it ran on.
    pub environment: Environment,
}

/// A ratio with its interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ratio {
    /// The geometric mean of the rounds' ratios.
    pub ratio: f64,
    /// From here ...
    pub low: f64,
    /// ... to here with 95% confidence.
    pub high: f64,
    /// Each round's.
    pub pairs: Vec<f64>,
    /// What it says.
    pub verdict: &'static str,
}

impl Comparison {
    /// 0, or 1 when it is not complete: a comparison passes no judgement.
    pub fn exit_code(&self) -> u8 {
        u8::from(!self.complete)
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = format!("{} · {} rounds\n  a: {}\n  b: {}\n", self.scenario, self.rounds, self.a, self.b);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{:<18}{:>8}   {:<18}{:<20}a beside itself", "", "b / a", "95% interval", "");
        for (name, one) in &self.ratios {
            let noise = self.noise.get(name);
            let noise = noise.map_or_else(|| "–".to_owned(), |one| format!("{:.3} to {:.3}", one.low, one.high));
            let interval = format!("{:.3} to {:.3}", one.low, one.high);
            let _ = writeln!(out, "{name:<18}{:>8.3}   {interval:<18}{:<20}{noise}", one.ratio, one.verdict);
        }
        if let Some(failure) = &self.failure {
            let _ = writeln!(out, "incomplete: {failure}");
        }
        out
    }
}

/// Measures a, b, a in each round, so that whatever changes slowly touches both alike.
pub async fn run(
    (a, a_name): (&Plan, &str),
    (b, b_name): (&Plan, &str),
    rounds: usize,
    stop: &Stop,
    reporter: &Reporter,
) -> Result<Comparison, BenchError> {
    let mut triples: Vec<[RunResult; 3]> = Vec::new();
    let mut failure = None;
    let mut environment = None;
    for round in 1..=rounds {
        match triple(a, b, (round, rounds), stop, reporter).await {
            Ok(triple) => {
                failure = triple.iter().find_map(|one| one.failure.clone());
                environment.get_or_insert_with(|| triple[0].environment.clone());
                if failure.is_some() {
                    break;
                }
                triples.push(triple);
            }
            Err(error) if triples.is_empty() => return Err(error),
            Err(error) => {
                failure = Some(error.to_string());
                break;
            }
        }
    }
    let mut ratios = BTreeMap::new();
    let mut noise = BTreeMap::new();
    for (name, of) in MEASURES {
        let more_is_better = name == "throughput_per_s";
        let itself = ratio(triples.iter().filter_map(|[first, _, second]| Some(of(second)? / of(first)?)).collect());
        let other = ratio(
            triples
                .iter()
                .filter_map(|[first, other, second]| Some(of(other)? / (of(first)? * of(second)?).sqrt()))
                .collect(),
        );
        let (Some(mut itself), Some(mut other)) = (itself, other) else { continue };
        other.verdict = verdict(&other, &itself, more_is_better);
        itself.verdict = "no difference";
        ratios.insert(name.to_owned(), other);
        noise.insert(name.to_owned(), itself);
    }
    Ok(Comparison {
        tool: format!("rowdeck {}", env!("CARGO_PKG_VERSION")),
        format_version: FORMAT_VERSION,
        comparison: true,
        scenario: a.scenario.name.to_owned(),
        complete: failure.is_none(),
        failure,
        a: a_name.to_owned(),
        b: b_name.to_owned(),
        rounds: triples.len(),
        ratios,
        noise,
        environment: environment.unwrap_or_else(Environment::unknown),
    })
}

async fn triple(
    a: &Plan,
    b: &Plan,
    (round, of): (usize, usize),
    stop: &Stop,
    reporter: &Reporter,
) -> Result<[RunResult; 3], BenchError> {
    say(reporter, format!("round {round} of {of}")).await;
    let quiet = Reporter::silent();
    let first = run::run(a, stop, &quiet).await?;
    let other = run::run(b, stop, &quiet).await?;
    let second = run::run(a, stop, &quiet).await?;
    Ok([first, other, second])
}

/// Student's t for 95% of both sides, by degrees of freedom.
const T: [f64; 20] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086,
];

/// The geometric mean and its interval; `None` of fewer than two rounds, which have no interval.
fn ratio(pairs: Vec<f64>) -> Option<Ratio> {
    let logs: Vec<f64> = pairs.iter().filter(|pair| pair.is_finite() && **pair > 0.0).map(|pair| pair.ln()).collect();
    if logs.len() < 2 {
        return None;
    }
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let t = T.get(logs.len() - 2).copied().unwrap_or(1.96);
    let half = t * (variance / n).sqrt();
    let (ratio, low, high) = (mean.exp(), (mean - half).exp(), (mean + half).exp());
    Some(Ratio { ratio, low, high, pairs, verdict: "no difference" })
}

fn verdict(ratio: &Ratio, noise: &Ratio, more_is_better: bool) -> &'static str {
    if ratio.low <= 1.0 && ratio.high >= 1.0 {
        return "no difference";
    }
    if ratio.ratio >= noise.low.min(1.0 / noise.high) && ratio.ratio <= noise.high.max(1.0 / noise.low) {
        return "within the noise";
    }
    if (ratio.ratio > 1.0) == more_is_better { "faster" } else { "slower" }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    #[test]
    fn ratios_have_intervals_and_are_judged_beside_the_noise() {
        assert!(ratio(vec![2.0]).is_none(), "one round has no interval");
        let twice = ratio(vec![2.0, 2.1, 1.9, 2.0]).unwrap();
        assert!(twice.low < 2.0 && twice.high > 2.0 && twice.low > 1.8 && twice.high < 2.2, "{twice:?}");
        let quiet = ratio(vec![1.0, 1.01, 0.99, 1.0]).unwrap();
        assert_eq!(verdict(&twice, &quiet, false), "slower");
        assert_eq!(verdict(&twice, &quiet, true), "faster");
        assert_eq!(verdict(&quiet, &quiet, true), "no difference");
        let loud = ratio(vec![0.4, 2.5, 0.5, 2.0]).unwrap();
        assert_eq!(verdict(&twice, &loud, false), "within the noise");
    }
}
