//! Conditions, judged by PostgreSQL itself before anything changes: each must run on its table (AZ613), and what limits
//! inheritance must be immutable (AZ603).
//!
//! All of it happens in one transaction that is rolled back. Scratch objects are ours and new, so that no table of the
//! database is locked for more than reading.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Client;
use tokio_postgres::error::{ErrorPosition, SqlState};

use super::preflight::Found;
use super::{Blocker, Policy, names_in_conditions};
use crate::compiler::emit;
use crate::compiler::ident::QualName;
use crate::compiler::model::{Caveat, Condition, Expr, Place, Source, TypeDef};
use crate::compiler::span::Span;
use crate::db::error::DbError;

/// A condition and the table on whose rows it is judged.
struct Probe<'a> {
    table: &'a QualName,
    condition: &'a Condition,
    inheritance: bool,
}

/// Checks every condition of the policy, inside a transaction that will be rolled back.
pub(super) async fn check(client: &Client, policy: &Policy<'_>, found: &mut Found) -> Result<(), DbError> {
    let probes = probes(policy);
    let caveats = &policy.model.caveats;
    let conditions = probes.iter().map(|probe| probe.condition).chain(caveats.iter().map(|c| &c.condition));
    if conditions.into_iter().any(|condition| condition.sql.contains("authz.")) {
        helpers(client, policy).await?;
    }
    for caveat in caveats {
        found.blockers.extend(caveat_runs(client, policy, caveat).await?);
    }
    let mut scratch = Scratch::default();
    for probe in &probes {
        if let Some(blocker) = runs(client, policy, probe).await? {
            found.blockers.push(blocker);
            continue;
        }
        scratch.schema(client).await?;
        if probe.inheritance {
            found.blockers.extend(scratch.immutable(client, policy, probe).await?);
        }
        if emit::stands_in_rules(&probe.condition.sql)
            && let Some(others) = names_in_conditions::others(client, probe.table, probe.condition).await?
        {
            let message = format!("this condition would stand in the rules as it is, and it uses {others}");
            let blocker = Blocker::new(message).code(613).help("write it as (SELECT ...): it is then a function");
            found.blockers.push(blocker.at(policy.sources, probe.condition.span));
        }
        for (name, span) in names_in_conditions::strays(client, probe.table, probe.condition).await? {
            let message = format!(
                "{name} is a column of the sub-select's own tables here, not the row's; this.{name} is the row's"
            );
            found.notes.push(Blocker::new(message).at(policy.sources, span).to_string());
        }
    }
    Ok(())
}

/// Before a first apply the helpers a condition may call are not there. Stand-ins with their types let the condition
/// be judged all the same.
async fn helpers(client: &Client, policy: &Policy<'_>) -> Result<(), DbError> {
    let user = policy.model.ty(policy.model.user).and_then(|ty| ty.key.first());
    let user = user.map_or("text", |key| key.ty.sql());
    let sql = format!(
        "DO $do$ BEGIN
           IF to_regnamespace('authz') IS NULL THEN CREATE SCHEMA authz; END IF;
           IF to_regprocedure('authz.uid()') IS NULL THEN
             CREATE FUNCTION authz.uid() RETURNS {user} LANGUAGE sql STABLE AS 'SELECT NULL::{user}';
           END IF;
           IF to_regprocedure('authz.ctx(text)') IS NULL THEN
             CREATE FUNCTION authz.ctx(text) RETURNS text LANGUAGE sql STABLE AS 'SELECT NULL::text';
           END IF;
         END $do$"
    );
    client.batch_execute(&sql).await?;
    Ok(())
}

/// One statement in a savepoint: `Ok(None)` when it ran, the server's error when it refused.
async fn attempt(client: &Client, sql: &str) -> Result<Option<tokio_postgres::Error>, DbError> {
    client.batch_execute("SAVEPOINT probe").await?;
    match client.query(sql, &[]).await {
        Ok(_) => {
            client.batch_execute("RELEASE SAVEPOINT probe").await?;
            Ok(None)
        }
        Err(error) if error.as_db_error().is_some() && !error.is_closed() => {
            client.batch_execute("ROLLBACK TO SAVEPOINT probe; RELEASE SAVEPOINT probe").await?;
            Ok(Some(error))
        }
        Err(error) => Err(error.into()),
    }
}

async fn runs(client: &Client, policy: &Policy<'_>, probe: &Probe<'_>) -> Result<Option<Blocker>, DbError> {
    // On lines of its own, so that a comment at its end ends there.
    let before = format!("SELECT FROM {} WHERE (\n", names_in_conditions::row_of(probe.table));
    let sql = format!("{before}{}\n) LIMIT 0", probe.condition.sql);
    let Some(error) = attempt(client, &sql).await? else { return Ok(None) };
    let Some(db) = error.as_db_error() else { return Err(error.into()) };
    let span = match db.position() {
        Some(ErrorPosition::Original(at)) => inside(probe.condition, &before, *at),
        _ => probe.condition.span,
    };
    let mut blocker = Blocker::new(format!("this condition does not run on {}: {}", probe.table.plain(), db.message()));
    let more: Vec<&str> = [db.detail(), db.hint()].into_iter().flatten().collect();
    if !more.is_empty() {
        blocker = blocker.help(more.join("; "));
    }
    Ok(Some(blocker.code(613).at(policy.sources, span)))
}

