//! Ways around row-level security that are in a database: what `authz.lint()` finds.

use serde::Serialize;
use tokio_postgres::Client;

use super::compat;
use super::error::DbError;

/// One way around.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// `AZ821`
    pub code: String,
    /// `error`, `warning` or `info`.
    pub severity: String,
    /// The role, table, view, function or schema.
    pub object: String,
    /// Why it is one.
    pub why: String,
    /// The statement that closes it, or what to do where no statement does.
    pub fix: String,
}

impl Finding {
    /// True for what should not stay; the others are worth knowing.
    pub fn is_serious(&self) -> bool {
        self.severity != "info"
    }

    /// `error: app.files: row-level security is off [AZ821]`, then what closes it.
    pub fn lines(&self) -> Vec<String> {
        let severity = if self.severity == "error" { String::new() } else { format!("{}: ", self.severity) };
        vec![format!("{severity}{}: {} [{}]", self.object, self.why, self.code), format!("    {}", self.fix)]
    }
}

/// Every way around the rules, the worst first. It changes nothing and locks nothing.
///
/// # Errors
/// AZ609 without a policy, AZ616 and AZ626 when the database and this program are of different releases.
pub async fn run(client: &Client) -> Result<Vec<Finding>, DbError> {
    compat::require(client).await?;
    asked(client, "SELECT code, severity, object, why, fix FROM authz.lint()").await
}

/// What frees this very session from the rules; empty when they bind it.
///
/// # Errors
/// When the database has no policy, or an older release's.
pub async fn connection(client: &Client) -> Result<Vec<Finding>, DbError> {
    asked(client, "SELECT code, severity, object, why, fix FROM authz.connection_check()").await
}

async fn asked(client: &Client, sql: &str) -> Result<Vec<Finding>, DbError> {
    let rows = client.query(sql, &[]).await?;
    rows.iter()
        .map(|row| {
            Ok(Finding {
                code: row.try_get(0)?,
                severity: row.try_get(1)?,
                object: row.try_get(2)?,
                why: row.try_get(3)?,
                fix: row.try_get(4)?,
            })
        })
        .collect()
}
