//! The Policy screen: the text with its findings beside and under it, and what it costs.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::widgets::highlight::{highlight, start_depth};
use super::widgets::{bar, field, line, lines, panel, styled};
use crate::app::estimate;
use crate::app::model::Model;
use crate::app::model::policy::{Completion, Finding, GUTTER, SearchFor, side_columns};
use crate::app::theme::{Role, Theme};
use crate::compiler::diagnostic::Severity;

/// PostgreSQL is asked to expand at most so many views for a read.
const MOST_VIEWS: usize = 50;

/// Draws it.
pub fn draw(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let side = side_columns(area.width);
    let text = Rect { width: area.width - side, height: area.height.saturating_sub(1), ..area };
    draw_text(model, theme, frame, text);
    if side > 0 {
        let place = Rect { x: area.x + text.width, width: side, height: text.height, ..area };
        draw_side(model, theme, frame, place);
    }
    let last = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
    match &model.policy.search {
        Some(search) => {
            let label = match model.policy.search_for {
                SearchFor::Find => " find: ".to_owned(),
                SearchFor::Replace => " replace: ".to_owned(),
                SearchFor::With => format!(" replace {} with: ", crate::text::cut(&model.policy.searched, 24)),
            };
            field(frame, theme, last, &label, search);
        }
        None if model.policy.replacing.is_some() => {
            let with = model.policy.replacing.as_ref().map_or("", |r| r.with.as_str());
            let words = format!(" replace {} at the cursor with {with:?}?", model.policy.searched);
            let words = crate::text::cut(&words, usize::from(area.width));
            lines(frame, last, vec![line(theme, Role::Title, words)]);
        }
        None => lines(frame, last, vec![summary(model, theme, usize::from(area.width))]),
    }
}

fn draw_text(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let policy = &model.policy;
    let state = if policy.unsaved() { " ● unsaved" } else { "" };
    let editing = if policy.editing { ", editing" } else { "" };
    let inner = panel(frame, theme, area, &format!("{}{state}{editing}", policy.name), policy.editing);
    let height = usize::from(inner.height);
    let width = usize::from(inner.width).saturating_sub(GUTTER);
    if height == 0 || width == 0 {
        return;
    }
    let (cursor_line, cursor_column) = policy.cursor();
    let cursor_text = policy.area.lines().get(cursor_line).map(String::as_str).unwrap_or_default();
    let before: usize = cursor_text.chars().take(cursor_column).map(cells).sum();
    let left = before.saturating_sub(width.saturating_sub(1));
    let top = policy.top_for(height, usize::from(inner.width));
    let mut depth = start_depth(policy.area.lines(), top);
    let mut drawn: Vec<Line> = Vec::new();
    let mut cursor = None;
    for (number, text) in policy.area.lines().iter().enumerate().skip(top) {
        if drawn.len() >= height {
            break;
        }
        if number == cursor_line && policy.editing && policy.search.is_none() && model.overlay.is_none() {
            let x = inner.x + u16::try_from(GUTTER + before - left).unwrap_or(0);
            let y = inner.y + u16::try_from(drawn.len()).unwrap_or(0);
            let place = (x.min(inner.right().saturating_sub(1)), y);
            frame.set_cursor_position(place);
            cursor = Some(place);
        }
        let on_line: Vec<&Finding> = policy.findings().filter(|f| f.file.is_none() && f.line == number).collect();
        let marked = number == cursor_line && !policy.editing;
        drawn.push(text_line(theme, number, text, &mut depth, (left, width), &on_line, marked));
        drawn.extend(findings_under(theme, text, &on_line, (left, width)));
    }
    drawn.truncate(height);
    lines(frame, inner, drawn);
    if let (Some(list), Some((x, y))) = (&policy.completion, cursor) {
        let typed = cursor_column.saturating_sub(list.start);
        draw_words(theme, frame, inner, list, (x.saturating_sub(u16::try_from(typed).unwrap_or(0)), y));
    }
}

/// The words that fit, under the cursor where there is room, else over it.
fn draw_words(theme: &Theme, frame: &mut Frame, area: Rect, list: &Completion, (x, y): (u16, u16)) {
    let longest = list.words.iter().map(|(word, kind)| word.width() + kind.word().len() + 3).max().unwrap_or(0);
    let width = u16::try_from(longest + 2).unwrap_or(u16::MAX).min(area.width);
    let wanted = u16::try_from(list.words.len()).unwrap_or(u16::MAX).min(8) + 2;
    let below = area.bottom().saturating_sub(y + 1);
    let above = y.saturating_sub(area.y);
    let (y, height) = if below >= wanted.min(5) || below >= above {
        (y + 1, wanted.min(below))
    } else {
        (y - wanted.min(above), wanted.min(above))
    };
    let x = x.min(area.right().saturating_sub(width));
    let place = Rect { x, y, width, height }.intersection(frame.area());
    frame.render_widget(ratatui::widgets::Clear, place);
    let inner = panel(frame, theme, place, "", true);
    let top = super::widgets::first_row(list.at, list.words.len(), usize::from(inner.height));
    let rows = list.words.iter().enumerate().skip(top).take(usize::from(inner.height));
    let cells = usize::from(inner.width);
    let out = rows.map(|(number, (word, kind))| {
        let kind = kind.word();
        let room = cells.saturating_sub(kind.len() + 1);
        let cut = crate::text::cut(word, room);
        let pad = room.saturating_sub(cut.width());
        let role = if number == list.at { Role::Selected } else { Role::Text };
        line(theme, role, format!("{cut}{} {kind}", " ".repeat(pad)))
    });
    lines(frame, inner, out.collect());
}

