//! Syntax tree to model: every name looked up, every shape checked. Nothing stops at the first mistake; what a mistake
//! leaves unknown is remembered as broken, and uses of it are not reported again.
//!
//! What the language has and this release does not build is refused here with [`NOT_BUILT`], after all the other
//! checks on it, so a policy is never half enforced.

mod blocks;
mod conditions;
mod exprs;
mod limits;
mod names;
mod relations;
mod run_time;
mod tests;

use std::collections::{HashMap, HashSet};

use super::ast::{Block, Name, Policy, TypeDecl};
use super::diagnostic::{Diagnostic, Severity};
use super::graph;
use super::ident::Ident;
use super::model::{Model, PermId, RelId, ScopeId, Subject, TypeDef, TypeId};
use super::span::Span;
use super::suggest;

/// The code of constructs of the language that are not built yet.
pub const NOT_BUILT: u16 = 199;

/// What a policy means, when it has no mistake, and its mistakes. `complete` says that all of it could be parsed:
/// otherwise what seems unused may be used where it could not.
pub fn resolve(policy: &Policy, complete: bool) -> (Option<Model>, Vec<Diagnostic>) {
    let mut resolver = Resolver::new(policy);
    let app_role = resolver.app_role();
    resolver.declare_types();
    resolver.declare_members();
    resolver.relations();
    resolver.permissions();
    let graphs = graph::find(&mut resolver.types, &resolver.broken.permissions, &mut resolver.diagnostics);
    resolver.run_time_permissions();
    let caveats = resolver.caveats();
    let scopes = resolver.scopes();
    let invariants = resolver.invariants();
    let rules = resolver.rules();
    let tests = resolver.tests();
    if complete {
        resolver.unused_relations();
    }
    let Resolver { types, user, diagnostics, .. } = resolver;
    let right = diagnostics.iter().all(|d| d.severity != Severity::Error);
    let model = match (app_role, user) {
        (Some(app_role), Some(user)) if right => {
            Some(Model { app_role, user, types, graphs, rules, caveats, scopes, invariants, tests })
        }
        _ => None,
    };
    (model, diagnostics)
}

/// What a name under a type stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Symbol {
    Relation(RelId),
    Permission(PermId),
}

/// Declarations that were reported already; uses of them stay silent.
#[derive(Debug, Default)]
struct Broken {
    types: HashSet<TypeId>,
    relations: HashSet<(TypeId, RelId)>,
    permissions: HashSet<(TypeId, PermId)>,
    /// Types whose `roles` line is wrong.
    roles: HashSet<TypeId>,
}

struct Resolver<'p> {
    policy: &'p Policy,
    /// The types as written, by [`TypeId`].
    decls: Vec<&'p TypeDecl>,
    diagnostics: Vec<Diagnostic>,
    types: Vec<TypeDef>,
    user: Option<TypeId>,
    type_names: HashMap<&'p str, TypeId>,
    /// By type, then by name.
    symbols: Vec<HashMap<&'p str, Symbol>>,
    broken: Broken,
    used: HashSet<(TypeId, RelId)>,
    /// Every source so far; the text says where its rows are.
    sources_seen: HashSet<(TypeId, RelId, Subject, String)>,
    scopes: HashMap<&'p str, ScopeId>,
    /// The permission whose expression is being looked at.
    within: Option<PermId>,
    /// Finding the nearest name looks at all of them, so a text with thousands of unknown names gets no hints after
    /// the first few hundred: time must not grow with their product.
    hints_left: usize,
}

impl<'p> Resolver<'p> {
    fn new(policy: &'p Policy) -> Self {
        Resolver {
            policy,
            decls: policy.types().collect(),
            diagnostics: Vec::new(),
            types: Vec::new(),
            user: None,
            type_names: HashMap::new(),
            symbols: Vec::new(),
            broken: Broken::default(),
            used: HashSet::new(),
            sources_seen: HashSet::new(),
            scopes: HashMap::new(),
            within: None,
            hints_left: 300,
        }
    }

    fn error(&mut self, code: u16, span: Span, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(code, span, message));
    }

    fn app_role(&mut self) -> Option<Ident> {
        let mut role: Option<Ident> = None;
        for block in &self.policy.blocks {
            let Block::AppRole(written) = block else { continue };
            if written.value.as_str() == "public" {
                self.error(111, written.span, "the app role cannot be PUBLIC, which is every role there is");
            } else if let Some(first) = &role {
                let message = format!("a policy has one app role, and it is {} already", first.plain());
                self.error(111, written.span, message);
            }
            role.get_or_insert_with(|| written.value.clone());
        }
        if role.is_none() {
            let message = "no app role: write \"app role NAME\", the role your app connects as";
            self.error(111, Span::default(), message);
        }
        role
    }

    /// The type a name stands for; reports it when there is none.
    fn type_of(&mut self, name: &Name) -> Option<TypeId> {
        self.find_type(name, 201)
    }

    fn find_type(&mut self, name: &Name, code: u16) -> Option<TypeId> {
        if let Some(found) = self.type_names.get(name.value.as_str()) {
            return Some(*found);
        }
        let mut hint = String::new();
        if self.may_hint() {
            let all: Vec<&str> = self.types.iter().map(|t| t.name.as_str()).collect();
            let near = suggest::nearest(&name.value, all.iter().copied()).or_else(|| people(&name.value, &all));
            hint = suggest::or_list(near, "the types are", &all);
        }
        self.error(code, name.span, format!("unknown type \"{}\"{hint}", name.value));
        None
    }

    /// Whether there is time left for a hint.
    fn may_hint(&mut self) -> bool {
        let may = self.hints_left > 0;
        self.hints_left = self.hints_left.saturating_sub(1);
        may
    }

    fn symbol(&self, ty: TypeId, name: &str) -> Option<Symbol> {
        self.symbols.get(ty.0)?.get(name).copied()
    }

    /// The name of a type, for messages.
    fn type_name(&self, ty: TypeId) -> &str {
        self.types.get(ty.0).map_or("", |t| t.name.as_str())
    }

    /// `; did you mean ...` over the names of a type.
    fn suggest_member(&mut self, ty: TypeId, name: &str) -> String {
        if !self.may_hint() {
            return String::new();
        }
        let Some(def) = self.types.get(ty.0) else { return String::new() };
        let relations = def.relations.iter().map(|r| r.name.as_str());
        let all: Vec<&str> = relations.chain(def.permissions.iter().map(|p| p.name.as_str())).collect();
        let near = suggest::nearest(name, all.iter().copied());
        suggest::or_list(near, &format!("{} has", def.name), &all)
    }
}

/// The type `user`, when a name is one of the usual words for it.
fn people<'a>(name: &str, all: &[&'a str]) -> Option<&'a str> {
    const WORDS: [&str; 7] = ["person", "people", "account", "member", "principal", "login", "users"];
    WORDS.contains(&name.to_lowercase().as_str()).then(|| all.iter().find(|t| **t == "user").copied()).flatten()
}
