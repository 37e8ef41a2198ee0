//! A question over the screen. The harmless answer is first and marked.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::widgets::{field, line, lines, popup, styled, wrap};
use crate::app::model::Dialog;
use crate::app::theme::{Role, Theme};

/// Draws it.
pub fn draw(dialog: &Dialog, theme: &Theme, frame: &mut Frame, area: Rect) {
    let width = area.width.min(70);
    let inside = usize::from(width.saturating_sub(4)).max(1);
    let text: Vec<String> = dialog.lines.iter().flat_map(|l| wrap(&crate::text::line(l), inside)).collect();
    let typed_rows = if dialog.typed.is_some() { 2 } else { 0 };
    let wanted = text.len() + 4 + typed_rows;
    let height = u16::try_from(wanted).unwrap_or(u16::MAX).min(area.height);
    let inner = popup(frame, theme, area, (width, height), &dialog.title);
    // The answers always stay in sight: it is the text that is cut.
    let room = usize::from(inner.height).saturating_sub(2 + typed_rows);
    let mut out: Vec<Line> = text.into_iter().take(room).map(|l| line(theme, Role::Text, format!(" {l}"))).collect();
    out.push(Line::default());
    if let Some((wanted, _)) = &dialog.typed {
        out.push(line(theme, Role::Danger, format!(" PRODUCTION: type {wanted} to confirm")));
        out.push(Line::default());
    }
    let typed_at = u16::try_from(out.len().saturating_sub(1)).unwrap_or(0);
    let mut answers: Vec<Span> = vec![styled(theme, Role::Text, " ")];
    for (at, (words, _)) in dialog.answers.iter().enumerate() {
        let (role, shown) = match at == dialog.at {
            true => (Role::Selected, format!("[ {words} ]")),
            false => (Role::Text, format!("  {words}  ")),
        };
        answers.push(styled(theme, role, shown));
        answers.push(styled(theme, Role::Text, " "));
    }
    out.push(Line::from(answers));
    lines(frame, inner, out);
    if let Some((_, typed)) = &dialog.typed {
        let place = Rect { y: inner.y.saturating_add(typed_at), height: 1, ..inner };
        if place.y < inner.bottom() {
            field(frame, theme, place, " > ", typed);
        }
    }
}
