//! A digest of what a plan starts from in the catalog, so that an apply refuses when something moved since the plan was
//! read. Rows and statistics do not count; definitions, grants and memberships do.

use tokio_postgres::Client;

use super::Policy;
use super::state::Record;
use crate::db::error::DbError;

/// Rows of the catalog with the transactions that wrote them: whatever is altered gets another. What a vacuum or an
/// analyze writes is written in place.
const LIVE: &str = "
WITH named AS (
  SELECT c.oid FROM unnest($1::text[], $2::text[]) AS t(s, n)
  JOIN pg_catalog.pg_namespace n ON n.nspname = t.s JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = t.n
), ours AS (
  SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname IN ('authz', 'authz_gen', 'authz_int')
), lines(line) AS (
  SELECT format('relation %s %s', c.oid, c.xmin) FROM pg_catalog.pg_class c
    WHERE c.oid IN (SELECT n.oid FROM named n) OR c.relnamespace IN (SELECT o.oid FROM ours o)
  UNION ALL SELECT format('column %s %s %s', a.attrelid, a.attnum, a.xmin) FROM pg_catalog.pg_attribute a
    WHERE a.attrelid IN (SELECT n.oid FROM named n)
  UNION ALL SELECT format('policy %s %s', p.oid, p.xmin) FROM pg_catalog.pg_policy p
    WHERE p.polrelid IN (SELECT n.oid FROM named n)
  UNION ALL SELECT format('trigger %s %s', t.oid, t.xmin) FROM pg_catalog.pg_trigger t
    WHERE t.tgrelid IN (SELECT n.oid FROM named n)
  UNION ALL SELECT format('child %s %s', i.inhrelid, i.inhparent) FROM pg_catalog.pg_inherits i
    WHERE i.inhparent IN (SELECT n.oid FROM named n)
  UNION ALL SELECT format('function %s %s', p.oid, p.xmin) FROM pg_catalog.pg_proc p
    WHERE p.pronamespace IN (SELECT o.oid FROM ours o)
  UNION ALL SELECT format('role %s %s %s', r.oid, r.rolsuper, r.rolbypassrls) FROM pg_catalog.pg_roles r WHERE r.rolname = $3
  UNION ALL SELECT format('member %s %s %s', m.roleid, m.member, m.xmin) FROM pg_catalog.pg_auth_members m
    JOIN pg_catalog.pg_roles r ON r.oid = m.member WHERE r.rolname = $3)
SELECT encode(sha256(convert_to(coalesce(string_agg(l.line, ' ' ORDER BY l.line COLLATE \"C\"), ''), 'UTF8')), 'hex')
FROM lines l";

/// Reads it.
pub(super) async fn digest(client: &Client, policy: &Policy<'_>) -> Result<String, DbError> {
    let record = Record::of(policy);
    let part = |at: usize| -> Vec<&str> {
        let tables = record.governed.iter().chain(&record.reads);
        tables.filter_map(|table| table.get(at)).map(String::as_str).collect()
    };
    let app = policy.model.app_role.as_str();
    Ok(client.query_one(LIVE, &[&part(0), &part(1), &app]).await?.try_get(0)?)
}
