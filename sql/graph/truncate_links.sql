  authz__ids := ARRAY(
    WITH stored AS MATERIALIZED (
      SELECT n.id, n.local[1] AS parent FROM {{node}} AS n WHERE n.local <> '{}'
      UNION ALL
      SELECT n.id, e.parent FROM {{node}} AS n JOIN {{edge}} AS e ON e.child = n.cluster WHERE n.local = '{}'
    ), fresh AS MATERIALIZED (
      SELECT l.child AS id, l.parent FROM {{all_links}}() AS l
    )
    SELECT DISTINCT d.id FROM (
      (SELECT s.id, s.parent FROM stored AS s EXCEPT SELECT f.id, f.parent FROM fresh AS f)
      UNION ALL
      (SELECT f.id, f.parent FROM fresh AS f EXCEPT SELECT s.id, s.parent FROM stored AS s)
    ) AS d);
  PERFORM {{refresh}}(authz__ids);
