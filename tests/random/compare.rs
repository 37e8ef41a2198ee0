//! What the database says against what the evaluator says.

use std::collections::{BTreeMap, BTreeSet};

use rowdeck::compiler::evaluate::World;
use rowdeck::compiler::evaluate::facts::{Caller, key_text};
use rowdeck::compiler::ident::literal as quoted;
use rowdeck::compiler::model::{Command, Model, PermId, TypeId};
use rowdeck::compiler::prove::sample::{Random, key};
use rowdeck::db::facts::{self, Snapshot};
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::case::{Wrong, caller_name, callers, said, sizes};
use crate::write::{self, Probe};

/// Rows of text, in order.
pub async fn rows(client: &Client, sql: &str) -> Result<Vec<Vec<String>>, String> {
    let messages = client.simple_query(sql).await.map_err(|e| said(&e, sql))?;
    let read = |row: &tokio_postgres::SimpleQueryRow| {
        (0..row.len()).map(|at| row.get(at).unwrap_or("NULL").to_owned()).collect()
    };
    Ok(messages
        .iter()
        .filter_map(|m| if let SimpleQueryMessage::Row(row) = m { Some(read(row)) } else { None })
        .collect())
}

/// Signs a caller in as the app role; `ROLLBACK` ends it.
pub fn sign_in(model: &Model, caller: &Caller) -> String {
    let mut sql = String::from("BEGIN; SET LOCAL ROLE app_user;");
    for (name, value) in &caller.context {
        sql.push_str(&format!("SET LOCAL authz_ctx.{name} = {};", quoted(value)));
    }
    match &caller.principal {
        Some((ty, key)) => sql.push_str(&format!(
            "SELECT authz.act_as({}, {}::text)",
            quoted(&model.types[ty.0].name),
            quoted(&key_text(key))
        )),
        None => sql.push_str("SELECT authz.act_as(NULL, NULL::text)"),
    }
    sql
}

/// The key of a type's row as the API spells it, as SQL over the row.
pub fn key_sql(model: &Model, ty: TypeId) -> String {
    match model.types[ty.0].key.as_slice() {
        [one] => format!("{}::text", one.column),
        many => format!("ROW({})::text", many.iter().map(|k| k.column.to_string()).collect::<Vec<_>>().join(", ")),
    }
}

type Names<'a> = Vec<(TypeId, PermId, &'a str, &'a str)>;

fn permissions(model: &Model) -> Names<'_> {
    let mut found = Vec::new();
    for (at, def) in model.types.iter().enumerate() {
        for (p, permission) in def.permissions.iter().enumerate() {
            found.push((TypeId(at), PermId(p), def.name.as_str(), permission.name.as_str()));
        }
    }
    found
}

fn differs<T: std::fmt::Debug + PartialEq>(what: &str, database: &T, evaluator: &T) -> Result<(), String> {
    if database == evaluator {
        return Ok(());
    }
    Err(format!("{what}: the database says {database:?}, the evaluator {evaluator:?}"))
}

/// Everything there is to compare, and how many comparisons it was.
pub async fn everything(client: &Client, model: &Model, random: &mut Random) -> Result<u64, Wrong> {
    let mut checks = 0;
    if rows(client, "SELECT authz.verify()").await? != [["t"]] {
        return Err(Wrong::from("authz.verify() is not true".to_owned()));
    }
    let snapshot = facts::read(client, model).await.map_err(|e| e.to_string())?;
    let world = World::new(model, &snapshot.facts, snapshot.now).map_err(|e| e.to_string())?;
    let callers = callers(model);
    for caller in &callers {
        checks += for_caller(client, model, &world, caller).await?;
    }
    checks += who(client, model, &world, &callers).await?;
    checks += explain(client, model, &world, &callers, random).await?;
    for probe in write::probes(model, &snapshot, random)? {
        checks += try_probe(client, model, &snapshot, &probe).await?;
    }
    Ok(checks)
}

