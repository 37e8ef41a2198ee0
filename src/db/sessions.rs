//! The sessions of a database: who waits for whom, and ending one that is in the way.

use serde::Serialize;
use tokio_postgres::Client;

use super::catalog::LockTable;
use super::error::DbError;

/// At most so many sessions are read.
pub const MOST: usize = 200;

/// One session of the database.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct SessionRow {
    /// Its server process.
    pub pid: i32,
    /// When that process started, as the server counts: with the pid it names one session for good.
    pub started: f64,
    /// Its role.
    pub role: String,
    /// What it calls itself.
    pub application: String,
    /// Where it comes from; `local` for a socket.
    pub client: String,
    /// `active`, `idle`, `idle in transaction`; empty where the role may not know.
    pub state: String,
    /// Seconds since its transaction began.
    pub transaction: Option<f64>,
    /// Seconds since its state last changed.
    pub since: Option<f64>,
    /// The sessions it waits for.
    pub blocked_by: Vec<i32>,
    /// What it waits for.
    pub waits_for: Option<String>,
    /// What it runs, or ran last.
    pub query: String,
    /// The role may not see what it runs.
    pub hidden: bool,
}

/// The sessions of the database, those that wait first, then those with the oldest transaction.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Sessions {
    /// The sessions.
    pub rows: Vec<SessionRow>,
    /// There are more than were read.
    pub cut: bool,
    /// The server's lock table, where the role may ask.
    pub locks: Option<LockTable>,
}

const SESSIONS: &str = "
SELECT a.pid, extract(epoch FROM a.backend_start)::float8, coalesce(a.usename::text, ''),
       coalesce(a.application_name, ''), coalesce(host(a.client_addr), 'local'), coalesce(a.state, ''),
       extract(epoch FROM clock_timestamp() - a.xact_start)::float8,
       extract(epoch FROM clock_timestamp() - a.state_change)::float8, b.pids,
       CASE WHEN cardinality(b.pids) > 0 THEN
           (SELECT coalesce(string_agg(DISTINCT coalesce(l.relation::regclass::text, l.locktype) || ' (' || l.mode || ')', ', '), '')
            FROM pg_catalog.pg_locks l WHERE l.pid = a.pid AND NOT l.granted) END,
       left(coalesce(a.query, ''), 2000), a.state IS NULL
FROM pg_catalog.pg_stat_activity a
CROSS JOIN LATERAL (SELECT CASE WHEN a.wait_event_type = 'Lock' THEN pg_catalog.pg_blocking_pids(a.pid) ELSE '{}' END) b(pids)
WHERE a.datname = current_database() AND a.backend_type = 'client backend' AND a.pid <> pg_catalog.pg_backend_pid()
ORDER BY cardinality(b.pids) = 0, a.xact_start NULLS LAST, a.pid LIMIT 201";

/// Reads them.
pub async fn read(client: &Client) -> Result<Sessions, DbError> {
    let found = client.query(SESSIONS, &[]).await?;
    let mut rows = Vec::with_capacity(found.len());
    for row in found.iter().take(MOST) {
        rows.push(SessionRow {
            pid: row.try_get(0)?,
            started: row.try_get(1)?,
            role: row.try_get(2)?,
            application: row.try_get(3)?,
            client: row.try_get(4)?,
            state: row.try_get(5)?,
            transaction: row.try_get(6)?,
            since: row.try_get(7)?,
            blocked_by: row.try_get(8)?,
            waits_for: row.try_get(9)?,
            query: row.try_get(10)?,
            hidden: row.try_get(11)?,
        });
    }
    let locks = LockTable::read(client).await.ok();
    Ok(Sessions { rows, cut: found.len() > MOST, locks })
}

/// What to do to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// Cancel the statement it runs; the session stays.
    Cancel,
    /// End the session; its transaction is rolled back.
    Terminate,
}

/// Cancels or ends the session of this process that started then: a pid that another session has got meanwhile is left
/// alone. True when the server sent the signal.
pub async fn end(client: &Client, pid: i32, started: f64, how: End) -> Result<bool, DbError> {
    let function = match how {
        End::Cancel => "pg_cancel_backend",
        End::Terminate => "pg_terminate_backend",
    };
    let asked = format!(
        "SELECT pg_catalog.{function}(a.pid) FROM pg_catalog.pg_stat_activity a
         WHERE a.pid = $1 AND extract(epoch FROM a.backend_start)::float8 = $2 AND a.datname = current_database()"
    );
    match client.query_opt(&asked, &[&pid, &started]).await? {
        Some(row) => Ok(row.try_get(0)?),
        None => Err(DbError::Usage(format!("the session with pid {pid} has ended already"))),
    }
}
