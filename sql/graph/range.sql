-- The last key of the next batch: of objects and nodes together, so that nodes without an object are met as well.
CREATE OR REPLACE FUNCTION {{range}}(authz__after {{key}}, authz__size integer) RETURNS {{key}}
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET jit = off SET plan_cache_mode = force_custom_plan AS $authz$
BEGIN
  RETURN (
    SELECT k.id FROM (
      {{own_range}}
      UNION
      (SELECT n.id FROM {{node}} AS n WHERE authz__after IS NULL OR n.id > authz__after ORDER BY 1 LIMIT authz__size)
      ORDER BY 1 LIMIT authz__size
    ) AS k ORDER BY k.id DESC LIMIT 1);
END
$authz$
