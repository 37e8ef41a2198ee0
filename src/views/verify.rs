//! The Verify screen: the map of batches, and what is wrong.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::widgets::{duration, first_row, line, lines, panel, styled};
use crate::app::model::Model;
use crate::app::model::verify::{Mode, Square};
use crate::app::theme::{Role, Theme};
use crate::db::progress::Wrong;

/// Draws it.
pub fn draw(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let verify = &model.verify;
    let wrong_rows = if verify.wrong.is_empty() { 3 } else { area.height / 2 };
    let map = Rect { height: area.height.saturating_sub(wrong_rows), ..area };
    let title = format!("Verify · {} · batches of {}", verify.mode.word(), crate::text::count(u64::from(verify.size)));
    let inner = panel(frame, theme, map, &title, true);
    let width = usize::from(inner.width);
    let mut out = vec![numbers(model, theme)];
    if verify.mode == Mode::Idle {
        let words = if model.link.is_up() {
            "nothing was checked yet: n checks one batch, r runs; each batch is a short transaction of its own"
        } else {
            model.link.why_no_data()
        };
        out.extend(super::widgets::wrap(words, width).into_iter().map(|l| line(theme, Role::Dim, l)));
    }
    if let Some(why) = &verify.failure {
        let words = format!("✗ this batch failed, the cursor is kept: {why}");
        out.extend(super::widgets::wrap(&words, width).into_iter().map(|l| line(theme, Role::Error, l)));
    }
    if let Some(cursor) = verify.cursor.as_ref().filter(|_| !verify.mode.busy()) {
        out.push(line(
            theme,
            Role::Dim,
            format!("goes on from {}", crate::text::cut(cursor, width.saturating_sub(14))),
        ));
    }
    let room = usize::from(inner.height).saturating_sub(out.len());
    out.extend(squares(model, theme, width, room));
    lines(frame, inner, out);
    let below = Rect { y: map.bottom(), height: area.height.saturating_sub(map.height), ..area };
    draw_wrong(model, theme, frame, below);
}

fn numbers(model: &Model, theme: &Theme) -> Line<'static> {
    let verify = &model.verify;
    let count = crate::text::count;
    let wrong = verify.wrong_total();
    let of = verify.total.map_or(String::new(), |total| format!(" of about {}", count(total)));
    let mut spans = vec![
        styled(theme, Role::Text, format!("{}{of} checked · ", count(verify.checked))),
        match (wrong, verify.mode) {
            (0, Mode::Done) => styled(theme, Role::Ok, "✓ true: nothing is wrong"),
            (0, _) => styled(theme, Role::Text, "0 wrong"),
            (n, _) => styled(theme, Role::Error, format!("✗ {} wrong", count(n))),
        },
    ];
    if let Some(rate) = verify.rate() {
        spans.push(styled(theme, Role::Text, format!(" · {}/s · {}", count(rate as u64), duration(verify.seconds))));
        if let (Some(total), true) = (verify.total, verify.mode.busy()) {
            let left = total.saturating_sub(verify.checked) as f64 / rate;
            spans.push(styled(theme, Role::Text, format!(" · {} left", duration(left))));
        }
    }
    Line::from(spans)
}

/// A square for each batch; where there are more than fit, one square stands for several and is wrong when any is.
fn squares(model: &Model, theme: &Theme, width: usize, height: usize) -> Vec<Line<'static>> {
    let verify = &model.verify;
    let fit = width.max(1) * height;
    if fit == 0 || (verify.map.is_empty() && !verify.mode.busy()) {
        return Vec::new();
    }
    let known = verify.total.map_or(0, |total| total.div_ceil(u64::from(verify.size.max(1))));
    let ahead = usize::try_from(known).unwrap_or(usize::MAX).max(verify.map.len()).min(1_000_000);
    let per = ahead.div_ceil(fit).max(1);
    let mut cells: Vec<(&str, Role)> = verify
        .map
        .chunks(per)
        .map(|chunk| {
            let wrong = chunk.iter().any(|square| matches!(square, Square::Wrong(_)));
            if wrong { ("✗", Role::Error) } else { ("■", Role::Ok) }
        })
        .collect();
    if verify.mode.busy() {
        cells.push(("▶", Role::Focus));
    }
    while cells.len() < ahead.div_ceil(per) && verify.mode != Mode::Done {
        cells.push(("□", Role::Dim));
    }
    cells.truncate(fit);
    cells
        .chunks(width.max(1))
        .map(|row| Line::from(row.iter().map(|(mark, role)| styled(theme, *role, *mark)).collect::<Vec<_>>()))
        .collect()
}

fn draw_wrong(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let verify = &model.verify;
    let not_kept =
        if verify.not_kept > 0 { format!(" (the first {} kept)", verify.wrong.len()) } else { String::new() };
    let inner = panel(frame, theme, area, &format!("Wrong: {}{not_kept}", verify.wrong_total()), false);
    if verify.wrong.is_empty() {
        let words = if verify.checked == 0 { "nothing was checked yet" } else { "nothing so far" };
        return lines(frame, inner, vec![line(theme, Role::Dim, words)]);
    }
    let rows_each = 3;
    let fit = (usize::from(inner.height) / rows_each).max(1);
    let top = first_row(verify.at, verify.wrong.len(), fit);
    let mut out = Vec::new();
    for (at, wrong) in verify.wrong.iter().enumerate().skip(top).take(fit) {
        out.extend(wrong_lines(theme, wrong, at == verify.at, usize::from(inner.width)));
    }
    lines(frame, inner, out);
}

fn wrong_lines(theme: &Theme, wrong: &Wrong, marked: bool, width: usize) -> Vec<Line<'static>> {
    let mark = if marked { "▸" } else { " " };
    let role = if marked { Role::Focus } else { Role::Text };
    let ids = |ids: &Option<Vec<String>>, none: &str| match ids {
        None => none.to_owned(),
        Some(ids) => format!("[{}]", ids.join(", ")),
    };
    let cut = |text: String| crate::text::cut(&text, width);
    vec![
        line(theme, role, cut(format!("{mark} {} {} in {}: {}", wrong.ty, wrong.id, wrong.graph, wrong.what))),
        line(theme, Role::Error, cut(format!("    stored  {}", ids(&wrong.stored, "not in the index")))),
        line(theme, Role::Ok, cut(format!("    should  {}", ids(&wrong.expected, "not be in the index")))),
    ]
}
