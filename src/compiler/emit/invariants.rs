//! `authz.check_invariants`: on the data that is there, whether anybody holds what nobody may.

use crate::compiler::ident::literal;
use crate::compiler::model::Invariant;

use super::api::OWNER;
use super::context::{Asker, Emit, Form, Policy, Scope};
use super::describe::describe;
use super::relations::indented;
use super::views::Made;

/// Objects shown of one principal that breaks an invariant.
const MOST_SHOWN: u32 = 100;

impl Policy<'_> {
    /// The function; without invariants it finds nothing.
    pub fn invariant_objects(&self, made: &mut Made) -> Emit<()> {
        let mut body = String::new();
        for invariant in &self.model.invariants {
            body.push_str(&self.invariant(invariant)?);
        }
        let sql = format!(
            "CREATE OR REPLACE FUNCTION authz.check_invariants() RETURNS TABLE(invariant text, kind text, id text, principal text)\n\
             LANGUAGE plpgsql VOLATILE {OWNER}\n#variable_conflict use_column\nDECLARE\n  \
             authz__before text := coalesce(current_setting('authz.session', true), '');\n  \
             authz__links text := coalesce(current_setting('authz_ctx.links', true), '');\n  \
             authz__names text[];\n  authz__wide boolean;\n  authz__who record;\nBEGIN\n  \
             PERFORM set_config('authz_ctx.links', '', true);\n{body}  \
             PERFORM set_config('authz.session', authz__before, true), set_config('authz_ctx.links', authz__links, true);\nEND $authz$"
        );
        made.function("authz.check_invariants()", sql, false);
        Ok(())
    }

    /// Asks as everyone who may break it, and as nobody.
    fn invariant(&self, invariant: &Invariant) -> Emit<String> {
        let ty = invariant.ty;
        let def = self.ty(ty)?;
        let key = self.key(ty)?;
        let id = key.of_row("this");
        let counts = self.counts(ty, "this")?;
        let all = format!("ARRAY(SELECT {} FROM {} AS this WHERE true{counts})", key.value(&id), def.table);
        let candidates = self.who(ty, &invariant.expr, "p.ids")?;
        let mut scope = Scope::new(ty, "this", Asker::Statement, Form::Set);
        let check = self.check(&mut scope, &invariant.expr)?;
        let mut asked = Vec::new();
        for principal in self.model.principals() {
            let among = |kind: &str, id: &str| format!("(authz__wide OR {kind} || ' ' || {id} = ANY (authz__names))");
            let kind = literal(&self.ty(principal)?.name);
            asked.push(format!("SELECT {kind} AS kind, p.id FROM ({}) p", self.principals_of(principal, among)?));
        }
        Ok(format!(
            "  SELECT coalesce(bool_or({wide}), false), coalesce(array_agg(w.kind || ' ' || w.id), '{{}}') INTO authz__wide, authz__names\n  \
             FROM (SELECT {all} AS ids OFFSET 0) p, LATERAL (\n{candidates}\n  ) w;\n  \
             FOR authz__who IN {asked} UNION ALL SELECT '', '' LOOP\n    \
             PERFORM authz_int.sign_in(authz__who.kind, authz__who.id);\n    \
             RETURN QUERY SELECT {text}, {kind}, {id}, coalesce(authz.principal(), 'nobody')\n    \
             FROM {table} AS this WHERE {check}{counts} ORDER BY {order} LIMIT {MOST_SHOWN};\n  END LOOP;\n",
            wide = self.is_wide()?,
            candidates = indented(&candidates),
            asked = asked.join(" UNION ALL "),
            text = literal(&format!("never {}: {}", def.name, describe(self, ty, &invariant.expr))),
            kind = literal(&def.name),
            id = key.text(&id),
            order = id.list(),
            table = def.table,
        ))
    }
}
