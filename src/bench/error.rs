//! What can go wrong while loading or measuring, in words for the operator.

use thiserror::Error;

/// Why loading or measuring did not start, or did not complete.
#[derive(Debug, Error)]
pub enum BenchError {
    /// The server refused a statement, or the connection was lost.
    #[error("{doing}: {}", words(source))]
    Database {
        /// What was being done.
        doing: String,
        /// What the server or the driver said.
        source: tokio_postgres::Error,
    },
    /// The tables hold rows already.
    #[error("{table} has rows already; the example's data is only loaded into empty tables")]
    NotEmpty {
        /// The first table that has some.
        table: String,
    },
    /// The database is not marked as a development one.
    #[error(
        "this database is not marked as a development database, and the benchmark writes to it; \
         to allow that: INSERT INTO authz.settings VALUES ('development', 'true') [AZ610]"
    )]
    NotDevelopment,
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
        move |source| BenchError::Database { doing, source }
    }
}

/// The server's own words with the SQLSTATE, or the driver's when the server said nothing.
pub fn words(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => match said.detail() {
            Some(detail) => format!("{} ({detail}) [{}]", said.message(), said.code().code()),
            None => format!("{} [{}]", said.message(), said.code().code()),
        },
        None => match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}
