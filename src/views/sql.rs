//! The SQL screen: what would run, object by object.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::widgets::{field, first_row, line, lines, panel, styled};
use crate::app::model::Model;
use crate::app::theme::{Role, Theme};
use crate::compiler::objects::Object;

/// Draws it.
pub fn draw(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let Some((revision, emitted)) = &model.policy.last_good else {
        let inner = panel(frame, theme, area, "SQL", true);
        let why = match &model.policy.outcome {
            None => "nothing was compiled yet: open a policy (rowdeck FILE.authz)",
            Some(_) => "the policy has mistakes, so it becomes nothing yet; screen 2 shows them",
        };
        return lines(frame, inner, vec![line(theme, Role::Dim, why)]);
    };
    let shown = model.sql.shown(emitted);
    let search = model.sql.search.as_ref();
    let body = Rect { height: area.height.saturating_sub(u16::from(search.is_some())), ..area };
    let stale = if *revision == model.policy.revision { "" } else { ", of an older text" };
    let title = match (&search, model.sql.filter.as_str()) {
        (None, "") => format!("{} objects{stale}", emitted.objects.len()),
        (None, filter) => format!("{} of {} with {filter:?}{stale}", shown.len(), emitted.objects.len()),
        (Some(_), _) => format!("{} of {}{stale}", shown.len(), emitted.objects.len()),
    };
    let side_by_side = area.width >= 76;
    let list_width = if side_by_side { (area.width * 2 / 5).min(46) } else { area.width };
    let list_height = if side_by_side { body.height } else { body.height / 2 };
    let list = Rect { width: list_width, height: list_height, ..body };
    draw_list(model, theme, frame, list, &title, &shown);
    let text = if side_by_side {
        Rect { x: body.x + list_width, width: body.width - list_width, ..body }
    } else {
        Rect { y: body.y + list_height, height: body.height - list_height, ..body }
    };
    draw_object(model, theme, frame, text, shown.get(model.sql.at.min(shown.len().saturating_sub(1))).copied());
    if let Some(search) = search {
        let place = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
        field(frame, theme, place, " search: ", search);
    }
}

fn draw_list(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect, title: &str, shown: &[&Object]) {
    let inner = panel(frame, theme, area, title, true);
    let height = usize::from(inner.height);
    let at = model.sql.at.min(shown.len().saturating_sub(1));
    let top = first_row(at, shown.len(), height);
    let out: Vec<Line> = shown
        .iter()
        .enumerate()
        .skip(top)
        .take(height)
        .map(|(number, object)| {
            let lock = if object.locks.is_empty() { " " } else { "!" };
            let words = format!("{lock} {:<8} {}", object.kind.word(), object.name);
            let words = crate::text::cut(&words, usize::from(inner.width));
            let role = if number == at { Role::Selected } else { Role::Text };
            line(theme, role, format!("{words:<width$}", width = usize::from(inner.width)))
        })
        .collect();
    let out = if out.is_empty() { vec![line(theme, Role::Dim, "nothing holds that text")] } else { out };
    lines(frame, inner, out);
}

fn draw_object(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect, object: Option<&Object>) {
    let Some(object) = object else {
        panel(frame, theme, area, "", false);
        return;
    };
    let inner = panel(frame, theme, area, &format!("{} {}", object.kind.word(), object.name), false);
    let mut out = Vec::new();
    match object.locks.as_slice() {
        [] => out.push(line(theme, Role::Dim, "locks no table that is there before")),
        locks => {
            for lock in locks {
                let words = format!("! locks {}: {}", lock.table.plain(), lock.mode.sql());
                out.push(Line::from(styled(theme, Role::Warn, words)));
            }
        }
    }
    out.push(Line::default());
    let block = crate::text::block(&object.sql).into_owned();
    out.extend(block.lines().skip(model.sql.scroll).map(|l| line(theme, Role::Sql, l.to_owned())));
    lines(frame, inner, out);
}
