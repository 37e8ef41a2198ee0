//! The Targets screen: connecting to another server of rowdeck.toml.

use crate::app::command::Command;
use crate::app::effect::Effect;
use crate::app::model::link::Link;
use crate::app::model::{Level, Model};

/// Runs a command of the Targets screen.
pub fn run(model: &mut Model, command: Command) -> Vec<Effect> {
    match command {
        Command::TargetSwitch => switch(model),
        _ => Vec::new(),
    }
}

fn switch(model: &mut Model) -> Vec<Effect> {
    let Some(row) = model.targets.rows.get(model.targets.at).cloned() else {
        model.say(Level::Info, "rowdeck.toml names no target");
        return Vec::new();
    };
    if let Err(why) = row.place {
        model.say(Level::Warn, why);
        return Vec::new();
    }
    if row.name == model.target {
        model.say(Level::Info, format!("{} is the target already", row.name));
        return Vec::new();
    }
    if !model.jobs.is_empty() || model.try_it.waiting.is_some() {
        model.say(Level::Warn, "wait for what runs, or cancel it; then change the target");
        return Vec::new();
    }
    // Nothing that was read from the one may be taken for the other's.
    model.target = row.name.clone();
    (model.read_only, model.production) = (row.read_only, row.production);
    model.link = Link::Connecting;
    model.overview = Default::default();
    model.apply = Default::default();
    model.verify = Default::default();
    model.inspect = Default::default();
    model.bench = Default::default();
    model.activity = Default::default();
    model.policy.tests = None;
    (model.try_it.result, model.try_it.failure) = (None, None);
    model.notice = None;
    model.say(Level::Info, format!("connecting to {}", row.name));
    vec![Effect::SwitchTarget(row.name)]
}
