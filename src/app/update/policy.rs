//! The Policy screen: typing, saving, finding, and what the compiler answers.

use std::path::PathBuf;

use tui_textarea::{CursorMove, TextArea};

use super::dialog;
use crate::app::command::Command;
use crate::app::effect::Effect;
use crate::app::message::SaveProblem;
use crate::app::model::policy::{DiskStamp, Outcome, SearchFor, outline, text_cells};
use crate::app::model::{Answer, Level, Model};

/// Runs a command of the Policy screen or of its editor.
pub fn run(model: &mut Model, command: Command) -> Vec<Effect> {
    let page = usize::from(model.size.1).saturating_sub(8).max(1);
    match command {
        Command::Edit => model.policy.editing = true,
        Command::LeaveEditor => model.policy.editing = false,
        Command::Save | Command::SaveScreen => return save(model, false),
        Command::Find | Command::FindHere => super::edit::open(model, SearchFor::Find),
        Command::FindNext | Command::Replace | Command::Complete | Command::Definition | Command::DefinitionHere => {
            return super::edit::run(model, command);
        }
        Command::Return | Command::ReturnHere => return super::edit::run(model, command),
        Command::Format | Command::FormatHere => return format(model),
        Command::Undo => return edit(model, TextArea::undo),
        Command::Redo => return edit(model, TextArea::redo),
        Command::Cut => return edit(model, TextArea::cut),
        Command::Yank => return edit(model, TextArea::paste),
        Command::NextMistake | Command::NextMistake2 => next_mistake(model),
        Command::PageUpEditor => move_cursor(model, Command::PageUp, page),
        Command::PageDownEditor => move_cursor(model, Command::PageDown, page),
        Command::RunTests => return super::jobs::run_tests(model),
        _ => {}
    }
    Vec::new()
}

