-- Re-derives objects that verify found wrong. `graph` is what verify calls it.
CREATE OR REPLACE FUNCTION authz.repair(graph text, ids text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $authz$
BEGIN
{{repairs}}
  RAISE EXCEPTION USING ERRCODE = '22023',
    MESSAGE = pg_catalog.format('AZ710: there is no graph "%s" in the policy in force', $1);
END
$authz$
