//! Drives a workload: warm up, measure in windows, stop.
//!
//! Without a rate each connection starts its next operation when the last one ended (a closed loop): what is measured
//! is service time, and it says so. With a rate operations are due at their times whoever is busy (an open loop), and
//! latency counts from when they were due.

mod record;
mod worker;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep;

pub use record::{OutcomeTally, Tally};
pub use worker::Worker;

use super::error::BenchError;
use super::random::Rng;
use super::scenario::{Setting, Workload};
use super::schedule::{Dispatcher, LATE, Ticket};
use crate::db::cancel::Stop;
use crate::db::error::DbError;
use crate::db::target::Target;
use record::label;

/// How to drive.
#[derive(Debug, Clone)]
pub struct Pace {
    /// Connections, each with one operation at a time.
    pub concurrency: usize,
    /// Operations a second; `None` for a closed loop.
    pub rate: Option<f64>,
    /// How long to warm up at least.
    pub warm_up: Duration,
    /// A statement that runs longer is cut off.
    pub cut_off: Duration,
    /// How long a connection may be gone before the run is given up.
    pub patience: Duration,
}

/// Warming up goes on while the last second differs from the one before by more than a tenth, at most so many times as
/// long as asked for.
const WARM_UP_AT_MOST: u32 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Warming,
    Measuring { since: Instant },
    Over,
}

struct Recorder {
    phase: Phase,
    tally: Tally,
    /// Operations ended, whatever the phase.
    ended: u64,
}

struct Shared {
    workload: Arc<dyn Workload>,
    recorder: Mutex<Recorder>,
    stopping: AtomicBool,
    unstarted: AtomicU64,
    lost: Mutex<Option<String>>,
    app: Target,
    open_loop: bool,
    patience: Duration,
}

impl Shared {
    fn recorder(&self) -> MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lost(&self) -> MutexGuard<'_, Option<String>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

type Tickets = Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Ticket>>>;

/// A workload under way.
pub struct Engine {
    shared: Arc<Shared>,
    dispatcher: Option<(Dispatcher, Tickets)>,
    workers: Vec<JoinHandle<()>>,
    warm_up: Duration,
    /// Seconds it warmed up.
    pub warmed_up: f64,
    /// Whether the speed had settled by then.
    pub settled: bool,
}

/// One window.
#[derive(Debug)]
pub struct Window {
    /// Seconds measured.
    pub seconds: f64,
    /// What was counted.
    pub tally: Tally,
    /// Why it is not complete.
    pub failure: Option<String>,
}

impl Engine {
    /// Connects and starts warming up.
    pub async fn start(workload: Arc<dyn Workload>, setting: &Setting, pace: &Pace) -> Result<Engine, BenchError> {
        let app = setting.target.clone();
        let mut connected = Vec::new();
        for number in 0..pace.concurrency.max(1) {
            let rng = Rng::split(setting.seed, "worker", number as u64);
            connected.push(Worker::connect(&app, pace.cut_off, number, rng).await?);
        }
        let shared = Arc::new(Shared {
            workload,
            recorder: Mutex::new(Recorder { phase: Phase::Warming, tally: Tally::default(), ended: 0 }),
            stopping: AtomicBool::new(false),
            unstarted: AtomicU64::new(0),
            lost: Mutex::new(None),
            app,
            open_loop: pace.rate.is_some(),
            patience: pace.patience,
        });
        let dispatcher = match pace.rate {
            None => None,
            Some(rate) => {
                let (dispatcher, receiver) = Dispatcher::start("load", Instant::now(), rate)
                    .map_err(|error| BenchError::Db(DbError::io("cannot start a thread for the schedule", error)))?;
                Some((dispatcher, Arc::new(tokio::sync::Mutex::new(receiver))))
            }
        };
        let tickets = dispatcher.as_ref().map(|(_, tickets)| Arc::clone(tickets));
        let workers = connected
            .into_iter()
            .map(|worker| tokio::spawn(work(Arc::clone(&shared), tickets.clone(), worker)))
            .collect();
        Ok(Engine { shared, dispatcher, workers, warm_up: pace.warm_up, warmed_up: 0.0, settled: false })
    }

    /// Waits until the speed has settled. Says why not, when the run was stopped before.
    pub async fn warm_up(&mut self, stop: &Stop) -> Result<(), String> {
        let began = Instant::now();
        let step = (self.warm_up / 4).clamp(Duration::from_millis(50), Duration::from_secs(1));
        let mut before: Option<u64> = None;
        let mut ended = self.shared.recorder().ended;
        loop {
            self.wait(step, stop).await?;
            let now = self.shared.recorder().ended;
            let made = now - ended;
            ended = now;
            // Where nothing ends yet, nothing has settled.
            let near = |before: u64| before > 0 && (made as f64 - before as f64).abs() <= before as f64 / 10.0;
            let settled = before.is_some_and(near);
            before = Some(made);
            let long_enough = began.elapsed() >= self.warm_up;
            if long_enough && (settled || began.elapsed() >= self.warm_up * WARM_UP_AT_MOST) {
                self.settled = settled;
                break;
            }
        }
        self.warmed_up = began.elapsed().as_secs_f64();
        let mut recorder = self.shared.recorder();
        let cold = std::mem::take(&mut recorder.tally.cold);
        recorder.tally = Tally { cold, ..Tally::default() };
        recorder.phase = Phase::Measuring { since: Instant::now() };
        Ok(())
    }

