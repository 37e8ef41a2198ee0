//! Counting.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::snapshot::{BigMove, Class, ErrorCount, Kind, Operation, Phase, SERIES, Second, Slice, Snapshot};
use crate::bench::histogram::Latencies;
use crate::bench::schedule::LATE;

/// How an operation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It did what it should.
    Done,
    /// A read that showed nothing, or a no.
    Denied,
    /// It did not, and why: the SQLSTATE (or a word of our own), and the server's words.
    Failed { code: String, words: String },
}

impl Outcome {
    /// True when it did not do what it should.
    pub fn failed(&self) -> bool {
        matches!(self, Outcome::Failed { .. })
    }
}

/// The SQLSTATE of a statement that was cut off.
pub(super) const CUT_OFF: &str = "57014";

/// One operation that ended.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    pub kind: Kind,
    pub intended: Instant,
    pub started: Instant,
    pub ended: Instant,
    pub outcome: Outcome,
}

#[derive(Debug, Default)]
struct Tally {
    done: u64,
    denied: u64,
    failed: u64,
    timeouts: u64,
    latencies: KindLatencies,
}

/// Latencies of one kind of operation.
#[derive(Debug, Clone, Default)]
pub struct KindLatencies {
    /// From the intended start, of those that showed or wrote something.
    pub done: Latencies,
    /// Of those that were a no.
    pub denied: Latencies,
    /// Time on the connection alone, of both.
    pub service: Latencies,
}

impl KindLatencies {
    fn all(&self) -> Latencies {
        let mut all = self.done.clone();
        all.merge(&self.denied);
        all
    }
}

#[derive(Debug, Default)]
struct Group {
    done: u64,
    failed: u64,
    timeouts: u64,
    missed: u64,
    unstarted: u64,
    latency: Latencies,
    // The current second's.
    second: Slice,
    second_latency: Latencies,
}

struct Underway {
    began: Instant,
    ended: Option<Instant>,
    others: Latencies,
}

/// Everything counted so far.
pub(super) struct Recorder {
    started: Instant,
    stopped: Option<Instant>,
    tallies: BTreeMap<Kind, Tally>,
    reads: Group,
    writes: Group,
    errors: BTreeMap<String, ErrorCount>,
    big_moves: Vec<BigMove>,
    newest_move: Option<Underway>,
    second: u64,
    series: VecDeque<Second>,
    shown: Arc<Vec<Second>>,
    pub phase: Phase,
    pub reads_rate: f64,
    pub writes_rate: f64,
    pub connections: usize,
    pub note: Option<String>,
}

impl Recorder {
    pub fn new(started: Instant, reads_rate: f64, writes_rate: f64) -> Self {
        Recorder {
            started,
            stopped: None,
            tallies: BTreeMap::new(),
            reads: Group::default(),
            writes: Group::default(),
            errors: BTreeMap::new(),
            big_moves: Vec::new(),
            newest_move: None,
            second: 0,
            series: VecDeque::new(),
            shown: Arc::new(Vec::new()),
            phase: Phase::Running,
            reads_rate,
            writes_rate,
            connections: 0,
            note: None,
        }
    }

    /// Counts an operation.
    pub fn record(&mut self, ended: &Ended) {
        self.tick(ended.ended);
        let latency = ended.ended.saturating_duration_since(ended.intended);
        let tally = self.tallies.entry(ended.kind).or_default();
        let group = match ended.kind {
            Kind::BigMove => None,
            kind if kind.is_read() => Some(&mut self.reads),
            _ => Some(&mut self.writes),
        };
        let late = ended.started.saturating_duration_since(ended.intended) > LATE;
        match &ended.outcome {
            Outcome::Done | Outcome::Denied => {
                tally.done += 1;
                tally.denied += u64::from(ended.outcome == Outcome::Denied);
                let denied = ended.outcome == Outcome::Denied;
                let of = if denied { &mut tally.latencies.denied } else { &mut tally.latencies.done };
                of.record(latency);
                tally.latencies.service.record(ended.ended.saturating_duration_since(ended.started));
                if let Some(group) = group {
                    group.succeed(latency, late);
                }
            }
            Outcome::Failed { code, words } => {
                let timeout = code == CUT_OFF;
                tally.failed += 1;
                tally.timeouts += u64::from(timeout);
                if let Some(group) = group {
                    group.fail(timeout, late);
                }
                let count = self.errors.entry(code.clone()).or_default();
                count.count += 1;
                count.last.clone_from(words);
            }
        }
        if !ended.kind.is_read() && ended.kind != Kind::BigMove {
            self.beside_big_move(ended, latency);
        }
    }

    /// A tree write that was due or under way while the newest big move ran is one of its others, however it ended: a
    /// write that was cut off waited at least as long.
    fn beside_big_move(&mut self, ended: &Ended, latency: Duration) {
        if let Some(newest) = &mut self.newest_move
            && ended.ended >= newest.began
            && newest.ended.is_none_or(|end| ended.intended <= end)
        {
            newest.others.record(latency);
            if let Some(shown) = self.big_moves.last_mut() {
                shown.others = newest.others.summary();
            }
        }
    }

