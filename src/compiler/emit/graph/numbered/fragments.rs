//! The policy's functions of a numbered graph: the same as of any other, from numbers to numbers.

use super::super::fragments::and;
use super::{Member, NUMBER, Numbered, RowLink, TableLink};

/// What a function is asked about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// An array of numbers.
    Many,
    /// One number; see [`super::super::fragments`].
    One,
    /// Everything.
    All,
}

impl Asked {
    fn argument(self) -> &'static str {
        match self {
            Asked::Many => "authz__ids bigint[]",
            Asked::One => "authz__id bigint",
            Asked::All => "",
        }
    }

    /// `FROM` the numbers asked about, under `authz__m`.
    fn from(self, member: &Member) -> String {
        match self {
            Asked::Many => format!(
                "unnest(authz__ids) AS authz__s(authz__id) JOIN {} AS authz__m ON authz__m.{NUMBER} = authz__s.authz__id",
                member.numbers
            ),
            Asked::One | Asked::All => format!("{} AS authz__m", member.numbers),
        }
    }

    /// Which of them.
    fn only(self) -> String {
        match self {
            Asked::One => format!("authz__m.{NUMBER} = $1"),
            Asked::Many | Asked::All => "true".to_owned(),
        }
    }
}

/// The functions: the part of the name after the graph's, and the statement.
pub(in super::super) fn functions(graph: &Numbered) -> Vec<(&'static str, String)> {
    let make = |name: &str, asked, returns: &str, query: String| function(name, asked, returns, &query);
    let pair = "child bigint, parent bigint";
    vec![
        ("_objects", make("objects", Asked::Many, "id bigint", objects(graph, Asked::Many))),
        ("_is_object", make("is_object", Asked::One, "id bigint", objects(graph, Asked::One))),
        ("_parents", make("parents", Asked::Many, pair, parents(graph, Asked::Many))),
        ("_parents_of", make("parents_of", Asked::One, pair, parents(graph, Asked::One))),
        ("_children", make("children", Asked::Many, "child bigint", children(graph, Asked::Many))),
        ("_children_of", make("children_of", Asked::One, "child bigint", children(graph, Asked::One))),
        ("_columns", make("columns", Asked::All, pair, columns(graph))),
        ("_all_links", make("all_links", Asked::All, pair, links_sql(graph))),
    ]
}

fn function(name: &str, asked: Asked, returns: &str, query: &str) -> String {
    let rows = if asked == Asked::All { 1_000_000 } else { 10 };
    format!(
        "CREATE OR REPLACE FUNCTION {{{{{name}}}}}({}) RETURNS TABLE({returns})
LANGUAGE sql STABLE ROWS {rows} AS $authz$
{query}
$authz$",
        asked.argument()
    )
}

/// `SELECT id` of every object.
pub(in super::super) fn objects_sql(graph: &Numbered) -> String {
    objects(graph, Asked::All)
}

/// `SELECT child, parent` of every effective link.
pub(in super::super) fn links_sql(graph: &Numbered) -> String {
    parents(graph, Asked::All)
}

fn union(parts: Vec<String>, empty: &str, all: bool) -> String {
    match parts.is_empty() {
        true => format!("SELECT {empty} WHERE false"),
        false => parts.join(if all { "\nUNION ALL\n" } else { "\nUNION\n" }),
    }
}

fn objects(graph: &Numbered, asked: Asked) -> String {
    let one = |m: &Member| {
        let keys: Vec<String> = m.own();
        format!(
            "SELECT authz__m.{NUMBER} AS id FROM {} JOIN {} AS this ON {} WHERE {}{}",
            asked.from(m),
            m.table,
            m.is_numbered("authz__m", &keys),
            asked.only(),
            and(m.objects.as_deref())
        )
    };
    union(graph.members.iter().map(one).collect(), "NULL::bigint AS id", true)
}

fn parents(graph: &Numbered, asked: Asked) -> String {
    let rows = graph.columns.iter().filter_map(|l| row_parents(graph, l, asked));
    let tables = graph.tables.iter().filter_map(|l| table_parents(graph, l, asked));
    format!(
        "SELECT s.child, s.parent FROM (\n{}\n) AS s(child, parent)\nWHERE s.child <> s.parent",
        union(rows.chain(tables).collect(), "NULL::bigint, NULL::bigint", false)
    )
}

