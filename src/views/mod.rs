//! What the console draws: one file per screen, each drawn purely from the model, and the frame around them.

pub mod activity;
pub mod apply;
pub mod bench;
pub mod dialog;
pub mod frame;
pub mod help;
pub mod hints;
pub mod inspect;
pub mod overview;
pub mod palette;
pub mod policy;
pub mod sql;
pub mod targets;
pub mod try_it;
pub mod verify;
pub mod widgets;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use crate::app::model::{Model, Overlay, Screen};
use crate::app::theme::{Role, Theme};

/// The smallest terminal anything but a note is drawn on.
pub const MINIMUM: (u16, u16) = (44, 12);

/// Draws everything. The size is the frame's own, so a resize between update and draw cannot go out of bounds.
pub fn draw(model: &Model, theme: &Theme, frame: &mut Frame) {
    let area = frame.area();
    frame.buffer_mut().set_style(area, theme.style(Role::Text));
    if area.width < MINIMUM.0 || area.height < MINIMUM.1 {
        too_small(theme, frame, area);
    } else {
        let body = frame::draw(model, theme, frame, area);
        match model.screen {
            Screen::Overview => overview::draw(model, theme, frame, body),
            Screen::Policy => policy::draw(model, theme, frame, body),
            Screen::Sql => sql::draw(model, theme, frame, body),
            Screen::Apply => apply::draw(model, theme, frame, body),
            Screen::Verify => verify::draw(model, theme, frame, body),
            Screen::Inspect => inspect::draw(model, theme, frame, body),
            Screen::Try => try_it::draw(model, theme, frame, body),
            Screen::Bench => bench::draw(model, theme, frame, body),
            Screen::Activity => activity::draw(model, theme, frame, body),
            Screen::Targets => targets::draw(model, theme, frame, body),
            Screen::Help => help::draw(model, theme, frame, body),
        }
        match &model.overlay {
            Some(Overlay::Dialog(dialog)) => dialog::draw(dialog, theme, frame, body),
            Some(Overlay::Palette(list)) => palette::draw(model, list, theme, frame, body),
            None => {}
        }
    }
    if theme.ascii {
        to_ascii(frame);
    }
}

/// Below the minimum one sentence is drawn, cut where the terminal ends; keys still work.
fn too_small(theme: &Theme, frame: &mut Frame, area: Rect) {
    let words = format!("too small: {}x{}, needs {}x{}", area.width, area.height, MINIMUM.0, MINIMUM.1);
    let width = usize::from(area.width).max(1);
    let chars: Vec<char> = words.chars().collect();
    let lines: Vec<Line> = chars
        .chunks(width)
        .take(usize::from(area.height))
        .map(|chunk| Line::styled(chunk.iter().collect::<String>().trim_start().to_owned(), theme.style(Role::Warn)))
        .collect();
    frame.render_widget(ratatui::widgets::Paragraph::new(lines), area);
}

/// Outside UTF-8 every frame and mark becomes ASCII, in this one place.
fn to_ascii(frame: &mut Frame) {
    let area = frame.area();
    let buffer = frame.buffer_mut();
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            let Some(cell) = buffer.cell_mut((x, y)) else { continue };
            if cell.symbol().is_ascii() {
                continue;
            }
            let plain = match cell.symbol() {
                "─" | "━" | "·" | "▁" | "⎽" => "-",
                "│" | "┃" => "|",
                "█" | "■" | "▇" | "▆" | "▅" => "#",
                "░" | "□" | "▂" | "▃" | "▄" => ".",
                "▶" | "▸" | "›" => ">",
                "▾" => "v",
                "✗" => "x",
                "✓" => "+",
                "●" => "*",
                "…" => "~",
                "┌" | "┐" | "└" | "┘" | "├" | "┤" | "┬" | "┴" | "┼" => "+",
                _ => "?",
            };
            cell.set_symbol(plain);
        }
    }
}

/// A word for work that runs, beside the screens' names.
fn job_word(job: crate::app::model::Job) -> &'static str {
    use crate::app::model::Job;
    match job {
        Job::Plan => "planning",
        Job::Apply => "applying",
        Job::Verify => "verifying",
        Job::Repair => "repairing",
        Job::Bench => "load runs",
        Job::Tests => "testing",
    }
}
