-- Who is signed in: a record in the setting authz.session, sealed with HMAC-SHA256 (RFC 2104) under a key that only
-- the owner can read. The record is `SEAL TIME|TYPE|SCOPES|ID`: 64 hex digits of seal, then the transaction's timestamp, so
-- a record taken from one transaction is worth nothing in a later message's; SCOPES, joined by commas, is what the
-- session is limited to, empty when to nothing. A parallel worker shares the timestamp and the setting, so the check is
-- PARALLEL SAFE.

-- The two padded keys of HMAC, worked out once: sealing is then two hashes.
CREATE TABLE IF NOT EXISTS authz_int.session_key (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  inner_pad bytea NOT NULL CHECK (length(inner_pad) = 64),
  outer_pad bytea NOT NULL CHECK (length(outer_pad) = 64)
);
REVOKE ALL ON authz_int.session_key FROM PUBLIC;

DO $$
DECLARE
  -- gen_random_uuid draws on the server's strong random source; four of them hold 488 random bits.
  key bytea := sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text
                                 || gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8'))
               || decode(repeat('00', 32), 'hex');
  inner_key bytea := key;
  outer_key bytea := key;
BEGIN
  FOR i IN 0..63 LOOP
    inner_key := set_byte(inner_key, i, get_byte(key, i) # 54);
    outer_key := set_byte(outer_key, i, get_byte(key, i) # 92);
  END LOOP;
  INSERT INTO authz_int.session_key (inner_pad, outer_pad) VALUES (inner_key, outer_key) ON CONFLICT DO NOTHING;
END $$;

-- Signs a principal in for the rest of the transaction. An empty type is nobody, on purpose. The names of scopes hold
-- no comma and no bar.
CREATE OR REPLACE FUNCTION authz_int.sign_in(kind text, id text, scopes text[] DEFAULT '{}') RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  body text := extract(epoch FROM transaction_timestamp())::text || '|' || kind || '|'
               || array_to_string(scopes, ',') || '|' || id;
  seal text;
BEGIN
  SELECT encode(sha256(k.outer_pad || sha256(k.inner_pad || convert_to(body, 'UTF8'))), 'hex') INTO STRICT seal
  FROM authz_int.session_key k;
  PERFORM set_config('authz.session', seal || body, true);
END $$;
REVOKE ALL ON FUNCTION authz_int.sign_in(text, text, text[]) FROM PUBLIC;

-- The principal of this transaction as {type, id, scopes}; {'', '', ...} when nobody is signed in on purpose.
CREATE OR REPLACE FUNCTION authz_int.session() RETURNS text[]
LANGUAGE plpgsql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  sealed text := current_setting('authz.session', true);
  body text;
  seal text;
  moment text;
  kind text;
  scopes text;
BEGIN
  IF sealed IS NULL OR sealed = '' THEN
    RAISE EXCEPTION 'AZ701: nobody is signed in'
      USING ERRCODE = '28000', HINT = 'Call authz.act_as(type, id) first in each transaction.';
  END IF;
  body := substr(sealed, 65);
  moment := split_part(body, '|', 1);
  SELECT encode(sha256(k.outer_pad || sha256(k.inner_pad || convert_to(body, 'UTF8'))), 'hex') INTO STRICT seal
  FROM authz_int.session_key k;
  IF left(sealed, 64) IS DISTINCT FROM seal OR moment <> extract(epoch FROM transaction_timestamp())::text THEN
    RAISE EXCEPTION 'AZ702: who is signed in was changed, or was left over from another transaction'
      USING ERRCODE = '28000', HINT = 'Only authz.act_as may set authz.session, once in each transaction.';
  END IF;
  kind := split_part(body, '|', 2);
  scopes := split_part(body, '|', 3);
  -- The id is everything after the third bar: it may hold bars itself.
  RETURN ARRAY[kind, substr(body, length(moment) + length(kind) + length(scopes) + 4), scopes];
END $$;
REVOKE ALL ON FUNCTION authz_int.session() FROM PUBLIC;

-- Whether the app may sign somebody in without a key: not when the setting `act_as` is `off`, and not where a sign-in
-- has limited this transaction to scopes, which it must not leave by signing in again. The operator may always.
CREATE OR REPLACE FUNCTION authz_int.may_act_as() RETURNS void
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF EXISTS (SELECT FROM authz.settings s WHERE s.key = 'act_as' AND s.value = 'off') THEN
    RAISE EXCEPTION 'AZ703: signing in by name alone is switched off'
      USING ERRCODE = '28000', HINT = 'Sign in with a key or a token, or set act_as in authz.settings.';
  END IF;
  IF coalesce(current_setting('authz.session', true), '') <> '' AND (authz_int.session())[3] <> '' THEN
    RAISE EXCEPTION 'AZ702: this transaction is limited to scopes, and who is signed in stays'
      USING ERRCODE = '28000', HINT = 'Start another transaction to sign in as somebody else.';
  END IF;
END $$;
REVOKE ALL ON FUNCTION authz_int.may_act_as() FROM PUBLIC;

-- A value of the request's context: SET LOCAL authz_ctx.KEY = '...'. NULL when it is not set.
CREATE OR REPLACE FUNCTION authz.ctx(key text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$ SELECT nullif(current_setting('authz_ctx.' || key, true), '') $$;

-- The hashes of the share links that the request brings: SET LOCAL authz_ctx.links = 'TOKEN[,TOKEN ...]'. A request
-- may bring a hundred; more than that is somebody guessing.
CREATE OR REPLACE FUNCTION authz_int.links() RETURNS bytea[]
LANGUAGE sql STABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT coalesce(array_agg(sha256(convert_to(trim(t.token), 'UTF8'))), '{}')
  FROM unnest((string_to_array(left(current_setting('authz_ctx.links', true), 10000), ','))[1:100]) t(token)
  WHERE trim(t.token) <> ''
$$;
