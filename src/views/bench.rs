//! The Bench screen: what is measured while reads and tree writes run.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::widgets::chart::{columns, sparkline};
use super::widgets::{duration, line, lines, panel};
use crate::app::model::Model;
use crate::app::model::bench::{OutcomeRow, Second, Snapshot, State};
use crate::app::theme::{Role, Theme};

/// Draws it.
pub fn draw(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let bench = &model.bench;
    let word = match &bench.state {
        State::Idle => "not started",
        State::Starting => "starting",
        State::Running => "running",
        State::Stopping => "stopping",
        State::Stopped => "stopped",
        State::Failed(_) => "FAILED",
    };
    let rates = bench.rates;
    let title = format!("Bench · {} reads/s beside {} tree writes/s · {word} · open loop", rates.reads, rates.writes);
    let inner = panel(frame, theme, area, &title, true);
    let width = usize::from(inner.width);
    let mut out: Vec<Line> = Vec::new();
    if let State::Failed(why) = &bench.state {
        let words = super::widgets::wrap(&format!("✗ {why}"), width);
        out.extend(words.into_iter().map(|l| line(theme, Role::Error, l)));
    }
    match &bench.snapshot {
        Some(snapshot) => out.extend(measured(theme, snapshot, width, usize::from(inner.height))),
        None => out.extend(nothing(model, theme, width)),
    }
    lines(frame, inner, out);
}

fn nothing(model: &Model, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let words = match (&model.bench.state, model.link.is_up()) {
        (State::Starting, _) => "opening sessions and looking for folders to read and move ...",
        (State::Failed(_), _) => "nothing was measured",
        (_, false) => model.link.why_no_data(),
        (_, true) => {
            "nothing was measured yet: s starts steady reads and tree writes at these rates, each timed from its \
             intended start; m then moves a big subtree"
        }
    };
    super::widgets::wrap(words, width).into_iter().map(|l| line(theme, Role::Dim, l)).collect()
}

fn series(seconds: &[Second], of: impl Fn(&Second) -> Option<f64>) -> Vec<Option<f64>> {
    seconds.iter().map(of).collect()
}

fn measured(theme: &Theme, snapshot: &Snapshot, width: usize, height: usize) -> Vec<Line<'static>> {
    let seconds = &snapshot.seconds;
    let label = 16;
    let room = width.saturating_sub(label + 12);
    let mut out = Vec::new();
    let missed_role = if snapshot.missed > 0 { Role::Warn } else { Role::Text };
    out.push(line(
        theme,
        missed_role,
        format!("{} measured · {} missed starts", duration(snapshot.elapsed), crate::text::count(snapshot.missed)),
    ));
    let tall = height >= 26;
    for (name, unit, values) in [
        ("reads/s", "", series(seconds, |s| Some(s.reads as f64))),
        ("tree writes/s", "", series(seconds, |s| Some(s.writes as f64))),
        ("reads p95", " ms", series(seconds, |s| s.read_p95)),
        ("writes p95", " ms", series(seconds, |s| s.write_p95)),
    ] {
        let newest = values.iter().rev().flatten().next().map_or("–".to_owned(), |v| number(*v));
        if tall && !unit.is_empty() {
            let top = values.iter().flatten().copied().fold(0.0, f64::max);
            for (at, row) in columns(&values, room, 4, top).into_iter().enumerate() {
                let head = match at {
                    0 => format!("{name} {}", number(top)),
                    _ => String::new(),
                };
                let tail = if at == 3 { format!(" {newest}{unit}") } else { String::new() };
                out.push(line(theme, Role::Text, format!("{head:<label$}{row}{tail}")));
            }
        } else {
            out.push(line(theme, Role::Text, format!("{name:<label$}{} {newest}{unit}", sparkline(&values, room))));
        }
    }
    if seconds.iter().any(|s| s.big_move) {
        let shown = seconds.get(seconds.len().saturating_sub(room)..).unwrap_or(seconds);
        let marks: String = shown.iter().map(|s| if s.big_move { 'M' } else { ' ' }).collect();
        let pad = " ".repeat(room.saturating_sub(shown.len()));
        out.push(line(theme, Role::Warn, format!("{:<label$}{pad}{marks}", "big move")));
    }
    out.extend(table(theme, &snapshot.operations));
    out.extend(errors(theme, &snapshot.errors));
    if let Some(words) = &snapshot.big_move {
        let pause = snapshot
            .longest_pause
            .map_or(String::new(), |ms| format!(" · longest pause of other writers {} ms", number(ms)));
        out.push(line(theme, Role::Title, format!("big move: {}{pause}", crate::text::line(words))));
    }
    out
}

fn errors(theme: &Theme, errors: &[(String, u64)]) -> Vec<Line<'static>> {
    if errors.is_empty() {
        return vec![line(theme, Role::Ok, "no errors")];
    }
    errors
        .iter()
        .map(|(state, count)| {
            let words = format!("error {:<22} {:>9}", crate::text::cut(state, 22), crate::text::count(*count));
            line(theme, Role::Error, words)
        })
        .collect()
}

fn table(theme: &Theme, rows: &[OutcomeRow]) -> Vec<Line<'static>> {
    let cell = |value: Option<f64>| value.map_or("–".to_owned(), number);
    let head = format!("{:<18} {:>9} {:>8} {:>8} {:>8} {:>8}", "operation", "n", "p50 ms", "p95", "p99", "max");
    let mut out = vec![line(theme, Role::Title, head)];
    for row in rows {
        let words = format!(
            "{:<18} {:>9} {:>8} {:>8} {:>8} {:>8}",
            crate::text::cut(&row.name, 18),
            crate::text::count(row.count),
            cell(row.p50),
            cell(row.p95),
            cell(row.p99),
            cell(row.max)
        );
        out.push(line(theme, Role::Text, words));
    }
    out
}

/// Three digits that matter.
fn number(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}
