//! The Inspect screen: who can see this, what a person sees, and why.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::widgets::{field, first_row, line, lines, panel, wrap};
use crate::app::command::Command;
use crate::app::model::Model;
use crate::app::model::inspect::{
    Asking, BrowseView, Holders, Inspect, Line as PaneLine, ObjectRef, ObjectView, Pane, PersonView, TypeRow,
};
use crate::app::theme::{Role, Theme};

/// Draws it.
pub fn draw(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let inspect = &model.inspect;
    let below = u16::from(inspect.field.is_some());
    let body = Rect { height: area.height.saturating_sub(below), ..area };
    let why_beside = body.width >= 76;
    let (left, right) = if why_beside {
        let width = body.width * 11 / 20;
        (Rect { width, ..body }, Rect { x: body.x + width, width: body.width - width, ..body })
    } else {
        let height = body.height * 3 / 5;
        (Rect { height, ..body }, Rect { y: body.y + height, height: body.height - height, ..body })
    };
    draw_pane(model, theme, frame, left);
    draw_why(model, theme, frame, right);
    if let Some(typed) = &inspect.field {
        let label = match inspect.asking {
            Asking::Object => " object (type id): ",
            Asking::Person => " person (type id): ",
            Asking::Why => " who, and what (user 31 view): ",
        };
        field(frame, theme, Rect { y: area.bottom().saturating_sub(1), height: 1, ..area }, label, typed);
    }
}

fn draw_pane(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let waits = if model.inspect.waiting.is_some() { " · asking ..." } else { "" };
    match &model.inspect.pane {
        Pane::Empty => draw_empty(model, theme, frame, area, waits),
        Pane::Types(types) => draw_types(model, theme, frame, area, types, waits),
        Pane::Object(view) if model.inspect.matrix => draw_matrix(model, theme, frame, area, view, waits),
        Pane::Object(view) => draw_object(model, theme, frame, area, view, waits),
        Pane::Person(view) => draw_person(model, theme, frame, area, view, waits),
        Pane::Browse(view) => draw_browse(model, theme, frame, area, view, waits),
    }
}

fn draw_empty(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect, waits: &str) {
    let inner = panel(frame, theme, area, &format!("Inspect{waits}"), true);
    let width = usize::from(inner.width);
    let words = match (&model.inspect.failure, model.link.is_up()) {
        (Some(why), _) => why.as_str(),
        (None, true) => {
            "find an object by its type and id, browse the types, or look at a person. Looking changes nothing."
        }
        (None, false) => model.link.why_no_data(),
    };
    lines(frame, inner, wrap(words, width).into_iter().map(|l| line(theme, Role::Dim, l)).collect());
}

fn named(label: &Option<String>) -> String {
    label.as_ref().map_or(String::new(), |label| format!("  {label}"))
}

fn list(model: &Model, theme: &Theme, frame: &mut Frame, inner: Rect, rows: &[(String, Role)], tail: Option<&str>) {
    let height = usize::from(inner.height);
    let width = usize::from(inner.width);
    let at = model.inspect.at.min(rows.len().saturating_sub(1));
    let top = first_row(at, rows.len() + usize::from(tail.is_some()), height);
    let mut out: Vec<Line> = rows
        .iter()
        .enumerate()
        .skip(top)
        .take(height)
        .map(|(number, (words, role))| {
            let words = crate::text::cut(words, width);
            let pad = width.saturating_sub(unicode_width::UnicodeWidthStr::width(words.as_str()));
            let role = if number == at { Role::Selected } else { *role };
            line(theme, role, format!("{words}{}", " ".repeat(pad)))
        })
        .collect();
    if let Some(tail) = tail {
        out.push(line(theme, Role::Dim, tail.to_owned()));
    }
    lines(frame, inner, out);
}

fn more_words(model: &Model, more: bool) -> Option<String> {
    more.then(|| format!("{} reads more", model.keymap.key(Command::InspectMore)))
}

fn draw_object(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect, view: &ObjectView, waits: &str) {
    let inner = panel(frame, theme, area, &format!("{}{}{waits}", view.object, named(&view.label)), true);
    let rows: Vec<(String, Role)> = Inspect::lines(view)
        .into_iter()
        .map(|row| match row {
            PaneLine::Permission(holders) => {
                let more = if holders.cut { " or more" } else { "" };
                let words = match (holders.who.len(), holders.cut) {
                    (0, false) => "nobody".to_owned(),
                    (n, _) => format!("{n}{more}"),
                };
                (format!("{:<14} {words}", holders.permission), Role::Title)
            }
            PaneLine::Holder(_, holder) => (format!("    {}{}", holder.who, named(&holder.label)), Role::Text),
        })
        .collect();
    if rows.is_empty() {
        return lines(frame, inner, vec![line(theme, Role::Dim, "this type has no permissions")]);
    }
    list(model, theme, frame, inner, &rows, None);
}

