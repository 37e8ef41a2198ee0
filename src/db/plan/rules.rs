//! What stands in the way of rules: masked columns that stay readable (AZ611), a masked view whose name is taken, a
//! cascade that no foreign key makes (AZ625).

use tokio_postgres::Client;

use super::preflight::Found;
use super::{Blocker, Plan, Policy};
use crate::compiler::ident::QualName;
use crate::compiler::model::{Cascade, Command, TableRules};
use crate::compiler::objects::ObjectKind;
use crate::db::error::DbError;

/// Checks every block of rules.
pub(super) async fn check(client: &Client, policy: &Policy<'_>, plan: &Plan, found: &mut Found) -> Result<(), DbError> {
    for rules in &policy.model.rules {
        let Some(ty) = policy.model.ty(rules.ty) else { continue };
        if let Some(view) = &rules.view {
            name_is_free(client, policy, plan, rules, view, found).await?;
            readable(client, policy, rules, &ty.table, found).await?;
        }
        for cascade in &rules.cascades {
            acts(client, policy, cascade, &ty.table, found).await?;
        }
    }
    Ok(())
}

/// A view that a policy made is replaced; anything else of its name is somebody's.
async fn name_is_free(
    client: &Client,
    policy: &Policy<'_>,
    plan: &Plan,
    rules: &TableRules,
    view: &QualName,
    found: &mut Found,
) -> Result<(), DbError> {
    let name = view.to_string();
    let before = plan.in_force.iter().flat_map(|version| version.record.all());
    let ours = before.into_iter().any(|made| made.kind == ObjectKind::View.word() && made.name == name);
    let sql = "SELECT n.oid IS NOT NULL, coalesce(has_schema_privilege(n.oid, 'CREATE'), false),
                      EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid AND c.relname = $2)
               FROM (SELECT) AS one LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = $1";
    let row = client.query_one(sql, &[&view.schema.as_str(), &view.name.as_str()]).await?;
    let (schema, may, taken): (bool, bool, bool) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let blocker = if !schema {
        Blocker::new(format!("there is no schema {} for the masked view {}", view.schema.plain(), view.plain()))
            .code(601)
    } else if !may {
        Blocker::new(format!("the role that applies may not create the masked view {}", view.plain()))
            .help(format!("GRANT CREATE ON SCHEMA {} to it", view.schema))
    } else if taken && !ours {
        Blocker::new(format!("{} is there already, and no policy made it", view.plain()))
            .help("give the masked view another name, or drop what has this one")
    } else {
        return Ok(());
    };
    found.blockers.push(blocker.at(policy.sources, rules.span));
    Ok(())
}

/// Privileges to read some columns of a table that an apply cannot take back: of roles that the app role is a member of,
/// of everybody, and of the app role by somebody else than the table's owner.
const READABLE: &str = "
SELECT DISTINCT coalesce(g.rolname, 'PUBLIC'), a.attname::text
FROM pg_catalog.pg_namespace n
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = $2
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = ANY ($3::text[])
CROSS JOIN LATERAL (SELECT * FROM aclexplode(c.relacl) UNION ALL SELECT * FROM aclexplode(a.attacl)) AS p
JOIN pg_catalog.pg_roles app ON app.rolname = $4
LEFT JOIN pg_catalog.pg_roles g ON g.oid = p.grantee
WHERE n.nspname = $1 AND p.privilege_type = 'SELECT'
  AND CASE p.grantee WHEN 0 THEN true WHEN app.oid THEN p.grantor <> c.relowner
      ELSE pg_has_role(app.oid, p.grantee, 'MEMBER') END
ORDER BY 1, 2";

async fn readable(
    client: &Client,
    policy: &Policy<'_>,
    rules: &TableRules,
    table: &QualName,
    found: &mut Found,
) -> Result<(), DbError> {
    for rule in &rules.rules {
        let Command::Mask(columns) = &rule.command else { continue };
        let names: Vec<&str> = columns.iter().map(|column| column.as_str()).collect();
        let app = policy.model.app_role.as_str();
        let rows = client.query(READABLE, &[&table.schema.as_str(), &table.name.as_str(), &names, &app]).await?;
        for row in rows {
            let (through, column): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            let message =
                format!("the masked column {}.{column} stays readable for \"{app}\" through {through}", table.plain());
            let help = format!("REVOKE SELECT ON {table} FROM {through}, and grant what is needed by column");
            found.blockers.push(Blocker::new(message).code(611).help(help).at(policy.sources, rule.span));
        }
    }
    Ok(())
}

/// A foreign key of the table to the other one that changes rows by itself.
const ACTS: &str = "
SELECT EXISTS (
  SELECT FROM pg_catalog.pg_constraint k
  JOIN pg_catalog.pg_class c ON c.oid = k.conrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_catalog.pg_class f ON f.oid = k.confrelid JOIN pg_catalog.pg_namespace fn ON fn.oid = f.relnamespace
  WHERE k.contype = 'f' AND n.nspname = $1 AND c.relname = $2 AND fn.nspname = $3 AND f.relname = $4
    AND (k.confdeltype IN ('c', 'n', 'd') OR k.confupdtype IN ('c', 'n', 'd'))
    AND (cardinality($5::text[]) = 0
         OR (SELECT array_agg(a.attname::text ORDER BY a.attname) FROM pg_catalog.pg_attribute a
             WHERE a.attrelid = c.oid AND a.attnum = ANY (k.conkey))
            = (SELECT array_agg(w ORDER BY w) FROM unnest($5::text[]) AS w)))";

async fn acts(
    client: &Client,
    policy: &Policy<'_>,
    cascade: &Cascade,
    table: &QualName,
    found: &mut Found,
) -> Result<(), DbError> {
    let columns: Vec<&str> = cascade.columns.iter().map(|column| column.as_str()).collect();
    let from = &cascade.from;
    let row = client
        .query_one(
            ACTS,
            &[&table.schema.as_str(), &table.name.as_str(), &from.schema.as_str(), &from.name.as_str(), &columns],
        )
        .await?;
    if !row.try_get::<_, bool>(0)? {
        let listed: Vec<String> = cascade.columns.iter().map(|column| column.plain()).collect();
        let of = if listed.is_empty() { String::new() } else { format!(" ({})", listed.join(", ")) };
        let message = format!(
            "{} has no foreign key{of} to {} that changes rows when those of {1} change",
            table.plain(),
            from.plain()
        );
        let help = "an acting key says ON DELETE or ON UPDATE with CASCADE, SET NULL or SET DEFAULT";
        found.blockers.push(Blocker::new(message).code(625).help(help).at(policy.sources, cascade.span));
    }
    Ok(())
}
