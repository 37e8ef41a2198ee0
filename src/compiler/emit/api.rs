//! The functions of schema `authz` that depend on the policy: signing in, asking, sharing. Each takes ids as text and
//! dispatches to the typed views; short overloads take integers and uuids, so that no caller needs a cast.

use crate::compiler::ident::literal;
use crate::compiler::model::{PermId, Target, TypeId};

use super::context::{Asker, Emit, Form, Policy, Scope};
use super::names;
use super::relations::indented;
use super::views::Made;

/// The types in which an id may be given besides text.
const ID_TYPES: [&str; 2] = ["bigint", "uuid"];

/// How the functions of the API are declared: as the owner, search path and plans pinned.
pub const OWNER: &str =
    "SECURITY DEFINER\nSET search_path = pg_catalog, pg_temp\nSET plan_cache_mode = force_generic_plan\nAS $authz$";

/// A function of the API being put together.
pub struct Api<'a> {
    /// `authz.can`.
    pub name: &'a str,
    /// The arguments with text ids, as `name type [DEFAULT value]`.
    pub args: &'a [&'a str],
    /// What it returns.
    pub returns: &'a str,
    /// `STABLE` or `VOLATILE`.
    pub volatility: &'a str,
    /// DECLARE lines, if any.
    pub declare: &'a str,
    /// What stands between BEGIN and END; it calls the argument `id` `authz__id`, and so on.
    pub body: String,
}

impl Api<'_> {
    /// Adds the function, and for each argument called `id`, `after` or `subject_id` overloads with its other types.
    pub fn add(self, made: &mut Made) {
        // Bodies name arguments by these aliases, never bare: a bare name in a policy's condition must be a column.
        let aliases: String = self
            .args
            .iter()
            .enumerate()
            .filter_map(|(at, arg)| Some(format!("  authz__{} ALIAS FOR ${};\n", arg.split(' ').next()?, at + 1)))
            .collect();
        let declare = format!("DECLARE\n{aliases}{}", self.declare);
        let sql = format!(
            "CREATE OR REPLACE FUNCTION {}({}) RETURNS {}\nLANGUAGE plpgsql {} {OWNER}\n#variable_conflict use_column\n{declare}BEGIN\n{}\nEND $authz$",
            self.name,
            self.args.join(", "),
            self.returns,
            self.volatility,
            self.body
        );
        made.function(&signature(self.name, self.args), sql, true);
        let ids: Vec<usize> = (0..self.args.len()).filter(|i| self.args.get(*i).is_some_and(|a| is_id(a))).collect();
        let choices = 3_usize.pow(u32::try_from(ids.len()).unwrap_or(0));
        for choice in 1..choices {
            let mut left = choice;
            let mut args: Vec<String> = self.args.iter().map(|a| (*a).to_owned()).collect();
            let mut last_id = 0;
            for at in &ids {
                if let (Some(ty), Some(arg)) = (left.checked_rem(3).and_then(|n| n.checked_sub(1)), args.get_mut(*at))
                    && let Some(name) = arg.split(' ').next().map(str::to_owned)
                {
                    *arg = format!("{name} {}", ID_TYPES.get(ty).copied().unwrap_or("bigint"));
                    last_id = *at;
                }
                left /= 3;
            }
            // An argument before the last id cannot have a default, or a call without it would fit two functions.
            for arg in args.iter_mut().take(last_id + 1) {
                if let Some((bare, _)) = arg.split_once(" DEFAULT ") {
                    *arg = bare.to_owned();
                }
            }
            self.add_overload(&args, made);
        }
    }

    fn add_overload(&self, args: &[String], made: &mut Made) {
        let names: Vec<String> = args
            .iter()
            .map(|arg| {
                let mut words = arg.split(' ');
                let (name, ty) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
                if is_id(arg) && ID_TYPES.contains(&ty) { format!("{name}::text") } else { name.to_owned() }
            })
            .collect();
        let plain: Vec<&str> = args.iter().map(String::as_str).collect();
        let select = if self.returns.starts_with("SETOF") || self.returns.starts_with("TABLE") {
            "SELECT * FROM"
        } else {
            "SELECT"
        };
        // It runs as the caller and names everything in full; without a SET of its own PostgreSQL can inline it.
        let sql = format!(
            "CREATE OR REPLACE FUNCTION {}({}) RETURNS {}\nLANGUAGE sql {}\nAS $authz$ {select} {}({}) $authz$",
            self.name,
            plain.join(", "),
            self.returns,
            self.volatility,
            self.name,
            names.join(", ")
        );
        made.function(&signature(self.name, &plain), sql, true);
    }
}

/// Whether an argument is an id, which may be given as text or as one of [`ID_TYPES`].
fn is_id(arg: &str) -> bool {
    ["id ", "after ", "subject_id ", "owner_id "].iter().any(|name| arg.starts_with(name))
}

/// `authz.can(text, bigint, text)`: the name by which a function is granted.
fn signature(name: &str, args: &[&str]) -> String {
    let types: Vec<String> = args
        .iter()
        .map(|arg| {
            let bare = arg.split(" DEFAULT ").next().unwrap_or(arg);
            bare.split_once(' ').map_or(bare, |(_, ty)| ty).to_owned()
        })
        .collect();
    format!("{name}({})", types.join(", "))
}

