//! The course of a run: prepare, measure, take back.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::app::{AppConnection, statement, timed};
use super::record::{Ended, Recorder};
use super::report::{Data, LiveReport};
use super::snapshot::{Kind, Phase, Snapshot};
use super::{Command, Handle, Options};
use crate::bench::cleanup::{Cleanup, delete_leftovers, take_back};
use crate::bench::environment::Environment;
use crate::bench::error::BenchError;
use crate::bench::guard;
use crate::bench::random::Rng;
use crate::bench::schedule::{Dispatcher, Ticket};
use crate::bench::world::{BigMovePlan, Chosen, World};
use crate::db::error::DbError;
use crate::db::target::Target;

/// How often a new state is published.
const PUBLISH: Duration = Duration::from_millis(200);

/// A big move may take longer than other statements, as it is what is being measured.
const BIG_MOVE_CUT_OFF: Duration = Duration::from_secs(60);

const READS: [Kind; 3] = [Kind::OpenFile, Kind::OpenFolder, Kind::Can];
const WRITES: [Kind; 3] = [Kind::Create, Kind::Move, Kind::Link];

/// Starts a run in the background.
pub fn start(options: Options) -> Handle {
    let (commands, receiver) = mpsc::channel(16);
    let first = Snapshot { reads_rate: options.reads, writes_rate: options.writes, ..Snapshot::default() };
    let (sender, snapshots) = watch::channel(first);
    let done = tokio::spawn(async move {
        let result = run(options, receiver, &sender).await;
        let phase = match &result {
            Ok(report) => match &report.failure {
                None => Phase::Ended,
                Some(why) => Phase::Failed { why: why.clone() },
            },
            Err(error) => Phase::Failed { why: error.to_string() },
        };
        sender.send_modify(|snapshot| snapshot.phase = phase);
        result
    });
    Handle { commands, snapshots, done }
}

/// What all tasks of a run share.
struct Shared {
    world: World,
    recorder: Mutex<Recorder>,
    stopping: AtomicBool,
    app: Target,
    cut_off: Duration,
}

