//! The SQL that depends on the policy: objects, effective parents, children, raw column parents. All of it stands in
//! SQL functions that the planner inlines.
//!
//! A condition is written for one row of one table, so it always stands where only that row is in scope, under the
//! name `this`; names of ours beside it begin with `authz__`, which no policy may use.

use super::super::super::ident::{Ident, QualName};
use super::shape::Shape;

/// The policy's functions of one graph: the part of the name after the graph's, and the statement.
pub(super) fn functions(shape: &Shape) -> Vec<(&'static str, String)> {
    vec![
        ("_objects", objects_of(shape, "objects", MANY)),
        ("_is_object", objects_of(shape, "is_object", ONE)),
        ("_parents", parents_of(shape, "parents", MANY)),
        ("_parents_of", parents_of(shape, "parents_of", ONE)),
        ("_children", children_of(shape, "children", MANY)),
        ("_children_of", children_of(shape, "children_of", ONE)),
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

/// What a function is asked about: an array of ids, or one. One has functions of its own because the planner takes an
/// array of unknown length for ten elements, and then rather reads a small table whole.
#[derive(Clone, Copy)]
struct Asked {
    /// The argument.
    argument: &'static str,
    many: bool,
}

const MANY: Asked = Asked { argument: "authz__ids {{key}}[]", many: true };
const ONE: Asked = Asked { argument: "authz__id {{key}}", many: false };

impl Asked {
    /// `FROM ... WHERE`: the rows of `table` whose `column` is among the ids asked about.
    fn rows(self, table: &QualName, column: &Ident) -> String {
        if self.many {
            let ids = "unnest(authz__ids) AS authz__s(authz__id)";
            format!("FROM {ids} JOIN {table} AS this ON this.{column} = authz__s.authz__id WHERE true")
        } else {
            // The parameter by its number: no column can be called that.
            format!("FROM {table} AS this WHERE this.{column} = $1")
        }
    }
}

/// A function in SQL that the planner inlines.
fn function(name: &str, asked: Asked, returns: &str, body: &str) -> String {
    format!(
        "CREATE OR REPLACE FUNCTION {{{{{name}}}}}({}) RETURNS TABLE({returns})
LANGUAGE sql STABLE ROWS 10 AS $authz$
{body}
$authz$",
        asked.argument
    )
}

/// The objects among some ids.
fn objects_of(shape: &Shape, name: &str, asked: Asked) -> String {
    let rows = asked.rows(&shape.table, &shape.key);
    let body = format!("SELECT {} {rows}{}", key(shape), and(shape.objects.as_deref()));
    function(name, asked, "id {{key}}", &body)
}

/// The effective parents of some ids. An object is not its own parent.
fn parents_of(shape: &Shape, name: &str, asked: Asked) -> String {
    let (k, table) = (shape.key_sql, &shape.table);
    let own = and(shape.objects.as_deref());
    let mut sources = Vec::new();
    for c in &shape.columns {
        sources.push(format!(
            "SELECT {key}, this.{column}::{k} {rows} AND this.{column} IS NOT NULL{own}{c}",
            key = key(shape),
            column = c.column,
            rows = asked.rows(table, &shape.key),
            c = and(c.condition.as_deref()),
        ));
    }
    for t in &shape.tables {
        sources.push(format!(
            "SELECT l.child, l.parent FROM
    (SELECT this.{child}::{k} AS child, this.{parent}::{k} AS parent {from}{rows}) AS l
    WHERE EXISTS (SELECT FROM {table} AS this WHERE this.{kc} = l.child{own}{c})",
            child = t.child,
            parent = t.parent,
            from = asked.rows(&t.table, &t.child),
            rows = and(t.rows.as_deref()),
            kc = shape.key,
            c = and(t.condition.as_deref()),
        ));
    }
    let body = format!(
        "SELECT s.child, s.parent FROM (
  {}
) AS s(child, parent)
WHERE s.child <> s.parent AND EXISTS (SELECT FROM {table} AS this WHERE this.{kc} = s.parent{own})",
        sources.join("\n  UNION\n  "),
        kc = shape.key,
    );
    function(name, asked, "child {{key}}, parent {{key}}", &body)
}

/// Whatever names some ids as parents, whether its link counts or not.
fn children_of(shape: &Shape, name: &str, asked: Asked) -> String {
    let k = shape.key_sql;
    let mut sources = Vec::new();
    for c in &shape.columns {
        let rows = asked.rows(&shape.table, &c.column);
        sources.push(format!("SELECT {} {rows} AND this.{} IS NOT NULL", key(shape), shape.key));
    }
    for t in &shape.tables {
        let rows = asked.rows(&t.table, &t.parent);
        sources.push(format!("SELECT this.{child}::{k} {rows} AND this.{child} IS NOT NULL", child = t.child));
    }
    function(name, asked, "child {{key}}", &sources.join("\nUNION ALL\n"))
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
