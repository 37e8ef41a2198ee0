//! The statement-level triggers that keep a graph's index. They cannot be `UPDATE OF` (transition tables forbid it), so
//! the update triggers first compare what the graph reads of the rows before and after, and return when it is equal.

use super::super::super::ident::QualName;
use super::super::super::objects::{Lock, LockMode, Object, ObjectKind, Phase};
use super::SCHEMA;
use super::fragments::and;
use super::numbered::triggers as numbered;
use super::shape::Shape;
use super::template::Template;

/// The trigger functions and triggers of a graph.
pub(super) fn objects(shape: &Shape, fill: &Template) -> Result<Vec<Object>, String> {
    let mut out = Vec::new();
    if let Some(graph) = &shape.numbered {
        for (i, member) in graph.members.iter().enumerate() {
            let on = On { tag: format!("t{i}"), table: &member.table, ours: false };
            add_table(shape, fill, &on, &numbered::type_bodies(graph, i, member), &mut out)?;
        }
        for (i, (table, ours)) in numbered::link_tables(graph).into_iter().enumerate() {
            let on = On { tag: format!("l{i}"), table, ours };
            add_table(shape, fill, &on, &numbered::link_bodies(graph, table), &mut out)?;
        }
        return Ok(out);
    }
    let on = On { tag: "t".to_owned(), table: &shape.table, ours: false };
    add_table(shape, fill, &on, &type_bodies(shape), &mut out)?;
    for (i, (table, ours)) in shape.link_tables().into_iter().enumerate() {
        let on = On { tag: format!("l{i}"), table, ours };
        add_table(shape, fill, &on, &link_bodies(shape, table), &mut out)?;
    }
    Ok(out)
}

/// The table that triggers are on.
struct On<'a> {
    /// What tells them from the graph's others.
    tag: String,
    table: &'a QualName,
    /// It is made by the apply, and cannot be locked before.
    ours: bool,
}

/// The bodies of one table's triggers.
pub(super) struct Bodies {
    pub(super) insert: String,
    pub(super) update: String,
    pub(super) delete: String,
    pub(super) truncate: String,
}

fn add_table(
    shape: &Shape,
    fill: &Template,
    on: &On<'_>,
    bodies: &Bodies,
    out: &mut Vec<Object>,
) -> Result<(), String> {
    let On { tag, table, ours } = on;
    let events = [
        ("ins", "INSERT", "REFERENCING NEW TABLE AS authz__new ", &bodies.insert),
        ("upd", "UPDATE", "REFERENCING OLD TABLE AS authz__old NEW TABLE AS authz__new ", &bodies.update),
        ("del", "DELETE", "REFERENCING OLD TABLE AS authz__old ", &bodies.delete),
        ("trn", "TRUNCATE", "", &bodies.truncate),
    ];
    for (short, _, _, body) in events {
        let function = QualName::new(SCHEMA, format!("{}_{tag}_{short}", shape.name));
        let sql = fill.fill(&format!(
            "CREATE OR REPLACE FUNCTION {function}() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $authz$
#variable_conflict use_column
DECLARE
  authz__ids {{{{key}}}}[];
  authz__moved {{{{key}}}}[];
BEGIN
{body}
  RETURN NULL;
END
$authz$"
        ))?;
        let name = format!("{SCHEMA}.{}_{tag}_{short}", shape.name);
        out.push(Object {
            kind: ObjectKind::Function,
            name,
            sql,
            locks: Vec::new(),
            phase: Phase::Upkeep,
            graph: Some(shape.name.clone()),
        });
    }
    for (short, event, referencing, _) in events {
        // Two of a graph may be on one table.
        let name = match tag.as_str() {
            "t" => format!("authz_{}_{short}", shape.name),
            tag => format!("authz_{}_{tag}_{short}", shape.name),
        };
        let trigger = super::super::super::ident::Ident::new(name.clone());
        let function = QualName::new(SCHEMA, format!("{}_{tag}_{short}", shape.name));
        out.push(Object {
            kind: ObjectKind::Trigger,
            name: format!("{}: {name}", table.plain()),
            sql: format!(
                "CREATE OR REPLACE TRIGGER {trigger} AFTER {event} ON {table} {referencing}FOR EACH STATEMENT EXECUTE FUNCTION {function}()"
            ),
            locks: if *ours {
                Vec::new()
            } else {
                vec![Lock { table: (*table).clone(), mode: LockMode::ShareRowExclusive }]
            },
            phase: Phase::Upkeep,
            graph: Some(shape.name.clone()),
        });
    }
    Ok(())
}

