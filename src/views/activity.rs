//! The Activity screen: sessions, who waits for whom, and what the marked one runs.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::widgets::{duration, first_row, line, lines, panel, wrap};
use crate::app::model::Model;
use crate::app::model::activity::SessionRow;
use crate::app::theme::{Role, Theme};

/// Draws it.
pub fn draw(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let below = (area.height * 2 / 5).min(10);
    let list = Rect { height: area.height - below, ..area };
    draw_list(model, theme, frame, list);
    draw_one(model, theme, frame, Rect { y: list.bottom(), height: below, ..area });
}

fn draw_list(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let activity = &model.activity;
    let rows = activity.rows();
    let waiting = rows.iter().filter(|row| !row.blocked_by.is_empty()).count();
    let cut = activity.read.as_ref().is_some_and(|read| read.cut);
    let more = if cut { "+, the others are not shown" } else { "" };
    let waits = if waiting == 1 { "waits" } else { "wait" };
    let title = format!("Sessions: {}{more} · {waiting} {waits}", rows.len());
    let inner = panel(frame, theme, area, &title, true);
    let width = usize::from(inner.width);
    let said = |role, text: &str| wrap(text, width).into_iter().map(|l| line(theme, role, l)).collect::<Vec<_>>();
    if let Some(why) = &activity.failure {
        return lines(frame, inner, said(Role::Error, &format!("✗ not read: {why}")));
    }
    if rows.is_empty() {
        let text = match (&activity.read, model.link.is_up()) {
            (Some(_), _) => "no other session is open in this database",
            (None, true) => "reading ...",
            (None, false) => model.link.why_no_data(),
        };
        return lines(frame, inner, said(Role::Dim, text));
    }
    let wide = width >= 100;
    let state_cells = if wide { 19 } else { 10 };
    let head = format!("  {:>7} {:<12} {:<state_cells$} {:>8}  {}", "pid", "role", "state", "for", "waits or runs");
    let mut out = vec![line(theme, Role::Title, crate::text::cut(&head, width))];
    let height = usize::from(inner.height).saturating_sub(1);
    let at = activity.at();
    let top = first_row(at, rows.len(), height);
    for (number, row) in rows.iter().enumerate().skip(top).take(height) {
        let blocks = activity.waiting_for(row.pid);
        let (mark, role) = match (row.blocked_by.is_empty(), blocks) {
            (false, _) => ("!", Role::Warn),
            (true, 0) => (" ", Role::Text),
            (true, _) => ("✗", Role::Error),
        };
        let tail = match (row.blocked_by.is_empty(), blocks) {
            (false, _) => waits_words(row),
            (true, 0) => row.query.split_whitespace().collect::<Vec<_>>().join(" "),
            (true, n) => format!("blocks {n}: {}", row.query.split_whitespace().collect::<Vec<_>>().join(" ")),
        };
        let text = format!(
            "{mark} {:>7} {} {} {:>8}  {tail}",
            row.pid,
            cells(&row.role, 12),
            cells(&state(row, wide), state_cells),
            row.since.map_or_else(|| "?".to_owned(), duration),
        );
        let text = crate::text::cut(&text, width);
        out.push(line(theme, if number == at { Role::Selected } else { role }, text));
    }
    lines(frame, inner, out);
}

/// Cut or filled to so many cells.
fn cells(text: &str, cells: usize) -> String {
    let cut = crate::text::cut(text, cells);
    let pad = cells.saturating_sub(unicode_width::UnicodeWidthStr::width(cut.as_str()));
    format!("{cut}{}", " ".repeat(pad))
}

fn state(row: &SessionRow, wide: bool) -> String {
    match row.state.as_str() {
        "" => "hidden".to_owned(),
        "idle in transaction" if !wide => "idle in tx".to_owned(),
        "idle in transaction (aborted)" => "failed tx".to_owned(),
        other => other.to_owned(),
    }
}

fn waits_words(row: &SessionRow) -> String {
    let pids: Vec<String> = row.blocked_by.iter().map(ToString::to_string).collect();
    format!("waits for {}, held by {}", row.waits_for.as_deref().unwrap_or("a lock"), pids.join(", "))
}

fn draw_one(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let Some(row) = model.activity.here() else {
        panel(frame, theme, area, "", false);
        return;
    };
    let inner = panel(frame, theme, area, &format!("pid {}", row.pid), false);
    let width = usize::from(inner.width);
    let mut out: Vec<Line> = Vec::new();
    let mut about = vec![format!("{} from {}", row.role, row.client)];
    if !row.application.is_empty() {
        about.push(row.application.clone());
    }
    if let Some(seconds) = row.transaction {
        about.push(format!("transaction open for {}", duration(seconds)));
    }
    let said = |role, text: &str| {
        let safe = crate::text::line(text).into_owned();
        wrap(&safe, width).into_iter().map(move |l| line(theme, role, l)).collect::<Vec<_>>()
    };
    out.extend(said(Role::Text, &about.join(" · ")));
    if !row.blocked_by.is_empty() {
        out.extend(said(Role::Warn, &format!("! {}", waits_words(row))));
    }
    if row.hidden {
        let text = "this role may not see what it runs: GRANT pg_read_all_stats shows it";
        out.extend(said(Role::Dim, text));
    } else {
        let block = crate::text::block(row.query.trim()).into_owned();
        out.extend(block.lines().map(|l| line(theme, Role::Sql, crate::text::cut(l, width))));
    }
    lines(frame, inner, out);
}
