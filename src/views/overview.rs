//! The Overview screen: is anything wrong?

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::widgets::chart::sparkline;
use super::widgets::{bytes, duration, first_row, line, lines, panel, wrap};
use crate::app::model::Model;
use crate::app::model::overview::{Item, Rate, Weight, items};
use crate::app::model::verify::Mode;
use crate::app::theme::{Role, Theme};

/// PostgreSQL is asked to expand at most so many views for a read.
const MOST_VIEWS: usize = 50;

/// Draws it.
pub fn draw(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let now = if area.height >= 18 { 5 } else { 0 };
    let body = Rect { height: area.height.saturating_sub(now), ..area };
    let needs = items(model);
    if area.width >= 76 {
        let width = body.width * 9 / 20;
        let left = Rect { width, ..body };
        let right = Rect { x: body.x + width, width: body.width - width, ..body };
        let upper = left.height * 11 / 20;
        draw_in_force(model, theme, frame, Rect { height: upper, ..left });
        draw_verify(model, theme, frame, Rect { y: left.y + upper, height: left.height - upper, ..left });
        let lower = waits_rows(model).min(right.height / 2);
        draw_needs(model, theme, frame, Rect { height: right.height - lower, ..right }, &needs);
        draw_waits(model, theme, frame, Rect { y: right.bottom() - lower, height: lower, ..right });
    } else {
        let upper = body.height / 2;
        draw_needs(model, theme, frame, Rect { height: upper, ..body }, &needs);
        draw_in_force(model, theme, frame, Rect { y: body.y + upper, height: body.height - upper, ..body });
    }
    if now > 0 {
        draw_now(model, theme, frame, Rect { y: body.bottom(), height: now, ..area });
    }
}

fn words(theme: &Theme, role: Role, text: &str, width: usize) -> Vec<Line<'static>> {
    wrap(&crate::text::line(text), width).into_iter().map(|l| line(theme, role, l)).collect()
}

fn draw_in_force(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let inner = panel(frame, theme, area, "In force", false);
    let width = usize::from(inner.width);
    let count = |n: usize| crate::text::count(n as u64);
    let mut out = Vec::new();
    match model.link.facts().and_then(|facts| facts.policy.as_ref()) {
        Some(policy) => {
            let digest: String = policy.digest.chars().take(8).collect();
            out.extend(words(theme, Role::Title, &format!("{} v{} {digest}", policy.name, policy.version), width));
            out.extend(words(theme, Role::Text, &policy.applied, width));
        }
        None if model.link.is_up() => out.push(line(theme, Role::Warn, "! no policy is in force")),
        None => out.extend(words(theme, Role::Dim, model.link.why_no_data(), width)),
    }
    if let Some(numbers) = &model.overview.numbers {
        out.extend(words(
            theme,
            Role::Text,
            &format!(
                "{} types · {} permissions · {} tables",
                count(numbers.types),
                count(numbers.permissions),
                count(numbers.tables)
            ),
            width,
        ));
        if let Some((table, views)) = &numbers.most_views {
            let (mark, role) = if *views > MOST_VIEWS { ("✗ ", Role::Error) } else { ("", Role::Text) };
            let text = format!("{mark}a read expands {views} views at most (of {MOST_VIEWS}): {table}");
            out.extend(words(theme, role, &text, width));
        }
    }
    if let Some(read) = &model.overview.read {
        let index = &read.index;
        let size = bytes(index.bytes);
        let (objects, clusters) = (crate::text::count(index.objects), crate::text::count(index.clusters));
        let text = format!("index {size} · {objects} objects · {clusters} clusters, about");
        out.extend(words(theme, Role::Text, &text, width));
    }
    lines(frame, inner, out);
}

fn draw_verify(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let inner = panel(frame, theme, area, "Last verify", false);
    let width = usize::from(inner.width);
    let verify = &model.verify;
    let checked = crate::text::count(verify.checked);
    let out = match (verify.mode, verify.wrong_total()) {
        (Mode::Idle, _) => {
            words(theme, Role::Dim, "none from this console yet: screen 5 checks the index in batches", width)
        }
        (Mode::Done, 0) => {
            let text = format!("✓ true: {checked} checked in {}", duration(verify.seconds));
            words(theme, Role::Ok, &text, width)
        }
        (mode, 0) => words(theme, Role::Text, &format!("{}: {checked} checked, 0 wrong so far", mode.word()), width),
        (_, wrong) => words(theme, Role::Error, &format!("✗ {wrong} of {checked} wrong; screen 5 shows them"), width),
    };
    lines(frame, inner, out);
}