    /// A big move begins.
    pub fn begin_big_move(&mut self, began: Instant, folder: i64, to: Option<i64>, below: u64) {
        self.newest_move = Some(Underway { began, ended: None, others: Latencies::new() });
        self.big_moves.push(BigMove {
            at: began.saturating_duration_since(self.started).as_secs_f64(),
            folder,
            to,
            below,
            milliseconds: None,
            error: None,
            others: Latencies::new().summary(),
        });
    }

    /// It ended.
    pub fn end_big_move(&mut self, ended: &Ended) {
        self.record(ended);
        if let Some(newest) = &mut self.newest_move {
            newest.ended = Some(ended.ended);
        }
        if let Some(shown) = self.big_moves.last_mut() {
            let took = ended.ended.saturating_duration_since(ended.started);
            shown.milliseconds = Some(took.as_secs_f64() * 1000.0);
            if let Outcome::Failed { code, words } = &ended.outcome {
                shown.error = Some(format!("{words} [{code}]"));
            }
        }
    }

    /// Measuring is over; so many operations were due and not started.
    pub fn stop(&mut self, now: Instant, reads_unstarted: u64, writes_unstarted: u64) {
        self.tick(now);
        self.close_second();
        self.stopped = Some(now);
        self.reads.unstarted = reads_unstarted;
        self.writes.unstarted = writes_unstarted;
    }

    /// Closes the seconds that are over.
    pub fn tick(&mut self, now: Instant) {
        if self.stopped.is_some() {
            return;
        }
        let second = now.saturating_duration_since(self.started).as_secs();
        while self.second < second {
            self.close_second();
            self.second += 1;
        }
    }

    fn close_second(&mut self) {
        let begins = self.started + Duration::from_secs(self.second);
        let ends = begins + Duration::from_secs(1);
        let big_move =
            self.newest_move.as_ref().is_some_and(|m| m.began < ends && m.ended.is_none_or(|ended| ended >= begins));
        let second = Second { second: self.second, reads: self.reads.close(), writes: self.writes.close(), big_move };
        self.series.push_back(second);
        if self.series.len() > SERIES {
            self.series.pop_front();
        }
        self.shown = Arc::new(self.series.iter().copied().collect());
    }

    /// The run as it stands.
    pub fn snapshot(&mut self, now: Instant) -> Snapshot {
        self.tick(now);
        let elapsed = self.stopped.unwrap_or(now).saturating_duration_since(self.started).as_secs_f64();
        let operation = |kind: Kind| {
            let tally = self.tallies.get(&kind)?;
            Some(Operation {
                kind,
                done: tally.done,
                denied: tally.denied,
                failed: tally.failed,
                timeouts: tally.timeouts,
                latency: tally.latencies.all().summary(),
                service: tally.latencies.service.summary(),
            })
        };
        Snapshot {
            phase: self.phase.clone(),
            elapsed,
            reads_rate: self.reads_rate,
            writes_rate: self.writes_rate,
            series: Arc::clone(&self.shown),
            operations: Kind::ALL.into_iter().filter_map(operation).collect(),
            reads: self.reads.class(elapsed),
            writes: self.writes.class(elapsed),
            big_moves: self.big_moves.clone(),
            errors: self.errors.clone(),
            connections: self.connections,
            note: self.note.clone(),
        }
    }

    /// Every latency of a kind, for results that outlive the run.
    pub fn buckets(&self) -> BTreeMap<Kind, Vec<(u64, u64)>> {
        self.tallies.iter().map(|(kind, tally)| (*kind, tally.latencies.all().buckets())).collect()
    }

    /// The latencies themselves.
    pub fn latencies(&self) -> BTreeMap<Kind, KindLatencies> {
        self.tallies.iter().map(|(kind, tally)| (*kind, tally.latencies.clone())).collect()
    }
}

impl Group {
    fn succeed(&mut self, latency: Duration, late: bool) {
        self.done += 1;
        self.second.done += 1;
        self.latency.record(latency);
        self.second_latency.record(latency);
        self.miss(late);
    }

    fn fail(&mut self, timeout: bool, late: bool) {
        self.failed += 1;
        self.second.failed += 1;
        self.timeouts += u64::from(timeout);
        self.miss(late);
    }

    fn miss(&mut self, late: bool) {
        self.missed += u64::from(late);
        self.second.missed += u64::from(late);
    }

    fn close(&mut self) -> Slice {
        let slice = Slice { latency: self.second_latency.summary(), ..self.second };
        self.second = Slice::default();
        self.second_latency.clear();
        slice
    }

