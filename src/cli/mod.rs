//! The command line: every action of the console without a screen.
//!
//! Results go to stdout, progress and notes to stderr. The exit code is 0 when all is well; 1 for a finding (a mistake in
//! a policy, a failing test, a wrong index, an answer of "no") and for work that did not complete; 2 for wrong usage.

pub mod args;
pub mod ask;
pub mod bench;
pub mod config;
pub mod database;
pub mod demo;
pub mod life;
pub mod logging;
pub mod operator;
pub mod output;
pub mod policy;
pub mod prove;
pub mod signals;
mod targets;
pub mod test;
pub mod text;
pub mod verify;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::app::model::Screen;
use crate::app::runtime::Options;
use crate::app::settings::Settings;
use crate::app::terminal::Exit;
use crate::db::error::DbError;
use crate::db::target::{environment_names_a_server, process_environment};
use args::{Act, Cli, Command, ConfigCommand, Global};
use output::Output;
use signals::Signals;

/// A command's end: its exit code, or why it could not be carried out.
pub type Ended = Result<u8, DbError>;

/// Exit code for a finding.
pub const FINDING: u8 = 1;

/// How the program ends.
enum End {
    /// With an exit code.
    Code(u8),
    /// As the console ended, which may be by a signal.
    Console(Exit),
}

/// The program.
pub fn main() -> ExitCode {
    // clap answers --help, --version and wrong usage itself, the last with exit code 2.
    let cli = Cli::parse();
    let _log = logging::start();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&DbError::io("cannot start", error)),
    };
    let ended = runtime.block_on(run(cli));
    // A blocking task (a name being resolved) may never end; nobody waits for it.
    runtime.shutdown_background();
    match ended {
        Ok(End::Code(code)) => ExitCode::from(code),
        Ok(End::Console(exit)) => exit.finish(),
        Err(error) => failed(&error),
    }
}

fn failed(error: &DbError) -> ExitCode {
    tracing::error!("{error}");
    output::note(&format!("rowdeck: {error}"));
    ExitCode::from(error.exit_code())
}

async fn run(cli: Cli) -> Result<End, DbError> {
    let out = Output { json: cli.global.json };
    let global = &cli.global;
    targets::warn_of_visible_password(global.db.as_deref());
    match cli.command {
        None => Ok(End::Console(console(global, cli.policy, cli.plain).await?)),
        Some(Command::Demo(options)) => demo::run(global, out, &options).await,
        Some(Command::Act(command)) => Ok(End::Code(act(global, out, command).await?)),
    }
}

/// The console on the target, or without a database when none is given.
async fn console(global: &Global, policy: Option<PathBuf>, plain: bool) -> Result<Exit, DbError> {
    use std::io::IsTerminal;
    // A mistyped command would else be taken for the name of a new policy.
    if let Some(path) = policy.as_ref().filter(|path| !path.exists() && path.extension().is_none()) {
        let shown = crate::text::line(&path.display().to_string()).into_owned();
        return Err(DbError::Usage(format!("there is no command and no file called {shown}; see rowdeck --help")));
    }
    let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if global.json || !(plain || terminal) {
        let words = "the console needs a terminal (or --plain); rowdeck --help names the commands";
        return Err(DbError::Usage(words.to_owned()));
    }
    let config = targets::config()?;
    let named = global.db.is_some() || global.target.is_some() || environment_names_a_server(&process_environment);
    // With several to choose from, the console opens on the choice.
    let choose = !named && config.targets.len() > 1;
    let given = named || !config.targets.is_empty();
    let target = if given && !choose { Some(targets::target(global)?) } else { None };
    let screen = match (choose, &policy) {
        (true, _) => Some(Screen::Targets),
        (false, Some(_)) => Some(Screen::Policy),
        (false, None) => None,
    };
    let policy = match policy {
        Some(path) => Some(path),
        // The demo's own policy is in force there, not that of the project one happens to stand in.
        None => targets::demo_policy(global, &config)?.or_else(|| config.policy_path()),
    };
    let targets = config.targets.keys().map(|name| {
        let target = config.target(None, Some(name), &process_environment).map_err(|error| error.to_string());
        (name.clone(), target)
    });
    let targets = targets.collect();
    open_console(Options { target, policy, targets, config: config.path, screen, plain, ..Options::default() }).await
}

