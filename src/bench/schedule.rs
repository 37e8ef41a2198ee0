//! Arrivals: when operations are due, whoever is still busy.
//!
//! Callers do not wait for each other. If the server stalls for a second at 400 reads a second, 400 callers wait, the
//! first for a second and the last for a moment; a load generator that sends the next read only after the last one
//! came back would report one slow read. So every operation has its intended start, set by the rate alone, and its
//! latency is counted from there.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

/// Starts that are later than this count as missed: every connection was busy, or the machine was.
pub const LATE: Duration = Duration::from_millis(5);

/// When operations are due, as time since the start of the run.
#[derive(Debug, Clone)]
pub struct Schedule {
    from: Duration,
    rate: f64,
    taken: u64,
}

impl Schedule {
    /// Arrivals at a steady rate a second from the start of the run on. No arrivals at a rate of zero.
    pub fn new(rate: f64) -> Self {
        Schedule { from: Duration::ZERO, rate: sane(rate), taken: 0 }
    }

    /// The rate.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// When the next operation is due; `None` at a rate of zero.
    pub fn next(&self) -> Option<Duration> {
        // Computed from the count and not by adding intervals up, so that nothing drifts.
        (self.rate > 0.0).then(|| self.from + Duration::from_secs_f64(self.taken as f64 / self.rate))
    }

    /// Takes the next operation if it is due by `now`.
    pub fn take(&mut self, now: Duration) -> Option<Duration> {
        let due = self.next().filter(|due| *due <= now)?;
        self.taken += 1;
        Some(due)
    }

    /// Goes on at another rate: the first arrival comes one interval after `now`.
    pub fn set_rate(&mut self, now: Duration, rate: f64) {
        self.from = now;
        self.rate = sane(rate);
        self.taken = 1;
    }
}

/// A rate that can be scheduled: not negative, not more than a million a second, a number.
fn sane(rate: f64) -> f64 {
    if rate.is_finite() { rate.clamp(0.0, 1e6) } else { 0.0 }
}

/// An operation that is due.
#[derive(Debug, Clone, Copy)]
pub struct Ticket {
    /// When it was to start.
    pub intended: Instant,
}

/// Hands out tickets at their times, from a thread of its own: a timer of the async runtime is up to a millisecond
/// late, and that would be counted as latency.
#[derive(Debug)]
pub struct Dispatcher {
    state: Arc<Mutex<State>>,
    thread: Thread,
    handle: Option<thread::JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    schedule: Schedule,
    stopped: bool,
    started: Instant,
}

impl Dispatcher {
    /// Starts handing out.
    pub fn start(
        name: &str,
        started: Instant,
        rate: f64,
    ) -> std::io::Result<(Dispatcher, mpsc::UnboundedReceiver<Ticket>)> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let state = Arc::new(Mutex::new(State { schedule: Schedule::new(rate), stopped: false, started }));
        let for_thread = Arc::clone(&state);
        let handle =
            thread::Builder::new().name(format!("bench {name}")).spawn(move || dispatch(&for_thread, &sender))?;
        Ok((Dispatcher { state, thread: handle.thread().clone(), handle: Some(handle) }, receiver))
    }

    /// Goes on at another rate.
    pub fn set_rate(&self, rate: f64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = state.started.elapsed();
        state.schedule.set_rate(now, rate);
        drop(state);
        self.thread.unpark();
    }

    /// Hands out nothing more; the receiver ends after what was handed out before.
    pub fn stop(&mut self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).stopped = true;
        self.thread.unpark();
        if let Some(handle) = self.handle.take()
            && handle.join().is_err()
        {
            tracing::error!("the thread that hands out operations panicked");
        }
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        self.stop();
    }
}

fn dispatch(state: &Mutex<State>, sender: &mpsc::UnboundedSender<Ticket>) {
    loop {
        let mut held = state.lock().unwrap_or_else(PoisonError::into_inner);
        if held.stopped {
            return;
        }
        let now = held.started.elapsed();
        if let Some(due) = held.schedule.take(now) {
            let intended = held.started + due;
            drop(held);
            if sender.send(Ticket { intended }).is_err() {
                return;
            }
            continue;
        }
        let next = held.schedule.next();
        drop(held);
        // A spurious wake-up, or one for a new rate, goes round the loop once more.
        match next {
            Some(due) => thread::park_timeout(due.saturating_sub(now)),
            None => thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn drain(schedule: &mut Schedule, now: Duration) -> Vec<Duration> {
        std::iter::from_fn(|| schedule.take(now)).collect()
    }

    #[test]
    fn arrivals_keep_their_times_however_late_they_are_taken() {
        let mut schedule = Schedule::new(100.0);
        assert_eq!(drain(&mut schedule, Duration::ZERO), [Duration::ZERO]);
        assert_eq!(schedule.next(), Some(10 * MS));
        assert!(drain(&mut schedule, 9 * MS).is_empty());
        // Stalled for a second: everything that was due meanwhile is due since its own time.
        let due = drain(&mut schedule, 1000 * MS);
        assert_eq!(due.len(), 100);
        assert_eq!(due[0], 10 * MS);
        assert_eq!(due[99], 1000 * MS);
    }

    #[test]
    fn a_day_of_arrivals_does_not_drift() {
        let mut schedule = Schedule::new(3.0);
        schedule.taken = 3 * 86_400;
        assert_eq!(schedule.next(), Some(Duration::from_secs(86_400)));
    }

    #[test]
    fn a_new_rate_holds_from_now_on() {
        let mut schedule = Schedule::new(1.0);
        drain(&mut schedule, 500 * MS);
        schedule.set_rate(500 * MS, 10.0);
        assert_eq!(drain(&mut schedule, 700 * MS), [600 * MS, 700 * MS]);
        schedule.set_rate(700 * MS, 0.0);
        assert_eq!(schedule.next(), None);
        assert!(drain(&mut schedule, Duration::from_secs(100)).is_empty());
        schedule.set_rate(Duration::from_secs(100), 1.0);
        assert_eq!(schedule.next(), Some(Duration::from_secs(101)));
    }

    #[test]
    fn senseless_rates_schedule_nothing() {
        for rate in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
            assert_eq!(Schedule::new(rate).next(), None, "{rate}");
        }
    }

    #[test]
    fn the_dispatcher_hands_out_what_is_due_and_stops() {
        let started = Instant::now();
        let (mut dispatcher, mut receiver) = Dispatcher::start("test", started, 200.0).unwrap();
        let first: Vec<Ticket> = (0..5).map(|_| receiver.blocking_recv().unwrap()).collect();
        for (number, ticket) in first.iter().enumerate() {
            assert_eq!(ticket.intended - started, 5 * MS * number as u32);
        }
        dispatcher.set_rate(0.0);
        dispatcher.stop();
        while let Some(ticket) = receiver.blocking_recv() {
            assert!(ticket.intended >= started);
        }
    }
}