/// One write again.
pub async fn probe(client: &Client, model: &Model, probe: &Probe) -> Result<u64, Wrong> {
    let snapshot = facts::read(client, model).await.map_err(|e| e.to_string())?;
    try_probe(client, model, &snapshot, probe).await
}

async fn try_probe(client: &Client, model: &Model, snapshot: &Snapshot, probe: &Probe) -> Result<u64, Wrong> {
    let tried = write::compare(client, model, snapshot, probe).await;
    tried.map_err(|what| Wrong { what, probe: Some(probe.clone()) })
}

/// Can, list, and rows through row-level security.
async fn for_caller(client: &Client, model: &Model, world: &World<'_>, caller: &Caller) -> Result<u64, String> {
    let held = world.ask(caller).map_err(|e| e.to_string())?;
    rows(client, &sign_in(model, caller)).await?;
    let mut parts = Vec::new();
    let mut expected: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for (ty, permission, kind, name) in permissions(model) {
        let ids: Vec<String> = (1..=sizes(model)[ty.0] + 1).map(|n| quoted(&key_text(&key(model, ty, n)))).collect();
        let what = format!("{name} {kind}");
        parts.push(format!(
            "SELECT 'can' AS how, {} AS what, a AS id FROM unnest(ARRAY[{}]::text[]) a WHERE authz.can({}, a, {})",
            quoted(&what),
            ids.join(", "),
            quoted(kind),
            quoted(name)
        ));
        parts.push(format!(
            "SELECT 'list', {}, a FROM authz.list({}, {}) a",
            quoted(&what),
            quoted(kind),
            quoted(name)
        ));
        let mut keys = held.permitted(ty, permission);
        keys.sort();
        let keys: Vec<String> = keys.into_iter().map(|key| key_text(key)).collect();
        // The page of two after the first.
        if let Some(first) = keys.first() {
            parts.push(format!(
                "SELECT 'page', {}, a FROM authz.list({}, {}, {}::text, 2) a",
                quoted(&what),
                quoted(kind),
                quoted(name),
                quoted(first)
            ));
            let page = keys.iter().skip(1).take(2).cloned().collect();
            expected.insert(("page".to_owned(), what.clone()), page);
        }
        expected.insert(("can".to_owned(), what.clone()), keys.clone());
        expected.insert(("list".to_owned(), what), keys);
    }
    let mut found: BTreeMap<(String, String), Vec<String>> = expected.keys().map(|k| (k.clone(), Vec::new())).collect();
    for row in rows(client, &parts.join("\nUNION ALL ")).await? {
        let [how, what, id] = row.as_slice() else { panic!("{row:?}") };
        found.get_mut(&(how.clone(), what.clone())).unwrap().push(id.clone());
    }
    let name = caller_name(model, caller);
    for (what, mut list) in found {
        let mut expected = expected[&what].clone();
        if what.0 == "can" {
            // Asked in the order of the numbers, not of the keys.
            list.sort();
            expected.sort();
        }
        differs(&format!("{} {} as {name}", what.0, what.1), &list, &expected)?;
    }
    let mut checks = u64::try_from(expected.len()).unwrap();
    for (at, rules) in model.rules.iter().enumerate() {
        if !rules.rules.iter().any(|rule| rule.command == Command::Select) {
            continue;
        }
        let table = &model.types[rules.ty.0].table;
        let sql = format!("SELECT {} FROM {table}", key_sql(model, rules.ty));
        let found: BTreeSet<String> = rows(client, &sql).await?.into_iter().map(|mut row| row.remove(0)).collect();
        let mut expected = BTreeSet::new();
        for key in world.keys(rules.ty) {
            if write::any_line(&held, model, at, &Command::Select, key)? {
                expected.insert(key_text(key));
            }
        }
        differs(&format!("rows of {} as {name}", table.plain()), &found, &expected)?;
        checks += 1;
    }
    rows(client, "ROLLBACK").await?;
    Ok(checks)
}

