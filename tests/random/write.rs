//! Writes under the rules, tried and taken back.

use rowdeck::compiler::evaluate::facts::{Caller, Datum, Facts, Table};
use rowdeck::compiler::evaluate::{Held, World};
use rowdeck::compiler::ident::Ident;
use rowdeck::compiler::model::{Command, Model, TypeId};
use rowdeck::compiler::prove::sample::{Random, Sampler, key};
use rowdeck::compiler::prove::shape::shape;
use rowdeck::db::facts::Snapshot;
use serde::{Deserialize, Serialize};
use tokio_postgres::Client;

use crate::case::{caller_name, callers, literal, said, sizes};
use crate::change::is_row;
use crate::compare::sign_in;

/// A write by somebody.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Probe {
    /// Which of the callers.
    caller: usize,
    /// Which of the policy's tables with rules.
    rules: usize,
    /// Which object, by its number.
    number: usize,
    what: What,
}

/// Values are numbers, words, or true and false, by column.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum What {
    /// A new row, and whether to read it back.
    Insert(Vec<(String, Value)>, bool),
    /// New values for some columns.
    Update(Vec<(String, Value)>),
    Delete,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Value {
    Bool(bool),
    Int(i64),
    Text(String),
    Null(()),
}

impl Value {
    fn of(datum: &Datum) -> Value {
        match datum {
            Datum::Bool(value) => Value::Bool(*value),
            Datum::Int(value) => Value::Int(*value),
            Datum::Text(text) => Value::Text(text.clone()),
            _ => Value::Null(()),
        }
    }

    fn datum(&self) -> Datum {
        match self {
            Value::Bool(value) => Datum::Bool(*value),
            Value::Int(value) => Datum::Int(*value),
            Value::Text(text) => Datum::Text(text.clone()),
            Value::Null(()) => Datum::Null,
        }
    }
}

/// Some writes to try on these facts.
pub fn probes(model: &Model, snapshot: &Snapshot, random: &mut Random) -> Result<Vec<Probe>, String> {
    let shape = shape(model).map_err(|e| e.to_string())?;
    let mut sampler = Sampler { model, shape: &shape, sizes: sizes(model), random: random.clone() };
    let mut found = Vec::new();
    for (at, rules) in model.rules.iter().enumerate() {
        let table = shape.tables.iter().find(|t| t.ty == Some(rules.ty)).unwrap();
        for _ in 0..4 {
            let caller = sampler.random.below(callers(model).len());
            let number = sampler.number(rules.ty);
            let row = sampler.row(table, number);
            // A row that names itself is a ring, which is refused for that.
            let own: Vec<&Datum> = table.key.iter().map(|at| &row[*at]).collect();
            if table.references.iter().any(|r| r.columns.iter().map(|at| &row[*at]).eq(own.iter().copied())) {
                continue;
            }
            let exists = row_of(model, &snapshot.facts, rules.ty, number).is_some();
            let named = |at: usize| (table.columns[at].name.as_str().to_owned(), Value::of(&row[at]));
            let what = match sampler.random.below(5) {
                0 if exists => What::Delete,
                _ if !exists => What::Insert((0..row.len()).map(named).collect(), sampler.random.once_in(2)),
                _ => {
                    let rest: Vec<usize> = (0..row.len()).filter(|at| !table.key.contains(at)).collect();
                    let Some(chosen) = sampler.random.pick(&rest).copied() else { continue };
                    let reference =
                        table.references.iter().find(|r| r.columns.contains(&chosen) || r.type_column == Some(chosen));
                    let columns: Vec<usize> = match reference {
                        Some(r) => r.columns.iter().copied().chain(r.type_column).collect(),
                        None => vec![chosen],
                    };
                    What::Update(columns.into_iter().filter(|at| rest.contains(at)).map(named).collect())
                }
            };
            found.push(Probe { caller, rules: at, number, what });
        }
    }
    *random = sampler.random;
    Ok(found)
}

fn row_of(model: &Model, facts: &Facts, ty: TypeId, number: usize) -> Option<usize> {
    let def = &model.types[ty.0];
    let table = facts.tables.get(&def.table)?;
    let wanted = key(model, ty, number);
    table.rows.iter().position(|row| {
        def.key.iter().zip(&wanted).all(|(k, value)| table.column(&k.column).is_some_and(|at| row[at] == *value))
    })
}

