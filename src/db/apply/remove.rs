//! Taking everything of ours out of a database, in one transaction. Row-level security stays on: a table that was
//! governed is closed to everybody but its owner until somebody opens it.

use std::collections::BTreeSet;
use std::time::Instant;

use serde::Serialize;
use tokio_postgres::Client;

use super::{APPLYING, ApplyOptions, Waits, begin_sql, clear, ended, holders};
use crate::compiler::ident::{Ident, QualName};
use crate::compiler::objects::{LockMode, ObjectKind};
use crate::db::cancel::Stop;
use crate::db::compat::{self, Release};
use crate::db::connect::Session;
use crate::db::error::DbError;
use crate::db::plan::locks::{Touched, touched_now};
use crate::db::plan::state::{Record, is_qualified};
use crate::db::plan::{Blocker, changes};
use crate::db::progress::{Progress, Reporter};

/// What a removal takes away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Removal {
    /// The version in force.
    pub version: i64,
    /// Tables whose rules go, and that stay closed.
    pub tables: Vec<String>,
    /// Shares that are lost.
    pub shares: i64,
}

/// How a removal ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RemoveReport {
    /// What it took away.
    #[serde(flatten)]
    pub removal: Removal,
    /// Seconds it took.
    pub seconds: f64,
    /// For each table that stays closed, the statement that opens it to whoever has the grants.
    pub to_open: Vec<String>,
}

/// Says what a removal would take away. It changes nothing.
///
/// # Errors
/// AZ609 when nothing is applied, AZ616 when a newer release did.
pub async fn removal(session: &Session) -> Result<Removal, DbError> {
    if let Release::Newer(program) = compat::read(&session.client).await? {
        return Err(DbError::Usage(compat::newer(&program)));
    }
    let version = session.info.require_policy()?.version;
    let touched = touched_now(&session.client).await?;
    let tables = touched.policies.iter().map(QualName::plain).collect();
    Ok(Removal { version, tables, shares: shares(&session.client).await? })
}

/// Shares by their tables, counted.
async fn shares(client: &Client) -> Result<i64, DbError> {
    let sql = "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c
               JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = 'authz_int' AND c.relkind = 'r' AND c.relname ^@ 'share'";
    let mut count = 0;
    for row in client.query(sql, &[]).await? {
        let table: String = row.try_get(0)?;
        let rows = client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await?;
        count += rows.try_get::<_, i64>(0)?;
    }
    Ok(count)
}

/// Removes everything of ours. Who holds a table is waited for as in an apply.
///
/// # Errors
/// When somebody built on what is ours (AZ614), or when a lock is not to be had; nothing is changed then.
pub async fn remove(
    session: &Session,
    options: &ApplyOptions,
    reporter: &Reporter,
    stop: &Stop,
) -> Result<RemoveReport, DbError> {
    let started = Instant::now();
    let removal = removal(session).await?;
    let mut waits = Waits::new(options);
    loop {
        match once(session, options).await {
            Ok(touched) => {
                let mut to_open = Vec::new();
                for table in &touched.policies {
                    reporter.send(Progress::Note { text: changes::left_closed(table) }).await;
                    to_open.push(format!("ALTER TABLE {table} DISABLE ROW LEVEL SECURITY"));
                }
                return Ok(RemoveReport { removal, seconds: started.elapsed().as_secs_f64(), to_open });
            }
            Err(DbError::Server(refusal))
                if matches!(refusal.sqlstate.as_str(), "55P03" | "40P01") && !stop.asked() =>
            {
                session.client.batch_execute("ROLLBACK").await?;
                let touched = touched_now(&session.client).await?;
                let tables: Vec<QualName> = tables(&touched).into_iter().collect();
                waits.again(&session.client, &tables, reporter, stop).await?;
            }
            Err(error) => return Err(ended(session, stop, error).await),
        }
    }
}

fn tables(touched: &Touched) -> BTreeSet<QualName> {
    touched.policies.iter().chain(touched.triggers.iter().map(|(table, _)| table)).cloned().collect()
}

const OURS: &str = "
SELECT ARRAY(SELECT c.oid FROM pg_catalog.pg_class c WHERE c.relnamespace = ANY (s.oids)),
       ARRAY(SELECT p.oid FROM pg_catalog.pg_proc p WHERE p.pronamespace = ANY (s.oids)),
       ARRAY(SELECT t.oid FROM pg_catalog.pg_type t WHERE t.typnamespace = ANY (s.oids))
FROM (SELECT array_agg(n.oid) AS oids FROM pg_catalog.pg_namespace n
      WHERE n.nspname IN ('authz', 'authz_gen', 'authz_int')) AS s";

async fn once(session: &Session, options: &ApplyOptions) -> Result<Touched, DbError> {
    let client = &session.client;
    client.batch_execute(&begin_sql(options.lock_timeout, session.info.version_num)).await?;
    let sql = "SELECT pg_try_advisory_xact_lock($1, $2)";
    if !client.query_one(sql, &[&APPLYING.0, &APPLYING.1]).await?.try_get::<_, bool>(0)? {
        return Err(holders::other_apply(client).await?);
    }
    let touched = touched_now(client).await?;
    // All of them or none, in the order of their names: nobody waits for a table we hold while we wait for another.
    let names: Vec<String> = tables(&touched).iter().map(QualName::to_string).collect();
    if !names.is_empty() {
        let sql = format!("LOCK TABLE {} IN {} MODE", names.join(", "), LockMode::AccessExclusive.sql());
        client.batch_execute(&sql).await?;
    }
    let mut statements: Vec<String> = Vec::new();
    statements.extend(touched.named_policies.iter().map(|(t, p)| format!("DROP POLICY {} ON {t}", Ident::new(p))));
    statements.extend(touched.triggers.iter().map(|(t, g)| format!("DROP TRIGGER {} ON {t}", Ident::new(g))));
    statements.extend(views_elsewhere(client).await?.into_iter().map(|view| format!("DROP VIEW IF EXISTS {view}")));
    for statement in &statements {
        client.batch_execute(statement).await?;
    }
    let row = client.query_one(OURS, &[]).await?;
    let (relations, routines, types): (Vec<u32>, Vec<u32>, Vec<u32>) =
        (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let none: Vec<&str> = Vec::new();
    let mut blockers = Vec::new();
    for row in client.query(clear::OTHERS, &[&relations, &routines, &types, &none]).await? {
        let (other, ours): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        blockers.push(Blocker::new(format!("{other} uses {ours}, which goes")).code(614).help("drop it first"));
    }
    if !blockers.is_empty() {
        return Err(DbError::Blocked(blockers));
    }
    client.batch_execute("DROP SCHEMA authz_gen, authz_int, authz CASCADE; COMMIT").await?;
    Ok(touched)
}

/// Views the policy made in schemas of others: those of masked tables.
async fn views_elsewhere(client: &Client) -> Result<Vec<String>, DbError> {
    let sql = "SELECT objects FROM authz.policy_versions ORDER BY version DESC LIMIT 1";
    let Some(row) = client.query_opt(sql, &[]).await? else { return Ok(Vec::new()) };
    let record: Record = serde_json::from_value(row.try_get(0)?).unwrap_or_default();
    let view = ObjectKind::View.word();
    let names = record.objects.into_iter().filter(|made| made.kind == view).map(|made| made.name);
    Ok(names.filter(|name| is_qualified(name) && !name.starts_with("authz")).collect())
}
