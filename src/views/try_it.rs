//! The Try it screen: whom to be, the statement, and what it did before it was rolled back.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::widgets::{duration, field, first_row, line, lines, panel, wrap};
use crate::app::model::Model;
use crate::app::model::field::Field;
use crate::app::model::try_it::{Tried, Typing};
use crate::app::theme::{Role, Theme};

/// A column is at most so many cells wide, unless it is alone.
const MOST_CELLS: usize = 32;

/// Draws it.
pub fn draw(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let it = &model.try_it;
    let typing_who = it.field.is_some() && it.typing == Typing::Who;
    let body = Rect { height: area.height.saturating_sub(u16::from(typing_who)), ..area };
    let statement_lines = it.field.as_ref().map_or(it.statement.as_str(), |field| field.text.as_str()).lines().count();
    let most = (body.height / 2).max(3);
    let upper = u16::try_from(statement_lines.max(1) + 4).unwrap_or(u16::MAX).clamp(3, most);
    draw_statement(model, theme, frame, Rect { height: upper, ..body });
    draw_result(model, theme, frame, Rect { y: body.y + upper, height: body.height - upper, ..body });
    if let (true, Some(typed)) = (typing_who, &it.field) {
        let place = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
        field(frame, theme, place, " as (type id, or nobody): ", typed);
    }
}

fn draw_statement(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let it = &model.try_it;
    let end = if model.read_only { "read-only, rolled back" } else { "always rolled back" };
    let who = if it.who.is_empty() { "· u says as whom".to_owned() } else { format!("as {}", it.who) };
    let typed = it.field.as_ref().filter(|_| it.typing == Typing::Statement);
    let inner = panel(frame, theme, area, &format!("Try it {who} · {end}"), typed.is_some());
    match typed {
        Some(typed) => draw_typed(theme, frame, inner, typed, model.overlay.is_none()),
        None if it.statement.trim().is_empty() => {
            let text = "u says whom to be, enter types one statement; it runs as the app role with them signed in. What \
                        it does is rolled back, always.";
            let out = wrap(text, usize::from(inner.width)).into_iter().map(|l| line(theme, Role::Dim, l));
            lines(frame, inner, out.collect());
        }
        None => {
            let block = crate::text::block(&it.statement).into_owned();
            let out = block.lines().flat_map(|l| wrap(l, usize::from(inner.width))).map(|l| line(theme, Role::Sql, l));
            lines(frame, inner, out.collect());
        }
    }
}

/// Text over several lines with a cursor, broken where the area ends.
fn draw_typed(theme: &Theme, frame: &mut Frame, area: Rect, field: &Field, cursor: bool) {
    let width = usize::from(area.width).max(1);
    let mut rows = vec![String::new()];
    let (mut used, mut place) = (0, None);
    for (at, c) in field.text.chars().chain(std::iter::once('\n')).enumerate() {
        let shown = if c == '\n' { String::new() } else { crate::text::line(c.encode_utf8(&mut [0; 4])).into_owned() };
        let cells = if shown.chars().count() > 1 { shown.width() } else { c.width().unwrap_or(0) };
        if used + cells > width || (used == width && c != '\n') {
            rows.push(String::new());
            used = 0;
        }
        if at == field.cursor {
            place = Some((used.min(width - 1), rows.len() - 1));
        }
        if c == '\n' {
            rows.push(String::new());
            used = 0;
        } else if let Some(row) = rows.last_mut() {
            row.push_str(&shown);
            used += cells;
        }
    }
    let height = usize::from(area.height);
    let (x, y) = place.unwrap_or_default();
    let top = (y + 1).saturating_sub(height);
    lines(frame, area, rows.into_iter().skip(top).take(height).map(|l| line(theme, Role::Sql, l)).collect());
    if cursor && area.height > 0 {
        let short = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        frame.set_cursor_position((area.x.saturating_add(short(x)), area.y.saturating_add(short(y - top))));
    }
}

