//! What stands in the way of an apply, found before it changes anything: the server, the rights of the role that
//! applies, the app role, tables and columns, key types, conditions that do not run.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Client;

use super::{Blocker, Plan, Policy, advisories, conditions, rules};
use crate::compiler::ident::{Ident, QualName};
use crate::compiler::model::{Command, KeyType, Place, Source, Subject, TypeDef, TypeId};
use crate::compiler::objects::LockMode;
use crate::compiler::span::Span;
use crate::db::compat::{self, Release};
use crate::db::error::DbError;

/// The servers we work with, as `server_version_num` counts: from the first, to before the second.
const SERVERS: (i32, i32) = (150_000, 190_000);

/// Both lists of a preflight.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// See [`Plan::blockers`].
    pub(super) blockers: Vec<Blocker>,
    /// See [`Plan::notes`].
    pub(super) notes: Vec<String>,
}

/// Runs every check that the ones before it leave possible.
pub(super) async fn run(client: &Client, policy: &Policy<'_>, plan: &Plan) -> Result<Found, DbError> {
    let mut found = Found::default();
    server(client, &mut found).await?;
    if let Release::Newer(program) = compat::read(client).await? {
        found.blockers.push(
            Blocker::new(format!(
                "this database was last applied to by {program}, and this is the older {}",
                compat::PROGRAM
            ))
            .code(616)
            .help("use that release, or a later one"),
        );
    }
    rights(client, &mut found).await?;
    schemas(client, policy, &mut found).await?;
    app_role(client, policy, &mut found).await?;
    let tables = tables(client, policy, &mut found).await?;
    let wrong = columns(policy, &tables, &mut found);
    rules::check(client, policy, plan, &mut found).await?;
    // A condition cannot be judged on a table that is not there, and a read-only server takes no scratch objects.
    let locks = plan.locks.blocker();
    // Where the lock table is too small, thousands of conditions would be judged for nothing.
    if locks.is_none() && wrong.is_empty() && found.blockers.iter().all(|blocker| blocker.code.is_some()) {
        conditions::check(client, policy, &mut found).await?;
    }
    found.blockers.extend(locks);
    Ok(found)
}

async fn server(client: &Client, found: &mut Found) -> Result<(), DbError> {
    let row = client
        .query_one(
            "SELECT current_setting('server_version_num')::int, current_setting('server_version'),
                    pg_catalog.pg_is_in_recovery(), current_setting('transaction_read_only')::bool,
                    (SELECT s.reset_val FROM pg_catalog.pg_settings s WHERE s.name = 'statement_timeout')",
            &[],
        )
        .await?;
    let (number, version): (i32, String) = (row.try_get(0)?, row.try_get(1)?);
    let (standby, read_only): (bool, bool) = (row.try_get(2)?, row.try_get(3)?);
    let timeout: String = row.try_get(4)?;
    if number < SERVERS.0 || number >= SERVERS.1 {
        found.blockers.push(
            Blocker::new(format!("the server is PostgreSQL {version}")).help("rowdeck works with PostgreSQL 15 to 18"),
        );
    }
    found.notes.extend(advisories::lacking(number));
    if standby {
        found.blockers.push(
            Blocker::new("the server is a standby, which cannot be written to")
                .help("apply on its primary; the standby follows"),
        );
    } else if read_only {
        found.blockers.push(
            Blocker::new("transactions of this session are read-only")
                .help("default_transaction_read_only is on for this role, database or target"),
        );
    }
    if timeout != "0" {
        found.notes.push(format!("statement_timeout is {timeout}; an apply turns it off for its own transaction"));
    }
    Ok(())
}

const RIGHTS: &str = "
SELECT current_user::text, current_database()::text,
       has_database_privilege(current_database(), 'CREATE'),
       (SELECT string_agg(n.nspname || ' (of ' || pg_get_userbyid(n.nspowner) || ')', ', ' ORDER BY n.nspname)
        FROM pg_catalog.pg_namespace n
        WHERE n.nspname IN ('authz', 'authz_gen', 'authz_int') AND pg_get_userbyid(n.nspowner) <> current_user),
       (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user)";

