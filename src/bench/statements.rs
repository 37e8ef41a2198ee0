//! What took the server longest, where `pg_stat_statements` is there.

use std::collections::HashMap;

use tokio_postgres::Client;

use super::result::TopStatement;

/// The counts when measuring began.
#[derive(Debug)]
pub(super) struct Statements(HashMap<String, (i64, f64)>);

/// How many are told.
const TOP: usize = 10;

impl Statements {
    /// `None` where the extension is not there, or may not be read.
    pub async fn start(owner: &Client) -> Option<Statements> {
        read(owner).await.map(Statements)
    }

    /// The statements that took longest since, longest first.
    pub async fn top(&self, owner: &Client) -> Vec<TopStatement> {
        let since = |(query, (calls, total_ms)): (String, (i64, f64))| {
            let (calls_then, total_then) = self.0.get(&query).copied().unwrap_or_default();
            TopStatement { query, calls: calls - calls_then, total_ms: total_ms - total_then }
        };
        let mut top: Vec<TopStatement> = read(owner).await.unwrap_or_default().into_iter().map(since).collect();
        top.retain(|one| one.calls > 0);
        top.sort_by(|a, b| b.total_ms.total_cmp(&a.total_ms));
        top.truncate(TOP);
        top
    }
}

async fn read(owner: &Client) -> Option<HashMap<String, (i64, f64)>> {
    let there = "SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
                  WHERE e.extname = 'pg_stat_statements'";
    let schema: String = owner.query_opt(there, &[]).await.ok()??.try_get(0).ok()?;
    let all = format!(
        "SELECT query, sum(calls)::bigint, sum(total_exec_time) FROM {schema}.pg_stat_statements
          WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND query IS NOT NULL GROUP BY 1"
    );
    // Installed and not loaded, it is an error to read it.
    let rows = owner.query(&all, &[]).await.ok()?;
    let one = |row: &tokio_postgres::Row| Some((row.try_get(0).ok()?, (row.try_get(1).ok()?, row.try_get(2).ok()?)));
    rows.iter().map(one).collect()
}
