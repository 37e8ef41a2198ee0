//! The Activity screen: sessions, and ending one that is in the way.

use super::dialog;
use super::jobs::need_link;
use super::navigate::moved;
use crate::app::command::Command;
use crate::app::effect::Effect;
use crate::app::model::activity::{End, Sessions};
use crate::app::model::{About, Answer, Level, Model};

/// Runs a command of the Activity screen.
pub fn run(model: &mut Model, command: Command) -> Vec<Effect> {
    match command {
        Command::ActivityHolder => holder(model),
        Command::ActivityCancel => ask(model, End::Cancel),
        Command::ActivityEnd => ask(model, End::Terminate),
        Command::ActivityAgain if need_link(model) => return vec![Effect::WatchNow],
        _ => {}
    }
    Vec::new()
}

/// Moves the mark.
pub fn move_by(model: &mut Model, command: Command, page: usize) {
    let to = moved(command, model.activity.at(), model.activity.rows().len(), page);
    model.activity.marked = model.activity.rows().get(to).map(|row| row.pid);
}

/// Marks the session that the marked one waits for.
fn holder(model: &mut Model) {
    let Some(row) = model.activity.here() else { return };
    match row.blocked_by.first().copied() {
        None => model.say(Level::Info, "this session waits for nobody"),
        Some(pid) if model.activity.rows().iter().any(|row| row.pid == pid) => model.activity.marked = Some(pid),
        // A prepared transaction has no process, and a session of another database is not listed.
        Some(0) => model.say(Level::Warn, "it waits for a prepared transaction; pg_prepared_xacts lists them"),
        Some(pid) => model.say(Level::Warn, format!("it waits for pid {pid}, which is not in this list")),
    }
}

fn ask(model: &mut Model, how: End) {
    if !need_link(model) {
        return;
    }
    let Some(row) = model.activity.here().cloned() else {
        model.say(Level::Info, "there is no other session");
        return;
    };
    model.activity.asked = Some((row.pid, row.started));
    let clean = |text: &str| crate::text::line(text).into_owned();
    let waiting = model.activity.waiting_for(row.pid);
    let mut lines = vec![clean(&format!("pid {}, {} from {} ({})", row.pid, row.role, row.client, row.application))];
    lines.push(clean(&format!("{}: {}", row.state, crate::text::cut(row.query.trim(), 200))));
    if waiting > 0 {
        lines.push(format!(
            "{} for it.",
            if waiting == 1 { "1 session waits".into() } else { format!("{waiting} sessions wait") }
        ));
    }
    let (title, yes, answer) = match how {
        End::Cancel => ("Cancel what this session runs?", "Cancel its statement", Answer::CancelSession),
        End::Terminate => ("End this session?", "End the session", Answer::EndSession),
    };
    if how == End::Cancel && row.state.starts_with("idle") {
        lines.push("It runs nothing now, so cancelling does nothing; ending it would.".to_owned());
    }
    dialog::ask(model, title, lines, yes, answer);
}

/// The answer was to do it.
pub fn end(model: &mut Model, how: End) -> Vec<Effect> {
    match model.activity.asked.take() {
        Some((pid, started)) if need_link(model) => vec![Effect::EndSession { pid, started, how }],
        _ => Vec::new(),
    }
}

/// The server did it, or not.
pub fn ended(model: &mut Model, pid: i32, how: End, result: Result<bool, String>) -> Vec<Effect> {
    match (result, how) {
        (Ok(true), End::Cancel) => model.say(Level::Ok, format!("pid {pid} was asked to cancel what it runs")),
        (Ok(true), End::Terminate) => model.say(Level::Ok, format!("pid {pid} was ended")),
        (Ok(false), _) => model.say(Level::Warn, format!("the server sent pid {pid} no signal")),
        (Err(why), _) => model.say(Level::Error, format!("pid {pid}: {why}")),
    }
    vec![Effect::WatchNow]
}

/// It was read.
pub fn read(model: &mut Model, result: Result<Box<Sessions>, String>) -> Vec<Effect> {
    match result {
        Ok(read) => {
            model.worked(About::Watch);
            // The mark stays on its session; when that has ended, on the line where it was.
            let at = model.activity.at();
            model.activity.read = Some(*read);
            model.activity.failure = None;
            let rows = model.activity.rows();
            if !rows.iter().any(|row| Some(row.pid) == model.activity.marked) {
                model.activity.marked = rows.get(at.min(rows.len().saturating_sub(1))).map(|row| row.pid);
            }
        }
        Err(why) => {
            let why = crate::text::line(&why).into_owned();
            model.fail(About::Watch, format!("not read: {why}"));
            model.activity.failure = Some(why);
        }
    }
    Vec::new()
}
