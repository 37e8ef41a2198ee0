-- One closure table and its upkeep. GRAPH is replaced by its name, EDGES by the query of its effective links.

CREATE VIEW closure.GRAPH_edge AS EDGES;

CREATE TABLE closure.GRAPH_path (
  child bigint NOT NULL,
  ancestor bigint NOT NULL
);

-- Everything from nothing; the indexes come when the rows are in, which is faster.
CREATE FUNCTION closure.GRAPH_build() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  v_rows bigint;
BEGIN
  INSERT INTO closure.GRAPH_path
  WITH RECURSIVE path(child, ancestor) AS (
    SELECT child, parent FROM closure.GRAPH_edge
    UNION
    SELECT path.child, e.parent FROM path JOIN closure.GRAPH_edge e ON e.child = path.ancestor
  )
  SELECT child, ancestor FROM path;
  GET DIAGNOSTICS v_rows = ROW_COUNT;
  ALTER TABLE closure.GRAPH_path ADD PRIMARY KEY (child, ancestor);
  CREATE INDEX GRAPH_path_below ON closure.GRAPH_path (ancestor, child);
  RETURN v_rows;
END
$$;

-- Folders without anything below them yet (or only one another): copies of their parents' rows.
CREATE FUNCTION closure.GRAPH_added(v_ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM closure.GRAPH_edge e WHERE e.child = ANY (v_ids) AND e.parent = ANY (v_ids)) THEN
    INSERT INTO closure.GRAPH_path
    SELECT e.child, up.ancestor
      FROM closure.GRAPH_edge e
      CROSS JOIN LATERAL (
        SELECT e.parent UNION ALL SELECT p.ancestor FROM closure.GRAPH_path p WHERE p.child = e.parent
      ) AS up(ancestor)
     WHERE e.child = ANY (v_ids)
    ON CONFLICT DO NOTHING;
    RETURN;
  END IF;
  INSERT INTO closure.GRAPH_path
  WITH RECURSIVE edge(child, parent, inside) AS MATERIALIZED (
    SELECT e.child, e.parent, e.parent IN (SELECT unnest(v_ids))
      FROM (SELECT unnest(v_ids)) AS i(id) JOIN closure.GRAPH_edge e ON e.child = i.id
  ), new(child, ancestor, inside) AS (
    SELECT child, parent, inside FROM edge
    UNION
    SELECT new.child, edge.parent, edge.inside FROM new JOIN edge ON edge.child = new.ancestor WHERE new.inside
  ), outside(ancestor) AS MATERIALIZED (
    SELECT DISTINCT ancestor FROM new WHERE NOT inside
  ), up(parent, ancestor) AS MATERIALIZED (
    SELECT o.ancestor, p.ancestor FROM outside o JOIN closure.GRAPH_path p ON p.child = o.ancestor
  )
  SELECT child, ancestor FROM new
  UNION
  SELECT new.child, up.ancestor FROM new JOIN up ON up.parent = new.ancestor WHERE NOT new.inside
  ON CONFLICT DO NOTHING;
END
$$;

-- Everything from these folders down again, from the edges: right for any graph, rings too.
CREATE FUNCTION closure.GRAPH_rebuild(v_ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_below bigint[];
BEGIN
  v_below := ARRAY(SELECT unnest(v_ids) UNION SELECT p.child FROM closure.GRAPH_path p WHERE p.ancestor = ANY (v_ids));
  DELETE FROM closure.GRAPH_path WHERE child = ANY (v_below);
  PERFORM closure.GRAPH_added(v_below);
END
$$;

-- One folder lost the parents v_lost or gained others.
CREATE FUNCTION closure.GRAPH_moved(v_id bigint, v_lost bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_below bigint[] := ARRAY(SELECT v_id UNION ALL SELECT p.child FROM closure.GRAPH_path p WHERE p.ancestor = v_id);
  v_gone bigint[] := ARRAY(SELECT unnest(v_lost) UNION
                           SELECT p.ancestor FROM closure.GRAPH_path p WHERE p.child = ANY (v_lost));
  v_now bigint[] := ARRAY(SELECT e.parent FROM closure.GRAPH_edge e WHERE e.child = v_id UNION
                          SELECT p.ancestor FROM closure.GRAPH_edge e JOIN closure.GRAPH_path p ON p.child = e.parent
                           WHERE e.child = v_id);
BEGIN
  IF v_gone && v_below OR v_now && v_below THEN
    PERFORM closure.GRAPH_rebuild(ARRAY[v_id]);
    RETURN;
  END IF;
  -- What is lost and not gained again by the same step stays untouched.
  v_lost := ARRAY(SELECT unnest(v_gone) EXCEPT SELECT unnest(v_now));
  IF cardinality(v_lost) > 0 THEN
    DELETE FROM closure.GRAPH_path p USING unnest(v_below) AS b(id), unnest(v_lost) AS l(id)
     WHERE p.child = b.id AND p.ancestor = l.id;
    -- Links from outside into what moved may lead to some of the lost ancestors still.
    INSERT INTO closure.GRAPH_path
    WITH below(id) AS MATERIALIZED (SELECT unnest(v_below)),
    entry(child, parent) AS MATERIALIZED (
      SELECT e.child, e.parent FROM below JOIN closure.GRAPH_edge e ON e.child = below.id
       WHERE e.child <> v_id AND NOT EXISTS (SELECT FROM below AS inside WHERE inside.id = e.parent)
    )
    SELECT DISTINCT d.child, up.ancestor
      FROM entry
      CROSS JOIN LATERAL (
        SELECT entry.parent UNION ALL SELECT p.ancestor FROM closure.GRAPH_path p WHERE p.child = entry.parent
      ) AS up(ancestor)
      CROSS JOIN LATERAL (
        SELECT entry.child UNION ALL SELECT p.child FROM closure.GRAPH_path p WHERE p.ancestor = entry.child
      ) AS d(child)
     WHERE up.ancestor = ANY (v_lost)
    ON CONFLICT DO NOTHING;
  END IF;
  INSERT INTO closure.GRAPH_path
  SELECT b.id, n.id FROM unnest(v_below) AS b(id), unnest(v_now) AS n(id)
   WHERE n.id <> ALL (v_gone)
  ON CONFLICT DO NOTHING;
END
$$;

-- These folders are gone.
CREATE FUNCTION closure.GRAPH_removed(v_ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_below bigint[] := ARRAY(SELECT DISTINCT p.child FROM closure.GRAPH_path p
                             WHERE p.ancestor = ANY (v_ids) AND p.child <> ALL (v_ids));
BEGIN
  DELETE FROM closure.GRAPH_path WHERE child = ANY (v_ids);
  IF cardinality(v_below) > 0 THEN
    PERFORM closure.GRAPH_rebuild(v_below);
  END IF;
END
$$;

-- Whether every stored row follows from the edges and nothing is missing.
CREATE FUNCTION closure.GRAPH_exact() RETURNS boolean LANGUAGE sql AS $$
  WITH RECURSIVE path(child, ancestor) AS (
    SELECT child, parent FROM closure.GRAPH_edge
    UNION
    SELECT path.child, e.parent FROM path JOIN closure.GRAPH_edge e ON e.child = path.ancestor
  )
  SELECT NOT EXISTS (
    SELECT FROM path FULL JOIN closure.GRAPH_path USING (child, ancestor)
     WHERE path.* IS NULL OR GRAPH_path.* IS NULL
  )
$$;
