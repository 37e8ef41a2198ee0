//! The Apply screen: everything known before the first statement, progress, and how it ended.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::widgets::{bar, duration, line, lines, panel};
use crate::app::model::Model;
use crate::app::model::apply::{PhaseState, Plan, Stage};
use crate::app::theme::{Role, Theme};
use crate::db::progress::ApplyReport;

/// Draws it.
pub fn draw(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let apply = &model.apply;
    let title = match (&apply.stage, &apply.plan) {
        (Stage::Idle, _) => "Apply".to_owned(),
        (Stage::Planning, _) => "Planning".to_owned(),
        (_, Some(plan)) => plan_title(plan),
        (_, None) => "Apply".to_owned(),
    };
    let inner = panel(frame, theme, area, &title, true);
    let width = usize::from(inner.width);
    let mut out: Vec<Line> = Vec::new();
    match &apply.stage {
        Stage::Idle => out.extend(idle(model, theme, width)),
        Stage::Planning => out.push(line(theme, Role::Text, "compiling, and reading the server's catalog ...")),
        Stage::Planned => {}
        Stage::Running => out.push(line(theme, Role::Title, running(model, "running"))),
        Stage::Cancelling => out.push(line(theme, Role::Warn, running(model, "cancelling: the server rolls back"))),
        Stage::Done(report) => out.extend(done(theme, report)),
        Stage::Failed(why) => {
            let head = if apply.phases.is_empty() {
                "✗ not planned"
            } else {
                "✗ not applied: all was rolled back; the database is as it was"
            };
            out.extend(failed(theme, head, why, width));
        }
        Stage::Unknown(why) => {
            let head = "? unknown: all of it is in force, or nothing was changed; p plans again and tells which";
            out.extend(failed(theme, head, why, width));
        }
    }
    out.extend(phases(model, theme, width));
    if let Some(plan) = &apply.plan
        && apply.phases.is_empty()
    {
        out.extend(plan_lines(theme, plan, width));
    }
    if let Some((seconds, blockers)) = &apply.waiting {
        out.push(line(theme, Role::Warn, format!("! waits {} for a lock:", duration(*seconds))));
        out.extend(blockers.iter().map(|who| line(theme, Role::Warn, format!("    {who}"))));
    }
    out.extend(apply.log.iter().map(|note| line(theme, Role::Dim, format!("· {note}"))));
    let height = usize::from(inner.height);
    let top = apply.top.min(out.len().saturating_sub(height));
    lines(frame, inner, out.into_iter().skip(top).take(height).collect());
}

fn plan_title(plan: &Plan) -> String {
    let digest: String = plan.digest.chars().take(8).collect();
    match plan.from {
        Some(version) if plan.unchanged => format!("Plan: unchanged, v{version} is in force"),
        Some(version) => format!("Plan {digest} from v{version} to v{}", version + 1),
        None => format!("Plan {digest}, the first on this database"),
    }
}

fn idle(model: &Model, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let words = if model.link.is_up() {
        "no plan yet: p (or F5 anywhere) plans what applying this text would do; planning changes nothing"
    } else {
        model.link.why_no_data()
    };
    super::widgets::wrap(words, width).into_iter().map(|l| line(theme, Role::Dim, l)).collect()
}

fn running(model: &Model, word: &str) -> String {
    let gone = model.clock.saturating_sub(model.apply.began);
    format!("{word}, {} gone; one transaction: all of it, or nothing", duration(gone.as_secs_f64()))
}

fn done(theme: &Theme, report: &ApplyReport) -> Vec<Line<'static>> {
    if report.unchanged {
        return vec![line(theme, Role::Ok, format!("✓ unchanged: v{} was this very policy", report.version))];
    }
    let digest: String = report.digest.chars().take(8).collect();
    vec![
        line(theme, Role::Ok, format!("✓ applied in {}: v{} is in force", duration(report.seconds), report.version)),
        line(theme, Role::Text, format!("  {} objects, digest {digest}", report.objects)),
        line(
            theme,
            Role::Text,
            format!(
                "  {} of the index built; {} built, {} kept",
                crate::text::counted(report.rows_built, "row"),
                crate::text::counted(report.graphs_built as u64, "graph"),
                report.graphs_kept
            ),
        ),
    ]
}

fn failed(theme: &Theme, head: &str, why: &str, width: usize) -> Vec<Line<'static>> {
    let mut out: Vec<Line<'static>> =
        super::widgets::wrap(head, width).into_iter().map(|l| line(theme, Role::Error, &l)).collect();
    out.extend(
        super::widgets::wrap(why, width.saturating_sub(4))
            .into_iter()
            .map(|l| line(theme, Role::Text, format!("    {l}"))),
    );
    out
}

