//! What an operator on call wants to know first: how large the index is, who waits for whom, and what is not as it
//! should be. Everything comes from the catalog and the statistics; nothing is locked, and no table is read.

use serde::Serialize;
use tokio_postgres::Client;

use super::error::DbError;

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// The rules do not bind, or the index goes stale.
    Wrong,
    /// Worth a look.
    Look,
}

/// Something that needs the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attention {
    /// How bad it is.
    pub weight: Weight,
    /// What it is.
    pub words: String,
    /// What to do.
    pub help: String,
}

/// The stored inheritance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
pub struct Index {
    /// Bytes on disk, with indexes.
    pub bytes: u64,
    /// Objects in it, about.
    pub objects: u64,
    /// Clusters, about.
    pub clusters: u64,
}

/// A session that waits for a lock.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Wait {
    /// Who waits.
    pub pid: i32,
    /// For how long.
    pub seconds: f64,
    /// For what.
    pub waits_for: String,
    /// Who is in the way, in words.
    pub holders: Vec<String>,
}

/// Counters that only grow; two readings make a rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Default)]
pub struct Counters {
    /// Rows of governed tables written.
    pub rows_written: i64,
    /// Rows of the index written.
    pub index_written: i64,
    /// Transactions committed in this database.
    pub committed: i64,
    /// Transactions rolled back in this database.
    pub rolled_back: i64,
    /// When, in seconds of the server's clock.
    pub at: f64,
}

/// What [`read`] found.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Overview {
    /// Governed tables, those with policies of ours.
    pub governed: u64,
    /// Rows in them, about.
    pub rows: u64,
    /// The stored inheritance.
    pub index: Index,
    /// Who waits for a lock.
    pub waits: Vec<Wait>,
    /// What needs the operator.
    pub attention: Vec<Attention>,
    /// Counters now.
    pub counters: Counters,
    /// The role may see what others run.
    pub sees_others: bool,
}

const NUMBERS: &str = "
WITH governed AS (
    SELECT DISTINCT p.polrelid AS oid FROM pg_catalog.pg_policy p WHERE p.polname ^@ 'authz_'),
inside AS (
    SELECT c.oid, c.relname, c.reltuples FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'authz_int' AND c.relkind = 'r')
SELECT (SELECT count(*) FROM governed),
       (SELECT coalesce(sum(greatest(c.reltuples, 0)), 0)::bigint FROM pg_catalog.pg_class c JOIN governed g ON g.oid = c.oid),
       (SELECT coalesce(sum(pg_catalog.pg_total_relation_size(i.oid)), 0)::bigint FROM inside i),
       (SELECT coalesce(sum(greatest(i.reltuples, 0)), 0)::bigint FROM inside i WHERE i.relname ~ '_node$'),
       (SELECT coalesce(sum(greatest(i.reltuples, 0)), 0)::bigint FROM inside i WHERE i.relname ~ '_cluster$'),
       (SELECT coalesce(sum(s.n_tup_ins + s.n_tup_upd + s.n_tup_del), 0)::bigint
        FROM pg_catalog.pg_stat_all_tables s JOIN governed g ON g.oid = s.relid),
       (SELECT coalesce(sum(s.n_tup_ins + s.n_tup_upd + s.n_tup_del), 0)::bigint
        FROM pg_catalog.pg_stat_all_tables s WHERE s.schemaname = 'authz_int'),
       d.xact_commit, d.xact_rollback, extract(epoch FROM clock_timestamp())::float8,
       pg_catalog.pg_has_role(current_user, 'pg_read_all_stats', 'USAGE')
FROM pg_catalog.pg_stat_database d WHERE d.datname = current_database()";

/// Reads it; `app_role` is whom the policy in force is about.
pub async fn read(client: &Client, app_role: Option<&str>) -> Result<Overview, DbError> {
    let row = client.query_one(NUMBERS, &[]).await?;
    let number = |at: usize| -> Result<u64, DbError> { Ok(u64::try_from(row.try_get::<_, i64>(at)?).unwrap_or(0)) };
    let mut out = Overview {
        governed: number(0)?,
        rows: number(1)?,
        index: Index { bytes: number(2)?, objects: number(3)?, clusters: number(4)? },
        counters: Counters {
            rows_written: row.try_get(5)?,
            index_written: row.try_get(6)?,
            committed: row.try_get(7)?,
            rolled_back: row.try_get(8)?,
            at: row.try_get(9)?,
        },
        sees_others: row.try_get(10)?,
        ..Overview::default()
    };
    out.waits = waits(client).await?;
    for row in client.query(ATTENTION, &[&app_role]).await? {
        let weight = if row.try_get(0)? { Weight::Wrong } else { Weight::Look };
        let clean = |text: String| crate::text::line(&text).into_owned();
        out.attention.push(Attention { weight, words: clean(row.try_get(1)?), help: clean(row.try_get(2)?) });
    }
    Ok(out)
}

