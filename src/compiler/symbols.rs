//! Which names of a policy mean the same thing, for editors. It reads the syntax tree, so it works while there are
//! mistakes; a name it cannot place is simply not among them.

use std::collections::HashMap;

use super::ast::{
    Block, Expr, Member, Name, Policy, RelationBody, SourceDecl, StepKind, SubjectDecl, TestDecl, TypeDecl, WhoDecl,
};
use super::ident::QualName;
use super::span::{FileId, Span};
use super::sql::{PieceKind, pieces};

/// What a name names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Symbol {
    /// A type.
    Type(String),
    /// A relation or permission of a type.
    Member(String, String),
    /// A scope.
    Scope(String),
    /// A caveat.
    Caveat(String),
    /// `$name` of the test whose header begins here.
    Given(FileId, u32, String),
}

/// A name where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// What it names.
    pub symbol: Symbol,
    /// Where.
    pub span: Span,
    /// It is declared here.
    pub declares: bool,
}

/// Every name that could be placed, in the order of the tree.
pub fn occurrences(policy: &Policy) -> Vec<Occurrence> {
    let mut finder = Finder { found: Vec::new(), types: HashMap::new(), tables: HashMap::new() };
    for ty in policy.types() {
        finder.types.entry(&ty.name.value).or_insert(ty);
        if let Some(header) = &ty.header {
            finder.tables.entry(&header.table.value).or_insert(&ty.name.value);
        }
    }
    policy.blocks.iter().for_each(|block| finder.block(block));
    finder.found
}

/// The words of the members a type has, with whether each is a permission.
pub fn members(ty: &TypeDecl) -> impl Iterator<Item = (&str, bool)> {
    ty.members.iter().filter_map(|member| match member {
        Member::Relation(relation) => Some((relation.name.value.as_str(), false)),
        Member::Permission(permission) => Some((permission.name.value.as_str(), true)),
        Member::Roles(_) => None,
    })
}

/// The types a relation of a type names.
pub fn subject_types<'p>(ty: &'p TypeDecl, relation: &str) -> Vec<&'p str> {
    let bodies = ty.members.iter().filter_map(|member| match member {
        Member::Relation(decl) if decl.name.value == relation => decl.body.as_ref(),
        _ => None,
    });
    let mut types = Vec::new();
    for subject in bodies.flat_map(|body| &body.subjects) {
        if let SubjectDecl::Type(name) | SubjectDecl::Everyone(name) = subject {
            types.push(name.value.as_str());
        }
    }
    types
}

struct Finder<'p> {
    found: Vec<Occurrence>,
    types: HashMap<&'p str, &'p TypeDecl>,
    tables: HashMap<&'p QualName, &'p str>,
}

impl<'p> Finder<'p> {
    fn add(&mut self, symbol: Symbol, span: Span, declares: bool) {
        self.found.push(Occurrence { symbol, span, declares });
    }

    fn uses_type(&mut self, name: &Name) {
        self.add(Symbol::Type(name.value.clone()), name.span, false);
    }

    fn uses_member(&mut self, ty: &str, name: &Name) {
        self.add(Symbol::Member(ty.to_owned(), name.value.clone()), name.span, false);
    }

    fn block(&mut self, block: &'p Block) {
        match block {
            Block::AppRole(_) | Block::Include(_) => {}
            Block::Type(ty) => self.type_decl(ty),
            Block::Caveat(caveat) => self.add(Symbol::Caveat(caveat.name.value.clone()), caveat.name.span, true),
            Block::Scope(scope) => {
                self.add(Symbol::Scope(scope.name.value.clone()), scope.name.span, true);
                for item in &scope.items {
                    if let [ty, permission] = item.as_slice() {
                        self.add(Symbol::Type(ty.value.name.clone()), ty.span, false);
                        let member = Symbol::Member(ty.value.name.clone(), permission.value.name.clone());
                        self.add(member, permission.span, false);
                    }
                }
            }
            Block::Rules(rules) => {
                let Some(ty) = self.tables.get(&rules.table.value).copied() else { return };
                self.add(Symbol::Type(ty.to_owned()), rules.table.span, false);
                rules.rules.iter().for_each(|rule| self.expr(ty, &rule.expr));
            }
            Block::Invariants(_, invariants) => {
                for invariant in invariants {
                    self.uses_type(&invariant.ty);
                    self.expr(&invariant.ty.value, &invariant.expr);
                }
            }
            Block::Test(test) => self.test(test),
        }
    }

