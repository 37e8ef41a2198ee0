-- What the database enforces, as the server writes it. An apply keeps this description; authz.drift() compares what is
-- there now with what was kept.
--
-- Texts are kept, not hashes, so that drift can show both and mend with the very statement. They are written by the same
-- functions that pg_dump uses, with the settings that change how the server writes pinned, and name roles and tables,
-- never OIDs: a dump restored into the same major version describes itself in the same words (PostgreSQL's own tests hold
-- it to that). Another major version may write an expression otherwise, so the version is kept with them.
CREATE TABLE IF NOT EXISTS authz_int.enforced (
  kind text NOT NULL,
  object text NOT NULL,
  part_of text NOT NULL,
  definition text NOT NULL,
  PRIMARY KEY (kind, object)
);
REVOKE ALL ON authz_int.enforced FROM PUBLIC;

-- The tables of the policy in force: governed, read (its rules or its index trust what stands in them), and columns
-- with masks. By name, so that a restored database has them too.
CREATE OR REPLACE FUNCTION authz_int.policy_tables()
RETURNS TABLE (part text, oid oid, name text, col name)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT k.part, c.oid, format('%I.%I', n.nspname, c.relname), (e.item ->> 2)::name
  FROM (SELECT v.objects FROM authz.policy_versions v ORDER BY v.version DESC LIMIT 1) AS v,
       (VALUES ('governed'), ('reads'), ('masks')) AS k(part), jsonb_array_elements(v.objects -> k.part) AS e(item)
  JOIN pg_namespace n ON n.nspname = e.item ->> 0
  JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = e.item ->> 1
$$;

-- The role the app connects as.
CREATE OR REPLACE FUNCTION authz_int.app_role() RETURNS oid
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT r.oid FROM pg_roles r
  WHERE r.rolname = (SELECT v.objects ->> 'app_role' FROM authz.policy_versions v ORDER BY v.version DESC LIMIT 1)
$$;

-- Partitions and inheritance children, at any depth, of tables of the policy that are not such tables themselves.
CREATE OR REPLACE FUNCTION authz_int.policy_children()
RETURNS TABLE (part text, oid oid, root oid)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE down(part, oid, root) AS (
    SELECT t.part, i.inhrelid, t.oid FROM authz_int.policy_tables() AS t JOIN pg_inherits i ON i.inhparent = t.oid
    WHERE t.part IN ('governed', 'reads')
    UNION SELECT d.part, i.inhrelid, d.root FROM down d JOIN pg_inherits i ON i.inhparent = d.oid)
  SELECT d.part, d.oid, d.root FROM down d
  WHERE NOT EXISTS (SELECT FROM authz_int.policy_tables() AS t WHERE t.part = d.part AND t.oid = d.oid)
$$;

