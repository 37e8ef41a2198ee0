//! What the database enforces against what the last apply left, object by object, each difference with the statement
//! that mends it.
//!
//! An apply keeps, as its last act, how the server itself writes everything that is enforced (`sql/70_enforced.sql`): the
//! comparison is of the server's words with the server's words, so nothing has to be made afresh, and no table of the app
//! is locked. The words name objects and never OIDs, so that a restored database compares as the first one did.

use serde::Serialize;
use serde_json::Value;
use tokio_postgres::Client;

use super::compat;
use super::error::DbError;

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drift {
    /// `missing`, `extra` or `changed`.
    pub what: String,
    /// What it is: `policy`, `row security`, `function`, `grant`, `trigger state`.
    pub kind: String,
    /// Which one: `app.files: authz_select`.
    pub object: String,
    /// How the apply left it.
    pub expected: Option<String>,
    /// How it is.
    pub found: Option<String>,
    /// The statement that mends it, or the command.
    pub mend: Option<String>,
}

impl Drift {
    /// `changed: policy app.files: authz_select`, then what mends it.
    pub fn lines(&self) -> Vec<String> {
        let mut out = vec![format!("{}: {} {}", self.what, self.kind, self.object)];
        out.extend(self.mend.iter().map(|mend| format!("  mend: {mend}")));
        out
    }
}

/// Every difference, those that open or close tables first.
///
/// # Errors
/// AZ609 without a policy, AZ616 and AZ626 when the database and this program are of different releases.
pub async fn run(client: &Client) -> Result<Vec<Drift>, DbError> {
    compat::require(client).await?;
    let rows = client.query("SELECT what, kind, object, expected, found, mend FROM authz.drift()", &[]).await?;
    rows.iter()
        .map(|row| {
            Ok(Drift {
                what: row.try_get(0)?,
                kind: row.try_get(1)?,
                object: row.try_get(2)?,
                expected: row.try_get(3)?,
                found: row.try_get(4)?,
                mend: row.try_get(5)?,
            })
        })
        .collect()
}

/// What had drifted before an apply, as `keep_enforced` takes it; nothing in a database that has no such function yet.
pub(crate) async fn before(client: &Client) -> Result<Value, DbError> {
    const THERE: &str = "SELECT to_regnamespace('authz') IS NOT NULL AND EXISTS (
        SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname = 'authz' AND p.proname = 'drift')
        AND EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                    WHERE n.nspname = 'authz_int' AND c.relname = 'enforced')";
    if !client.query_one(THERE, &[]).await?.try_get::<_, bool>(0)? {
        return Ok(Value::Array(Vec::new()));
    }
    let sql = "SELECT coalesce(jsonb_agg(jsonb_build_object('kind', kind, 'object', object, 'expected', expected,
                                                            'found', found)), '[]') FROM authz.drift()";
    Ok(client.query_one(sql, &[]).await?.try_get(0)?)
}

/// Keeps the description: schemas, tables and names of the policy's policies, its app role, and [`before`].
pub(crate) const KEEP: &str = "SELECT authz_int.keep_enforced(
    ARRAY(SELECT format('%I.%I: %I', x.s, x.t, x.p) FROM unnest($1::text[], $2::text[], $3::text[]) AS x(s, t, p)),
    $4::text, $5::jsonb)";
