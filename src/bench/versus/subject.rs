//! One database: its index, and what is done to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Statement};

use super::report::Measured;
use super::{ended, seconds, writes};
use crate::bench::EXAMPLE_SCHEMA;
use crate::bench::error::BenchError;
use crate::bench::generate::Dataset;
use crate::bench::histogram::Latencies;
use crate::bench::load::{load_dataset, load_dataset_shares};
use crate::bench::random::Rng;
use crate::bench::scale::apply_policy;
use crate::bench::schedule::Dispatcher;
use crate::db::connect::{self, Session};
use crate::db::demo;
use crate::db::embedded::Server;
use crate::db::error::DbError;
use crate::db::progress::Reporter;
use crate::db::target::Target;

const OWNER: &str = "versus_owner";

/// Creates that arrive each second beside a big move.
const BESIDE: f64 = 50.0;

const CREATE: &str = "INSERT INTO app.folders (org_id, parent_id, owner_id, name)
    SELECT f.org_id, f.id, f.owner_id, 'versus' FROM app.folders f WHERE f.id = $1";

const MOVE: &str = "UPDATE app.folders SET parent_id = $2 WHERE id = $1";

/// Which index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Closure,
    Rowdeck,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Plain, Kind::Closure, Kind::Rowdeck];

    pub fn word(self) -> &'static str {
        match self {
            Kind::Plain => "plain",
            Kind::Closure => "closure",
            Kind::Rowdeck => "rowdeck",
        }
    }

    /// The bytes of the stored inheritance.
    fn bytes(self) -> &'static str {
        match self {
            Kind::Plain => "SELECT 0::bigint",
            Kind::Closure => {
                "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
                  WHERE relnamespace = 'closure'::regnamespace AND relkind = 'r'"
            }
            Kind::Rowdeck => {
                r"SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
                   WHERE relnamespace = 'authz_int'::regnamespace AND relkind = 'r'
                     AND relname ~ '^g[0-9a-f]{8}_(node|cluster|edge)$'"
            }
        }
    }

    fn exact(self) -> Option<&'static str> {
        match self {
            Kind::Plain => None,
            Kind::Closure => Some("SELECT closure.edit_exact() AND closure.view_exact()"),
            Kind::Rowdeck => Some("SELECT authz.verify()"),
        }
    }
}

/// One subject.
pub(super) struct Subject {
    pub kind: Kind,
    pub target: Target,
    pub owner: Client,
    folders: u64,
    big: BigMove,
    rng: Rng,
    measured: Measured,
    beside: Latencies,
}

/// The folder with the most below it, a root, and another root.
#[derive(Debug, Clone, Copy)]
struct BigMove {
    folder: i64,
    away: i64,
    below: u64,
}

impl Subject {
    pub async fn prepare(
        admin: &Client,
        server: &Server,
        kind: Kind,
        data: &Dataset,
        seed: u64,
    ) -> Result<Subject, BenchError> {
        let name = format!("versus_{}", kind.word());
        let create = format!("CREATE DATABASE {name} OWNER {OWNER}");
        admin.batch_execute(&create).await.map_err(BenchError::database("making a database"))?;
        let target = server.target(OWNER, &name);
        let owner = connect::client(&target).await?;
        owner.batch_execute(EXAMPLE_SCHEMA).await.map_err(BenchError::database("making the tables"))?;
        load_dataset(&owner, data, &Reporter::silent()).await?;
        let build_seconds = match kind {
            Kind::Plain => 0.0,
            Kind::Closure => build_closure(&owner).await?,
            Kind::Rowdeck => apply_policy(&Session::open(&target).await?, &Reporter::silent()).await?,
        };
        if kind == Kind::Rowdeck {
            load_dataset_shares(&owner, data, &Reporter::silent()).await?;
            demo::mark_development(&owner).await?;
        }
        let doing = || BenchError::database("measuring the index");
        // Taken before anything is written to it.
        let index_bytes = owner.query_one(kind.bytes(), &[]).await.map_err(doing())?.try_get(0).map_err(doing())?;
        owner.batch_execute("VACUUM ANALYZE").await.map_err(BenchError::database("VACUUM ANALYZE"))?;
        let big = big_move(data).ok_or_else(|| BenchError::Unsuitable("the data have no two roots".to_owned()))?;
        let measured = Measured { build_seconds, index_bytes, below: big.below, ..Measured::default() };
        let rng = Rng::split(seed, kind.word(), 0);
        let (folders, beside) = (data.folders.len() as u64, Latencies::new());
        Ok(Subject { kind, target, owner, folders, big, rng, measured, beside })
    }

