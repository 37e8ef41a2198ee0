//! Typing in the policy, finding and replacing, completing words, and going to where a name is declared.

use ratatui::crossterm::event::KeyCode;

use super::policy::{edit, go_to};
use crate::app::command::Command;
use crate::app::effect::Effect;
use crate::app::keymap::Key;
use crate::app::model::field::Field;
use crate::app::model::policy::{Completion, Replacing, SearchFor};
use crate::app::model::{Level, Model};
use crate::policy_text::Index;

/// Places that are kept to go back to.
const MOST_JUMPS: usize = 100;

/// Runs a command.
pub fn run(model: &mut Model, command: Command) -> Vec<Effect> {
    match command {
        Command::FindNext => find_next(model),
        Command::Replace => open(model, SearchFor::Replace),
        Command::Complete => return complete(model),
        Command::Definition | Command::DefinitionHere => definition(model),
        Command::Return | Command::ReturnHere => back(model),
        Command::ReplaceThis => return replace(model, false),
        Command::ReplaceAll => return replace(model, true),
        Command::ReplaceSkip => go_on(model),
        Command::ReplaceStop => stop(model),
        Command::CompleteUp => move_mark(model, |at, last| at.checked_sub(1).unwrap_or(last)),
        Command::CompleteDown => move_mark(model, |at, last| if at >= last { 0 } else { at + 1 }),
        Command::CompleteAccept => return accept(model),
        Command::CompleteClose => model.policy.completion = None,
        _ => {}
    }
    Vec::new()
}

/// A key typed into the text.
pub fn type_key(model: &mut Model, key: Key) -> Vec<Effect> {
    let listed = model.policy.completion.take().is_some();
    if key.code == KeyCode::Enter && !key.ctrl {
        // The next line starts where this one does.
        let (line, column) = model.policy.cursor();
        let before = model.policy.area.lines().get(line).map(String::as_str).unwrap_or_default();
        let indent: String = before.chars().take(column).take_while(|c| *c == ' ').collect();
        return edit(model, |area| {
            area.insert_newline();
            area.insert_str(indent);
            true
        });
    }
    let effects = edit(model, |area| area.input(key.to_event()));
    let goes_on = key.typed().is_some_and(|c| c.is_alphanumeric() || c == '_') || key.code == KeyCode::Backspace;
    if listed && goes_on {
        list_words(model);
    }
    effects
}

/// Opens the line in which is typed what to find or to replace.
pub fn open(model: &mut Model, what: SearchFor) {
    model.policy.search_for = what;
    let text = match what {
        SearchFor::With => String::new(),
        SearchFor::Find | SearchFor::Replace => model.policy.searched.clone(),
    };
    model.policy.search = Some(Field::with(text));
}

/// The typed line was accepted.
pub fn field_accepted(model: &mut Model) -> Vec<Effect> {
    let Some(field) = model.policy.search.take() else { return Vec::new() };
    model.policy.editing = true;
    match model.policy.search_for {
        SearchFor::Find => {
            model.policy.searched = field.text;
            find_next(model);
        }
        SearchFor::Replace => {
            model.policy.searched = field.text;
            if !model.policy.searched.is_empty() {
                open(model, SearchFor::With);
            }
        }
        SearchFor::With => begin(model, field.text),
    }
    Vec::new()
}

/// The next place that holds what is looked for, from this one on; letters may be small or capital.
fn next_place(model: &Model, from: (usize, usize)) -> Option<(usize, usize)> {
    let wanted: Vec<char> = model.policy.searched.chars().flat_map(char::to_lowercase).collect();
    if wanted.is_empty() {
        return None;
    }
    let lines = model.policy.area.lines();
    (0..=lines.len()).find_map(|step| {
        let number = (from.0 + step) % lines.len().max(1);
        // A letter whose small form is another number of letters would move the columns: it is compared as it is.
        let small = |c: char| c.to_lowercase().next().unwrap_or(c);
        let text: Vec<char> = lines.get(number)?.chars().map(small).collect();
        let first = if step == 0 { from.1 } else { 0 };
        let found = text.get(first..)?.windows(wanted.len()).position(|window| window == wanted)?;
        Some((number, first + found))
    })
}

fn find_next(model: &mut Model) {
    let (line, column) = model.policy.cursor();
    match next_place(model, (line, column + 1)) {
        Some((line, column)) => {
            remember(model);
            go_to(model, line, column);
        }
        None if model.policy.searched.is_empty() => open(model, SearchFor::Find),
        None => {
            let words = format!("{} is not in this text", model.policy.searched);
            model.say(Level::Warn, words);
        }
    }
}