impl Shared {
    fn recorder(&self) -> MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

/// Reads, or writes: who runs them and when.
struct Side {
    dispatcher: Dispatcher,
    tickets: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Ticket>>>,
    unstarted: Arc<AtomicU64>,
    workers: Vec<JoinHandle<()>>,
}

async fn run(
    options: Options,
    mut commands: mpsc::Receiver<Command>,
    sender: &watch::Sender<Snapshot>,
) -> Result<LiveReport, BenchError> {
    let owner = guard::open(&options.target).await?;
    let leftovers = delete_leftovers(&owner).await?;
    let environment = Environment::read(&owner).await?;
    let world = World::read(&owner, &guard::token()).await?;
    let (folders, files, users) = world.counts();
    let data = Data { folders, files_chosen_from: files, active_users: users };
    let app = options.app.clone().unwrap_or_else(|| options.target.clone());
    let readers = connections(&app, options.read_connections, options.cut_off, &READS).await?;
    let writers = connections(&app, options.write_connections, options.cut_off, &WRITES).await?;
    let started_at = guard::utc_now(&owner).await?;

    let started = Instant::now();
    let mut recorder = Recorder::new(started, options.reads, options.writes);
    recorder.connections = readers.len() + writers.len();
    if leftovers > 0 {
        recorder.note = Some(format!("removed {leftovers} folders that a run which was killed had left"));
    }
    let shared = Arc::new(Shared {
        world,
        recorder: Mutex::new(recorder),
        stopping: AtomicBool::new(false),
        app,
        cut_off: options.cut_off,
    });
    let seed = options.seed;
    let mut reads = side(&shared, started, options.reads, readers, seed, "reads", World::read_op)?;
    let mut writes = side(&shared, started, options.writes, writers, seed, "writes", World::write_op)?;

    control(&shared, &reads, &writes, &mut commands, sender).await;

    shared.stopping.store(true, Ordering::Relaxed);
    let read_rest = reads.finish().await;
    let write_rest = writes.finish().await;
    let (measured, buckets, latencies) = {
        let mut recorder = shared.recorder();
        recorder.stop(Instant::now(), read_rest, write_rest);
        recorder.phase = Phase::CleaningUp;
        (recorder.snapshot(Instant::now()), recorder.buckets(), recorder.latencies())
    };
    sender.send_replace(measured.clone());
    let taken_back = take_back(&owner, &options.target, &shared.world).await;
    let (cleanup, failure) = match taken_back {
        Ok(cleanup) => (cleanup, None),
        Err(error) => (Cleanup::default(), Some(format!("not everything written was removed: {error}"))),
    };
    let measured = Snapshot { phase: Phase::Ended, ..measured };
    Ok(LiveReport {
        format: 1,
        tool: format!("rowdeck {}", env!("CARGO_PKG_VERSION")),
        scenario: "live",
        complete: failure.is_none(),
        failure,
        started: started_at,
        target: options.target.describe(),
        environment,
        data,
        measured,
        buckets,
        latencies,
        seed,
        cleanup,
        statements: Kind::ALL.into_iter().map(|kind| (kind.word(), statement(kind))).collect::<BTreeMap<_, _>>(),
    })
}

/// Serves commands and publishes states until the run is to stop.
async fn control(
    shared: &Arc<Shared>,
    reads: &Side,
    writes: &Side,
    commands: &mut mpsc::Receiver<Command>,
    sender: &watch::Sender<Snapshot>,
) {
    let mut publish = interval(PUBLISH);
    publish.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut big_move: Option<JoinHandle<()>> = None;
    loop {
        tokio::select! {
            command = commands.recv() => match command {
                None | Some(Command::Stop) => break,
                Some(Command::SetRates { reads: read_rate, writes: write_rate }) => {
                    reads.dispatcher.set_rate(read_rate);
                    writes.dispatcher.set_rate(write_rate);
                    let mut recorder = shared.recorder();
                    recorder.reads_rate = read_rate;
                    recorder.writes_rate = write_rate;
                }
                Some(Command::BigMove) => {
                    if big_move.as_ref().is_some_and(|running| !running.is_finished()) {
                        shared.recorder().note = Some("a big move is under way already".to_owned());
                    } else {
                        big_move = Some(tokio::spawn(run_big_move(Arc::clone(shared))));
                    }
                }
            },
            _ = publish.tick() => {
                let snapshot = shared.recorder().snapshot(Instant::now());
                sender.send_replace(snapshot);
            }
        }
    }
    if let Some(running) = big_move
        && let Err(error) = running.await
    {
        shared.recorder().note = Some(format!("the big move ended unexpectedly: {error}"));
    }
}

/// The folder with the most below it into another root, or back home, on a connection of its own.
async fn run_big_move(shared: Arc<Shared>) {
    let say = |note: String| shared.recorder().note = Some(note);
    let Some(plan) = shared.world.big_move() else {
        return say("there is no second root to move the largest folder into".to_owned());
    };
    let connection = match open(&shared.app, BIG_MOVE_CUT_OFF, &[Kind::BigMove]).await {
        Ok(connection) => connection,
        Err(error) => return say(format!("no connection for the big move: {error}")),
    };
    let BigMovePlan { folder, below, user, .. } = plan;
    let to = shared.world.toggle_big_move(&plan);
    let chosen = Chosen { kind: Kind::BigMove, user, id: folder, other: to, name: String::new() };
    shared.recorder().begin_big_move(Instant::now(), folder, to, below);
    let timed = timed(&connection, &chosen).await;
    let ended = Ended {
        kind: Kind::BigMove,
        intended: timed.started,
        started: timed.started,
        ended: timed.ended,
        outcome: timed.ran.outcome,
    };
    if !ended.outcome.failed() {
        shared.world.big_moved(&plan, to);
    }
    shared.recorder().end_big_move(&ended);
}

type Choose = fn(&World, &mut Rng) -> Option<Chosen>;

fn side(
    shared: &Arc<Shared>,
    started: Instant,
    rate: f64,
    connections: Vec<AppConnection>,
    seed: u64,
    name: &'static str,
    choose: Choose,
) -> Result<Side, BenchError> {
    let (dispatcher, receiver) = Dispatcher::start(name, started, rate)
        .map_err(|error| BenchError::Db(DbError::io("cannot start a thread for the schedule", error)))?;
    let tickets = Arc::new(tokio::sync::Mutex::new(receiver));
    let unstarted = Arc::new(AtomicU64::new(0));
    let workers = connections
        .into_iter()
        .enumerate()
        .map(|(number, connection)| {
            let worker = Worker {
                shared: Arc::clone(shared),
                tickets: Arc::clone(&tickets),
                unstarted: Arc::clone(&unstarted),
                rng: Rng::split(seed, name, number as u64),
                choose,
                kinds: if name == "reads" { &READS } else { &WRITES },
            };
            tokio::spawn(worker.work(connection))
        })
        .collect();
    Ok(Side { dispatcher, tickets, unstarted, workers })
}

impl Side {
    /// Lets what was started end, and says how much was due and never started.
    async fn finish(&mut self) -> u64 {
        self.dispatcher.stop();
        for worker in self.workers.drain(..) {
            if let Err(error) = worker.await {
                tracing::error!("a connection's task ended unexpectedly: {error}");
            }
        }
        let mut left = self.unstarted.load(Ordering::Relaxed);
        let mut tickets = self.tickets.lock().await;
        while tickets.try_recv().is_ok() {
            left += 1;
        }
        left
    }
}

/// One connection and the task that uses it.
struct Worker {
    shared: Arc<Shared>,
    tickets: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<Ticket>>>,
    unstarted: Arc<AtomicU64>,
    rng: Rng,
    choose: Choose,
    kinds: &'static [Kind],
}

impl Worker {
    async fn work(mut self, mut connection: AppConnection) {
        while let Some(ticket) = self.next().await {
            if self.shared.stopping() {
                self.unstarted.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let Some(chosen) = (self.choose)(&self.shared.world, &mut self.rng) else { continue };
            let timed = timed(&connection, &chosen).await;
            let usable = timed.ran.usable;
            self.shared.recorder().record(&Ended {
                kind: chosen.kind,
                intended: ticket.intended,
                started: timed.started,
                ended: timed.ended,
                outcome: timed.ran.outcome,
            });
            if !usable {
                match self.reopen().await {
                    Some(another) => connection = another,
                    None => return,
                }
            }
        }
    }

    async fn next(&self) -> Option<Ticket> {
        self.tickets.lock().await.recv().await
    }

    /// Tries until there is a connection again or the run stops. What is due meanwhile waits, and its latency grows.
    async fn reopen(&self) -> Option<AppConnection> {
        while !self.shared.stopping() {
            match open(&self.shared.app, self.shared.cut_off, self.kinds).await {
                Ok(connection) => return Some(connection),
                Err(error) => self.shared.recorder().note = Some(format!("connecting again: {error}")),
            }
            sleep(Duration::from_millis(250)).await;
        }
        None
    }
}

async fn open(app: &Target, cut_off: Duration, kinds: &[Kind]) -> Result<AppConnection, DbError> {
    AppConnection::open(app, cut_off.as_millis(), kinds).await
}

async fn connections(
    app: &Target,
    count: usize,
    cut_off: Duration,
    kinds: &[Kind],
) -> Result<Vec<AppConnection>, DbError> {
    try_join_all((0..count.max(1)).map(|_| open(app, cut_off, kinds))).await
}
