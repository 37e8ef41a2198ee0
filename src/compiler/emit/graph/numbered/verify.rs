//! Verify of a numbered graph: parents are worked out from the child's row, by expressions of their own.

use super::super::fragments::and;
use super::{Member, NUMBER, Numbered, text_of};
use crate::compiler::ident::literal;

/// A member's rows with their numbers under `authz__m`.
fn rows(member: &Member) -> String {
    format!(
        "{} AS this JOIN {} AS authz__m ON ({}) = ({})",
        member.table,
        member.numbers,
        key(member, "authz__m"),
        member.own().join(", ")
    )
}

fn key(member: &Member, alias: &str) -> String {
    member.named().iter().map(|k| format!("{alias}.{k}")).collect::<Vec<_>>().join(", ")
}

/// The number of the object of a type with a key (SQL), NULL when there is none.
fn number(member: &Member, id: &[String]) -> String {
    format!(
        "(SELECT authz__p.{NUMBER} FROM {} AS authz__p WHERE ({}) = ({}))",
        member.numbers,
        key(member, "authz__p"),
        id.join(", ")
    )
}

/// Objects with what their own row says of each link; see the other kind's.
pub(in super::super) fn own_rows(graph: &Numbered, filter: &str) -> String {
    let filter = filter.replace("COMPARED", &format!("authz__m.{NUMBER}"));
    let mut arms = Vec::new();
    for (at, member) in graph.members.iter().enumerate() {
        let mut columns = vec![format!("authz__m.{NUMBER} AS id")];
        for (i, link) in graph.columns.iter().enumerate() {
            let value = match graph.members.get(link.parent) {
                Some(parent) if link.child == at => {
                    let counts = format!("true{}{}", and(link.test.as_deref()), and(link.condition.as_deref()));
                    format!("CASE WHEN {counts} THEN {} END", number(parent, &link.id))
                }
                _ => "NULL::bigint".to_owned(),
            };
            columns.push(format!("{value} AS c{i}"));
        }
        for (i, link) in graph.tables.iter().enumerate() {
            let counts = if link.child == at {
                format!("({}\n) IS TRUE", link.condition.as_deref().unwrap_or("true"))
            } else {
                "false".to_owned()
            };
            columns.push(format!("{counts} AS t{i}"));
        }
        arms.push(format!(
            "SELECT {} FROM {} WHERE {filter}{}",
            columns.join(", "),
            rows(member),
            and(member.objects.as_deref())
        ));
    }
    arms.join("\n  UNION ALL\n  ")
}

/// `SELECT id, parent` of every link of the rows in `o`.
pub(in super::super) fn own_links(graph: &Numbered, filter: &str) -> String {
    let filter = filter.replace("COMPARED", &format!("authz__m.{NUMBER}"));
    let this = |columns: &[super::Ident]| columns.iter().map(|c| format!("this.{c}")).collect::<Vec<_>>();
    let mut sources: Vec<String> =
        (0..graph.columns.len()).map(|i| format!("SELECT o.id, o.c{i} FROM o WHERE o.c{i} IS NOT NULL")).collect();
    for (i, link) in graph.tables.iter().enumerate() {
        let Some((child, parent)) = graph.ends(link.child, link.parent) else { continue };
        sources.push(format!(
            "SELECT o.id, l.parent FROM o JOIN (SELECT authz__m.{NUMBER} AS child, {} AS parent FROM {} AS this JOIN {} AS authz__m ON ({}) = ({}) WHERE {filter}{}) AS l ON l.child = o.id WHERE o.t{i} AND l.parent IS NOT NULL",
            number(parent, &this(&link.subject)),
            link.table,
            child.numbers,
            key(child, "authz__m"),
            this(&link.object).join(", "),
            and(link.rows.as_deref())
        ));
    }
    sources.join("\n    UNION ALL\n    ")
}

