//! rowdeck's index beside plain closure tables and beside no index at all: the same data, the same statements, one
//! server, in turns. It measures the index alone, so everything runs as the tables' owner, whom no rule binds.

mod reads;
mod report;
mod subject;
mod writes;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio_postgres::Client;

pub use report::{Measured, VersusReport};
pub use subject::build_closure;

use super::EXAMPLE_POLICY;
use super::environment::Environment;
use super::error::BenchError;
use super::generate::{Dataset, Size};
use super::headless;
use super::live;
use super::result::RunResult;
use super::scale::gate_targets;
use super::scenarios::LIVE;
use crate::compiler::{self, emit};
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

impl Options {
    /// Folders of the one COPY.
    fn bulk_rows(&self) -> i64 {
        if self.size == Size::Tiny { 1000 } else { 100_000 }
    }
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
    let began = Instant::now();
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
    let beside = beside(&subjects, options, reporter).await?;
    for subject in &mut subjects {
        say(reporter, format!("{}: one COPY of {} folders", subject.kind.word(), options.bulk_rows())).await;
        subject.bulk_load(options.bulk_rows()).await?;
    }
    let mut measured = BTreeMap::new();
    for subject in subjects {
        say(reporter, format!("{}: is it exact?", subject.kind.word())).await;
        measured.insert(subject.kind.word(), subject.finish().await?);
    }
    Ok(VersusReport::new(options, (started, seconds(began)), environment, &data, measured, beside))
}

/// What is measured of rowdeck beside plain, and of rowdeck alone.
async fn beside(subjects: &[Subject], options: &Options, reporter: &Reporter) -> Result<report::Beside, BenchError> {
    let of = |kind: Kind| subjects.iter().find(|one| one.kind == kind);
    let (Some(plain), Some(rowdeck)) = (of(Kind::Plain), of(Kind::Rowdeck)) else {
        return Err(BenchError::Unsuitable("a subject is missing".to_owned()));
    };
    for subject in [plain, rowdeck] {
        let doing = BenchError::database("VACUUM ANALYZE");
        subject.owner.batch_execute("VACUUM ANALYZE").await.map_err(doing)?;
    }
    say(reporter, "reads, with and without rules".to_owned()).await;
    let points = (options.step.as_secs_f64() * 300.0) as usize;
    let reads =
        reads::measure(&plain.target, &rowdeck.target, &rowdeck.owner, options.seed, points.clamp(40, 2000)).await?;
    say(reporter, "the gate: 400 reads/s beside 20 tree writes/s".to_owned()).await;
    let live = live::Options { seed: options.seed, ..live::Options::new(rowdeck.target.clone()) };
    let plan = headless::Plan { seconds: (options.step.as_secs_f64() * 5.0).max(1.0), big_moves: Vec::new() };
    let gate = headless::run_headless(live, &plan, std::future::pending(), |_| {}).await?;
    let targets = gate_targets(&gate);
    let gate = RunResult { targets, ..gate.result(&LIVE, 420.0, Ok(true)) };
    Ok(report::Beside { reads, gate, compile_ms: (compile_ms(EXAMPLE_POLICY), compile_ms(&thousand_tables())) })
}

/// Milliseconds to compile a policy to SQL: the median of five, or of fewer when it takes long.
fn compile_ms(policy: &str) -> f64 {
    let mut times = Vec::new();
    let began = Instant::now();
    while times.len() < 5 && (times.is_empty() || began.elapsed() < Duration::from_secs(1)) {
        let started = Instant::now();
        let compiled = compiler::compile("policy.authz", policy);
        // What is not emitted would be compiled for nothing.
        let emitted = compiled.model.as_ref().map(|model| emit::emit(model).is_ok());
        times.push(started.elapsed().as_secs_f64() * 1000.0);
        if emitted != Some(true) {
            return 3_600_000.0;
        }
    }
    report::median(&times)
}

/// A policy of a thousand tables: half of them inherit from the one before in chains of ten.
fn thousand_tables() -> String {
    let mut policy = String::from("app role app_user\n\ntype user = app.users\n\n");
    for number in 0..1000 {
        let inherits = number % 2 == 1 || number % 20 > 0;
        let parent = if inherits && number > 0 { format!("  up : t{} = up_id\n", number - 1) } else { String::new() };
        let or = if parent.is_empty() { "" } else { " or up.view" };
        policy.push_str(&format!(
            "type t{number} = app.t{number}\n  owner : user = owner_id\n{parent}  can view = owner{or}\n  can edit = owner\n\n\
             rules app.t{number}\n  select : view\n  insert : edit\n  update : edit\n  delete : edit\n\n"
        ));
    }
    policy
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