    fn class(&self, elapsed: f64) -> Class {
        Class {
            done: self.done,
            failed: self.failed,
            timeouts: self.timeouts,
            missed: self.missed,
            unstarted: self.unstarted,
            per_second: if elapsed > 0.0 { self.done as f64 / elapsed } else { 0.0 },
            latency: self.latency.summary(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn ended(start: Instant, kind: Kind, intended: u64, started: u64, end: u64, outcome: Outcome) -> Ended {
        let at = |milliseconds| start + ms(milliseconds);
        Ended { kind, intended: at(intended), started: at(started), ended: at(end), outcome }
    }

    fn failed(code: &str) -> Outcome {
        Outcome::Failed { code: code.to_owned(), words: "no".to_owned() }
    }

    #[test]
    fn latency_counts_from_the_intended_start() {
        let start = Instant::now();
        let mut recorder = Recorder::new(start, 1.0, 1.0);
        recorder.record(&ended(start, Kind::Create, 100, 1100, 1105, Outcome::Done));
        let snapshot = recorder.snapshot(start + ms(1200));
        let create = &snapshot.operations[0];
        assert_eq!(create.latency.max.unwrap().round(), 1005.0);
        assert_eq!(create.service.max.unwrap().round(), 5.0);
        assert_eq!(snapshot.writes.missed, 1);
        assert_eq!(snapshot.reads.missed, 0);
    }

    #[test]
    fn failures_are_counted_by_sqlstate_and_kept_out_of_latencies() {
        let start = Instant::now();
        let mut recorder = Recorder::new(start, 1.0, 1.0);
        recorder.record(&ended(start, Kind::Can, 0, 0, 4000, failed(CUT_OFF)));
        recorder.record(&ended(start, Kind::Can, 0, 0, 1, failed("42501")));
        recorder.record(&ended(start, Kind::Can, 0, 0, 1, failed("42501")));
        recorder.record(&ended(start, Kind::OpenFile, 0, 0, 1, Outcome::Denied));
        let snapshot = recorder.snapshot(start + ms(5000));
        assert_eq!(snapshot.errors["42501"].count, 2);
        assert_eq!(snapshot.errors[CUT_OFF].count, 1);
        assert_eq!((snapshot.reads.done, snapshot.reads.failed, snapshot.reads.timeouts), (1, 3, 1));
        assert_eq!(snapshot.reads.latency.n, 1);
        assert_eq!(snapshot.operations[0].kind, Kind::OpenFile);
        assert_eq!(snapshot.operations[0].denied, 1);
    }

    #[test]
    fn seconds_without_an_end_are_in_the_series_too() {
        let start = Instant::now();
        let mut recorder = Recorder::new(start, 1.0, 1.0);
        recorder.record(&ended(start, Kind::OpenFile, 0, 0, 10, Outcome::Done));
        recorder.record(&ended(start, Kind::OpenFile, 0, 0, 3500, Outcome::Done));
        let series = recorder.snapshot(start + ms(4200)).series;
        let done: Vec<u64> = series.iter().map(|s| s.reads.done).collect();
        assert_eq!(done, [1, 0, 0, 1]);
        assert_eq!(series[1].reads.latency.max, None);
        recorder.stop(start + ms(4300), 7, 0);
        let last = recorder.snapshot(start + ms(9000));
        assert_eq!(last.series.len(), 5, "the last, unfinished second, and none after the stop");
        assert_eq!(last.reads.unstarted, 7);
        assert!((last.elapsed - 4.3).abs() < 1e-6);
    }

    #[test]
    fn writes_beside_a_big_move_are_its_others() {
        let start = Instant::now();
        let mut recorder = Recorder::new(start, 1.0, 1.0);
        recorder.record(&ended(start, Kind::Create, 0, 0, 500, Outcome::Done));
        recorder.begin_big_move(start + ms(1000), 1, Some(2), 99);
        recorder.record(&ended(start, Kind::Create, 900, 900, 1100, Outcome::Done));
        recorder.end_big_move(&ended(start, Kind::BigMove, 1000, 1000, 1800, Outcome::Done));
        // Due while it ran, over after it.
        recorder.record(&ended(start, Kind::Move, 1200, 1200, 1900, failed("40001")));
        // Due after it; and a read.
        recorder.record(&ended(start, Kind::Create, 1801, 1801, 9000, Outcome::Done));
        recorder.record(&ended(start, Kind::OpenFile, 1200, 1200, 9000, Outcome::Done));
        let snapshot = recorder.snapshot(start + ms(9100));
        let big = &snapshot.big_moves[0];
        assert_eq!(big.others.n, 2);
        assert_eq!(big.others.max.unwrap().round(), 700.0);
        assert_eq!(big.milliseconds.unwrap().round(), 800.0);
        assert_eq!((big.at, big.to, big.below), (1.0, Some(2), 99));
        let marked: Vec<u64> = snapshot.series.iter().filter(|s| s.big_move).map(|s| s.second).collect();
        assert_eq!(marked, [1]);
    }
}
