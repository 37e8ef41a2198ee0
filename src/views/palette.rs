//! The list of commands, made from the command table.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::widgets::{field, first_row, line, lines, popup};
use crate::app::model::{Model, Palette};
use crate::app::theme::{Role, Theme};

/// Draws it over the screen.
pub fn draw(model: &Model, palette: &Palette, theme: &Theme, frame: &mut Frame, area: Rect) {
    let inner = popup(frame, theme, area, (72, area.height.min(20)), "Commands");
    if inner.height == 0 {
        return;
    }
    let found = model.palette_matches(&palette.filter.text);
    let at = palette.at.min(found.len().saturating_sub(1));
    let list = Rect { y: inner.y + 1, height: inner.height - 1, ..inner };
    let height = usize::from(list.height);
    let width = usize::from(list.width);
    let top = first_row(at, found.len(), height);
    let mut out: Vec<Line> = found
        .iter()
        .enumerate()
        .skip(top)
        .take(height)
        .map(|(number, command)| {
            let row = command.row();
            let key = model.keymap.key(*command);
            let room = width.saturating_sub(10);
            let words = crate::text::cut(row.words, room);
            let pad = room.saturating_sub(unicode_width::UnicodeWidthStr::width(words.as_str()));
            let role = if number == at { Role::Selected } else { Role::Text };
            line(theme, role, format!("{words}{} {key:>9}", " ".repeat(pad)))
        })
        .collect();
    if out.is_empty() {
        out.push(line(theme, Role::Dim, "no command has these words"));
    }
    lines(frame, list, out);
    field(frame, theme, inner, "> ", &palette.filter);
}
