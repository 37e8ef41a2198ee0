-- The effective parents of one object, for verify: from its row.
CREATE OR REPLACE FUNCTION {{expect}}(authz__id {{key}}) RETURNS TABLE(parent {{key}})
LANGUAGE sql STABLE ROWS 2 AS $authz$
WITH o AS MATERIALIZED (
  {{own_rows}}
), q(id, parent) AS (
    {{own_links}}
)
SELECT DISTINCT q.parent FROM q WHERE q.parent <> q.id AND {{is_row}}
$authz$
