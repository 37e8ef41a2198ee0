//! The table on the screen as CSV, JSON or text. Text from the database is made safe to show, as everywhere; JSON
//! escapes it by itself.

use serde::Serialize;

use super::model::inspect::{Inspect, Line, Pane};
use super::model::{Model, Screen, overview};

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Table {
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Its rows; a cell that is nothing is NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// Why there may be more rows than these.
    pub cut: Option<String>,
}

/// How to write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// RFC 4180.
    Csv,
    /// One object with columns, rows and what was cut.
    Json,
    /// Columns under each other.
    Text,
}

impl Format {
    /// The format that a file's name asks for.
    pub fn of(name: &str) -> Option<Format> {
        match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "csv" => Some(Format::Csv),
            "json" => Some(Format::Json),
            "txt" | "text" => Some(Format::Text),
            _ => None,
        }
    }
}

/// The table on the screen, and a name for a file of it; `None` where there is none.
pub fn table(model: &Model) -> Option<(&'static str, Table)> {
    let found = match model.screen {
        Screen::Overview => ("overview", attention(model)),
        Screen::Sql => ("sql", objects(model)?),
        Screen::Apply => ("plan", steps(model)?),
        Screen::Verify => ("wrong", wrong(model)),
        Screen::Inspect => inspect(model)?,
        Screen::Try => ("result", tried(model)?),
        Screen::Bench => ("bench", bench(model)?),
        Screen::Activity => ("sessions", sessions(model)),
        Screen::Targets => ("targets", targets(model)),
        Screen::Policy | Screen::Help => return None,
    };
    (!found.1.rows.is_empty()).then_some(found)
}

fn made(columns: &[&str], rows: impl IntoIterator<Item = Vec<Option<String>>>) -> Table {
    Table { columns: columns.iter().map(|c| (*c).to_owned()).collect(), rows: rows.into_iter().collect(), cut: None }
}

fn some(text: impl ToString) -> Option<String> {
    Some(text.to_string())
}

fn attention(model: &Model) -> Table {
    let items = overview::items(model).into_iter();
    let word = |weight| if weight == overview::Weight::Wrong { "wrong" } else { "look" };
    made(
        &["weight", "what", "help"],
        items.map(|item| vec![some(word(item.weight)), some(item.words), some(item.help)]),
    )
}

fn objects(model: &Model) -> Option<Table> {
    let (_, emitted) = model.policy.last_good.as_ref()?;
    let locks = |object: &crate::compiler::objects::Object| {
        object.locks.iter().map(|l| format!("{} {}", l.table.plain(), l.mode.sql())).collect::<Vec<_>>().join(", ")
    };
    let rows = model.sql.shown(emitted).into_iter();
    let rows = rows.map(|o| vec![some(o.kind.word()), some(&o.name), some(locks(o)), some(&o.sql)]);
    Some(made(&["kind", "name", "locks", "sql"], rows))
}

fn steps(model: &Model) -> Option<Table> {
    let plan = model.apply.plan.as_ref()?;
    let rows = plan.steps.iter().map(|step| vec![some(&step.what), some(&step.lock), some(&step.cost)]);
    Some(made(&["what", "locks", "cost"], rows))
}

fn wrong(model: &Model) -> Table {
    let ids = |ids: &Option<Vec<String>>| ids.as_ref().map(|ids| ids.join(" "));
    let rows = model
        .verify
        .wrong
        .iter()
        .map(|w| vec![some(&w.graph), some(&w.ty), some(&w.id), ids(&w.stored), ids(&w.expected), some(&w.what)]);
    let mut table = made(&["graph", "type", "id", "stored", "should", "what"], rows);
    table.cut = (model.verify.not_kept > 0).then(|| format!("{} more are not kept", model.verify.not_kept));
    table
}

fn inspect(model: &Model) -> Option<(&'static str, Table)> {
    let more = |more: bool| more.then(|| "there are more than were read".to_owned());
    Some(match &model.inspect.pane {
        Pane::Empty => return None,
        Pane::Types(types) => {
            ("types", made(&["type", "table"], types.iter().map(|ty| vec![some(&ty.name), some(&ty.table)])))
        }
        Pane::Object(view) => {
            let lines = Inspect::lines(view).into_iter().filter_map(|line| match line {
                Line::Holder(holders, holder) => Some(vec![
                    some(&holders.permission),
                    some(&holder.who.ty),
                    some(&holder.who.id),
                    holder.label.clone(),
                ]),
                Line::Permission(_) => None,
            });
            let table = made(&["permission", "type", "id", "name"], lines);
            ("holders", Table { cut: more(view.permissions.iter().any(|p| p.cut)), ..table })
        }
        Pane::Person(view) => {
            let rows =
                view.rows.iter().map(|row| vec![some(&row.id), row.label.clone(), some(row.permissions.join(" "))]);
            ("sees", Table { cut: more(view.after.is_some()), ..made(&["id", "name", "permissions"], rows) })
        }
        Pane::Browse(view) => {
            let rows = view.rows.iter().filter(|row| row.more.is_none());
            let rows = rows.map(|row| vec![some(row.depth), some(&row.who.ty), some(&row.who.id), row.label.clone()]);
            let cut = view.after.is_some() || view.rows.iter().any(|row| row.more.is_some());
            ("objects", Table { cut: more(cut), ..made(&["depth", "type", "id", "name"], rows) })
        }
    })
}

