//! What the server's catalog says that the console, the lints and the plan need: the lock table, row estimates, who
//! owns what, and whether a role is bound by row-level security.

use serde::Serialize;
use tokio_postgres::Client;

use super::error::DbError;
use crate::compiler::ident::{Ident, QualName};

/// The server's shared lock table. An apply takes a lock for every object it makes or changes and keeps it until the
/// commit; when the table is full the server answers "out of shared memory".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LockTable {
    /// `max_locks_per_transaction * (max_connections + max_prepared_transactions)`.
    pub capacity: u64,
    /// Locks held now.
    pub held: u64,
    /// The setting to raise.
    pub max_locks_per_transaction: u64,
}

impl LockTable {
    /// Entries that are free now.
    pub fn free(self) -> u64 {
        self.capacity.saturating_sub(self.held)
    }

    /// Reads it. Fast-path locks (weak locks on few tables) take no entry and are not counted.
    pub async fn read(client: &Client) -> Result<LockTable, DbError> {
        let row = client
            .query_one(
                "SELECT m.each, m.each * (current_setting('max_connections')::bigint
                                          + current_setting('max_prepared_transactions')::bigint),
                        (SELECT count(*) FROM pg_catalog.pg_locks l WHERE NOT l.fastpath
                            AND l.locktype IN ('relation', 'extend', 'object', 'advisory', 'transactionid', 'virtualxid'))
                 FROM (SELECT current_setting('max_locks_per_transaction')::bigint AS each) m",
                &[],
            )
            .await?;
        let number = |at: usize| -> Result<u64, DbError> { Ok(u64::try_from(row.try_get::<_, i64>(at)?).unwrap_or(0)) };
        Ok(LockTable { max_locks_per_transaction: number(0)?, capacity: number(1)?, held: number(2)? })
    }
}

/// Every table, view and partitioned table of the database that is not the server's or ours, with its columns: at most
/// so many columns in all.
pub async fn columns(client: &Client, most: i64) -> Result<Vec<(String, Vec<String>)>, DbError> {
    let rows = client
        .query(
            "SELECT n.nspname::text, c.relname::text, a.attname::text
             FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
             WHERE c.relkind IN ('r', 'p', 'v', 'f') AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped
               AND n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', 'authz', 'authz_gen', 'authz_int')
             ORDER BY 1, 2, a.attnum LIMIT $1",
            &[&most],
        )
        .await?;
    let mut tables: Vec<(String, Vec<String>)> = Vec::new();
    for row in rows {
        let table = QualName::new(row.try_get::<_, String>(0)?, row.try_get::<_, String>(1)?).plain();
        let column = Ident::new(row.try_get::<_, String>(2)?).plain();
        match tables.last_mut() {
            Some((last, columns)) if *last == table => columns.push(column),
            _ => tables.push((table, vec![column])),
        }
    }
    Ok(tables)
}

/// A table as the catalog knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableFacts {
    /// `app.folders`
    pub table: String,
    /// Its owner.
    pub owner: String,
    /// Rows, as the server estimates them.
    pub rows: u64,
    /// Row-level security is on.
    pub rls: bool,
    /// Its policies.
    pub policies: u64,
}

/// The facts of a table; `None` when there is no such table.
pub async fn table_facts(client: &Client, table: &QualName) -> Result<Option<TableFacts>, DbError> {
    let row = client
        .query_opt(
            "SELECT pg_catalog.pg_get_userbyid(c.relowner)::text, greatest(c.reltuples, 0)::bigint, c.relrowsecurity,
                    (SELECT count(*) FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid)
             FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p')",
            &[&table.schema.as_str(), &table.name.as_str()],
        )
        .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(TableFacts {
        table: table.plain(),
        owner: row.try_get(0)?,
        rows: u64::try_from(row.try_get::<_, i64>(1)?).unwrap_or(0),
        rls: row.try_get(2)?,
        policies: u64::try_from(row.try_get::<_, i64>(3)?).unwrap_or(0),
    }))
}

/// Fails unless `role` exists and row-level security binds it on `tables`: what is asked as a role that the rules do
/// not bind proves nothing.
pub async fn require_bound(client: &Client, role: &Ident, tables: &[QualName]) -> Result<(), DbError> {
    let schemas: Vec<&str> = tables.iter().map(|t| t.schema.as_str()).collect();
    let names: Vec<&str> = tables.iter().map(|t| t.name.as_str()).collect();
    let row = client
        .query_opt(
            "SELECT r.rolsuper, r.rolbypassrls,
                    (SELECT min(n.nspname || '.' || c.relname) FROM pg_catalog.pg_class c
                     JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                     JOIN unnest($2::text[], $3::text[]) AS t(schema, name) ON t.schema = n.nspname AND t.name = c.relname
                     WHERE NOT r.rolsuper AND pg_catalog.pg_has_role(r.oid, c.relowner, 'USAGE')),
                    (SELECT min(n.nspname || '.' || c.relname) FROM pg_catalog.pg_class c
                     JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                     JOIN unnest($2::text[], $3::text[]) AS t(schema, name) ON t.schema = n.nspname AND t.name = c.relname
                     WHERE NOT c.relrowsecurity)
             FROM pg_catalog.pg_roles r WHERE r.rolname = $1",
            &[&role.as_str(), &schemas, &names],
        )
        .await?;
    let name = crate::text::line(role.as_str()).into_owned();
    let Some(row) = row else {
        return Err(DbError::Usage(format!("there is no role \"{name}\", which the policy names as its app role")));
    };
    let why = if row.try_get(0)? {
        format!("role \"{name}\" is a superuser")
    } else if row.try_get(1)? {
        format!("role \"{name}\" has BYPASSRLS")
    } else if let Some(table) = row.try_get::<_, Option<String>>(2)? {
        format!("role \"{name}\" owns {}, or is a member of its owner", crate::text::line(&table))
    } else if let Some(table) = row.try_get::<_, Option<String>>(3)? {
        format!("row-level security is off on {}", crate::text::line(&table))
    } else {
        return Ok(());
    };
    Err(DbError::Unbound(why))
}
