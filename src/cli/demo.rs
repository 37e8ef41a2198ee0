//! `rowdeck demo`: a server of its own with the docs example in it, then the console, or the whole round without one.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::args::{DemoOptions, DemoSize, Global};
use super::output::{self, Output, note};
use super::policy::{self, Ready};
use super::signals::Signals;
use super::{End, FINDING, database};
use crate::app::model::Screen;
use crate::app::runtime::Options;
use crate::bench::generate::Size;
use crate::bench::{self, EXAMPLE_POLICY, EXAMPLE_SCHEMA};
use crate::db::apply;
use crate::db::cancel::Stop;
use crate::db::connect::Session;
use crate::db::demo::{self, DATABASE, OWNER};
use crate::db::embedded::{self, Server};
use crate::db::error::DbError;
use crate::db::policy_tests::{self, TestReport};
use crate::db::progress::{ApplyReport, Progress, Reporter, VerifyReport};
use crate::db::verify;
use crate::policy_file::PolicyFile;

/// The seed of the demo's data: everybody sees the same.
const SEED: u64 = 1;

/// What `--headless --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Headless {
    server_version: String,
    apply: Applied,
    verify: Verified,
    tests: Tested,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Applied {
    seconds: f64,
    rows_built: u64,
    unchanged: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Verified {
    ok: bool,
    checked: u64,
    wrong: usize,
    seconds: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Tested {
    passed: usize,
    failed: usize,
}

/// `rowdeck demo`.
pub(super) async fn run(global: &Global, out: Output, options: &DemoOptions) -> Result<End, DbError> {
    if global.db.is_some() || global.target.is_some() {
        return Err(DbError::Usage("the demo brings its own server; --db and --target do not go with it".to_owned()));
    }
    let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    let folder = match &options.dir {
        Some(folder) => folder.clone(),
        None => embedded::default_folder()?.join(options.size.word()),
    };
    if options.headless || global.json || !terminal {
        return headless(out, &folder, options).await;
    }
    let mut signals = Signals::new()?;
    let mut server = tokio::select! {
        ready = until_console(&folder, options) => ready?,
        caught = signals.next() => return Ok(stopped(caught)),
    };
    drop(signals);
    // From here on the console takes the signals, and comes back.
    let mut target = server.target(OWNER, DATABASE);
    target.name = Some("demo".to_owned());
    let ended = super::open_console(Options {
        target: Some(target),
        policy: Some(folder.join("docs.authz")),
        screen: Some(Screen::Policy),
        ..Options::default()
    })
    .await;
    finish(&mut server, options).await?;
    Ok(End::Console(ended?))
}

fn stopped(caught: super::signals::Caught) -> End {
    note(&format!("rowdeck: stopped by {}", caught.name));
    End::Code(caught.exit_code)
}

async fn headless(out: Output, folder: &Path, options: &DemoOptions) -> Result<End, DbError> {
    let mut signals = Signals::new()?;
    tokio::select! {
        ended = whole_round(out, folder, options) => Ok(End::Code(ended?)),
        // The server stops as the work is dropped.
        caught = signals.next() => Ok(stopped(caught)),
    }
}

/// Apply, verify, test, print.
async fn whole_round(out: Output, folder: &Path, options: &DemoOptions) -> Result<u8, DbError> {
    let (reporter, shown) = output::show_progress();
    let mut server = Server::start(folder, &reporter).await?;
    let done = on_server(out, &server, folder, options, &reporter).await;
    let (applied, verified, tests) = match done {
        Ok(Some(done)) => done,
        Ok(None) => return Ok(FINDING),
        // A server that ran out of disk knows more than the connection it dropped.
        Err(error) => return Err(server.trouble().unwrap_or(error)),
    };
    drop(reporter);
    database::finish(shown).await?;
    show(out, &server, &applied, &verified, &tests)?;
    finish(&mut server, options).await?;
    Ok(if verified.ok && tests.failed == 0 { 0 } else { FINDING })
}

/// The round itself; `None` when the policy has mistakes, which were shown.
async fn on_server(
    out: Output,
    server: &Server,
    folder: &Path,
    options: &DemoOptions,
    reporter: &Reporter,
) -> Result<Option<(ApplyReport, VerifyReport, TestReport)>, DbError> {
    let session = with_data(server, options.size, reporter).await?;
    let file = policy_file(folder)?;
    let Some(ready) = policy::ready(out, &file)? else { return Ok(None) };
    let applied = apply_and_share(&session, &file, &ready, options.size, reporter).await?;
    let verified = verify::run(&session.client, verify::Options::default(), reporter).await?;
    // Opened again, it knows of the policy that is in force now.
    let session = Session::open(&session.target).await?;
    let tests = policy_tests::run(&session, &ready.model, &ready.compiled.sources, reporter).await?;
    Ok(Some((applied, verified, tests)))
}

fn show(
    out: Output,
    server: &Server,
    applied: &ApplyReport,
    verified: &VerifyReport,
    tests: &TestReport,
) -> Result<(), DbError> {
    if out.json {
        return out.json(&Headless {
            server_version: server.version.clone(),
            apply: Applied { seconds: applied.seconds, rows_built: applied.rows_built, unchanged: applied.unchanged },
            verify: Verified {
                ok: verified.ok,
                checked: verified.checked,
                wrong: verified.wrong.len(),
                seconds: verified.seconds,
            },
            tests: Tested { passed: tests.passed, failed: tests.failed },
        });
    }
    out.line(&format!("PostgreSQL {}", server.version))?;
    out.line(&database::applied_words(applied))?;
    super::verify::show(out, verified)?;
    super::test::show_tests(out, tests)
}

/// A server with data and a policy in force, for the console.
async fn until_console(folder: &Path, options: &DemoOptions) -> Result<Server, DbError> {
    let (reporter, shown) = output::show_progress();
    let mut server = Server::start(folder, &reporter).await?;
    if let Err(error) = made_ready(&server, folder, options, &reporter).await {
        return Err(server.trouble().unwrap_or(error));
    }
    drop(reporter);
    database::finish(shown).await?;
    Ok(server)
}

async fn made_ready(server: &Server, folder: &Path, options: &DemoOptions, reporter: &Reporter) -> Result<(), DbError> {
    let session = with_data(server, options.size, reporter).await?;
    let file = policy_file(folder)?;
    if session.info.policy.is_none() {
        // Mistakes in a file that was edited since are for the console to show.
        match policy::ready(Output { json: false }, &file)? {
            Some(ready) => {
                apply_and_share(&session, &file, &ready, options.size, reporter).await?;
            }
            None => note("the policy has mistakes, so it is not applied yet"),
        }
    }
    Ok(())
}

/// Roles, database, tables and rows, each made where it is missing.
async fn with_data(server: &Server, size: DemoSize, reporter: &Reporter) -> Result<Session, DbError> {
    demo::prepare(server, size.word()).await?;
    let session = Session::open(&server.target(OWNER, DATABASE)).await?;
    let missing = demo::missing(&session.client).await?;
    if missing.schema {
        session.client.batch_execute(EXAMPLE_SCHEMA).await?;
    }
    if missing.rows {
        reporter.send(Progress::Note { text: format!("loading the docs example, size {}", size.word()) }).await;
        bench::load::load(&session.client, size.data(), SEED, reporter).await.map_err(of_bench)?;
    }
    Ok(session)
}

/// Applies the policy, marks the database as a development one, and makes the example's shares once.
async fn apply_and_share(
    session: &Session,
    file: &PolicyFile,
    ready: &Ready,
    size: DemoSize,
    reporter: &Reporter,
) -> Result<ApplyReport, DbError> {
    let options = apply::ApplyOptions::default();
    let report = apply::apply(session, &ready.policy(file), &options, reporter, &Stop::never()).await?;
    demo::mark_development(&session.client).await?;
    if demo::missing(&session.client).await?.shares {
        bench::load::load_shares(&session.client, size.data(), SEED, reporter).await.map_err(of_bench)?;
        demo::shares_made(&session.client).await?;
    }
    Ok(report)
}

fn of_bench(error: bench::error::BenchError) -> DbError {
    match error {
        bench::error::BenchError::Db(error) => error,
        other => DbError::Demo(other.to_string()),
    }
}

/// The policy's file in the demo's folder: the example's at first, then whatever was made of it.
fn policy_file(folder: &Path) -> Result<PolicyFile, DbError> {
    let path: PathBuf = folder.join("docs.authz");
    if !path.exists() {
        std::fs::write(&path, EXAMPLE_POLICY)
            .map_err(|e| DbError::io(format!("cannot write {}", path.display()), e))?;
    }
    PolicyFile::read(&path)
}

/// Stops the server, or leaves it and says how to reach and how to stop it.
async fn finish(server: &mut Server, options: &DemoOptions) -> Result<(), DbError> {
    server.keep = options.keep;
    server.stop().await?;
    if options.keep {
        let url = server.url(OWNER, DATABASE);
        let reach = if options.dir.is_some() { format!("--db '{url}'") } else { "--target demo".to_owned() };
        note(&format!(
            "the server runs on (pid {}): rowdeck {reach}, or psql '{url}'; the same demo without --keep stops it",
            server.pid
        ));
    }
    Ok(())
}

impl DemoSize {
    /// As it is written on the command line.
    fn word(self) -> &'static str {
        self.data().word()
    }

    fn data(self) -> Size {
        match self {
            DemoSize::Tiny => Size::Tiny,
            DemoSize::Dev => Size::Dev,
            DemoSize::Large => Size::Large,
        }
    }
}