fn tried(model: &Model) -> Option<Table> {
    let tried = model.try_it.result.as_ref()?;
    Some(Table { columns: tried.columns.clone(), rows: tried.rows.clone(), cut: tried.cut.clone() })
}

fn bench(model: &Model) -> Option<Table> {
    let snapshot = model.bench.snapshot.as_ref()?;
    let number = |value: Option<f64>| value.map(|v| format!("{v:.3}"));
    let rows = snapshot.operations.iter().map(|o| {
        let l = &o.latency;
        vec![
            some(o.kind.word()),
            some(o.done),
            some(o.failed),
            number(l.p50),
            number(l.p95),
            number(l.p99),
            number(l.max),
        ]
    });
    Some(made(&["operation", "done", "failed", "p50 ms", "p95 ms", "p99 ms", "max ms"], rows))
}

fn sessions(model: &Model) -> Table {
    let number = |value: Option<f64>| value.map(|v| format!("{v:.1}"));
    let pids = |pids: &[i32]| pids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let rows = model.activity.rows().iter().map(|row| {
        vec![
            some(row.pid),
            some(&row.role),
            some(&row.application),
            some(&row.client),
            some(&row.state),
            number(row.transaction),
            some(pids(&row.blocked_by)),
            row.waits_for.clone(),
            (!row.hidden).then(|| row.query.clone()),
        ]
    });
    let names = ["pid", "role", "application", "client", "state", "transaction s", "blocked by", "waits for", "query"];
    let cut = model.activity.read.as_ref().is_some_and(|read| read.cut);
    Table { cut: cut.then(|| "there are more sessions".to_owned()), ..made(&names, rows) }
}

fn targets(model: &Model) -> Table {
    let yes = |mark: bool| some(if mark { "yes" } else { "no" });
    let rows = model.targets.rows.iter().map(|row| {
        let place = row.place.as_ref().map_or_else(Clone::clone, Clone::clone);
        vec![some(&row.name), some(place), yes(row.production), yes(row.read_only)]
    });
    made(&["target", "place", "production", "read only"], rows)
}

/// The table's text.
pub fn render(table: &Table, format: Format) -> String {
    match format {
        Format::Csv => csv(table),
        Format::Json => serde_json::to_string_pretty(table).unwrap_or_default() + "\n",
        Format::Text => text(table),
    }
}

fn csv(table: &Table) -> String {
    let cell = |text: &str| {
        let safe = crate::text::block(text);
        let quote = safe.is_empty() || safe.contains([',', '"', '\n']) || safe.starts_with(' ') || safe.ends_with(' ');
        if quote { format!("\"{}\"", safe.replace('"', "\"\"")) } else { safe.into_owned() }
    };
    let mut out = table.columns.iter().map(|c| cell(c)).collect::<Vec<_>>().join(",") + "\r\n";
    for row in &table.rows {
        // NULL is nothing at all, an empty text is a pair of quotes.
        let cells: Vec<String> = row.iter().map(|c| c.as_deref().map_or_else(String::new, cell)).collect();
        out.push_str(&cells.join(","));
        out.push_str("\r\n");
    }
    if let Some(cut) = &table.cut {
        out.push_str(&format!("\"# cut: {}\"\r\n", crate::text::line(cut).replace('"', "\"\"")));
    }
    out
}

fn text(table: &Table) -> String {
    use unicode_width::UnicodeWidthStr;
    let cell =
        |c: &Option<String>| c.as_deref().map_or_else(|| "NULL".to_owned(), |c| crate::text::line(c).into_owned());
    let mut rows = vec![table.columns.clone()];
    rows.extend(table.rows.iter().map(|row| row.iter().map(cell).collect()));
    let mut widths = vec![0; table.columns.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let mut out = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| {
            let pad = width.saturating_sub(cell.width());
            format!("{cell}{}", " ".repeat(pad))
        });
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    if let Some(cut) = &table.cut {
        out.push_str(&format!("cut: {cut}\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    fn example() -> Table {
        let row = |a: Option<&str>, b: &str| vec![a.map(str::to_owned), Some(b.to_owned())];
        Table {
            columns: vec!["id".into(), "name".into()],
            rows: vec![row(Some("1"), "a \"b\", c"), row(None, "日本\n\u{1b}[31m"), row(Some(""), "x")],
            cut: Some("the first 3 rows".into()),
        }
    }

    #[test]
    fn csv_quotes_and_tells_null_from_empty() {
        let wanted =
            "id,name\r\n1,\"a \"\"b\"\", c\"\r\n,\"日本\n<1b>[31m\"\r\n\"\",x\r\n\"# cut: the first 3 rows\"\r\n";
        assert_eq!(render(&example(), Format::Csv), wanted);
    }

    #[test]
    fn json_has_everything() {
        let read: serde_json::Value = serde_json::from_str(&render(&example(), Format::Json)).unwrap();
        assert_eq!(read["rows"][1][0], serde_json::Value::Null);
        assert_eq!(read["rows"][1][1], "日本\n\u{1b}[31m");
        assert_eq!(read["cut"], "the first 3 rows");
    }

    #[test]
    fn text_is_set_under_each_other_by_cells() {
        let text = render(&example(), Format::Text);
        let wanted = "id    name\n1     a \"b\", c\nNULL  日本<0a><1b>[31m\n      x\ncut: the first 3 rows\n";
        assert_eq!(text, wanted);
    }
}