async fn rights(client: &Client, found: &mut Found) -> Result<(), DbError> {
    let row = client.query_one(RIGHTS, &[]).await?;
    let (role, database): (String, String) = (row.try_get(0)?, row.try_get(1)?);
    if !row.try_get::<_, bool>(2)? {
        found.blockers.push(
            Blocker::new(format!("role \"{role}\" may not create schemas in database \"{database}\"")).help(format!(
                "GRANT CREATE ON DATABASE {} TO {}",
                Ident::new(&database),
                Ident::new(&role)
            )),
        );
    }
    // Being a member of the owner, or a superuser, is not enough: what is made now would belong to another role than
    // what is kept, and the functions of the one could not call those of the other.
    if let Some(schemas) = row.try_get::<_, Option<String>>(3)? {
        found.blockers.push(
            Blocker::new(format!("role \"{role}\" does not own schema {schemas}"))
                .help("apply as the role that applied before; PGOPTIONS='-c role=NAME' switches to it"),
        );
    }
    if row.try_get::<_, Option<bool>>(4)? == Some(true) {
        found.notes.push(format!(
            "role \"{role}\" is a superuser, and the functions of the policy will run with its rights; \
             apply as a role that owns the tables and no more"
        ));
    }
    Ok(())
}

/// Schemas with our names that no apply made, and schemas of governed tables in which the app may create.
const SCHEMAS: &str = "
SELECT (SELECT string_agg(quote_ident(n.nspname), ', ' ORDER BY n.nspname) FROM pg_catalog.pg_namespace n
        WHERE n.nspname IN ('authz', 'authz_gen', 'authz_int')
          AND (EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid)
               OR EXISTS (SELECT FROM pg_catalog.pg_proc p WHERE p.pronamespace = n.oid))
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace s ON s.oid = c.relnamespace
                          WHERE s.nspname = 'authz' AND c.relname = 'policy_versions')),
       ARRAY(SELECT n.nspname::text FROM pg_catalog.pg_namespace n, pg_catalog.pg_roles r
             WHERE n.nspname = ANY ($1::text[]) AND r.rolname = $2 AND has_schema_privilege(r.oid, n.oid, 'CREATE')
             ORDER BY 1)";

async fn schemas(client: &Client, policy: &Policy<'_>, found: &mut Found) -> Result<(), DbError> {
    let app = &policy.model.app_role;
    let governed: Vec<&str> = policy.emitted.tables.iter().map(|table| table.table.schema.as_str()).collect();
    let row = client.query_one(SCHEMAS, &[&governed, &app.as_str()]).await?;
    if let Some(taken) = row.try_get::<_, Option<String>>(0)? {
        found.blockers.push(
            Blocker::new(format!("schema {taken} holds objects that no apply made"))
                .help("rename it: the schemas authz, authz_gen and authz_int are rowdeck's own"),
        );
    }
    for schema in row.try_get::<_, Vec<String>>(1)? {
        let schema = Ident::new(&schema);
        found.notes.push(format!(
            "the app role may create objects in schema {}, where one of its own can take another's place; \
             REVOKE CREATE ON SCHEMA {schema} FROM {app}, or from PUBLIC",
            schema.plain()
        ));
    }
    Ok(())
}

/// `SET` is a privilege of its own from 16 on; before that, members may switch.
const APP_ROLE: &str = "
WITH governed AS (
  SELECT c.relowner FROM unnest($2::text[], $3::text[]) AS t(s, n)
  JOIN pg_catalog.pg_namespace n ON n.nspname = t.s
  JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = t.n)
