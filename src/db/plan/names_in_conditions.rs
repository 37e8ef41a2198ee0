//! What names in conditions turn out to be, as PostgreSQL resolves them: functions and operators of somebody else's in a
//! condition that would stand in the rules as it is, and bare names in a sub-select that are another table's columns.

use std::collections::BTreeSet;

use tokio_postgres::Client;

use crate::compiler::ident::{Ident, QualName};
use crate::compiler::model::Condition;
use crate::compiler::span::Span;
use crate::compiler::sql::{Piece, PieceKind, pieces};
use crate::db::error::DbError;

/// A row of `table` called `this`, as a condition meets it: columns and the whole row, no system columns.
pub(super) fn row_of(table: &QualName) -> String {
    format!("unnest(NULL::{table}[]) AS this")
}

/// The functions of others that a condition uses, by name or behind an operator, a cast or a type; our own helpers aside.
/// A view's node tree names every one by OID; those of PostgreSQL's own are below 16384.
const OTHERS: &str = "
WITH tree AS (SELECT r.ev_action::text AS t FROM pg_catalog.pg_rewrite r
              WHERE r.ev_class = 'authz_plan_scratch.probe'::regclass)
SELECT string_agg(DISTINCT what, ', ') FROM (
  SELECT p.oid::regprocedure::text AS what
  FROM tree, regexp_matches(t, ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\\d+)', 'g') AS m
  JOIN pg_catalog.pg_proc p ON p.oid = m[1]::oid
  WHERE p.oid >= 16384 AND p.pronamespace IS DISTINCT FROM to_regnamespace('authz')
  UNION ALL
  SELECT 'the type ' || format_type(m[1]::oid, NULL)
  FROM tree, regexp_matches(t, '\\{(?:COERCEVIAIO|COERCETODOMAIN) .*?:resulttype (\\d+)', 'g') AS m
  WHERE m[1]::oid >= 16384) AS found";

/// What of others a condition uses that its text shows as PostgreSQL's own; `None` when there is nothing.
pub(super) async fn others(
    client: &Client,
    table: &QualName,
    condition: &Condition,
) -> Result<Option<String>, DbError> {
    // Without an operator or a call there is nothing to resolve.
    if !condition.sql.contains(|c: char| !(c.is_alphanumeric() || c.is_whitespace() || "_\".".contains(c))) {
        return Ok(None);
    }
    client.batch_execute("SAVEPOINT names").await?;
    client.batch_execute(&probe_view(table, &condition.sql)).await?;
    let found: Option<String> = client.query_one(OTHERS, &[]).await?.try_get(0)?;
    client.batch_execute("ROLLBACK TO SAVEPOINT names; RELEASE SAVEPOINT names").await?;
    Ok(found)
}

fn probe_view(table: &QualName, sql: &str) -> String {
    format!("CREATE VIEW authz_plan_scratch.probe AS SELECT (\n{sql}\n) AS holds FROM {}", row_of(table))
}

/// The bare names in sub-selects of a condition that are columns of another table though the row has them too.
pub(super) async fn strays(
    client: &Client,
    table: &QualName,
    condition: &Condition,
) -> Result<Vec<(String, Span)>, DbError> {
    let all: Vec<Piece<'_>> = pieces(&condition.sql).collect();
    let bare = bare_names(&all);
    if bare.is_empty() {
        return Ok(Vec::new());
    }
    let columns = columns(client, table).await?;
    let mut out = Vec::new();
    let mut written: Option<Option<String>> = None;
    for at in bare {
        let Some(piece) = all.get(at) else { continue };
        let name = folded(piece);
        if !columns.contains(&name) {
            continue;
        }
        let as_written = match &written {
            Some(known) => known.clone(),
            None => written.insert(definition(client, table, &condition.sql).await?).clone(),
        };
        let qualified: String = all
            .iter()
            .enumerate()
            .map(|(i, p)| if i == at { format!("this.{}", p.text) } else { p.text.to_owned() })
            .collect();
        // Where it names no column at all, the other text does not parse.
        let Some(of_row) = definition(client, table, &qualified).await? else { continue };
        if as_written.is_some_and(|as_written| as_written != of_row) {
            let start = condition.span.start as usize + piece.at;
            out.push((Ident::new(name).plain(), Span::new(condition.span.file, start, start + piece.text.len())));
        }
    }
    Ok(out)
}

/// Positions of names in sub-selects that are neither qualified, nor qualify, nor are called.
fn bare_names(all: &[Piece<'_>]) -> Vec<usize> {
    let mut out = Vec::new();
    // For each open parenthesis, whether a sub-select opened in it.
    let mut open: Vec<bool> = Vec::new();
    let meaningful = |p: &&Piece<'_>| !matches!(p.kind, PieceKind::Space | PieceKind::Comment);
    for (at, piece) in all.iter().enumerate() {
        match piece.text {
            "(" => open.push(open.last().copied().unwrap_or(false)),
            ")" => drop(open.pop()),
            _ => {}
        }
        if piece.is_word("select")
            && let Some(inner) = open.last_mut()
        {
            *inner = true;
        }
        let next = all.get(at + 1..).unwrap_or_default().iter().find(meaningful);
        let before = all.get(..at).unwrap_or_default().iter().rev().find(meaningful);
        let touches =
            |p: Option<&Piece<'_>>, marks: &[&str]| p.is_some_and(|p| marks.iter().any(|m| p.is_punctuation(m)));
        if matches!(piece.kind, PieceKind::Word | PieceKind::Quoted)
            && open.last() == Some(&true)
            && !touches(next, &[".", "("])
            && !touches(before, &[".", ":"])
        {
            out.push(at);
        }
    }
    out
}

fn folded(piece: &Piece<'_>) -> String {
    match piece.kind {
        PieceKind::Quoted => piece.text.trim_matches('"').replace("\"\"", "\""),
        _ => piece.text.to_lowercase(),
    }
}

async fn columns(client: &Client, table: &QualName) -> Result<BTreeSet<String>, DbError> {
    let sql = "SELECT a.attname::text FROM pg_catalog.pg_attribute a
               WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped";
    let rows = client.query(sql, &[&table.to_string()]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// The condition as PostgreSQL writes it, every name qualified; `None` when it does not parse.
async fn definition(client: &Client, table: &QualName, sql: &str) -> Result<Option<String>, DbError> {
    client.batch_execute("SAVEPOINT names").await?;
    let made = client.batch_execute(&probe_view(table, sql)).await;
    let text = match made {
        Ok(()) => {
            let row = client.query_one("SELECT pg_get_viewdef('authz_plan_scratch.probe'::regclass)", &[]).await?;
            Some(row.try_get(0)?)
        }
        Err(error) if error.as_db_error().is_some() && !error.is_closed() => None,
        Err(error) => return Err(error.into()),
    };
    client.batch_execute("ROLLBACK TO SAVEPOINT names; RELEASE SAVEPOINT names").await?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_names_are_those_inside_sub_selects() {
        let sql = "a = 1 and EXISTS (SELECT b FROM app.t x WHERE x.c = d and f(e) and g::int = (1)) and h";
        let all: Vec<Piece<'_>> = pieces(sql).collect();
        let names: Vec<&str> = bare_names(&all).into_iter().filter_map(|at| all.get(at)).map(|p| p.text).collect();
        assert_eq!(names, ["SELECT", "b", "FROM", "x", "WHERE", "d", "and", "e", "and", "g"]);
    }
}