/// The same for a caveat, which has no row but the arguments of a share.
async fn caveat_runs(client: &Client, policy: &Policy<'_>, caveat: &Caveat) -> Result<Option<Blocker>, DbError> {
    let condition = emit::caveat_with_arguments(&caveat.condition.sql, "a.args");
    let sql = format!("SELECT FROM (SELECT '{{}}'::jsonb AS args) AS a WHERE (\n{condition}\n) LIMIT 0");
    let Some(error) = attempt(client, &sql).await? else { return Ok(None) };
    let Some(db) = error.as_db_error() else { return Err(error.into()) };
    let blocker = Blocker::new(format!("this caveat does not run: {}", db.message()));
    Ok(Some(blocker.code(613).at(policy.sources, caveat.condition.span)))
}

/// The span of the character PostgreSQL points at, when it lies in the condition.
fn inside(condition: &Condition, before: &str, position: u32) -> Span {
    let start = before.chars().count();
    let at = usize::try_from(position).unwrap_or(0).saturating_sub(1);
    let Some(skip) = at.checked_sub(start) else { return condition.span };
    let mut rest = condition.sql.char_indices().skip(skip);
    let Some((offset, c)) = rest.next() else { return condition.span };
    // The whole word, where one starts there.
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let end = if word(c) {
        rest.find(|(_, c)| !word(*c)).map_or(condition.sql.len(), |(end, _)| end)
    } else {
        offset + c.len_utf8()
    };
    let base = condition.span.start as usize;
    let span = Span::new(condition.span.file, base + offset, base + end);
    if span.end <= condition.span.end { span } else { condition.span }
}

/// Scratch copies of tables, without rows, on which expressions are tried as indexes.
#[derive(Default)]
struct Scratch {
    ready: bool,
    made: BTreeMap<QualName, String>,
}

impl Scratch {
    /// An index accepts exactly what is immutable. It accepts no subquery; those are judged by the functions in their
    /// parsed form.
    async fn immutable(
        &mut self,
        client: &Client,
        policy: &Policy<'_>,
        probe: &Probe<'_>,
    ) -> Result<Option<Blocker>, DbError> {
        let copy = self.copy(client, probe.table).await?;
        let condition = unqualified(&probe.condition.sql, &copy);
        let sql = format!("CREATE INDEX ON authz_plan_scratch.{copy} ((\n{condition}\n))");
        let Some(error) = attempt(client, &sql).await? else { return Ok(None) };
        let volatile = if error.code() == Some(&SqlState::INVALID_OBJECT_DEFINITION) {
            Some("it is not immutable".to_owned())
        } else if error.code() == Some(&SqlState::FEATURE_NOT_SUPPORTED) {
            volatile_parts(client, probe).await?
        } else {
            return Err(error.into());
        };
        let Some(why) = volatile else { return Ok(None) };
        let blocker = Blocker::new(format!(
            "what limits inheritance must be the same for everyone at any time, and PostgreSQL says of this: {why}"
        ));
        let help = "use the row's columns and immutable functions only";
        Ok(Some(blocker.code(603).help(help).at(policy.sources, probe.condition.span)))
    }

    /// Makes the schema of scratch objects, once.
    async fn schema(&mut self, client: &Client) -> Result<(), DbError> {
        if !self.ready {
            client.batch_execute("CREATE SCHEMA authz_plan_scratch").await?;
            self.ready = true;
        }
        Ok(())
    }

    async fn copy(&mut self, client: &Client, table: &QualName) -> Result<String, DbError> {
        if let Some(name) = self.made.get(table) {
            return Ok(name.clone());
        }
        self.schema(client).await?;
        let name = format!("t{}", self.made.len());
        client.batch_execute(&format!("CREATE TABLE authz_plan_scratch.{name} (LIKE {table})")).await?;
        self.made.insert(table.clone(), name.clone());
        Ok(name)
    }
}

/// `this.col` as an index expression can say it: in one, columns are qualified by the table's own name.
fn unqualified(condition: &str, copy: &str) -> String {
    let mut out = String::with_capacity(condition.len());
    let mut rest = condition;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '"' | '$');
        if !word(before)
            && let Some(after) = rest.strip_prefix("this.")
        {
            out.push_str(copy);
            out.push('.');
            before = '.';
            rest = after;
            continue;
        }
        out.push(c);
        before = c;
        rest = rest.get(c.len_utf8()..).unwrap_or("");
    }
    out
}