fn plan_lines(theme: &Theme, plan: &Plan, width: usize) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    if plan.unchanged {
        out.push(line(theme, Role::Ok, "✓ unchanged: this very policy is in force"));
    }
    for refusal in &plan.refusals {
        out.extend(marked(theme, Role::Error, "✗", refusal, width));
    }
    for warning in &plan.warnings {
        out.extend(marked(theme, Role::Warn, "!", warning, width));
    }
    for (at, step) in plan.steps.iter().enumerate() {
        let cost = if step.cost.is_empty() { String::new() } else { format!(" · {}", step.cost) };
        let words = format!("{:>2} {}{cost}", at + 1, step.what);
        out.push(line(theme, Role::Title, crate::text::cut(&words, width)));
        let none = step.lock.is_empty() || step.lock == "none";
        let role = match () {
            () if none => Role::Dim,
            () if step.lock.contains("ACCESS EXCLUSIVE") => Role::Warn,
            () => Role::Text,
        };
        let lock = if none { "locks nothing that others use".to_owned() } else { format!("locks {}", step.lock) };
        let safe = crate::text::line(&lock).into_owned();
        let wrapped = super::widgets::wrap(&safe, width.saturating_sub(4));
        out.extend(wrapped.into_iter().map(|l| line(theme, role, format!("   {l}"))));
    }
    out.extend(plan.graphs.iter().map(|graph| line(theme, Role::Text, format!("   {graph}"))));
    if let Some((needed, free)) = plan.locks {
        let (needed, free) = (crate::text::count(needed), crate::text::count(free));
        out.push(line(
            theme,
            Role::Text,
            format!("   needs {needed} entries of the lock table at most; {free} are free"),
        ));
    }
    out
}

fn marked(theme: &Theme, role: Role, mark: &str, text: &str, width: usize) -> Vec<Line<'static>> {
    super::widgets::wrap(&crate::text::line(text), width.saturating_sub(3))
        .into_iter()
        .enumerate()
        .map(|(at, words)| line(theme, role, format!("{} {words}", if at == 0 { mark } else { " " })))
        .collect()
}

fn phases(model: &Model, theme: &Theme, width: usize) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    let failed = matches!(model.apply.stage, Stage::Failed(_));
    let unknown = matches!(model.apply.stage, Stage::Unknown(_));
    let last = model.apply.phases.last().map(|phase| phase.number);
    for phase in &model.apply.phases {
        let ended = phase.ended.is_some();
        let (mark, role) = match (failed, ended) {
            _ if unknown => ("?", Role::Dim),
            (true, _) if Some(phase.number) == last => ("✗", Role::Error),
            (true, _) => ("·", Role::Dim),
            (false, true) => ("✓", Role::Ok),
            (false, false) => ("▶", Role::Focus),
        };
        let gone = phase.ended.unwrap_or(model.clock).saturating_sub(phase.began).as_secs_f64();
        let head = format!("{mark} {}/{} {}", phase.number, phase.of, phase.title);
        let locks = match (failed, phase.locks.is_empty()) {
            _ if unknown => "unknown".to_owned(),
            (true, _) => "rolled back".to_owned(),
            (false, true) => "locks none".to_owned(),
            (false, false) => format!("locks {}", phase.locks),
        };
        let tail = format!("{locks} · {}", duration(gone));
        let room = width.saturating_sub(head.chars().count() + 2);
        out.push(line(theme, role, format!("{head}  {}", crate::text::cut(&tail, room))));
        if phase.batches.0 > 0 {
            out.push(line(theme, Role::Text, batch_words(phase, width)));
        }
    }
    out
}

fn batch_words(phase: &PhaseState, width: usize) -> String {
    let count = crate::text::count;
    let mut words = String::from("    ");
    if let Some(all) = phase.rows.1.filter(|all| *all > 0) {
        let share = phase.rows.0 as f64 / all as f64;
        let cells = width.saturating_sub(64).clamp(8, 30);
        words.push_str(&format!("{} {:>3.0}% ", bar(share, 1.0, cells), share.min(1.0) * 100.0));
    }
    let mut parts = Vec::new();
    if let (Some(left), None) = (phase.left, phase.ended) {
        parts.push(format!("{} left", duration(left)));
    }
    parts.push(format!("{}/s", count(phase.rate.max(0.0) as u64)));
    let of = phase.rows.1.map_or(String::new(), |of| format!(" of {}", count(of)));
    parts.push(format!("{}{of}", count(phase.rows.0)));
    let of = phase.batches.1.map_or(String::new(), |of| format!(" of {}", count(of)));
    parts.push(format!("batch {}{of}", count(phase.batches.0)));
    words.push_str(&parts.join(" · "));
    words
}