fn draw_person(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect, view: &PersonView, waits: &str) {
    let more = if view.after.is_some() { "+" } else { "" };
    let others = if view.types.len() > 1 { " · tab: other type" } else { "" };
    let (who, name) = (&view.person, named(&view.label));
    let title = format!("{who}{name} sees {}{more} of {}{others}{waits}", view.rows.len(), view.ty);
    let inner = panel(frame, theme, area, &title, true);
    if view.rows.is_empty() {
        let words = format!("row-level security shows {} no {}", view.person, view.ty);
        return lines(frame, inner, vec![line(theme, Role::Dim, words)]);
    }
    let rows: Vec<(String, Role)> = view
        .rows
        .iter()
        .map(|row| (format!("{:<10} {:<18}{}", row.id, row.permissions.join(" "), named(&row.label)), Role::Text))
        .collect();
    list(model, theme, frame, inner, &rows, more_words(model, view.after.is_some()).as_deref());
}

fn draw_types(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect, types: &[TypeRow], waits: &str) {
    let inner = panel(frame, theme, area, &format!("Types of the policy in force{waits}"), true);
    let rows: Vec<(String, Role)> = types
        .iter()
        .map(|ty| {
            let signs = if ty.signs_in { "signs in" } else { "" };
            (format!("{:<12} {:<18} {signs}", ty.name, ty.table), Role::Text)
        })
        .collect();
    list(model, theme, frame, inner, &rows, None);
}

/// People down, permissions across. Where a list of holders was cut, who is not in it is not known to hold nothing.
fn draw_matrix(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect, view: &ObjectView, waits: &str) {
    let inner = panel(frame, theme, area, &format!("{}{}{waits}", view.object, named(&view.label)), true);
    let people = Inspect::people(view);
    let names: Vec<String> = view.permissions.iter().map(|p| crate::text::cut(&p.permission, 9)).collect();
    let head = names.iter().map(|name| format!(" {name:<9}")).collect::<String>();
    let cell = |holders: &Holders, who: &ObjectRef| match (holders.who.iter().any(|h| h.who == *who), holders.cut) {
        (true, _) => "yes",
        (false, true) => "?",
        (false, false) => "-",
    };
    let rows: Vec<(String, Role)> = people
        .iter()
        .map(|holder| {
            let who = format!("{}{}", holder.who, named(&holder.label));
            let who = crate::text::cut(&who, 20);
            let pad = 20_usize.saturating_sub(unicode_width::UnicodeWidthStr::width(who.as_str()));
            let cells = view.permissions.iter().map(|p| format!(" {:<9}", cell(p, &holder.who))).collect::<String>();
            (format!("{who}{}{cells}", " ".repeat(pad)), Role::Text)
        })
        .collect();
    let title = crate::text::cut(&format!("{:<20}{head}", "who"), usize::from(inner.width));
    lines(frame, Rect { height: inner.height.min(1), ..inner }, vec![line(theme, Role::Title, title)]);
    let below = Rect { y: inner.y.saturating_add(1), height: inner.height.saturating_sub(1), ..inner };
    if rows.is_empty() {
        return lines(frame, below, vec![line(theme, Role::Dim, "nobody holds anything on it")]);
    }
    list(model, theme, frame, below, &rows, None);
}

fn draw_browse(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect, view: &BrowseView, waits: &str) {
    let more = if view.after.is_some() { "+" } else { "" };
    let inner = panel(frame, theme, area, &format!("{} · {}{more} read{waits}", view.title, view.rows.len()), true);
    if view.rows.is_empty() {
        let words = format!("there is nothing: no {}", view.title);
        return lines(frame, inner, vec![line(theme, Role::Dim, words)]);
    }
    let rows: Vec<(String, Role)> = view
        .rows
        .iter()
        .map(|row| {
            let indent = "  ".repeat(row.depth.min(20));
            if row.more.is_some() {
                let key = model.keymap.key(Command::InspectExpand);
                return (format!("{indent}  ... {key} reads more of {}", row.who), Role::Dim);
            }
            let mark = if row.open { "▾" } else { "▸" };
            let through = if row.through.is_empty() { String::new() } else { format!("  ({})", row.through) };
            let who = if row.depth == 0 && row.who.ty == view.title { row.who.id.clone() } else { row.who.to_string() };
            (format!("{indent}{mark} {who}{}{through}", named(&row.label)), Role::Text)
        })
        .collect();
    list(model, theme, frame, inner, &rows, more_words(model, view.after.is_some()).as_deref());
}

fn draw_why(model: &Model, theme: &Theme, frame: &mut Frame, area: Rect) {
    let Some(why) = &model.inspect.why else {
        let inner = panel(frame, theme, area, "Why", false);
        let width = usize::from(inner.width);
        let words =
            format!("{} says why the marked person may do that, or why not", model.keymap.key(Command::InspectWhy));
        let words = words.as_str();
        return lines(frame, inner, wrap(words, width).into_iter().map(|l| line(theme, Role::Dim, l)).collect());
    };
    let inner = panel(frame, theme, area, &why.question, false);
    let width = usize::from(inner.width);
    let out = why
        .lines
        .iter()
        .flat_map(|text| wrap(&crate::text::line(text), width))
        .map(|text| line(theme, Role::Text, text))
        .collect();
    lines(frame, inner, out);
}
