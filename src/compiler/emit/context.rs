//! What the pieces of the emitter share: the model with its lookups, and how a statement under construction names the
//! row, the caller and the caller's groups.

use std::collections::BTreeSet;

use crate::compiler::diagnostic::Diagnostic;
use crate::compiler::model::{Graph, GraphId, Model, PermId, Permission, RelId, Relation, TypeDef, TypeId};
use crate::compiler::objects::GraphTables;
use crate::compiler::span::Span;

use super::condition::RowFunctions;
use super::key::{Id, Key};
use super::{Options, names};

/// A piece of SQL text, or the reason the policy cannot be compiled.
pub type Emit<T> = Result<T, Diagnostic>;

/// The code of what this release does not build.
pub const NOT_BUILT: u16 = 199;

/// A construct the emitter does not build, at `span`.
pub fn not_built(span: Span, what: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::error(NOT_BUILT, span, format!("not built yet: {what}"))
}

/// The policy being emitted.
pub struct Policy<'m> {
    /// What it means.
    pub model: &'m Model,
    /// The index of each of its graphs, in the model's order.
    pub graphs: Vec<GraphTables>,
    /// How it is emitted.
    pub options: Options,
    /// The functions that its conditions became, as they are met.
    pub row_functions: RowFunctions,
}

impl<'m> Policy<'m> {
    /// A type of this policy.
    pub fn ty(&self, id: TypeId) -> Emit<&'m TypeDef> {
        self.model.ty(id).ok_or_else(|| foreign("type"))
    }

    /// A relation of one of its types.
    pub fn relation(&self, ty: TypeId, id: RelId) -> Emit<&'m Relation> {
        self.ty(ty)?.relation(id).ok_or_else(|| foreign("relation"))
    }

    /// A permission of one of its types.
    pub fn permission(&self, ty: TypeId, id: PermId) -> Emit<&'m Permission> {
        self.ty(ty)?.permission(id).ok_or_else(|| foreign("permission"))
    }

    /// One of its graphs.
    pub fn graph(&self, id: GraphId) -> Emit<&'m Graph> {
        self.model.graph(id).ok_or_else(|| foreign("graph"))
    }

    /// The name of a graph's tables, such as `g1a2b3c4d`.
    pub fn graph_name(&self, id: GraphId) -> Emit<&str> {
        self.graphs.get(id.0).map(|g| g.name.as_str()).ok_or_else(|| foreign("graph"))
    }

    /// The key of a type.
    pub fn key(&self, ty: TypeId) -> Emit<Key<'m>> {
        Ok(Key::new(self.ty(ty)?))
    }
}

/// An id that is not of this model: the resolver's mistake, reported rather than hidden.
fn foreign(what: &str) -> Diagnostic {
    not_built(Span::default(), format!("the policy's model names a {what} it does not hold; please report this policy"))
}

/// How a statement names the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// Sub-selects, which PostgreSQL runs once a statement and only when needed.
    Statement,
    /// Variables of a generated function.
    Variables,
}

/// Which of the two equal answers a term is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Look up this row: its cost does not depend on what the caller holds.
    Probe,
    /// Test against a set worked out once: costs nothing a row.
    Set,
}

/// A statement under construction: how it names things, and what it turned out to use.
#[derive(Debug, Clone)]
pub struct Scope {
    /// The type whose row is judged.
    pub ty: TypeId,
    /// SQL text that names the row.
    pub row: String,
    /// How it names the caller.
    pub asker: Asker,
    /// Which form its terms take.
    pub form: Form,
    /// The generated views it reads, as often as it names them.
    pub views: Vec<String>,
    /// The relations of which it needs the caller's ids.
    pub mine: BTreeSet<(TypeId, RelId)>,
}

impl Scope {
    /// A scope in which the row of `ty` is called `row`.
    pub fn new(ty: TypeId, row: impl Into<String>, asker: Asker, form: Form) -> Self {
        Scope { ty, row: row.into(), asker, form, views: Vec::new(), mine: BTreeSet::new() }
    }

    /// A list for SELECT with the columns of `id` under their usual names: with the key's exact types in a function, as
    /// they are in a view, whose columns an index should serve.
    pub fn ids(&self, key: Key<'_>, id: &Id) -> String {
        match self.asker {
            Asker::Statement => key.plain(id, "id"),
            Asker::Variables => key.typed(id, "id"),
        }
    }

    /// The caller's id of a type that signs in, as one value; NULL when the caller is not signed in as one.
    pub fn me(&self, policy: &Policy<'_>, ty: TypeId) -> Emit<String> {
        let name = match self.asker {
            Asker::Statement => names::me(policy.model, ty).map(|name| format!("(SELECT {name}())")),
            Asker::Variables => names::me_variable(policy.model, ty),
        };
        name.ok_or_else(|| foreign("type"))
    }

    /// The hashes of the request's share links, as an array.
    pub fn links(&self) -> &'static str {
        match self.asker {
            Asker::Statement => "(SELECT authz_gen.links())::bytea[]",
            Asker::Variables => "authz__links",
        }
    }

    /// The ids of type `ty` in whose relation the caller is, as an array.
    pub fn mine(&mut self, policy: &Policy<'_>, ty: TypeId, relation: RelId) -> Emit<String> {
        let def = policy.ty(ty)?;
        let name = &policy.relation(ty, relation)?.name;
        self.mine.insert((ty, relation));
        Ok(match self.asker {
            Asker::Statement => {
                format!("(SELECT {}())::{}[]", names::function("mine", def, name), policy.key(ty)?.sql())
            }
            Asker::Variables => names::mine_variable(def, name),
        })
    }
}

/// A generated function that runs as the owner: parallel safe, its search path and its plans pinned. `args` and
/// `returns` are SQL; `body` is what stands between BEGIN and END.
pub fn owner_function(
    policy: &Policy<'_>,
    name: &str,
    args: &str,
    returns: &str,
    mine: &BTreeSet<(TypeId, RelId)>,
    body: &str,
) -> Emit<String> {
    let mut declares = String::new();
    for ty in policy.model.principals() {
        let (Some(variable), Some(me)) = (names::me_variable(policy.model, ty), names::me(policy.model, ty)) else {
            continue;
        };
        if body.contains(&variable) {
            declares.push_str(&format!("  {variable} {} := {me}();\n", policy.key(ty)?.sql()));
        }
    }
    if body.contains("authz__links") {
        declares.push_str("  authz__links bytea[] := authz_gen.links();\n");
    }
    for (ty, relation) in mine {
        let def = policy.ty(*ty)?;
        let relation = &policy.relation(*ty, *relation)?.name;
        declares.push_str(&format!(
            "  {} {}[] := {}();\n",
            names::mine_variable(def, relation),
            policy.key(*ty)?.sql(),
            names::function("mine", def, relation)
        ));
    }
    // A caveat's condition runs in a subtransaction, which parallel plans cannot have.
    let parallel = if policy.model.caveats.is_empty() { "SAFE" } else { "UNSAFE" };
    // A small ROWS makes the planner hash what the function returns, whatever work_mem is.
    let rows = if returns.starts_with("SETOF") { " ROWS 100" } else { "" };
    Ok(format!(
        "CREATE FUNCTION {name}({args}) RETURNS {returns}\nLANGUAGE plpgsql STABLE PARALLEL {parallel} SECURITY DEFINER{rows}\n\
         SET search_path = pg_catalog, pg_temp\nSET plan_cache_mode = force_generic_plan\nAS $authz$\n\
         #variable_conflict use_column\nDECLARE\n{declares}BEGIN\n{body}\nEND $authz$"
    ))
}
