//! A connection as the app has it, and the operations on it.
//!
//! Each operation is four round trips, as an app that signs in per transaction makes them: `BEGIN`, `SELECT
//! authz.act_as('user', $1)`, the statement, `COMMIT`. Statements are prepared once for each connection.

use std::time::Instant;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};

use super::record::Outcome;
use super::snapshot::Kind;
use crate::bench::world::Chosen;
use crate::db::connect;
use crate::db::error::DbError;
use crate::db::target::Target;

/// The role the example's app connects as.
pub const APP_ROLE: &str = "app_user";

/// The statement of each kind of operation.
pub const fn statement(kind: Kind) -> &'static str {
    match kind {
        Kind::OpenFile => "SELECT id, folder_id, owner_id, name, confidential, created_at FROM app.files WHERE id = $1",
        Kind::OpenFolder => {
            "SELECT id, name, confidential, created_at FROM app.files WHERE folder_id = $1 ORDER BY name"
        }
        Kind::Can => "SELECT authz.can('file', $1::bigint, 'edit')",
        Kind::Create => {
            "INSERT INTO app.folders (parent_id, org_id, owner_id, name) VALUES ($1, $2, $3, $4) RETURNING id"
        }
        Kind::Move | Kind::BigMove => "UPDATE app.folders SET parent_id = $2 WHERE id = $1",
        Kind::Link => "SELECT app.link_folder($1, $2)",
    }
}

const SIGN_IN: &str = "SELECT authz.act_as('user', $1::bigint)";

/// One of the app's connections.
pub(super) struct AppConnection {
    client: Client,
    sign_in: Statement,
    statements: Vec<(Kind, Statement)>,
}

/// What becomes of a connection after an operation.
pub(super) struct Ran {
    pub outcome: Outcome,
    /// False when the connection must be replaced.
    pub usable: bool,
}

impl AppConnection {
    /// Connects with the app's rights: as the target's own role when that is the app's, else by `SET ROLE`.
    pub async fn open(target: &Target, cut_off_ms: u128, kinds: &[Kind]) -> Result<AppConnection, DbError> {
        let client = connect::client(target).await?;
        // An app role has JIT off, as compiling a plan takes longer than most of these reads.
        client
            .batch_execute(&format!(
                "SET SESSION ROLE {APP_ROLE}; SET jit = off; SET statement_timeout = {cut_off_ms}; \
                 SET application_name = 'rowdeck bench'"
            ))
            .await?;
        let sign_in = client.prepare(SIGN_IN).await?;
        let mut statements = Vec::with_capacity(kinds.len());
        for kind in kinds {
            statements.push((*kind, client.prepare(statement(*kind)).await?));
        }
        Ok(AppConnection { client, sign_in, statements })
    }

    /// Runs one operation.
    pub async fn run(&self, chosen: &Chosen) -> Ran {
        match self.transaction(chosen).await {
            Ok(outcome) => Ran { outcome, usable: true },
            Err(error) => {
                let lost = self.client.is_closed();
                // A connection whose rollback fails is not used again.
                let usable = !lost && self.client.batch_execute("ROLLBACK").await.is_ok();
                Ran { outcome: failed(error, lost), usable }
            }
        }
    }

    async fn transaction(&self, chosen: &Chosen) -> Result<Outcome, tokio_postgres::Error> {
        self.client.batch_execute("BEGIN").await?;
        self.client.query_one(&self.sign_in, &[&chosen.user]).await?;
        let outcome = self.operate(chosen).await?;
        self.client.batch_execute("COMMIT").await?;
        Ok(outcome)
    }

    async fn operate(&self, chosen: &Chosen) -> Result<Outcome, tokio_postgres::Error> {
        let Some((_, statement)) = self.statements.iter().find(|(kind, _)| *kind == chosen.kind) else {
            return Ok(Outcome::Failed {
                code: "unprepared".to_owned(),
                words: format!("this connection does not run {}", chosen.kind.word()),
            });
        };
        let (id, other) = (&chosen.id, &chosen.other);
        let both: [&(dyn ToSql + Sync); 2] = [id, other];
        match chosen.kind {
            Kind::OpenFile | Kind::OpenFolder => {
                let rows = self.client.query(statement, &[id]).await?;
                Ok(if rows.is_empty() { Outcome::Denied } else { Outcome::Done })
            }
            Kind::Can => {
                let row = self.client.query_one(statement, &[id]).await?;
                Ok(if row.try_get::<_, bool>(0)? { Outcome::Done } else { Outcome::Denied })
            }
            Kind::Create => {
                self.client.query_one(statement, &[id, other, &chosen.user, &chosen.name]).await?;
                Ok(Outcome::Done)
            }
            Kind::Move | Kind::BigMove => match self.client.execute(statement, &both).await? {
                1 => Ok(Outcome::Done),
                // Somebody else changed the folder so that this user no longer sees it.
                _ => Ok(Outcome::Failed {
                    code: "no-row".to_owned(),
                    words: format!("folder {id} is not there for user {}", chosen.user),
                }),
            },
            Kind::Link => {
                self.client.query_one(statement, &both).await?;
                Ok(Outcome::Done)
            }
        }
    }
}

fn failed(error: tokio_postgres::Error, lost: bool) -> Outcome {
    let code = match error.code() {
        Some(code) => code.code().to_owned(),
        None if lost => "lost".to_owned(),
        None => "client".to_owned(),
    };
    let words = match DbError::from(error) {
        DbError::Server(refusal) => crate::text::line(&refusal.message).into_owned(),
        other => other.to_string(),
    };
    Outcome::Failed { code, words }
}

/// When an operation was to start, did start and ended.
pub(super) struct Timed {
    pub started: Instant,
    pub ended: Instant,
    pub ran: Ran,
}

/// Runs one operation and takes its times.
pub(super) async fn timed(connection: &AppConnection, chosen: &Chosen) -> Timed {
    let started = Instant::now();
    let ran = connection.run(chosen).await;
    Timed { started, ended: Instant::now(), ran }
}