-- Schemas, tables, views, functions and types of ours, with their owners and grants.
CREATE OR REPLACE FUNCTION authz_int.describe_own()
RETURNS TABLE (kind text, object text, part_of text, definition text, undo text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  WITH ours AS (
    SELECT n.oid, n.nspname, n.nspowner, n.nspacl FROM pg_namespace n WHERE n.nspname IN ('authz', 'authz_gen', 'authz_int')
  ), made AS (
    SELECT m ->> 'name' AS name FROM (SELECT v.objects FROM authz.policy_versions v ORDER BY v.version DESC LIMIT 1) AS v,
      jsonb_array_elements(v.objects -> 'objects') AS m WHERE m ->> 'kind' = 'view'
  ), rels AS (
    SELECT c.*, format('%I.%I', n.nspname, c.relname) AS name,
           CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS word
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
      AND (n.oid IN (SELECT o.oid FROM ours o)
           OR c.relkind = 'v' AND format('%I.%I', n.nspname, c.relname) IN (SELECT m.name FROM made m))
  ), routines AS (
    SELECT p.*, p.oid::regprocedure::text AS name FROM pg_proc p WHERE p.pronamespace IN (SELECT o.oid FROM ours o)
  ), types AS (
    SELECT t.*, format('%I.%I', o.nspname, t.typname) AS name FROM pg_type t JOIN ours o ON o.oid = t.typnamespace
    LEFT JOIN pg_class c ON c.oid = t.typrelid
    WHERE t.typtype IN ('d', 'e') OR t.typtype = 'c' AND c.relkind = 'c'
  ), owned(word, name, owner, acl, grants_on) AS (
    SELECT 'SCHEMA', quote_ident(o.nspname), o.nspowner, coalesce(o.nspacl, acldefault('n', o.nspowner)), 'SCHEMA' FROM ours o
    UNION ALL
    SELECT r.word, r.name, r.relowner, coalesce(r.relacl, acldefault(CASE r.relkind WHEN 'S' THEN 's'::"char" ELSE 'r' END, r.relowner)),
           CASE r.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END FROM rels r
    UNION ALL SELECT 'ROUTINE', p.name, p.proowner, coalesce(p.proacl, acldefault('f', p.proowner)), 'ROUTINE' FROM routines p
    UNION ALL SELECT 'TYPE', t.name, t.typowner, coalesce(t.typacl, acldefault('T', t.typowner)), 'TYPE' FROM types t)
  SELECT 'schema', quote_ident(o.nspname), '', format('CREATE SCHEMA %I', o.nspname), NULL FROM ours o
  UNION ALL
  SELECT 'owner', lower(w.word) || ' ' || w.name, w.name,
         format('ALTER %s %s OWNER TO %I', w.word, w.name, pg_get_userbyid(w.owner)), NULL FROM owned w
  UNION ALL
  SELECT 'grant', format('%s on %s %s to %s', a.privilege_type, lower(w.grants_on), w.name, g.grantee), w.name,
         format('GRANT %s ON %s %s TO %s%s', a.privilege_type, w.grants_on, w.name, g.grantee,
                CASE WHEN bool_or(a.is_grantable) THEN ' WITH GRANT OPTION' ELSE '' END),
         format('REVOKE %s ON %s %s FROM %s', a.privilege_type, w.grants_on, w.name, g.grantee)
  FROM owned w CROSS JOIN LATERAL aclexplode(w.acl) AS a
  CROSS JOIN LATERAL (SELECT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END) AS g(grantee)
  WHERE a.grantee <> w.owner
  GROUP BY a.privilege_type, w.grants_on, w.name, g.grantee
  UNION ALL
  SELECT 'grant', format('%s (%I) on table %s to %s', x.privilege_type, a.attname, r.name, g.grantee), r.name,
         format('GRANT %s (%I) ON %s TO %s', x.privilege_type, a.attname, r.name, g.grantee),
         format('REVOKE %s (%I) ON %s FROM %s', x.privilege_type, a.attname, r.name, g.grantee)
  FROM rels r JOIN pg_attribute a ON a.attrelid = r.oid AND NOT a.attisdropped CROSS JOIN LATERAL aclexplode(a.attacl) AS x
  CROSS JOIN LATERAL (SELECT CASE WHEN x.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(x.grantee)) END) AS g(grantee)
  WHERE x.grantee <> r.relowner
  GROUP BY x.privilege_type, a.attname, r.name, g.grantee
  UNION ALL
  SELECT 'table', r.name, '', format('TABLE %s (%s)', r.name,
           (SELECT string_agg(concat_ws(' ', quote_ident(a.attname), format_type(a.atttypid, a.atttypmod),
                                        CASE WHEN a.attnotnull THEN 'NOT NULL' END,
                                        'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), CASE WHEN a.attidentity <> '' THEN 'identity ' || a.attidentity::text END,
                                        CASE WHEN a.attgenerated <> '' THEN 'generated ' || a.attgenerated::text END), ', ' ORDER BY a.attnum)
            FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
            WHERE a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped))
           || CASE r.relpersistence WHEN 'u' THEN ' UNLOGGED' ELSE '' END,
         format('DROP %s %s', CASE r.relkind WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'TABLE' END, r.name)
  FROM rels r WHERE r.relkind IN ('r', 'p', 'm', 'f')
  UNION ALL
  SELECT 'sequence', r.name, '', format('SEQUENCE %s AS %s', r.name, format_type(s.seqtypid, NULL)), format('DROP SEQUENCE %s', r.name)
  FROM rels r JOIN pg_sequence s ON s.seqrelid = r.oid
  UNION ALL
  SELECT 'index', format('%I.%I', o.nspname, i.relname), r.name, pg_get_indexdef(x.indexrelid),
         format('DROP INDEX %I.%I', o.nspname, i.relname)
  FROM rels r JOIN pg_index x ON x.indrelid = r.oid JOIN pg_class i ON i.oid = x.indexrelid JOIN ours o ON o.oid = i.relnamespace
  WHERE NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = x.indexrelid AND k.conrelid = r.oid)
  UNION ALL
  SELECT 'constraint', format('%s: %I', r.name, k.conname), r.name,
         format('ALTER TABLE %s ADD CONSTRAINT %I %s', r.name, k.conname, pg_get_constraintdef(k.oid)),
         format('ALTER TABLE %s DROP CONSTRAINT %I', r.name, k.conname)
  -- NOT NULL is a constraint from 18 on; the columns say it already.
  FROM rels r JOIN pg_constraint k ON k.conrelid = r.oid WHERE k.contype IN ('c', 'f', 'p', 'u', 'x')
  UNION ALL
  SELECT 'view', r.name, '', format('CREATE OR REPLACE VIEW %s%s AS %s', r.name,
           (SELECT ' WITH (' || string_agg(format('%s=%s', o.option_name, o.option_value), ', ' ORDER BY o.option_name) || ')'
            FROM pg_options_to_table(r.reloptions) AS o), rtrim(pg_get_viewdef(r.oid), ';')),
         format('DROP VIEW %s', r.name)
  FROM rels r WHERE r.relkind = 'v'
  UNION ALL
  SELECT 'function', p.name, '', CASE WHEN p.prokind IN ('f', 'p') THEN pg_get_functiondef(p.oid) ELSE 'aggregate' END,
         format('DROP ROUTINE %s', p.name) FROM routines p
  UNION ALL
  SELECT 'type', t.name, '', format('TYPE %s %s', t.name, coalesce(
           (SELECT string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY a.attnum)
            FROM pg_attribute a WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped),
           (SELECT string_agg(quote_literal(e.enumlabel), ', ' ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid),
           format_type(t.typbasetype, t.typtypmod))),
         format('DROP TYPE %s', t.name) FROM types t
