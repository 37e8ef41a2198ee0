//! From the model to SQL: tables, index upkeep, views, functions, row-level security.
//!
//! A reader's way through: [`logic`] simplifies expressions; `check` writes one as a condition on a row, in one of two
//! forms; `relations` and `permissions` turn each name into a view and a set; `rules` turns them into policies; `api`,
//! `share_api`, `who` and `why` are the functions of schema `authz`; [`graph`] is the ancestor index.

mod api;
mod asks;
mod check;
mod condition;
mod context;
mod describe;
mod explain_rule;
pub mod graph;
mod in_row;
mod invariants;
mod key;
pub mod logic;
mod masks;
mod names;
mod nodes;
mod permissions;
mod principals;
mod relations;
mod role_api;
mod rules;
mod share_api;
mod shares;
mod views;
mod who;
mod why;

use std::collections::{BTreeSet, HashSet};

use sha2::{Digest, Sha256};

use crate::compiler::diagnostic::Diagnostic;
use crate::compiler::ident::{Ident, QualName};
use crate::compiler::model::{Command, Expr, GraphId, Model, Place, RelId, Subject, Target, TypeId};
use crate::compiler::objects::{Emitted, Object, ObjectKind, Phase};

use condition::RowFunctions;
use context::{Emit, Policy, not_built};
use key::Key;
pub use rules::BELOW;
use views::Made;

pub use principals::with_arguments as caveat_with_arguments;

/// What can be set about the generated SQL. None of it changes who may see what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Objects in one cluster of the ancestor index, at most. Tests also run at 2 and 3.
    pub cluster_size: u32,
    /// Rows of one statement that are probed one by one before what the caller holds is worked out.
    pub first_rows: u32,
    /// Rows of one statement that are tested against what the caller holds before everything reached is worked out.
    pub held_rows: u32,
}

impl Default for Options {
    /// A probe costs about 50 µs and working out what is held about 1 ms (190 to 360 holdings, a million files), so
    /// they break even near 32 rows; testing a row against what is held costs 6 µs, everything reached 10 to 40 ms
    /// once, so those break even near 2,000.
    fn default() -> Self {
        Options { cluster_size: 256, first_rows: 32, held_rows: 2000 }
    }
}

/// The runtime that does not depend on the policy: name and SQL, to be run in this order, safe to run again.
pub fn runtime() -> &'static [(&'static str, &'static str)] {
    &[
        ("schemas", include_str!("../../../sql/10_schemas.sql")),
        ("session", include_str!("../../../sql/20_session.sql")),
        ("refusals", include_str!("../../../sql/30_refusals.sql")),
        ("sharing", include_str!("../../../sql/40_sharing.sql")),
        ("what is enforced", include_str!("../../../sql/70_enforced.sql")),
        ("ways around the rules", include_str!("../../../sql/80_lint.sql")),
    ]
}

/// Whether the text of a condition stands in policies and views as it is, because its words show that it only computes
/// and names nothing but what is PostgreSQL's own under the search path that objects are made under. Any other condition
/// becomes a function of the row.
pub fn stands_in_rules(sql: &str) -> bool {
    condition::is_simple(sql.trim())
}

/// Everything `model` becomes in the database.
///
/// # Errors
/// What this release does not build, each with its line; nothing is emitted then.
pub fn emit(model: &Model) -> Result<Emitted, Vec<Diagnostic>> {
    emit_with(model, &Options::default())
}

/// The same with options of one's own.
///
/// # Errors
/// As [`emit`].
pub fn emit_with(model: &Model, options: &Options) -> Result<Emitted, Vec<Diagnostic>> {
    let closing = closing_names(model);
    if !closing.is_empty() {
        return Err(closing);
    }
    let mut emitted = Vec::new();
    for at in 0..model.graphs.len() {
        let made = graph::emit_graph(model, GraphId(at), options.cluster_size)?;
        emitted.push(made);
    }
    let mut upkeep = graph::emit_verify(&emitted);
    let mut graphs = Vec::new();
    for made in emitted {
        graphs.push(made.tables);
        upkeep.extend(made.objects);
    }
    let policy = Policy { model, graphs, options: *options, row_functions: RowFunctions::default() };
    emit_policy(&policy, upkeep).map_err(|diagnostic| vec![diagnostic])
}

