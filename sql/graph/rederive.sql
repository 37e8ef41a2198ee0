-- Re-derives these objects exactly from the final state of the tables, whatever happened to them: made, moved, linked,
-- unlinked, deleted, in any number. Those in v_moved may have been put inside themselves (AZ713). With v_rebuild, the
-- clusters the objects are in are dissolved and made anew (repair): nothing stored in them is believed.
--
-- The planner takes an array of unknown length for ten elements. So for few ids plans are made once, to use indexes; for
-- many they are made for the very arrays, with the page costs of an index that is in memory: else a thousand ids read whole
-- tables.
--
-- 1. Find what changed and which clusters that touches; lock them in id order; find again in a fresh statement, until
--    nothing new is found. 2. Cut changed objects, with the piece below them in their cluster, off it. 3. Settle the
--    pieces and the new objects level by level: into the parent's cluster where they fit, else beside siblings, else as
--    clusters of their own. 4. Point edges at where parents are now. 5. Recompute `above` of what is below.
CREATE OR REPLACE FUNCTION {{rederive}}(v_in {{key}}[], v_moved {{key}}[], v_rebuild boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET jit = off SET enable_nestloop = on SET enable_seqscan = off SET random_page_cost = 0.1 SET seq_page_cost = 0.1 AS $authz$
DECLARE
  v_ids {{key}}[];            -- all that may have changed
  v_front {{key}}[];
  v_more {{key}}[];
  v_new {{key}}[];            -- objects without a node
  v_dead {{key}}[];           -- nodes without an object
  v_child {{key}}[];          -- effective links of v_ids, as they are now
  v_parent {{key}}[];
  v_cut {{key}}[];            -- nodes that are to be cut: parents changed, or dead
  v_home bigint[];            -- the clusters they are in
  v_pn {{key}}[];             -- every node of the pieces: its head, and how far it is from it (1 is the head)
  v_pn_head {{key}}[];
  v_pn_ord bigint[];
  v_pn_home bigint[];
  v_below bigint[];           -- clusters below the pieces
  v_bump bigint[];            -- clusters that change, are joined or become a parent's
  v_held bigint[] := '{}';
  v_lack bigint[];
  v_seen text;                -- the snapshot the finding began with
  v_it {{key}}[];             -- what is to be settled: heads (their cluster, 0 when new), sizes, the one parent
  v_it_k bigint[];
  v_it_s integer[];
  v_it_p {{key}}[];
  v_level integer[];          -- how many of them are on each level; own clusters come first
  v_own {{key}}[];
  v_own_k bigint[];
  v_at integer := 0;
  v_count integer;
  v_top bigint[] := '{}';     -- clusters that got new edges, and to which parent
  v_top_p {{key}}[] := '{}';
  v_some bigint[];
  v_some_p {{key}}[];
BEGIN
  LOOP
    v_seen := pg_current_snapshot()::text;
    v_ids := ARRAY(SELECT DISTINCT u.id FROM unnest(v_in) AS u(id) WHERE u.id IS NOT NULL);
    IF v_rebuild THEN
      v_home := ARRAY(SELECT DISTINCT n.cluster FROM unnest(v_ids) AS u(id) JOIN {{node}} AS n ON n.id = u.id);
      v_ids := ARRAY(SELECT u.id FROM unnest(v_ids) AS u(id) UNION SELECT n.id FROM {{node}} AS n WHERE n.cluster = ANY (v_home));
    END IF;
    v_front := v_ids;
    v_new := '{}';
    v_dead := '{}';
    LOOP
      IF cardinality(v_front) > 200 THEN
        PERFORM set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'on', true);
      END IF;
      v_more := ARRAY(SELECT o.id FROM {{objects}}(v_front) AS o WHERE NOT EXISTS (SELECT FROM {{node}} AS n WHERE n.id = o.id));
      v_new := v_new || v_more;
      v_moved := v_moved || ARRAY(
        SELECT c.child FROM {{children}}(v_more) AS c WHERE EXISTS (SELECT FROM {{node}} AS n WHERE n.id = c.child));
      v_cut := ARRAY(
        SELECT n.id FROM unnest(v_front) AS u(id) JOIN {{node}} AS n ON n.id = u.id EXCEPT SELECT o.id FROM {{objects}}(v_front) AS o);
      v_dead := v_dead || v_cut;
      -- Children of what appears or disappears, and parents whose own turn comes later, are re-derived too.
      v_more := ARRAY(
        (SELECT c.child FROM {{children}}(v_more) AS c
         UNION
         SELECT p.parent FROM {{parents}}(v_front) AS p WHERE NOT EXISTS (SELECT FROM {{node}} AS n WHERE n.id = p.parent)
         UNION
         SELECT n.id FROM unnest(v_cut) AS d(id) JOIN {{edge}} AS e ON e.parent = d.id
           JOIN {{node}} AS n ON n.cluster = e.child AND n.local = '{}'
         UNION
         SELECT n.id FROM (SELECT DISTINCT m.cluster FROM unnest(v_cut) AS d(id) JOIN {{node}} AS m ON m.id = d.id) AS c
           JOIN {{node}} AS n ON n.cluster = c.cluster JOIN unnest(v_cut) AS d(id) ON d.id = n.local[1])
        EXCEPT
        SELECT u.id FROM unnest(v_ids) AS u(id));
      EXIT WHEN cardinality(v_more) = 0;
      v_ids := v_ids || v_more;
      v_front := v_more;
    END LOOP;
    IF cardinality(v_ids) > 200 THEN
      PERFORM set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'on', true);
    END IF;
    SELECT COALESCE(array_agg(p.child), '{}'), COALESCE(array_agg(p.parent), '{}') INTO v_child, v_parent
      FROM {{parents}}(v_ids) AS p;

    IF v_rebuild THEN
      v_home := ARRAY(SELECT DISTINCT n.cluster FROM unnest(v_ids) AS u(id) JOIN {{node}} AS n ON n.id = u.id);
      v_dead := ARRAY(SELECT n.id FROM {{node}} AS n WHERE n.cluster = ANY (v_home));
      v_ids := ARRAY(SELECT u.id FROM unnest(v_ids || v_dead) AS u(id) GROUP BY u.id);
      v_new := ARRAY(SELECT o.id FROM {{objects}}(v_ids) AS o);
      SELECT COALESCE(array_agg(p.child), '{}'), COALESCE(array_agg(p.parent), '{}') INTO v_child, v_parent
        FROM {{parents}}(v_ids) AS p;
      v_cut := v_dead;
      v_pn := v_dead;
      v_pn_head := '{}';
    ELSE
      v_cut := ARRAY(
        WITH stored AS MATERIALIZED (
          SELECT n.id, n.local[1] AS parent FROM unnest(v_ids) AS u(id) JOIN {{node}} AS n ON n.id = u.id WHERE n.local <> '{}'
          UNION ALL
          SELECT n.id, e.parent FROM unnest(v_ids) AS u(id) JOIN {{node}} AS n ON n.id = u.id
            JOIN {{edge}} AS e ON e.child = n.cluster WHERE n.local = '{}'
        ), fresh AS MATERIALIZED (
          SELECT f.id, f.parent FROM unnest(v_child, v_parent) AS f(id, parent)
        )
        SELECT d.id FROM (
          (SELECT s.id, s.parent FROM stored AS s EXCEPT SELECT f.id, f.parent FROM fresh AS f)
          UNION ALL
          (SELECT f.id, f.parent FROM fresh AS f EXCEPT SELECT s.id, s.parent FROM stored AS s)
        ) AS d
        EXCEPT SELECT u.id FROM unnest(v_new) AS u(id)
        EXCEPT SELECT u.id FROM unnest(v_dead) AS u(id)
      ) || v_dead;
      v_home := ARRAY(SELECT DISTINCT n.cluster FROM unnest(v_cut) AS u(id) JOIN {{node}} AS n ON n.id = u.id);
      SELECT COALESCE(array_agg(h.id), '{}'), COALESCE(array_agg(h.a), '{}'), COALESCE(array_agg(h.ord), '{}'),
             COALESCE(array_agg(h.cluster), '{}')
        INTO v_pn, v_pn_head, v_pn_ord, v_pn_home
        FROM (
          SELECT DISTINCT ON (n.id) n.id, l.a, l.ord, n.cluster
          FROM {{node}} AS n, LATERAL unnest(n.id || n.local) WITH ORDINALITY AS l(a, ord)
          WHERE n.cluster = ANY (v_home) AND EXISTS (SELECT FROM unnest(v_cut) AS u(id) WHERE u.id = l.a)
          ORDER BY n.id, l.ord
        ) AS h;
    END IF;
    v_below := ARRAY(
      SELECT e.child FROM unnest(v_pn) AS u(id) JOIN {{edge}} AS e ON e.parent = u.id
      UNION
      SELECT e.child FROM unnest(CASE WHEN v_rebuild THEN v_home ELSE '{}' END) AS h(c) JOIN {{edge}} AS e ON e.parent_cluster = h.c);
    IF cardinality(v_below) > 0 THEN
      v_below := ARRAY(
        WITH RECURSIVE below(c) AS (
          SELECT u.c FROM unnest(v_below) AS u(c)
          UNION
          SELECT e.child FROM below AS b JOIN {{edge}} AS e ON e.parent_cluster = b.c
        )
        SELECT b.c FROM below AS b);
    END IF;

    v_bump := ARRAY(
      SELECT n.cluster FROM unnest(v_ids) AS u(id) JOIN {{node}} AS n ON n.id = u.id
      UNION
      SELECT n.cluster FROM unnest(v_parent) AS u(id) JOIN {{node}} AS n ON n.id = u.id);
    -- Locked as well: what lies below, and the newest cluster of future siblings.
    v_lack := ARRAY(
      (SELECT u.c FROM unnest(v_bump || v_below) AS u(c)
       UNION
       SELECT s.child FROM (SELECT DISTINCT u.id FROM unnest(v_parent) AS u(id)) AS p,
         LATERAL (SELECT e.child FROM {{edge}} AS e WHERE e.parent = p.id ORDER BY e.child DESC LIMIT 1) AS s)
      EXCEPT
      SELECT u.c FROM unnest(v_held) AS u(c));
    EXIT WHEN cardinality(v_lack) = 0;
    PERFORM FROM {{cluster}} AS c WHERE c.id = ANY (v_lack) ORDER BY c.id FOR UPDATE;
    v_held := v_held || v_lack;
    -- With one snapshot for the whole transaction, finding again would find the same: what changed meanwhile failed with
    -- 40001 just now.
    -- The same when no transaction ended since the finding began.
    EXIT WHEN pg_current_snapshot()::text = v_seen;
  END LOOP;
  -- An older snapshot that is about to lock one of these must fail, so each gets a new version.
  UPDATE {{cluster}} AS c SET size = c.size WHERE c.id = ANY (v_bump);

  IF NOT v_rebuild THEN
    IF EXISTS (SELECT FROM {{columns}}() AS c JOIN unnest(v_new) AS u(id) ON u.id = c.child WHERE c.parent = c.child) THEN
      v_moved := v_moved || v_new;
    END IF;
    IF cardinality(v_moved) > 0 THEN
      PERFORM {{ring}}(v_moved);
    END IF;
  END IF;
  IF cardinality(v_new) = 0 AND cardinality(v_cut) = 0 THEN
    RETURN;
  END IF;

  -- Cut.
  IF cardinality(v_cut) > 0 THEN
    DELETE FROM {{node}} AS n USING unnest(v_dead) AS u(id) WHERE n.id = u.id;
    IF cardinality(v_pn) > 400 THEN
      PERFORM set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'on', true);
    END IF;
    WITH pn AS MATERIALIZED (
      SELECT p.id, p.head, p.ord, p.home FROM unnest(v_pn, v_pn_head, v_pn_ord, v_pn_home) AS p(id, head, ord, home)
      WHERE p.head IS NOT NULL AND NOT EXISTS (SELECT FROM unnest(v_dead) AS d(id) WHERE d.id = p.id)
    ), head AS MATERIALIZED (
      SELECT p.head, p.home, count(*)::integer AS s, row_number() OVER (PARTITION BY p.home ORDER BY count(*) DESC, p.head) AS rn
      FROM pn AS p GROUP BY p.head, p.home
    ), home AS MATERIALIZED (
      -- How many stay where they were.
      SELECT h.c, COALESCE(a.n, 0) - COALESCE(m.n, 0) AS stay
      FROM unnest(v_home) AS h(c)
        LEFT JOIN (SELECT n.cluster, count(*)::integer AS n FROM {{node}} AS n WHERE n.cluster = ANY (v_home) GROUP BY n.cluster) AS a ON a.cluster = h.c
        LEFT JOIN (SELECT p.home, count(*)::integer AS n FROM pn AS p GROUP BY p.home) AS m ON m.home = h.c
    ), piece AS MATERIALIZED (
      -- Where nothing stays, the biggest piece keeps the cluster.
      SELECT h.head, h.home, h.s, CASE WHEN o.stay = 0 AND h.rn = 1 THEN h.home ELSE nextval('{{cluster_id}}') END AS k
      FROM head AS h JOIN home AS o ON o.c = h.home
    ), made AS (
      INSERT INTO {{cluster}} SELECT p.k, p.s, '{}' FROM piece AS p WHERE p.k <> p.home
    ), moved AS (
      UPDATE {{node}} AS n SET cluster = q.k, local = n.local[1:p.ord - 1]
      FROM pn AS p JOIN piece AS q ON q.head = p.head
      WHERE n.id = p.id AND (q.k <> n.cluster OR p.ord <= cardinality(n.local))
    ), shrunk AS (
      UPDATE {{cluster}} AS c SET size = CASE WHEN o.stay > 0 THEN o.stay ELSE q.s END
      FROM home AS o LEFT JOIN piece AS q ON q.k = o.c
      WHERE c.id = o.c AND (o.stay > 0 OR q.k IS NOT NULL)
    ), gone AS (
      DELETE FROM {{cluster}} AS c USING home AS o WHERE c.id = o.c AND o.stay = 0 AND NOT EXISTS (SELECT FROM piece AS q WHERE q.k = o.c)
    ), free AS (
      DELETE FROM {{edge}} AS e USING home AS o WHERE e.child = o.c AND o.stay = 0
    )
    SELECT array_agg(q.head), array_agg(q.k), array_agg(q.s) INTO v_it, v_it_k, v_it_s FROM piece AS q;
  END IF;
  v_it := COALESCE(v_it, '{}') || v_new;
  v_it_k := COALESCE(v_it_k, '{}') || array_fill(0::bigint, ARRAY[cardinality(v_new)]);
  v_it_s := COALESCE(v_it_s, '{}') || array_fill(1, ARRAY[cardinality(v_new)]);

  -- Order. What has one parent waits for it, when the parent is in a piece or new; the rest tops a cluster of its own,
  -- and so does what waits for itself (a ring through link tables).
  IF cardinality(v_it) = 1 THEN
    v_it_p := ARRAY[CASE WHEN cardinality(v_parent) = 1 AND v_child = v_it THEN v_parent[1] END];
    IF cardinality(v_ids) > 1 THEN
      -- v_parent holds links of others as well.
      v_it_p := ARRAY(SELECT CASE WHEN count(*) = 1 THEN (array_agg(l.parent))[1] END
        FROM unnest(v_child, v_parent) AS l(child, parent) WHERE l.child = v_it[1]);
    END IF;
    v_level := CASE WHEN v_it_p[1] IS NULL OR v_it_p[1] = ANY (v_pn) THEN ARRAY[2] ELSE ARRAY[1, 1] END;
  ELSIF cardinality(v_it) > 1 THEN
    PERFORM set_config('enable_nestloop', CASE WHEN cardinality(v_it) + cardinality(v_pn) > 100 THEN 'off' ELSE 'on' END, true);
    WITH RECURSIVE item AS MATERIALIZED (
      SELECT i.id, i.k, i.s, f.p FROM unnest(v_it, v_it_k, v_it_s) AS i(id, k, s)
        LEFT JOIN (SELECT l.child, (array_agg(l.parent))[1] AS p FROM unnest(v_child, v_parent) AS l(child, parent)
                   GROUP BY l.child HAVING count(*) = 1) AS f ON f.child = i.id
    ), dep AS MATERIALIZED (
      SELECT u.id, u.id AS head FROM unnest(v_new) AS u(id)
      UNION ALL
      SELECT p.id, p.head FROM unnest(v_pn, v_pn_head) AS p(id, head) WHERE p.head IS NOT NULL
    ), waits AS MATERIALIZED (
      SELECT i.id, d.head FROM item AS i LEFT JOIN dep AS d ON d.id = i.p
    ), level(id, n) AS (
      SELECT w.id, 1 FROM waits AS w WHERE w.head IS NULL
      UNION ALL
      SELECT w.id, l.n + 1 FROM level AS l JOIN waits AS w ON w.head = l.id
    ), placed AS MATERIALIZED (
      SELECT i.id, i.k, i.s, i.p, CASE WHEN i.p IS NULL OR l.n IS NULL THEN 0 ELSE l.n END AS n
      FROM item AS i LEFT JOIN level AS l ON l.id = i.id
    )
    SELECT array_agg(o.id ORDER BY o.n), array_agg(o.k ORDER BY o.n), array_agg(o.s ORDER BY o.n), array_agg(o.p ORDER BY o.n),
           (SELECT array_agg(c.n ORDER BY c.level) FROM
             (SELECT p.n AS level, count(*)::integer AS n FROM (SELECT x.n FROM placed AS x UNION ALL SELECT 0) AS p GROUP BY p.n) AS c)
      INTO v_it, v_it_k, v_it_s, v_it_p, v_level FROM placed AS o;
    PERFORM set_config('enable_nestloop', 'on', true);
  ELSE
    v_level := ARRAY[1];
  END IF;

  -- Settle those that top clusters of their own. (Level 0 was counted once too often, so that it is always there.)
  v_at := v_level[1] - 1;
  IF v_at > 0 THEN
    WITH o AS MATERIALIZED (
      SELECT i.id, i.k = 0 AS fresh, CASE WHEN i.k = 0 THEN nextval('{{cluster_id}}') ELSE i.k END AS k
      FROM unnest(v_it[1:v_at], v_it_k[1:v_at]) AS i(id, k)
    ), c AS (
      INSERT INTO {{cluster}} SELECT o.k, 1, '{}' FROM o WHERE o.fresh
    ), n AS (
      INSERT INTO {{node}} SELECT o.id, o.k, '{}' FROM o WHERE o.fresh
    )
    SELECT array_agg(o.id), array_agg(o.k) INTO v_own, v_own_k FROM o;
  END IF;
  -- Then the others, level by level.
  FOR v_l IN 2 .. cardinality(v_level) LOOP
    v_count := v_level[v_l];
    PERFORM set_config('plan_cache_mode', CASE WHEN v_count > 200 THEN 'force_custom_plan' ELSE 'force_generic_plan' END, true),
            set_config('enable_seqscan', CASE WHEN v_count > 200 THEN 'on' ELSE 'off' END, true);
    WITH item AS MATERIALIZED (
      SELECT i.id, i.p, i.k, i.s, n.cluster AS c, n.local
      FROM unnest(v_it[v_at + 1 : v_at + v_count], v_it_p[v_at + 1 : v_at + v_count], v_it_k[v_at + 1 : v_at + v_count],
                  v_it_s[v_at + 1 : v_at + v_count]) AS i(id, p, k, s)
        JOIN {{node}} AS n ON n.id = i.p
    ), fit AS MATERIALIZED (
      SELECT i.*, i.c <> i.k AND c.size + sum(i.s) OVER (PARTITION BY i.c ORDER BY i.s, i.p, i.id) <= {{size}} AS joins
      FROM item AS i JOIN {{cluster}} AS c ON c.id = i.c
    ), sibling AS MATERIALIZED (
      SELECT p.p, s.child AS c, c.size
      FROM (SELECT DISTINCT f.p FROM fit AS f WHERE NOT f.joins) AS p,
        LATERAL (SELECT e.child FROM {{edge}} AS e WHERE e.parent = p.p ORDER BY e.child DESC LIMIT 1) AS s
        JOIN {{cluster}} AS c ON c.id = s.child
      WHERE s.child = ANY (v_held)
        AND NOT EXISTS (SELECT FROM {{edge}} AS o WHERE o.child = s.child AND o.parent <> p.p)
    ), beside AS MATERIALIZED (
      SELECT f.*, b.c AS sibling, COALESCE(b.c <> f.k AND b.size + sum(f.s) OVER w <= {{size}}, false) AS fits
      FROM fit AS f LEFT JOIN sibling AS b ON b.p = f.p WHERE NOT f.joins
      WINDOW w AS (PARTITION BY f.p ORDER BY f.s, f.id)
    ), rest AS MATERIALIZED (
      SELECT b.*, (sum(b.s) OVER (PARTITION BY b.p ORDER BY b.s, b.id) - 1) / {{size}} AS part FROM beside AS b WHERE NOT b.fits
    ), together AS MATERIALIZED (
      SELECT r.p, r.part, sum(r.s)::integer AS s, CASE WHEN max(r.k) > 0 THEN max(r.k) ELSE nextval('{{cluster_id}}') END AS k,
             max(r.k) = 0 AS fresh
      FROM rest AS r GROUP BY r.p, r.part
    ), settled AS MATERIALIZED (
      SELECT f.id, f.k AS was, f.s, f.c AS k, f.p || f.local AS local FROM fit AS f WHERE f.joins
      UNION ALL
      SELECT b.id, b.k, b.s, b.sibling, '{}' FROM beside AS b WHERE b.fits
      UNION ALL
      SELECT r.id, r.k, r.s, t.k, '{}' FROM rest AS r JOIN together AS t ON t.p = r.p AND t.part = r.part
    ), made AS (
      INSERT INTO {{cluster}} SELECT t.k, t.s, '{}' FROM together AS t WHERE t.fresh
    ), grown AS (
      UPDATE {{cluster}} AS c SET size = c.size + g.s
      FROM (SELECT s.k, sum(s.s)::integer AS s FROM settled AS s WHERE s.was <> s.k GROUP BY s.k) AS g
      WHERE c.id = g.k
    ), born AS (
      INSERT INTO {{node}} SELECT s.id, s.k, s.local FROM settled AS s WHERE s.was = 0
    ), moved AS (
      UPDATE {{node}} AS n SET cluster = s.k, local = n.local || s.local
      FROM settled AS s WHERE s.was > 0 AND s.was <> s.k AND n.cluster = s.was
    ), gone AS (
      DELETE FROM {{cluster}} AS c USING settled AS s WHERE s.was > 0 AND s.was <> s.k AND c.id = s.was
    )
    SELECT array_agg(t.k), array_agg(t.p) INTO v_some, v_some_p FROM together AS t;
    v_at := v_at + v_count;
    IF v_some IS NOT NULL THEN
      v_top := v_top || v_some;
      v_top_p := v_top_p || v_some_p;
    END IF;
  END LOOP;

  IF cardinality(v_ids) + cardinality(v_pn) > 400 THEN
    PERFORM set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'on', true);
  END IF;
  -- Edges of the clusters that are new or stand elsewhere, and of those whose parents do.
  INSERT INTO {{edge}}
    SELECT t.k, t.p, n.cluster FROM (
      SELECT o.k, l.parent AS p FROM unnest(v_own, v_own_k) AS o(id, k) JOIN unnest(v_child, v_parent) AS l(child, parent) ON l.child = o.id
      UNION
      SELECT u.k, u.p FROM unnest(v_top, v_top_p) AS u(k, p)
    ) AS t JOIN {{node}} AS n ON n.id = t.p;
  UPDATE {{edge}} AS e SET parent_cluster = n.cluster
    FROM unnest(v_pn) AS u(id) JOIN {{node}} AS n ON n.id = u.id
    WHERE e.parent = u.id AND e.parent_cluster <> n.cluster;

  v_below := v_below || v_top || COALESCE(v_own_k, '{}');
  IF cardinality(v_below) > 0 THEN
    PERFORM {{above}}(v_below);
  END IF;
END
$authz$
