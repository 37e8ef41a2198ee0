//! The Bench screen: rates, start, the big move, stop.

use super::dialog;
use super::jobs::need_link;
use crate::app::command::Command;
use crate::app::effect::Effect;
use crate::app::message::BenchNews;
use crate::app::model::bench::{Rates, State};
use crate::app::model::{About, Answer, Job, Level, Model};
use crate::bench::live::Phase;

/// Runs a command of the Bench screen.
pub fn run(model: &mut Model, command: Command) -> Vec<Effect> {
    let rates = model.bench.rates;
    let changed = match command {
        Command::BenchMoreReads => Rates { reads: (rates.reads + 50).min(5_000), ..rates },
        Command::BenchLessReads => Rates { reads: rates.reads.saturating_sub(50), ..rates },
        Command::BenchMoreWrites => Rates { writes: (rates.writes + 5).min(1_000), ..rates },
        Command::BenchLessWrites => Rates { writes: rates.writes.saturating_sub(5), ..rates },
        _ => rates,
    };
    if changed != rates {
        model.bench.rates = changed;
        return new_rates(model);
    }
    match command {
        Command::BenchStart => return ask_start(model),
        Command::BenchMove => {
            if model.bench.state == State::Running {
                return vec![Effect::BenchMove];
            }
            model.say(Level::Info, "start the load first (s)");
        }
        Command::BenchStop => {
            if matches!(model.bench.state, State::Running | State::Starting) {
                model.bench.state = State::Stopping;
                return vec![Effect::BenchStop];
            }
            model.say(Level::Info, "no load runs");
        }
        _ => {}
    }
    Vec::new()
}

fn ask_start(model: &mut Model) -> Vec<Effect> {
    if model.runs(Job::Bench) {
        model.say(Level::Info, "it runs; m moves a big subtree, x stops");
        return Vec::new();
    }
    if !need_link(model) {
        return Vec::new();
    }
    let rates = model.bench.rates;
    let database = model.link.facts().map_or_else(String::new, |f| f.database.clone());
    let lines = vec![
        format!("{} reads and {} tree writes a second on {database}.", rates.reads, rates.writes),
        "Tree writes create, move and link folders: this changes data.".to_owned(),
    ];
    dialog::ask(model, "Start the load?", lines, "Start", Answer::StartBench);
    Vec::new()
}

/// The answer was to start.
pub fn start(model: &mut Model) -> Vec<Effect> {
    if !need_link(model) || model.runs(Job::Bench) {
        return Vec::new();
    }
    model.jobs.push(Job::Bench);
    model.bench.state = State::Starting;
    model.bench.snapshot = None;
    vec![Effect::BenchStart(model.bench.rates)]
}

/// News of the load.
pub fn news(model: &mut Model, news: BenchNews) -> Vec<Effect> {
    match news {
        BenchNews::Snapshot(snapshot) => {
            model.bench.state = match &snapshot.phase {
                Phase::Preparing => State::Starting,
                Phase::Running if model.bench.state == State::Stopping => State::Stopping,
                Phase::Running => State::Running,
                Phase::CleaningUp => State::Stopping,
                Phase::Ended => State::Stopped,
                Phase::Failed { why } => State::Failed(crate::text::line(why).into_owned()),
            };
            if model.bench.state == State::Running {
                model.worked(About::Bench);
            }
            model.bench.snapshot = Some(*snapshot);
        }
        BenchNews::Ended(result) => ended(model, result),
    }
    Vec::new()
}

fn ended(model: &mut Model, result: Result<(), String>) {
    model.jobs.retain(|job| *job != Job::Bench);
    let failure = match (result, &model.bench.state) {
        (Err(why), _) => Some(crate::text::line(&why).into_owned()),
        (Ok(()), State::Failed(why)) => Some(why.clone()),
        (Ok(()), _) => None,
    };
    match failure {
        Some(why) => {
            model.fail(About::Bench, format!("the load failed: {why}"));
            model.bench.state = State::Failed(why);
        }
        None => {
            model.bench.state = State::Stopped;
            model.say(Level::Ok, "stopped; what it wrote is taken back, what was measured stays here");
        }
    }
}

/// The rates were changed; a load that runs goes on at them.
fn new_rates(model: &Model) -> Vec<Effect> {
    if model.bench.state == State::Running { vec![Effect::BenchRates(model.bench.rates)] } else { Vec::new() }
}