SELECT r.rolname = current_user, r.rolsuper, r.rolbypassrls, current_user::text,
       CASE WHEN current_setting('server_version_num')::int >= 160000
            THEN pg_has_role(r.oid, 'SET') ELSE pg_has_role(r.oid, 'MEMBER') END,
       (SELECT string_agg(DISTINCT pg_get_userbyid(o.oid), ', ')
        FROM (SELECT u.oid FROM pg_catalog.pg_roles u WHERE u.rolname = current_user
              UNION SELECT g.relowner FROM governed g) AS o(oid)
        WHERE o.oid <> r.oid AND NOT r.rolsuper AND pg_has_role(r.oid, o.oid, 'MEMBER')),
       EXISTS (SELECT FROM governed g WHERE g.relowner = r.oid)
FROM pg_catalog.pg_roles r WHERE r.rolname = $1";

async fn app_role(client: &Client, policy: &Policy<'_>, found: &mut Found) -> Result<(), DbError> {
    let app = policy.model.app_role.as_str();
    let schemas: Vec<&str> = policy.emitted.tables.iter().map(|t| t.table.schema.as_str()).collect();
    let names: Vec<&str> = policy.emitted.tables.iter().map(|t| t.table.name.as_str()).collect();
    let Some(row) = client.query_opt(APP_ROLE, &[&app, &schemas, &names]).await? else {
        found.blockers.push(
            Blocker::new(format!("there is no role \"{app}\", which the policy names as its app role"))
                .code(618)
                .help(format!("CREATE ROLE {} LOGIN", policy.model.app_role)),
        );
        return Ok(());
    };
    let (is_applier, superuser, bypass): (bool, bool, bool) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let (role, switch): (String, bool) = (row.try_get(3)?, row.try_get(4)?);
    let (owners, owns): (Option<String>, bool) = (row.try_get(5)?, row.try_get(6)?);
    let other = "the app must connect as a role that owns nothing it is governed on";
    let mut closed = |message: String| found.blockers.push(Blocker::new(message).code(624).help(other));
    if is_applier {
        closed(format!("the app role \"{app}\" is the role that applies, which row-level security does not bind"));
    } else if owns {
        closed(format!("the app role \"{app}\" owns a governed table, and row-level security does not bind owners"));
    }
    if let Some(owners) = owners {
        closed(format!("the app role \"{app}\" is a member of {owners}, which row-level security does not bind"));
    }
    if superuser || bypass {
        let why = if superuser { "is a superuser" } else { "has BYPASSRLS" };
        closed(format!("the app role \"{app}\" {why}, so no rule binds it"));
    }
    if !switch {
        found.blockers.push(
            Blocker::new(format!("role \"{role}\" may not switch to the app role \"{app}\"")).code(618).help(format!(
                "GRANT {} TO {}",
                policy.model.app_role,
                Ident::new(&role)
            )),
        );
    }
    Ok(())
}

/// What the catalog says of a table.
struct Table {
    kind: String,
    owner: String,
    owned: bool,
    readable: bool,
    columns: BTreeMap<String, String>,
}

const TABLES: &str = "
SELECT w.s, w.t, c.relkind::text, pg_get_userbyid(c.relowner)::text, pg_has_role(c.relowner, 'USAGE'),
       has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'),
       ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a
             WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum),
       ARRAY(SELECT format_type(a.atttypid, NULL) FROM pg_catalog.pg_attribute a
             WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum)
FROM unnest($1::text[], $2::text[]) AS w(s, t)
JOIN pg_catalog.pg_namespace n ON n.nspname = w.s
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.t AND c.relkind IN ('r', 'p', 'v', 'm', 'f')";

