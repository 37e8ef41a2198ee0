//! The Help screen: the keys of the screen one came from, then all others; or what a code means.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::widgets::{line, lines, panel, styled, wrap};
use crate::app::command::{PLACES, Place, Row, TABLE};
use crate::app::model::Model;
use crate::app::theme::{Role, Theme};

/// Draws it.
pub fn draw(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let title = match &model.help.page {
        Some((code, _)) => format!("What {code} means"),
        None => format!("Keys · {} first", model.previous.title()),
    };
    let inner = panel(frame, theme, area, &title, true);
    let width = usize::from(inner.width);
    let all: Vec<Line> = match &model.help.page {
        Some((_, text)) => {
            let safe = crate::text::block(text).into_owned();
            wrap(&safe, width).into_iter().map(|l| line(theme, Role::Text, l)).collect()
        }
        None => keys(model, theme, width),
    };
    let height = usize::from(inner.height);
    let top = model.help.top.min(all.len().saturating_sub(height));
    lines(frame, inner, all.into_iter().skip(top).take(height).collect());
}

fn keys(model: &Model, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let first = model.previous.place();
    let mut places: Vec<Place> = vec![first];
    if first == Place::Policy {
        places.push(Place::Editor);
    }
    places.extend(
        PLACES.iter().filter(|place| **place != first && !(first == Place::Policy && **place == Place::Editor)),
    );
    let mut out = Vec::new();
    for place in places {
        let rows: Vec<&Row> = TABLE.iter().filter(|row| row.place == place).collect();
        out.push(line(theme, Role::Title, place.title()));
        out.extend(rows.into_iter().map(|row| key_line(model, theme, row, width)));
        out.push(Line::default());
    }
    out
}

fn key_line(model: &Model, theme: &Theme, row: &Row, width: usize) -> Line<'static> {
    let keys = model.keymap.keys(row.id).join(" ");
    let refused = crate::app::update::refused(model, row.id).is_some();
    let mut words = row.words.to_owned();
    if row.dangerous && !words.contains("asks first") {
        words.push_str(" (asks first)");
    }
    if refused {
        words.push_str(" (refused: read-only)");
    }
    let room = width.saturating_sub(18);
    let key: Span = styled(theme, Role::Key, format!("  {keys:<15} "));
    Line::from(vec![key, styled(theme, Role::Text, crate::text::cut(&words, room))])
}
