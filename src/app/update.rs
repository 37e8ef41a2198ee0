//! The one function that changes the model. It is pure: it reads no clock, no file and no server; what it wants done it
//! returns.

mod activity;
mod bench;
mod dialog;
mod edit;
mod inspect;
mod jobs;
mod navigate;
mod overview;
pub mod palette;
mod policy;
mod targets;
mod try_it;

use ratatui::crossterm::event::KeyCode;

use super::command::{Changes, Command, Place};
use super::effect::Effect;
use super::keymap::Key;
use super::message::Message;
use super::model::link::Link;
use super::model::{About, Level, Model, Overlay, Screen};

/// Takes one message, changes the model and returns what is to be done.
pub fn update(model: &mut Model, message: Message) -> Vec<Effect> {
    match message {
        Message::Key(key) => key_pressed(model, key),
        Message::Paste(text) => pasted(model, &text),
        Message::Resize(columns, rows) => {
            model.size = (columns, rows);
            policy::follow_cursor(model);
            Vec::new()
        }
        Message::Clock(clock) => {
            model.clock = clock;
            Vec::new()
        }
        Message::Said(level, text) => {
            model.say(level, text);
            Vec::new()
        }
        Message::Tables(tables) => {
            model.policy.tables = tables;
            Vec::new()
        }
        Message::Loaded { path, result } => policy::loaded(model, path, result),
        Message::Recovered(text) => policy::recovered(model, text),
        Message::Saved { revision, result } => policy::saved(model, revision, result),
        Message::Compiled(outcome) => policy::compiled(model, *outcome),
        Message::LinkUp(facts) => {
            model.worked(About::Link);
            let again = matches!(model.link, Link::Down { last: Some(_), .. });
            if again {
                model.say(Level::Ok, "connected again; role, version and policy were read anew");
            }
            model.link = Link::Up(*facts);
            Vec::new()
        }
        Message::LinkDown { reason, retry_in } => {
            link_down(model, &reason, retry_in);
            Vec::new()
        }
        Message::Planned(result) => jobs::planned(model, result),
        Message::Applying(progress) => {
            let clock = model.clock;
            model.apply.progress(progress, clock);
            Vec::new()
        }
        Message::Applied(result) => jobs::applied(model, result),
        Message::Verified(result) => jobs::verified(model, result),
        Message::VerifyTotal(total) => {
            model.verify.total = Some(total);
            Vec::new()
        }
        Message::Repaired(result) => jobs::repaired(model, result),
        Message::Told { asked, told } => inspect::told(model, asked, *told),
        Message::Overview(result) => overview::read(model, result),
        Message::Sessions(result) => activity::read(model, result),
        Message::SessionEnded { pid, how, result } => activity::ended(model, pid, how, result),
        Message::Tried { asked, result } => try_it::tried(model, asked, result),
        Message::Exported { path, result } => {
            match result {
                Ok(()) => model.say(Level::Ok, format!("written to {path}")),
                Err(why) => model.say(Level::Error, format!("not written: {why}")),
            }
            Vec::new()
        }
        Message::Bench(news) => bench::news(model, news),
        Message::Tested(result) => jobs::tested(model, result),
    }
}

fn link_down(model: &mut Model, reason: &str, retry_in: Option<std::time::Duration>) {
    let reason = crate::text::line(reason).into_owned();
    let retry_at = retry_in.map(|wait| model.clock + wait);
    let tries = match &model.link {
        Link::Down { tries, .. } => tries + 1,
        _ => 1,
    };
    let (since, last) = match std::mem::replace(&mut model.link, Link::Unused) {
        Link::Down { since, last, .. } => (since, last),
        Link::Up(facts) => (model.clock, Some(facts)),
        Link::Unused | Link::Connecting => (model.clock, None),
    };
    if tries == 1 {
        model.fail(About::Link, format!("not connected: {reason}"));
    }
    model.link = Link::Down { last, since, reason, tries, retry_at };
}

fn key_pressed(model: &mut Model, key: Key) -> Vec<Effect> {
    if key.alt {
        // A terminal cannot tell Alt and a key from Escape and a key that arrive together, as they do over a slow link.
        // No command needs Alt, so it is always the latter.
        let mut effects = key_pressed(model, Key::plain(KeyCode::Esc));
        effects.extend(key_pressed(model, Key { alt: false, ..key }));
        return effects;
    }
    // What was said before is read by now; a failure stays until something else is said or it is closed.
    if model.notice.as_ref().is_some_and(|notice| notice.level != Level::Error) {
        model.notice = None;
    }
    let places = model.places();
    if let Some(command) = model.keymap.lookup(key, &places) {
        return run(model, command);
    }
    if let Some(field) = model.field_mut() {
        if field.key(key) {
            navigate::field_changed(model);
        }
        return Vec::new();
    }
    if places.contains(&Place::Editor) {
        return edit::type_key(model, key);
    }
    Vec::new()
}

fn pasted(model: &mut Model, text: &str) -> Vec<Effect> {
    let in_dialog = matches!(model.overlay, Some(Overlay::Dialog(_)));
    if in_dialog {
        model.say(Level::Warn, "a paste does not answer a question; type it");
        return Vec::new();
    }
    if let Some(field) = model.field_mut() {
        field.insert(text);
        navigate::field_changed(model);
        return Vec::new();
    }
    if model.overlay.is_none() && model.screen == Screen::Policy && model.policy.editing {
        return policy::paste(model, text);
    }
    model.say(Level::Warn, "pasted text was ignored: nothing here takes text");
    Vec::new()
}

/// Why a command cannot run now, when it cannot: what writes data for a test never runs on production, and the
/// read-only filter, from the command table.
pub fn refused(model: &Model, command: Command) -> Option<String> {
    let row = command.row();
    if model.production && matches!(command, Command::BenchStart | Command::BenchMove | Command::RunTests) {
        let what = if command == Command::RunTests {
            "tests write rows and refuse"
        } else {
            "the benchmark writes and refuses"
        };
        return Some(format!("{} is marked as production; {what}", model.target));
    }
    if row.changes == Changes::Database && model.read_only {
        return Some(format!(
            "{} changes the database and this console is read-only ({} allows changes)",
            row.name,
            model.keymap.key(Command::AllowChanges)
        ));
    }
    None
}

/// Runs a command, whether by its key or from the palette.
pub fn run(model: &mut Model, command: Command) -> Vec<Effect> {
    if let Some(why) = refused(model, command) {
        model.say(Level::Warn, why);
        return Vec::new();
    }
    match command.row().place {
        Place::Screens | Place::Anywhere | Place::List | Place::Field => navigate::run(model, command),
        Place::Dialog => dialog::run(model, command),
        Place::Palette => palette::run(model, command),
        Place::Overview => overview::run(model, command),
        Place::Policy | Place::Editor => policy::run(model, command),
        Place::Replacing | Place::Completing => edit::run(model, command),
        Place::Sql => navigate::sql(model, command),
        Place::Apply | Place::Verify => jobs::run(model, command),
        Place::Inspect => inspect::run(model, command),
        Place::Try => try_it::run(model, command),
        Place::Bench => bench::run(model, command),
        Place::Activity => activity::run(model, command),
        Place::Targets => targets::run(model, command),
    }
}