    /// Creates by one client and by eight, tree writes by fifty, a thousand folders at once, a big move there and back
    /// beside steady creates.
    pub async fn round(&mut self, step: Duration) -> Result<(), BenchError> {
        let by_1 = self.creates(1, step).await?;
        self.measured.creates_by_1.push(by_1);
        let by_8 = self.creates(8, step).await?;
        self.measured.creates_by_8.push(by_8);
        self.forget().await?;
        let seed = self.rng.draw();
        let by_50 = writes::tree_writes(&self.owner, &self.target, 50, step, seed).await?;
        self.measured.failed += by_50.failed;
        self.measured.tree_writes_by_50.push(by_50);
        let thousand = writes::thousand(&self.owner, self.folders, &mut self.rng).await?;
        self.measured.thousand_ms.push(thousand);
        self.forget().await?;
        self.big_moves().await?;
        self.forget().await
    }

    /// New folders a second by so many clients, each waiting for its answers.
    async fn creates(&mut self, clients: u64, step: Duration) -> Result<f64, BenchError> {
        let mut creators = Vec::new();
        for _ in 0..clients {
            creators.push(self.creator().await?);
        }
        let started = Instant::now();
        let tasks: Vec<JoinHandle<Result<u64, BenchError>>> = creators
            .into_iter()
            .map(|mut creator| {
                tokio::spawn(async move {
                    let mut made = 0;
                    while started.elapsed() < step {
                        creator.create().await?;
                        made += 1;
                    }
                    Ok(made)
                })
            })
            .collect();
        let mut made = 0;
        for task in tasks {
            made += task.await.map_err(ended)??;
        }
        Ok(made as f64 / seconds(started))
    }

    async fn creator(&mut self) -> Result<Creator, BenchError> {
        let client = connect::client(&self.target).await?;
        let statement = client.prepare(CREATE).await.map_err(BenchError::database("preparing a create"))?;
        Ok(Creator { client, statement, folders: self.folders, rng: Rng::new(self.rng.draw()) })
    }

