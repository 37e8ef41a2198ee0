//! Latencies: recorded whole, merged and never averaged.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Latencies in microseconds, to three significant digits. Takes the same memory for ten as for ten million.
#[derive(Debug, Clone)]
pub struct Latencies(Option<Histogram<u64>>);

/// What is said of a set of latencies, in milliseconds. A percentile is `None` where too few were measured to have one:
/// the 99th of 60 is just the slowest under another name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Summary {
    /// How many were measured.
    pub n: u64,
    /// Half were at most this.
    pub p50: Option<f64>,
    /// 95 of 100 were at most this; from 20 on.
    pub p95: Option<f64>,
    /// 99 of 100 were at most this; from 100 on.
    pub p99: Option<f64>,
    /// The slowest.
    pub max: Option<f64>,
}

/// Beyond an hour a latency counts as an hour.
const LONGEST: u64 = 3_600_000_000;

impl Default for Latencies {
    fn default() -> Self {
        Latencies::new()
    }
}

impl Latencies {
    /// None yet.
    pub fn new() -> Self {
        // These bounds are within what the library takes; were they not, nothing would be recorded and `n` would say so.
        Latencies(Histogram::new_with_bounds(1, LONGEST, 3).ok())
    }

    /// Adds one.
    pub fn record(&mut self, latency: Duration) {
        let microseconds = u64::try_from(latency.as_micros()).unwrap_or(LONGEST).clamp(1, LONGEST);
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record(microseconds);
        }
    }

    /// Adds all of another's.
    pub fn merge(&mut self, other: &Latencies) {
        if let (Some(ours), Some(theirs)) = (&mut self.0, &other.0) {
            // Fails only for a value out of bounds, and both have the same bounds.
            let _ = ours.add(theirs);
        }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        if let Some(histogram) = &mut self.0 {
            // Not `clear`, which would keep the slowest.
            histogram.reset();
        }
    }

    /// How many.
    pub fn n(&self) -> u64 {
        self.0.as_ref().map_or(0, Histogram::len)
    }

    /// The value that this share of all are at most, in milliseconds; `None` when fewer were measured than it takes for
    /// one of them to lie beyond it.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let histogram = self.0.as_ref()?;
        let needed = (100.0 / (100.0 - percent).max(1e-9)).round().max(1.0);
        (histogram.len() as f64 >= needed).then(|| milliseconds(histogram.value_at_percentile(percent)))
    }

    /// The slowest, in milliseconds.
    pub fn max(&self) -> Option<f64> {
        self.0.as_ref().filter(|histogram| !histogram.is_empty()).map(|histogram| milliseconds(histogram.max()))
    }

    /// The mean, in milliseconds.
    pub fn mean(&self) -> Option<f64> {
        self.0.as_ref().filter(|histogram| !histogram.is_empty()).map(|histogram| histogram.mean() / 1000.0)
    }

    /// All that is usually said.
    pub fn summary(&self) -> Summary {
        Summary {
            n: self.n(),
            p50: self.percentile(50.0),
            p95: self.percentile(95.0),
            p99: self.percentile(99.0),
            max: self.max(),
        }
    }

    /// Every value recorded, in microseconds, with how often: enough to merge results of several runs later.
    pub fn buckets(&self) -> Vec<(u64, u64)> {
        let recorded = self.0.iter().flat_map(Histogram::iter_recorded);
        recorded.map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value())).collect()
    }
}

fn milliseconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    fn of(milliseconds: impl IntoIterator<Item = u64>) -> Latencies {
        let mut latencies = Latencies::new();
        for one in milliseconds {
            latencies.record(Duration::from_millis(one));
        }
        latencies
    }

    #[test]
    fn percentiles_need_enough_samples() {
        assert_eq!(of([]).summary(), Summary::default());
        let few = of(1..=99).summary();
        assert_eq!(few.n, 99);
        assert!(few.p95.is_some());
        assert_eq!(few.p99, None, "the 99th percentile of 99 is refused");
        assert!(of(1..=100).summary().p99.is_some());
        assert_eq!(of(1..=19).summary().p95, None);
        assert_eq!(of([7]).summary().p50, None, "one sample has no median, only a slowest");
        assert_eq!(of([7]).summary().max.unwrap().round(), 7.0);
    }

    #[test]
    fn percentiles_are_right_to_three_digits_and_never_fall() {
        let latencies = of((1..=1000).rev());
        let summary = latencies.summary();
        for (value, expected) in [(summary.p50, 500.0), (summary.p95, 950.0), (summary.p99, 990.0)] {
            assert!((value.unwrap() - expected).abs() < expected * 0.002, "{summary:?}");
        }
        let mut last = 0.0;
        for tenth in 0..=1000 {
            let Some(value) = latencies.percentile(f64::from(tenth) / 10.0) else { continue };
            assert!(value >= last, "{tenth}");
            last = value;
        }
        assert!(last <= latencies.max().unwrap());
    }

    #[test]
    fn merging_is_not_averaging() {
        // 99 fast in one second, 99 slow in the next: an average of the two medians would be 50, and is no latency
        // anybody had.
        let mut both = of(std::iter::repeat_n(1, 99));
        both.merge(&of(std::iter::repeat_n(100, 101)));
        assert_eq!(both.n(), 200);
        assert!((both.percentile(50.0).unwrap() - 100.0).abs() < 0.2);
        assert!((both.percentile(40.0).unwrap() - 1.0).abs() < 0.01);
        let whole: u64 = both.buckets().iter().map(|(_, n)| n).sum();
        assert_eq!(whole, 200);
        both.clear();
        assert_eq!(both.summary(), Summary::default());
        both.record(Duration::from_millis(2));
        assert_eq!(both.max().unwrap().round(), 2.0, "the slowest is forgotten too");
    }

    #[test]
    fn an_endless_wait_is_kept_as_an_hour() {
        let mut latencies = Latencies::new();
        latencies.record(Duration::from_secs(100_000));
        latencies.record(Duration::ZERO);
        assert_eq!(latencies.n(), 2);
        assert!(latencies.max().unwrap() >= 3_600_000.0);
    }
}