/// Who holds each permission on each object.
async fn who(client: &Client, model: &Model, world: &World<'_>, callers: &[Caller]) -> Result<u64, String> {
    let mut parts = Vec::new();
    for (ty, _, kind, name) in permissions(model) {
        for key in world.keys(ty) {
            let id = key_text(key);
            parts.push(format!(
                "SELECT {}, w.subject_kind, w.subject_id, coalesce(array_to_string(w.exceptions, chr(1)), '') \
                 FROM authz.who({}, {}::text, {}) w",
                quoted(&format!("{name} {kind} {id}")),
                quoted(kind),
                quoted(&id),
                quoted(name)
            ));
        }
    }
    if parts.is_empty() {
        return Ok(0);
    }
    // Kind, id, and those who are meant but do not hold it.
    let mut said: BTreeMap<String, Vec<(String, String, BTreeSet<String>)>> = BTreeMap::new();
    for row in rows(client, &parts.join("\nUNION ALL ")).await? {
        let [what, kind, id, but] = row.as_slice() else { panic!("{row:?}") };
        let but = but.split('\u{1}').filter(|id| !id.is_empty()).map(str::to_owned).collect();
        said.entry(what.clone()).or_default().push((kind.clone(), id.clone(), but));
    }
    let mut checks = 0;
    for caller in callers.iter().filter(|caller| caller.context.is_empty()) {
        let held = world.ask(caller).map_err(|e| e.to_string())?;
        let me = caller.principal.as_ref().filter(|(ty, key)| world.keys(*ty).contains(key));
        for (ty, permission, kind, name) in permissions(model) {
            for key in world.keys(ty) {
                let what = format!("{name} {kind} {}", key_text(key));
                let found = said.get(&what).map(Vec::as_slice).unwrap_or_default();
                let named = match me {
                    Some((ty, key)) => {
                        let (own, key) = (&model.types[ty.0].name, key_text(key));
                        found.iter().any(|(kind, id, but)| {
                            let meant = match kind.as_str() {
                                "anyone" => true,
                                "everyone" => *ty == model.user,
                                kind => kind == own && (*id == key || id == "*"),
                            };
                            meant && !but.contains(&key)
                        })
                    }
                    None => found.iter().any(|(kind, ..)| kind == "anyone" || kind == "nobody"),
                };
                let who = caller_name(model, caller);
                differs(&format!("who holds {what}, {who}"), &named, &held.can(ty, permission, key))?;
                checks += 1;
            }
        }
    }
    Ok(checks)
}

/// `explain` gives the verdict of `can`, for some callers.
async fn explain(
    client: &Client,
    model: &Model,
    world: &World<'_>,
    callers: &[Caller],
    random: &mut Random,
) -> Result<u64, String> {
    let mut checks = 0;
    for (ty, permission, kind, name) in permissions(model) {
        let Some(key) = random.pick(world.keys(ty)) else { continue };
        let users: Vec<&Caller> = callers
            .iter()
            .filter(|c| c.context.is_empty() && c.principal.as_ref().is_some_and(|(ty, _)| *ty == model.user))
            .collect();
        let Some(caller) = random.pick(&users) else { continue };
        let user = &caller.principal.as_ref().unwrap().1;
        let held = world.ask(caller).map_err(|e| e.to_string())?;
        let call = format!(
            "authz.explain({}, {}::text, {}, {}::text)",
            quoted(kind),
            quoted(&key_text(key)),
            quoted(name),
            quoted(&key_text(user))
        );
        let sql = format!("BEGIN; SELECT e.a->>'allowed', e.a::text FROM (SELECT {call} OFFSET 0) e(a); ROLLBACK");
        let found = rows(client, &sql).await?;
        let expected = if held.can(ty, permission, key) { "true" } else { "false" };
        let said = found.first().map(|row| row[0].as_str());
        differs(&format!("{call} {found:?}"), &said, &Some(expected))?;
        checks += 1;
    }
    Ok(checks)
}
