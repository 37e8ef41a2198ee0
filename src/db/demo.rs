//! The demo's database: its roles, its schema, and what marks it as harmless to play with.

use tokio_postgres::Client;

use super::connect;
use super::embedded::Server;
use super::error::DbError;

/// The database.
pub const DATABASE: &str = "docs";
/// Owns the tables and applies the policy.
pub const OWNER: &str = "rowdeck_owner";
/// The app's role, which the rules bind.
pub const APP_ROLE: &str = "app_user";
/// May read and ask everything and write nothing: to see what the console offers such a role.
pub const READER: &str = "rowdeck_ro";

/// Roles that are missing are made, so that a run that was interrupted is taken up where it stopped. The owner and
/// the reader may act as the app role, which is how an operator asks what somebody sees.
const ROLES: &str = "
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'app_user') THEN
    CREATE ROLE app_user LOGIN;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rowdeck_owner') THEN
    CREATE ROLE rowdeck_owner LOGIN CREATEROLE;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rowdeck_ro') THEN
    CREATE ROLE rowdeck_ro LOGIN;
  END IF;
END $$;
GRANT app_user TO rowdeck_owner, rowdeck_ro;
GRANT pg_read_all_data, pg_read_all_stats TO rowdeck_ro;
GRANT pg_read_all_stats TO rowdeck_owner;
ALTER ROLE rowdeck_ro SET default_transaction_read_only = on;
";

/// Makes the roles and the database where they are missing. `size` is written down in the database; when another one is
/// there already, nothing is touched and the error says so.
pub async fn prepare(server: &Server, size: &str) -> Result<(), DbError> {
    let client = connect::client(&server.target("postgres", "postgres")).await?;
    client.batch_execute(ROLES).await?;
    let comment = client
        .query_opt("SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = $1", &[&DATABASE])
        .await?;
    let wanted = format!("rowdeck demo, size {size}");
    let Some(row) = comment else {
        client.batch_execute(&format!("CREATE DATABASE {DATABASE} OWNER {OWNER}")).await?;
        client.batch_execute(&format!("COMMENT ON DATABASE {DATABASE} IS '{wanted}'")).await?;
        return Ok(());
    };
    match row.try_get::<_, Option<String>>(0)? {
        Some(found) if found == wanted => Ok(()),
        // Stopped between the two statements above: nothing can be in it yet.
        None => Ok(client.batch_execute(&format!("COMMENT ON DATABASE {DATABASE} IS '{wanted}'")).await?),
        Some(found) => Err(DbError::Usage(format!(
            "{} holds a {} already, not one of size {size}; choose another folder with --dir",
            server.folder.display(),
            crate::text::line(&found)
        ))),
    }
}

/// What a demo database still lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// Its tables.
    pub schema: bool,
    /// Its rows.
    pub rows: bool,
    /// The shares made through the policy.
    pub shares: bool,
}

/// Looks what is there. Each of the three is made in one transaction, so it is there wholly or not at all.
pub async fn missing(client: &Client) -> Result<Missing, DbError> {
    let there = |name: &'static str| async move {
        let row = client.query_one("SELECT to_regclass($1::text) IS NOT NULL", &[&name]).await?;
        Ok::<bool, DbError>(row.try_get(0)?)
    };
    let schema = !there("app.files").await?;
    let rows = schema || {
        let row = client.query_one("SELECT NOT EXISTS (SELECT FROM app.users)", &[]).await?;
        row.try_get(0)?
    };
    let shares = !there("authz.settings").await? || {
        let row = client.query_one("SELECT NOT EXISTS (SELECT FROM authz.settings WHERE key = 'demo_shares')", &[]);
        row.await?.try_get(0)?
    };
    Ok(Missing { schema, rows, shares })
}

/// Writes down that the shares are made.
pub async fn shares_made(client: &Client) -> Result<(), DbError> {
    set(client, "demo_shares", "true").await
}

/// Marks the database as one whose data may be written to by tests.
pub async fn mark_development(client: &Client) -> Result<(), DbError> {
    set(client, "development", "true").await
}

async fn set(client: &Client, key: &str, value: &str) -> Result<(), DbError> {
    client
        .execute(
            "INSERT INTO authz.settings (key, value) VALUES ($1, $2)
             ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            &[&key, &value],
        )
        .await?;
    Ok(())
}