fn draw_result(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let it = &model.try_it;
    let waits = it.waiting.is_some();
    let title = match (&it.result, waits) {
        (_, true) => "running ...".to_owned(),
        (Some(tried), false) => format!("{} · {}", summary(tried), took(tried.seconds)),
        (None, false) => "Result".to_owned(),
    };
    let inner = panel(frame, theme, area, &title, false);
    let width = usize::from(inner.width);
    let said = |role, text: &str| {
        let safe = crate::text::line(text).into_owned();
        wrap(&safe, width).into_iter().map(|l| line(theme, role, l)).collect::<Vec<_>>()
    };
    if let Some(why) = &it.failure {
        return lines(frame, inner, said(Role::Error, &format!("✗ not run: {why}")));
    }
    let Some(tried) = &it.result else {
        let text = if model.link.is_up() { "nothing was run yet" } else { model.link.why_no_data() };
        return lines(frame, inner, said(Role::Dim, text));
    };
    let mut out = Vec::new();
    if let Some(refused) = &tried.refused {
        out.extend(said(Role::Error, &format!("✗ refused: {refused}")));
    }
    if let Some(apart) = &tried.apart {
        let role = if tried.refused.is_some() { Role::Text } else { Role::Warn };
        out.extend(apart.lines().iter().flat_map(|l| said(role, l)));
    }
    if tried.refused.is_none() && !tried.columns.is_empty() {
        let room = usize::from(inner.height).saturating_sub(out.len());
        out.extend(table(theme, tried, (it.at, it.left), width, room));
    }
    let rolled_back = if it.ran_as.1 { "rolled back" } else { "ran read-only, rolled back" };
    if usize::from(inner.height) > out.len() {
        out.push(line(theme, Role::Dim, format!("{rolled_back}; ran as {}", crate::text::line(&it.ran_as.0))));
    }
    lines(frame, inner, out);
}

/// A time that is usually less than a second.
fn took(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.0} ms", seconds * 1000.0) } else { duration(seconds) }
}

fn summary(tried: &Tried) -> String {
    let rows = crate::text::counted(tried.touched, "row");
    match (&tried.refused, &tried.cut, tried.columns.is_empty()) {
        (Some(_), _, _) => "refused".to_owned(),
        (None, Some(cut), _) => format!("{cut} of more"),
        (None, None, false) => rows,
        (None, None, true) => format!("{rows} would be changed"),
    }
}

fn table(theme: &Theme, tried: &Tried, (at, left): (usize, usize), width: usize, height: usize) -> Vec<Line<'static>> {
    let body = height.saturating_sub(2).max(1);
    let top = first_row(at, tried.rows.len(), body);
    let shown: Vec<(usize, &Vec<Option<String>>)> = tried.rows.iter().enumerate().skip(top).take(body).collect();
    let text = |cell: Option<&Option<String>>| match cell {
        Some(Some(text)) => crate::text::line(text).into_owned(),
        Some(None) => "NULL".to_owned(),
        None => String::new(),
    };
    let alone = tried.columns.len() == left + 1;
    let mut cells_left = width;
    let mut columns: Vec<(usize, usize)> = Vec::new();
    for (number, name) in tried.columns.iter().enumerate().skip(left) {
        let longest = shown.iter().map(|(_, row)| text(row.get(number)).width()).max().unwrap_or(0).max(name.width());
        let cells = if alone { longest } else { longest.min(MOST_CELLS) }.min(cells_left);
        if cells == 0 || (cells < 4 && cells < longest) {
            break;
        }
        columns.push((number, cells));
        cells_left = cells_left.saturating_sub(cells + 2);
    }
    let row_text = |of: &dyn Fn(usize) -> String| {
        let cells = columns.iter().map(|(number, cells)| {
            let cut = crate::text::cut(&of(*number), *cells);
            let pad = cells.saturating_sub(cut.width());
            format!("{cut}{}", " ".repeat(pad))
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    let head = row_text(&|number| tried.columns.get(number).cloned().unwrap_or_default());
    let mut out = vec![line(theme, Role::Title, head)];
    out.extend(shown.iter().map(|(number, row)| {
        let role = if *number == at { Role::Selected } else { Role::Text };
        line(theme, role, row_text(&|column| text(row.get(column))))
    }));
    out
}