fn cells(c: char) -> usize {
    if c == '\t' { 2 } else { c.width().unwrap_or(1).max(usize::from(c.is_control())) }
}

/// One line of the text: number, mark, and the part from cell `left`, `width` cells of it.
fn text_line(
    theme: &Theme,
    number: usize,
    text: &str,
    depth: &mut usize,
    (left, width): (usize, usize),
    findings: &[&Finding],
    marked: bool,
) -> Line<'static> {
    let worst = findings.iter().map(|f| f.severity).min();
    let (mark, role) = match worst {
        Some(Severity::Error) => ("✗", Role::Error),
        Some(Severity::Warning) => ("!", Role::Warn),
        Some(Severity::Info) => ("·", Role::Dim),
        None if marked => ("▸", Role::Focus),
        None => (" ", Role::Gutter),
    };
    let mut spans =
        vec![styled(theme, Role::Gutter, format!("{:>4} ", number + 1)), styled(theme, role, format!("{mark} "))];
    let mut at = 0;
    for (piece, role) in highlight(text, depth) {
        let mut shown = String::new();
        for c in piece.chars() {
            let size = cells(c);
            if at >= left && at + size <= left + width {
                match c {
                    '\t' => shown.push_str("  "),
                    c => shown.push_str(&crate::text::line(c.encode_utf8(&mut [0; 4]))),
                }
            }
            at += size;
        }
        if !shown.is_empty() {
            spans.push(styled(theme, role, shown));
        }
    }
    Line::from(spans)
}

/// The underline and the words of each finding on a line (measurements only have their mark).
fn findings_under(
    theme: &Theme,
    text: &str,
    findings: &[&Finding],
    (left, width): (usize, usize),
) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    for finding in findings.iter().filter(|f| f.severity != Severity::Info) {
        let role = if finding.severity == Severity::Error { Role::Error } else { Role::Warn };
        let start: usize = text.chars().take(finding.column).map(cells).sum();
        let end_column = if finding.end_line > finding.line { usize::MAX } else { finding.end_column };
        let length: usize = text.chars().take(end_column).skip(finding.column).map(cells).sum();
        let from = start.saturating_sub(left).min(width.saturating_sub(1));
        let room = (width - from).max(1);
        let pad = " ".repeat(GUTTER + from);
        out.push(line(theme, role, format!("{pad}{}", "~".repeat(length.clamp(1, room)))));
        // Long words start further left so that they can be read.
        let cells = GUTTER + width;
        let rows = finding.rows(cells);
        let longest = rows.iter().map(|row| row.width()).max().unwrap_or(0);
        let start = if longest > room { cells.saturating_sub(longest).clamp(2, GUTTER) } else { GUTTER + from };
        let start = if rows.len() > 1 { 2 } else { start };
        out.extend(rows.iter().map(|row| line(theme, role, format!("{}{row}", " ".repeat(start)))));
    }
    out
}

fn summary(model: &Model, theme: &Theme, width: usize) -> Line<'static> {
    let policy = &model.policy;
    let Some(outcome) = &policy.outcome else { return line(theme, Role::Dim, " not compiled yet") };
    if let Some(failure) = &outcome.failure {
        return line(theme, Role::Error, format!(" {}", crate::text::cut(failure, width.saturating_sub(2))));
    }
    let (mistakes, lints) = policy.counts();
    let many = |n: usize, word: &str| if n == 1 { format!("1 {word}") } else { format!("{n} {word}s") };
    let mut spans: Vec<Span> = vec![styled(theme, Role::Text, " ")];
    let role = if mistakes > 0 { Role::Error } else { Role::Ok };
    let words = if mistakes == 0 { "no mistakes".to_owned() } else { many(mistakes, "mistake") };
    spans.push(styled(theme, role, words));
    if lints > 0 {
        spans.push(styled(theme, Role::Warn, format!(" · {}", many(lints, "lint"))));
    }
    spans.push(styled(theme, Role::Dim, format!(" · compiled in {:.1} ms", outcome.seconds * 1000.0)));
    if policy.stale() {
        spans.push(styled(theme, Role::Warn, " · stale: compiling"));
    }
    if let Some(run) = &policy.tests {
        let (role, words) = match run.failed.len() {
            0 => (
                Role::Ok,
                format!(" · {} passed", crate::text::counted(u64::try_from(run.passed).unwrap_or(u64::MAX), "test")),
            ),
            n => (Role::Error, format!(" · {} failed", many(n, "test"))),
        };
        spans.push(styled(theme, role, words));
    }
    let elsewhere = policy.findings().find(|f| f.file.is_some());
    if let Some((finding, file)) = elsewhere.and_then(|f| Some((f, f.file.as_ref()?))) {
        spans.push(styled(theme, Role::Error, format!(" · in {file}:{}: {}", finding.line + 1, finding.message)));
    } else if let Some(finding) = policy.finding_here() {
        let (mark, code) = (finding.mark(), &finding.code);
        spans.push(styled(theme, Role::Text, format!(" · {mark} {code} {}", crate::text::line(&finding.message))));
    }
    Line::from(spans)
}

