//! Dropping what the policy in force made and the new one does not need: its policies, the triggers and index tables
//! of graphs no longer used, what was generated, grants to another app role. Nothing of anybody else's is dropped: where
//! somebody built on something of ours that goes, the apply ends and says what (AZ614).

use std::collections::{BTreeMap, BTreeSet};

use crate::compiler::ident::{Ident, QualName};
use crate::compiler::objects::{ObjectKind, Phase};
use crate::db::error::DbError;
use crate::db::plan::changes::left_closed;
use crate::db::plan::locks::touched_now;
use crate::db::plan::state::{self, Made, State};
use crate::db::plan::way::InPlace;
use crate::db::plan::{Again, Blocker, Change};
use crate::db::progress::Progress;

use super::Failure;
use super::run::Job;
use super::tables::{drop_empty, drop_index_tables};

/// Makes room for the whole way.
pub(super) async fn whole(job: &Job<'_>, state: &State, kept: &BTreeSet<usize>) -> Result<(), Failure> {
    let touched = touched_now(job.client()).await?;
    drop_policies(job, &touched.named_policies).await?;
    // Triggers of rules call functions that go; those of the upkeep stay or were made anew.
    let upkeep = job.policy.emitted.objects.iter().filter(|object| object.phase <= Phase::Upkeep);
    drop_triggers(job, touched.stale(upkeep)).await?;
    let graphs = unused_graphs(job, state);
    let gone = gone(job, kept, &graphs).await?;
    refuse_others(job, &gone).await?;
    for (kind, names) in &gone.by_kind {
        let sql = format!("DROP {kind} IF EXISTS {} CASCADE", names.join(", "));
        job.statement("room for what the policy generates", &sql, &[]).await?;
    }
    for graph in &graphs {
        drop_index_tables(job, graph).await?;
        job.client().execute("DELETE FROM authz_int.graphs WHERE name = $1", &[graph]).await?;
    }
    let before = state.in_force.as_ref().and_then(|v| v.record.app_role.as_deref());
    let again = job.options.again != Again::No;
    match before.filter(|before| again || *before != job.policy.model.app_role.as_str()) {
        Some(role) => revoke(job, role).await,
        None => Ok(()),
    }
}

/// Makes room for a switch in place: the policies of the tables whose own policies change, triggers that go.
pub(super) async fn before_in_place(job: &Job<'_>, in_place: &InPlace) -> Result<(), Failure> {
    let mut touched = touched_now(job.client()).await?;
    touched.named_policies.retain(|(table, _)| in_place.policies.contains(table));
    drop_policies(job, &touched.named_policies).await?;
    drop_triggers(job, touched.stale(job.policy.emitted.objects.iter())).await?;
    if in_place.grants { revoke(job, job.policy.model.app_role.as_str()).await } else { Ok(()) }
}

/// Drops the functions and views that nothing of the new policy uses, once nothing of the old one does.
pub(super) async fn after_in_place(job: &Job<'_>) -> Result<(), Failure> {
    let views = dropped(job, ObjectKind::View);
    if !views.is_empty() {
        let sql = format!("DROP VIEW IF EXISTS {}", views.join(", "));
        job.statement("room without old views", &sql, &[]).await?;
    }
    let functions = dropped(job, ObjectKind::Function);
    let rows = job.client().query(FUNCTIONS, &[&functions]).await?;
    let mut signatures = Vec::with_capacity(rows.len());
    for row in rows {
        signatures.push(row.try_get::<_, String>(0)?);
    }
    if !signatures.is_empty() {
        let sql = format!("DROP FUNCTION IF EXISTS {}", signatures.join(", "));
        job.statement("room without old functions", &sql, &[]).await?;
    }
    Ok(())
}

/// Functions by their names: with arguments it is one, without it is all of that name.
const FUNCTIONS: &str = "
SELECT DISTINCT p.oid::regprocedure::text
FROM unnest($1::text[]) AS x(name), pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE CASE WHEN x.name LIKE '%(%' THEN p.oid = to_regprocedure(x.name)
           ELSE ARRAY[n.nspname, p.proname]::text[] = parse_ident(x.name) END";

