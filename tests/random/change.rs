//! Random statements: every kind of write that what is derived must follow.

use rowdeck::compiler::emit::share_table;
use rowdeck::compiler::evaluate::facts::{Datum, Holder, key_text};
use rowdeck::compiler::ident::literal as quoted;
use rowdeck::compiler::model::{Model, TypeId};
use rowdeck::compiler::prove::sample::{Sampler, key};
use rowdeck::compiler::prove::shape::{ColumnKind, TableShape};

use crate::case::literal;

/// The tables that hold objects or links, which changes are about.
fn tables<'a>(sampler: &Sampler<'a>) -> &'a [TableShape] {
    &sampler.shape.tables
}

fn list(values: impl Iterator<Item = String>) -> String {
    values.collect::<Vec<_>>().join(", ")
}

/// `(a, b) VALUES (1, 2)`
fn values(table: &TableShape, row: &[Datum]) -> String {
    format!("({}) VALUES ({})", list(table.columns.iter().map(|c| c.name.to_string())), list(row.iter().map(literal)))
}

/// `a = 1 AND b = 2`: the row of a type called `number`.
pub fn is_row(model: &Model, ty: TypeId, number: usize) -> String {
    let parts = model.types[ty.0].key.iter().zip(key(model, ty, number));
    parts.map(|(k, value)| format!("{} = {}", k.column, literal(&value))).collect::<Vec<_>>().join(" AND ")
}

/// The statements that fill the tables.
pub fn fill(sampler: &mut Sampler<'_>) -> Vec<String> {
    let mut sql = Vec::new();
    for round in 0..2 {
        for table in tables(sampler) {
            match table.ty {
                Some(ty) => {
                    for number in 1..=sampler.sizes[ty.0] {
                        if !sampler.random.once_in(4) {
                            let row = sampler.row(table, number);
                            sql.push(format!(
                                "INSERT INTO {} {} ON CONFLICT DO NOTHING",
                                table.name,
                                values(table, &row)
                            ));
                        }
                    }
                }
                None if round == 0 => {}
                None => {
                    for _ in 0..8 {
                        let row = sampler.row(table, 0);
                        sql.push(format!("INSERT INTO {} {}", table.name, values(table, &row)));
                    }
                }
            }
        }
    }
    for _ in 0..10 {
        sql.extend(share(sampler));
    }
    sql
}

/// One random change. It may refuse itself (a row that is there already, a ring): that is fine too.
pub fn change(sampler: &mut Sampler<'_>) -> String {
    let all = tables(sampler);
    let table = &all[sampler.random.below(all.len())];
    let choice = sampler.random.below(20);
    if choice >= 17
        && let Some(sql) = share(sampler)
    {
        return sql;
    }
    match table.ty {
        Some(ty) => object_change(sampler, table, ty, choice),
        None => link_change(sampler, table, choice),
    }
}

