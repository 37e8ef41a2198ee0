//! `rowdeck bench`.

mod data;
mod many;
mod own;
mod regress;
mod run;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::args::Global;
use super::output::{Output, note};
use super::{Ended, FINDING, interruptible};
use crate::bench::error::BenchError;
use crate::bench::result::{RunResult, refuse_used, save};
use crate::bench::scenario::{Family, How};
use crate::bench::scenarios::ALL;

pub use data::{CleanArgs, SeedArgs};
pub use many::{CompareArgs, ReportArgs, SoakArgs};
pub use own::{BigMoveArgs, LiveArgs, OwnCommand, ScaleArgs, VersusArgs};
pub use regress::RegressArgs;
pub use run::{HowArgs, RunArgs, RunCommand};

/// `rowdeck bench ...`
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Name the scenarios: what each measures, what it prepares, when it passes
    List,
    /// Measure one scenario on a development database that has the docs example in it
    Run {
        /// Which, and how.
        #[command(subcommand)]
        scenario: RunCommand,
    },
    /// A long run in windows, judged one by one, with events at their times
    Soak(SoakArgs),
    /// Two targets in turns: ratios with an interval, and how much the first differs from itself
    Compare(CompareArgs),
    /// A page with charts from a folder of results
    Report(ReportArgs),
    /// A small run of the gate beside what this machine recorded: exit code 4 when something got twice as slow
    Regress(RegressArgs),
    /// Make a data set whose names begin with a prefix of the seed, beside what is there
    Seed(SeedArgs),
    /// Remove what a seed made, and what runs that were killed left
    Clean(CleanArgs),
    /// What `revoke-visibility` starts: a client that looks at what it is told to
    #[command(hide = true)]
    Look,
}

/// Where a result goes.
#[derive(Debug, Clone, Default, Args)]
pub struct OutArgs {
    /// Write the result to this file, which must not be there yet
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Runs it.
pub(super) async fn run(global: &Global, out: Output, command: &BenchCommand) -> Ended {
    match command {
        BenchCommand::List => list(out),
        BenchCommand::Run { scenario } => run::run(global, out, scenario).await,
        BenchCommand::Soak(args) => many::soak(global, out, args).await,
        BenchCommand::Compare(args) => many::compare(global, out, args).await,
        BenchCommand::Report(args) => many::report(out, args),
        BenchCommand::Regress(args) => regress::run(global, out, args).await,
        BenchCommand::Seed(args) => data::seed(global, out, args).await,
        BenchCommand::Clean(args) => interruptible(data::clean(global, out, args)).await,
        BenchCommand::Look => {
            let target = super::targets::target(global)?;
            interruptible(async { crate::bench::scenarios::visibility::look(&target).await.map(|()| 0) }).await
        }
    }
}

fn list(out: Output) -> Ended {
    if out.json {
        let rows: Vec<_> = ALL
            .iter()
            .map(|one| {
                let outcomes: serde_json::Map<_, _> =
                    one.outcomes.iter().map(|(label, words)| ((*label).to_owned(), (*words).into())).collect();
                serde_json::json!({
                    "name": one.name, "family": one.family, "measures": one.measures,
                    "preparation": one.preparation, "outcomes": outcomes, "criterion": one.criterion.words,
                    "concurrency": one.load.concurrency, "engine": matches!(one.how, How::Workload(_)),
                })
            })
            .collect();
        out.json(&rows)?;
        return Ok(0);
    }
    for (family, title) in [
        (Family::Work, "Work: what an app does all day"),
        (Family::Abuse, "Abuse: what nobody should do"),
        (Family::Consistency, "Consistency: what must stay true when things happen at once"),
        (Family::Whole, "With a course of their own"),
    ] {
        out.line(title)?;
        for one in ALL.iter().filter(|one| one.family == family) {
            out.line(&format!("  {}", one.name))?;
            out.line(&format!("      measures    {}", one.measures))?;
            out.line(&format!("      prepares    {}", one.preparation))?;
            for (label, words) in one.outcomes {
                out.line(&format!("      {label:<11} {words}"))?;
            }
            out.line(&format!("      passes when {}", one.criterion.words))?;
        }
    }
    out.line("Any scenario may also end operations with sqlstate_CODE, timeout, lost or invariant_violation; none of")?;
    out.line("these is ever within a criterion.")?;
    Ok(0)
}

/// Refuses what cannot be written in the end before anything is measured.
fn refuse_out(path: Option<&Path>) -> Result<(), crate::db::error::DbError> {
    path.map_or(Ok(()), refuse_used)
}

/// Prints and saves a result.
fn finish_result(out: Output, path: Option<&Path>, result: &RunResult) -> Ended {
    if let Some(path) = path {
        save(path, result)?;
        note(&format!("      written to {}", path.display()));
    }
    if out.json {
        out.json(result)?;
    } else {
        result.text().lines().try_for_each(|line| out.line(line))?;
    }
    Ok(result.exit_code())
}

/// Nothing was measured: exit code 1, or 2 for wrong usage.
fn failed(error: BenchError) -> Ended {
    match error {
        BenchError::Db(error) => Err(error),
        error => {
            note(&format!("rowdeck: {error}"));
            Ok(FINDING)
        }
    }
}

/// A duration in seconds, or with a unit: `90`, `90s`, `5m`, `2h`, `250ms`.
fn duration(text: &str) -> Result<std::time::Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("not a duration such as 90, 90s, 5m or 2h".to_owned()),
    };
    match number.parse::<f64>() {
        Ok(number) if (0.0..=604_800.0).contains(&(number * scale)) => {
            Ok(std::time::Duration::from_secs_f64(number * scale))
        }
        _ => Err("not a duration such as 90, 90s, 5m or 2h, of a week at most".to_owned()),
    }
}

/// A number from 0 to `most`.
fn within(text: &str, most: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (0.0..=most).contains(&number) => Ok(number),
        _ => Err(format!("not a number from 0 to {most}")),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    within(text, 86_400.0)
}

fn rate(text: &str) -> Result<f64, String> {
    within(text, 100_000.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    #[test]
    fn durations_take_a_unit() {
        let seconds = |text| duration(text).map(|d| d.as_secs_f64());
        assert_eq!(seconds("90"), Ok(90.0));
        assert_eq!(seconds("1.5m"), Ok(90.0));
        assert_eq!(seconds("2h"), Ok(7200.0));
        assert_eq!(seconds("250ms"), Ok(0.25));
        for wrong in ["", "5x", "m", "-1", "1e3", "9999999"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