fn begin(model: &mut Model, with: String) {
    let from = model.policy.cursor();
    match next_place(model, from) {
        Some(place) => {
            remember(model);
            go_to(model, place.0, place.1);
            let wrapped = place < from;
            model.policy.replacing = Some(Replacing { with, count: 0, began: from, wrapped });
        }
        None => {
            let words = format!("{} is not in this text", model.policy.searched);
            model.say(Level::Warn, words);
        }
    }
}

/// Replaces the one under the cursor, or that and all that follow.
fn replace(model: &mut Model, all: bool) -> Vec<Effect> {
    let mut effects = Vec::new();
    while let Some(replacing) = model.policy.replacing.clone() {
        let length = model.policy.searched.chars().count();
        effects = edit(model, |area| {
            area.delete_str(length);
            area.insert_str(&replacing.with);
            true
        });
        if let Some(replacing) = &mut model.policy.replacing {
            replacing.count += 1;
        }
        advance(model, 0);
        if !all {
            break;
        }
    }
    effects
}

fn go_on(model: &mut Model) {
    advance(model, 1);
}

/// Goes to the next one, or ends when the round through the text is done.
fn advance(model: &mut Model, past: usize) {
    let Some(replacing) = model.policy.replacing.clone() else { return };
    let (line, column) = model.policy.cursor();
    let next = next_place(model, (line, column + past));
    match next {
        Some(place) => {
            let wrapped = replacing.wrapped || place < (line, column);
            if wrapped && place >= replacing.began {
                return stop(model);
            }
            if let Some(replacing) = &mut model.policy.replacing {
                replacing.wrapped = wrapped;
            }
            go_to(model, place.0, place.1);
        }
        None => stop(model),
    }
}

fn stop(model: &mut Model) {
    if let Some(replacing) = model.policy.replacing.take() {
        let places = crate::text::counted(replacing.count as u64, "place");
        model.say(Level::Ok, format!("replaced in {places}"));
    }
}

/// Completes the word before the cursor: the one that fits, or the list of those that do. Where no word can be, indents.
fn complete(model: &mut Model) -> Vec<Effect> {
    let (line, column) = model.policy.cursor();
    let text = model.policy.area.lines().get(line).map(String::as_str).unwrap_or_default();
    if text.chars().take(column).all(char::is_whitespace) {
        return edit(model, |area| area.insert_str("  "));
    }
    list_words(model);
    match &model.policy.completion {
        None => model.say(Level::Info, "no name that is known here fits"),
        Some(list) if list.words.len() == 1 => return accept(model),
        Some(_) => {}
    }
    Vec::new()
}

fn list_words(model: &mut Model) {
    let lines = model.policy.area.lines();
    let (start, words) = Index::of(lines).complete(lines, model.policy.cursor(), &model.policy.tables);
    model.policy.completion = (!words.is_empty()).then_some(Completion { words, at: 0, start });
}

fn move_mark(model: &mut Model, to: impl Fn(usize, usize) -> usize) {
    if let Some(list) = &mut model.policy.completion {
        list.at = to(list.at, list.words.len().saturating_sub(1));
    }
}

/// Puts the marked word in place of what was typed of it.
fn accept(model: &mut Model) -> Vec<Effect> {
    let Some(list) = model.policy.completion.take() else { return Vec::new() };
    let Some((word, _)) = list.words.get(list.at).cloned() else { return Vec::new() };
    let typed = model.policy.cursor().1.saturating_sub(list.start);
    let rest: String = word.chars().skip(typed).collect();
    edit(model, |area| area.insert_str(rest))
}

fn remember(model: &mut Model) {
    let here = model.policy.cursor();
    model.policy.jumps.push(here);
    if model.policy.jumps.len() > MOST_JUMPS {
        model.policy.jumps.remove(0);
    }
}

fn definition(model: &mut Model) {
    let lines = model.policy.area.lines();
    let index = Index::of(lines);
    match index.definition(lines, model.policy.cursor()).map(|found| (found.line, found.column)) {
        Some((line, column)) => {
            remember(model);
            go_to(model, line, column);
        }
        None => model.say(Level::Info, "this text declares no such name"),
    }
}

fn back(model: &mut Model) {
    match model.policy.jumps.pop() {
        Some((line, column)) => go_to(model, line, column),
        None => model.say(Level::Info, "there is nowhere to go back to"),
    }
}
