-- Recomputes `above` of these clusters, whatever they hold now, as the least fixpoint: from their edges, and from
-- `above` of clusters that are not among them. All of them must be locked, and every cluster whose `above` depends on
-- one of them must be among them.
CREATE OR REPLACE FUNCTION {{above}}(v_set bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off
SET plan_cache_mode = force_generic_plan SET enable_nestloop = on SET enable_seqscan = off AS $authz$
DECLARE
  v_to bigint[];
  v_from bigint[];
  v_own bigint[];
  v_what {{key}}[];
BEGIN
  IF cardinality(v_set) = 1 THEN
    -- One cluster: what its edges say, all at once.
    UPDATE {{cluster}} AS c SET above = n.above FROM (
      SELECT ARRAY(
        SELECT DISTINCT x FROM {{edge}} AS e JOIN {{node}} AS p ON p.id = e.parent JOIN {{cluster}} AS k ON k.id = e.parent_cluster,
          LATERAL unnest(e.parent || p.local || CASE WHEN k.id = v_set[1] THEN '{}' ELSE k.above END) AS u(x)
        WHERE e.child = v_set[1] ORDER BY x) AS above) AS n
    WHERE c.id = v_set[1] AND c.above IS DISTINCT FROM n.above;
    RETURN;
  END IF;
  v_set := ARRAY(SELECT DISTINCT u.c FROM unnest(v_set) AS u(c));
  -- Gathered by index, joined by hash: the planner cannot know how long the arrays are.
  SELECT array_agg(e.child), array_agg(e.parent_cluster) INTO v_to, v_from
    FROM unnest(v_set) AS u(c) JOIN {{edge}} AS e ON e.child = u.c;
  SELECT array_agg(s.child), array_agg(s.x) INTO v_own, v_what FROM (
    SELECT e.child, x FROM unnest(v_set) AS u(c) JOIN {{edge}} AS e ON e.child = u.c JOIN {{node}} AS p ON p.id = e.parent,
      LATERAL unnest(e.parent || p.local) AS l(x)
    UNION ALL
    SELECT o.child, x FROM (
      SELECT DISTINCT e.child, e.parent_cluster FROM unnest(v_set) AS u(c) JOIN {{edge}} AS e ON e.child = u.c
      WHERE e.parent_cluster NOT IN (SELECT unnest(v_set))
    ) AS o JOIN {{cluster}} AS k ON k.id = o.parent_cluster, LATERAL unnest(k.above) AS l(x)
  ) AS s;
  PERFORM set_config('enable_nestloop', 'off', true);
  WITH RECURSIVE
  inside AS MATERIALIZED (
    SELECT DISTINCT l.child, l.parent FROM unnest(v_to, v_from) AS l(child, parent) JOIN unnest(v_set) AS u(c) ON u.c = l.parent
  ),
  reach(c, a) AS (
    SELECT u.c, u.c FROM unnest(v_set) AS u(c)
    UNION
    SELECT r.c, i.parent FROM reach AS r JOIN inside AS i ON i.child = r.a
  ),
  fresh AS MATERIALIZED (
    SELECT r.c, array_agg(DISTINCT o.x) AS above FROM reach AS r JOIN unnest(v_own, v_what) AS o(a, x) ON o.a = r.a GROUP BY r.c
  )
  UPDATE {{cluster}} AS c SET above = COALESCE(f.above, '{}')
    FROM unnest(v_set) AS u(c) LEFT JOIN fresh AS f ON f.c = u.c
    WHERE c.id = u.c AND c.id = ANY (v_set) AND c.above IS DISTINCT FROM COALESCE(f.above, '{}');
END
$authz$
