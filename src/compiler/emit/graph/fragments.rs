//! The SQL that depends on the policy: objects, effective parents, children, raw column parents. All of it stands in
//! SQL functions that the planner inlines.
//!
//! A condition is written for one row of one table, so it always stands where only that row is in scope, under the
//! name `this`; names of ours beside it begin with `authz__`, which no policy may use.

use super::shape::Shape;

/// The policy's functions of one graph: the part of the name after the graph's, and the statement.
pub(super) fn functions(shape: &Shape) -> Vec<(&'static str, String)> {
    vec![
        ("_objects", objects_of(shape)),
        ("_parents", parents_of(shape)),
        ("_children", children_of(shape)),
        ("_columns", columns(shape)),
        ("_all_links", all_links(shape)),
    ]
}

/// `this.key` as the index holds it.
fn key(shape: &Shape) -> String {
    format!("this.{}::{}", shape.key, shape.key_sql)
}

/// ` AND (condition)`. The line break ends a comment in it.
pub(super) fn and(condition: Option<&str>) -> String {
    condition.map(|c| format!(" AND ({c}\n)")).unwrap_or_default()
}

/// `SELECT id` of every object.
pub(super) fn objects_sql(shape: &Shape) -> String {
    format!(
        "SELECT {} AS id FROM {} AS this WHERE this.{} IS NOT NULL{}",
        key(shape),
        shape.table,
        shape.key,
        and(shape.objects.as_deref())
    )
}

/// `SELECT child, parent` for every effective link.
pub(super) fn links_sql(shape: &Shape) -> String {
    let objects = objects_sql(shape);
    let mut sources = Vec::new();
    for c in &shape.columns {
        sources.push(format!(
            "SELECT {key} AS child, this.{column}::{k} AS parent FROM {table} AS this WHERE this.{column} IS NOT NULL{o}{c}",
            key = key(shape),
            column = c.column,
            k = shape.key_sql,
            table = shape.table,
            o = and(shape.objects.as_deref()),
            c = and(c.condition.as_deref()),
        ));
    }
    for t in &shape.tables {
        sources.push(format!(
            "SELECT l.child, l.parent FROM (SELECT this.{child}::{k} AS child, this.{parent}::{k} AS parent FROM {link} AS this WHERE true{rows}) AS l JOIN (SELECT {key} AS id FROM {table} AS this WHERE true{o}{c}) AS o ON o.id = l.child",
            child = t.child,
            parent = t.parent,
            k = shape.key_sql,
            link = t.table,
            rows = and(t.rows.as_deref()),
            key = key(shape),
            table = shape.table,
            o = and(shape.objects.as_deref()),
            c = and(t.condition.as_deref()),
        ));
    }
    format!(
        "SELECT s.child, s.parent FROM ({}) AS s JOIN ({objects}) AS p ON p.id = s.parent WHERE s.child <> s.parent",
        sources.join(" UNION ")
    )
}

/// The objects among some ids.
fn objects_of(shape: &Shape) -> String {
    format!(
        "CREATE OR REPLACE FUNCTION {{{{objects}}}}(authz__ids {{{{key}}}}[]) RETURNS TABLE(id {{{{key}}}})
LANGUAGE sql STABLE ROWS 10 AS $authz$
SELECT {key} FROM unnest(authz__ids) AS authz__s(authz__id)
  JOIN {table} AS this ON this.{column} = authz__s.authz__id WHERE true{o}
$authz$",
        key = key(shape),
        table = shape.table,
        column = shape.key,
        o = and(shape.objects.as_deref()),
    )
}

