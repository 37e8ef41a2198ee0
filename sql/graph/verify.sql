-- One batch: at most v_size objects after a key. `upto` is where the next one starts, NULL after the last.
CREATE OR REPLACE FUNCTION {{verify}}(v_after text, v_size integer, OUT upto text, OUT checked bigint, OUT wrong jsonb)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $authz$
DECLARE
  v_from {{key}} := NULLIF(v_after, '');
  v_to {{key}} := {{range}}(NULLIF(v_after, '')::{{key}}, GREATEST(v_size, 1));
  v_ids {{key}}[];
  v_whats text[];
  v_loose bigint;
BEGIN
  wrong := '[]';
  checked := 0;
  IF v_to IS NOT NULL THEN
    SELECT w.checked, w.wrong_ids, w.whats INTO checked, v_ids, v_whats FROM {{wrong}}(v_from, v_to) AS w;
    IF cardinality(v_ids) > 0 THEN
      SELECT jsonb_agg(jsonb_build_object('graph', {{title}}, 'type', {{id_type}}, 'id', {{id_text}},
          'stored', (SELECT {{list}}n.local || COALESCE(c.above, '{}'){{list_end}} FROM {{node}} AS n
                       LEFT JOIN {{cluster}} AS c ON c.id = n.cluster WHERE n.id = u.id),
          'expected', CASE WHEN EXISTS (SELECT FROM {{is_object}}(u.id)) THEN {{list}}{{walk}}(u.id){{list_end}} END,
          'what', u.what) ORDER BY u.id)
        INTO wrong FROM unnest(v_ids, v_whats) AS u(id, what);
    END IF;
    -- Rows that are no objects count for the range, and not as checked.
    IF {{range}}(v_to, 1) IS NOT NULL THEN
      upto := v_to::text;
      RETURN;
    END IF;
  END IF;
  -- The last batch: what no object leads to.
{{without_number}}
  SELECT count(*) INTO v_loose FROM {{cluster}} AS c WHERE NOT EXISTS (SELECT FROM {{node}} AS n WHERE n.cluster = c.id);
  v_loose := v_loose + (SELECT count(*) FROM {{edge}} AS e WHERE NOT EXISTS (SELECT FROM {{cluster}} AS c WHERE c.id = e.child));
  IF v_loose > 0 THEN
    wrong := wrong || jsonb_build_array(jsonb_build_object('graph', {{title}}, 'type', {{type_name}}, 'id', '',
      'stored', NULL, 'expected', NULL, 'what', format('%s clusters or links in the index hold no object', v_loose)));
  END IF;
END
$authz$