fn object_change(sampler: &mut Sampler<'_>, table: &TableShape, ty: TypeId, choice: usize) -> String {
    let (name, model) = (&table.name, sampler.model);
    let number = sampler.number(ty);
    let other = sampler.number(ty);
    match choice {
        0..=3 => {
            let row = sampler.row(table, number);
            format!("INSERT INTO {name} {} ON CONFLICT DO NOTHING", values(table, &row))
        }
        4 => {
            let row = sampler.row(table, number);
            let key = list(table.key.iter().map(|at| table.columns[*at].name.to_string()));
            let rest = table.columns.iter().enumerate().filter(|(at, _)| !table.key.contains(at));
            let sets: Vec<String> = rest.map(|(_, c)| format!("{0} = excluded.{0}", c.name)).collect();
            if sets.is_empty() {
                return format!("INSERT INTO {name} {} ON CONFLICT DO NOTHING", values(table, &row));
            }
            format!("INSERT INTO {name} {} ON CONFLICT ({key}) DO UPDATE SET {}", values(table, &row), sets.join(", "))
        }
        5..=9 => match assignments(sampler, table) {
            Some(sets) => format!("UPDATE {name} SET {sets} WHERE {}", is_row(model, ty, number)),
            None => format!("DELETE FROM {name} WHERE {}", is_row(model, ty, number)),
        },
        10 => match assignments(sampler, table) {
            Some(sets) => {
                let third = sampler.number(ty);
                let rows = [number, other, third].map(|n| is_row(model, ty, n)).join(" OR ");
                format!("UPDATE {name} SET {sets} WHERE {rows}")
            }
            None => format!("DELETE FROM {name} WHERE {}", is_row(model, ty, number)),
        },
        11 => ring(sampler, table, ty, number, other)
            .unwrap_or_else(|| format!("DELETE FROM {name} WHERE {}", is_row(model, ty, number))),
        12..=13 => format!("DELETE FROM {name} WHERE {}", is_row(model, ty, number)),
        14 => format!("DELETE FROM {name} WHERE {} OR {}", is_row(model, ty, number), is_row(model, ty, other)),
        15 | 16 => {
            // An id that changes, and may be one that was there before.
            let sets = table.key.iter().zip(key(model, ty, other));
            let sets = list(sets.map(|(at, value)| format!("{} = {}", table.columns[*at].name, literal(&value))));
            format!("UPDATE {name} SET {sets} WHERE {}", is_row(model, ty, number))
        }
        _ if sampler.random.once_in(6) => format!("TRUNCATE {name} CASCADE"),
        _ => {
            let row = sampler.row(table, number);
            let key = model.types[ty.0].key.iter().zip(key(model, ty, number));
            let on: Vec<String> = key.map(|(k, value)| format!("t.{} = {}", k.column, literal(&value))).collect();
            format!(
                "MERGE INTO {name} t USING (VALUES (1)) v ON {} WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT {}",
                on.join(" AND "),
                values(table, &row)
            )
        }
    }
}

/// New values for one reference, or for one other column; `None` when there is nothing but the key.
fn assignments(sampler: &mut Sampler<'_>, table: &TableShape) -> Option<String> {
    let row = sampler.row(table, 1);
    let rest: Vec<usize> = (0..table.columns.len()).filter(|at| !table.key.contains(at)).collect();
    let chosen = *sampler.random.pick(&rest)?;
    let reference = table.references.iter().find(|r| r.columns.contains(&chosen) || r.type_column == Some(chosen));
    let columns = match reference {
        Some(reference) => reference.columns.iter().copied().chain(reference.type_column).collect(),
        None => vec![chosen],
    };
    let columns: Vec<usize> = columns.into_iter().filter(|at| rest.contains(at)).collect();
    Some(list(columns.iter().map(|at| format!("{} = {}", table.columns[*at].name, literal(&row[*at])))))
}

/// Two rows that each get the other as what a reference to their own table names.
fn ring(sampler: &Sampler<'_>, table: &TableShape, ty: TypeId, one: usize, other: usize) -> Option<String> {
    let own =
        table.references.iter().find(|r| r.types == [ty] && r.columns.iter().all(|at| !table.key.contains(at)))?;
    let model = sampler.model;
    let (a, b) = (key(model, ty, one), key(model, ty, other));
    let sets = own.columns.iter().zip(a.iter().zip(&b)).map(|(at, (a, b))| {
        let (column, a, b) = (&table.columns[*at].name, literal(a), literal(b));
        // The first of them says the type of the whole.
        let ty = match &table.columns[*at].kind {
            ColumnKind::Key(ty) => ty.sql(),
            _ => "text",
        };
        format!("{column} = CASE WHEN {} THEN {b}::{ty} ELSE {a}::{ty} END", is_row(model, ty_of(table), one))
    });
    let sets = list(sets);
    Some(format!("UPDATE {} SET {sets} WHERE {} OR {}", table.name, is_row(model, ty, one), is_row(model, ty, other)))
}

fn ty_of(table: &TableShape) -> TypeId {
    table.ty.unwrap()
}

