//! The triggers of a numbered graph: numbers are given before the index is kept and taken after.

use super::super::super::super::ident::QualName;
use super::super::fragments::and;
use super::super::triggers::Bodies;
use super::{Member, NUMBER, Numbered, TableLink};

/// `authz__ids := ` the numbers of the rows of a transition table.
fn ids_of(member: &Member, rows: &str) -> String {
    format!(
        "  authz__ids := ARRAY(SELECT authz__m.{NUMBER} FROM {rows} AS this JOIN {});",
        member.join("authz__m", &member.own())
    )
}

/// The numbers of keys, from a query of keys first.
fn numbers_of(member: &Member, keys: &str) -> String {
    let names = member.named();
    let own: Vec<String> = names.iter().map(|k| format!("m.{k}")).collect();
    format!("SELECT authz__m.{NUMBER} FROM ({keys}) AS m({}) JOIN {}", names.join(", "), member.join("authz__m", &own))
}

/// Takes the numbers of keys that no row has any more.
fn take_numbers(member: &Member, rows: &str) -> String {
    format!(
        "  DELETE FROM {} AS authz__m USING {rows} AS this WHERE {} AND NOT EXISTS (SELECT FROM {} AS this WHERE {});",
        member.numbers,
        member.is_numbered("authz__m", &member.own()),
        member.table,
        member.is_numbered("authz__m", &member.own())
    )
}

/// Triggers on a type's own table.
pub(in super::super) fn type_bodies(graph: &Numbered, at: usize, member: &Member) -> Bodies {
    let columns: Vec<_> = graph.columns.iter().filter(|l| l.child == at).collect();
    let tables = graph.tables.iter().filter(|l| l.child == at);
    let key = member.own().join(", ");
    // What the graph reads of a row: whether it is an object, and each link with its condition applied.
    let mut reads = vec![key.clone()];
    reads.extend(member.objects.as_ref().map(|o| format!("COALESCE(({o}\n), false)")));
    let mut raw = Vec::new();
    for link in &columns {
        let counts = format!("true{}{}", and(link.test.as_deref()), and(link.condition.as_deref()));
        let counts = (counts != "true").then_some(counts);
        for id in &link.id {
            reads.push(counts.as_ref().map_or(id.clone(), |c| format!("CASE WHEN {c} THEN {id} END")));
            raw.push(match &link.test {
                Some(test) => format!("CASE WHEN {test} THEN {id} END"),
                None => id.clone(),
            });
        }
    }
    reads.extend(tables.filter_map(|t| t.condition.as_ref().map(|c| format!("COALESCE(({c}\n), false)"))));
    let reads = reads.join(", ");
    let differs = |list: &str, from: &str, to: &str| {
        format!("SELECT {list} FROM authz__{from} AS this EXCEPT SELECT {list} FROM authz__{to} AS this")
    };
    let moved = std::iter::once(key.clone()).chain(raw.clone()).collect::<Vec<_>>().join(", ");
    let (same_moved, find_moved) = if raw.is_empty() {
        (String::new(), "  authz__moved := '{}';".to_owned())
    } else {
        (
            format!(" AND NOT EXISTS ({})", differs(&moved, "old", "new")),
            format!("  authz__moved := ARRAY({});", numbers_of(member, &differs(&moved, "new", "old"))),
        )
    };
    let changed = format!("({}) UNION ALL ({})", differs(&reads, "old", "new"), differs(&reads, "new", "old"));
    Bodies {
        insert: format!(
            "  {};\n{}\n  PERFORM {{{{refresh}}}}(authz__ids);",
            member.give_numbers("authz__new"),
            ids_of(member, "authz__new")
        ),
        update: format!(
            "  IF NOT EXISTS ({}){same_moved} THEN
    RETURN NULL;
  END IF;
  {};
  authz__ids := ARRAY(SELECT DISTINCT n.n FROM ({}) AS n(n));
{find_moved}
  PERFORM {{{{rederive}}}}(authz__ids || authz__moved, authz__moved, false);
  IF EXISTS (SELECT {key} FROM authz__old AS this EXCEPT SELECT {key} FROM authz__new AS this) THEN
  {}
  END IF;",
            differs(&reads, "old", "new"),
            member.give_numbers("authz__new"),
            numbers_of(member, &changed),
            take_numbers(member, "authz__old")
        ),
        delete: format!(
            "{}\n  PERFORM {{{{refresh}}}}(authz__ids);\n{}",
            ids_of(member, "authz__old"),
            take_numbers(member, "authz__old")
        ),
        truncate: format!(
            "  PERFORM {{{{refresh}}}}(ARRAY(SELECT authz__m.{NUMBER} FROM {numbers} AS authz__m));\n  DELETE FROM {numbers} AS authz__m WHERE NOT EXISTS (SELECT FROM {} AS this WHERE {});",
            member.table,
            member.is_numbered("authz__m", &member.own()),
            numbers = member.numbers
        ),
    }
}

/// The link tables without repeats, in order, and whether they are ours.
pub(in super::super) fn link_tables(graph: &Numbered) -> Vec<(&QualName, bool)> {
    let mut seen: Vec<(&QualName, bool)> = Vec::new();
    for t in &graph.tables {
        if !seen.iter().any(|(table, _)| **table == t.table) {
            seen.push((&t.table, t.ours));
        }
    }
    seen
}

/// Triggers on a link table, which several links may share.
pub(in super::super) fn link_bodies(graph: &Numbered, table: &QualName) -> Bodies {
    let links: Vec<(&TableLink, &Member)> = (graph.tables.iter().filter(|t| t.table == *table))
        .filter_map(|t| Some((t, graph.members.get(t.child)?)))
        .collect();
    let this = |columns: &[super::Ident]| columns.iter().map(|c| format!("this.{c}")).collect::<Vec<_>>().join(", ");
    let keys = |link: &TableLink, rows: &str| {
        format!("SELECT {} FROM {rows} AS this WHERE true{}", this(&link.object), and(link.rows.as_deref()))
    };
    let ids = |rows: &str| {
        let sources: Vec<String> = links.iter().map(|(link, member)| numbers_of(member, &keys(link, rows))).collect();
        format!("  authz__ids := ARRAY({});\n  PERFORM {{{{refresh}}}}(authz__ids);", sources.join("\n    UNION\n    "))
    };
    let changed: Vec<String> = links
        .iter()
        .map(|(link, member)| {
            let side = |rows: &str| {
                format!(
                    "SELECT {}, {} FROM {rows} AS this WHERE true{}",
                    this(&link.object),
                    this(&link.subject),
                    and(link.rows.as_deref())
                )
            };
            let (old, new) = (side("authz__old"), side("authz__new"));
            numbers_of(member, &format!("({old} EXCEPT {new}) UNION ALL ({new} EXCEPT {old})"))
        })
        .collect();
    Bodies {
        insert: ids("authz__new"),
        update: format!(
            "  authz__ids := ARRAY({});
  IF cardinality(authz__ids) > 0 THEN
    PERFORM {{{{refresh}}}}(authz__ids);
  END IF;",
            changed.join("\n    UNION\n    ")
        ),
        delete: ids("authz__old"),
        truncate: include_str!("../../../../../sql/graph/truncate_links.sql").to_owned(),
    }
}
