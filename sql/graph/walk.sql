-- All ancestors of an object, walked from scratch in the tables themselves. In a ring it is its own ancestor.
CREATE OR REPLACE FUNCTION {{walk}}(v_id {{key}}) RETURNS {{key}}[]
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off AS $authz$
BEGIN
  RETURN COALESCE((
    WITH RECURSIVE up(a) AS (
      SELECT e.parent FROM {{expect}}(v_id) AS e
      UNION
      SELECT e.parent FROM up, LATERAL {{expect}}(up.a) AS e
    )
    SELECT array_agg(up.a) FROM up), '{}');
END
$authz$
