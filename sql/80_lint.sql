-- Ways around row-level security, found in the catalog of the database: authz.lint() for the operator,
-- authz.connection_check() for the app. Neither changes anything. Each finding has the statement that closes it.

-- A role, and every role it is a member of, with the way there and the membership that the way starts with. A member
-- may take the other's rights or SET ROLE to it, or could give itself what is missing.
CREATE OR REPLACE FUNCTION authz_int.roles_of(who oid)
RETURNS TABLE (role oid, through text, closes text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE up(role, way, first_role, grantor) AS (
    SELECT who, ARRAY[who], NULL::oid, NULL::oid
    UNION ALL
    SELECT m.roleid, u.way || m.roleid, coalesce(u.first_role, m.roleid), coalesce(u.grantor, m.grantor)
    FROM up u JOIN pg_auth_members m ON m.member = u.role
    WHERE m.roleid <> ALL (u.way))
  SELECT DISTINCT ON (u.role, u.first_role, u.grantor) u.role,
         (SELECT string_agg(pg_get_userbyid(w.oid), ' -> ' ORDER BY w.at)
          FROM unnest(u.way) WITH ORDINALITY AS w(oid, at)),
         CASE WHEN u.first_role IS NOT NULL THEN
           format('REVOKE %I FROM %I', pg_get_userbyid(u.first_role), pg_get_userbyid(who))
           -- From 16 on a membership can be granted by several, each of whose grants is taken back by itself.
           || CASE WHEN current_setting('server_version_num')::int >= 160000
                   THEN format(' GRANTED BY %I', pg_get_userbyid(u.grantor)) ELSE '' END END
  FROM up u ORDER BY u.role, u.first_role, u.grantor, cardinality(u.way)
$$;

-- What somebody was granted, by name, as PUBLIC, or through a role.
CREATE OR REPLACE FUNCTION authz_int.granted(acl aclitem[], who oid)
RETURNS TABLE (privilege text, grantee text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT DISTINCT a.privilege_type, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
  FROM aclexplode(acl) AS a
  WHERE a.grantee = 0 OR a.grantee IN (SELECT r.role FROM authz_int.roles_of(who) AS r)
$$;

-- AZ820, AZ822: what frees a role from the rules.
CREATE OR REPLACE FUNCTION authz_int.lint_role(who oid)
RETURNS TABLE (code text, severity text, object text, why text, fix text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  WITH ways AS (
    SELECT r.*, g.rolname, x.word, x.attribute
    FROM authz_int.roles_of(who) AS r JOIN pg_roles g ON g.oid = r.role
    CROSS JOIN LATERAL (VALUES
      (g.rolsuper, 'is a superuser, whom no rule binds', 'NOSUPERUSER'),
      (g.rolbypassrls, 'has BYPASSRLS', 'NOBYPASSRLS'),
      (g.rolreplication, 'may read every row out of the write-ahead log (REPLICATION)', 'NOREPLICATION'),
      (g.rolcreaterole AND current_setting('server_version_num')::int < 160000,
       'may make itself a member of any role (CREATEROLE, before PostgreSQL 16)', 'NOCREATEROLE'),
      (g.rolname IN ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files'),
       'may read or change the files of the server', NULL),
      ((SELECT n.nspowner FROM pg_namespace n WHERE n.nspname = 'authz_int') = g.oid AND NOT g.rolsuper,
       'owns what the policy generated, the session key included', NULL)
    ) AS x(holds, word, attribute) WHERE x.holds)
  SELECT 'AZ820', 'error', quote_ident(pg_get_userbyid(who)),
         CASE WHEN w.closes IS NULL THEN format('role "%s" %s', w.rolname, w.word)
              ELSE format('through %s: "%s" %s', w.through, w.rolname, w.word) END,
         coalesce(w.closes, CASE WHEN w.attribute IS NOT NULL
                                 THEN format('ALTER ROLE %I %s', w.rolname, w.attribute) END,
                  format('connect the app as another role, such as %s',
                         coalesce(quote_ident(pg_get_userbyid(nullif(authz_int.app_role(), who))), 'one of its own')))
  FROM ways w
  UNION ALL
  SELECT DISTINCT 'AZ822', 'error', t.name,
         CASE WHEN r.closes IS NULL
              THEN format('role "%s" owns it, and row-level security does not bind owners', pg_get_userbyid(who))
              ELSE format('through %s: "%s" owns it, and row-level security does not bind owners',
                          r.through, pg_get_userbyid(r.role)) END,
         coalesce(r.closes, CASE WHEN n.nspowner <> who
                                 THEN format('ALTER TABLE %s OWNER TO %I', t.name, pg_get_userbyid(n.nspowner)) END,
                  format('connect the app as another role, such as %s; never FORCE row-level security, which stops '
                         'the upkeep of the index',
                         coalesce(quote_ident(pg_get_userbyid(nullif(authz_int.app_role(), who))), 'one of its own')))
  FROM authz_int.policy_tables() AS t JOIN pg_class c ON c.oid = t.oid
  JOIN authz_int.roles_of(who) AS r ON r.role = c.relowner
  LEFT JOIN pg_namespace n ON n.nspname = 'authz_int'
  WHERE t.part = 'governed' AND NOT (SELECT g.rolsuper FROM pg_roles g WHERE g.oid = r.role)
$$;

-- AZ821, AZ823, AZ824: the switch, and what else judges or holds the rows.
CREATE OR REPLACE FUNCTION authz_int.lint_tables()
RETURNS TABLE (code text, severity text, object text, why text, fix text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT 'AZ821', 'error', t.name, 'row-level security is off, so its rules do nothing',
         format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', t.name)
  FROM authz_int.policy_tables() AS t JOIN pg_class c ON c.oid = t.oid
  WHERE t.part = 'governed' AND NOT c.relrowsecurity
  UNION ALL
  SELECT 'AZ821', 'error', t.name, 'row-level security is forced, which hides rows from the upkeep of the index',
         format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', t.name)
  FROM authz_int.policy_tables() AS t JOIN pg_class c ON c.oid = t.oid
  WHERE t.part = 'governed' AND c.relforcerowsecurity
  UNION ALL
  SELECT 'AZ823', CASE WHEN p.polpermissive THEN 'error' ELSE 'warning' END, t.name,
         CASE WHEN p.polpermissive
              THEN format('policy %s is none of this policy''s, and whatever it allows is allowed', quote_ident(p.polname))
              ELSE format('policy %s is none of this policy''s, and whatever it refuses is refused', quote_ident(p.polname))
         END, format('DROP POLICY %I ON %s', p.polname, t.name)
  FROM authz_int.policy_tables() AS t JOIN pg_policy p ON p.polrelid = t.oid
  WHERE t.part = 'governed' AND NOT p.polname ^@ 'authz_'
  UNION ALL
  SELECT 'AZ824', CASE WHEN EXISTS (SELECT FROM authz_int.granted(c.relacl, authz_int.app_role())) THEN 'error' ELSE 'warning' END,
         format('%I.%I', n.nspname, c.relname),
         format('%s %s, and no rule judges it when it is used directly%s',
                CASE WHEN c.relispartition THEN 'it is a partition of' ELSE 'it inherits from' END, ch.root::regclass,
                CASE WHEN EXISTS (SELECT FROM authz_int.granted(c.relacl, authz_int.app_role()))
                     THEN ', which the app may' ELSE '' END),
         CASE WHEN c.relkind = 'f'
              THEN format('REVOKE ALL ON %I.%I FROM PUBLIC, %I', n.nspname, c.relname, pg_get_userbyid(authz_int.app_role()))
              ELSE format('ALTER TABLE %I.%I ENABLE ROW LEVEL SECURITY', n.nspname, c.relname) END
  FROM authz_int.policy_children() AS ch JOIN pg_class c ON c.oid = ch.oid JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE ch.part = 'governed' AND NOT c.relrowsecurity
    AND (c.relkind <> 'f' OR EXISTS (SELECT FROM authz_int.granted(c.relacl, authz_int.app_role())))
$$;

-- AZ825: views that read as somebody whom the rules do not bind.
CREATE OR REPLACE FUNCTION authz_int.lint_views()
RETURNS TABLE (code text, severity text, object text, why text, fix text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  WITH RECURSIVE roots(oid, owner, name) AS (
    SELECT t.oid, c.relowner, t.name FROM authz_int.policy_tables() AS t JOIN pg_class c ON c.oid = t.oid WHERE t.part = 'governed'
    UNION ALL
    SELECT ch.oid, c.relowner, format('%I.%I', n.nspname, c.relname) FROM authz_int.policy_children() AS ch
    JOIN pg_class c ON c.oid = ch.oid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ch.part = 'governed'
  ), ours AS (
    SELECT made ->> 'name' AS name
    FROM (SELECT v.objects FROM authz.policy_versions v ORDER BY v.version DESC LIMIT 1) AS v,
         jsonb_array_elements(v.objects -> 'objects') AS made WHERE made ->> 'kind' = 'view'
  ), views AS (
    SELECT c.oid, c.relkind, c.relowner, n.nspname, format('%I.%I', n.nspname, c.relname) AS name, c.relacl,
           c.relkind = 'm' OR NOT coalesce((SELECT o.option_value::boolean FROM pg_options_to_table(c.reloptions) AS o
                                            WHERE o.option_name = 'security_invoker'), false) AS as_owner
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('v', 'm') AND n.nspname NOT IN ('authz', 'authz_gen', 'authz_int', 'pg_catalog', 'information_schema')
  ), uses AS (
    SELECT DISTINCT r.ev_class AS view, d.refobjid AS used
    FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid
    WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> r.ev_class
  ), reach(oid, root, escapes) AS (
    SELECT v.oid, t.oid, v.as_owner AND (v.relkind = 'm' OR pg_has_role(v.relowner, t.owner, 'USAGE')
                                         OR (SELECT g.rolsuper OR g.rolbypassrls FROM pg_roles g WHERE g.oid = v.relowner))
    FROM roots t JOIN uses u ON u.used = t.oid JOIN views v ON v.oid = u.view
    UNION
    SELECT v.oid, x.root, x.escapes OR v.as_owner AND (v.relkind = 'm' OR pg_has_role(v.relowner, t.owner, 'USAGE')
                                         OR (SELECT g.rolsuper OR g.rolbypassrls FROM pg_roles g WHERE g.oid = v.relowner))
    FROM reach x JOIN uses u ON u.used = x.oid JOIN views v ON v.oid = u.view JOIN roots t ON t.oid = x.root)
  SELECT DISTINCT 'AZ825', 'error', v.name,
         format('%s reads %s as "%s", whom the rules do not bind, and the app may read it',
                CASE v.relkind WHEN 'm' THEN 'a materialized view' ELSE 'a view' END, t.name, pg_get_userbyid(v.relowner)),
         CASE WHEN v.relkind = 'm' THEN format('REVOKE ALL ON %s FROM %s', v.name, g.grantees)
              ELSE format('ALTER VIEW %s SET (security_invoker = true)', v.name) END
  FROM reach x JOIN views v ON v.oid = x.oid JOIN roots t ON t.oid = x.root
  CROSS JOIN LATERAL (SELECT string_agg(DISTINCT a.grantee, ', ') AS grantees
                      FROM authz_int.granted(v.relacl, authz_int.app_role()) AS a) AS g
  WHERE x.escapes AND v.as_owner AND g.grantees IS NOT NULL AND v.name NOT IN (SELECT o.name FROM ours o WHERE o.name IS NOT NULL)
$$;

-- AZ826, AZ827: functions that run as their owner.
CREATE OR REPLACE FUNCTION authz_int.lint_functions()
RETURNS TABLE (code text, severity text, object text, why text, fix text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  WITH definers AS (
    SELECT p.oid, p.prosrc, p.proowner, p.prorettype, p.proconfig, n.nspname, p.oid::regprocedure::text AS name,
           (SELECT string_agg(DISTINCT a.grantee, ', ')
            FROM authz_int.granted(coalesce(p.proacl, acldefault('f', p.proowner)), authz_int.app_role()) AS a
            WHERE a.privilege = 'EXECUTE') AS callers,
           (SELECT substr(c, 13) FROM unnest(p.proconfig) AS c WHERE c LIKE 'search_path=%') AS path
    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE p.prosecdef AND n.nspname NOT IN ('authz', 'authz_gen', 'authz_int', 'pg_catalog', 'information_schema')
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'))
  SELECT DISTINCT ON (f.oid) 'AZ826', 'warning', f.name,
         format('it runs as "%s", whom the rules of %s do not bind, and the app may call it; take it for granted only if it asks authz.can',
                pg_get_userbyid(f.proowner), t.name),
         format('ALTER ROUTINE %s SECURITY INVOKER', f.name)
  FROM definers f JOIN authz_int.policy_tables() AS t ON t.part = 'governed' JOIN pg_class c ON c.oid = t.oid
  WHERE f.callers IS NOT NULL AND f.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)
    AND (pg_has_role(f.proowner, c.relowner, 'USAGE')
         OR (SELECT g.rolsuper OR g.rolbypassrls FROM pg_roles g WHERE g.oid = f.proowner))
    AND (EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = f.oid
                   AND d.refclassid = 'pg_class'::regclass AND d.refobjid = t.oid)
         OR f.prosrc ~* ('(^|\W)' || regexp_replace(c.relname, '(\W)', '\\\1', 'g') || '(\W|$)'))
  UNION ALL
  SELECT 'AZ827', 'warning', f.name,
         CASE WHEN f.path IS NULL
              THEN format('it runs as "%s" with its caller''s search_path, so that a table or function of the caller''s can take the place of one it names',
                          pg_get_userbyid(f.proowner))
              ELSE format('it runs as "%s" with a search_path that does not end in pg_temp, so that a temporary table of the caller''s comes before those it names',
                          pg_get_userbyid(f.proowner)) END,
         format('ALTER ROUTINE %s SET search_path = %s', f.name,
                CASE WHEN f.path IS NULL THEN format('pg_catalog, %I, pg_temp', f.nspname)
                     WHEN btrim(f.path, ' "''') = '' THEN 'pg_catalog, pg_temp'
                     ELSE (SELECT string_agg(btrim(x.part), ', ' ORDER BY x.at)
                           FROM regexp_split_to_table(f.path, ',') WITH ORDINALITY AS x(part, at)
                           WHERE btrim(x.part, ' "') <> 'pg_temp') || ', pg_temp' END)
  FROM definers f
  WHERE (f.callers IS NOT NULL OR f.prorettype = 'trigger'::regtype)
    AND (f.path IS NULL OR f.path !~ '(^|[ ,])"?pg_temp"?\s*$')
$$;

-- AZ828, AZ829, AZ830, AZ836: what the app was granted beyond what rules can judge.
CREATE OR REPLACE FUNCTION authz_int.lint_grants()
RETURNS TABLE (code text, severity text, object text, why text, fix text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  WITH held AS (
    SELECT c.oid, c.relkind, c.relrowsecurity, n.nspname, format('%I.%I', n.nspname, c.relname) AS name,
           a.grantee, array_agg(a.privilege ORDER BY a.privilege) AS privileges
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL authz_int.granted(c.relacl, authz_int.app_role()) AS a
    WHERE c.relkind IN ('r', 'p', 'f') AND n.nspname NOT IN ('authz', 'authz_gen', 'authz_int', 'pg_catalog', 'information_schema')
    GROUP BY 1, 2, 3, 4, 5, 6
  ), tables AS (SELECT DISTINCT t.part, t.oid FROM authz_int.policy_tables() AS t WHERE t.part IN ('governed', 'reads'))
  SELECT 'AZ828', 'error', h.name, format('%s has %s, which no rule judges', h.grantee, w.words),
         format('REVOKE %s ON %s FROM %s', w.words, h.name, h.grantee)
  FROM held h CROSS JOIN LATERAL (SELECT string_agg(p, ', ' ORDER BY p) AS words FROM unnest(h.privileges) AS p
                                  WHERE p IN ('TRUNCATE', 'TRIGGER', 'REFERENCES')) AS w
  WHERE w.words IS NOT NULL AND h.oid IN (SELECT t.oid FROM tables t UNION SELECT ch.oid FROM authz_int.policy_children() AS ch)
  UNION ALL
  SELECT 'AZ829', 'warning', h.name,
         format('the policy trusts what stands in it, no rule judges it, and %s may %s', h.grantee, w.words),
         format('REVOKE %s ON %s FROM %s', w.words, h.name, h.grantee)
  FROM held h CROSS JOIN LATERAL (SELECT string_agg(p, ', ' ORDER BY p) AS words FROM unnest(h.privileges) AS p
                                  WHERE p IN ('INSERT', 'UPDATE', 'DELETE')) AS w
  WHERE w.words IS NOT NULL AND h.oid IN (SELECT t.oid FROM tables t WHERE t.part = 'reads')
    AND h.oid NOT IN (SELECT t.oid FROM tables t WHERE t.part = 'governed')
  UNION ALL
  SELECT DISTINCT 'AZ830', 'error', format('%s.%I', t.name, t.col),
         format('its mask does nothing for %s, who may read the column in the table itself', g.grantee),
         CASE WHEN g.whole
              THEN format('REVOKE SELECT ON %s FROM %s; GRANT SELECT (%s) ON %s TO %s', t.name, g.grantee,
                          (SELECT string_agg(quote_ident(o.attname), ', ' ORDER BY o.attnum) FROM pg_attribute o
                           WHERE o.attrelid = t.oid AND o.attnum > 0 AND NOT o.attisdropped
                             AND NOT EXISTS (SELECT FROM authz_int.policy_tables() AS m
                                             WHERE m.part = 'masks' AND m.oid = t.oid AND m.col = o.attname)),
                          t.name, g.grantee)
              ELSE format('REVOKE SELECT (%I) ON %s FROM %s', t.col, t.name, g.grantee) END
  FROM authz_int.policy_tables() AS t JOIN pg_class c ON c.oid = t.oid
  JOIN pg_attribute b ON b.attrelid = t.oid AND b.attname = t.col
  CROSS JOIN LATERAL (
    SELECT a.grantee, true AS whole FROM authz_int.granted(c.relacl, authz_int.app_role()) AS a WHERE a.privilege = 'SELECT'
    UNION ALL SELECT a.grantee, false FROM authz_int.granted(b.attacl, authz_int.app_role()) AS a WHERE a.privilege = 'SELECT') AS g
  WHERE t.part = 'masks'
  UNION ALL
  SELECT 'AZ836', 'info', h.name, format('no rule filters it, and %s may read all of it', h.grantee),
         format('REVOKE SELECT ON %s FROM %s', h.name, h.grantee)
  FROM held h
  WHERE 'SELECT' = ANY (h.privileges) AND NOT h.relrowsecurity
    AND h.oid NOT IN (SELECT t.oid FROM tables t WHERE t.part = 'governed' UNION SELECT ch.oid FROM authz_int.policy_children() AS ch)
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = h.oid AND d.deptype = 'e')
$$;

-- AZ831: constraints whose violation tells that a row exists.
CREATE OR REPLACE FUNCTION authz_int.lint_constraints()
RETURNS TABLE (code text, severity text, object text, why text, fix text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT 'AZ831', 'info', t.name,
         format('%s is unique, so that a refused value tells that a row somebody may not see has it', i.indexrelid::regclass),
         CASE WHEN k.conname IS NOT NULL THEN format('ALTER TABLE %s DROP CONSTRAINT %I', t.name, k.conname)
              ELSE format('DROP INDEX %s', i.indexrelid::regclass) END
  FROM authz_int.policy_tables() AS t JOIN pg_index i ON i.indrelid = t.oid
  LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.conrelid = t.oid AND k.contype IN ('u', 'x')
  WHERE t.part = 'governed' AND i.indisunique AND NOT i.indisprimary
    AND EXISTS (SELECT FROM pg_class c, authz_int.granted(c.relacl, authz_int.app_role()) AS a
                WHERE c.oid = t.oid AND a.privilege IN ('INSERT', 'UPDATE'))
  UNION ALL
  SELECT 'AZ831', 'info', k.conrelid::regclass::text,
         format('its foreign key %s tells whoever may write it whether a row of %s exists', quote_ident(k.conname), t.name),
         format('ALTER TABLE %s DROP CONSTRAINT %I', k.conrelid::regclass, k.conname)
  FROM authz_int.policy_tables() AS t JOIN pg_constraint k ON k.confrelid = t.oid AND k.contype = 'f' AND k.conparentid = 0
  JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE t.part = 'governed' AND n.nspname NOT IN ('authz', 'authz_gen', 'authz_int')
    AND EXISTS (SELECT FROM authz_int.granted(c.relacl, authz_int.app_role()) AS a WHERE a.privilege IN ('INSERT', 'UPDATE'))
$$;

-- What a setting comes to for a role's new sessions in this database.
CREATE OR REPLACE FUNCTION authz_int.setting_of(wanted text, who oid) RETURNS text
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT coalesce(
    (SELECT substr(c, length(wanted) + 2)
     FROM pg_db_role_setting s CROSS JOIN LATERAL unnest(s.setconfig) AS c
     WHERE c ^@ (wanted || '=') AND s.setrole IN (who, 0)
       AND s.setdatabase IN (0, (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
     ORDER BY s.setdatabase <> 0 AND s.setrole <> 0 DESC, s.setrole <> 0 DESC LIMIT 1),
    (SELECT CASE WHEN p.source IN ('user', 'database user') THEN p.boot_val ELSE p.reset_val END
     FROM pg_settings p WHERE p.name = wanted))
$$;

-- AZ832, AZ833, AZ834, AZ835: triggers, grants on what is ours, schemas, JIT.
CREATE OR REPLACE FUNCTION authz_int.lint_surroundings()
RETURNS TABLE (code text, severity text, object text, why text, fix text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT 'AZ832', 'error', t.tgrelid::regclass::text,
         format('trigger %s %s, so that the index goes stale; then run rowdeck verify --repair', quote_ident(t.tgname),
                CASE t.tgenabled WHEN 'D' THEN 'is disabled' ELSE 'fires in replica mode only' END),
         format('ALTER TABLE %s ENABLE TRIGGER %I', t.tgrelid::regclass, t.tgname)
  FROM pg_trigger t WHERE t.tgname ^@ 'authz_' AND NOT t.tgisinternal AND t.tgenabled IN ('D', 'R')
  UNION ALL
  SELECT 'AZ832', 'error', coalesce(quote_ident(pg_get_userbyid(nullif(s.setrole, 0))), quote_ident(current_database())),
         'session_replication_role is set for every session, in which no ordinary trigger fires',
         CASE WHEN s.setrole = 0 THEN format('ALTER DATABASE %I RESET session_replication_role', current_database())
              WHEN s.setdatabase = 0 THEN format('ALTER ROLE %I RESET session_replication_role', pg_get_userbyid(s.setrole))
              ELSE format('ALTER ROLE %I IN DATABASE %I RESET session_replication_role', pg_get_userbyid(s.setrole), current_database()) END
  FROM pg_db_role_setting s CROSS JOIN LATERAL unnest(s.setconfig) AS c
  WHERE c LIKE 'session\_replication\_role=%' AND c <> 'session_replication_role=origin'
    AND s.setdatabase IN (0, (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
  UNION ALL
  SELECT 'AZ833', 'error', d.object, 'it was granted behind the policy''s back on what the policy made', d.mend
  FROM authz.drift() AS d WHERE d.kind = 'grant' AND d.what = 'extra'
  UNION ALL
  SELECT DISTINCT 'AZ834', 'error', quote_ident(n.nspname),
         format('%s may create objects in it, and %s', a.grantee,
                CASE WHEN n.nspname = ANY (p.path)
                     THEN 'it is in the app''s search_path: a table or function of theirs can take another''s place'
                     ELSE 'it holds tables of the policy' END),
         format('REVOKE CREATE ON SCHEMA %I FROM %s', n.nspname, a.grantee)
  FROM pg_namespace n
  CROSS JOIN LATERAL (SELECT array_agg(CASE btrim(x, ' "') WHEN '$user' THEN pg_get_userbyid(authz_int.app_role())
                                       ELSE btrim(x, ' "') END) AS path
                      FROM regexp_split_to_table(authz_int.setting_of('search_path', authz_int.app_role()), ',') AS x) AS p
  CROSS JOIN LATERAL authz_int.granted(coalesce(n.nspacl, acldefault('n', n.nspowner)), authz_int.app_role()) AS a
  WHERE a.privilege = 'CREATE' AND NOT n.nspname ^@ 'pg_'
    AND (n.nspname = ANY (p.path)
         OR n.oid IN (SELECT c.relnamespace FROM authz_int.policy_tables() AS t JOIN pg_class c ON c.oid = t.oid))
  UNION ALL
  SELECT 'AZ835', 'info', quote_ident(r.rolname),
         'JIT is on for the app, and compiling a read''s plan can take longer than the read',
         format('ALTER ROLE %I SET jit = off', r.rolname)
  FROM pg_roles r WHERE r.oid = authz_int.app_role() AND authz_int.setting_of('jit', r.oid) = 'on'
$$;

-- Every way around the rules there is in this database, the worst first.
CREATE OR REPLACE FUNCTION authz.lint()
RETURNS TABLE (code text, severity text, object text, why text, fix text)
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT l.code, l.severity, l.object, l.why, l.fix
  FROM (SELECT * FROM authz_int.lint_role(authz_int.app_role()) UNION ALL SELECT * FROM authz_int.lint_tables()
        UNION ALL SELECT * FROM authz_int.lint_views() UNION ALL SELECT * FROM authz_int.lint_functions()
        UNION ALL SELECT * FROM authz_int.lint_grants() UNION ALL SELECT * FROM authz_int.lint_constraints()
        UNION ALL SELECT * FROM authz_int.lint_surroundings()) AS l
  ORDER BY array_position('{error,warning,info}', l.severity), l.code, l.object, l.fix
$$;

-- For the app, when it starts: what frees this very session from the rules. No row is good. The role that logged in
-- counts as well as the one set, because whoever runs SQL here can RESET ROLE.
CREATE OR REPLACE FUNCTION authz.connection_check()
RETURNS TABLE (code text, severity text, object text, why text, fix text)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT DISTINCT l.code, l.severity, l.object, l.why, l.fix
  FROM pg_roles r CROSS JOIN LATERAL authz_int.lint_role(r.oid) AS l
  WHERE r.rolname IN (session_user, CASE WHEN current_setting('role') = 'none' THEN session_user ELSE current_setting('role')::name END)
  UNION ALL
  SELECT l.code, l.severity, l.object, l.why, l.fix FROM authz_int.lint_tables() AS l WHERE l.code = 'AZ821'
  ORDER BY 1, 3, 5
$$;

DO $$
DECLARE
  f regprocedure;
BEGIN
  FOR f IN SELECT p.oid FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
           WHERE n.nspname = 'authz_int' AND (p.proname ^@ 'lint_' OR p.proname IN ('roles_of', 'granted', 'setting_of'))
              OR n.nspname = 'authz' AND p.proname IN ('lint', 'connection_check') LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', f);
  END LOOP;
END $$;
