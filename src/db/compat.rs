//! Whether this program and the database's last apply are of releases that work together. What an apply leaves behind
//! (functions, tables of ours) belongs to the release that made it.

use tokio_postgres::Client;

use super::error::DbError;

/// This program, as an apply records it.
pub(crate) const PROGRAM: &str = concat!("rowdeck ", env!("CARGO_PKG_VERSION"));

/// How the database's release compares with ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Release {
    /// Nothing was applied.
    None,
    /// The same.
    Same,
    /// The database is older.
    Older(String),
    /// The database is newer.
    Newer(String),
}

const LAST: &str = "
SELECT coalesce((SELECT has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
                 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                 WHERE n.nspname = 'authz' AND c.relname = 'policy_versions'), false), current_database()::text,
       EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = 'authz' AND c.relname = 'policy_versions'), current_user::text";

/// Reads which release applied last. A role that may not read it sees none.
pub async fn read(client: &Client) -> Result<Release, DbError> {
    if !client.query_one(LAST, &[]).await?.try_get::<_, bool>(0)? {
        return Ok(Release::None);
    }
    let sql = "SELECT program FROM authz.policy_versions ORDER BY version DESC LIMIT 1";
    Ok(match client.query_opt(sql, &[]).await? {
        Some(row) => compared(row.try_get(0)?),
        None => Release::None,
    })
}

/// Fails unless the database was applied to by this release.
///
/// # Errors
/// AZ609 without a policy; AZ616 when the database is newer; AZ626 when it is older.
pub async fn require(client: &Client) -> Result<(), DbError> {
    match read(client).await? {
        Release::Same => Ok(()),
        Release::None => {
            let row = client.query_one(LAST, &[]).await?;
            Err(if row.try_get(2)? { DbError::Hidden(row.try_get(3)?) } else { DbError::NoPolicy(row.try_get(1)?) })
        }
        Release::Newer(program) => Err(DbError::Usage(newer(&program))),
        Release::Older(program) => Err(DbError::Usage(format!(
            "this database was last applied to by {program}, and this is {PROGRAM} [AZ626]; apply the policy again \
             with: rowdeck apply, or rowdeck reapply"
        ))),
    }
}

/// The sentence of AZ616.
pub(crate) fn newer(program: &str) -> String {
    format!("this database was last applied to by {program}, and this is the older {PROGRAM} [AZ616]; use that release")
}

fn compared(program: &str) -> Release {
    let shown = crate::text::line(program).into_owned();
    match numbers(program).cmp(&numbers(PROGRAM)) {
        std::cmp::Ordering::Less => Release::Older(shown),
        std::cmp::Ordering::Equal => Release::Same,
        std::cmp::Ordering::Greater => Release::Newer(shown),
    }
}

/// `rowdeck 0.12.3` as 0, 12, 3.
fn numbers(program: &str) -> Vec<u64> {
    let version = program.rsplit(' ').next().unwrap_or("");
    version.split(['.', '-', '+']).map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_compare_by_number() {
        assert_eq!(compared(PROGRAM), Release::Same);
        assert_eq!(compared("rowdeck 0.0.0"), Release::Older("rowdeck 0.0.0".into()));
        assert_eq!(compared("rowdeck 999.10.0"), Release::Newer("rowdeck 999.10.0".into()));
        assert!(numbers("rowdeck 0.10.0") > numbers("rowdeck 0.9.12"));
    }
}
