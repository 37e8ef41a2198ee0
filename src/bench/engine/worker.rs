//! A connection with the app's rights, as a scenario uses it.

use std::collections::HashMap;
use std::time::Duration;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use crate::bench::live::APP_ROLE;
use crate::bench::random::Rng;
use crate::db::connect;
use crate::db::error::DbError;
use crate::db::target::Target;

/// One connection, and what goes with it.
pub struct Worker {
    /// For what the helpers below do not do.
    pub client: Client,
    /// Random choices: the same for the same seed and worker.
    pub rng: Rng,
    /// Which worker, from 0.
    pub number: usize,
    statements: HashMap<&'static str, Statement>,
    cut_off: Duration,
    target: Target,
    second: Option<Box<Worker>>,
    sign_in: &'static str,
}

const SIGN_IN: &str = "SELECT authz.act_as('user', $1::bigint)";

/// Parameters of a statement.
pub type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Worker {
    /// Connects: as the target's own role when that is the app's, else by `SET ROLE`.
    pub async fn connect(target: &Target, cut_off: Duration, number: usize, rng: Rng) -> Result<Worker, DbError> {
        let client = open(target, cut_off).await?;
        let (statements, target) = (HashMap::new(), target.clone());
        Ok(Worker { client, rng, number, statements, cut_off, target, second: None, sign_in: SIGN_IN })
    }

    /// Signs in with another statement of one parameter: where there is no policy, with one that does nothing.
    pub(crate) fn with_sign_in(self, sign_in: &'static str) -> Worker {
        Worker { sign_in, ..self }
    }

    pub(super) async fn reconnect(&mut self, target: &Target) -> Result<(), DbError> {
        self.client = open(target, self.cut_off).await?;
        self.statements.clear();
        self.second = None;
        Ok(())
    }

    pub(super) fn lost(&self) -> bool {
        self.client.is_closed()
    }

    /// Ends a transaction that failed. False when the connection is of no use any more.
    pub(super) async fn roll_back(&mut self) -> bool {
        self.second = None;
        self.client.batch_execute("ROLLBACK").await.is_ok()
    }

    /// The prepared statement; prepared once for each connection.
    pub async fn statement(&mut self, sql: &'static str) -> Result<Statement, tokio_postgres::Error> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }

    /// Begins a transaction as somebody.
    pub async fn begin(&mut self, user: i64) -> Result<(), tokio_postgres::Error> {
        let sign_in = self.statement(self.sign_in).await?;
        self.client.batch_execute("BEGIN").await?;
        self.client.query_one(&sign_in, &[&user]).await.map(|_| ())
    }

    /// Commits it.
    pub async fn commit(&mut self) -> Result<(), tokio_postgres::Error> {
        self.client.batch_execute("COMMIT").await
    }

    /// One statement as somebody, in a transaction of its own: four round trips, as an app makes them.
    pub async fn ask(
        &mut self,
        user: i64,
        sql: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let statement = self.statement(sql).await?;
        self.begin(user).await?;
        let rows = self.client.query(&statement, parameters).await?;
        self.commit().await?;
        Ok(rows)
    }

    /// The same where only the number of rows written is wanted. A refusal is `Ok(Err)` with its SQLSTATE, and the
    /// transaction is over.
    pub async fn write(
        &mut self,
        user: i64,
        sql: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<Result<u64, Refused>, tokio_postgres::Error> {
        let statement = self.statement(sql).await?;
        self.begin(user).await?;
        match self.client.execute(&statement, parameters).await {
            Ok(rows) => {
                self.commit().await?;
                Ok(Ok(rows))
            }
            Err(error) => self.refused(error).await.map(Err),
        }
    }

    /// Ends a transaction whose statement the server refused; errors of the connection stay errors.
    pub async fn refused(&mut self, error: tokio_postgres::Error) -> Result<Refused, tokio_postgres::Error> {
        let Some(refused) = Refused::of(&error) else { return Err(error) };
        self.client.batch_execute("ROLLBACK").await?;
        Ok(refused)
    }

    /// A second connection beside this one, for races: with this worker's rights, made when first asked for.
    pub async fn second(&mut self) -> Result<&mut Worker, DbError> {
        if self.second.as_ref().is_none_or(|second| second.lost()) {
            let rng = Rng::split(self.rng.draw(), "second", self.number as u64);
            let second = Box::pin(Worker::connect(&self.target, self.cut_off, self.number, rng)).await?;
            self.second = Some(Box::new(second));
        }
        match &mut self.second {
            Some(second) => Ok(second),
            None => Err(DbError::Unexpected("no second connection".to_owned())),
        }
    }

    /// This connection and the second one, to be used at the same time. Call [`Worker::second`] first.
    pub fn both(&mut self) -> Option<(Half<'_>, &mut Worker)> {
        let second = self.second.as_deref_mut()?;
        Some((Half { client: &self.client, statements: &mut self.statements }, second))
    }
}

/// The first of two connections used at once.
pub struct Half<'a> {
    client: &'a Client,
    statements: &'a mut HashMap<&'static str, Statement>,
}

impl Half<'_> {
    /// As [`Worker::write`].
    pub async fn write(
        &mut self,
        user: i64,
        sql: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<Result<u64, Refused>, tokio_postgres::Error> {
        for needed in [SIGN_IN, sql] {
            if !self.statements.contains_key(needed) {
                self.statements.insert(needed, self.client.prepare(needed).await?);
            }
        }
        let (Some(sign_in), Some(statement)) = (self.statements.get(SIGN_IN), self.statements.get(sql)) else {
            return Ok(Ok(0));
        };
        self.client.batch_execute("BEGIN").await?;
        self.client.query_one(sign_in, &[&user]).await?;
        match self.client.execute(statement, parameters).await {
            Ok(rows) => {
                self.client.batch_execute("COMMIT").await?;
                Ok(Ok(rows))
            }
            Err(error) => match Refused::of(&error) {
                Some(refused) => {
                    self.client.batch_execute("ROLLBACK").await?;
                    Ok(Err(refused))
                }
                None => Err(error),
            },
        }
    }
}

/// What the server said when it refused a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The SQLSTATE.
    pub code: String,
    /// The message.
    pub words: String,
}

impl Refused {
    fn of(error: &tokio_postgres::Error) -> Option<Refused> {
        let said = error.as_db_error()?;
        // A statement that was cut off, or a server that shuts down, refuses nothing.
        if said.code().code().starts_with("57") {
            return None;
        }
        Some(Refused { code: said.code().code().to_owned(), words: said.message().to_owned() })
    }
}

async fn open(target: &Target, cut_off: Duration) -> Result<Client, DbError> {
    let client = connect::client(target).await?;
    // An app role has JIT off, as compiling a plan takes longer than most of these reads.
    client
        .batch_execute(&format!(
            "SET SESSION ROLE {APP_ROLE}; SET jit = off; SET statement_timeout = {}; \
             SET application_name = 'rowdeck bench'",
            cut_off.as_millis()
        ))
        .await?;
    Ok(client)
}
