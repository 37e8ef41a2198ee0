-- What is wrong between two keys. Every check is local: a node against its effective parents, computed afresh, and its
-- parent's node; the clusters of the roots met against their edges. Where everything is right locally, everything is
-- right, but for rings, in which a lost ancestor could keep itself alive: what is its own ancestor is walked from scratch.
CREATE OR REPLACE FUNCTION {{wrong}}(authz__after {{key}}, authz__upto {{key}}, OUT checked bigint, OUT wrong_ids {{key}}[], OUT whats text[])
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off SET plan_cache_mode = force_custom_plan AS $authz$
#variable_conflict use_column
DECLARE
  authz__clusters bigint[];
  authz__ids {{key}}[];
BEGIN
  WITH o AS MATERIALIZED (
    {{own_rows}}
  ), q(id, parent) AS (
    {{own_links}}
  ), f AS MATERIALIZED (
    SELECT e.id, array_agg(e.parent ORDER BY e.parent) AS parents
    FROM (SELECT DISTINCT q.id, q.parent FROM q WHERE q.parent <> q.id AND {{is_row}}) AS e GROUP BY e.id
  ), n AS MATERIALIZED (
    SELECT n.id, n.cluster, n.local, EXISTS (SELECT FROM {{cluster}} AS c WHERE c.id = n.cluster) AS housed
    FROM {{node}} AS n WHERE (authz__after IS NULL OR n.id > authz__after) AND n.id <= authz__upto
  ), s AS MATERIALIZED (
    SELECT e.child, array_agg(e.parent ORDER BY e.parent) AS parents, bool_and(p.cluster IS NOT DISTINCT FROM e.parent_cluster) AS joined
    FROM (SELECT DISTINCT n.cluster FROM n WHERE n.local = '{}') AS r JOIN {{edge}} AS e ON e.child = r.cluster
      LEFT JOIN {{node}} AS p ON p.id = e.parent
    GROUP BY e.child
  ), j AS MATERIALIZED (
    SELECT COALESCE(o.id, n.id) AS id, CASE
        WHEN n.id IS NULL THEN 'it is not in the index'
        WHEN o.id IS NULL THEN 'it is in the index, but no such object exists'
        WHEN NOT n.housed THEN 'its cluster is not there'
        WHEN n.local = '{}' AND s.parents IS DISTINCT FROM f.parents THEN 'its parents changed without the index'
        WHEN n.local = '{}' AND NOT s.joined THEN 'the index seeks one of its parents in the wrong cluster'
        WHEN n.local <> '{}' AND f.parents IS DISTINCT FROM n.local[1:1] THEN 'its parents changed without the index'
        WHEN n.local <> '{}' AND (p.cluster IS DISTINCT FROM n.cluster OR n.local IS DISTINCT FROM p.id || p.local)
          THEN 'its ancestors do not follow from its parent''s'
      END AS what
    FROM o FULL JOIN n ON n.id = o.id
      LEFT JOIN f ON f.id = o.id
      LEFT JOIN s ON s.child = n.cluster AND n.local = '{}'
      LEFT JOIN {{node}} AS p ON p.id = n.local[1]
  )
  SELECT count(*), array_agg(j.id) FILTER (WHERE j.what IS NOT NULL), array_agg(j.what) FILTER (WHERE j.what IS NOT NULL),
         (SELECT array_agg(DISTINCT n.cluster) FROM n WHERE n.local = '{}')
    INTO $3, $4, $5, authz__clusters FROM j;

  -- Clusters whose `above` does not follow from their edges, or that are in a ring: judged by a walk, so that a cluster
  -- below a wrong one is not called wrong for being right.
  authz__ids := ARRAY(
    WITH c AS MATERIALIZED (
      SELECT k.id, k.above FROM unnest(authz__clusters) AS u(id) JOIN {{cluster}} AS k ON k.id = u.id
    ), e AS MATERIALIZED (
      SELECT c.id, e.parent, p.local, k.above FROM c JOIN {{edge}} AS e ON e.child = c.id
        LEFT JOIN {{node}} AS p ON p.id = e.parent LEFT JOIN {{cluster}} AS k ON k.id = e.parent_cluster
    ), want AS MATERIALIZED (
      SELECT e.id, array_agg(DISTINCT l.a ORDER BY l.a) AS above FROM e, LATERAL unnest(e.parent || e.local || e.above) AS l(a) GROUP BY e.id
    ), doubted AS (
      SELECT c.id FROM c LEFT JOIN want AS w ON w.id = c.id
      WHERE ARRAY(SELECT DISTINCT l.a FROM unnest(c.above) AS l(a) ORDER BY l.a) IS DISTINCT FROM COALESCE(w.above, '{}')
      UNION
      SELECT c.id FROM c JOIN {{node}} AS m ON m.cluster = c.id WHERE m.id = ANY (c.above)
    )
    SELECT r.id FROM doubted AS d,
      LATERAL (SELECT m.id FROM {{node}} AS m WHERE m.cluster = d.id AND m.local = '{}' ORDER BY m.id LIMIT 1) AS r
      JOIN c ON true
    WHERE c.id = d.id AND NOT (c.above <@ {{walk}}(r.id) AND {{walk}}(r.id) <@ c.above)
    EXCEPT SELECT u.id FROM unnest($4) AS u(id));
  $4 := COALESCE($4, '{}') || authz__ids;
  $5 := COALESCE($5, '{}') || array_fill('the ancestors outside its cluster are wrong'::text, ARRAY[cardinality(authz__ids)]);

  -- A wrong count changes no access, but what joins a cluster goes by it.
  authz__ids := ARRAY(
    SELECT m.first FROM (
      SELECT k.size, count(*) AS n, (array_agg(m.id ORDER BY m.id) FILTER (WHERE m.local = '{}'))[1] AS first
      FROM unnest(authz__clusters) AS u(id) JOIN {{cluster}} AS k ON k.id = u.id JOIN {{node}} AS m ON m.cluster = k.id
      GROUP BY k.id, k.size) AS m
    WHERE m.size <> m.n
    EXCEPT SELECT u.id FROM unnest($4) AS u(id));
  $4 := $4 || authz__ids;
  $5 := $5 || array_fill('its cluster miscounts its objects'::text, ARRAY[cardinality(authz__ids)]);
END
$authz$
