//! `rowdeck bench run SCENARIO`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgMatches, Args, FromArgMatches, Subcommand};

use super::{OutArgs, duration, failed, finish_result, own, rate, refuse_out};
use crate::bench::run::{self, Plan};
use crate::bench::scenario::{How, Scenario};
use crate::bench::scenarios::{ALL, find};
use crate::bench::seed;
use crate::cli::args::Global;
use crate::cli::output::{Output, show_progress};
use crate::cli::signals::Signals;
use crate::cli::{Ended, database::finish, targets};
use crate::db::cancel::Stop;
use crate::db::error::DbError;

/// A scenario with its options: each scenario is a subcommand, so that `--help` shows them all.
#[derive(Debug)]
pub enum RunCommand {
    /// One that the engine drives.
    Driven(&'static Scenario, RunArgs),
    /// One with a course of its own.
    Own(own::OwnCommand),
}

/// Options of `bench run` for the scenarios that the engine drives.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// How long to measure
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub seconds: Duration,
    /// The rest.
    #[command(flatten)]
    pub how: HowArgs,
}

/// How the engine drives a scenario.
#[derive(Debug, Clone, Args)]
pub struct HowArgs {
    /// Connections, each with one operation at a time: 32 when left out, 2 for scenarios of long statements
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=500))]
    pub concurrency: Option<u16>,
    /// Operations a second, due whether the last ones are done or not; without, each connection waits for its answers
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,
    /// How long to warm up at least
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub warm_up: Duration,
    /// What the random choices follow from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Only what this file's seed made; without, all there is
    #[arg(long, value_name = "FILE")]
    pub seed_file: Option<PathBuf>,
    /// Separate client processes, for revoke-visibility
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=50))]
    pub processes: u16,
    /// Where the result goes.
    #[command(flatten)]
    pub out: OutArgs,
}

impl Subcommand for RunCommand {
    fn augment_subcommands(command: clap::Command) -> clap::Command {
        let command = own::OwnCommand::augment_subcommands(command);
        ALL.iter().filter(|one| matches!(one.how, How::Workload(_))).fold(command, |command, one| {
            command.subcommand(RunArgs::augment_args(clap::Command::new(one.name).about(one.measures)))
        })
    }

    fn augment_subcommands_for_update(command: clap::Command) -> clap::Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        find(name).is_some()
    }
}

impl FromArgMatches for RunCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let driven = matches
            .subcommand()
            .and_then(|(name, of)| find(name).filter(|one| matches!(one.how, How::Workload(_))).map(|one| (one, of)));
        match driven {
            Some((scenario, of)) => Ok(RunCommand::Driven(scenario, RunArgs::from_arg_matches(of)?)),
            None => Ok(RunCommand::Own(own::OwnCommand::from_arg_matches(matches)?)),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

pub(super) async fn run(global: &Global, out: Output, command: &RunCommand) -> Ended {
    match command {
        RunCommand::Own(command) => own::run(global, out, command).await,
        RunCommand::Driven(scenario, args) => driven(global, out, scenario, args).await,
    }
}

async fn driven(global: &Global, out: Output, scenario: &'static Scenario, args: &RunArgs) -> Ended {
    refuse_out(args.how.out.out.as_deref())?;
    let plan = Plan { measure: args.seconds, ..plan(global, scenario, &args.how)? };
    let (reporter, shown) = show_progress();
    let ended = stoppable(|stop| async move {
        let result = run::run(&plan, &stop, &reporter).await;
        drop(reporter);
        result
    })
    .await?;
    finish(shown).await?;
    let (result, signal) = ended;
    match result {
        Ok(mut result) => {
            name_signal(&mut result.failure, signal);
            finish_result(out, args.how.out.out.as_deref(), &result)
        }
        Err(error) => failed(error),
    }
}

/// What the arguments ask for.
pub(super) fn plan(global: &Global, scenario: &'static Scenario, args: &HowArgs) -> Result<Plan, DbError> {
    let only = args.seed_file.as_deref().map(seed::read_file).transpose()?;
    Ok(Plan {
        concurrency: args.concurrency.unwrap_or(scenario.load.concurrency).into(),
        rate: args.rate,
        warm_up: args.warm_up,
        seed: args.seed,
        only,
        processes: args.processes.into(),
        program: program(global)?,
        hash_program: true,
        ..Plan::new(scenario, targets::target(global)?)
    })
}

/// This program and the arguments that name the same target, for client processes.
fn program(global: &Global) -> Result<(PathBuf, Vec<OsString>), DbError> {
    let program = std::env::current_exe().map_err(|error| DbError::io("cannot find this program's file", error))?;
    let named = [("--db", &global.db), ("--target", &global.target)];
    let arguments =
        named.into_iter().filter_map(|(flag, value)| value.as_ref().map(|value| [flag.into(), value.into()]));
    Ok((program, arguments.flatten().collect()))
}

/// Work that a signal asks to stop, and that then ends by itself with what it has. Says which signal it was.
pub(super) async fn stoppable<T, F: Future<Output = T>>(
    work: impl FnOnce(Stop) -> F,
) -> Result<(T, Option<&'static str>), DbError> {
    let mut signals = Signals::new()?;
    let (stopper, stop) = Stop::channel();
    let work = work(stop);
    tokio::pin!(work);
    let mut name = None;
    loop {
        tokio::select! {
            ended = &mut work => return Ok((ended, name)),
            caught = signals.next(), if name.is_none() => {
                name = Some(caught.name);
                stopper.stop();
            }
        }
    }
}

/// Puts the signal's name into the words of why a run is not complete.
pub(super) fn name_signal(failure: &mut Option<String>, signal: Option<&'static str>) {
    if let (Some(words), Some(signal)) = (failure.as_mut(), signal)
        && words == "stopped"
    {
        *words = format!("stopped by {signal}");
    }
}