async fn waits(client: &Client) -> Result<Vec<Wait>, DbError> {
    let sessions = super::sessions::read(client).await?;
    let who = |pid: &i32| {
        let known = sessions.rows.iter().find(|row| row.pid == *pid);
        let about = known.map_or_else(String::new, |row| {
            let state = if row.state.is_empty() { "state hidden" } else { row.state.as_str() };
            let age = row.since.map_or_else(String::new, |seconds| format!(" {seconds:.0} s"));
            format!(" ({}, {state}{age})", row.role)
        });
        crate::text::line(&format!("{pid}{about}")).into_owned()
    };
    let waiting = sessions.rows.iter().filter(|row| !row.blocked_by.is_empty());
    Ok(waiting
        .map(|row| Wait {
            pid: row.pid,
            seconds: row.since.unwrap_or(0.0),
            waits_for: crate::text::line(row.waits_for.as_deref().unwrap_or("a lock")).into_owned(),
            holders: row.blocked_by.iter().map(who).collect(),
        })
        .collect())
}

/// Each row: whether it is wrong, what it is, what to do. The worst come first.
const ATTENTION: &str = "
WITH governed AS (
    SELECT DISTINCT c.oid, c.oid::regclass::text AS name, c.relrowsecurity, c.relowner
    FROM pg_catalog.pg_policy p JOIN pg_catalog.pg_class c ON c.oid = p.polrelid WHERE p.polname ^@ 'authz_'),
app AS (SELECT r.oid, r.rolname::text AS name, r.rolsuper, r.rolbypassrls FROM pg_catalog.pg_roles r WHERE r.rolname = $1)
SELECT true AS wrong, format('row-level security is off on %s', g.name) AS words,
       format('every row is open to whoever may read the table; ALTER TABLE %s ENABLE ROW LEVEL SECURITY', g.name) AS help
FROM governed g WHERE NOT g.relrowsecurity
UNION ALL
SELECT true, format('the app role %s %s', a.name, CASE WHEN a.rolsuper THEN 'is a superuser' ELSE 'has BYPASSRLS' END),
       'no rule binds it; ALTER ROLE ... NOSUPERUSER NOBYPASSRLS'
FROM app a WHERE a.rolsuper OR a.rolbypassrls
UNION ALL
SELECT true, format('the app role %s owns %s, or is a member of its owner', a.name, g.name),
       'row-level security does not bind owners; the app must connect as another role'
FROM app a CROSS JOIN governed g WHERE NOT a.rolsuper AND pg_catalog.pg_has_role(a.oid, g.relowner, 'USAGE')
UNION ALL
SELECT true, format('partition %s is open', i.inhrelid::regclass),
       format('the rules of %s do not bind who names the partition itself; revoke the app role''s rights on it', g.name)
FROM governed g JOIN pg_catalog.pg_inherits i ON i.inhparent = g.oid JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
CROSS JOIN app a
WHERE NOT c.relrowsecurity AND pg_catalog.has_table_privilege(a.oid, c.oid, 'SELECT, INSERT, UPDATE, DELETE')
UNION ALL
SELECT true, format('trigger %s on %s is off', t.tgname, t.tgrelid::regclass),
       'the index is not kept while it is; ALTER TABLE ... ENABLE TRIGGER, then verify and repair'
FROM pg_catalog.pg_trigger t WHERE t.tgname ^@ 'authz_' AND t.tgenabled = 'D' AND NOT t.tgisinternal
UNION ALL
SELECT p.polpermissive, format('policy %s on %s is not ours', p.polname, g.name),
       CASE WHEN p.polpermissive THEN 'it lets more through than the policy in force says; drop it, or say it in the policy'
            ELSE 'it lets less through than the policy in force says' END
FROM governed g JOIN pg_catalog.pg_policy p ON p.polrelid = g.oid WHERE NOT p.polname ^@ 'authz_'
UNION ALL
SELECT true, format('index %s is not valid', x.indexrelid::regclass), 'REINDEX INDEX CONCURRENTLY mends it'
FROM pg_catalog.pg_index x JOIN pg_catalog.pg_class c ON c.oid = x.indrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE NOT x.indisvalid AND (n.nspname = 'authz_int' OR c.oid IN (SELECT g.oid FROM governed g))
UNION ALL
SELECT false, format('pid %s is idle in a transaction for %s', a.pid, date_trunc('second', clock_timestamp() - a.xact_start)),
       'it keeps its locks and keeps vacuum from cleaning; Activity shows it'
FROM pg_catalog.pg_stat_activity a
WHERE a.datname = current_database() AND a.state ^@ 'idle in transaction'
  AND a.xact_start < clock_timestamp() - interval '5 minutes'
ORDER BY 1 DESC, 2 LIMIT 100";
