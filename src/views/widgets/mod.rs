//! Pieces that several screens draw.

pub mod chart;
pub mod highlight;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};

use crate::app::model::field::Field;
use crate::app::theme::{Role, Theme};
pub use crate::text::wrap;

/// Draws lines in an area, cut at its edges, whatever the area is.
pub fn lines(frame: &mut Frame, area: Rect, lines: Vec<Line>) {
    let area = area.intersection(frame.area());
    if area.width == 0 || area.height == 0 {
        return;
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// A titled frame; returns what is inside it.
pub fn panel(frame: &mut Frame, theme: &Theme, area: Rect, title: &str, focused: bool) -> Rect {
    let area = area.intersection(frame.area());
    let role = if focused { Role::Focus } else { Role::Border };
    let cells = usize::from(area.width).saturating_sub(4);
    let title = if title.is_empty() { String::new() } else { format!(" {} ", crate::text::cut(title, cells)) };
    let block = Block::default()
        .borders(Borders::ALL)
        .border_style(theme.style(role))
        .title(Span::styled(title, theme.style(Role::Title)));
    let inner = block.inner(area);
    if area.width > 0 && area.height > 0 {
        frame.render_widget(block, area);
    }
    inner
}

/// A frame over the middle of `area`, emptied first; returns what is inside it.
pub fn popup(frame: &mut Frame, theme: &Theme, area: Rect, size: (u16, u16), title: &str) -> Rect {
    let width = size.0.min(area.width);
    let height = size.1.min(area.height);
    let place = Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
        .intersection(frame.area());
    frame.render_widget(Clear, place);
    frame.buffer_mut().set_style(place, theme.style(Role::Text));
    panel(frame, theme, place, title, true)
}

/// First line of a list to show so that line `at` is in the middle of `height` rows, without blank rows at the end.
pub fn first_row(at: usize, len: usize, height: usize) -> usize {
    at.saturating_sub(height / 2).min(len.saturating_sub(height))
}

/// One line of text being typed, with its label, the cursor put behind it.
pub fn field(frame: &mut Frame, theme: &Theme, area: Rect, label: &str, field: &Field) {
    let area = area.intersection(frame.area());
    if area.height == 0 || area.width == 0 {
        return;
    }
    let before: String = field.text.chars().take(field.cursor).collect();
    let label_width = unicode_width::UnicodeWidthStr::width(label);
    let column = label_width + unicode_width::UnicodeWidthStr::width(crate::text::line(&before).as_ref());
    // A text longer than the line is shown from where its cursor is in sight.
    let room = usize::from(area.width).saturating_sub(1);
    let skipped = column.saturating_sub(room);
    let text = format!("{label}{}", crate::text::line(&field.text));
    let shown: String = text.chars().skip(skipped).collect();
    lines(frame, Rect { height: 1, ..area }, vec![Line::styled(shown, theme.style(Role::Text))]);
    let x =
        area.x.saturating_add(u16::try_from(column - skipped).unwrap_or(u16::MAX)).min(area.right().saturating_sub(1));
    frame.set_cursor_position((x, area.y));
}

/// A bar of `width` cells, `part` of `whole` full.
pub fn bar(part: f64, whole: f64, width: usize) -> String {
    let share = if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 };
    let full = ((share * width as f64).round() as usize).min(width);
    format!("{}{}", "█".repeat(full), "░".repeat(width - full))
}

/// A text in a role's style.
pub fn styled(theme: &Theme, role: Role, text: impl Into<String>) -> Span<'static> {
    Span::styled(text.into(), theme.style(role))
}

/// A line of one style.
pub fn line(theme: &Theme, role: Role, text: impl Into<String>) -> Line<'static> {
    Line::styled(text.into(), theme.style(role))
}

/// A style on its own, for cells drawn one by one.
pub fn style(theme: &Theme, role: Role) -> Style {
    theme.style(role)
}

/// `812 B`, `4.1 MB`: a size with its unit, in thousands.
pub fn bytes(size: u64) -> String {
    let mut value = size as f64;
    let mut unit = "B";
    for next in ["kB", "MB", "GB", "TB"] {
        if value < 1000.0 {
            break;
        }
        (value, unit) = (value / 1000.0, next);
    }
    if unit == "B" { format!("{size} B") } else { format!("{value:.1} {unit}") }
}

/// `0.4 s`, `12 s`, `3:07`, `2 h 05`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        _ if seconds < 9.95 => format!("{:.1} s", seconds.max(0.0)),
        0..=59 => format!("{whole} s"),
        60..=3_599 => format!("{}:{:02}", whole / 60, whole % 60),
        _ => format!("{} h {:02}", whole / 3_600, whole % 3_600 / 60),
    }
}
