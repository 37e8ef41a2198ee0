//! `rowdeck bench`.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::args::Global;
use super::output::{Output, note, show_progress};
use super::signals::Signals;
use super::{Ended, FINDING, database::finish, interruptible, targets};
use crate::bench::error::BenchError;
use crate::bench::generate::Size;
use crate::bench::headless::{self, Plan};
use crate::bench::live::{Options, Phase, Snapshot};
use crate::bench::versus;
use crate::db::error::DbError;
use crate::text;

/// `rowdeck bench ...`
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Measure on a development database that has the docs example in it
    #[command(subcommand)]
    Run(Scenario),
}

/// What is measured.
#[derive(Debug, Subcommand)]
pub enum Scenario {
    /// Steady reads and tree writes beside each other, with big moves: the console's Bench screen without the screen
    Live(LiveArgs),
    /// The index beside closure tables and beside none, on a server of its own: exit code 3 when a target is missed
    VersusClosure(VersusArgs),
}

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
}

fn seconds(text: &str) -> Result<f64, String> {
    within(text, 86_400.0)
}

fn rate(text: &str) -> Result<f64, String> {
    within(text, 100_000.0)
}

fn within(text: &str, most: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (0.0..=most).contains(&number) => Ok(number),
        _ => Err(format!("not a number from 0 to {most}")),
    }
}

/// Runs it.
pub(super) async fn run(global: &Global, out: Output, command: &BenchCommand) -> Ended {
    match command {
        BenchCommand::Run(Scenario::Live(args)) => live(global, out, args).await,
        BenchCommand::Run(Scenario::VersusClosure(args)) => interruptible(versus_closure(global, out, args)).await,
    }
}

/// Exit code for a target that was missed.
const MISSED: u8 = 3;

async fn versus_closure(global: &Global, out: Output, args: &VersusArgs) -> Ended {
    if global.db.is_some() || global.target.is_some() {
        let why = "versus-closure brings its own server; --db and --target do not go with it";
        return Err(DbError::Usage(why.to_owned()));
    }
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
    if out.json {
        out.json(&report)?;
    } else {
        report.text().lines().try_for_each(|line| out.line(line))?;
    }
    Ok(match (report.complete, report.met()) {
        (false, _) => FINDING,
        (true, false) => MISSED,
        (true, true) => 0,
    })
}

fn failed(error: BenchError) -> Ended {
    match error {
        BenchError::Db(error) => Err(error),
        error => {
            note(&format!("rowdeck: {error}"));
            Ok(FINDING)
        }
    }
}

async fn live(global: &Global, out: Output, args: &LiveArgs) -> Ended {
    let options = Options {
        reads: args.reads,
        writes: args.writes,
        read_connections: args.read_connections.into(),
        write_connections: args.write_connections.into(),
        seed: args.seed,
        ..Options::new(targets::target(global)?)
    };
    let plan = Plan { seconds: args.seconds, big_moves: args.big_move_at.clone() };
    // A signal stops the run, and what it wrote is still taken back.
    let mut signals = Signals::new()?;
    let interrupted = async { format!("stopped by {}", signals.next().await.name) };
    let mut lines = Lines::default();
    let report = match headless::run_headless(options, &plan, interrupted, |snapshot| lines.tell(snapshot)).await {
        Ok(report) => report,
        Err(error) => return failed(error),
    };
    if out.json {
        out.json(&report)?;
    } else {
        report.text().lines().try_for_each(|line| out.line(line))?;
    }
    Ok(if report.complete { 0 } else { FINDING })
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
