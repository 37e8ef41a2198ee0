//! The list of commands.

use super::{refused, run as run_command};
use crate::app::command::{Command, PLACES, Place, Row, TABLE};
use crate::app::effect::Effect;
use crate::app::model::{Model, Overlay, Screen};

/// Commands that may be run from the list and whose words hold every word of `filter`; names that start with the
/// filter come first, then what belongs to the screen shown, then the table's order.
pub fn matches(model: &Model, filter: &str) -> Vec<Command> {
    let words: Vec<String> = filter.to_lowercase().split_whitespace().map(str::to_owned).collect();
    let here = model.screen.place();
    let mut found: Vec<(u8, &Row)> = TABLE
        .iter()
        .filter(|row| offered(row) && PLACES.contains(&row.place) && refused(model, row.id).is_none())
        .filter_map(|row| {
            let name = row.name.to_lowercase();
            let all = format!("{name} {} {}", row.words.to_lowercase(), row.hint.to_lowercase());
            if !words.iter().all(|word| all.contains(word.as_str())) {
                return None;
            }
            let whole = words.join(" ");
            let rank = if whole.is_empty() {
                u8::from(row.place != here)
            } else if name.strip_prefix("go.").is_some_and(|screen| screen.starts_with(&whole)) {
                0
            } else if row.place == here {
                1
            } else {
                2
            };
            Some((rank, row))
        })
        .collect();
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().map(|(_, row)| row.id).collect()
}

/// Cursor keys and the second name of a command are no use in the list.
fn offered(row: &Row) -> bool {
    let second = matches!(
        row.id,
        Command::Palette
            | Command::Palette2
            | Command::NextScreen2
            | Command::PreviousScreen2
            | Command::NextMistake2
            | Command::SaveScreen
            | Command::FormatHere
            | Command::Interrupt
            | Command::PageUpEditor
            | Command::PageDownEditor
    );
    !second && !matches!(row.place, Place::List | Place::Field | Place::Dialog | Place::Palette)
}

/// Runs a command of the list itself.
pub fn run(model: &mut Model, command: Command) -> Vec<Effect> {
    let Some(Overlay::Palette(palette)) = &model.overlay else { return Vec::new() };
    let found = matches(model, &palette.filter.text);
    let (at, last) = (palette.at, found.len().saturating_sub(1));
    match command {
        Command::PaletteUp => set_at(model, at.saturating_sub(1)),
        Command::PaletteDown => set_at(model, (at + 1).min(last)),
        Command::PaletteClose => model.overlay = None,
        Command::PaletteRun => {
            model.overlay = None;
            let Some(chosen) = found.get(at.min(last)).copied() else { return Vec::new() };
            go_where_it_applies(model, chosen);
            return run_command(model, chosen);
        }
        _ => {}
    }
    Vec::new()
}

fn set_at(model: &mut Model, at: usize) {
    if let Some(Overlay::Palette(palette)) = &mut model.overlay {
        palette.at = at;
    }
}

/// A command of another screen is run there, so that its effect is seen.
fn go_where_it_applies(model: &mut Model, command: Command) {
    let screen = match command.row().place {
        Place::Overview => Screen::Overview,
        Place::Policy | Place::Editor => Screen::Policy,
        Place::Sql => Screen::Sql,
        Place::Apply => Screen::Apply,
        Place::Verify => Screen::Verify,
        Place::Inspect => Screen::Inspect,
        Place::Try => Screen::Try,
        Place::Bench => Screen::Bench,
        Place::Activity => Screen::Activity,
        Place::Targets => Screen::Targets,
        _ => return,
    };
    super::navigate::go(model, screen);
}