/// Names that hold what our function bodies are quoted with, and so would end one.
fn closing_names(model: &Model) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut check = |name: &Ident, span| {
        if name.as_str().contains("$authz") {
            found.push(Diagnostic::error(107, span, format!("{} holds $authz, which no name here may", name.plain())));
        }
    };
    check(&model.app_role, Default::default());
    for def in &model.types {
        [&def.table.schema, &def.table.name].into_iter().for_each(|name| check(name, def.span));
        def.key.iter().for_each(|key| check(&key.column, def.span));
        for source in def.relations.iter().flat_map(|relation| &relation.sources) {
            let names: Vec<&Ident> = match &source.place {
                Place::Column { columns } => columns.iter().collect(),
                Place::Table { table, object, subject, .. } => {
                    [&table.schema, &table.name].into_iter().chain(object).chain(subject).collect()
                }
                Place::Polymorphic { type_column, id_column } => vec![type_column, id_column],
                Place::Shared { .. } | Place::Role { .. } => Vec::new(),
            };
            names.into_iter().for_each(|name| check(name, source.span));
        }
    }
    for rules in &model.rules {
        rules.view.iter().flat_map(|view| [&view.schema, &view.name]).for_each(|name| check(name, rules.span));
        for rule in &rules.rules {
            if let Command::Mask(columns) | Command::UpdateBefore(columns) | Command::UpdateAfter(columns) =
                &rule.command
            {
                columns.iter().for_each(|column| check(column, rule.span));
            }
        }
    }
    found
}

fn emit_policy(policy: &Policy<'_>, upkeep: Vec<Object>) -> Emit<Emitted> {
    let mut made = Made::default();
    policy.api_objects(&mut made)?;
    for at in 0..policy.model.types.len() {
        policy.relation_objects(TypeId(at), &mut made)?;
        policy.permission_objects(TypeId(at), &mut made)?;
    }
    for (ty, relation, targets) in followed(policy.model) {
        policy.followed_objects(ty, relation, &targets, &mut made)?;
    }
    let shares = policy.shares()?;
    policy.share_api(&shares, &mut made)?;
    policy.role_api(&mut made)?;
    policy.who_objects(&mut made)?;
    policy.why_objects(&mut made)?;
    policy.invariant_objects(&mut made)?;
    policy.ask_objects(&mut made)?;
    policy.explain_rule_api(&mut made)?;

    let mut rules = Vec::new();
    let mut tables = Vec::new();
    for table in &policy.model.rules {
        let (objects, governed) = policy.rule_objects(table, &mut made)?;
        rules.extend(objects);
        tables.push(governed);
    }

    policy.row_functions.make(&mut made);
    let mut objects = policy.share_tables(&shares)?;
    objects.extend(upkeep);
    objects.extend(policy.share_upkeep(&shares)?);
    objects.sort_by_key(|object| object.phase);
    objects.extend(key_types(policy));
    objects.append(&mut made.functions);
    objects.extend(made.view_objects()?);
    objects.extend(grants(policy, &made));
    objects.extend(rules);
    unique_names(&objects)?;
    let digest = digest(&objects);
    Ok(Emitted { objects, graphs: policy.graphs.clone(), tables, digest })
}

/// The composite types that stand for keys of several columns.
fn key_types(policy: &Policy<'_>) -> Vec<Object> {
    let keys = policy.model.types.iter().map(Key::new);
    keys.filter_map(|key| {
        let (kind, phase) = (ObjectKind::Type, Phase::Functions);
        Some(Object { kind, name: key.sql(), sql: key.create_type()?, locks: Vec::new(), phase, graph: None })
    })
    .collect()
}

/// The table that holds the shares of a shared relation with one kind of subject; `None` when there is none.
pub fn share_table(model: &Model, ty: TypeId, relation: RelId, subject: Subject) -> Option<QualName> {
    let def = model.ty(ty)?;
    let kind = names::ShareSubject::of(model, subject)?;
    let table = names::shares(def, &def.relation(relation)?.name, &kind);
    let (schema, name) = table.split_once('.')?;
    Some(QualName::new(schema, name.trim_matches('"')))
}

