//! rowdeck's index beside plain closure tables and beside no index at all: the same data, the same statements, one
//! server, in turns. It measures the index alone, so everything runs as the tables' owner, whom no rule binds.

mod report;
mod subject;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio_postgres::Client;

pub use report::{Measured, Target, VersusReport};
pub use subject::build_closure;

use super::error::BenchError;
use super::generate::{Dataset, Size};
use super::live::Environment;
use crate::db::connect;
use crate::db::embedded::Server;
use crate::db::error::DbError;
use crate::db::progress::{Progress, Reporter};
use subject::{Kind, Subject};

/// How to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// How much data.
    pub size: Size,
    /// What the data and the random choices follow from.
    pub seed: u64,
    /// How often each subject has its turn.
    pub rounds: u32,
    /// How long each step of creates lasts.
    pub step: Duration,
}

/// Makes a server of its own, measures, and removes it again.
pub async fn run(options: &Options, reporter: &Reporter) -> Result<VersusReport, BenchError> {
    let folder = Temporary(std::env::temp_dir().join(format!("rowdeck-versus-{}", std::process::id())));
    let mut server = Server::start(&folder.0, reporter).await?;
    let report = on_server(&server, options, reporter).await;
    server.stop().await?;
    report
}

/// The server's folder, removed whatever happens.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!("{} is left: {error}", self.0.display());
        }
    }
}

async fn on_server(server: &Server, options: &Options, reporter: &Reporter) -> Result<VersusReport, BenchError> {
    let admin = connect::client(&server.target("postgres", "postgres")).await?;
    let roles = "CREATE ROLE app_user LOGIN; CREATE ROLE versus_owner LOGIN; GRANT app_user TO versus_owner";
    admin.batch_execute(roles).await.map_err(BenchError::database("making roles"))?;
    let started = now(&admin).await?;
    let environment = Environment::read(&admin).await?;
    let data = Dataset::new(options.size, options.seed);
    let mut subjects = Vec::new();
    for kind in Kind::ALL {
        say(reporter, format!("{}: load and build", kind.word())).await;
        subjects.push(Subject::prepare(&admin, server, kind, &data, options.seed).await?);
    }
    admin.batch_execute("CHECKPOINT").await.map_err(BenchError::database("CHECKPOINT"))?;
    for round in 1..=options.rounds {
        for subject in &mut subjects {
            let title = format!("{}: round {round} of {}", subject.kind.word(), options.rounds);
            say(reporter, title).await;
            subject.round(options.step).await?;
        }
    }
    let mut measured = BTreeMap::new();
    for subject in subjects {
        say(reporter, format!("{}: is it exact?", subject.kind.word())).await;
        measured.insert(subject.kind.word(), subject.finish().await?);
    }
    Ok(VersusReport::new(options, started, environment, &data, measured))
}

async fn say(reporter: &Reporter, text: String) {
    reporter.send(Progress::Note { text }).await;
}

async fn now(admin: &Client) -> Result<String, BenchError> {
    let doing = || BenchError::database("reading the server's clock");
    let now = r#"SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')"#;
    admin.query_one(now, &[]).await.map_err(doing())?.try_get(0).map_err(doing())
}

/// Seconds since.
fn seconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}

/// A task that ended in a panic.
fn ended(error: tokio::task::JoinError) -> BenchError {
    BenchError::Db(DbError::Unexpected(format!("a connection's task ended: {error}")))
}