/// Names of objects of one kind that this policy no longer has and that belong to no graph.
fn dropped<'a>(job: &'a Job<'_>, kind: ObjectKind) -> Vec<&'a str> {
    let all = job.plan.objects.iter().filter(|o| o.change == Change::Dropped && o.kind == kind && o.graph.is_none());
    all.map(|o| o.name.as_str()).filter(|name| state::is_qualified(name.split('(').next().unwrap_or(name))).collect()
}

async fn drop_policies(job: &Job<'_>, policies: &BTreeSet<(QualName, String)>) -> Result<(), Failure> {
    let governed: BTreeSet<&QualName> = job.policy.emitted.tables.iter().map(|table| &table.table).collect();
    let mut closed = BTreeSet::new();
    for (table, policy) in policies {
        let what = format!("room on {} for its policy {policy}", table.plain());
        job.statement(&what, &format!("DROP POLICY {} ON {table}", Ident::new(policy)), &[]).await?;
        if !governed.contains(table) && closed.insert(table) {
            job.reporter.send(Progress::Note { text: left_closed(table) }).await;
        }
    }
    Ok(())
}

async fn drop_triggers(job: &Job<'_>, stale: BTreeSet<(QualName, String)>) -> Result<(), Failure> {
    for (table, trigger) in stale {
        let what = format!("room on {} without the trigger {trigger}", table.plain());
        job.statement(&what, &format!("DROP TRIGGER {} ON {table}", Ident::new(trigger)), &[]).await?;
    }
    Ok(())
}

/// Graphs that were built and that this policy does not use.
fn unused_graphs(job: &Job<'_>, state: &State) -> Vec<String> {
    let used: BTreeSet<&str> = job.policy.emitted.graphs.iter().map(|graph| graph.name.as_str()).collect();
    state.registered.iter().filter(|name| !used.contains(name.as_str())).cloned().collect()
}

/// What is dropped, by the word `DROP` takes, and for the search for dependents by catalog and OID.
#[derive(Default)]
struct Gone {
    by_kind: BTreeMap<&'static str, Vec<String>>,
    relations: Vec<u32>,
    routines: Vec<u32>,
    types: Vec<u32>,
    /// Of the relations, the masked views.
    masked: BTreeSet<u32>,
}

/// Everything in `authz_gen`, functions and views elsewhere that the new policy no longer has, functions and index
/// tables of unused graphs (`$1`). `$2` are relations, `$3` functions by their names.
const GONE: &str = "
SELECT CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END,
       format('%I.%I', n.nspname, c.relname), c.oid,
       CASE WHEN n.nspname = 'authz_int' THEN 'graph' ELSE 'made' END
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('v', 'm', 'S', 'r', 'p')
  AND (n.nspname = 'authz_gen'
       OR n.nspname = 'authz_int' AND EXISTS (SELECT FROM unnest($1::text[]) AS g(name)
                                              WHERE starts_with(c.relname::text, g.name || '_'))
       OR c.oid = ANY (SELECT to_regclass(x.name) FROM unnest($2::text[]) AS x(name)))
UNION ALL
SELECT 'ROUTINE', p.oid::regprocedure::text, p.oid, 'made'
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = 'authz_gen'
   OR n.nspname = 'authz_int' AND EXISTS (SELECT FROM unnest($1::text[]) AS g(name)
                                          WHERE starts_with(p.proname::text, g.name || '_'))
   OR EXISTS (SELECT FROM unnest($3::text[]) AS x(name)
              WHERE CASE WHEN x.name LIKE '%(%' THEN p.oid = to_regprocedure(x.name)
                         ELSE ARRAY[n.nspname, p.proname]::text[] = parse_ident(x.name) END)