    fn type_decl(&mut self, ty: &'p TypeDecl) {
        let name = ty.name.value.as_str();
        self.add(Symbol::Type(name.to_owned()), ty.name.span, true);
        for member in &ty.members {
            match member {
                Member::Relation(relation) => {
                    self.add(Symbol::Member(name.to_owned(), relation.name.value.clone()), relation.name.span, true);
                    if let Some(body) = &relation.body {
                        self.relation(name, body);
                    }
                }
                Member::Permission(permission) => {
                    let symbol = Symbol::Member(name.to_owned(), permission.name.value.clone());
                    self.add(symbol, permission.name.span, true);
                    self.expr(name, &permission.expr);
                }
                Member::Roles(roles) => {
                    self.subjects(&roles.subjects);
                    roles.from.iter().for_each(|from| self.uses_member(name, from));
                }
            }
        }
    }

    fn relation(&mut self, ty: &str, body: &RelationBody) {
        self.subjects(&body.subjects);
        if let SourceDecl::Shared { by: Some(by), .. } = &body.source {
            self.uses_member(ty, by);
        }
    }

    fn subjects(&mut self, subjects: &[SubjectDecl]) {
        for subject in subjects {
            match subject {
                SubjectDecl::Type(name) | SubjectDecl::Everyone(name) => self.uses_type(name),
                SubjectDecl::Group(ty, relation) => {
                    self.uses_type(ty);
                    self.uses_member(&ty.value, relation);
                }
                SubjectDecl::Anyone(_) | SubjectDecl::Link(_) => {}
            }
        }
    }

    fn expr(&mut self, ty: &str, expr: &Expr) {
        match expr {
            Expr::Or(all) | Expr::And(all) => all.iter().for_each(|e| self.expr(ty, e)),
            Expr::Not(inner) => self.expr(ty, inner),
            Expr::Name(name) => self.uses_member(ty, name),
            Expr::Follow(relation, target) => {
                self.uses_member(ty, relation);
                let reached = self.types.get(ty).map(|decl| subject_types(decl, &relation.value)).unwrap_or_default();
                reached.into_iter().for_each(|ty| self.uses_member(ty, target));
            }
            Expr::SignedIn(_) | Expr::Anyone(_) | Expr::Nobody(_) | Expr::Roles(_) | Expr::Sql(_) | Expr::Broken => {}
        }
    }

    fn test(&mut self, test: &TestDecl) {
        let given = |name: &str| Symbol::Given(test.span.file, test.span.start, name.to_owned());
        for step in &test.steps {
            match &step.kind {
                StepKind::Given(name, sql) => {
                    if let Some(name) = name {
                        self.add(given(&name.value), name.span, true);
                    }
                    self.variables(&sql.text, sql.span, given);
                }
                StepKind::Check { who, permission, ty, id, .. } => {
                    self.who(who, given);
                    self.uses_member(&ty.value, permission);
                    self.uses_type(ty);
                    if id.given {
                        self.add(given(&id.text), id.span, false);
                    }
                }
                StepKind::Run(who, _, sql) | StepKind::Sees(who, _, sql) => {
                    self.who(who, given);
                    self.variables(&sql.text, sql.span, given);
                }
                StepKind::Broken(name) => {
                    name.iter().for_each(|name| self.add(given(&name.value), name.span, true));
                }
            }
        }
    }

    fn who(&mut self, who: &WhoDecl, given: impl Fn(&str) -> Symbol) {
        if let Some((ty, id)) = &who.principal {
            self.uses_type(ty);
            if id.given {
                self.add(given(&id.text), id.span, false);
            }
        }
        for scope in &who.scopes {
            self.add(Symbol::Scope(scope.value.clone()), scope.span, false);
        }
    }

    fn variables(&mut self, sql: &str, span: Span, given: impl Fn(&str) -> Symbol) {
        for piece in pieces(sql).filter(|piece| piece.kind == PieceKind::Variable) {
            let start = span.start as usize + piece.at;
            let at = Span::new(span.file, start, start + piece.text.len());
            self.add(given(piece.text.trim_start_matches('$')), at, false);
        }
    }
}
