//! The Bench screen: what is measured while reads and tree writes run.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::widgets::chart::{columns, sparkline};
use super::widgets::{duration, line, lines, panel};
use crate::app::command::Command;
use crate::app::model::Model;
use crate::app::model::bench::{BigMove, Second, Snapshot, State};
use crate::app::theme::{Role, Theme};

/// Draws it.
pub fn draw(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let bench = &model.bench;
    let word = match &bench.state {
        State::Idle => "not started",
        State::Starting => "starting",
        State::Running => "running",
        State::Stopping => "taking back what it wrote",
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
        Some(snapshot) if snapshot.elapsed > 0.0 => {
            out.extend(measured(model, theme, snapshot, width, usize::from(inner.height)))
        }
        _ => out.extend(nothing(model, theme, width)),
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

fn measured(model: &Model, theme: &Theme, snapshot: &Snapshot, width: usize, height: usize) -> Vec<Line<'static>> {
    let count = crate::text::count;
    let missed = snapshot.reads.missed + snapshot.writes.missed;
    let role = if missed > 0 { Role::Warn } else { Role::Text };
    let mut out = vec![line(
        theme,
        role,
        format!(
            "{} · {} reads, {} tree writes · {} missed starts · {} sessions",
            duration(snapshot.elapsed),
            count(snapshot.reads.done),
            count(snapshot.writes.done),
            count(missed),
            snapshot.connections
        ),
    )];
    out.extend(overload(model, theme, snapshot, width));
    out.extend(charts(theme, &snapshot.series, width, height >= 26));
    out.extend(table(theme, snapshot));
    out.extend(errors(theme, snapshot));
    out.extend(snapshot.big_moves.iter().rev().take(3).flat_map(|big| big_move(theme, big, width)));
    if let Some(note) = &snapshot.note {
        out.push(line(theme, Role::Dim, crate::text::cut(note, width)));
    }
    out
}

/// What to do when more than a tenth of the starts were late: the rate that is missed more is to be lowered.
fn overload(model: &Model, theme: &Theme, snapshot: &Snapshot, width: usize) -> Option<Line<'static>> {
    let (reads, writes) = (&snapshot.reads, &snapshot.writes);
    let starts = reads.done + reads.failed + writes.done + writes.failed;
    if (reads.missed + writes.missed).saturating_mul(10) <= starts {
        return None;
    }
    let lower = if writes.missed > reads.missed { Command::BenchLessWrites } else { Command::BenchLessReads };
    let words = format!("this machine does not keep up with this rate; lower it with {}", model.keymap.key(lower));
    Some(line(theme, Role::Warn, crate::text::cut(&words, width)))
}

fn charts(theme: &Theme, seconds: &[Second], width: usize, tall: bool) -> Vec<Line<'static>> {
    let label = 16;
    let room = width.saturating_sub(label + 12);
    let shown = seconds.get(seconds.len().saturating_sub(room)..).unwrap_or(seconds);
    let series = |of: fn(&Second) -> Option<f64>| shown.iter().map(of).collect::<Vec<_>>();
    let mut out = Vec::new();
    for (name, unit, values) in [
        ("reads/s", "", series(|s| Some(s.reads.done as f64))),
        ("tree writes/s", "", series(|s| Some(s.writes.done as f64))),
        ("reads p95", " ms", series(|s| s.reads.latency.p95.or(s.reads.latency.max))),
        ("writes p95", " ms", series(|s| s.writes.latency.p95.or(s.writes.latency.max))),
    ] {
        let newest = values.iter().rev().flatten().next().map_or("–".to_owned(), |v| number(*v));
        if tall && !unit.is_empty() {
            let top = values.iter().flatten().copied().fold(0.0, f64::max);
            for (at, row) in columns(&values, room, 4, top).into_iter().enumerate() {
                let head = if at == 0 { format!("{name} {}", number(top)) } else { String::new() };
                let tail = if at == 3 { format!(" {newest}{unit}") } else { String::new() };
                out.push(line(theme, Role::Text, format!("{head:<label$}{row}{tail}")));
            }
        } else {
            out.push(line(theme, Role::Text, format!("{name:<label$}{} {newest}{unit}", sparkline(&values, room))));
        }
    }
    if shown.iter().any(|s| s.big_move) {
        let marks: String = shown.iter().map(|s| if s.big_move { 'M' } else { ' ' }).collect();
        let pad = " ".repeat(room.saturating_sub(shown.len()));
        out.push(line(theme, Role::Warn, format!("{:<label$}{pad}{marks}", "big move")));
    }
    out
}

fn big_move(theme: &Theme, big: &BigMove, width: usize) -> Vec<Line<'static>> {
    let below = crate::text::count(big.below);
    let head = format!("big move at {:.0} s: folder {} with {below} below", big.at, big.folder);
    let (role, words) = match (&big.error, big.milliseconds) {
        (Some(error), _) => (Role::Error, format!("{head} FAILED: {error}")),
        (None, None) => (Role::Warn, format!("{head}, moving ...")),
        (None, Some(took)) => {
            let pause = big.others.max.map_or("no other writer meanwhile".to_owned(), |ms| {
                format!("longest pause of {} other writes {} ms", big.others.n, number(ms))
            });
            (Role::Title, format!("{head}, {} ms; {pause}", number(took)))
        }
    };
    let safe = crate::text::line(&words).into_owned();
    super::widgets::wrap(&safe, width).into_iter().map(|l| line(theme, role, l)).collect()
}

fn errors(theme: &Theme, snapshot: &Snapshot) -> Vec<Line<'static>> {
    if snapshot.errors.is_empty() {
        return vec![line(theme, Role::Ok, "no errors")];
    }
    snapshot
        .errors
        .iter()
        .map(|(state, error)| {
            let count = crate::text::count(error.count);
            let words = format!("{} {count:>9}  {}", crate::text::cut(state, 10), error.last);
            line(theme, Role::Error, format!("error {}", crate::text::line(&words)))
        })
        .collect()
}

fn table(theme: &Theme, snapshot: &Snapshot) -> Vec<Line<'static>> {
    let cell = |value: Option<f64>| value.map_or("–".to_owned(), number);
    let heads = ["n", "failed", "p50 ms", "p95", "p99", "max"];
    let row = |name: &str, cells: [String; 6]| {
        let [n, failed, p50, p95, p99, max] = cells;
        format!("{name:<12} {n:>9} {failed:>7} {p50:>8} {p95:>8} {p99:>8} {max:>8}")
    };
    let mut out = vec![line(theme, Role::Title, row("operation", heads.map(str::to_owned)))];
    for one in &snapshot.operations {
        let latency = &one.latency;
        let cells = [
            crate::text::count(one.done),
            crate::text::count(one.failed),
            cell(latency.p50),
            cell(latency.p95),
            cell(latency.p99),
            cell(latency.max),
        ];
        let role = if one.failed > 0 { Role::Warn } else { Role::Text };
        out.push(line(theme, role, row(one.kind.word(), cells)));
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