fn draw_side(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let tables = model.policy.last_good.as_ref().map_or(0, |(_, emitted)| emitted.tables.len());
    let cost_height = u16::try_from(tables.clamp(1, 6)).unwrap_or(6) + 2;
    let locks_height = 6_u16;
    let cost = Rect { height: cost_height.min(area.height), ..area };
    draw_cost(model, theme, frame, cost);
    let left = area.height.saturating_sub(cost.height);
    let locks = Rect { y: cost.bottom(), height: locks_height.min(left), ..area };
    draw_locks(model, theme, frame, locks);
    let outline = Rect { y: locks.bottom(), height: left.saturating_sub(locks.height), ..area };
    if outline.height > 2 {
        draw_outline(model, theme, frame, outline);
    }
}

/// What the side panes say where they have nothing to show.
fn why_nothing(model: &Model) -> &'static str {
    match &model.policy.outcome {
        None => "not compiled yet",
        Some(outcome) if outcome.failure.is_some() => "the compiler failed",
        Some(_) if model.policy.counts().0 == 0 => "becomes nothing yet",
        Some(_) => "the text has mistakes",
    }
}

fn stale_word(model: &Model) -> &'static str {
    match &model.policy.last_good {
        Some((revision, _)) if *revision != model.policy.revision => " (stale)",
        _ => "",
    }
}

fn draw_cost(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let inner = panel(frame, theme, area, &format!("Reads expand{}", stale_word(model)), false);
    let Some((_, emitted)) = &model.policy.last_good else {
        return lines(frame, inner, vec![line(theme, Role::Dim, why_nothing(model))]);
    };
    let width = usize::from(inner.width);
    let mut out: Vec<Line> = emitted
        .tables
        .iter()
        .map(|table| {
            let count = format!(" {:>2}/{MOST_VIEWS}", table.expanded_views);
            let role = if table.expanded_views > MOST_VIEWS { Role::Error } else { Role::Text };
            let name = crate::text::cut(&table.table.plain(), 14);
            let room = width.saturating_sub(15 + count.len()).min(12);
            let bar = bar(table.expanded_views as f64, MOST_VIEWS as f64, room);
            Line::from(styled(theme, role, format!("{name:<14} {bar}{count}")))
        })
        .collect();
    if out.is_empty() {
        out.push(line(theme, Role::Dim, "no table has rules"));
    }
    lines(frame, inner, out);
}

fn draw_locks(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let inner = panel(frame, theme, area, "Applying needs", false);
    let Some((_, emitted)) = &model.policy.last_good else {
        return lines(frame, inner, vec![line(theme, Role::Dim, why_nothing(model))]);
    };
    let needs = estimate::locks(emitted);
    let count = crate::text::count(needs.entries);
    let mut out = Vec::new();
    match model.link.facts().and_then(|facts| facts.locks) {
        Some(table) => {
            let free = table.capacity.saturating_sub(table.held);
            let role = if needs.entries * 2 > free { Role::Error } else { Role::Text };
            out.push(line(theme, role, format!("about {count} locks of")));
            let (free, all) = (crate::text::count(free), crate::text::count(table.capacity));
            out.push(line(theme, role, format!("{free} free (of {all})")));
        }
        None => {
            out.push(line(theme, Role::Text, format!("about {count} locks")));
            out.push(line(theme, Role::Dim, "server's table unknown"));
        }
    }
    for (table, mode) in needs.tables {
        out.push(line(theme, Role::Text, format!("{table} {mode}")));
    }
    lines(frame, inner, out);
}

fn draw_outline(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let inner = panel(frame, theme, area, "Outline", false);
    let policy = &model.policy;
    let here = policy.outline.iter().rposition(|entry| entry.line <= policy.cursor().0);
    let height = usize::from(inner.height);
    let top = super::widgets::first_row(here.unwrap_or(0), policy.outline.len(), height);
    let out = policy
        .outline
        .iter()
        .enumerate()
        .skip(top)
        .take(height)
        .map(|(at, entry)| {
            let role = if Some(at) == here { Role::Focus } else { Role::Text };
            let mark = if Some(at) == here { "▸" } else { " " };
            let indent = "  ".repeat(usize::from(entry.depth));
            line(theme, role, format!("{mark}{indent}{}", entry.title))
        })
        .collect();
    lines(frame, inner, out);
}