fn draw_needs(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect, needs: &[Item]) {
    let title = if needs.is_empty() { "Needs you".to_owned() } else { format!("Needs you: {}", needs.len()) };
    let inner = panel(frame, theme, area, &title, true);
    let width = usize::from(inner.width);
    if let Some(why) = &model.overview.failure {
        return lines(frame, inner, words(theme, Role::Error, &format!("✗ not read: {why}"), width));
    }
    if needs.is_empty() {
        let (role, text) = match &model.overview.read {
            Some(_) => (Role::Ok, "✓ nothing"),
            None if model.link.is_up() => (Role::Dim, "reading ..."),
            None => (Role::Dim, model.link.why_no_data()),
        };
        return lines(frame, inner, words(theme, role, text, width));
    }
    let at = model.overview.at.min(needs.len() - 1);
    // What to do about the marked line stands under it.
    let help = needs.get(at).map_or_else(Vec::new, |item| wrap(&item.help, width.saturating_sub(4)));
    let height = usize::from(inner.height).saturating_sub(help.len()).max(1);
    let top = first_row(at, needs.len(), height);
    let mut out = Vec::new();
    for (number, item) in needs.iter().enumerate().skip(top).take(height) {
        let (mark, role) = match item.weight {
            Weight::Wrong => ("✗", Role::Error),
            Weight::Look => ("!", Role::Warn),
        };
        let text = crate::text::cut(&format!("{mark} {}", item.words), width);
        let role = if number == at { Role::Selected } else { role };
        out.push(line(theme, role, text));
        if number == at {
            out.extend(help.iter().map(|l| line(theme, Role::Text, format!("    {l}"))));
        }
    }
    lines(frame, inner, out);
}

/// Rows of the panel about waits: what waits takes two each, with the frame.
fn waits_rows(model: &Model) -> u16 {
    let waits = model.overview.read.as_ref().map_or(0, |read| read.waits.len());
    u16::try_from(waits * 2).unwrap_or(u16::MAX).clamp(1, 8) + 2
}

fn draw_waits(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let inner = panel(frame, theme, area, "Locks and waits", false);
    let width = usize::from(inner.width);
    let mut out = Vec::new();
    let locks = model.link.facts().and_then(|facts| facts.locks).map_or(String::new(), |locks| {
        format!(" · {} of {} locks held", crate::text::count(locks.held), crate::text::count(locks.capacity))
    });
    match &model.overview.read {
        None => out.push(line(theme, Role::Dim, "not read yet")),
        Some(read) if read.waits.is_empty() => {
            let blind = if read.sees_others { "" } else { " (only of sessions this role may see)" };
            out.extend(words(theme, Role::Text, &format!("nobody waits{blind}{locks}"), width));
        }
        Some(read) => {
            for wait in &read.waits {
                let waits = format!("! pid {} waits {} for {}", wait.pid, duration(wait.seconds), wait.waits_for);
                out.push(line(theme, Role::Warn, crate::text::cut(&waits, width)));
                let held = format!("    held by {}", wait.holders.join(", "));
                out.push(line(theme, Role::Text, crate::text::cut(&held, width)));
            }
        }
    }
    lines(frame, inner, out);
}

fn draw_now(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let inner = panel(frame, theme, area, "Now, per second", false);
    let width = usize::from(inner.width);
    let rates = &model.overview.rates;
    if rates.is_empty() {
        let text = if model.link.is_up() { "two readings make a rate" } else { model.link.why_no_data() };
        return lines(frame, inner, vec![line(theme, Role::Dim, text)]);
    }
    let label = 24;
    let room = width.saturating_sub(label + 9).min(120);
    let row = |name: &str, of: fn(&Rate) -> f64| {
        let values: Vec<Option<f64>> = rates.iter().map(|rate| Some(of(rate))).collect();
        let newest = rates.back().map_or(0.0, of);
        line(theme, Role::Text, format!("{name:<label$}{} {newest:>7.1}", sparkline(&values, room)))
    };
    let out = vec![
        row("rows of governed tables", |rate| rate.rows),
        row("rows of the index", |rate| rate.index),
        row("rolled back", |rate| rate.rollbacks),
    ];
    lines(frame, inner, out);
}
