//! Who is asking: signing in as each type that does, what the session is limited to, and the conditions of caveats.

use crate::compiler::ident::{QualName, literal};
use crate::compiler::model::{PermId, ScopeItem, TypeId, Verb};
use crate::compiler::sql::{PieceKind, pieces};

use super::api::{Api, OWNER};
use super::context::{Emit, Policy};
use super::names;
use super::views::Made;

/// Whether a caveat's condition holds: its name and the arguments of the share.
pub const CAVEAT: &str = "authz_gen.caveat_holds";
/// The hashes of the request's share links.
pub const LINKS: &str = "authz_gen.links";
/// Whether the session's scopes allow an action.
pub const MAY: &str = "authz_gen.may";
/// Signs somebody in after looking whether they are there and count; for the owner's functions alone.
const SIGN_IN: &str = "authz_gen.sign_in";

/// An action that scopes allow: a command on a table.
pub fn command_action(table: &QualName, verb: Verb) -> String {
    format!("{} {table}", verb.word())
}

impl Policy<'_> {
    /// The functions that say who asks.
    pub fn principal_objects(&self, made: &mut Made) -> Emit<()> {
        for ty in self.model.principals() {
            let def = self.ty(ty)?;
            let key = self.key(ty)?.sql();
            let name = names::me(self.model, ty).unwrap_or_default();
            let sql = format!(
                "CREATE OR REPLACE FUNCTION {name}() RETURNS {key}\nLANGUAGE plpgsql STABLE PARALLEL SAFE {OWNER}\n\
                 DECLARE\n  session text[] := authz_int.session();\nBEGIN\n  \
                 RETURN CASE WHEN session[1] = {} THEN session[2]::{key} END;\nEND $authz$",
                literal(&def.name)
            );
            made.function(&format!("{name}()"), sql, true);
        }
        let principal = format!(
            "CREATE OR REPLACE FUNCTION authz.principal() RETURNS text\nLANGUAGE plpgsql STABLE PARALLEL SAFE {OWNER}\n\
             DECLARE\n  session text[] := authz_int.session();\nBEGIN\n  \
             RETURN nullif(session[1] || ' ' || session[2], ' ');\nEND $authz$"
        );
        made.function("authz.principal()", principal, true);
        self.sign_in(made)?;
        self.may(made)?;
        let links = format!(
            "CREATE OR REPLACE FUNCTION {LINKS}() RETURNS bytea[]\nLANGUAGE plpgsql STABLE PARALLEL SAFE {OWNER}\n\
             BEGIN\n  RETURN authz_int.links();\nEND $authz$"
        );
        made.function(&format!("{LINKS}()"), links, true);
        self.caveats(made);
        Ok(())
    }

    fn sign_in(&self, made: &mut Made) -> Emit<()> {
        let mut arms = String::new();
        for ty in self.model.principals() {
            let def = self.ty(ty)?;
            let key = self.key(ty)?;
            let row = key.of_row("this");
            arms.push_str(&format!(
                "  IF authz__kind = {kind} THEN\n    \
                 -- An id without a row, or whose row does not count, is nobody.\n    \
                 SELECT {id} INTO authz__found FROM {table} AS this WHERE {same}{counts};\n    \
                 PERFORM authz_int.sign_in(CASE WHEN authz__found IS NULL THEN '' ELSE authz__kind END, coalesce(authz__found, ''), authz__scopes);\n    \
                 RETURN;\n  END IF;\n",
                kind = literal(&def.name),
                id = key.text(&row),
                table = def.table,
                same = row.equals(&key.of_text("authz__id")),
                counts = self.counts(ty, "this")?,
            ));
        }
        let unknown = "  RAISE EXCEPTION 'AZ707: the policy has no type % that signs in', quote_literal(authz__kind) USING ERRCODE = 'P0001';";
        let names: Vec<String> = self.model.scopes.iter().map(|scope| literal(&scope.name)).collect();
        let sql = format!(
            "CREATE OR REPLACE FUNCTION {SIGN_IN}(kind text, id text, scopes text[] DEFAULT '{{}}') RETURNS void\n\
             LANGUAGE plpgsql VOLATILE {OWNER}\n#variable_conflict use_column\nDECLARE\n  authz__kind ALIAS FOR $1;\n  \
             authz__id ALIAS FOR $2;\n  authz__scopes ALIAS FOR $3;\n  authz__found text;\nBEGIN\n  \
             IF NOT authz__scopes <@ ARRAY[{names}]::text[] THEN\n    \
             RAISE EXCEPTION 'AZ707: the policy has no such scope among %', authz__scopes USING ERRCODE = 'P0001';\n  END IF;\n  \
             IF authz__kind IS NULL AND authz__id IS NULL THEN\n    PERFORM authz_int.sign_in('', '', authz__scopes);\n    RETURN;\n  END IF;\n  \
             IF authz__kind IS NULL OR authz__id IS NULL THEN\n    RAISE EXCEPTION 'AZ710: act_as takes a type and an id, or NULL and NULL for nobody'\n      \
             USING ERRCODE = '22023';\n  END IF;\n{arms}{unknown}\nEND $authz$",
            names = names.join(", ")
        );
        made.function(&format!("{SIGN_IN}(text, text, text[])"), sql, false);
        Api {
            name: "authz.act_as",
            args: &["kind text", "id text"],
            returns: "void",
            volatility: "VOLATILE",
            declare: "",
            body: format!(
                "  IF NOT authz_int.is_operator() THEN\n    PERFORM authz_int.may_act_as();\n  END IF;\n  PERFORM {SIGN_IN}(authz__kind, authz__id);"
            ),
        }
        .add(made);
        Ok(())
    }

    /// The function that says whether the session's scopes allow an action. It asks who is signed in either way, so a rule
    /// that anybody fulfils is still no answer to a session that never signed in.
    fn may(&self, made: &mut Made) -> Emit<()> {
        let mut rows = Vec::new();
        for scope in &self.model.scopes {
            let mut actions: Vec<String> = Vec::new();
            for item in &scope.items {
                match item {
                    ScopeItem::Command(verb) => {
                        actions.extend(
                            self.model.rules.iter().filter_map(|rules| {
                                self.model.ty(rules.ty).map(|def| command_action(&def.table, *verb))
                            }),
                        );
                    }
                    ScopeItem::TableCommand(table, verb) => actions.push(command_action(table, *verb)),
                    ScopeItem::Permission(ty, permission) => actions.push(self.permission_action(*ty, *permission)?),
                }
            }
            rows.extend(actions.iter().map(|action| format!("({}, {})", literal(&scope.name), literal(action))));
        }
        if rows.is_empty() {
            rows.push("(NULL, NULL)".to_owned());
        }
        let sql = format!(
            "CREATE OR REPLACE FUNCTION {MAY}(action text) RETURNS boolean\nLANGUAGE plpgsql STABLE PARALLEL SAFE {OWNER}\n\
             DECLARE\n  limits text := (authz_int.session())[3];\nBEGIN\n  IF limits = '' THEN\n    RETURN true;\n  END IF;\n  \
             RETURN EXISTS (SELECT FROM (VALUES\n    {}\n  ) s(scope, action) WHERE s.scope = ANY (string_to_array(limits, ',')) AND s.action = $1);\n\
             END $authz$",
            rows.join(",\n    ")
        );
        made.function(&format!("{MAY}(text)"), sql, true);
        Ok(())
    }

    /// An action that scopes allow: a permission of a type, as SQL text for [`MAY`] (without quotes).
    pub fn permission_action(&self, ty: TypeId, permission: PermId) -> Emit<String> {
        Ok(format!("{}.{}", self.ty(ty)?.name, self.permission(ty, permission)?.name))
    }

    /// The condition, on no row, that the session's scopes allow using a permission by name.
    pub fn may_use(&self, ty: TypeId, permission: PermId) -> Emit<String> {
        Ok(format!("{MAY}({})", literal(&self.permission_action(ty, permission)?)))
    }

    /// A condition that a share may carry, by name. One that the policy does not have any more holds never, and so does
    /// one that fails on the share's arguments: whoever made the share must not be able to break everybody's reads.
    fn caveats(&self, made: &mut Made) {
        if self.model.caveats.is_empty() {
            return;
        }
        let mut arms = String::new();
        for caveat in &self.model.caveats {
            arms.push_str(&format!(
                "  IF authz__caveat = {} THEN\n    RETURN ({}\n    ) IS TRUE;\n  END IF;\n",
                literal(&caveat.name),
                with_arguments(caveat.condition.sql.trim(), "authz__args")
            ));
        }
        // A block with an exception handler is a subtransaction, which parallel plans cannot have.
        let sql = format!(
            "CREATE OR REPLACE FUNCTION {CAVEAT}(caveat text, args jsonb) RETURNS boolean\nLANGUAGE plpgsql STABLE PARALLEL UNSAFE {OWNER}\n\
             #variable_conflict use_column\nDECLARE\n  authz__caveat ALIAS FOR $1;\n  authz__args ALIAS FOR $2;\nBEGIN\n{arms}  RETURN false;\n\
             EXCEPTION WHEN data_exception THEN\n  RETURN false;\nEND $authz$"
        );
        made.function(&format!("{CAVEAT}(text, jsonb)"), sql, true);
    }
}

/// A caveat's condition with `arg(` as a look-up in `args`.
pub fn with_arguments(sql: &str, args: &str) -> String {
    let all: Vec<_> = pieces(sql).collect();
    let mut out = String::with_capacity(sql.len() + 32);
    let mut at = 0;
    while let Some(piece) = all.get(at) {
        let blank = all.iter().skip(at + 1).take_while(|p| p.kind == PieceKind::Space).count();
        let called = all.get(at + 1 + blank).is_some_and(|p| p.is_punctuation("("));
        let qualified = at.checked_sub(1).and_then(|at| all.get(at)).is_some_and(|p| p.is_punctuation("."));
        if piece.is_word("arg") && called && !qualified {
            out.push_str(&format!("pg_catalog.jsonb_extract_path_text({args}, "));
            at += blank + 2;
        } else {
            out.push_str(piece.text);
            at += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::with_arguments;

    #[test]
    fn an_argument_of_a_share_is_looked_up_wherever_a_caveat_calls_for_it() {
        assert_eq!(
            with_arguments("a.arg('x') = arg ('y') or arg = 'arg(z)'", "j"),
            "a.arg('x') = pg_catalog.jsonb_extract_path_text(j, 'y') or arg = 'arg(z)'"
        );
    }
}