/// The effective parents of some ids. An object is not its own parent.
fn parents_of(shape: &Shape) -> String {
    let (k, table) = (shape.key_sql, &shape.table);
    let own = and(shape.objects.as_deref());
    let mut sources = Vec::new();
    for c in &shape.columns {
        sources.push(format!(
            "SELECT {key}, this.{column}::{k} FROM unnest(authz__ids) AS authz__s(authz__id)
    JOIN {table} AS this ON this.{kc} = authz__s.authz__id WHERE this.{column} IS NOT NULL{own}{c}",
            key = key(shape),
            column = c.column,
            kc = shape.key,
            c = and(c.condition.as_deref()),
        ));
    }
    for t in &shape.tables {
        sources.push(format!(
            "SELECT l.child, l.parent FROM
    (SELECT this.{child}::{k} AS child, this.{parent}::{k} AS parent FROM unnest(authz__ids) AS authz__s(authz__id)
       JOIN {link} AS this ON this.{child} = authz__s.authz__id WHERE true{rows}) AS l
    WHERE EXISTS (SELECT FROM {table} AS this WHERE this.{kc} = l.child{own}{c})",
            child = t.child,
            parent = t.parent,
            link = t.table,
            rows = and(t.rows.as_deref()),
            kc = shape.key,
            c = and(t.condition.as_deref()),
        ));
    }
    format!(
        "CREATE OR REPLACE FUNCTION {{{{parents}}}}(authz__ids {{{{key}}}}[]) RETURNS TABLE(child {{{{key}}}}, parent {{{{key}}}})
LANGUAGE sql STABLE ROWS 10 AS $authz$
SELECT s.child, s.parent FROM (
  {}
) AS s(child, parent)
WHERE s.child <> s.parent AND EXISTS (SELECT FROM {table} AS this WHERE this.{kc} = s.parent{own})
$authz$",
        sources.join("\n  UNION\n  "),
        kc = shape.key,
    )
}

/// Whatever names some ids as parents, whether its link counts or not.
fn children_of(shape: &Shape) -> String {
    let k = shape.key_sql;
    let mut sources = Vec::new();
    for c in &shape.columns {
        sources.push(format!(
            "SELECT {key} FROM unnest(authz__ids) AS authz__s(authz__id) JOIN {table} AS this ON this.{column} = authz__s.authz__id WHERE this.{kc} IS NOT NULL",
            key = key(shape),
            table = shape.table,
            column = c.column,
            kc = shape.key,
        ));
    }
    for t in &shape.tables {
        sources.push(format!(
            "SELECT this.{child}::{k} FROM unnest(authz__ids) AS authz__s(authz__id) JOIN {link} AS this ON this.{parent} = authz__s.authz__id WHERE this.{child} IS NOT NULL",
            child = t.child,
            parent = t.parent,
            link = t.table,
        ));
    }
    format!(
        "CREATE OR REPLACE FUNCTION {{{{children}}}}(authz__ids {{{{key}}}}[]) RETURNS TABLE(child {{{{key}}}})
LANGUAGE sql STABLE ROWS 10 AS $authz$
{}
$authz$",
        sources.join("\nUNION ALL\n")
    )
}

/// Every parent named by a column, whether it counts or not: what AZ713 walks.
fn columns(shape: &Shape) -> String {
    let mut sources: Vec<String> = shape
        .columns
        .iter()
        .map(|c| {
            format!(
                "SELECT {key}, this.{column}::{k} FROM {table} AS this WHERE this.{column} IS NOT NULL",
                key = key(shape),
                column = c.column,
                k = shape.key_sql,
                table = shape.table,
            )
        })
        .collect();
    if sources.is_empty() {
        sources.push(format!("SELECT NULL::{k}, NULL::{k} WHERE false", k = shape.key_sql));
    }
    format!(
        "CREATE OR REPLACE FUNCTION {{{{columns}}}}() RETURNS TABLE(child {{{{key}}}}, parent {{{{key}}}})
LANGUAGE sql STABLE ROWS 1000000 AS $authz$
{}
$authz$",
        sources.join("\nUNION ALL\n")
    )
}

/// Every effective link, for what has to look at all of them (TRUNCATE of a link table).
fn all_links(shape: &Shape) -> String {
    format!(
        "CREATE OR REPLACE FUNCTION {{{{all_links}}}}() RETURNS TABLE(child {{{{key}}}}, parent {{{{key}}}})
LANGUAGE sql STABLE ROWS 1000000 AS $authz$
{}
$authz$",
        links_sql(shape)
    )
}