$$;

-- What stands on the tables of others: row-level security, policies, triggers of ours, partitions and children.
CREATE OR REPLACE FUNCTION authz_int.describe_tables()
RETURNS TABLE (kind text, object text, part_of text, definition text, undo text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  WITH of_policy AS (
    SELECT t.oid, true AS root, t.part = 'governed' AS governed FROM authz_int.policy_tables() AS t WHERE t.part IN ('governed', 'reads')
    UNION ALL SELECT ch.oid, false, ch.part = 'governed' FROM authz_int.policy_children() AS ch
  ), tables AS (
    SELECT c.oid, c.relrowsecurity, c.relforcerowsecurity, n.nspname, format('%I.%I', n.nspname, c.relname) AS name,
           coalesce((SELECT bool_or(p.governed) FROM of_policy p WHERE p.oid = c.oid), false) AS governed
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid IN (SELECT p.oid FROM of_policy p)
       OR n.nspname IN ('authz', 'authz_gen', 'authz_int') AND c.relkind IN ('r', 'p')
       OR c.oid IN (SELECT p.polrelid FROM pg_policy p WHERE p.polname ^@ 'authz_')
  )
  SELECT 'row security', t.name, t.name, format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', t.name), NULL
  FROM tables t WHERE t.relrowsecurity
  UNION ALL
  SELECT 'forced row security', t.name, t.name, format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', t.name),
         format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', t.name)
  FROM tables t WHERE t.relforcerowsecurity
  UNION ALL
  SELECT 'policy', format('%s: %I', t.name, p.polname), t.name,
         format('CREATE POLICY %I ON %s AS %s FOR %s TO %s%s%s', p.polname, t.name,
                CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
                CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE' ELSE 'ALL' END,
                (SELECT string_agg(CASE WHEN r = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(r)) END, ', '
                                   ORDER BY CASE WHEN r = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(r)) END)
                 FROM unnest(p.polroles) AS r),
                ' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')',
                ' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')'),
         format('DROP POLICY %I ON %s', p.polname, t.name)
  FROM tables t JOIN pg_policy p ON p.polrelid = t.oid WHERE t.governed OR p.polname ^@ 'authz_' OR t.nspname ^@ 'authz'
  UNION ALL
  SELECT 'trigger', format('%s: %I', g.tgrelid::regclass, g.tgname), g.tgrelid::regclass::text, pg_get_triggerdef(g.oid),
         format('DROP TRIGGER %I ON %s', g.tgname, g.tgrelid::regclass)
  FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE NOT g.tgisinternal AND g.tgparentid = 0 AND (g.tgname ^@ 'authz_' OR n.nspname IN ('authz', 'authz_gen', 'authz_int'))
  UNION ALL
  SELECT 'trigger state', format('%s: %I', g.tgrelid::regclass, g.tgname), format('%s: %I', g.tgrelid::regclass, g.tgname),
         format('ALTER TABLE %s %s TRIGGER %I', g.tgrelid::regclass,
                CASE g.tgenabled WHEN 'D' THEN 'DISABLE' WHEN 'A' THEN 'ENABLE ALWAYS' WHEN 'R' THEN 'ENABLE REPLICA' ELSE 'ENABLE' END,
                g.tgname), NULL
  FROM pg_trigger g WHERE NOT g.tgisinternal AND g.tgname ^@ 'authz_'
  UNION ALL
  SELECT 'child', format('%I.%I of %s', n.nspname, c.relname, ch.root::regclass), '',
         format('child %I.%I', n.nspname, c.relname),
         format('ALTER TABLE %I.%I ENABLE ROW LEVEL SECURITY', n.nspname, c.relname) || '; then run rowdeck reapply'
  FROM (SELECT DISTINCT x.oid, x.root FROM authz_int.policy_children() AS x) AS ch
  JOIN pg_class c ON c.oid = ch.oid JOIN pg_namespace n ON n.oid = c.relnamespace
