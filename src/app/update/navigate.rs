//! Moving between screens and in lists, and leaving.

use super::{dialog, inspect, policy};
use crate::app::command::Command;
use crate::app::effect::Effect;
use crate::app::export::{self, Format};
use crate::app::model::field::Field;
use crate::app::model::{Answer, HelpState, Job, Level, Model, Overlay, Palette, Screen};

/// Runs a command that applies on every screen, in a list or in a line of text.
pub fn run(model: &mut Model, command: Command) -> Vec<Effect> {
    match command {
        Command::GoOverview => go(model, Screen::Overview),
        Command::GoPolicy => go(model, Screen::Policy),
        Command::GoSql => go(model, Screen::Sql),
        Command::GoApply => go(model, Screen::Apply),
        Command::GoVerify => go(model, Screen::Verify),
        Command::GoInspect => go(model, Screen::Inspect),
        Command::GoTry => go(model, Screen::Try),
        Command::GoBench => go(model, Screen::Bench),
        Command::GoActivity => go(model, Screen::Activity),
        Command::GoTargets => go(model, Screen::Targets),
        Command::NextScreen | Command::NextScreen2 => beside(model, 1),
        Command::PreviousScreen | Command::PreviousScreen2 => beside(model, Screen::ALL.len() - 1),
        Command::Help => help(model, None),
        Command::HelpHere => explain_here(model),
        Command::Palette | Command::Palette2 => model.overlay = Some(Overlay::Palette(Palette::default())),
        Command::Quit => return quit(model),
        Command::Interrupt => return interrupt(model),
        Command::AllowChanges => allow_changes(model),
        Command::Reconnect => return vec![Effect::Reconnect],
        Command::Export => export(model),
        Command::CopyTable => return copy_table(model),
        Command::NextTheme => return vec![Effect::NextTheme],
        Command::Redraw => return vec![Effect::Redraw],
        Command::Suspend => return vec![Effect::Suspend],
        Command::PlanNow => {
            go(model, Screen::Apply);
            return super::jobs::plan(model);
        }
        Command::FieldAccept => return field_accept(model),
        Command::FieldCancel => field_cancel(model),
        Command::Back => back(model),
        Command::NextPane => return next_pane(model),
        other => move_by(model, other),
    }
    Vec::new()
}

/// Shows a screen.
pub fn go(model: &mut Model, screen: Screen) {
    if model.screen == screen {
        return;
    }
    if model.screen != Screen::Help {
        model.previous = model.screen;
    }
    (model.policy.replacing, model.policy.completion) = (None, None);
    model.policy.editing = false;
    model.policy.search = None;
    model.sql.search = None;
    model.inspect.field = None;
    model.try_it.field = None;
    model.export = None;
    model.screen = screen;
}

fn beside(model: &mut Model, steps: usize) {
    let at = Screen::ALL.iter().position(|s| *s == model.screen).unwrap_or(0);
    if let Some(screen) = Screen::ALL.get((at + steps) % Screen::ALL.len()) {
        go(model, *screen);
    }
}

/// Opens the help screen, at a page about a code when one is given.
pub fn help(model: &mut Model, page: Option<(String, String)>) {
    let editing = if model.screen == Screen::Help { model.help.editing } else { model.policy.editing };
    go(model, Screen::Help);
    model.help = HelpState { page, top: 0, editing };
}

fn explain_here(model: &mut Model) {
    let found = match model.screen {
        Screen::Policy => model.policy.finding_here().map(|finding| {
            let mut words = vec![finding.message.clone()];
            words.extend(finding.help.clone());
            (finding.code.clone(), words.join("\n\n"))
        }),
        _ => None,
    };
    let page = found.map(|(code, words)| {
        let more = super::policy::explain(&code).unwrap_or_default();
        (code, format!("{words}\n\n{more}"))
    });
    help(model, page);
}

fn back(model: &mut Model) {
    match model.screen {
        Screen::Help if model.help.page.is_some() && !model.help.editing => model.help = HelpState::default(),
        Screen::Help => {
            let (previous, editing) = (model.previous, model.help.editing);
            go(model, previous);
            model.policy.editing = editing && previous == Screen::Policy;
        }
        Screen::Sql => model.sql.filter.clear(),
        Screen::Inspect => model.inspect.why = None,
        _ => model.notice = None,
    }
}

fn next_pane(model: &mut Model) -> Vec<Effect> {
    match model.screen {
        Screen::Policy => model.policy.editing = true,
        Screen::Inspect => return inspect::other_type(model),
        _ => {}
    }
    Vec::new()
}

fn allow_changes(model: &mut Model) {
    if model.read_only {
        let lines = vec![
            format!("This console is read-only on {}.", model.target),
            "Commands that change the database will be allowed until it ends.".into(),
        ];
        dialog::ask(model, "Allow changes?", lines, "Allow changes", Answer::AllowChanges);
    } else {
        model.read_only = true;
        model.say(Level::Ok, "read-only: commands that change the database are refused");
    }
}

fn interrupt(model: &mut Model) -> Vec<Effect> {
    if model.field().is_some() {
        field_cancel(model);
        return Vec::new();
    }
    quit(model)
}

/// Leaves, or asks first when something runs or is not saved.
fn quit(model: &mut Model) -> Vec<Effect> {
    let mut lines: Vec<String> = model.jobs.iter().map(|job: &Job| format!("Now {}.", job.leaving())).collect();
    if model.policy.unsaved() {
        lines.push(format!("{} is not saved.", model.policy.name));
    }
    if lines.is_empty() {
        return leave(model);
    }
    let mut answers = Vec::new();
    if model.policy.unsaved() && model.policy.path.is_some() {
        answers.push(("Save and leave".to_owned(), Answer::SaveAndQuit));
    }
    let leave = if model.policy.unsaved() { "Leave without saving" } else { "Leave" };
    answers.push((leave.to_owned(), Answer::Quit));
    dialog::open(model, "Leave rowdeck?", lines, answers, None);
    Vec::new()
}

