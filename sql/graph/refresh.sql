-- Re-derives these objects exactly. What is common and simple is done here: one new object with nothing below it and
-- at most one parent. Everything else is done by rederive.
CREATE OR REPLACE FUNCTION {{refresh}}(v_ids {{key}}[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan AS $authz$
DECLARE
  v_plain boolean;
  v_parents {{key}}[];
  v_cluster bigint;
  v_now bigint;
  v_local {{key}}[];
  v_above {{key}}[];
BEGIN
  IF v_ids IS NULL OR cardinality(v_ids) = 0 THEN
    RETURN;
  END IF;
  IF cardinality(v_ids) = 1 THEN
    SELECT NOT EXISTS (SELECT FROM {{node}} AS n WHERE n.id = v_ids[1])
           AND EXISTS (SELECT FROM {{is_object}}(v_ids[1]))
           AND NOT EXISTS (SELECT FROM {{children_of}}(v_ids[1])),
           ARRAY(SELECT p.parent FROM {{parents_of}}(v_ids[1]) AS p)
      INTO v_plain, v_parents;
    IF v_plain AND cardinality(v_parents) = 0 THEN
      v_cluster := nextval('{{cluster_id}}');
      INSERT INTO {{cluster}} VALUES (v_cluster, 1, '{}');
      INSERT INTO {{node}} VALUES (v_ids[1], v_cluster, '{}');
      RETURN;
    END IF;
    IF v_plain AND cardinality(v_parents) = 1 THEN
      SELECT n.cluster INTO v_cluster FROM {{node}} AS n WHERE n.id = v_parents[1];
      -- Joins the parent's cluster. Counting itself there locks it: a mover waits, or has changed it and is seen by the
      -- reading that follows (READ COMMITTED), or fails this with 40001 (an older snapshot).
      UPDATE {{cluster}} AS c SET size = c.size + 1 WHERE c.id = v_cluster AND c.size < {{size}};
      IF FOUND THEN
        SELECT n.cluster, n.local INTO v_now, v_local FROM {{node}} AS n WHERE n.id = v_parents[1];
        IF v_now = v_cluster THEN
          INSERT INTO {{node}} VALUES (v_ids[1], v_cluster, v_parents[1] || v_local);
          RETURN;
        END IF;
        -- The parent moved while this waited.
        UPDATE {{cluster}} AS c SET size = c.size - 1 WHERE c.id = v_cluster;
      ELSE
        -- The parent's cluster is full: beside its newest siblings, when they have a cluster with room.
        SELECT e.child INTO v_now FROM {{edge}} AS e WHERE e.parent = v_parents[1] ORDER BY e.child DESC LIMIT 1;
        UPDATE {{cluster}} AS c SET size = c.size + 1 WHERE c.id = v_now AND c.size < {{size}}
          AND NOT EXISTS (SELECT FROM {{edge}} AS o WHERE o.child = c.id AND o.parent <> v_parents[1]);
        IF FOUND THEN
          IF (SELECT array_agg(e.parent) FROM {{edge}} AS e WHERE e.child = v_now) = v_parents THEN
            INSERT INTO {{node}} VALUES (v_ids[1], v_now, '{}');
            RETURN;
          END IF;
          UPDATE {{cluster}} AS c SET size = c.size - 1 WHERE c.id = v_now;
        ELSE
          -- A cluster of its own below the parent's, which is locked as above.
          UPDATE {{cluster}} AS c SET size = c.size WHERE c.id = v_cluster RETURNING c.above INTO v_above;
          SELECT n.cluster, n.local INTO v_now, v_local FROM {{node}} AS n WHERE n.id = v_parents[1];
          IF v_now = v_cluster THEN
            v_now := nextval('{{cluster_id}}');
            INSERT INTO {{cluster}} VALUES (v_now, 1,
              ARRAY(SELECT DISTINCT x FROM unnest(v_parents[1] || v_local || v_above) AS u(x) ORDER BY x));
            INSERT INTO {{edge}} VALUES (v_now, v_parents[1], v_cluster);
            INSERT INTO {{node}} VALUES (v_ids[1], v_now, '{}');
            RETURN;
          END IF;
        END IF;
      END IF;
    END IF;
  END IF;
  PERFORM {{rederive}}(v_ids, '{}', false);
END
$authz$
