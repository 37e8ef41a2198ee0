//! What can go wrong while loading or measuring, in words for the operator.

use thiserror::Error;

use crate::db::error::DbError;

/// Why loading or measuring did not start, or did not complete.
#[derive(Debug, Error)]
pub enum BenchError {
    /// The server refused a statement, or the connection was lost.
    #[error("{doing}: {source}")]
    Database {
        /// What was being done.
        doing: String,
        /// What the server or the driver said.
        source: DbError,
    },
    /// No connection, or a database that is not marked as a development one.
    #[error(transparent)]
    Db(#[from] DbError),
    /// The tables hold rows already.
    #[error("{table} has rows already; the example's data is only loaded into empty tables")]
    NotEmpty {
        /// The first table that has some.
        table: String,
    },
    /// The database does not hold what the benchmark needs.
    #[error("{0}")]
    Unsuitable(String),
    /// The example's data is not what the generator promises.
    #[error("the generator made {made} rows for {table}, where it announced {announced}")]
    Miscounted {
        /// The table.
        table: String,
        /// Rows the server took.
        made: u64,
        /// Rows announced.
        announced: u64,
    },
}

impl BenchError {
    /// Wraps a driver's error with what was being done.
    pub fn database(doing: impl Into<String>) -> impl FnOnce(tokio_postgres::Error) -> Self {
        let doing = doing.into();
        move |source| BenchError::Database { doing, source: source.into() }
    }

    /// The program's exit code for it: 2 for wrong usage, 1 for everything else.
    pub fn exit_code(&self) -> u8 {
        match self {
            BenchError::Database { source, .. } | BenchError::Db(source) => source.exit_code(),
            _ => 1,
        }
    }
}