/// Changes the text by `change`, which says whether it did.
pub fn edit(model: &mut Model, change: impl FnOnce(&mut TextArea<'static>) -> bool) -> Vec<Effect> {
    let changed = change(&mut model.policy.area);
    follow_cursor(model);
    if changed { text_changed(model) } else { Vec::new() }
}

/// Sets the text the one way, unless it has mistakes that keep it from being read.
fn format(model: &mut Model) -> Vec<Effect> {
    let text = model.policy.text();
    match crate::compiler::format::format(&text) {
        Err(mistakes) => {
            let counted = crate::text::counted(u64::try_from(mistakes.len()).unwrap_or(u64::MAX), "mistake");
            model.say(Level::Warn, format!("not formatted: the text has {counted} and is left as it is"));
            Vec::new()
        }
        Ok(set) if set == text => {
            model.say(Level::Ok, "the text is formatted already");
            Vec::new()
        }
        Ok(set) => {
            let (line, column) = model.policy.cursor();
            let effects = edit(model, |area| {
                area.select_all();
                area.insert_str(set.trim_end_matches('\n'))
            });
            go_to(model, line.min(model.policy.area.lines().len().saturating_sub(1)), column);
            model.say(Level::Ok, "formatted");
            effects
        }
    }
}

/// Text pasted into the text: its characters, never keys.
pub fn paste(model: &mut Model, text: &str) -> Vec<Effect> {
    let plain: String = text
        .replace("\r\n", "\n")
        .replace('\r', "\n")
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect();
    edit(model, |area| area.insert_str(plain))
}

fn text_changed(model: &mut Model) -> Vec<Effect> {
    model.policy.revision += 1;
    model.policy.outline = outline(model.policy.area.lines());
    let text = model.policy.text();
    let mut effects = vec![compile_effect(model, text.clone())];
    if model.policy.saved_text.as_ref() == Some(&text) {
        // Undone to what is on disk: nothing is unsaved any more.
        model.policy.saved = model.policy.revision;
        effects.push(Effect::DropKept);
    } else {
        effects.push(Effect::Keep { text });
    }
    effects
}

fn compile_effect(model: &Model, text: String) -> Effect {
    Effect::Compile { revision: model.policy.revision, name: file(model), text }
}

/// The text's file; what it is called when it has none.
pub fn file(model: &Model) -> PathBuf {
    model.policy.path.clone().unwrap_or_else(|| PathBuf::from(&model.policy.name))
}

/// Rows of the editor's text at this terminal size.
pub fn editor_rows(size: (u16, u16)) -> usize {
    // Header, screens, frame (2), findings line, message, hints.
    usize::from(size.1).saturating_sub(7).max(1)
}

/// Scrolls so that the cursor is seen.
pub fn follow_cursor(model: &mut Model) {
    model.policy.top = model.policy.top_for(editor_rows(model.size), text_cells(model.size.0));
}

/// Moves the cursor by a list command.
pub fn move_cursor(model: &mut Model, command: Command, page: usize) {
    let (line, column) = model.policy.cursor();
    let to = super::navigate::moved(command, line, model.policy.area.lines().len(), page);
    jump(&mut model.policy.area, line, to, column);
    follow_cursor(model);
}

/// Puts the cursor on a line and column. The editor's own jump counts to 65,535 only, so further lines are walked.
fn jump(area: &mut TextArea<'static>, from: usize, line: usize, column: usize) {
    let short = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
    let limit = usize::from(u16::MAX);
    if line <= limit {
        area.move_cursor(CursorMove::Jump(short(line), short(column)));
        return;
    }
    let start = if from > limit { from } else { limit };
    if from <= limit {
        area.move_cursor(CursorMove::Jump(u16::MAX, short(column)));
    }
    for _ in 0..line.abs_diff(start) {
        area.move_cursor(if line > start { CursorMove::Down } else { CursorMove::Up });
    }
}

pub fn go_to(model: &mut Model, line: usize, column: usize) {
    let from = model.policy.cursor().0;
    jump(&mut model.policy.area, from, line, column);
    follow_cursor(model);
}

fn next_mistake(model: &mut Model) {
    let here = model.policy.cursor();
    let mut places: Vec<(usize, usize)> =
        model.policy.findings().filter(|f| f.file.is_none()).map(|f| (f.line, f.column)).collect();
    places.sort_unstable();
    let next = places.iter().find(|place| **place > here).or_else(|| places.first()).copied();
    match next {
        Some((line, column)) => go_to(model, line, column),
        None => model.say(Level::Ok, "no mistakes and no lints"),
    }
}

/// Saves the text; `overwrite` also when the file changed on disk.
pub fn save(model: &mut Model, overwrite: bool) -> Vec<Effect> {
    let Some(path) = model.policy.path.clone() else {
        model.say(Level::Warn, "this text has no file: start rowdeck with the file's name");
        return Vec::new();
    };
    let expect = if overwrite { None } else { model.policy.on_disk };
    let text = model.policy.text();
    model.policy.saving = Some((model.policy.revision, text.clone()));
    vec![Effect::Save { path, text, revision: model.policy.revision, expect }]
}

/// A file was read.
pub fn loaded(model: &mut Model, path: PathBuf, result: Result<(String, Option<DiskStamp>), String>) -> Vec<Effect> {
    model.policy.name =
        path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    model.policy.name = crate::text::line(&model.policy.name).into_owned();
    match result {
        Ok((text, stamp)) => {
            model.policy.path = Some(path);
            model.policy.set_text(&text);
            model.policy.saved = model.policy.revision;
            model.policy.saved_text = stamp.map(|_| model.policy.text());
            model.policy.on_disk = stamp;
            if stamp.is_none() {
                model.say(Level::Info, format!("{} is a new file; ctrl-s writes it", model.policy.name));
            }
            vec![compile_effect(model, text)]
        }
        Err(why) => {
            // Without its text the file must not be written over, so the text stays without a file.
            model.policy.path = None;
            model.say(Level::Error, why);
            Vec::new()
        }
    }
}

/// A text was found that was not saved last time.
pub fn recovered(model: &mut Model, text: String) -> Vec<Effect> {
    if text == model.policy.text() {
        return vec![Effect::DropFound];
    }
    let lines = vec![
        format!("The console ended before {} was saved.", model.policy.name),
        format!("The text kept has {} lines; the file has {}.", text.lines().count(), model.policy.area.lines().len()),
        "Cancel keeps both and asks again next time.".to_owned(),
    ];
    model.policy.recovered = Some(text);
    let answers =
        vec![("Take the kept text".to_owned(), Answer::Recover), ("Throw it away".to_owned(), Answer::DropRecovery)];
    dialog::open(model, "Unsaved text was kept", lines, answers, None);
    Vec::new()
}

/// The kept text becomes the text.
pub fn take_recovered(model: &mut Model) -> Vec<Effect> {
    let Some(text) = model.policy.recovered.take() else { return Vec::new() };
    model.policy.set_text(&text);
    vec![compile_effect(model, text), Effect::AdoptFound]
}

/// A file was written, or not.
pub fn saved(model: &mut Model, revision: u64, result: Result<DiskStamp, SaveProblem>) -> Vec<Effect> {
    let leaving = std::mem::take(&mut model.policy.quit_when_saved);
    match result {
        Ok(stamp) => {
            model.policy.saved = revision;
            if let Some((_, text)) = model.policy.saving.take().filter(|(of, _)| *of == revision) {
                model.policy.saved_text = Some(text);
            }
            model.policy.on_disk = Some(stamp);
            model.say(Level::Ok, format!("{} is saved", model.policy.name));
            if leaving && !model.policy.unsaved() {
                return super::navigate::leave(model);
            }
            if model.policy.unsaved() { Vec::new() } else { vec![Effect::DropKept] }
        }
        Err(SaveProblem::ChangedOnDisk) => {
            let lines = vec![
                format!("{} was changed by someone else since it was read here.", model.policy.name),
                "Overwriting loses that change.".to_owned(),
            ];
            dialog::open(model, "File changed on disk", lines, vec![("Overwrite".to_owned(), Answer::Overwrite)], None);
            Vec::new()
        }
        Err(SaveProblem::Other(why)) => {
            model.say(Level::Error, format!("not saved: {why}"));
            Vec::new()
        }
    }
}

/// The compiler answered. An answer about an older text than the one known is dropped.
pub fn compiled(model: &mut Model, outcome: Outcome) -> Vec<Effect> {
    if model.policy.outcome.as_ref().is_some_and(|known| known.revision > outcome.revision) {
        return Vec::new();
    }
    if let Some(emitted) = &outcome.emitted {
        model.policy.last_good = Some((outcome.revision, emitted.clone()));
    }
    model.policy.outcome = Some(outcome);
    follow_cursor(model);
    Vec::new()
}

/// What a code means, from the compiler's own pages.
pub fn explain(code: &str) -> Option<String> {
    crate::compiler::codes::explain(code).map(|info| info.page())
}
