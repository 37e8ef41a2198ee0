//! What the first phase of an apply does beside making objects: clearing the place of tables and indexes that are
//! made again. Tables that hold shares are never dropped with rows in them.

use std::borrow::Cow;

use crate::compiler::ident::QualName;
use crate::compiler::objects::{Object, ObjectKind, Phase};
use crate::db::error::DbError;
use crate::db::plan::names;
use crate::db::plan::state::{self, State};
use crate::db::plan::{Blocker, Change};

use super::Failure;
use super::run::Job;

/// Makes room for the tables and indexes this apply makes.
pub(super) async fn prepare(job: &Job<'_>, state: &State) -> Result<(), Failure> {
    for graph in job.policy.emitted.graphs.iter().filter(|graph| !state::is_built(state, graph)) {
        // What is left of an index that is not whole; its triggers' functions are replaced in place.
        drop_index_tables(job, &graph.name).await?;
    }
    let plan = job.plan.objects.iter().zip(&job.policy.emitted.objects);
    let changed = plan.filter(|(planned, object)| {
        object.phase == Phase::Tables && object.graph.is_none() && planned.change == Change::Changed
    });
    for (_, object) in changed {
        match object.kind {
            ObjectKind::Index => {
                let Some(name) = names::created(&object.sql, "INDEX") else { continue };
                let sql = format!("DROP INDEX IF EXISTS {}", QualName::new("authz_int", name));
                job.statement(&format!("index {}", object.name), &sql, &[]).await?;
            }
            ObjectKind::Table if !drop_empty(job, &object.name).await? => {
                return Err(DbError::Blocked(vec![
                    Blocker::new(format!("{} holds shares and its definition changes", object.name))
                        .help("take its shares back with authz.unshare, or keep the relation as it was"),
                ])
                .into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Drops a table unless it holds rows; `false` when it does. `name` is quoted where it must be.
pub(super) async fn drop_empty(job: &Job<'_>, name: &str) -> Result<bool, Failure> {
    let there: bool = job.client().query_one("SELECT to_regclass($1) IS NOT NULL", &[&name]).await?.try_get(0)?;
    if !there {
        return Ok(true);
    }
    let what = format!("table {name}");
    // Locked before it is looked at: a share that is being made must not be lost.
    job.statement(&what, &format!("LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE"), &[]).await?;
    let sql = format!("SELECT EXISTS (SELECT FROM {name})");
    if job.client().query_one(&sql, &[]).await?.try_get(0)? {
        return Ok(false);
    }
    job.statement(&what, &format!("DROP TABLE {name}"), &[]).await?;
    Ok(true)
}

/// Drops the tables and sequences of a graph's index.
pub(super) async fn drop_index_tables(job: &Job<'_>, graph: &str) -> Result<(), Failure> {
    let prefix = format!("{graph}_");
    for (kind, word) in [("r", "TABLE"), ("S", "SEQUENCE")] {
        let names: Option<String> = job
            .client()
            .query_one(
                "SELECT string_agg(format('%I.%I', 'authz_int', c.relname), ', ' ORDER BY c.relname)
                 FROM pg_catalog.pg_class c
                 WHERE c.relnamespace = to_regnamespace('authz_int') AND starts_with(c.relname::text, $1)
                   AND c.relkind::text = $2",
                &[&prefix, &kind],
            )
            .await?
            .try_get(0)?;
        if let Some(names) = names {
            // What depends on them is upkeep of the same graph, which goes or is made again.
            let sql = format!("DROP {word} {names} CASCADE");
            job.statement(&format!("room for the index {graph}"), &sql, &[]).await?;
        }
    }
    Ok(())
}

/// An object's SQL, able to replace what is there. A trigger that is replaced needs a weaker lock than one that is
/// dropped and made again, and what depends on a function or a view stays.
pub(super) fn replacing(object: &Object) -> Cow<'_, str> {
    let word = match object.kind {
        ObjectKind::Trigger => "TRIGGER",
        ObjectKind::Function => "FUNCTION",
        ObjectKind::View => "VIEW",
        _ => return Cow::Borrowed(&object.sql),
    };
    let rest = object.sql.strip_prefix("CREATE ").filter(|rest| rest.starts_with(word));
    rest.map_or(Cow::Borrowed(object.sql.as_str()), |rest| Cow::Owned(format!("CREATE OR REPLACE {rest}")))
}
