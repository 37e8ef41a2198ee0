//! Verify and repair. Nothing here shares derivation SQL with the upkeep it judges: effective parents are computed from
//! the child's row, with `CASE` for each condition, and checks compare what is stored with what follows from it.

use super::super::super::ident::literal;
use super::super::super::objects::{Object, ObjectKind, Phase};
use super::GraphEmitted;
use super::fragments::and;
use super::numbered::verify as numbered;
use super::shape::Shape;
use super::template::Template;

/// The policy's verify functions of one graph: the part of the name after the graph's, and the statement.
pub(super) fn functions(shape: &Shape) -> Vec<(&'static str, String)> {
    let parts = |text: &str, filter: &str| {
        let (rows, links, is_row) = match &shape.numbered {
            Some(n) => (numbered::own_rows(n, filter), numbered::own_links(n, filter), numbered::is_row(n)),
            None => (own_rows(shape, filter), own_links(shape, filter), is_row(shape)),
        };
        text.replace("{{own_rows}}", &rows).replace("{{own_links}}", &links).replace("{{is_row}}", &is_row)
    };
    let range = "(authz__after IS NULL OR COMPARED > authz__after) AND COMPARED <= authz__upto";
    let mut functions = shape.numbered.as_ref().map(numbered::functions).unwrap_or_default();
    functions.extend([
        ("_expect", parts(include_str!("../../../../sql/graph/expect.sql"), "COMPARED = $1")),
        ("_walk", include_str!("../../../../sql/graph/walk.sql").to_owned()),
        ("_range", include_str!("../../../../sql/graph/range.sql").to_owned()),
        ("_wrong", parts(include_str!("../../../../sql/graph/wrong.sql"), range)),
        ("_verify", include_str!("../../../../sql/graph/verify.sql").to_owned()),
        ("_repair", include_str!("../../../../sql/graph/repair.sql").to_owned()),
    ]);
    functions
}

/// What differs between the kinds of graphs in the templates of verify and repair.
pub(super) fn values(shape: &Shape, fill: &mut Template) -> Result<(), String> {
    let title = literal(&shape.title);
    let (own_range, without_number, prepare, ids) = match &shape.numbered {
        Some(n) => (
            numbered::own_range(n),
            numbered::without_number(n).replace("{{title}}", &title),
            numbered::repair_prepare(n),
            numbered::repair_ids(n),
        ),
        None => {
            let key = compared(shape, &shape.key.to_string());
            let range = format!(
                "(SELECT {key} AS id FROM {} AS this\n         WHERE authz__after IS NULL OR {key} > authz__after ORDER BY 1 LIMIT authz__size)",
                shape.table
            );
            let ids = format!("SELECT u.id::{} FROM unnest(v_ids) AS u(id) WHERE u.id <> ''", shape.key_sql);
            (range, String::new(), String::new(), ids)
        }
    };
    fill.set("own_range", own_range);
    fill.set("without_number", without_number);
    fill.set("repair_prepare", prepare);
    fill.set("repair_ids", ids);
    let named = |what: &str, id: &str| match (&shape.numbered, what) {
        (Some(_), _) => fill.fill(&format!("{{{{{what}}}}}({id})")),
        (None, "type") => Ok(literal(&shape.type_name)),
        (None, _) => Ok(format!("{id}::text")),
    };
    let values = [
        ("ring_type", named("type", "v_id")?),
        ("ring_text", named("text", "v_id")?),
        ("id_type", named("type", "u.id")?),
        ("id_text", named("text", "u.id")?),
        (
            "list",
            match &shape.numbered {
                Some(_) => fill.fill("(SELECT jsonb_agg({{type}}(x) || ' ' || {{text}}(x)) FROM unnest(")?,
                None => "to_jsonb((".to_owned(),
            },
        ),
        ("list_end", if shape.numbered.is_some() { ") AS l(x))" } else { ")::text[])" }.to_owned()),
    ];
    for (name, value) in values {
        fill.set(name, value);
    }
    Ok(())
}

/// A column of `this` as keys are compared: text in the index's collation, whatever the table's is.
fn compared(shape: &Shape, column: &str) -> String {
    let collation = if shape.key_sql == "text" { " COLLATE pg_catalog.\"default\"" } else { "" };
    format!("this.{column}::{}{collation}", shape.key_sql)
}

