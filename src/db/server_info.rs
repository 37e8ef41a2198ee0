//! What must be known of a session before its answers can be trusted: the server, the role and whether the rules bind
//! it, and the policy in force.

use tokio_postgres::Client;

use super::error::DbError;
use super::target::{Target, TlsMode};
use super::tls::TlsState;

/// The oldest server we work with, as `server_version_num` counts.
pub const OLDEST: i32 = 150_000;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// `150007` for 15.7.
    pub version_num: i32,
    /// `15.7`.
    pub version: String,
    /// The database.
    pub database: String,
    /// The role in effect.
    pub role: String,
    /// What would make the role see and do more than the rules say.
    pub flags: RoleFlags,
    /// The server is a standby.
    pub in_recovery: bool,
    /// Transactions start read-only.
    pub read_only: bool,
    /// The database is marked a development database.
    pub development: bool,
    /// The policy in force, when there is one and the role may read it.
    pub policy: Option<PolicyInForce>,
    /// There are versions of a policy, and the role may not read them.
    pub policy_hidden: bool,
    /// What protects the session.
    pub tls: TlsState,
    /// The session's server process.
    pub backend_pid: i32,
}

/// What frees a role from row-level security.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RoleFlags {
    /// Superusers are bound by nothing.
    pub superuser: bool,
    /// `BYPASSRLS`.
    pub bypass_rls: bool,
    /// It owns governed tables, or is a member of their owner; row-level security does not bind owners.
    pub owner: bool,
}

impl RoleFlags {
    /// True when the rules bind the role.
    pub fn is_bound(self) -> bool {
        !(self.superuser || self.bypass_rls || self.owner)
    }

    /// `superuser`, `bypasses RLS`, `owns tables`: whatever applies.
    pub fn words(self) -> Vec<&'static str> {
        [(self.superuser, "superuser"), (self.bypass_rls, "bypasses RLS"), (self.owner, "owns tables")]
            .into_iter()
            .filter_map(|(holds, words)| holds.then_some(words))
            .collect()
    }
}

/// The policy in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyInForce {
    /// Its version, counted from 1 in this database.
    pub version: i64,
    /// Its file's name.
    pub name: String,
    /// The digest of what it generated.
    pub digest: String,
    /// When it was applied, as the server writes it in UTC.
    pub applied_at: String,
    /// The role that applied it.
    pub applied_by: String,
}

/// One row about the session. Governed tables are those with policies of ours; before the first apply there are none,
/// so whoever owns tables then is told so by the plan.
const SESSION: &str = "
SELECT current_setting('server_version_num')::int AS version_num,
       split_part(current_setting('server_version'), ' ', 1) AS version,
       current_database()::text AS database,
       current_user::text AS role,
       r.rolsuper AS superuser,
       r.rolbypassrls AS bypass_rls,
       EXISTS (SELECT FROM pg_catalog.pg_policy p JOIN pg_catalog.pg_class c ON c.oid = p.polrelid
               WHERE p.polname ^@ 'authz_' AND pg_catalog.pg_has_role(current_user, c.relowner, 'USAGE')
                 AND NOT r.rolsuper) AS owner,
       pg_catalog.pg_is_in_recovery() AS in_recovery,
       current_setting('transaction_read_only')::bool AS read_only,
       pg_catalog.pg_backend_pid() AS pid,
       coalesce((SELECT s.ssl FROM pg_catalog.pg_stat_ssl s WHERE s.pid = pg_catalog.pg_backend_pid()), false) AS ssl,
       EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
               WHERE n.nspname = 'authz' AND c.relname = 'policy_versions') AS has_versions,
       coalesce((SELECT has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
                 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                 WHERE n.nspname = 'authz' AND c.relname = 'policy_versions'), false) AS sees_versions,
       coalesce((SELECT has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')
                 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                 WHERE n.nspname = 'authz' AND c.relname = 'settings'), false) AS sees_settings
FROM pg_catalog.pg_roles r WHERE r.rolname = current_user";

const POLICY: &str = "
SELECT version, name, digest, to_char(applied_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS applied_at, applied_by
FROM authz.policy_versions ORDER BY version DESC LIMIT 1";

impl ServerInfo {
    /// Asks the server. `tls` is what a TLS session to this target verifies.
    pub async fn read(client: &Client, target: &Target, tls: TlsState) -> Result<ServerInfo, DbError> {
        let row = client.query_opt(SESSION, &[]).await?.ok_or_else(|| {
            DbError::Unexpected(format!("role \"{}\" is not in pg_roles", crate::text::line(&target.user)))
        })?;
        let mut info = ServerInfo {
            version_num: row.try_get("version_num")?,
            version: row.try_get("version")?,
            database: row.try_get("database")?,
            role: row.try_get("role")?,
            flags: RoleFlags {
                superuser: row.try_get("superuser")?,
                bypass_rls: row.try_get("bypass_rls")?,
                owner: row.try_get("owner")?,
            },
            in_recovery: row.try_get("in_recovery")?,
            read_only: row.try_get("read_only")?,
            development: false,
            policy: None,
            policy_hidden: row.try_get::<_, bool>("has_versions")? && !row.try_get::<_, bool>("sees_versions")?,
            // Under `prefer` the server may have declined. Otherwise there was no session without what we asked for; a
            // pooler in between may have another opinion of its own connection.
            tls: if target.tls == TlsMode::Prefer && tls == TlsState::Unverified && !row.try_get::<_, bool>("ssl")? {
                TlsState::Plain
            } else {
                tls
            },
            backend_pid: row.try_get("pid")?,
        };
        if row.try_get("sees_versions")? {
            info.policy = match client.query_opt(POLICY, &[]).await? {
                Some(row) => Some(PolicyInForce {
                    version: row.try_get("version")?,
                    name: row.try_get("name")?,
                    digest: row.try_get("digest")?,
                    applied_at: row.try_get("applied_at")?,
                    applied_by: row.try_get("applied_by")?,
                }),
                None => None,
            };
        }
        if row.try_get("sees_settings")? {
            let value = client.query_opt("SELECT value FROM authz.settings WHERE key = 'development'", &[]).await?;
            info.development = match value {
                Some(row) => row.try_get::<_, String>(0)? == "true",
                None => false,
            };
        }
        Ok(info)
    }

    /// The policy in force, or why there is none for this role (AZ609, or that it may not read it).
    pub fn require_policy(&self) -> Result<&PolicyInForce, DbError> {
        if self.policy_hidden {
            return Err(DbError::Hidden(crate::text::line(&self.role).into_owned()));
        }
        self.policy.as_ref().ok_or_else(|| DbError::NoPolicy(self.database.clone()))
    }
}
