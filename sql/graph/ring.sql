-- Refuses objects that would be inside themselves through columns alone.
CREATE OR REPLACE FUNCTION {{ring}}(v_ids {{key}}[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $authz$
DECLARE
  v_id {{key}};
  v_up {{key}}[];
  v_steps integer := 0;
BEGIN
  IF cardinality(v_ids) = 1 THEN
    -- One object: up, step by step, which is the cheapest for paths of usual length.
    v_up := v_ids;
    WHILE v_steps < 1000 LOOP
      v_up := ARRAY(SELECT c.parent FROM unnest(v_up) AS u(id) JOIN {{columns}}() AS c ON c.child = u.id);
      v_steps := v_steps + 1;
      IF cardinality(v_up) = 0 THEN
        RETURN;
      END IF;
      EXIT WHEN v_ids[1] = ANY (v_up) OR cardinality(v_up) > 1000;
    END LOOP;
  END IF;
  WITH RECURSIVE up(x, a) AS (
    SELECT u.id, c.parent FROM unnest(v_ids) AS u(id) JOIN {{columns}}() AS c ON c.child = u.id
    UNION
    SELECT up.x, c.parent FROM up JOIN {{columns}}() AS c ON c.child = up.a WHERE up.x <> up.a
  )
  SELECT up.x INTO v_id FROM up WHERE up.x = up.a LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION USING ERRCODE = '23514',
      MESSAGE = pg_catalog.format('AZ713: %s %s would be inside itself', {{ring_type}}, {{ring_text}}),
      HINT = 'Choose a parent that is not the object itself or below it.';
  END IF;
END
$authz$
