-- What sharing keeps that does not depend on the policy.

-- Links are numbered together, whatever relation they open.
CREATE SEQUENCE IF NOT EXISTS authz_int.link_number AS bigint;

-- Roles people made. Owners and objects are of types of the policy; an id is text, as the API spells it.
CREATE TABLE IF NOT EXISTS authz_int.roles (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  owner_type text NOT NULL,
  owner_id text NOT NULL,
  type text NOT NULL,
  name text NOT NULL CHECK (name <> ''),
  permissions text[] NOT NULL,
  made_by text NOT NULL,
  made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (owner_type, owner_id, type, name)
);
REVOKE ALL ON authz_int.roles FROM PUBLIC;

-- A share must not outlive its ends. A share holds the rows at its ends with FOR KEY SHARE, and a delete under READ
-- COMMITTED sees it afterwards. A delete with an older snapshot does not: so shares always, and such deletes, change the
-- rows of the ends they touch here, and the one that comes second with an old snapshot fails with 40001.
CREATE TABLE IF NOT EXISTS authz_int.share_guard (
  stripe integer PRIMARY KEY,
  changes bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
REVOKE ALL ON authz_int.share_guard FROM PUBLIC;
INSERT INTO authz_int.share_guard (stripe) SELECT generate_series(0, 1023) ON CONFLICT DO NOTHING;

-- Changes the rows of these ends, each `TYPE ID`; of all ends when NULL.
CREATE OR REPLACE FUNCTION authz_int.guard_ends(ends text[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  stripes integer[] := CASE WHEN ends IS NULL THEN ARRAY(SELECT generate_series(0, 1023))
                       ELSE ARRAY(SELECT DISTINCT hashtext(e) & 1023 FROM unnest(ends) e) END;
BEGIN
  -- In one order, so that two of these wait for each other and never in a ring.
  PERFORM FROM authz_int.share_guard g WHERE g.stripe = ANY (stripes) ORDER BY g.stripe FOR NO KEY UPDATE;
  UPDATE authz_int.share_guard g SET changes = g.changes + 1 WHERE g.stripe = ANY (stripes);
END $$;
REVOKE ALL ON FUNCTION authz_int.guard_ends(text[]) FROM PUBLIC;

-- The same where this transaction's snapshot may be older than a share it does not see.
CREATE OR REPLACE FUNCTION authz_int.guard_gone(ends text[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    PERFORM authz_int.guard_ends(ends);
  END IF;
END $$;
REVOKE ALL ON FUNCTION authz_int.guard_gone(text[]) FROM PUBLIC;
