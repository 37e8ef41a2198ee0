//! The scenarios that have a course of their own: `live` and `versus-closure`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::run::{name_signal, stoppable};
use super::{OutArgs, duration, failed, finish_result, rate, refuse_out, seconds};
use crate::bench::generate::Size;
use crate::bench::headless::{self, Plan};
use crate::bench::live::{Options, Phase, Snapshot};
use crate::bench::scale::{self, ScaleSize};
use crate::bench::scenario::Scenario;
use crate::bench::scenarios::{BIG_MOVE, LIVE};
use crate::bench::versus;
use crate::cli::args::Global;
use crate::cli::output::{Output, note, show_progress};
use crate::cli::signals::Signals;
use crate::cli::{Ended, database::finish, interruptible, targets};
use crate::db::error::DbError;
use crate::text;

/// Options of `bench run versus-closure`.
#[derive(Debug, Clone, Args)]
pub struct VersusArgs {
    /// How much data: tiny, dev or large
    #[arg(long, default_value = "dev", value_parser = str::parse::<Size>)]
    pub size: Size,
    /// How often each of the three has its turn
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// How long each step of creates lasts
    #[arg(long, value_name = "N", default_value_t = 3.0, value_parser = seconds)]
    pub step_seconds: f64,
    /// What the data and the random choices follow from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Where the result goes.
    #[command(flatten)]
    pub out: OutArgs,
}

/// Options of `bench run live`.
#[derive(Debug, Clone, Args)]
pub struct LiveArgs {
    /// How long to measure
    #[arg(long, value_name = "N", default_value_t = 60.0, value_parser = seconds)]
    pub seconds: f64,
    /// Reads a second
    #[arg(long, value_name = "RATE", default_value_t = 400.0, value_parser = rate)]
    pub reads: f64,
    /// Tree writes a second: 90% new folders, 9% moves of small folders, 1% links
    #[arg(long, value_name = "RATE", default_value_t = 20.0, value_parser = rate)]
    pub writes: f64,
    /// Move the folder with the most below it after so many seconds; may be given several times
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub big_move_at: Vec<f64>,
    /// Connections that read
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=500))]
    pub read_connections: u16,
    /// Connections that write
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=500))]
    pub write_connections: u16,
    /// What the random choices follow from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Where the result goes.
    #[command(flatten)]
    pub out: OutArgs,
}

/// Options of `bench run big-move`.
#[derive(Debug, Clone, Args)]
pub struct BigMoveArgs {
    /// How many times there and back
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub rounds: u16,
    /// Seconds between moves
    #[arg(long, value_name = "N", default_value_t = 3.0, value_parser = seconds)]
    pub every: f64,
    /// Tree writes a second beside
    #[arg(long, value_name = "RATE", default_value_t = 20.0, value_parser = rate)]
    pub writes: f64,
    /// What the random choices follow from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Where the result goes.
    #[command(flatten)]
    pub out: OutArgs,
}

/// Options of `bench run scale`.
#[derive(Debug, Clone, Args)]
pub struct ScaleArgs {
    /// How much data: dev (20,000 folders), large (50,000), medium (250,000), full (a million), or a number of folders
    #[arg(long, default_value = "dev", value_parser = str::parse::<ScaleSize>)]
    pub size: ScaleSize,
    /// Reads a second; the gate is meant at 400, and the result says when it ran at another rate
    #[arg(long, value_name = "RATE", default_value_t = 400.0, value_parser = rate)]
    pub rate: f64,
    /// How long each step lasts
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub step: Duration,
    /// Leave the server running
    #[arg(long)]
    pub keep: bool,
    /// Only the measuring steps, on what an earlier run kept
    #[arg(long)]
    pub again: bool,
    /// Where the kept server's data are; a folder of this user when left out
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
    /// What the data and the random choices follow from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Where the result goes.
    #[command(flatten)]
    pub out: OutArgs,
}

/// Refuses --db and --target where they would be ignored.
pub(super) fn own_server(global: &Global, name: &str) -> Result<(), DbError> {
    if global.db.is_some() || global.target.is_some() {
        return Err(DbError::Usage(format!("{name} brings its own server; --db and --target do not go with it")));
    }
    Ok(())
}

async fn scale(global: &Global, out: Output, args: &ScaleArgs) -> Ended {
    own_server(global, "scale")?;
    refuse_out(args.out.out.as_deref())?;
    let kept = args.keep || args.again || args.dir.is_some();
    let folder = match &args.dir {
        Some(folder) => Some(folder.clone()),
        None if kept => Some(data_folder()?.join(format!("scale-{}", args.size.word().replace(' ', "-")))),
        None => None,
    };
    let options = scale::Options {
        seed: args.seed,
        reads: args.rate,
        step: args.step,
        folder,
        again: args.again,
        keep: args.keep,
        ..scale::Options::new(args.size)
    };
    let (reporter, shown) = show_progress();
    let (ended, signal) = stoppable(|stop| {
        let (options, reporter) = (&options, &reporter);
        async move { scale::run(options, &stop, reporter).await }
    })
    .await?;
    drop(reporter);
    finish(shown).await?;
    match ended {
        Ok(report) => {
            let mut result = report.result();
            name_signal(&mut result.failure, signal);
            finish_result(out, args.out.out.as_deref(), &result)
        }
        Err(error) => failed(error),
    }
}