/// The functions a condition calls that are not immutable, read from the parsed form of a scratch view: its node tree
/// names every function by OID, also built-in ones, which `pg_depend` leaves out.
const PARTS: &str = "
WITH tree AS (SELECT r.ev_action::text AS t FROM pg_catalog.pg_rewrite r
              WHERE r.ev_class = 'authz_plan_scratch.probe'::regclass)
SELECT string_agg(DISTINCT what, ', ') FROM (
  SELECT p.oid::regprocedure::text AS what
  FROM tree, regexp_matches(t, ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\\d+)', 'g') AS m
  JOIN pg_catalog.pg_proc p ON p.oid = m[1]::oid WHERE p.provolatile <> 'i'
  UNION ALL
  SELECT 'a word such as CURRENT_TIMESTAMP or CURRENT_USER' FROM tree
  WHERE t ~ '\\{(SQLVALUEFUNCTION|NEXTVALUEEXPR|CURRENTOFEXPR)') AS found";

async fn volatile_parts(client: &Client, probe: &Probe<'_>) -> Result<Option<String>, DbError> {
    client.batch_execute("SAVEPOINT parts").await?;
    let sql = format!(
        "CREATE VIEW authz_plan_scratch.probe AS SELECT (\n{}\n) AS holds FROM {} AS this",
        probe.condition.sql, probe.table
    );
    client.batch_execute(&sql).await?;
    let found: Option<String> = client.query_one(PARTS, &[]).await?.try_get(0)?;
    client.batch_execute("ROLLBACK TO SAVEPOINT parts; RELEASE SAVEPOINT parts").await?;
    Ok(found.map(|names| format!("not immutable: {names}")))
}

/// Every condition, each on the table whose row it is about, without repeats.
fn probes<'a>(policy: &Policy<'a>) -> Vec<Probe<'a>> {
    let mut out = Vec::new();
    // Inheritance first: the same condition stands in a permission too, and is then judged as the stricter of both.
    for link in policy.model.graphs.iter().flat_map(|graph| &graph.links) {
        if let (Some(condition), Some(child)) = (&link.condition, policy.model.ty(link.child)) {
            out.push(Probe { table: &child.table, condition, inheritance: true });
        }
    }
    for ty in &policy.model.types {
        type_probes(ty, &mut out);
    }
    for rules in &policy.model.rules {
        let Some(ty) = policy.model.ty(rules.ty) else { continue };
        for rule in &rules.rules {
            expr_probes(&rule.expr, &ty.table, &mut out);
        }
    }
    for invariant in &policy.model.invariants {
        let Some(ty) = policy.model.ty(invariant.ty) else { continue };
        expr_probes(&invariant.expr, &ty.table, &mut out);
    }
    let mut seen = BTreeSet::new();
    out.retain(|probe| seen.insert((probe.table, probe.condition.sql.as_str())));
    out
}

fn type_probes<'a>(ty: &'a TypeDef, out: &mut Vec<Probe<'a>>) {
    let on = |table, condition| Probe { table, condition, inheritance: false };
    out.extend(ty.condition.as_ref().map(|condition| on(&ty.table, condition)));
    let sources = ty.relations.iter().flat_map(|relation| &relation.sources);
    for Source { place, .. } in sources {
        match place {
            Place::Table { table, condition: Some(condition), .. } => out.push(on(table, condition)),
            Place::Shared { condition: Some(condition), .. } => out.push(on(&ty.table, condition)),
            _ => {}
        }
    }
    for permission in &ty.permissions {
        expr_probes(&permission.expr, &ty.table, out);
    }
}

fn expr_probes<'a>(expr: &'a Expr, table: &'a QualName, out: &mut Vec<Probe<'a>>) {
    match expr {
        Expr::Or(parts) | Expr::And(parts) => parts.iter().for_each(|part| expr_probes(part, table, out)),
        Expr::Not(part) => expr_probes(part, table, out),
        Expr::Sql(condition) => out.push(Probe { table, condition, inheritance: false }),
        Expr::Relation(..)
        | Expr::Permission(..)
        | Expr::Follow { .. }
        | Expr::SignedIn(_)
        | Expr::Anyone(_)
        | Expr::Nobody(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::span::FileId;

    #[test]
    fn a_position_becomes_a_place_in_the_condition() {
        let condition = Condition { sql: "not hiden".into(), span: Span::new(FileId(0), 100, 109) };
        let before = "SELECT (\n";
        let at = u32::try_from(before.chars().count() + 5).unwrap_or(0);
        assert_eq!(inside(&condition, before, at), Span::new(FileId(0), 104, 109));
        assert_eq!(inside(&condition, before, 3), condition.span);
        assert_eq!(inside(&condition, before, 900), condition.span);
    }

    #[test]
    fn this_is_renamed_where_it_stands_alone() {
        assert_eq!(unqualified("this.a and x.this.b and \"this\".c", "t0"), "t0.a and x.this.b and \"this\".c");
    }
}