/// A relation to objects that some expression follows, with what it asks for on each type reached.
type Followed = (TypeId, RelId, Vec<(TypeId, Target)>);

/// Every such relation, once for each thing asked for.
fn followed(model: &Model) -> Vec<Followed> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut collect = |ty: TypeId, expr: &Expr| {
        let mut stack = vec![expr];
        while let Some(next) = stack.pop() {
            match next {
                Expr::Or(parts) | Expr::And(parts) => stack.extend(parts),
                Expr::Not(inner) => stack.push(inner),
                Expr::Follow { relation, targets, .. } => {
                    let entry = (ty, *relation, targets.clone());
                    if seen.insert(entry.clone()) {
                        found.push(entry);
                    }
                }
                _ => {}
            }
        }
    };
    for (at, def) in model.types.iter().enumerate() {
        for permission in &def.permissions {
            collect(TypeId(at), &permission.expr);
        }
    }
    for table in &model.rules {
        for rule in &table.rules {
            collect(table.ty, &rule.expr);
        }
    }
    for invariant in &model.invariants {
        collect(invariant.ty, &invariant.expr);
    }
    found
}

/// What the app role may touch: the API, the views of its own ids, and the functions those call as it.
fn grants(policy: &Policy<'_>, made: &Made) -> Vec<Object> {
    let role = &policy.model.app_role;
    let mut schemas: BTreeSet<String> = policy.model.types.iter().map(|ty| ty.table.schema.to_string()).collect();
    let views = policy.model.rules.iter().filter_map(|rules| rules.view.as_ref());
    schemas.extend(views.map(|view| view.schema.to_string()));
    schemas.extend(["authz".to_owned(), names::GEN.to_owned()]);
    let schemas: Vec<String> = schemas.into_iter().collect();
    let mut statements = vec![
        ("authz_int: functions", format!("REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {} FROM PUBLIC", names::INT)),
        ("authz_gen: functions", format!("REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {} FROM PUBLIC", names::GEN)),
        ("authz: functions", "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA authz FROM PUBLIC".to_owned()),
        ("schemas", format!("GRANT USAGE ON SCHEMA {} TO {role}", schemas.join(", "))),
        ("authz_int.refuse", format!("GRANT EXECUTE ON FUNCTION authz_int.refuse(text, text, text) TO {role}")),
        ("authz.ctx", format!("GRANT EXECUTE ON FUNCTION authz.ctx(text) TO {role}")),
        ("authz.connection_check", format!("GRANT EXECUTE ON FUNCTION authz.connection_check() TO {role}")),
    ];
    let functions: Vec<String> =
        made.callable.iter().map(|name| if name.ends_with(')') { name.clone() } else { format!("{name}()") }).collect();
    if !functions.is_empty() {
        statements.push(("functions", format!("GRANT EXECUTE ON FUNCTION {} TO {role}", functions.join(", "))));
    }
    if !made.views.is_empty() {
        let views: Vec<&str> = made.views.values().filter(|v| v.readable).map(|v| v.name.as_str()).collect();
        statements.push(("views", format!("GRANT SELECT ON {} TO {role}", views.join(", "))));
    }
    statements
        .into_iter()
        .map(|(name, sql)| Object {
            kind: ObjectKind::Grant,
            name: format!("{role}: {name}"),
            sql,
            locks: Vec::new(),
            phase: Phase::Functions,
            graph: None,
        })
        .collect()
}

/// Two objects of one kind and name would silently replace each other.
fn unique_names(objects: &[Object]) -> Emit<()> {
    let mut seen = BTreeSet::new();
    for object in objects {
        if !seen.insert((object.kind, object.name.as_str())) {
            return Err(not_built(
                Default::default(),
                format!(
                    "two generated objects would both be called {}; rename one relation or permission",
                    object.name
                ),
            ));
        }
    }
    Ok(())
}

fn digest(objects: &[Object]) -> String {
    let mut hash = Sha256::new();
    for (_, sql) in runtime() {
        hash.update(sql.as_bytes());
        hash.update([0]);
    }
    for object in objects {
        hash.update(object.sql.as_bytes());
        hash.update([0]);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
