-- Schemas and the tables that outlive any one policy. Run by every apply, in its transaction; safe to run again.
-- From here to the end of the transaction bare names mean PostgreSQL's own and nothing else.
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;

CREATE SCHEMA IF NOT EXISTS authz;
CREATE SCHEMA IF NOT EXISTS authz_gen;
CREATE SCHEMA IF NOT EXISTS authz_int;
REVOKE ALL ON SCHEMA authz_int FROM PUBLIC;

CREATE TABLE IF NOT EXISTS authz.settings (
  key text PRIMARY KEY,
  value text NOT NULL
);

-- Every policy that was ever applied; the one with the highest version is in force.
CREATE TABLE IF NOT EXISTS authz.policy_versions (
  version bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  applied_by text NOT NULL DEFAULT session_user,
  name text NOT NULL,
  source text NOT NULL,
  digest text NOT NULL,
  program text NOT NULL,
  objects jsonb NOT NULL DEFAULT '[]'
);

-- The inheritance graphs whose index tables exist and are kept by triggers.
CREATE TABLE IF NOT EXISTS authz_int.graphs (
  name text PRIMARY KEY,
  title text NOT NULL,
  built_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

REVOKE ALL ON ALL TABLES IN SCHEMA authz FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA authz_int FROM PUBLIC;