UNION ALL
SELECT 'TYPE', format('%I.%I', n.nspname, t.typname), t.oid, 'made'
FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
LEFT JOIN pg_catalog.pg_class c ON c.oid = t.typrelid
WHERE n.nspname = 'authz_gen' AND t.typtype IN ('d', 'e', 'c') AND (c.oid IS NULL OR c.relkind = 'c')";

async fn gone(job: &Job<'_>, kept: &BTreeSet<usize>, graphs: &[String]) -> Result<Gone, Failure> {
    // Masked views stand in the app's schemas. They use what goes, so they go too, and are made again.
    let masked = job.plan.objects.iter().filter(|o| o.kind == ObjectKind::View && !o.name.starts_with("authz_gen."));
    let mut views = dropped(job, ObjectKind::View);
    views.extend(masked.map(|o| o.name.as_str()).filter(|name| state::is_qualified(name)));
    let functions = dropped(job, ObjectKind::Function);
    let objects = job.policy.emitted.objects.iter().enumerate();
    let kept_names: BTreeSet<&str> =
        objects.filter(|(at, _)| kept.contains(at)).filter_map(|(_, object)| state::lookup_name(object)).collect();
    let mut gone = Gone::default();
    for row in job.client().query(GONE, &[&graphs, &views, &functions]).await? {
        let (word, name, oid): (String, String, u32) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        // Made or replaced a moment ago, by the phases before.
        if kept_names.contains(name.split('(').next().unwrap_or(&name)) || is_upkeep(job, &name) {
            continue;
        }
        let (word, list) = match word.as_str() {
            "ROUTINE" => ("ROUTINE", &mut gone.routines),
            "TYPE" => ("TYPE", &mut gone.types),
            "VIEW" => ("VIEW", &mut gone.relations),
            "MATERIALIZED VIEW" => ("MATERIALIZED VIEW", &mut gone.relations),
            "SEQUENCE" => ("SEQUENCE", &mut gone.relations),
            _ => ("TABLE", &mut gone.relations),
        };
        if word == "VIEW" && !name.starts_with("authz_") {
            gone.masked.insert(oid);
        }
        list.push(oid);
        // Index tables are looked at for dependents with the rest, and dropped with their graph.
        if row.try_get::<_, &str>(3)? == "made" {
            gone.by_kind.entry(word).or_default().push(name);
        }
    }
    Ok(gone)
}

/// True for functions that the phases before this one made.
fn is_upkeep(job: &Job<'_>, name: &str) -> bool {
    let name = name.split('(').next().unwrap_or(name);
    job.policy
        .emitted
        .objects
        .iter()
        .any(|object| matches!(object.phase, Phase::Tables | Phase::Upkeep) && state::lookup_name(object) == Some(name))
}

/// Objects outside of `Gone` that depend on one in it. `$4` are names of functions this apply makes again, whose old
/// bodies may depend on what goes.
pub(super) const OTHERS: &str = "
WITH gone(classid, objid) AS (
  SELECT 'pg_class'::regclass::oid, unnest($1::oid[]) UNION ALL SELECT 'pg_proc'::regclass::oid, unnest($2::oid[])
  UNION ALL SELECT 'pg_type'::regclass::oid, unnest($3::oid[])
  UNION ALL SELECT 'pg_type'::regclass::oid, t.oid FROM pg_catalog.pg_type t WHERE t.typrelid = ANY ($1::oid[])
), dependents AS (
  SELECT CASE WHEN r.oid IS NOT NULL OR a.oid IS NOT NULL OR k.conrelid <> 0 THEN 'pg_class'::regclass::oid
              ELSE d.classid END AS classid,
         coalesce(r.ev_class, a.adrelid, nullif(k.conrelid, 0), d.objid) AS objid, g.classid AS goneclass, g.objid AS gone
  FROM gone g JOIN pg_catalog.pg_depend d ON d.refclassid = g.classid AND d.refobjid = g.objid AND d.deptype = 'n'
  LEFT JOIN pg_catalog.pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
  LEFT JOIN pg_catalog.pg_attrdef a ON d.classid = 'pg_attrdef'::regclass AND a.oid = d.objid
  LEFT JOIN pg_catalog.pg_constraint k ON d.classid = 'pg_constraint'::regclass AND k.oid = d.objid)
