//! The three or four keys that matter now, from the command table.

use crate::app::command::Command;
use crate::app::model::apply::Stage;
use crate::app::model::bench::State;
use crate::app::model::inspect::Pane;
use crate::app::model::verify::Mode;
use crate::app::model::{Model, Overlay, Screen};

/// The commands to show, the most useful first.
pub fn now(model: &Model) -> Vec<Command> {
    match &model.overlay {
        Some(Overlay::Dialog(_)) => return vec![Command::DialogAccept, Command::DialogNext, Command::DialogCancel],
        Some(Overlay::Palette(_)) => return vec![Command::PaletteRun, Command::PaletteDown, Command::PaletteClose],
        None => {}
    }
    if model.field().is_some() {
        return vec![Command::FieldAccept, Command::FieldCancel];
    }
    if model.screen == Screen::Policy && model.policy.replacing.is_some() {
        return vec![Command::ReplaceThis, Command::ReplaceSkip, Command::ReplaceAll, Command::ReplaceStop];
    }
    if model.screen == Screen::Policy && model.policy.completion.is_some() {
        return vec![Command::CompleteAccept, Command::CompleteDown, Command::CompleteClose];
    }
    let mut keys = match model.screen {
        Screen::Overview => vec![Command::OverviewOpen, Command::GoVerify, Command::GoActivity],
        Screen::Policy if model.policy.editing => {
            vec![Command::LeaveEditor, Command::Save, Command::PlanNow, Command::NextMistake, Command::Complete]
        }
        Screen::Policy => {
            vec![Command::Edit, Command::PlanNow, Command::NextMistake2, Command::DefinitionHere, Command::RunTests]
        }
        Screen::Sql => vec![Command::SqlSearch, Command::SqlScrollDown, Command::SqlCopy],
        Screen::Apply => match model.apply.stage {
            Stage::Running | Stage::Cancelling => vec![Command::CancelApply],
            Stage::Planned if model.apply.plan.as_ref().is_some_and(|plan| plan.can_be_applied()) => {
                vec![Command::ApplyNow, Command::MakePlan]
            }
            _ => vec![Command::MakePlan],
        },
        Screen::Verify => verify(model),
        Screen::Inspect => match model.inspect.pane {
            Pane::Empty | Pane::Types(_) => vec![Command::InspectFind, Command::InspectPerson, Command::InspectBrowse],
            Pane::Browse(_) => vec![Command::InspectOpen, Command::InspectExpand, Command::InspectCollapse],
            Pane::Object(_) => vec![
                Command::InspectOpen,
                Command::InspectWhy,
                Command::InspectMatrix,
                Command::InspectExpand,
                Command::InspectFind,
            ],
            _ => vec![
                Command::InspectOpen,
                Command::InspectWhy,
                Command::InspectFind,
                Command::InspectPerson,
                Command::InspectBrowse,
            ],
        },
        Screen::Bench => match model.bench.state {
            State::Running | State::Starting => vec![Command::BenchMove, Command::BenchStop],
            _ => vec![Command::BenchStart, Command::BenchMoreReads, Command::BenchMoreWrites],
        },
        Screen::Try if model.try_it.waiting.is_some() => vec![Command::TryCancel],
        Screen::Try => vec![Command::TryStatement, Command::TryWho, Command::TryRun, Command::TryCopy],
        Screen::Activity => vec![Command::ActivityHolder, Command::ActivityCancel, Command::ActivityEnd],
        Screen::Targets => vec![Command::TargetSwitch],
        Screen::Help => vec![Command::Back, Command::PageDown],
    };
    let editing = model.screen == Screen::Policy && model.policy.editing;
    keys.push(Command::Palette);
    if !editing {
        keys.extend([Command::Help, Command::Quit]);
    }
    keys.retain(|command| crate::app::update::refused(model, *command).is_none());
    keys
}

fn verify(model: &Model) -> Vec<Command> {
    let mut keys = match model.verify.mode {
        mode if mode.busy() => vec![Command::VerifyPause, Command::VerifyStop],
        Mode::Stopped | Mode::Failed if model.verify.cursor.is_some() => {
            vec![Command::VerifyResume, Command::VerifyRun, Command::VerifyStep]
        }
        _ => vec![Command::VerifyStep, Command::VerifyRun],
    };
    if !model.verify.wrong.is_empty() && !model.verify.mode.busy() {
        keys.insert(0, Command::VerifyRepair);
    }
    keys
}