/// Triggers on the type's own table.
fn type_bodies(shape: &Shape) -> Bodies {
    let key = format!("this.{}::{}", shape.key, shape.key_sql);
    let all = |rows: &str| {
        format!(
            "  PERFORM {{{{refresh}}}}(ARRAY(SELECT DISTINCT {key} FROM {rows} AS this WHERE this.{} IS NOT NULL));",
            shape.key
        )
    };
    // What the graph reads of a row: whether it is an object, and each link with its condition applied.
    let mut reads = vec![key.clone()];
    if let Some(o) = &shape.objects {
        reads.push(format!("COALESCE(({o}\n), false)"));
    }
    for c in &shape.columns {
        match &c.condition {
            Some(condition) => reads.push(format!("CASE WHEN ({condition}\n) THEN this.{} END", c.column)),
            None => reads.push(format!("this.{}", c.column)),
        }
    }
    reads.extend(shape.tables.iter().filter_map(|t| t.condition.as_ref().map(|c| format!("COALESCE(({c}\n), false)"))));
    let raw: Vec<String> = shape.columns.iter().map(|c| format!("this.{}", c.column)).collect();
    let update = match raw.is_empty() {
        true => compare_rows(shape, &key, &reads.join(", ")),
        false => {
            let moved = format!("{key}, {}", raw.join(", "));
            let read_conditions = raw.len() + 1 != reads.len() || shape.columns.iter().any(|c| c.condition.is_some());
            compare_moved(shape, &reads.join(", "), &moved, read_conditions)
        }
    };
    Bodies {
        insert: all("authz__new"),
        update,
        delete: all("authz__old"),
        truncate: "  TRUNCATE {{node}}, {{cluster}}, {{edge}};".to_owned(),
    }
}

/// An UPDATE of a type without column links. The key is unique, so the old rows and the new are equally many and all
/// distinct: when each old one is among the new, nothing changed.
fn compare_rows(shape: &Shape, key: &str, reads: &str) -> String {
    let _ = key;
    format!(
        "  IF NOT EXISTS (SELECT {reads} FROM authz__old AS this EXCEPT SELECT {reads} FROM authz__new AS this) THEN
    RETURN NULL;
  END IF;
{}
  PERFORM {{{{rederive}}}}(authz__ids, '{{}}', false);",
        changed_ids(shape, reads)
    )
}

/// An UPDATE of a type with column links: `moved` are those whose raw columns changed, which alone can close a ring.
fn compare_moved(shape: &Shape, reads: &str, moved: &str, read_conditions: bool) -> String {
    // A row whose raw columns changed while the link does not count has moved too: it may be inside itself.
    let same_moved = if read_conditions {
        format!(
            " AND NOT EXISTS (SELECT {moved} FROM authz__old AS this EXCEPT SELECT {moved} FROM authz__new AS this)"
        )
    } else {
        String::new()
    };
    format!(
        "  IF NOT EXISTS (SELECT {reads} FROM authz__old AS this EXCEPT SELECT {reads} FROM authz__new AS this){same_moved} THEN
    RETURN NULL;
  END IF;
{}
  authz__moved := ARRAY(SELECT m.id FROM
    (SELECT {moved} FROM authz__new AS this EXCEPT SELECT {moved} FROM authz__old AS this) AS m(id) WHERE m.id IS NOT NULL);
  PERFORM {{{{rederive}}}}(authz__ids || authz__moved, authz__moved, false);",
        changed_ids(shape, reads)
    )
}

fn changed_ids(_shape: &Shape, reads: &str) -> String {
    format!(
        "  authz__ids := ARRAY(SELECT DISTINCT m.id FROM
    ((SELECT {reads} FROM authz__old AS this EXCEPT SELECT {reads} FROM authz__new AS this)
     UNION ALL
     (SELECT {reads} FROM authz__new AS this EXCEPT SELECT {reads} FROM authz__old AS this)) AS m(id) WHERE m.id IS NOT NULL);"
    )
}

/// Triggers on a link table, which several links may share.
fn link_bodies(shape: &Shape, table: &QualName) -> Bodies {
    let k = shape.key_sql;
    let links: Vec<_> = shape.tables.iter().filter(|t| t.table == *table).collect();
    let ids = |rows: &str| {
        let sources: Vec<String> = links
            .iter()
            .map(|t| format!("SELECT this.{}::{k} FROM {rows} AS this WHERE true{}", t.child, and(t.rows.as_deref())))
            .collect();
        format!(
            "  authz__ids := ARRAY(SELECT m.id FROM ({}) AS m(id) WHERE m.id IS NOT NULL);
  PERFORM {{{{refresh}}}}(authz__ids);",
            sources.join(" UNION ")
        )
    };
    let mut changed = Vec::new();
    for t in &links {
        let side = |rows: &str| {
            format!(
                "SELECT this.{}::{k}, this.{}::{k} FROM {rows} AS this WHERE true{}",
                t.child,
                t.parent,
                and(t.rows.as_deref())
            )
        };
        let (old, new) = (side("authz__old"), side("authz__new"));
        changed.push(format!("({old} EXCEPT {new})"));
        changed.push(format!("({new} EXCEPT {old})"));
    }
    Bodies {
        insert: ids("authz__new"),
        update: format!(
            "  authz__ids := ARRAY(SELECT DISTINCT m.id FROM ({}) AS m(id) WHERE m.id IS NOT NULL);
  IF cardinality(authz__ids) > 0 THEN
    PERFORM {{{{refresh}}}}(authz__ids);
  END IF;",
            changed.join("\n    UNION ALL\n    ")
        ),
        delete: ids("authz__old"),
        // The rows that went are unknown: compare what is stored with what is.
        truncate: include_str!("../../../../sql/graph/truncate_links.sql").to_owned(),
    }
}
