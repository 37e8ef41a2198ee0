//! Who holds the tables we wait for.

use tokio_postgres::Client;

use crate::compiler::ident::QualName;
use crate::db::error::DbError;
use crate::text;

use super::APPLYING;

/// Sessions other than ours with granted locks on the tables that conflict with what we ask for: readers hold
/// `ACCESS SHARE`, which only the last locks of an apply conflict with, so they are named last.
const HOLDERS: &str = "
SELECT l.pid, coalesce(a.application_name, ''), coalesce(a.usename::text, ''), a.state,
       extract(epoch FROM clock_timestamp() - a.xact_start)::float8, string_agg(DISTINCT t.plain, ', '),
       l.pid <> ALL (pg_catalog.pg_blocking_pids(l.pid)) AND pg_backend_pid() = ANY (pg_catalog.pg_blocking_pids(l.pid))
FROM unnest($1::text[], $2::text[]) AS t(name, plain)
JOIN pg_catalog.pg_locks l ON l.locktype = 'relation' AND l.relation = to_regclass(t.name) AND l.granted
  AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE l.pid IS NOT NULL AND l.pid <> pg_backend_pid()
GROUP BY l.pid, a.application_name, a.usename, a.state, a.xact_start
ORDER BY bool_and(l.mode = 'AccessShareLock'), a.xact_start NULLS LAST LIMIT 5";

struct Holder {
    words: String,
    waits_for_us: bool,
}

/// The holders in words: `pid 4602 (psql as ann, idle in transaction, 12 s) holds app.folders`.
pub(super) async fn of(client: &Client, tables: &[QualName]) -> Result<Vec<String>, DbError> {
    Ok(read(client, tables).await?.into_iter().map(|holder| holder.words).collect())
}

/// True when a holder waits for us, so that waiting for it is waiting for ever.
pub(super) async fn any_waits_for_us(client: &Client, tables: &[QualName]) -> Result<bool, DbError> {
    Ok(read(client, tables).await?.iter().any(|holder| holder.waits_for_us))
}

async fn read(client: &Client, tables: &[QualName]) -> Result<Vec<Holder>, DbError> {
    let names: Vec<String> = tables.iter().map(QualName::to_string).collect();
    let plain: Vec<String> = tables.iter().map(QualName::plain).collect();
    let mut out = Vec::new();
    for row in client.query(HOLDERS, &[&names, &plain]).await? {
        let pid: i32 = row.try_get(0)?;
        let (program, role): (String, String) = (row.try_get(1)?, row.try_get(2)?);
        let state: Option<String> = row.try_get(3)?;
        let since: Option<f64> = row.try_get(4)?;
        let held: String = row.try_get(5)?;
        let mut about = Vec::new();
        match (program.as_str(), role.as_str()) {
            ("", "") => {}
            ("", role) => about.push(role.to_owned()),
            (program, role) => about.push(format!("{program} as {role}")),
        }
        about.extend(state);
        about.extend(since.map(|seconds| format!("{seconds:.0} s")));
        let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
        let words = text::line(&format!("pid {pid}{about} holds {held}")).into_owned();
        out.push(Holder { words, waits_for_us: row.try_get(6)? });
    }
    Ok(out)
}

const OTHER: &str = "
SELECT l.pid, coalesce(a.usename::text, 'unknown'), current_database()::text,
       coalesce(extract(epoch FROM clock_timestamp() - a.xact_start)::float8, 0)
FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.pid <> pg_backend_pid()
  AND l.classid = $1::int8::oid AND l.objid = $2::int8::oid
  AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
LIMIT 1";

/// The error about another apply that runs now.
pub(super) async fn other_apply(client: &Client) -> Result<DbError, DbError> {
    Ok(running(client).await?.unwrap_or_else(|| {
        DbError::Busy("another apply ran in this database just now; nothing was changed, try again".to_owned())
    }))
}

/// The same, when one runs.
pub(super) async fn running(client: &Client) -> Result<Option<DbError>, DbError> {
    let (first, second) = (i64::from(APPLYING.0), i64::from(APPLYING.1));
    let Some(row) = client.query_opt(OTHER, &[&first, &second]).await? else { return Ok(None) };
    let (pid, role): (i32, String) = (row.try_get(0)?, row.try_get(1)?);
    let (database, since): (String, f64) = (row.try_get(2)?, row.try_get(3)?);
    Ok(Some(DbError::Busy(format!(
        "another apply is running in database \"{database}\" (pid {pid} as {role}, for {since:.0} s); nothing was \
         changed, try again when it has ended"
    ))))
}
