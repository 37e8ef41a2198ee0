//! `authz.perms_of` and `authz.who_among`: one question about many objects, or about many people.

use crate::compiler::ident::literal;

use super::api::OWNER;
use super::context::{Emit, Policy};
use super::names;
use super::views::Made;

impl Policy<'_> {
    /// The functions about many at once. Ids may be text or numbers, as everywhere; an array has one type.
    pub fn ask_objects(&self, made: &mut Made) -> Emit<()> {
        for ids in ["text[]", "bigint[]", "uuid[]"] {
            // It runs as the caller, and asks what the caller may ask of each.
            let sql = format!(
                "CREATE OR REPLACE FUNCTION authz.perms_of(kind text, ids {ids}) RETURNS TABLE(id text, perms text[])\nLANGUAGE sql STABLE\n\
                 AS $authz$ SELECT i::text, authz.perms(kind, i::text) FROM unnest(ids) WITH ORDINALITY AS u(i, at) ORDER BY u.at $authz$"
            );
            made.function(&format!("authz.perms_of(text, {ids})"), sql, true);
        }
        let arms = self.permission_arms(|ty, permission| {
            let def = self.ty(ty)?;
            let key = self.key(ty)?;
            let same = key.of_view("v").equals(&key.of_text("authz__id"));
            Ok(format!(
                "FOR authz__one IN SELECT u.i FROM unnest(authz__users) WITH ORDINALITY AS u(i, at) GROUP BY u.i ORDER BY min(u.at) LOOP\n  \
                 PERFORM authz_gen.sign_in({user}, authz__one);\n  \
                 -- Without a row that counts, nobody was signed in.\n  \
                 IF authz.uid() IS NOT NULL AND EXISTS (SELECT FROM {view} v WHERE {same}) THEN\n    RETURN NEXT authz__one;\n  END IF;\nEND LOOP;\n\
                 PERFORM set_config('authz.session', authz__before, true), set_config('authz_ctx.links', authz__links, true);\nRETURN;",
                user = literal(&self.ty(self.model.user)?.name),
                view = names::view(def, &self.permission(ty, permission)?.name),
            ))
        })?;
        let signature = "authz.who_among(text, text, text, text[])";
        let sql = format!(
            "CREATE OR REPLACE FUNCTION authz.who_among(kind text, id text, perm text, users text[]) RETURNS SETOF text\n\
             LANGUAGE plpgsql VOLATILE {OWNER}\n#variable_conflict use_column\nDECLARE\n  authz__kind ALIAS FOR $1;\n  authz__id ALIAS FOR $2;\n  \
             authz__perm ALIAS FOR $3;\n  authz__users ALIAS FOR $4;\n  authz__one text;\n  \
             authz__before text := coalesce(current_setting('authz.session', true), '');\n  \
             authz__links text := coalesce(current_setting('authz_ctx.links', true), '');\nBEGIN\n  \
             IF NOT authz_int.is_operator() AND NOT authz.can(authz__kind, authz__id, authz__perm) THEN\n    \
             RAISE EXCEPTION 'AZ705: only those who hold % may ask who holds it', authz__perm USING ERRCODE = '42501';\n  END IF;\n  \
             PERFORM set_config('authz_ctx.links', '', true);\n{arms}END $authz$"
        );
        made.function(signature, sql, true);
        for (id, users) in
            [("text", "bigint[]"), ("text", "uuid[]"), ("bigint", "text[]"), ("bigint", "bigint[]"), ("uuid", "uuid[]")]
        {
            let sql = format!(
                "CREATE OR REPLACE FUNCTION authz.who_among(kind text, id {id}, perm text, users {users}) RETURNS SETOF text\nLANGUAGE sql VOLATILE\n\
                 AS $authz$ SELECT * FROM authz.who_among(kind, id::text, perm, users::text[]) $authz$"
            );
            made.function(&format!("authz.who_among(text, {id}, text, {users})"), sql, true);
        }
        Ok(())
    }
}
