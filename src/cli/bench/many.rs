//! `rowdeck bench soak`, `compare` and `report`: what is made of several runs.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::run::{HowArgs, name_signal, plan, stoppable};
use super::{duration, failed, refuse_out};
use crate::bench::compare;
use crate::bench::page;
use crate::bench::result::save;
use crate::bench::scenario::{How, Scenario};
use crate::bench::scenarios::{ALL, find};
use crate::bench::soak::{self, Event};
use crate::cli::args::Global;
use crate::cli::output::{Output, note, show_progress};
use crate::cli::{Ended, database::finish, targets};
use crate::db::error::DbError;

/// Options of `bench soak`.
#[derive(Debug, Clone, Args)]
pub struct SoakArgs {
    /// The scenario
    #[arg(default_value = "mixed", value_parser = driven)]
    pub scenario: &'static Scenario,
    /// How long altogether
    #[arg(long = "for", value_name = "TIME", default_value = "2h", value_parser = duration)]
    pub total: Duration,
    /// How long each window is; the last one is shortened
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = duration)]
    pub window: Duration,
    /// Something that happens, and when: vacuum@10m, checkpoint@20m, pg_dump@30m, policy@40m, disconnect@50m
    #[arg(long, value_name = "EVENT@TIME", value_parser = event)]
    pub event: Vec<(Event, Duration)>,
    /// How it runs.
    #[command(flatten)]
    pub run: HowArgs,
}

/// Options of `bench compare`.
#[derive(Debug, Clone, Args)]
pub struct CompareArgs {
    /// The scenario
    #[arg(value_parser = driven)]
    pub scenario: &'static Scenario,
    /// The second subject: another target of rowdeck.toml; without, the first one beside itself
    #[arg(long, value_name = "NAME", conflicts_with = "other_db")]
    pub other: Option<String>,
    /// The second subject: another database
    #[arg(long, value_name = "URL")]
    pub other_db: Option<String>,
    /// How often a, b, a
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(2..=100))]
    pub rounds: u16,
    /// How long each turn measures
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub seconds: Duration,
    /// How it runs.
    #[command(flatten)]
    pub run: HowArgs,
}

/// Options of `bench report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// A folder of results
    pub folder: PathBuf,
    /// The page to write; its charts go into a folder of the same name beside it. Neither may be there yet
    #[arg(long, value_name = "FILE.md")]
    pub out: PathBuf,
}

fn driven(name: &str) -> Result<&'static Scenario, String> {
    let driven = |one: &&Scenario| matches!(one.how, How::Workload(_));
    find(name).filter(driven).ok_or_else(|| {
        let all: Vec<&str> = ALL.iter().copied().filter(driven).map(|one| one.name).collect();
        format!("there are {}", all.join(", "))
    })
}

fn event(text: &str) -> Result<(Event, Duration), String> {
    let (event, at) =
        text.split_once('@').ok_or_else(|| "not an event with its time, such as vacuum@10m".to_owned())?;
    Ok((event.parse()?, duration(at)?))
}

pub(super) async fn soak(global: &Global, out: Output, args: &SoakArgs) -> Ended {
    if args.total.is_zero() || args.window.is_zero() {
        return Err(DbError::Usage("--for and --window must be longer than nothing".to_owned()));
    }
    if let Some((event, at)) = args.event.iter().find(|(_, at)| *at >= args.total) {
        let why = format!("{} at {} s would come after the end", event.word(), at.as_secs());
        return Err(DbError::Usage(why));
    }
    refuse_out(args.run.out.out.as_deref())?;
    let plan = plan(global, args.scenario, &args.run)?;
    let (reporter, shown) = show_progress();
    let (ended, signal) = stoppable(|stop| {
        let (plan, reporter) = (&plan, &reporter);
        async move { soak::run(plan, args.total, args.window, &args.event, &stop, reporter).await }
    })
    .await?;
    drop(reporter);
    finish(shown).await?;
    let mut result = match ended {
        Ok(result) => result,
        Err(error) => return failed(error),
    };
    name_signal(&mut result.failure, signal);
    for window in &mut result.windows {
        name_signal(&mut window.failure, signal);
    }
    if let Some(path) = &args.run.out.out {
        save(path, &result)?;
    }
    if out.json {
        out.json(&result)?
    } else {
        result.text().lines().try_for_each(|line| out.line(line))?
    }
    Ok(result.exit_code())
}

pub(super) async fn compare(global: &Global, out: Output, args: &CompareArgs) -> Ended {
    refuse_out(args.run.out.out.as_deref())?;
    let with = |global: &Global| {
        plan(global, args.scenario, &args.run).map(|plan| crate::bench::run::Plan { measure: args.seconds, ..plan })
    };
    let a = with(global)?;
    let other = match (&args.other, &args.other_db) {
        (None, None) => global.clone(),
        (name, db) => Global { db: db.clone(), target: name.clone(), json: global.json },
    };
    let b = with(&other)?;
    let name = |plan: &crate::bench::run::Plan, of: &Global| match &of.target {
        Some(name) => format!("{name}: {}", plan.target.describe()),
        None => plan.target.describe(),
    };
    let (a_name, b_name) = (name(&a, global), name(&b, &other));
    targets::warn_of_visible_password(args.other_db.as_deref());
    let (reporter, shown) = show_progress();
    let (ended, signal) = stoppable(|stop| {
        let (a, b, reporter) = ((&a, a_name.as_str()), (&b, b_name.as_str()), &reporter);
        async move { compare::run(a, b, args.rounds.into(), &stop, reporter).await }
    })
    .await?;
    drop(reporter);
    finish(shown).await?;
    let mut result = match ended {
        Ok(result) => result,
        Err(error) => return failed(error),
    };
    name_signal(&mut result.failure, signal);
    if let Some(path) = &args.run.out.out {
        save(path, &result)?;
    }
    if out.json {
        out.json(&result)?
    } else {
        result.text().lines().try_for_each(|line| out.line(line))?
    }
    Ok(result.exit_code())
}

pub(super) fn report(out: Output, args: &ReportArgs) -> Ended {
    refuse_out(Some(&args.out))?;
    let charts = args.out.with_extension("");
    refuse_out(Some(&charts))?;
    let results = page::read(&args.folder)?;
    let name = charts.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let page = page::page(&results, &name);
    let write = |path: &std::path::Path, text: &str| {
        std::fs::write(path, text).map_err(|error| DbError::io(format!("cannot write {}", path.display()), error))
    };
    if !page.charts.is_empty() {
        std::fs::create_dir(&charts)
            .map_err(|error| DbError::io(format!("cannot make {}", charts.display()), error))?;
    }
    for (name, chart) in &page.charts {
        write(&charts.join(name), chart)?;
    }
    write(&args.out, &page.text)?;
    note(&format!("      {} results, {} charts", results.len(), page.charts.len()));
    if out.json {
        out.json(&serde_json::json!({ "page": args.out, "results": results.len(), "charts": page.charts.len() }))?;
    } else {
        out.line(&format!("written to {}", args.out.display()))?;
    }
    Ok(0)
}
