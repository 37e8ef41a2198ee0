-- What calls the upkeep. Creates hold a shared lock and run beside each other; whatever may take an ancestor away from a
-- folder holds it exclusively, as a create that runs meanwhile would copy rows that are about to go.

-- An old snapshot would not show what was committed while this transaction waited for the lock.
CREATE FUNCTION closure.alone(v_alone boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'closure tables are kept in READ COMMITTED only' USING ERRCODE = '40001';
  END IF;
  IF v_alone THEN
    PERFORM pg_advisory_xact_lock(727001);
  ELSE
    PERFORM pg_advisory_xact_lock_shared(727001);
  END IF;
END
$$;

CREATE FUNCTION closure.folders_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_ids bigint[] := ARRAY(SELECT id FROM new_rows);
BEGIN
  PERFORM closure.alone(false);
  PERFORM closure.edit_added(v_ids);
  PERFORM closure.view_added(v_ids);
  RETURN NULL;
END
$$;

CREATE FUNCTION closure.folders_updated() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_ids bigint[];
  v_lost bigint[];
BEGIN
  -- A key that changes is an object that goes and another that comes.
  SELECT array_agg(id), array_agg(lost) FILTER (WHERE lost IS NOT NULL) INTO v_ids, v_lost
    FROM (
      SELECT coalesce(n.id, o.id) AS id, CASE WHEN o.inherit THEN o.parent_id END AS lost
        FROM old_rows o FULL JOIN new_rows n USING (id)
       WHERE (CASE WHEN o.inherit THEN o.parent_id END) IS DISTINCT FROM (CASE WHEN n.inherit THEN n.parent_id END)
          OR o.id IS NULL OR n.id IS NULL
    ) AS changed;
  IF v_ids IS NULL THEN
    RETURN NULL;
  END IF;
  PERFORM closure.alone(true);
  IF cardinality(v_ids) = 1 THEN
    PERFORM closure.edit_moved(v_ids[1], coalesce(v_lost, '{}'));
    PERFORM closure.view_moved(v_ids[1], coalesce(v_lost, '{}'));
  ELSE
    PERFORM closure.edit_rebuild(v_ids);
    PERFORM closure.view_rebuild(v_ids);
  END IF;
  RETURN NULL;
END
$$;

CREATE FUNCTION closure.folders_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_ids bigint[] := ARRAY(SELECT id FROM old_rows);
BEGIN
  PERFORM closure.alone(true);
  PERFORM closure.edit_removed(v_ids);
  PERFORM closure.view_removed(v_ids);
  RETURN NULL;
END
$$;

CREATE FUNCTION closure.links_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_ids bigint[];
  v_lost bigint[] := '{}';
BEGIN
  PERFORM closure.alone(true);
  IF TG_OP = 'INSERT' THEN
    v_ids := ARRAY(SELECT folder_id FROM new_rows);
  ELSIF TG_OP = 'DELETE' THEN
    v_ids := ARRAY(SELECT folder_id FROM old_rows);
    v_lost := ARRAY(SELECT shown_in FROM old_rows);
  ELSE
    PERFORM closure.view_rebuild(ARRAY(SELECT folder_id FROM old_rows UNION SELECT folder_id FROM new_rows));
    RETURN NULL;
  END IF;
  IF cardinality(v_ids) = 1 THEN
    PERFORM closure.view_moved(v_ids[1], v_lost);
  ELSIF cardinality(v_ids) > 1 THEN
    PERFORM closure.view_rebuild(v_ids);
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER closure_inserted AFTER INSERT ON app.folders
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION closure.folders_inserted();
CREATE TRIGGER closure_updated AFTER UPDATE ON app.folders
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION closure.folders_updated();
CREATE TRIGGER closure_deleted AFTER DELETE ON app.folders
  REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION closure.folders_deleted();
CREATE TRIGGER closure_inserted AFTER INSERT ON app.folder_links
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION closure.links_changed();
CREATE TRIGGER closure_updated AFTER UPDATE ON app.folder_links
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION closure.links_changed();
CREATE TRIGGER closure_deleted AFTER DELETE ON app.folder_links
  REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION closure.links_changed();
