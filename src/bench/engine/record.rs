//! Counting by label.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::bench::histogram::Latencies;
use crate::bench::scenario::{Operation, Outcome, Trouble};
use crate::db::error::DbError;

/// What ended with one label.
#[derive(Debug, Clone, Default)]
pub struct OutcomeTally {
    /// How often.
    pub count: u64,
    /// How long those took, failures too: what a refusal costs is worth knowing.
    pub latency: Latencies,
    /// The last words about it, of the server or of the scenario.
    pub words: Option<String>,
}

/// Everything counted.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// By label.
    pub outcomes: BTreeMap<String, OutcomeTally>,
    /// Of all that came to an answer: from the intended start in an open loop, from the start in a closed one.
    pub latency: Latencies,
    /// Time on the connection alone.
    pub service: Latencies,
    /// The first operation of each connection.
    pub cold: Latencies,
    /// Starts more than 5 ms late: no connection was free, or the machine was busy.
    pub missed: u64,
    /// Due and never started.
    pub unstarted: u64,
    /// Cut off by the end, and not counted.
    pub unfinished: u64,
}

impl Tally {
    /// Counts one.
    pub(super) fn record(&mut self, ended: &Labelled, latency: Duration, service: Duration) {
        let tally = self.outcomes.entry(ended.outcome.label.clone()).or_default();
        tally.count += 1;
        tally.latency.record(latency);
        if ended.outcome.words.is_some() {
            tally.words.clone_from(&ended.outcome.words);
        }
        if !ended.failed {
            self.latency.record(latency);
            self.service.record(service);
        }
    }

    /// All that ended.
    pub fn operations(&self) -> u64 {
        self.outcomes.values().map(|one| one.count).sum()
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &Tally) {
        for (label, theirs) in &other.outcomes {
            let ours = self.outcomes.entry(label.clone()).or_default();
            ours.count += theirs.count;
            ours.latency.merge(&theirs.latency);
            if theirs.words.is_some() {
                ours.words.clone_from(&theirs.words);
            }
        }
        self.latency.merge(&other.latency);
        self.service.merge(&other.service);
        self.cold.merge(&other.cold);
        self.missed += other.missed;
        self.unstarted += other.unstarted;
        self.unfinished += other.unfinished;
    }
}

/// An operation's label, and whether it is a failure: its transaction may be open, and its time is no answer's time.
#[derive(Debug)]
pub(super) struct Labelled {
    pub outcome: Outcome,
    pub failed: bool,
}

/// The SQLSTATE of a statement that was cut off.
const CUT_OFF: &str = "57014";

pub(super) fn label(ended: Operation, lost: bool) -> Labelled {
    let error = match ended {
        Ok(outcome) => return Labelled { failed: outcome.label.ends_with("invariant_violation"), outcome },
        Err(Trouble::Other(words)) => {
            let outcome = Outcome { label: "failed".to_owned(), words: Some(words) };
            return Labelled { outcome, failed: true };
        }
        Err(Trouble::Database(error)) => error,
    };
    let label = match error.code() {
        Some(code) if code.code() == CUT_OFF => "timeout".to_owned(),
        Some(code) => format!("sqlstate_{}", code.code()),
        None if lost => "lost".to_owned(),
        None => "client".to_owned(),
    };
    let words = match DbError::from(error) {
        DbError::Server(refusal) => crate::text::line(&refusal.message).into_owned(),
        other => other.to_string(),
    };
    Labelled { outcome: Outcome { label, words: Some(words) }, failed: true }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    #[test]
    fn every_label_has_its_own_latencies_and_failures_stay_out_of_the_whole() {
        let mut tally = Tally::default();
        let ms = Duration::from_millis;
        for _ in 0..3 {
            tally.record(&label(Ok(Outcome::ok()), false), ms(10), ms(5));
        }
        tally.record(&label(Ok(Outcome::violation("row 7")), false), ms(900), ms(900));
        tally.record(&label(Err(Trouble::Other("no".into())), false), ms(900), ms(900));
        assert_eq!(tally.operations(), 5);
        assert_eq!(tally.latency.n(), 3);
        assert!(tally.latency.max().unwrap() < 20.0);
        assert_eq!(tally.outcomes["invariant_violation"].words.as_deref(), Some("row 7"));
        assert!(tally.outcomes["failed"].latency.max().unwrap() > 800.0);
        let mut both = tally.clone();
        both.merge(&tally);
        assert_eq!((both.operations(), both.outcomes["ok"].latency.n()), (10, 6));
    }
}
