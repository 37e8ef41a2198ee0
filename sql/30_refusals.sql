-- How the generated functions say no.

-- Raised when a write's rule does not hold on the row. Its detail names the rule and nothing of any row. The policies
-- call it as the app role, so anyone may execute it; it reads nothing.
CREATE OR REPLACE FUNCTION authz_int.refuse(command text, table_name text, rule text) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RAISE EXCEPTION 'AZ709: the policy refuses this % on %', command, table_name
    USING ERRCODE = '42501', CONSTRAINT = 'authz_' || command, TABLE = table_name,
          DETAIL = 'The rule is: ' || rule;
END $$;

-- Raised for a type, permission or relation that the policy in force does not have.
CREATE OR REPLACE FUNCTION authz_int.unknown(what text) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RAISE EXCEPTION 'AZ707: the policy has no %', what USING ERRCODE = 'P0001';
END $$;
REVOKE ALL ON FUNCTION authz_int.unknown(text) FROM PUBLIC;

-- Whether the caller is (a member of) the owner rather than the app: the role set, or else the one logged in.
CREATE OR REPLACE FUNCTION authz_int.is_operator() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT pg_has_role(CASE WHEN current_setting('role') = 'none' THEN session_user ELSE current_setting('role')::name END,
                     current_user, 'MEMBER')
$$;
REVOKE ALL ON FUNCTION authz_int.is_operator() FROM PUBLIC;