    /// There and back, with creates arriving beside: their latency counts from when they were due.
    async fn big_moves(&mut self) -> Result<(), BenchError> {
        let failed = Arc::new(AtomicU64::new(0));
        let stopping = Arc::new(AtomicBool::new(false));
        let times = Arc::new(std::sync::Mutex::new(Vec::new()));
        let started = Instant::now();
        let (mut dispatcher, receiver) = Dispatcher::start("versus", started, BESIDE)
            .map_err(|error| BenchError::Db(DbError::io("cannot start a thread for the schedule", error)))?;
        let receiver = Arc::new(Mutex::new(receiver));
        let mut workers = Vec::new();
        for _ in 0..8 {
            let mut creator = self.creator().await?;
            let (receiver, failed, stopping, times) =
                (Arc::clone(&receiver), Arc::clone(&failed), Arc::clone(&stopping), Arc::clone(&times));
            workers.push(tokio::spawn(async move {
                loop {
                    let ticket = receiver.lock().await.recv().await;
                    let Some(ticket) = ticket.filter(|_| !stopping.load(Ordering::Relaxed)) else { return };
                    if creator.create().await.is_err() {
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                    let mut times = times.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    times.push((ticket.intended, Instant::now()));
                }
            }));
        }
        let mut moves = Vec::new();
        for to in [Some(self.big.away), None] {
            tokio::time::sleep(Duration::from_millis(700)).await;
            let began = Instant::now();
            self.owner.execute(MOVE, &[&self.big.folder, &to]).await.map_err(BenchError::database("the big move"))?;
            moves.push((began, Instant::now()));
        }
        tokio::time::sleep(Duration::from_millis(700)).await;
        stopping.store(true, Ordering::Relaxed);
        dispatcher.stop();
        for worker in workers {
            worker.await.map_err(ended)?;
        }
        for (began, over) in moves {
            self.measured.big_moves.push(over.duration_since(began).as_secs_f64() * 1000.0);
            let times = times.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            for (intended, done) in times.iter().filter(|(intended, done)| *intended <= over && *done >= began) {
                self.beside.record(done.saturating_duration_since(*intended));
            }
        }
        self.measured.failed += failed.load(Ordering::Relaxed);
        Ok(())
    }

    /// Takes away what the last step made, so that every step meets the same tree.
    async fn forget(&self) -> Result<(), BenchError> {
        let clean = "DELETE FROM app.folders WHERE name = 'versus'";
        self.owner.batch_execute(clean).await.map_err(BenchError::database("taking new folders away"))
    }

    /// One COPY of many folders.
    pub async fn bulk_load(&mut self, rows: i64) -> Result<(), BenchError> {
        self.measured.bulk_load_seconds = writes::bulk_load(&self.owner, rows).await?;
        self.forget().await
    }

    pub async fn finish(mut self) -> Result<Measured, BenchError> {
        if let Some(exact) = self.kind.exact() {
            let doing = || BenchError::database("checking the index");
            let began = Instant::now();
            self.measured.exact =
                self.owner.query_one(exact, &[]).await.map_err(doing())?.try_get(0).map_err(doing())?;
            self.measured.verify_seconds = seconds(began);
        }
        self.measured.beside = self.beside.summary();
        Ok(self.measured)
    }
}

struct Creator {
    client: Client,
    statement: Statement,
    folders: u64,
    rng: Rng,
}

impl Creator {
    async fn create(&mut self) -> Result<(), BenchError> {
        let parent = self.rng.below(self.folders) as i64 + 1;
        self.client
            .execute(&self.statement, &[&parent])
            .await
            .map(|_| ())
            .map_err(BenchError::database("making a folder"))
    }
}

/// Makes the baseline: closure tables of the docs example's two graphs and the triggers that keep them, filled. Says how
/// many seconds it took.
pub async fn build_closure(owner: &Client) -> Result<f64, BenchError> {
    let graph = include_str!("../../../bench/baseline/closure.sql");
    let triggers = include_str!("../../../bench/baseline/triggers.sql");
    let edit = "SELECT id AS child, parent_id AS parent FROM app.folders WHERE inherit AND parent_id IS NOT NULL";
    let view = format!("{edit} UNION ALL SELECT folder_id, shown_in FROM app.folder_links");
    let of = |name: &str, edges: &str| graph.replace("EDGES", edges).replace("GRAPH", name);
    let (edit, view) = (of("edit", edit), of("view", &view));
    let build = "SELECT closure.edit_build(); SELECT closure.view_build();";
    let all = format!("BEGIN; CREATE SCHEMA closure; {edit} {view} {triggers} {build} COMMIT");
    let started = Instant::now();
    owner.batch_execute(&all).await.map_err(BenchError::database("building closure tables"))?;
    Ok(seconds(started))
}

/// The root with the most below it, and the largest other root.
fn big_move(data: &Dataset) -> Option<BigMove> {
    let mut below = vec![0_u64; data.folders.len()];
    // Parents come before children.
    for (index, folder) in data.folders.iter().enumerate().rev() {
        let own = below.get(index).copied()?;
        if let Some(parent) = folder.parent {
            *below.get_mut(parent as usize)? += own + 1;
        }
    }
    let roots = || data.folders.iter().zip(&below).enumerate().filter(|(_, (folder, _))| folder.parent.is_none());
    let (folder, largest) = roots().max_by_key(|(_, (_, below))| **below).map(|(at, (_, below))| (at, *below))?;
    let away = roots().filter(|(at, _)| *at != folder).max_by_key(|(_, (_, below))| **below).map(|(at, _)| at)?;
    Some(BigMove { folder: folder as i64 + 1, away: away as i64 + 1, below: largest })
}
