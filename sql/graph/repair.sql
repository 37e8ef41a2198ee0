-- Re-derives these objects, believing nothing stored of the clusters they are in, and drops what no object leads to.
CREATE OR REPLACE FUNCTION {{repair}}(v_ids text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $authz$
DECLARE
  v_loose bigint[];
BEGIN
{{repair_prepare}}
  PERFORM {{rederive}}(ARRAY({{repair_ids}}), '{}', true);
  -- Locked before it is judged again: a new object may be joining such a cluster.
  v_loose := ARRAY(SELECT c.id FROM {{cluster}} AS c WHERE NOT EXISTS (SELECT FROM {{node}} AS n WHERE n.cluster = c.id) ORDER BY c.id FOR UPDATE);
  DELETE FROM {{cluster}} AS c WHERE c.id = ANY (v_loose) AND NOT EXISTS (SELECT FROM {{node}} AS n WHERE n.cluster = c.id);
  DELETE FROM {{edge}} AS e WHERE NOT EXISTS (SELECT FROM {{cluster}} AS c WHERE c.id = e.child);
END
$authz$