SELECT DISTINCT pg_describe_object(d.classid, d.objid, 0), pg_describe_object(d.goneclass, d.gone, 0), d.gone
FROM dependents d
WHERE NOT EXISTS (SELECT FROM gone g WHERE g.classid = d.classid AND g.objid = d.objid)
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_trigger t JOIN gone g ON g.objid = t.tgrelid
                  WHERE d.classid = 'pg_trigger'::regclass AND t.oid = d.objid)
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace,
                  unnest($4::text[]) AS x(name)
                  WHERE d.classid = 'pg_proc'::regclass AND p.oid = d.objid
                    AND (parse_ident(x.name))[1] = n.nspname AND (parse_ident(x.name))[2] = p.proname)
ORDER BY 1 LIMIT 20";

async fn refuse_others(job: &Job<'_>, gone: &Gone) -> Result<(), Failure> {
    let objects = job.policy.emitted.objects.iter();
    let again = objects.filter(|o| o.kind == ObjectKind::Function && o.phase > Phase::Upkeep);
    let again: Vec<&str> = again.filter_map(state::lookup_name).collect();
    let rows = job.client().query(OTHERS, &[&gone.relations, &gone.routines, &gone.types, &again]).await?;
    let mut blockers = Vec::new();
    for row in rows {
        let (other, ours): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        if gone.masked.contains(&row.try_get(2)?) {
            let message = format!("{other} is built on the masked {ours}, which this change cannot replace in place");
            blockers.push(Blocker::new(message).code(617).help("drop it, apply, and make it again"));
            continue;
        }
        blockers.push(
            Blocker::new(format!("{other} uses {ours}, which a change of the policy drops"))
                .code(614)
                .help("drop it, apply, and make it again; the objects in authz_gen change with every policy"),
        );
    }
    if blockers.is_empty() { Ok(()) } else { Err(DbError::Blocked(blockers).into()) }
}

/// Takes back what was granted to an app role in our schemas.
async fn revoke(job: &Job<'_>, before: &str) -> Result<(), Failure> {
    let sql = "SELECT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = $1)";
    if !job.client().query_one(sql, &[&before]).await?.try_get::<_, bool>(0)? {
        return Ok(());
    }
    let role = Ident::new(before);
    let mut sql = format!("REVOKE ALL ON SCHEMA authz, authz_gen, authz_int FROM {role}");
    for kind in ["TABLES", "SEQUENCES", "ROUTINES"] {
        sql.push_str(&format!(";\nREVOKE ALL ON ALL {kind} IN SCHEMA authz, authz_gen, authz_int FROM {role}"));
    }
    job.statement(&format!("room for the grants to {before}"), &sql, &[]).await
}

/// Drops share tables that the policy no longer has and that are empty; keeps and names the others.
pub(super) async fn shares(job: &Job<'_>, state: &State) -> Result<Vec<Made>, Failure> {
    let now: BTreeSet<&str> = job.policy.emitted.objects.iter().map(|object| object.name.as_str()).collect();
    let word = ObjectKind::Table.word();
    let mut left: BTreeMap<&str, &Made> = BTreeMap::new();
    let old = Job::before(state).filter(|made| made.kind == word && made.graph.is_none());
    for made in old.filter(|made| !now.contains(made.name.as_str()) && state::is_qualified(&made.name)) {
        if !left.contains_key(made.name.as_str()) && !drop_empty(job, &made.name).await? {
            let text =
                format!("{} is no longer in the policy and holds shares; it is kept, and grants nothing", made.name);
            job.reporter.send(Progress::Note { text }).await;
            left.insert(&made.name, made);
        }
    }
    Ok(left.into_values().cloned().collect())
}
