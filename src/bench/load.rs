//! Loads the docs example's data.

use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures_util::SinkExt;
use serde::Serialize;
use tokio_postgres::{Client, CopyInSink};

use super::error::BenchError;
use super::generate::{Dataset, Share, Shared, Size, Table, With};
use crate::db::progress::{Progress, Reporter};

/// What was loaded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadReport {
    /// Rows of each table, in the order loaded.
    pub tables: Vec<(String, u64)>,
    /// Rows of all tables.
    pub rows: u64,
    /// Seconds it took, with `VACUUM ANALYZE`.
    pub seconds: f64,
}

/// What was shared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SharesReport {
    /// Shares made.
    pub shares: u64,
    /// Seconds it took.
    pub seconds: f64,
}

/// Loads the data of a size into the example's empty tables, all or nothing, on the owner's connection.
pub async fn load(client: &Client, size: Size, seed: u64, reporter: &Reporter) -> Result<LoadReport, BenchError> {
    load_dataset(client, &Dataset::new(size, seed), reporter).await
}

/// Loads any data set. See [`load`].
pub async fn load_dataset(client: &Client, data: &Dataset, reporter: &Reporter) -> Result<LoadReport, BenchError> {
    let started = Instant::now();
    let tables = data.tables();
    refuse_filled(client, &tables).await?;
    in_transaction(client, "loading the example's data", async {
        let keys = drop_foreign_keys(client).await?;
        for (number, table) in tables.iter().enumerate() {
            let title = format!("load {} ({} rows)", table.name, table.rows);
            let locks = format!("ROW EXCLUSIVE on {}", table.name);
            reporter.send(Progress::Phase { number: number + 1, of: tables.len() + 1, title, locks }).await;
            copy_table(client, table, reporter).await?;
        }
        let title = "check foreign keys, vacuum and analyze".to_owned();
        let locks = "none after the commit".to_owned();
        reporter.send(Progress::Phase { number: tables.len() + 1, of: tables.len() + 1, title, locks }).await;
        for key in &keys {
            client.batch_execute(key).await.map_err(BenchError::database(key.clone()))?;
        }
        Ok(())
    })
    .await?;
    for table in &tables {
        let vacuum = format!("VACUUM (ANALYZE) {}", table.name);
        client.batch_execute(&vacuum).await.map_err(BenchError::database(vacuum.clone()))?;
    }
    Ok(LoadReport {
        rows: tables.iter().map(|table| table.rows).sum(),
        tables: tables.iter().map(|table| (table.name.to_owned(), table.rows)).collect(),
        seconds: started.elapsed().as_secs_f64(),
    })
}