    /// Measures for so long; with `until`, at most so much longer until that is true of what was counted. The last
    /// window also waits for what an open loop has started.
    pub async fn window(
        &mut self,
        length: Duration,
        last: bool,
        until: Option<(Duration, impl Fn(&Tally) -> bool)>,
        stop: &Stop,
        mut tell: impl FnMut(f64, &Tally),
    ) -> Window {
        let began = Instant::now();
        let mut failure = None;
        while began.elapsed() < length {
            let left = length.saturating_sub(began.elapsed()).min(Duration::from_secs(1));
            if let Err(why) = self.wait(left, stop).await {
                failure = Some(why);
                break;
            }
            tell(began.elapsed().as_secs_f64(), &self.shared.recorder().tally);
        }
        if let Some((longer, enough)) = until {
            while failure.is_none() && began.elapsed() < length + longer && !enough(&self.shared.recorder().tally) {
                failure = self.wait(Duration::from_millis(50), stop).await.err();
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        if last || failure.is_some() {
            self.end().await;
        }
        let mut tally = std::mem::take(&mut self.shared.recorder().tally);
        tally.unstarted += self.shared.unstarted.swap(0, Ordering::Relaxed);
        Window { seconds, tally, failure }
    }

    async fn wait(&self, how_long: Duration, stop: &Stop) -> Result<(), String> {
        tokio::select! {
            () = sleep(how_long) => {}
            () = stop.wait() => return Err("stopped".to_owned()),
        }
        match self.shared.lost().as_ref() {
            Some(why) => Err(format!("the server was lost: {why}")),
            None => Ok(()),
        }
    }

    /// Starts nothing more and waits for what runs. In a closed loop that is not counted.
    pub async fn end(&mut self) {
        if !self.shared.open_loop {
            self.shared.recorder().phase = Phase::Over;
        }
        self.shared.stopping.store(true, Ordering::Relaxed);
        if let Some((dispatcher, _)) = &mut self.dispatcher {
            dispatcher.stop();
        }
        for worker in self.workers.drain(..) {
            if let Err(error) = worker.await {
                self.shared.lost().get_or_insert(format!("a connection's task ended: {error}"));
            }
        }
        if let Some((_, tickets)) = &self.dispatcher {
            let mut tickets = tickets.lock().await;
            while tickets.try_recv().is_ok() {
                self.shared.unstarted.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.shared.recorder().phase = Phase::Over;
    }
}

async fn work(shared: Arc<Shared>, tickets: Option<Tickets>, mut worker: Worker) {
    let mut first = true;
    while !shared.stopping() {
        let intended = match &tickets {
            None => None,
            Some(tickets) => match tickets.lock().await.recv().await {
                Some(ticket) => Some(ticket.intended),
                None => return,
            },
        };
        if shared.stopping() {
            shared.unstarted.fetch_add(u64::from(intended.is_some()), Ordering::Relaxed);
            return;
        }
        let started = Instant::now();
        let ended = shared.workload.operate(&mut worker).await;
        let over = Instant::now();
        let outcome = label(ended, worker.lost());
        let usable = !worker.lost() && (!outcome.failed || worker.roll_back().await);
        {
            let mut recorder = shared.recorder();
            recorder.ended += 1;
            let service = over.saturating_duration_since(started);
            if first {
                recorder.tally.cold.record(service);
                first = false;
            }
            let due = intended.unwrap_or(started);
            match recorder.phase {
                Phase::Measuring { since } if due >= since => {
                    let latency = over.saturating_duration_since(due);
                    recorder.tally.record(&outcome, latency, service);
                    recorder.tally.missed += u64::from(started.saturating_duration_since(due) > LATE);
                }
                Phase::Over => recorder.tally.unfinished += 1,
                _ => {}
            }
        }
        if !usable && !reconnect(&shared, &mut worker).await {
            return;
        }
    }
}

/// Tries until there is a connection again. What is due meanwhile waits, and its latency grows. False when the run
/// stops, or is given up.
async fn reconnect(shared: &Shared, worker: &mut Worker) -> bool {
    let began = Instant::now();
    while !shared.stopping() {
        match worker.reconnect(&shared.app).await {
            Ok(()) => return true,
            Err(error) if began.elapsed() > shared.patience => {
                shared.lost().get_or_insert(error.to_string());
                return false;
            }
            Err(error) => tracing::debug!("connecting again: {error}"),
        }
        sleep(Duration::from_millis(250)).await;
    }
    false
}