/// Draws the console until it is left.
async fn open_console(mut options: Options) -> Result<Exit, DbError> {
    if let Some(path) = Settings::path() {
        options.settings = Settings::read(&path).map_err(DbError::Usage)?;
    }
    let ended =
        if options.plain { crate::app::plain::run(options).await } else { crate::app::runtime::run(options).await };
    ended.map_err(|e| DbError::Unexpected(format!("{e:#}")))
}

async fn act(global: &Global, out: Output, command: Act) -> Ended {
    match command {
        Act::Bench(command) => bench::run(global, out, &command).await,
        Act::Check { policy } => policy::check(global, out, policy.as_deref()),
        Act::Lint { policy } => interruptible(policy::lint(global, out, policy.as_deref())).await,
        Act::Help { code } => policy::help(out, code.as_deref()),
        Act::Fmt { policies, check } => text::fmt(out, &policies, check),
        Act::Init(options) => interruptible(text::init(global, out, &options)).await,
        Act::Lsp => text::lsp(),
        Act::Sql { policy } => policy::sql(global, out, policy.as_deref()),
        Act::Plan { policy } => interruptible(database::plan(global, out, policy.as_deref())).await,
        Act::Apply { policy, yes, plan } => database::apply(global, out, policy.as_deref(), yes, plan.as_deref()).await,
        Act::Reapply { force, yes } => life::reapply(global, out, force, yes).await,
        Act::Drift { policy } => interruptible(life::drift(global, out, policy.as_deref())).await,
        Act::Remove { yes } => life::remove(global, out, yes).await,
        Act::Prove { policy, worlds, seed } => prove::prove(out, policy.as_deref(), worlds, seed),
        Act::Diff { policy, old } => interruptible(prove::diff(global, out, policy.as_deref(), old.as_deref())).await,
        Act::Verify(options) => verify::verify(global, out, &options).await,
        Act::Test { policy, tests, coverage } => {
            interruptible(test::test(global, out, policy.as_deref(), &tests, coverage)).await
        }
        Act::Can { ty, id, permission, who } => interruptible(ask::can(global, out, &who, &ty, &id, &permission)).await,
        Act::Who { ty, id, permission, limit } => {
            interruptible(ask::who(global, out, &ty, &id, &permission, limit)).await
        }
        Act::Why { ty, id, permission, who } => interruptible(ask::why(global, out, &who, &ty, &id, &permission)).await,
        Act::Perms { ty, id, who } => interruptible(ask::perms(global, out, &who, &ty, &id)).await,
        Act::List { ty, permission, who, after, limit } => {
            interruptible(ask::list(global, out, &who, &ty, &permission, after, limit)).await
        }
        Act::SqlAs { statement, who, read_only, limit } => {
            interruptible(operator::sql_as(global, out, &who, &statement, read_only, limit)).await
        }
        Act::Config(ConfigCommand::Check) => config::check(out),
        Act::Completions { shell } => config::completions(out, shell),
        Act::Man => config::man(out),
        Act::Overview => interruptible(operator::overview(global, out)).await,
        Act::Activity => interruptible(operator::activity(global, out)).await,
        Act::Sees { ty, who, after, limit } => interruptible(ask::sees(global, out, &who, &ty, after, limit)).await,
    }
}

/// Work that a signal may end wherever it is: what it holds (a transaction, a server of its own) ends with it.
pub(crate) async fn interruptible(work: impl Future<Output = Ended>) -> Ended {
    let mut signals = Signals::new()?;
    tokio::select! {
        ended = work => ended,
        caught = signals.next() => {
            output::note(&format!("rowdeck: stopped by {}", caught.name));
            Ok(caught.exit_code)
        }
    }
}