/// Reads the tables the policy names, and finds those that are not there or not ours.
async fn tables(client: &Client, policy: &Policy<'_>, found: &mut Found) -> Result<BTreeMap<QualName, Table>, DbError> {
    let mut named: BTreeMap<&QualName, Span> = BTreeMap::new();
    for ty in &policy.model.types {
        named.entry(&ty.table).or_insert(ty.span);
        for source in ty.relations.iter().flat_map(|relation| &relation.sources) {
            if let Place::Table { table, .. } = &source.place {
                named.entry(table).or_insert(source.span);
            }
        }
    }
    let locked: BTreeSet<&QualName> = policy
        .emitted
        .objects
        .iter()
        .flat_map(|object| &object.locks)
        .filter(|lock| lock.mode > LockMode::AccessShare)
        .map(|lock| &lock.table)
        .chain(policy.emitted.tables.iter().map(|table| &table.table))
        .chain(policy.emitted.graphs.iter().map(|graph| &graph.table))
        .collect();
    let all: BTreeSet<&QualName> = named.keys().copied().chain(locked.iter().copied()).collect();
    let schemas: Vec<&str> = all.iter().map(|t| t.schema.as_str()).collect();
    let names: Vec<&str> = all.iter().map(|t| t.name.as_str()).collect();
    let mut out = BTreeMap::new();
    for row in client.query(TABLES, &[&schemas, &names]).await? {
        let columns: Vec<String> = row.try_get(6)?;
        let types: Vec<String> = row.try_get(7)?;
        let table = Table {
            kind: row.try_get(2)?,
            owner: row.try_get(3)?,
            owned: row.try_get(4)?,
            readable: row.try_get(5)?,
            columns: columns.into_iter().zip(types).collect(),
        };
        out.insert(QualName::new(row.try_get::<_, String>(0)?, row.try_get::<_, String>(1)?), table);
    }
    let role: String = client.query_one("SELECT current_user::text", &[]).await?.try_get(0)?;
    for name in all {
        let at = named.get(name).copied();
        let must_own = locked.contains(name);
        if let Some(blocker) = table_blocker(name, out.get(name), must_own, &role) {
            found.blockers.push(match at {
                Some(span) => blocker.at(policy.sources, span),
                None => blocker,
            });
        }
    }
    Ok(out)
}

fn table_blocker(name: &QualName, table: Option<&Table>, must_own: bool, role: &str) -> Option<Blocker> {
    let plain = name.plain();
    let Some(table) = table else {
        return Some(Blocker::new(format!("there is no table {plain}")).code(601));
    };
    if must_own && !matches!(table.kind.as_str(), "r" | "p") {
        let what = match table.kind.as_str() {
            "v" => "a view",
            "m" => "a materialized view",
            _ => "a foreign table",
        };
        return Some(Blocker::new(format!("{plain} is {what}; rules and inheritance need a table")).code(601));
    }
    if must_own && !table.owned {
        return Some(
            Blocker::new(format!("role \"{role}\" does not own {plain}, which belongs to \"{}\"", table.owner)).help(
                format!("apply as \"{}\", or: GRANT {} TO {}", table.owner, Ident::new(&table.owner), Ident::new(role)),
            ),
        );
    }
    (!table.readable).then(|| {
        Blocker::new(format!("role \"{role}\" may not read {plain}"))
            .help(format!("GRANT SELECT ON {name} TO {}, with USAGE on its schema", Ident::new(role)))
    })
}

/// A column the policy names.
struct Use<'a> {
    table: &'a QualName,
    column: &'a Ident,
    /// What it must be: a key's own type exactly, a reference to one comparable to it.
    key: Option<(KeyType, Exact)>,
    span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Exact {
    Yes,
    No,
}

/// Finds columns that are not there (AZ601) and keys of another type (AZ602). Returns the tables they are on.
fn columns<'a>(policy: &Policy<'a>, tables: &BTreeMap<QualName, Table>, found: &mut Found) -> BTreeSet<&'a QualName> {
    let mut wrong = BTreeSet::new();
    let mut said = BTreeSet::new();
    for used in uses(policy) {
        let Some(table) = tables.get(used.table) else {
            wrong.insert(used.table);
            continue;
        };
        let blocker = match table.columns.get(used.column.as_str()) {
            None => no_column(&used, table),
            Some(ty) => match other_type(&used, ty) {
                Some(blocker) => blocker,
                None => continue,
            },
        };
        wrong.insert(used.table);
        if said.insert((used.table, used.column.clone(), blocker.message.clone())) {
            found.blockers.push(blocker.at(policy.sources, used.span));
        }
    }
    wrong
}