/// Objects with what their own row says of each link: `id`, `c1`... (the parent in a column, where it counts), `t1`...
/// (whether links in a table count).
fn own_rows(shape: &Shape, filter: &str) -> String {
    let key = compared(shape, &shape.key.to_string());
    let mut columns = vec![format!("{key} AS id")];
    for (i, c) in shape.columns.iter().enumerate() {
        let condition = c.condition.as_deref().unwrap_or("true");
        columns.push(format!("CASE WHEN ({condition}\n) THEN {} END AS c{i}", compared(shape, &c.column.to_string())));
    }
    for (i, t) in shape.tables.iter().enumerate() {
        columns.push(format!("({}\n) IS TRUE AS t{i}", t.condition.as_deref().unwrap_or("true")));
    }
    format!(
        "SELECT {} FROM {} AS this WHERE {}{}",
        columns.join(", "),
        shape.table,
        filter.replace("COMPARED", &key),
        and(shape.objects.as_deref())
    )
}

/// `SELECT id, parent` of every link of the rows in `o`, as [`own_rows`] made it.
fn own_links(shape: &Shape, filter: &str) -> String {
    let mut sources = Vec::new();
    for i in 0..shape.columns.len() {
        sources.push(format!("SELECT o.id, o.c{i} FROM o"));
    }
    for (i, t) in shape.tables.iter().enumerate() {
        let child = compared(shape, &t.child.to_string());
        sources.push(format!(
            "SELECT o.id, l.parent FROM o JOIN (SELECT {child} AS child, {} AS parent FROM {} AS this WHERE {}{}) AS l ON l.child = o.id WHERE o.t{i}",
            compared(shape, &t.parent.to_string()),
            t.table,
            filter.replace("COMPARED", &child),
            and(t.rows.as_deref())
        ));
    }
    sources.join("\n    UNION ALL\n    ")
}

/// `EXISTS (...)`: `q.parent` is an object.
fn is_row(shape: &Shape) -> String {
    format!(
        "EXISTS (SELECT FROM {} AS this WHERE {} = q.parent{})",
        shape.table,
        compared(shape, &shape.key.to_string()),
        and(shape.objects.as_deref())
    )
}

/// The public functions that cover all graphs of a policy: `authz.verify_batch`, `authz.verify`, `authz.repair`.
pub fn emit_verify(graphs: &[GraphEmitted]) -> Vec<Object> {
    let mut fill = Template::default();
    let call = |g: &GraphEmitted, part: &str| {
        super::super::super::ident::QualName::new(super::SCHEMA, format!("{}{part}", g.tables.name)).to_string()
    };
    let mut batches = String::new();
    let mut repairs = String::new();
    for (i, g) in graphs.iter().enumerate() {
        let next = graphs.get(i + 1).map_or("NULL".to_owned(), |n| literal(&format!("{}:", n.tables.name)));
        batches += &format!(
            "  IF v_graph = {name} THEN
    SELECT b.upto, b.checked, b.wrong INTO v_upto, $3, $4 FROM {verify}(v_after, v_size) AS b;
    $1 := CASE WHEN v_upto IS NULL THEN {next} ELSE {name} || ':' || v_upto END;
    RETURN;
  END IF;
",
            name = literal(&g.tables.name),
            verify = call(g, "_verify"),
        );
        repairs += &format!(
            "  IF $1 IN ({}, {}) THEN
    PERFORM {}($2);
    RETURN;
  END IF;
",
            literal(&g.tables.name),
            literal(&g.tables.title),
            call(g, "_repair"),
        );
    }
    fill.set("first", graphs.first().map_or("NULL".to_owned(), |g| literal(&format!("{}:", g.tables.name))));
    fill.set("batches", batches);
    fill.set("repairs", repairs);
    let public = [
        (
            "authz.verify_batch",
            "authz.verify_batch(text, integer)",
            include_str!("../../../../sql/graph/public_batch.sql"),
        ),
        ("authz.verify", "authz.verify()", include_str!("../../../../sql/graph/public_verify.sql")),
        ("authz.repair", "authz.repair(text, text[])", include_str!("../../../../sql/graph/public_repair.sql")),
    ];
    let mut out = Vec::new();
    for (name, signature, text) in public {
        // The templates are part of this program and every placeholder is set above, as a test shows.
        let sql = fill.fill(text).unwrap_or_default();
        let object = |kind, name: String, sql| Object {
            kind,
            name,
            sql,
            locks: Vec::new(),
            phase: Phase::Functions,
            graph: None,
        };
        out.push(object(ObjectKind::Function, name.to_owned(), sql));
        let revoke = format!("REVOKE ALL ON FUNCTION {signature} FROM PUBLIC");
        out.push(object(ObjectKind::Grant, format!("{name}: owner only"), revoke));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_functions_are_whole_without_graphs() {
        assert!(emit_verify(&[]).iter().all(|o| !o.sql.is_empty() && !o.sql.contains("{{")));
    }
}