/// Leaves now.
pub fn leave(model: &mut Model) -> Vec<Effect> {
    model.done = true;
    vec![Effect::DropKept, Effect::Quit]
}

/// Opens the line in which the file's name is typed.
fn export(model: &mut Model) {
    match export::table(model) {
        Some((name, _)) => model.export = Some(Field::with(format!("{name}.csv"))),
        None => model.say(Level::Info, "there is no table on this screen"),
    }
}

fn copy_table(model: &mut Model) -> Vec<Effect> {
    let Some((_, table)) = export::table(model) else {
        model.say(Level::Info, "there is no table on this screen");
        return Vec::new();
    };
    let rows = crate::text::counted(table.rows.len() as u64, "row");
    model.say(Level::Info, format!("{rows} sent to the terminal's clipboard"));
    vec![Effect::Copy(export::render(&table, Format::Text))]
}

fn export_accepted(model: &mut Model, name: &str) -> Vec<Effect> {
    let Some(format) = Format::of(name) else {
        model.say(Level::Warn, "end the name in .csv, .json or .txt");
        return Vec::new();
    };
    let Some((_, table)) = export::table(model) else { return Vec::new() };
    vec![Effect::Export { name: name.to_owned(), text: export::render(&table, format) }]
}

fn field_accept(model: &mut Model) -> Vec<Effect> {
    if let Some(field) = model.export.take() {
        return export_accepted(model, field.text.trim());
    }
    match model.screen {
        Screen::Policy => return super::edit::field_accepted(model),
        Screen::Sql => {
            if let Some(field) = model.sql.search.take() {
                model.sql.filter = field.text;
            }
        }
        Screen::Inspect => return inspect::field_accepted(model),
        Screen::Try => return super::try_it::field_accepted(model),
        _ => {}
    }
    Vec::new()
}

fn field_cancel(model: &mut Model) {
    if model.export.take().is_some() {
        return;
    }
    model.policy.search = None;
    if model.screen == Screen::Sql && model.sql.search.take().is_some() {
        model.sql.filter.clear();
    }
    model.inspect.field = None;
    super::try_it::field_cancelled(model);
}

/// A character was typed into a line of text: what it filters starts at its first line again.
pub fn field_changed(model: &mut Model) {
    if let Some(Overlay::Palette(palette)) = &mut model.overlay {
        palette.at = 0;
    } else if model.screen == Screen::Sql {
        (model.sql.at, model.sql.scroll) = (0, 0);
    }
}

/// Where a list's mark goes.
pub fn moved(command: Command, at: usize, len: usize, page: usize) -> usize {
    let last = len.saturating_sub(1);
    match command {
        Command::Up => at.saturating_sub(1),
        Command::Down => (at + 1).min(last),
        Command::PageUp => at.saturating_sub(page),
        Command::PageDown => (at + page).min(last),
        Command::First => 0,
        Command::Last => last,
        _ => at.min(last),
    }
}

fn move_by(model: &mut Model, command: Command) {
    let page = usize::from(model.size.1).saturating_sub(8).max(1);
    match model.screen {
        Screen::Policy => policy::move_cursor(model, command, page),
        Screen::Sql => {
            let len = model.policy.last_good.as_ref().map_or(0, |(_, emitted)| model.sql.shown(emitted).len());
            (model.sql.at, model.sql.scroll) = (moved(command, model.sql.at, len, page), 0);
        }
        Screen::Apply => model.apply.top = moved(command, model.apply.top, 500, page),
        Screen::Verify => {
            model.verify.at = moved(command, model.verify.at, model.verify.wrong.len(), page);
        }
        Screen::Inspect => model.inspect.at = moved(command, model.inspect.at, model.inspect.len(), page),
        Screen::Help => model.help.top = moved(command, model.help.top, 300, page),
        Screen::Overview => {
            let len = crate::app::model::overview::items(model).len();
            model.overview.at = moved(command, model.overview.at, len, page);
        }
        Screen::Try => {
            let len = model.try_it.result.as_ref().map_or(0, |tried| tried.rows.len());
            model.try_it.at = moved(command, model.try_it.at, len, page);
        }
        Screen::Activity => super::activity::move_by(model, command, page),
        Screen::Targets => model.targets.at = moved(command, model.targets.at, model.targets.rows.len(), page),
        Screen::Bench => {}
    }
}

/// Runs a command of the SQL screen.
pub fn sql(model: &mut Model, command: Command) -> Vec<Effect> {
    let statement =
        model.policy.last_good.as_ref().and_then(|(_, emitted)| {
            model.sql.shown(emitted).get(model.sql.at).map(|o| (o.name.clone(), o.sql.clone()))
        });
    let lines = statement.as_ref().map_or(0, |(_, sql)| sql.lines().count());
    match command {
        Command::SqlSearch => model.sql.search = Some(Field::with(model.sql.filter.clone())),
        Command::SqlScrollDown => model.sql.scroll = (model.sql.scroll + 5).min(lines.saturating_sub(1)),
        Command::SqlScrollUp => model.sql.scroll = model.sql.scroll.saturating_sub(5),
        Command::SqlCopy => {
            if let Some((name, sql)) = statement {
                model.say(Level::Info, format!("{name} was sent to the terminal's clipboard"));
                return vec![Effect::Copy(sql)];
            }
        }
        _ => {}
    }
    Vec::new()
}
