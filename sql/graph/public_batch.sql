-- Checks at most `size` objects after `cursor` (NULL at first; the returned one is NULL after the last). It only reads, and
-- each call is one statement with one snapshot, so writers neither wait nor are misjudged.
CREATE OR REPLACE FUNCTION authz.verify_batch(INOUT cursor text, size integer, OUT checked bigint, OUT wrong jsonb)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $authz$
DECLARE
  v_cursor text := COALESCE($1, {{first}});
  v_graph text := split_part(v_cursor, ':', 1);
  v_after text := substr(v_cursor, length(v_graph) + 2);
  v_size integer := GREATEST($2, 1);
  v_upto text;
BEGIN
  $3 := 0;
  $4 := '[]';
  IF v_cursor IS NULL THEN
    -- No graph to check.
    RETURN;
  END IF;
{{batches}}
  RAISE EXCEPTION USING ERRCODE = '22023',
    MESSAGE = format('AZ710: there is no graph "%s" in the policy in force: this cursor belongs to another policy', v_graph);
END
$authz$