/// `q.parent` is an object.
pub(in super::super) fn is_row(graph: &Numbered) -> String {
    let one = |m: &Member| {
        format!("EXISTS (SELECT FROM {} WHERE authz__m.{NUMBER} = q.parent{})", rows(m), and(m.objects.as_deref()))
    };
    format!("({})", graph.members.iter().map(one).collect::<Vec<_>>().join(" OR "))
}

/// The next numbers of objects after `authz__after`.
pub(in super::super) fn own_range(graph: &Numbered) -> String {
    let one = |m: &Member| {
        format!(
            "(SELECT authz__m.{NUMBER} AS id FROM {} AS authz__m WHERE authz__after IS NULL OR authz__m.{NUMBER} > authz__after ORDER BY 1 LIMIT authz__size)",
            m.numbers
        )
    };
    graph.members.iter().map(one).collect::<Vec<_>>().join("\n      UNION\n      ")
}

/// Functions that say which object a number is.
pub(in super::super) fn functions(graph: &Numbered) -> Vec<(&'static str, String)> {
    let first = |value: &dyn Fn(&Member) -> String, none: &str| {
        let all: Vec<String> = graph
            .members
            .iter()
            .map(|m| format!("(SELECT {} FROM {} AS authz__m WHERE authz__m.{NUMBER} = $1)", value(m), m.numbers))
            .collect();
        format!("COALESCE({}, {none})", all.join(", "))
    };
    let function = |name: &str, expression: String| {
        format!(
            "CREATE OR REPLACE FUNCTION {{{{{name}}}}}(authz__id bigint) RETURNS text\nLANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $authz$\nSELECT {expression}\n$authz$"
        )
    };
    vec![
        ("_type", function("type", first(&|m| literal(&m.name), "'unknown'"))),
        ("_text", function("text", first(&|m| m.text("authz__m"), "'#' || $1::text"))),
    ]
}

/// What finds objects without a number: a statement that adds to `wrong`.
pub(in super::super) fn without_number(graph: &Numbered) -> String {
    let one = |m: &Member| {
        format!(
            "  wrong := wrong || COALESCE((SELECT jsonb_agg(jsonb_build_object('graph', {{{{title}}}}, 'type', {}, 'id', q.id,
      'stored', NULL, 'expected', NULL, 'what', 'it is not in the index')) FROM (
      SELECT {} AS id FROM {} AS this WHERE {} AND NOT EXISTS (SELECT FROM {} AS authz__m WHERE {}){} LIMIT 1000) AS q), '[]');",
            literal(&m.name),
            text_of(&m.own()),
            m.table,
            m.has_key(),
            m.numbers,
            m.is_numbered("authz__m", &m.own()),
            and(m.objects.as_deref())
        )
    };
    graph.members.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// What repair does first: every row it was told of gets a number.
pub(in super::super) fn repair_prepare(graph: &Numbered) -> String {
    let one = |m: &Member| {
        format!(
            "  INSERT INTO {} ({}) SELECT {} FROM {} AS this WHERE {} AND {} = ANY (v_ids) ON CONFLICT DO NOTHING;",
            m.numbers,
            m.named().join(", "),
            m.own().join(", "),
            m.table,
            m.has_key(),
            text_of(&m.own())
        )
    };
    graph.members.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// The numbers that repair was told of. The same text may name objects of several types; all of them are repaired.
pub(in super::super) fn repair_ids(graph: &Numbered) -> String {
    let mut arms: Vec<String> = graph
        .members
        .iter()
        .map(|m| {
            format!(
                "SELECT authz__m.{NUMBER} FROM {} AS authz__m WHERE {} = ANY (v_ids)",
                m.numbers,
                m.text("authz__m")
            )
        })
        .collect();
    arms.push("SELECT substr(u.id, 2)::bigint FROM unnest(v_ids) AS u(id) WHERE u.id ~ '^#[0-9]{1,18}$'".to_owned());
    arms.join(" UNION ")
}
