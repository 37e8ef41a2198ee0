-- Whether everything stored for inheritance is what the tables say, in batches, so that memory stays bounded.
CREATE OR REPLACE FUNCTION authz.verify() RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $authz$
DECLARE
  v_cursor text;
  v_wrong jsonb;
BEGIN
  LOOP
    SELECT b.cursor, b.wrong INTO v_cursor, v_wrong FROM authz.verify_batch(v_cursor, 20000) AS b;
    IF v_wrong <> '[]' THEN
      RETURN false;
    END IF;
    IF v_cursor IS NULL THEN
      RETURN true;
    END IF;
  END LOOP;
END
$authz$
