//! Taking back what a run wrote, on the owner's connection.

use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::time::sleep;
use tokio_postgres::Client;

use super::error::BenchError;
use super::world::{CREATED_PREFIX, World};
use crate::db::connect;
use crate::db::target::Target;

/// How long to go on trying to take back what was written when the server went away.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was taken back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Cleanup {
    /// Folders put back where they were.
    pub moved_back: u64,
    /// Links taken away.
    pub unlinked: u64,
    /// Folders deleted.
    pub deleted: u64,
}

/// Takes back everything, in one transaction. Writes that failed or were cut off are looked for as well: whether one
/// of those reached the table is not known.
async fn clean_up(owner: &Client, world: &World) -> Result<Cleanup, BenchError> {
    let (moved, linked) = {
        let journal = world.journal();
        let moved: Vec<(i64, Option<i64>)> = journal.moved.iter().map(|(id, home)| (*id, *home)).collect();
        let linked: Vec<(i64, i64)> = journal.linked.iter().copied().collect();
        (moved, linked)
    };
    let doing = || BenchError::database("removing what the benchmark wrote");
    let (ids, homes): (Vec<i64>, Vec<Option<i64>>) = moved.into_iter().unzip();
    let (folders, shown_in): (Vec<i64>, Vec<i64>) = linked.into_iter().unzip();
    owner.batch_execute("BEGIN").await.map_err(doing())?;
    // A failure below leaves the transaction open; the caller ends this connection, and the server rolls back.
    let unlinked = owner
        .execute(
            "DELETE FROM app.folder_links l USING unnest($1::bigint[], $2::bigint[]) AS made (folder_id, shown_in)
              WHERE l.folder_id = made.folder_id AND l.shown_in = made.shown_in",
            &[&folders, &shown_in],
        )
        .await
        .map_err(doing())?;
    let moved_back = owner
        .execute(
            "UPDATE app.folders f SET parent_id = was.parent_id
               FROM unnest($1::bigint[], $2::bigint[]) AS was (id, parent_id)
              WHERE f.id = was.id AND f.parent_id IS DISTINCT FROM was.parent_id",
            &[&ids, &homes],
        )
        .await
        .map_err(doing())?;
    let deleted = delete_named(owner, &world.prefix).await?;
    owner.batch_execute("COMMIT").await.map_err(doing())?;
    Ok(Cleanup { moved_back, unlinked, deleted })
}

/// Takes back what was written, on a new connection when the old one is gone, for as long as that may take.
pub(crate) async fn take_back(owner: &Client, target: &Target, world: &World) -> Result<Cleanup, BenchError> {
    let began = Instant::now();
    let mut another = None;
    loop {
        let error = match clean_up(another.as_ref().unwrap_or(owner), world).await {
            Ok(cleanup) => return Ok(cleanup),
            Err(error) => error,
        };
        if began.elapsed() > PATIENCE {
            return Err(error);
        }
        tracing::warn!("{error}; trying again");
        sleep(Duration::from_millis(500)).await;
        match connect::client(target).await {
            Ok(client) => another = Some(client),
            Err(error) => tracing::warn!("{error}; trying again"),
        }
    }
}

/// Deletes folders that a run which was killed left behind. Its moves and links are not known to anyone.
pub(crate) async fn delete_leftovers(owner: &Client) -> Result<u64, BenchError> {
    delete_named(owner, CREATED_PREFIX).await
}

async fn delete_named(owner: &Client, prefix: &str) -> Result<u64, BenchError> {
    let doing = || BenchError::database("removing what the benchmark wrote");
    for table in ["app.files", "app.teams"] {
        let delete = format!("DELETE FROM {table} WHERE starts_with(name, $1)");
        owner.execute(&delete, &[&prefix]).await.map_err(doing())?;
    }
    let folders = "DELETE FROM app.folders WHERE starts_with(name, $1)";
    owner.execute(folders, &[&prefix]).await.map_err(doing())
}
