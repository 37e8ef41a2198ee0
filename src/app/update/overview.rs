//! The Overview screen.

use crate::app::command::Command;
use crate::app::effect::Effect;
use crate::app::model::overview::{InNumbers, Read, items};
use crate::app::model::{About, Level, Model};

/// Runs a command of the Overview screen.
pub fn run(model: &mut Model, command: Command) -> Vec<Effect> {
    match command {
        Command::OverviewOpen => open(model),
        Command::OverviewAgain if super::jobs::need_link(model) => return vec![Effect::WatchNow],
        _ => {}
    }
    Vec::new()
}

/// Goes where the marked line is mended, and says how.
fn open(model: &mut Model) {
    let Some(item) = items(model).get(model.overview.at).cloned() else {
        model.say(Level::Ok, "nothing needs you");
        return;
    };
    if let Some(screen) = item.screen {
        super::navigate::go(model, screen);
    }
    model.say(Level::Info, item.help);
}

/// It was read.
pub fn read(model: &mut Model, result: Result<(Box<Read>, Option<InNumbers>), String>) -> Vec<Effect> {
    let clock = model.clock;
    match result {
        Ok((read, numbers)) => {
            model.worked(About::Watch);
            model.overview.take(*read, numbers, clock);
            let len = items(model).len();
            model.overview.at = model.overview.at.min(len.saturating_sub(1));
        }
        Err(why) => {
            let why = crate::text::line(&why).into_owned();
            model.fail(About::Watch, format!("not read: {why}"));
            model.overview.failure = Some(why);
        }
    }
    Vec::new()
}