/// Whether any line of a command holds on a row.
pub fn any_line(
    held: &Held<'_, '_>,
    model: &Model,
    rules: usize,
    command: &Command,
    key: &[Datum],
) -> Result<bool, String> {
    for (at, rule) in model.rules[rules].rules.iter().enumerate() {
        if rule.command == *command && held.rule(rules, at, key).map_err(|e| e.to_string())? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether every line that narrows updates of these columns holds on a row, before or after.
fn narrowed(
    held: &Held<'_, '_>,
    model: &Model,
    rules: usize,
    changed: &[Ident],
    after: bool,
    key: &[Datum],
) -> Result<bool, String> {
    for (at, rule) in model.rules[rules].rules.iter().enumerate() {
        let applies = match &rule.command {
            Command::UpdateBefore(columns) => !after && columns.iter().any(|c| changed.contains(c)),
            Command::UpdateAfter(columns) => {
                after && (columns.is_empty() || columns.iter().any(|c| changed.contains(c)))
            }
            _ => false,
        };
        if applies && !held.rule(rules, at, key).map_err(|e| e.to_string())? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The facts with some values of a row changed, or with a new row.
fn changed(facts: &Facts, model: &Model, ty: TypeId, row: Option<usize>, values: &[(String, Value)]) -> Facts {
    let mut facts = facts.clone();
    let table: &mut Table = facts.tables.get_mut(&model.types[ty.0].table).unwrap();
    let at = row.unwrap_or_else(|| {
        table.rows.push(vec![Datum::Null; table.columns.len()]);
        table.rows.len() - 1
    });
    for (column, value) in values {
        // Columns that no rule reads are not among the facts.
        if let Some(column) = table.column(&Ident::new(column)) {
            table.rows[at][column] = value.datum();
        }
    }
    facts
}

/// What the rules say of a write, by the evaluator: whether it changes a row.
fn expected(model: &Model, snapshot: &Snapshot, caller: &Caller, probe: &Probe) -> Result<bool, String> {
    let ty = model.rules[probe.rules].ty;
    let object = key(model, ty, probe.number);
    let error = |e: rowdeck::compiler::evaluate::CannotEvaluate| e.to_string();
    let world = World::new(model, &snapshot.facts, snapshot.now).map_err(error)?;
    let before = world.ask(caller).map_err(error)?;
    let holds = |held: &Held<'_, '_>, command: Command| any_line(held, model, probe.rules, &command, &object);
    let row = row_of(model, &snapshot.facts, ty, probe.number);
    match &probe.what {
        What::Delete => Ok(holds(&before, Command::Select)? && holds(&before, Command::Delete)?),
        What::Insert(values, reads) => {
            let facts = changed(&snapshot.facts, model, ty, None, values);
            let world = World::new(model, &facts, snapshot.now).map_err(error)?;
            let after = world.ask(caller).map_err(error)?;
            Ok(holds(&after, Command::Insert)? && (!reads || holds(&after, Command::Select)?))
        }
        What::Update(values) => {
            let Some(row) = row else { return Ok(false) };
            let facts = changed(&snapshot.facts, model, ty, Some(row), values);
            let table = &model.types[ty.0].table;
            let (old, new) = (&snapshot.facts.tables[table], &facts.tables[table]);
            let columns: Vec<Ident> = (0..old.columns.len())
                .filter(|at| old.rows[row][*at] != new.rows[row][*at])
                .map(|at| old.columns[at].clone())
                .collect();
            let world = World::new(model, &facts, snapshot.now).map_err(error)?;
            let after = world.ask(caller).map_err(error)?;
            Ok(holds(&before, Command::Select)?
                && holds(&before, Command::Update)?
                && narrowed(&before, model, probe.rules, &columns, false, &object)?
                && holds(&after, Command::Update)?
                && narrowed(&after, model, probe.rules, &columns, true, &object)?
                && holds(&after, Command::Select)?)
        }
    }
}

/// Tries a write and compares what came of it; the number of comparisons.
pub async fn compare(client: &Client, model: &Model, snapshot: &Snapshot, probe: &Probe) -> Result<u64, String> {
    let (Some(caller), Some(rules)) = (callers(model).into_iter().nth(probe.caller), model.rules.get(probe.rules))
    else {
        return Ok(0);
    };
    let table = &model.types[rules.ty.0].table;
    let columns = |values: &[(String, Value)]| -> Vec<(String, String)> {
        values.iter().map(|(c, v)| (Ident::new(c).to_string(), literal(&v.datum()))).collect()
    };
    let is_row = is_row(model, rules.ty, probe.number);
    let returned = crate::compare::key_sql(model, rules.ty);
    let sql = match &probe.what {
        What::Delete => format!("DELETE FROM {table} WHERE {is_row}"),
        What::Insert(values, reads) => {
            let (names, values): (Vec<String>, Vec<String>) = columns(values).into_iter().unzip();
            let returning = if *reads { format!(" RETURNING {returned}") } else { String::new() };
            format!("INSERT INTO {table} ({}) VALUES ({}){returning}", names.join(", "), values.join(", "))
        }
        What::Update(values) => {
            let sets: Vec<String> = columns(values).iter().map(|(c, v)| format!("{c} = {v}")).collect();
            format!("UPDATE {table} SET {} WHERE {is_row}", sets.join(", "))
        }
    };
    client.batch_execute(&sign_in(model, &caller)).await.map_err(|e| said(&e, "sign in"))?;
    let tried = client.execute(&sql, &[]).await;
    client.batch_execute("ROLLBACK").await.map_err(|e| said(&e, "ROLLBACK"))?;
    let done = match &tried {
        Ok(rows) => *rows > 0,
        Err(e) => match e.as_db_error().map(|e| e.code().code().to_owned()) {
            Some(code) if code == "42501" => false,
            // A ring, a row that is there already, a row still needed: no rule has decided.
            Some(code) if code.starts_with("23") => return Ok(0),
            _ => return Err(said(e, &sql)),
        },
    };
    let expected = expected(model, snapshot, &caller, probe)?;
    if done == expected {
        return Ok(1);
    }
    let word = |yes: bool| if yes { "is done" } else { "is refused" };
    let why = tried.err().map(|e| said(&e, "")).unwrap_or_default();
    Err(format!(
        "as {}: {sql}\n{} in the database, by the evaluator it {}; {why}",
        caller_name(model, &caller),
        word(done),
        word(expected)
    ))
}