/// Where this user's servers and baselines are.
pub(super) fn data_folder() -> Result<PathBuf, DbError> {
    let demo = crate::db::embedded::default_folder()?;
    Ok(demo.parent().map_or_else(|| demo.clone(), |folder| folder.join("bench")))
}

/// Scenarios with a course, and options, of their own.
#[derive(Debug, Subcommand)]
pub enum OwnCommand {
    /// Steady reads and tree writes beside each other, with big moves: the console's Bench screen without the screen
    Live(LiveArgs),
    /// The folder with the most below it into another root and back, beside steady tree writes
    BigMove(BigMoveArgs),
    /// The gate on a server of its own, from 20 thousand to a million folders: exit code 3 when it fails
    Scale(ScaleArgs),
    /// The index and the rules beside closure tables and beside none: exit code 3 when a target is missed
    VersusClosure(VersusArgs),
}

pub(super) async fn run(global: &Global, out: Output, command: &OwnCommand) -> Ended {
    match command {
        OwnCommand::Live(args) => {
            let options = Options {
                reads: args.reads,
                writes: args.writes,
                read_connections: args.read_connections.into(),
                write_connections: args.write_connections.into(),
                seed: args.seed,
                ..Options::new(targets::target(global)?)
            };
            let plan = Plan { seconds: args.seconds, big_moves: args.big_move_at.clone() };
            live(out, options, &plan, &LIVE, args.out.out.as_deref()).await
        }
        OwnCommand::BigMove(args) => {
            let target = targets::target(global)?;
            let options = Options { reads: 0.0, writes: args.writes, seed: args.seed, ..Options::new(target) };
            let moves = 2 * usize::from(args.rounds);
            let big_moves: Vec<f64> = (0..moves).map(|number| 2.0 + args.every * number as f64).collect();
            let plan = Plan { seconds: 2.0 + args.every * moves as f64, big_moves };
            live(out, options, &plan, &BIG_MOVE, args.out.out.as_deref()).await
        }
        OwnCommand::Scale(args) => scale(global, out, args).await,
        OwnCommand::VersusClosure(args) => interruptible(versus_closure(global, out, args)).await,
    }
}

async fn versus_closure(global: &Global, out: Output, args: &VersusArgs) -> Ended {
    own_server(global, "versus-closure")?;
    refuse_out(args.out.out.as_deref())?;
    let step = Duration::from_secs_f64(args.step_seconds);
    let options = versus::Options { size: args.size, seed: args.seed, rounds: args.rounds, step };
    let (reporter, shown) = show_progress();
    let report = versus::run(&options, &reporter).await;
    drop(reporter);
    finish(shown).await?;
    let report = match report {
        Ok(report) => report,
        Err(error) => return failed(error),
    };
    finish_result(out, args.out.out.as_deref(), &report.result())
}

async fn live(
    out: Output,
    options: Options,
    plan: &Plan,
    scenario: &Scenario,
    path: Option<&std::path::Path>,
) -> Ended {
    refuse_out(path)?;
    // A signal stops the run, and what it wrote is still taken back.
    let mut signals = Signals::new()?;
    let interrupted = async { format!("stopped by {}", signals.next().await.name) };
    let mut lines = Lines::default();
    let (rate, target) = (options.reads + options.writes, options.target.clone());
    let run = headless::run_headless(options, plan, interrupted, |snapshot| lines.tell(snapshot));
    let report = match run.await {
        Ok(report) => report,
        Err(error) => return failed(error),
    };
    let verified = if scenario.criterion.verify { verified(&target).await } else { Ok(true) };
    finish_result(out, path, &report.result(scenario, rate, verified))
}

/// Whether the index is exact; or why nobody can say.
async fn verified(target: &crate::db::target::Target) -> Result<bool, String> {
    let ask = async {
        let client = crate::db::connect::client(target).await?;
        Ok::<bool, DbError>(client.query_one("SELECT authz.verify()", &[]).await?.try_get(0)?)
    };
    ask.await.map_err(|error| error.to_string())
}

/// A line on stderr for each second, and one for each note.
#[derive(Default)]
struct Lines {
    shown: Option<u64>,
    note: Option<String>,
    cleaning: bool,
}

impl Lines {
    fn tell(&mut self, snapshot: &Snapshot) {
        if let Some(words) = snapshot.note.as_ref().filter(|words| self.note.as_ref() != Some(words)) {
            note(&format!("      {}", text::line(words)));
            self.note = Some(words.clone());
        }
        for second in snapshot.series.iter().filter(|second| self.shown.is_none_or(|shown| second.second > shown)) {
            let cell = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.1}"));
            note(&format!(
                "{:>5} s  reads {:>5}/s p95 {:>7} ms max {:>7}  writes {:>4}/s p95 {:>7} ms max {:>7}{}{}",
                second.second + 1,
                second.reads.done,
                cell(second.reads.latency.p95),
                cell(second.reads.latency.max),
                second.writes.done,
                cell(second.writes.latency.p95),
                cell(second.writes.latency.max),
                match second.reads.failed + second.writes.failed {
                    0 => String::new(),
                    failed => format!("  {failed} failed"),
                },
                if second.big_move { "  big move" } else { "" },
            ));
        }
        self.shown = snapshot.series.last().map(|second| second.second).or(self.shown);
        if snapshot.phase == Phase::CleaningUp && !self.cleaning {
            self.cleaning = true;
            note("      taking back what was written");
        }
    }
}
