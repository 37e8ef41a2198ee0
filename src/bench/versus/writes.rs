//! Writes of many clients and of many rows, as the tables' owner: the index, not the rules.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::SinkExt;
use serde::Serialize;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::{ended, seconds};
use crate::bench::cleanup::take_back;
use crate::bench::error::BenchError;
use crate::bench::guard;
use crate::bench::histogram::Latencies;
use crate::bench::live::{Kind, statement};
use crate::bench::random::Rng;
use crate::bench::result::Percentiles;
use crate::bench::world::World;
use crate::db::connect;
use crate::db::error::DbError;
use crate::db::target::Target;

/// Tree writes by many clients.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TreeWrites {
    /// Writes a second.
    pub per_second: f64,
    /// Their service time.
    pub latency_ms: Percentiles,
    /// Those that failed.
    pub failed: u64,
}

const LINK: &str = "INSERT INTO app.folder_links (folder_id, shown_in) VALUES ($1, $2) ON CONFLICT DO NOTHING";

/// 90% creates, 9% moves of small folders, 1% links, by clients that wait for their answers; taken back afterwards.
pub(super) async fn tree_writes(
    owner: &Client,
    target: &Target,
    clients: usize,
    step: Duration,
    seed: u64,
) -> Result<TreeWrites, BenchError> {
    let world = Arc::new(World::read(owner, &guard::token()).await?);
    let mut connected = Vec::new();
    for _ in 0..clients {
        let client = connect::client(target).await?;
        let doing = || BenchError::database("preparing tree writes");
        let create = client.prepare(statement(Kind::Create)).await.map_err(doing())?;
        let mv = client.prepare(statement(Kind::Move)).await.map_err(doing())?;
        let link = client.prepare(LINK).await.map_err(doing())?;
        connected.push((client, create, mv, link));
    }
    let began = Instant::now();
    let tasks: Vec<JoinHandle<(Latencies, u64)>> = connected
        .into_iter()
        .enumerate()
        .map(|(number, (client, create, mv, link))| {
            let world = Arc::clone(&world);
            let mut rng = Rng::split(seed, "tree writes", number as u64);
            tokio::spawn(async move {
                let (mut latencies, mut failed) = (Latencies::new(), 0);
                while began.elapsed() < step {
                    let Some(one) = world.write_op(&mut rng) else { break };
                    let started = Instant::now();
                    let written = match one.kind {
                        Kind::Create => client.execute(&create, &[&one.id, &one.other, &one.user, &one.name]).await,
                        Kind::Link => client.execute(&link, &[&one.id, &one.other]).await,
                        _ => client.execute(&mv, &[&one.id, &one.other]).await,
                    };
                    match written {
                        Ok(_) => latencies.record(started.elapsed()),
                        Err(_) => failed += 1,
                    }
                }
                (latencies, failed)
            })
        })
        .collect();
    let (mut latencies, mut failed) = (Latencies::new(), 0);
    for task in tasks {
        let (theirs, theirs_failed) = task.await.map_err(ended)?;
        latencies.merge(&theirs);
        failed += theirs_failed;
    }
    let per_second = latencies.n() as f64 / seconds(began);
    take_back(owner, target, &world).await?;
    Ok(TreeWrites { per_second, latency_ms: Percentiles::of(&latencies), failed })
}

/// Milliseconds of a thousand folders in one INSERT, each time taken away again.
pub(super) async fn thousand(owner: &Client, folders: u64, rng: &mut Rng) -> Result<f64, BenchError> {
    let parent = rng.below(folders) as i64 + 1;
    let insert = "INSERT INTO app.folders (org_id, parent_id, owner_id, name)
        SELECT f.org_id, f.id, f.owner_id, 'versus' FROM app.folders f, generate_series(1, 1000) WHERE f.id = $1";
    let began = Instant::now();
    owner.execute(insert, &[&parent]).await.map_err(BenchError::database("making a thousand folders"))?;
    Ok(seconds(began) * 1000.0)
}

/// Seconds of one COPY of so many folders, six levels deep; they stay until they are taken away.
pub(super) async fn bulk_load(owner: &Client, rows: i64) -> Result<f64, BenchError> {
    let doing = || BenchError::database("loading folders");
    let first: i64 = owner
        .query_one("SELECT max(id) + 1 FROM app.folders", &[])
        .await
        .and_then(|row| row.try_get(0))
        .map_err(doing())?;
    // Each level is so many times as wide as the one above that six levels hold all.
    let width = (rows as f64).powf(1.0 / 6.0).max(2.0) as i64;
    let mut text = String::new();
    for row in 0..rows {
        // The parent's number is the row's divided by the width, as in a heap: it comes before its children.
        let parent = if row == 0 { "\\N".to_owned() } else { (first + (row - 1) / width).to_string() };
        text.push_str(&format!("{}\t1\t{parent}\t1\tversus\n", first + row));
    }
    let began = Instant::now();
    let copy = "COPY app.folders (id, org_id, parent_id, owner_id, name) FROM STDIN";
    let sink = owner.copy_in::<_, Bytes>(copy).await.map_err(doing())?;
    tokio::pin!(sink);
    sink.send(Bytes::from(text)).await.map_err(doing())?;
    let made = sink.finish().await.map_err(doing())?;
    if made != rows as u64 {
        return Err(BenchError::Db(DbError::Unexpected(format!("{made} folders were loaded instead of {rows}"))));
    }
    Ok(seconds(began))
}
