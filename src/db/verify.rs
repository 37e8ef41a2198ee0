//! Verifying the index in batches, each its own short transaction, and repairing what was found.
//!
//! The checks themselves are in the database (`authz.verify_batch`); this runs them, one after the other, under a
//! control that can pause, step and stop, and can go on later from the cursor the report ends with.

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::watch;
use tokio_postgres::Client;

use super::error::DbError;
use super::progress::{Progress, Reporter, VerifyBatch, VerifyReport, Wrong};

/// What the operator wants of a running verify.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Control {
    /// Go on to the end.
    #[default]
    Run,
    /// Wait after the batch that is running.
    Pause,
    /// One more batch, then wait; each time the number changes.
    Step(u64),
    /// End after the batch that is running.
    Stop,
}

/// How to verify.
#[derive(Debug, Clone)]
pub struct Options {
    /// Objects in a batch.
    pub batch: u32,
    /// Where to start: the cursor of an earlier report.
    pub from: Option<String>,
    /// Time to rest between two batches.
    pub rest: Duration,
    /// The operator's wishes; without one it runs to the end.
    pub control: Option<watch::Receiver<Control>>,
}

impl Default for Options {
    fn default() -> Self {
        Options { batch: 10_000, from: None, rest: Duration::ZERO, control: None }
    }
}

/// Checks one batch of at most `size` objects after `cursor`.
pub async fn next_batch(client: &Client, cursor: Option<&str>, size: u32) -> Result<VerifyBatch, DbError> {
    let start = Instant::now();
    let size = i32::try_from(size).unwrap_or(i32::MAX);
    let sql = "SELECT b.cursor, b.checked, b.wrong FROM authz.verify_batch($1::text, $2::integer) AS b";
    let row = match client.query_one(sql, &[&cursor, &size]).await {
        Ok(row) => row,
        Err(e) => return Err(no_policy(client, e.into()).await),
    };
    let checked: i64 = row.try_get(1)?;
    let wrong: Value = row.try_get(2)?;
    let wrong = wrong.as_array().ok_or_else(|| unexpected(&wrong))?.iter().map(read_wrong);
    Ok(VerifyBatch {
        cursor: row.try_get(0)?,
        checked: u64::try_from(checked).unwrap_or(0),
        wrong: wrong.collect::<Result<_, _>>()?,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// A database without our functions has no policy in force; anything else is what it is.
async fn no_policy(client: &Client, error: DbError) -> DbError {
    if !matches!(error.sqlstate(), Some("42883" | "3F000")) {
        return error;
    }
    match client.query_one("SELECT pg_catalog.current_database()::text", &[]).await.and_then(|r| r.try_get(0)) {
        Ok(name) => DbError::NoPolicy(name),
        Err(_) => error,
    }
}

fn unexpected(value: &Value) -> DbError {
    DbError::Unexpected(format!("a verify report of another shape: {value}"))
}

fn read_wrong(value: &Value) -> Result<Wrong, DbError> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| unexpected(value));
    let ids = |key: &str| match value.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => {
            let item = |i: &Value| i.as_str().map(str::to_owned).ok_or_else(|| unexpected(value));
            items.iter().map(item).collect::<Result<Vec<_>, _>>().map(Some)
        }
        Some(_) => Err(unexpected(value)),
    };
    Ok(Wrong {
        graph: text("graph")?,
        ty: text("type")?,
        id: text("id")?,
        stored: ids("stored")?,
        expected: ids("expected")?,
        what: text("what")?,
    })
}

/// Verifies from `options.from` to the end, or until stopped. What is found is in the report and, as a note each, in
/// the progress.
pub async fn run(client: &Client, mut options: Options, reporter: &Reporter) -> Result<VerifyReport, DbError> {
    let start = Instant::now();
    let whole = options.from.is_none();
    let of = about(client).await?;
    let mut report = VerifyReport { cursor: options.from.take(), ..VerifyReport::default() };
    let mut stepped = None;
    loop {
        if !may_go_on(options.control.as_mut(), &mut stepped).await {
            break;
        }
        let batch = next_batch(client, report.cursor.as_deref(), options.batch).await?;
        report.batches += 1;
        report.checked += batch.checked;
        report.cursor = batch.cursor;
        report.seconds = start.elapsed().as_secs_f64();
        let rate = report.checked as f64 / report.seconds.max(1e-6);
        for w in &batch.wrong {
            let text = format!("{} {} in {}: {}", w.ty, w.id, w.graph, w.what);
            reporter.send(Progress::Note { text }).await;
        }
        report.wrong.extend(batch.wrong);
        reporter
            .send(Progress::Batch {
                batch: report.batches,
                of: None,
                rows: report.checked,
                rows_of: of.filter(|_| whole),
                rate,
                left: of.filter(|_| whole).map(|of| of.saturating_sub(report.checked) as f64 / rate.max(1e-6)),
            })
            .await;
        if report.cursor.is_none() {
            break;
        }
        if !options.rest.is_zero() {
            tokio::time::sleep(options.rest).await;
        }
    }
    report.seconds = start.elapsed().as_secs_f64();
    // A verify that began in the middle saw only the rest, and says so by its cursor having been given.
    report.ok = report.cursor.is_none() && report.batches > 0 && report.wrong.is_empty();
    Ok(report)
}

/// Waits while paused; false when stopped. A control whose other side is gone lets it run on.
async fn may_go_on(control: Option<&mut watch::Receiver<Control>>, stepped: &mut Option<u64>) -> bool {
    let Some(control) = control else { return true };
    loop {
        let wish = *control.borrow_and_update();
        match wish {
            Control::Run => return true,
            Control::Stop => return false,
            Control::Step(n) if *stepped != Some(n) => {
                *stepped = Some(n);
                return true;
            }
            Control::Pause | Control::Step(_) => {
                if control.changed().await.is_err() {
                    return true;
                }
            }
        }
    }
}

/// About how many objects there are to check, by the server's statistics; `None` before any are kept.
pub async fn about(client: &Client) -> Result<Option<u64>, DbError> {
    let sql = "SELECT sum(c.reltuples)::bigint FROM pg_catalog.pg_class AS c
      JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
      WHERE n.nspname = 'authz_int' AND c.relkind = 'r' AND c.relname ~ '^g[0-9a-f]{8}_node$' AND c.reltuples >= 0";
    let rows: Option<i64> = client.query_one(sql, &[]).await?.try_get(0)?;
    Ok(rows.and_then(|n| u64::try_from(n).ok()))
}

/// Re-derives what verify found, graph by graph, each in its own transaction. Returns how many objects it was given.
pub async fn repair(client: &Client, wrong: &[Wrong]) -> Result<u64, DbError> {
    let mut graphs: Vec<&str> = wrong.iter().map(|w| w.graph.as_str()).collect();
    graphs.sort_unstable();
    graphs.dedup();
    let mut repaired = 0;
    for graph in graphs {
        let ids: Vec<&str> = wrong.iter().filter(|w| w.graph == graph).map(|w| w.id.as_str()).collect();
        client.execute("SELECT authz.repair($1::text, $2::text[])", &[&graph, &ids]).await?;
        repaired += ids.len() as u64;
    }
    Ok(repaired)
}