impl Policy<'_> {
    /// Signing in and asking.
    pub fn api_objects(&self, made: &mut Made) -> Emit<()> {
        self.principal_objects(made)?;
        self.can(made)?;
        self.list(made)?;
        self.perms(made)
    }

    /// One arm for each permission of each type: `IF kind = ... AND perm = ... THEN ... END IF`.
    fn arms(&self, arm: impl Fn(TypeId, PermId) -> Emit<String>) -> Emit<String> {
        let mut text = String::new();
        for (at, def) in self.model.types.iter().enumerate() {
            if def.permissions.is_empty() {
                continue;
            }
            text.push_str(&format!("  IF authz__kind = {} THEN\n", literal(&def.name)));
            for (permission, found) in def.permissions.iter().enumerate() {
                let body = arm(TypeId(at), PermId(permission))?;
                text.push_str(&format!(
                    "    IF authz__perm = {} THEN\n{}\n    END IF;\n",
                    literal(&found.name),
                    indented(&body)
                ));
            }
            text.push_str("  END IF;\n");
        }
        text.push_str("  PERFORM authz_int.unknown('permission ' || quote_literal(authz__perm) || ' on type ' || quote_literal(authz__kind));\n");
        Ok(text)
    }

    /// The dispatch of a function about one permission, for the other emitters of the API.
    pub fn permission_arms(&self, arm: impl Fn(TypeId, PermId) -> Emit<String>) -> Emit<String> {
        self.arms(arm)
    }

    fn can(&self, made: &mut Made) -> Emit<()> {
        let arms = self.arms(|ty, permission| {
            let view = names::view(self.ty(ty)?, &self.permission(ty, permission)?.name);
            let key = self.key(ty)?;
            let same = key.of_view("v").equals(&key.of_text("authz__id"));
            let may = self.may_use(ty, permission)?;
            Ok(format!("  RETURN {may} AND EXISTS (SELECT FROM {view} v WHERE {same});"))
        })?;
        Api {
            name: "authz.can",
            args: &["kind text", "id text", "perm text"],
            returns: "boolean",
            volatility: "STABLE",
            declare: "",
            body: format!("{arms}  RETURN false;"),
        }
        .add(made);
        Ok(())
    }

    fn list(&self, made: &mut Made) -> Emit<()> {
        let arms = self.arms(|ty, permission| {
            let def = self.ty(ty)?;
            let found = self.permission(ty, permission)?;
            let key = self.key(ty)?;
            let id = key.of_row("this");
            let mut scope = Scope::new(ty, "this", Asker::Statement, Form::Set);
            let check = match found.inherits {
                Some(_) => self.reached(&mut scope, ty, Target::Permission(permission), &id)?,
                None => self.check(&mut scope, &found.expr)?,
            };
            let counts = self.counts(ty, "this")?;
            let query = |from: &str| {
                format!(
                    "RETURN QUERY SELECT {} FROM {} AS this\n  WHERE {from}({check}){counts}\n  ORDER BY {} LIMIT authz__most;",
                    key.text(&id),
                    def.table,
                    id.list()
                )
            };
            let may = self.may_use(ty, permission)?;
            Ok(format!(
                "  IF NOT {may} THEN\n    RETURN;\n  END IF;\n  IF authz__after IS NULL THEN\n  {}\n  ELSE\n  {}\n  END IF;\n  RETURN;",
                query(""),
                query(&format!("{} > {} AND ", id.row(), key.of_text("authz__after").row()))
            ))
        })?;
        Api {
            name: "authz.list",
            args: &["kind text", "perm text", "after text DEFAULT NULL", "most integer DEFAULT NULL"],
            returns: "SETOF text",
            volatility: "STABLE",
            declare: "",
            body: arms,
        }
        .add(made);
        Ok(())
    }

    fn perms(&self, made: &mut Made) -> Emit<()> {
        let mut text = String::new();
        for (at, def) in self.model.types.iter().enumerate().filter(|(_, def)| !def.permissions.is_empty()) {
            let key = self.key(TypeId(at))?;
            let same = key.of_view("v").equals(&key.of_text("authz__id"));
            let held: Vec<String> = (def.permissions.iter().enumerate())
                .map(|(id, p)| {
                    let view = names::view(def, &p.name);
                    let may = self.may_use(TypeId(at), PermId(id))?;
                    let name = literal(&p.name);
                    Ok(format!("CASE WHEN {may} AND EXISTS (SELECT FROM {view} v WHERE {same}) THEN {name} END"))
                })
                .collect::<Emit<_>>()?;
            text.push_str(&format!(
                "  IF authz__kind = {} THEN\n    RETURN array_remove(ARRAY[\n      {}\n    ], NULL);\n  END IF;\n",
                literal(&def.name),
                held.join(",\n      ")
            ));
        }
        text.push_str(
            "  PERFORM authz_int.unknown('type with permissions ' || quote_literal(authz__kind));\n  RETURN NULL;",
        );
        Api {
            name: "authz.perms",
            args: &["kind text", "id text"],
            returns: "text[]",
            volatility: "STABLE",
            declare: "",
            body: text,
        }
        .add(made);
        Ok(())
    }
}