fn no_column(used: &Use<'_>, table: &Table) -> Blocker {
    let near = table
        .columns
        .keys()
        .map(|name| (strsim::damerau_levenshtein(name, used.column.as_str()), name))
        .filter(|(distance, name)| *distance <= 1 + name.chars().count() / 3)
        .min();
    let mut message = format!("{} has no column {}", used.table.plain(), used.column.plain());
    if let Some((_, name)) = near {
        message.push_str(&format!("; did you mean {}?", Ident::new(name).plain()));
    }
    Blocker::new(message).code(601)
}

fn other_type(used: &Use<'_>, ty: &str) -> Option<Blocker> {
    let (key, exact) = used.key?;
    let wanted = key.sql();
    let column = format!("{}.{}", used.table.plain(), used.column.plain());
    if exact == Exact::Yes {
        return (ty != wanted).then(|| {
            Blocker::new(format!("{column} is {ty}, and the policy says its key is {wanted}"))
                .code(602)
                .help(format!("write the key with its type: ({} {ty})", used.column.plain()))
        });
    }
    let kin: &[&str] = match key {
        KeyType::Bigint | KeyType::Integer | KeyType::Smallint => &["bigint", "integer", "smallint"],
        KeyType::Text | KeyType::Varchar => &["text", "character varying"],
        KeyType::Uuid => &["uuid"],
    };
    (!kin.contains(&ty))
        .then(|| Blocker::new(format!("{column} is {ty}, and the key it should hold is {wanted}")).code(602))
}

fn uses<'a>(policy: &Policy<'a>) -> Vec<Use<'a>> {
    let mut out = Vec::new();
    for ty in &policy.model.types {
        out.extend(ty.key.iter().map(|key| Use {
            table: &ty.table,
            column: &key.column,
            key: Some((key.ty, Exact::Yes)),
            span: ty.span,
        }));
        for source in ty.relations.iter().flat_map(|relation| &relation.sources) {
            source_uses(policy, ty, source, &mut out);
        }
    }
    for rules in &policy.model.rules {
        let Some(ty) = policy.model.ty(rules.ty) else { continue };
        for rule in &rules.rules {
            let (Command::UpdateBefore(columns) | Command::UpdateAfter(columns) | Command::Mask(columns)) =
                &rule.command
            else {
                continue;
            };
            out.extend(columns.iter().map(|column| Use { table: &ty.table, column, key: None, span: rule.span }));
        }
    }
    out
}

fn source_uses<'a>(policy: &Policy<'a>, ty: &'a TypeDef, source: &'a Source, out: &mut Vec<Use<'a>>) {
    let subject = match source.subject {
        Subject::Type(id) | Subject::Group(id, _) | Subject::Everyone(id) => policy.model.ty(id),
        Subject::Anyone | Subject::Link => None,
    };
    let keys = |ty: Option<&TypeDef>| ty.map(|ty| ty.key.iter().map(|key| key.ty).collect()).unwrap_or_default();
    let mut add = |table: &'a QualName, columns: &'a [Ident], keys: Vec<KeyType>| {
        out.extend(columns.iter().enumerate().map(|(at, column)| Use {
            table,
            column,
            key: keys.get(at).map(|key| (*key, Exact::No)),
            span: source.span,
        }));
    };
    match &source.place {
        Place::Column { columns } => add(&ty.table, columns, keys(subject)),
        Place::Table { table, object, subject: columns, .. } => {
            add(table, object, keys(Some(ty)));
            add(table, columns, keys(subject));
        }
        Place::Polymorphic { type_column, id_column } => {
            add(&ty.table, std::slice::from_ref(type_column), Vec::new());
            // Keys of several types stand in one column as text.
            let this = policy.model.types.iter().position(|def| std::ptr::eq(def, ty)).map(TypeId);
            let text = this.is_some_and(|this| policy.model.pair_holds_text(this, id_column));
            let keys = if text { vec![KeyType::Text] } else { keys(subject) };
            add(&ty.table, std::slice::from_ref(id_column), keys);
        }
        Place::Shared { .. } | Place::Role { .. } => {}
    }
}