$$;

-- Both. The settings that change how the server writes a constant are pinned.
CREATE OR REPLACE FUNCTION authz_int.enforced_now()
RETURNS TABLE (kind text, object text, part_of text, definition text, undo text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
SET quote_all_identifiers = off
SET datestyle = 'ISO, YMD'
SET intervalstyle = 'postgres'
SET timezone = 'UTC'
SET extra_float_digits = 1
SET bytea_output = 'hex'
AS $$
  SELECT d.kind, d.object, d.part_of, d.definition, d.undo FROM authz_int.describe_own() AS d
  UNION ALL SELECT d.kind, d.object, d.part_of, d.definition, d.undo FROM authz_int.describe_tables() AS d
  UNION ALL SELECT 'server', 'major version', '', (current_setting('server_version_num')::int / 10000)::text, NULL
$$;

-- Every difference between what an apply left and what is there, with the statement that mends it.
CREATE OR REPLACE FUNCTION authz.drift()
RETURNS TABLE (what text, kind text, object text, expected text, found text, mend text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  WITH now AS MATERIALIZED (SELECT * FROM authz_int.enforced_now()),
  pairs AS (
    SELECT coalesce(e.kind, n.kind) AS kind, coalesce(e.object, n.object) AS object, coalesce(e.part_of, n.part_of) AS part_of,
           e.definition AS expected, n.definition AS found, n.undo
    FROM authz_int.enforced e FULL JOIN now n ON n.kind = e.kind AND n.object = e.object
    WHERE e.definition IS DISTINCT FROM n.definition
  ), whole AS (
    SELECT p.object FROM pairs p WHERE (p.expected IS NULL OR p.found IS NULL) AND p.kind IN ('schema', 'table', 'sequence', 'view', 'function', 'type', 'trigger')
  ), server AS (SELECT EXISTS (SELECT FROM pairs p WHERE p.kind = 'server') AS other)
  SELECT CASE WHEN p.found IS NULL THEN 'missing' WHEN p.expected IS NULL THEN 'extra' ELSE 'changed' END,
         p.kind, p.object, p.expected, p.found,
         CASE WHEN p.kind = 'table' AND p.expected IS NOT NULL AND p.found IS NOT NULL AND p.object !~ '^authz_int\.g[0-9a-f]{8}_'
                THEN 'alter it to be ' || p.expected
              WHEN p.kind IN ('table', 'type', 'schema', 'sequence', 'server') AND p.expected IS NOT NULL THEN 'rowdeck reapply --force'
              -- What is made again is PUBLIC's to execute until that is taken back.
              WHEN p.kind IN ('function', 'view') AND p.found IS NULL
                THEN p.expected || CASE p.kind WHEN 'function' THEN format('; REVOKE ALL ON ROUTINE %s FROM PUBLIC', p.object) ELSE '' END
                     || coalesce((SELECT string_agg('; ' || g.definition, '' ORDER BY g.kind, g.object) FROM authz_int.enforced g
                                  WHERE g.part_of = p.object AND g.kind IN ('grant', 'owner')), '')
              WHEN p.kind = 'child' AND p.expected IS NOT NULL THEN 'rowdeck reapply'
              WHEN p.expected IS NULL THEN p.undo
              WHEN p.found IS NOT NULL AND p.kind IN ('policy', 'trigger', 'index', 'constraint') THEN p.undo || '; ' || p.expected
              ELSE p.expected END
  FROM pairs p CROSS JOIN server s
  -- What goes or comes with a whole object is said once; more security than asked for on a child is nobody's harm.
  WHERE p.part_of NOT IN (SELECT w.object FROM whole w)
    AND NOT (p.expected IS NULL AND p.kind IN ('row security', 'trigger state'))
    -- Another major version may write the same expression otherwise: that it is another is said, once.
    AND NOT (s.other AND p.expected IS NOT NULL AND p.found IS NOT NULL
             AND p.kind IN ('policy', 'view', 'index', 'constraint', 'trigger', 'table'))
  ORDER BY array_position('{row security,policy,trigger state,trigger,grant}', p.kind), p.kind, p.object
$$;

-- Keeps the description of what an apply leaves, as its last act. `policies` are those that the policy makes; grants in
-- our schemas are the app role's, and PUBLIC's on functions and types. `before` is what had drifted when the apply began:
-- where that is still as it was, it is not taken for right because an apply passed by.
CREATE OR REPLACE FUNCTION authz_int.keep_enforced(policies text[], app text, before jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  to_app text := ' to ' || quote_ident(app);
BEGIN
  DELETE FROM authz_int.enforced;
  INSERT INTO authz_int.enforced (kind, object, part_of, definition)
  SELECT n.kind, n.object, n.part_of, coalesce(d.expected, n.definition)
  FROM authz_int.enforced_now() AS n
  LEFT JOIN jsonb_to_recordset(before) AS d(kind text, object text, expected text, found text)
    ON d.kind = n.kind AND d.object = n.object AND d.found = n.definition AND n.kind NOT IN ('server', 'child')
  WHERE (d.kind IS NULL OR d.expected IS NOT NULL)
    AND (n.kind <> 'policy' OR n.object = ANY (policies))
    AND (n.kind <> 'grant' OR right(n.object, length(to_app)) = to_app
         OR n.object LIKE 'EXECUTE on routine % to PUBLIC' OR n.object LIKE 'USAGE on type % to PUBLIC');
END $$;

DO $$
DECLARE
  f regprocedure;
BEGIN
  FOR f IN SELECT p.oid FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
           WHERE n.nspname = 'authz_int' AND p.proname IN ('policy_tables', 'app_role', 'policy_children', 'describe_own', 'describe_tables', 'enforced_now', 'keep_enforced')
              OR n.nspname = 'authz' AND p.proname = 'drift' LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
  END LOOP;
END $$;
