//! Questions: Cancel is marked at the start, and on production a dangerous answer wants the database's name typed.

use super::{activity, bench, jobs, policy, try_it};
use crate::app::command::Command;
use crate::app::effect::Effect;
use crate::app::model::activity::End;
use crate::app::model::field::Field;
use crate::app::model::{Answer, Dialog, Level, Model, Overlay};

/// Opens a question about something dangerous: `yes` does it, Cancel is marked.
pub fn ask(model: &mut Model, title: &str, lines: Vec<String>, yes: &str, answer: Answer) {
    let typed = match model.link.facts() {
        Some(facts) if model.production => Some((facts.database.clone(), Field::default())),
        _ => None,
    };
    open(model, title, lines, vec![(yes.to_owned(), answer)], typed);
}

/// Opens any question; Cancel is put first.
pub fn open(
    model: &mut Model,
    title: &str,
    lines: Vec<String>,
    others: Vec<(String, Answer)>,
    typed: Option<(String, Field)>,
) {
    let mut answers = vec![("Cancel".to_owned(), Answer::Cancel)];
    answers.extend(others);
    model.overlay = Some(Overlay::Dialog(Dialog { title: title.to_owned(), lines, answers, at: 0, typed }));
}

/// Runs a command of a question.
pub fn run(model: &mut Model, command: Command) -> Vec<Effect> {
    let Some(Overlay::Dialog(dialog)) = &mut model.overlay else { return Vec::new() };
    let count = dialog.answers.len().max(1);
    match command {
        Command::DialogNext => dialog.at = (dialog.at + 1) % count,
        Command::DialogPrevious => dialog.at = (dialog.at + count - 1) % count,
        Command::DialogCancel => model.overlay = None,
        Command::DialogAccept => return accept(model),
        _ => {}
    }
    Vec::new()
}

fn accept(model: &mut Model) -> Vec<Effect> {
    let Some(Overlay::Dialog(dialog)) = &model.overlay else { return Vec::new() };
    let answer = dialog.answers.get(dialog.at).map_or(Answer::Cancel, |(_, answer)| answer.clone());
    if answer != Answer::Cancel
        && let Some((wanted, field)) = &dialog.typed
        && field.text != *wanted
    {
        let wanted = wanted.clone();
        model.say(Level::Warn, format!("production: type the database's name, {wanted}, first"));
        return Vec::new();
    }
    model.overlay = None;
    match answer {
        Answer::Cancel => Vec::new(),
        Answer::Apply => jobs::apply(model),
        Answer::Repair => jobs::repair(model),
        Answer::StartBench => bench::start(model),
        Answer::AllowChanges => {
            model.read_only = false;
            model.say(Level::Warn, "changes to the database are allowed in this session");
            Vec::new()
        }
        Answer::Quit => super::navigate::leave(model),
        Answer::SaveAndQuit => {
            model.policy.quit_when_saved = true;
            policy::save(model, false)
        }
        Answer::Recover => policy::take_recovered(model),
        Answer::DropRecovery => {
            model.policy.recovered = None;
            vec![Effect::DropFound]
        }
        Answer::Overwrite => policy::save(model, true),
        Answer::Try => try_it::start(model),
        Answer::CancelSession => activity::end(model, End::Cancel),
        Answer::EndSession => activity::end(model, End::Terminate),
    }
}