fn link_change(sampler: &mut Sampler<'_>, table: &TableShape, choice: usize) -> String {
    let name = &table.name;
    let row = sampler.row(table, 0);
    let known = |row: &[Datum], at: usize| match &row[at] {
        Datum::Null => format!("{} IS NULL", table.columns[at].name),
        value => format!("{} = {}", table.columns[at].name, literal(value)),
    };
    let some = sampler.random.below(table.columns.len());
    match choice {
        0..=8 => format!("INSERT INTO {name} {}", values(table, &row)),
        9..=11 => {
            let other = sampler.row(table, 0);
            format!("INSERT INTO {name} {}; INSERT INTO {name} {}", values(table, &row), values(table, &other))
        }
        12..=13 => format!("DELETE FROM {name} WHERE {}", known(&row, some)),
        14..=15 => {
            let other = sampler.row(table, 0);
            let at = sampler.random.below(table.columns.len());
            format!(
                "UPDATE {name} SET {} = {} WHERE {}",
                table.columns[at].name,
                literal(&other[at]),
                known(&row, some)
            )
        }
        16 if sampler.random.once_in(3) => format!("TRUNCATE {name}"),
        _ => format!("DELETE FROM {name} WHERE ctid IN (SELECT ctid FROM {name} LIMIT 2)"),
    }
}

/// A share made or ended as the app would, by somebody who may; now and then one from before the clock or after it.
/// `None` when nothing is shared.
fn share(sampler: &mut Sampler<'_>) -> Option<String> {
    let shared = sampler.shared();
    let (ty, relation, subject) = sampler.random.pick(&shared).copied()?;
    let model = sampler.model;
    share_table(model, ty, relation, subject)?;
    let number = sampler.number(ty);
    let (def, object) = (&model.types[ty.0], quoted(&key_text(&key(model, ty, number))));
    let relation = &def.relations[relation.0];
    let by = relation.sources.iter().find_map(|s| match s.place {
        rowdeck::compiler::model::Place::Shared { by, .. } => Some(&def.permissions[by.0].name),
        _ => None,
    })?;
    let of = |ty: TypeId| quoted(&model.types[ty.0].name);
    let whom = match sampler.holder(subject) {
        Holder::One(ty, key) => format!("{}, {}, ''", of(ty), quoted(&key_text(&key))),
        Holder::Group(ty, member, key) => {
            let member = quoted(&model.types[ty.0].relations[member.0].name);
            format!("{}, {}, {member}", of(ty), quoted(&key_text(&key)))
        }
        Holder::Everyone(ty) => format!("{}, '*', ''", of(ty)),
        Holder::Anyone => "'anyone', '*', ''".to_owned(),
        Holder::Link(_) => return None,
    };
    let (kind, name, by) = (quoted(&def.name), quoted(&relation.name), quoted(by));
    let times = [
        "",
        "",
        "",
        ", NULL, clock_timestamp() - interval '1 second'",
        ", clock_timestamp() + interval '1 hour'",
        ", NULL, clock_timestamp() + interval '1 hour'",
    ];
    let times = times[sampler.random.below(times.len())];
    let call = if sampler.random.once_in(4) {
        format!("authz.unshare({kind}, {object}::text, {name}, {whom})::text")
    } else {
        format!("authz.share({kind}, {object}::text, {name}, {whom}{times})::text")
    };
    let user = quoted(&model.types[model.user.0].name);
    let anybody = quoted(&key_text(&key(model, model.user, 1)));
    Some(format!(
        "SELECT CASE WHEN s.done IS NULL THEN NULL ELSE {call} END FROM \
         (SELECT w.subject_kind AS kind, w.subject_id AS id FROM authz.who({kind}, {object}::text, {by}) w ORDER BY w.subject_kind = {user} DESC LIMIT 1) w, \
         LATERAL (SELECT authz.act_as({user}, CASE WHEN w.kind = {user} THEN w.id ELSE {anybody} END)::text AS done OFFSET 0) s"
    ))
}
