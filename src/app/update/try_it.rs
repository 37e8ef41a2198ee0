//! The Try it screen: one statement as anyone, always rolled back.

use super::dialog;
use super::jobs::need_link;
use crate::app::command::Command;
use crate::app::effect::Effect;
use crate::app::model::field::Field;
use crate::app::model::inspect::parse_object;
use crate::app::model::try_it::{Tried, Typing};
use crate::app::model::{About, Answer, Level, Model};
use crate::db::try_it::shape;

/// Runs a command of the Try it screen.
pub fn run(model: &mut Model, command: Command) -> Vec<Effect> {
    let columns = model.try_it.result.as_ref().map_or(0, |tried| tried.columns.len());
    match command {
        Command::TryWho => {
            let who = if model.try_it.who.is_empty() { "user " } else { model.try_it.who.as_str() };
            open(model, Typing::Who, Field::with(who.to_owned()));
        }
        Command::TryStatement => {
            let text = model.try_it.statement.clone();
            open(model, Typing::Statement, Field { lines: true, ..Field::with(text) });
        }
        Command::TryRun => return ask(model),
        Command::TryCancel if model.try_it.waiting.is_some() => {
            model.say(Level::Info, "cancel sent");
            return vec![Effect::CancelTry];
        }
        Command::TryCancel => model.say(Level::Info, "nothing runs"),
        Command::TryCopy => return copy(model),
        Command::TryRight => model.try_it.left = (model.try_it.left + 1).min(columns.saturating_sub(1)),
        Command::TryLeft => model.try_it.left = model.try_it.left.saturating_sub(1),
        _ => {}
    }
    Vec::new()
}

fn open(model: &mut Model, typing: Typing, field: Field) {
    model.try_it.typing = typing;
    model.try_it.field = Some(field);
}

/// The typed text was accepted: whom to be, or the statement, which then runs.
pub fn field_accepted(model: &mut Model) -> Vec<Effect> {
    let Some(field) = model.try_it.field.take() else { return Vec::new() };
    match model.try_it.typing {
        Typing::Who => {
            let who = field.text.trim().replacen(':', " ", 1);
            if who != "nobody" && parse_object(&who).is_none() {
                model.say(Level::Warn, "write a type and an id, such as: user 31, or nobody");
                return Vec::new();
            }
            model.try_it.who = who;
            if model.try_it.statement.trim().is_empty() { Vec::new() } else { ask(model) }
        }
        Typing::Statement => {
            model.try_it.statement = field.text;
            ask(model)
        }
    }
}

/// Typing was left: the statement stays as typed, and does not run.
pub fn field_cancelled(model: &mut Model) {
    if let Some(field) = model.try_it.field.take()
        && model.try_it.typing == Typing::Statement
    {
        model.try_it.statement = field.text;
    }
}

/// Starts it; on production what may write asks first.
fn ask(model: &mut Model) -> Vec<Effect> {
    if !need_link(model) {
        return Vec::new();
    }
    if model.try_it.who.is_empty() {
        open(model, Typing::Who, Field::with("user "));
        model.say(Level::Info, "first say whom to be: user 31, or nobody");
        return Vec::new();
    }
    if model.try_it.statement.trim().is_empty() {
        let key = model.keymap.key(Command::TryStatement).to_owned();
        model.say(Level::Info, format!("there is no statement yet: {key} types one"));
        return Vec::new();
    }
    if model.try_it.waiting.is_some() {
        let key = model.keymap.key(Command::TryCancel).to_owned();
        model.say(Level::Warn, format!("one runs already; {key} cancels it"));
        return Vec::new();
    }
    if writes(model) && model.production {
        let lines = vec![
            crate::text::cut(model.try_it.statement.trim(), 200),
            "It is rolled back at once, but locks what it writes until then and runs the tables' triggers.".to_owned(),
        ];
        dialog::ask(model, "Run this on production?", lines, "Run and roll back", Answer::Try);
        return Vec::new();
    }
    start(model)
}

/// A read-only console writes nothing, and what reads needs no more on production.
fn writes(model: &Model) -> bool {
    let reads = model.production && shape::reads(&model.try_it.statement);
    !(model.read_only || reads)
}

/// Starts it.
pub fn start(model: &mut Model) -> Vec<Effect> {
    if !need_link(model) {
        return Vec::new();
    }
    let writes = writes(model);
    let it = &mut model.try_it;
    it.asked += 1;
    it.waiting = Some(it.asked);
    (it.failure, it.at, it.left) = (None, 0, 0);
    it.ran_as = (it.who.clone(), writes);
    vec![Effect::Try { asked: it.asked, who: it.who.clone(), statement: it.statement.clone(), writes }]
}

/// It ran and was rolled back, or could not run. Answers to older runs are dropped.
pub fn tried(model: &mut Model, asked: u64, result: Result<Box<Tried>, String>) -> Vec<Effect> {
    if model.try_it.waiting != Some(asked) {
        return Vec::new();
    }
    model.try_it.waiting = None;
    match result {
        Ok(tried) => {
            model.worked(About::Try);
            model.try_it.result = Some(*tried);
        }
        Err(why) => {
            let why = crate::text::line(&why).into_owned();
            model.fail(About::Try, format!("not run: {why}"));
            model.try_it.result = None;
            model.try_it.failure = Some(why);
        }
    }
    Vec::new()
}

fn copy(model: &mut Model) -> Vec<Effect> {
    let Some(tried) = model.try_it.result.as_ref().filter(|tried| !tried.columns.is_empty()) else {
        model.say(Level::Info, "there is no result to copy");
        return Vec::new();
    };
    let cell = |cell: &Option<String>| cell.as_deref().unwrap_or("").replace(['\t', '\n', '\r'], " ");
    let mut lines = vec![tried.columns.join("\t")];
    lines.extend(tried.rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join("\t")));
    let text = lines.join("\n");
    model.say(Level::Info, format!("{} sent to the terminal", crate::text::counted(tried_len(model), "row")));
    vec![Effect::Copy(text)]
}

fn tried_len(model: &Model) -> u64 {
    model.try_it.result.as_ref().map_or(0, |tried| tried.rows.len() as u64)
}