fn row_parents(graph: &Numbered, link: &RowLink, asked: Asked) -> Option<String> {
    let (child, parent) = graph.ends(link.child, link.parent)?;
    Some(format!(
        "SELECT authz__m.{NUMBER}, authz__p.{NUMBER} FROM {} JOIN {} AS this ON {} JOIN {} WHERE {}{}{}{} AND {}",
        asked.from(child),
        child.table,
        child.is_numbered("authz__m", &child.own()),
        parent.join("authz__p", &link.id),
        asked.only(),
        and(link.test.as_deref()),
        and(child.objects.as_deref()),
        and(link.condition.as_deref()),
        parent.exists("authz__p", super::KEY)
    ))
}

fn table_parents(graph: &Numbered, link: &TableLink, asked: Asked) -> Option<String> {
    let (child, parent) = graph.ends(link.child, link.parent)?;
    let this = |columns: &[super::Ident]| columns.iter().map(|c| format!("this.{c}")).collect::<Vec<_>>();
    let list = |m: &Member, alias: &str, prefix: &str| {
        let names = m.named();
        let one = |k: &String| format!("{alias}.{k} AS {}", k.replacen(super::KEY, prefix, 1));
        names.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let own: Vec<String> =
        child.named().iter().map(|k| format!("l.{}", k.replacen(super::KEY, "authz__c", 1))).collect();
    let same: Vec<String> = child.own().iter().zip(&own).map(|(a, b)| format!("{a} = {b}")).collect();
    Some(format!(
        "SELECT l.child, l.parent FROM (SELECT authz__m.{NUMBER} AS child, authz__p.{NUMBER} AS parent, {}, {} FROM {} JOIN {} AS this ON {} JOIN {} WHERE {}{}) AS l
  WHERE EXISTS (SELECT FROM {} AS this WHERE {}{}{}) AND {}",
        list(child, "authz__m", "authz__c"),
        list(parent, "authz__p", "authz__p"),
        asked.from(child),
        link.table,
        child.is_numbered("authz__m", &this(&link.object)),
        parent.join("authz__p", &this(&link.subject)),
        asked.only(),
        and(link.rows.as_deref()),
        child.table,
        same.join(" AND "),
        and(child.objects.as_deref()),
        and(link.condition.as_deref()),
        parent.exists("l", "authz__p")
    ))
}

/// Whatever names some numbers' objects as parents, whether its link counts or not.
fn children(graph: &Numbered, asked: Asked) -> String {
    let this = |columns: &[super::Ident]| columns.iter().map(|c| format!("this.{c}")).collect::<Vec<_>>();
    let rows = graph.columns.iter().filter_map(|link| {
        let (child, parent) = graph.ends(link.child, link.parent)?;
        let cast = if link.as_text { "::text" } else { "" };
        let names = parent.named().into_iter().map(|k| format!("authz__m.{k}{cast}"));
        let same: Vec<String> = this(&link.holds).into_iter().zip(names).map(|(a, b)| format!("{a} = {b}")).collect();
        Some(format!(
            "SELECT authz__c.{NUMBER} AS child FROM {} JOIN {} AS this ON {} JOIN {} WHERE {}{}",
            asked.from(parent),
            child.table,
            same.join(" AND "),
            child.join("authz__c", &child.own()),
            asked.only(),
            and(link.test.as_deref())
        ))
    });
    let tables = graph.tables.iter().filter_map(|link| {
        let (child, parent) = graph.ends(link.child, link.parent)?;
        Some(format!(
            "SELECT authz__c.{NUMBER} AS child FROM {} JOIN {} AS this ON {} JOIN {} WHERE {}",
            asked.from(parent),
            link.table,
            parent.is_numbered("authz__m", &this(&link.subject)),
            child.join("authz__c", &this(&link.object)),
            asked.only()
        ))
    });
    union(rows.chain(tables).collect(), "NULL::bigint AS child", true)
}

/// Every parent named by the child's row, whether it counts or not: what AZ713 walks.
fn columns(graph: &Numbered) -> String {
    let rows = graph.columns.iter().filter_map(|link| {
        let (child, parent) = graph.ends(link.child, link.parent)?;
        Some(format!(
            "SELECT authz__m.{NUMBER} AS child, authz__p.{NUMBER} AS parent FROM {} JOIN {} WHERE true{}",
            child.numbered_rows(),
            parent.join("authz__p", &link.id),
            and(link.test.as_deref())
        ))
    });
    union(rows.collect(), "NULL::bigint AS child, NULL::bigint AS parent", true)
}