async fn refuse_filled(client: &Client, tables: &[Table<'_>]) -> Result<(), BenchError> {
    for table in tables {
        let doing = || format!("looking into {}", table.name);
        let row = client
            .query_one(&format!("SELECT EXISTS (SELECT FROM {})", table.name), &[])
            .await
            .map_err(BenchError::database(doing()))?;
        if row.try_get(0).map_err(BenchError::database(doing()))? {
            return Err(BenchError::NotEmpty { table: table.name.to_owned() });
        }
    }
    Ok(())
}

/// Checking a foreign key for each of a million rows takes far longer than checking it once for all of them, which
/// adding it afterwards does. All in one transaction, so a failure leaves the keys as they were.
async fn drop_foreign_keys(client: &Client) -> Result<Vec<String>, BenchError> {
    let rows = client
        .query(
            "SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', c.conrelid::regclass, c.conname),
                    format('ALTER TABLE %s ADD CONSTRAINT %I %s', c.conrelid::regclass, c.conname,
                           pg_get_constraintdef(c.oid))
               FROM pg_catalog.pg_constraint c
              WHERE c.contype = 'f' AND c.conparentid = 0 AND c.connamespace = 'app'::regnamespace
              ORDER BY c.oid",
            &[],
        )
        .await
        .map_err(BenchError::database("reading the foreign keys"))?;
    let mut again = Vec::with_capacity(rows.len());
    for row in rows {
        let drop: String = row.try_get(0).map_err(BenchError::database("reading the foreign keys"))?;
        client.batch_execute(&drop).await.map_err(BenchError::database(drop.clone()))?;
        again.push(row.try_get(1).map_err(BenchError::database("reading the foreign keys"))?);
    }
    Ok(again)
}

/// Bytes gathered before they are sent.
const CHUNK: usize = 64 * 1024;

async fn copy_table(client: &Client, table: &Table<'_>, reporter: &Reporter) -> Result<(), BenchError> {
    let doing = format!("loading {}", table.name);
    let copy = format!("COPY {} ({}) FROM STDIN", table.name, table.columns);
    let sink: CopyInSink<Bytes> = client.copy_in(&copy).await.map_err(BenchError::database(doing.clone()))?;
    tokio::pin!(sink);
    let started = Instant::now();
    let mut told = started;
    let mut batch = 0;
    let mut lines = String::with_capacity(CHUNK + 1024);
    for row in 0..table.rows {
        table.write_row(row as usize, &mut lines);
        if lines.len() >= CHUNK {
            let chunk = BytesMut::from(lines.as_bytes()).freeze();
            lines.clear();
            sink.send(chunk).await.map_err(BenchError::database(doing.clone()))?;
        }
        if row % 1024 == 1023 && told.elapsed() > Duration::from_millis(100) {
            told = Instant::now();
            batch += 1;
            reporter.send(step(batch, row + 1, table.rows, started.elapsed())).await;
        }
    }
    if !lines.is_empty() {
        sink.send(Bytes::from(lines)).await.map_err(BenchError::database(doing.clone()))?;
    }
    let made = sink.finish().await.map_err(BenchError::database(doing.clone()))?;
    if made != table.rows {
        return Err(BenchError::Miscounted { table: table.name.to_owned(), made, announced: table.rows });
    }
    reporter.send(step(batch + 1, made, made, started.elapsed())).await;
    if table.identity {
        let next = format!(
            "SELECT setval(pg_get_serial_sequence('{0}', 'id'), greatest((SELECT max(id) FROM {0}), 1))",
            table.name
        );
        client.batch_execute(&next).await.map_err(BenchError::database(doing))?;
    }
    Ok(())
}

fn step(batch: u64, rows: u64, of: u64, took: Duration) -> Progress {
    let rate = rows as f64 / took.as_secs_f64().max(1e-6);
    let left = (of - rows) as f64 / rate.max(1e-6);
    Progress::Batch { batch, of: None, rows, rows_of: Some(of), rate, left: Some(left) }
}

/// Makes the shares of a size, once its policy is in force, through `authz.share` as the owner of each object.
pub async fn load_shares(
    client: &Client,
    size: Size,
    seed: u64,
    reporter: &Reporter,
) -> Result<SharesReport, BenchError> {
    load_dataset_shares(client, &Dataset::new(size, seed), reporter).await
}

/// Makes the shares of any data set. See [`load_shares`].
pub async fn load_dataset_shares(
    client: &Client,
    data: &Dataset,
    reporter: &Reporter,
) -> Result<SharesReport, BenchError> {
    let started = Instant::now();
    let of = data.shares.len() as u64;
    let title = format!("make {of} shares");
    reporter.send(Progress::Phase { number: 1, of: 1, title, locks: "none".to_owned() }).await;
    let doing = || BenchError::database("sharing the example's folders and files");
    // The id is given as text, whatever the key's type.
    let sign_in = client.prepare("SELECT authz.act_as('user', $1::text)").await.map_err(doing())?;
    let share = client
        .prepare("SELECT authz.share($1::text, $2::text, $3::text, $4::text, $5::text, $6::text)")
        .await
        .map_err(doing())?;
    in_transaction(client, "sharing the example's folders and files", async {
        for (done, one) in data.shares.iter().enumerate() {
            let words = ShareWords::new(one);
            client.query(&sign_in, &[&words.by]).await.map_err(doing())?;
            client
                .query(
                    &share,
                    &[
                        &words.ty,
                        &words.id,
                        &one.relation,
                        &words.subject_type,
                        &words.subject,
                        &words.subject_relation,
                    ],
                )
                .await
                .map_err(doing())?;
            if done % 256 == 255 {
                reporter.send(step(done as u64 / 256 + 1, done as u64 + 1, of, started.elapsed())).await;
            }
        }
        Ok(())
    })
    .await?;
    reporter.send(step(of / 256 + 1, of, of, started.elapsed())).await;
    Ok(SharesReport { shares: of, seconds: started.elapsed().as_secs_f64() })
}

/// A share in the words `authz.share` takes.
struct ShareWords {
    by: String,
    ty: &'static str,
    id: String,
    subject_type: &'static str,
    subject: String,
    subject_relation: &'static str,
}

impl ShareWords {
    fn new(share: &Share) -> Self {
        let id = |index: u32| (u64::from(index) + 1).to_string();
        let (ty, of) = match share.what {
            Shared::Folder(folder) => ("folder", id(folder)),
            Shared::File(file) => ("file", id(file)),
        };
        let (subject_type, subject, subject_relation) = match share.with {
            With::User(user) => ("user", id(user), ""),
            With::Team(team) => ("team", id(team), "member"),
            With::EveryUser => ("user", "*".to_owned(), ""),
        };
        ShareWords { by: id(share.by), ty, id: of, subject_type, subject, subject_relation }
    }
}

/// Runs `work` between BEGIN and COMMIT, or rolls back. When even that fails the connection is gone, and the server
/// rolls back by itself; the first error is what matters.
async fn in_transaction(
    client: &Client,
    doing: &str,
    work: impl Future<Output = Result<(), BenchError>>,
) -> Result<(), BenchError> {
    client.batch_execute("BEGIN").await.map_err(BenchError::database(doing))?;
    match work.await {
        Ok(()) => client.batch_execute("COMMIT").await.map_err(BenchError::database(doing)),
        Err(error) => {
            if let Err(second) = client.batch_execute("ROLLBACK").await {
                tracing::warn!("rolling back after an error failed too: {second}");
            }
            Err(error)
        }
    }
}
