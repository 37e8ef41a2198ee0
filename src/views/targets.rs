//! The Targets screen: the servers of rowdeck.toml with their marks.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::widgets::{first_row, line, lines, panel, wrap};
use crate::app::model::Model;
use crate::app::theme::{Role, Theme};

/// Draws it.
pub fn draw(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let targets = &model.targets;
    let title = match &targets.file {
        Some(file) => format!("Targets of {file}"),
        None => "Targets".to_owned(),
    };
    let inner = panel(frame, theme, area, &title, true);
    let width = usize::from(inner.width);
    if targets.rows.is_empty() {
        let text = "no rowdeck.toml here or above names a target: [targets.NAME] with url = \"...\", and where it fits \
                    production = true and read_only = true";
        return lines(frame, inner, wrap(text, width).into_iter().map(|l| line(theme, Role::Dim, l)).collect());
    }
    let height = (usize::from(inner.height) / 2).max(1);
    let at = targets.at.min(targets.rows.len() - 1);
    let top = first_row(at, targets.rows.len(), height);
    let mut out = Vec::new();
    for (number, row) in targets.rows.iter().enumerate().skip(top).take(height) {
        let here = if row.name == model.target { "▸" } else { " " };
        let mut marks = Vec::new();
        if row.production {
            marks.push("PRODUCTION");
        }
        if row.read_only {
            marks.push("READ-ONLY");
        }
        if row.name == model.target {
            marks.push("this one");
        }
        let role = match (number == at, row.production) {
            (true, _) => Role::Selected,
            (false, true) => Role::Danger,
            (false, false) => Role::Title,
        };
        out.push(line(theme, role, crate::text::cut(&format!("{here} {:<16} {}", row.name, marks.join(" · ")), width)));
        let (role, words) = match &row.place {
            Ok(place) => (Role::Text, format!("    {place} · {}", row.tls)),
            Err(why) => (Role::Error, format!("    ✗ {why}")),
        };
        out.push(line(theme, role, crate::text::cut(&words, width)));
    }
    lines(frame, inner, out);
}
