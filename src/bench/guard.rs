//! What must hold before anything is measured: a database that may be written to, and nobody else measuring there.

use std::time::{SystemTime, UNIX_EPOCH};

use tokio_postgres::Client;

use super::error::BenchError;
use super::random::mix;
use crate::db::connect;
use crate::db::error::DbError;
use crate::db::target::Target;

/// The owner's connection, where measuring is allowed and nobody else measures. The turn ends with the connection.
pub(crate) async fn open(target: &Target) -> Result<Client, BenchError> {
    refuse_production(target)?;
    let owner = connect::client(target).await?;
    require_development(&owner, target).await?;
    take_turn(&owner).await?;
    Ok(owner)
}

/// Refuses a target that its configuration marks as production or as one that is only read.
pub(crate) fn refuse_production(target: &Target) -> Result<(), BenchError> {
    let marked = match (target.production, target.read_only) {
        (true, _) => "production",
        (_, true) => "read-only",
        _ => return Ok(()),
    };
    let why = format!("{} is marked as {marked}; the benchmark writes and refuses", target.describe());
    Err(BenchError::Db(DbError::Usage(why)))
}

/// Refuses a database that is not marked as a development one.
pub(crate) async fn require_development(owner: &Client, target: &Target) -> Result<(), BenchError> {
    let read = owner.query_opt("SELECT value = 'true' FROM authz.settings WHERE key = 'development'", &[]).await;
    let row = match read {
        Ok(row) => row,
        Err(error) => {
            // Undefined schema or table.
            let missing = error.code().is_some_and(|code| ["3F000", "42P01"].contains(&code.code()));
            let error = if missing { DbError::NoPolicy(target.database.clone()) } else { DbError::from(error) };
            return Err(error.into());
        }
    };
    let marked = match row {
        Some(row) => row.try_get::<_, Option<bool>>(0).map_err(BenchError::database("reading the settings"))?,
        None => None,
    };
    if marked == Some(true) { Ok(()) } else { Err(DbError::NotDevelopment(target.database.clone()).into()) }
}

/// One run at a time for each database: two would count each other's waits, and take back each other's folders. The
/// lock ends with the owner's connection.
///
/// A connection that was closed a moment ago may still hold it: the server ends a session in its own time.
async fn take_turn(owner: &Client) -> Result<(), BenchError> {
    let doing = || BenchError::database("asking whether another benchmark runs here");
    for _ in 0..25 {
        let row = owner
            .query_one("SELECT pg_try_advisory_lock(hashtextextended('rowdeck bench', 0))", &[])
            .await
            .map_err(doing())?;
        if row.try_get(0).map_err(doing())? {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    Err(BenchError::Unsuitable("another benchmark is running on this database".to_owned()))
}

/// The server's clock, in UTC.
pub(crate) async fn utc_now(owner: &Client) -> Result<String, BenchError> {
    let doing = || BenchError::database("reading the server's clock");
    let now = r#"SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')"#;
    let row = owner.query_one(now, &[]).await.map_err(doing())?;
    row.try_get(0).map_err(doing())
}

/// Tells this run's folders from any other's.
pub(crate) fn token() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mixed = mix((now.as_nanos() as u64) ^ (u64::from(std::process::id()) << 40));
    format!("{mixed:016x}").chars().take(8).collect()
}
