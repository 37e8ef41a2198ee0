//! Expressions: what each name in them stands for.

use std::collections::HashSet;

use super::names::Naming;
use super::{Resolver, Symbol};
use crate::compiler::ast::{self, Member, Name, RolesDecl};
use crate::compiler::diagnostic::Diagnostic;
use crate::compiler::model::{Expr, RelId, Relation, Subject, Target, TypeId};
use crate::compiler::span::Span;
use crate::compiler::suggest;

/// Names that expressions know without a declaration.
const BUILT_IN: [&str; 3] = ["signed_in", "anyone", "nobody"];

/// Permissions the run time of the whole language asks for and this release does not.
const RUN_TIME: [&str; 4] = ["break_glass", "impersonate", "manage_keys", "manage_roles"];

impl Resolver<'_> {
    pub(super) fn permissions(&mut self) {
        for (at, decl) in self.decls.clone().into_iter().enumerate() {
            let ty = TypeId(at);
            for member in &decl.members {
                let Member::Permission(permission) = member else { continue };
                let expr = self.expr(ty, &permission.expr);
                let Some(Symbol::Permission(id)) = self.symbol(ty, &permission.name.value) else { continue };
                let Some(slot) = self.types.get_mut(at).and_then(|t| t.permissions.get_mut(id.0)) else { continue };
                // A second declaration was reported; the first stays.
                if slot.span != permission.name.span {
                    continue;
                }
                match expr {
                    Some(expr) => slot.expr = expr,
                    None => {
                        self.broken.permissions.insert((ty, id));
                    }
                }
            }
        }
    }

    /// An expression over a row of `ty`; `None` when something in it was reported, now or before.
    pub(super) fn expr(&mut self, ty: TypeId, expr: &ast::Expr) -> Option<Expr> {
        match expr {
            ast::Expr::Or(all) => self.all(ty, all).map(|all| Expr::Or(flat(all, true))),
            ast::Expr::And(all) => self.all(ty, all).map(|all| Expr::And(flat(all, false))),
            ast::Expr::Not(inner) => self.expr(ty, inner).map(|inner| Expr::Not(Box::new(inner))),
            ast::Expr::Name(name) => self.name(ty, name),
            ast::Expr::Follow(relation, name) => self.follow(ty, relation, name),
            ast::Expr::SignedIn(span) => Some(Expr::SignedIn(*span)),
            ast::Expr::Anyone(span) => Some(Expr::Anyone(*span)),
            ast::Expr::Nobody(span) => Some(Expr::Nobody(*span)),
            ast::Expr::Roles(span) => self.roles_term(ty, *span),
            ast::Expr::Sql(sql) => self.row_condition(sql, 102).map(Expr::Sql),
            ast::Expr::Broken => None,
        }
    }

    fn all(&mut self, ty: TypeId, all: &[ast::Expr]) -> Option<Vec<Expr>> {
        let resolved: Vec<Option<Expr>> = all.iter().map(|e| self.expr(ty, e)).collect();
        resolved.into_iter().collect()
    }

    fn name(&mut self, ty: TypeId, name: &Name) -> Option<Expr> {
        match self.symbol(ty, &name.value) {
            Some(Symbol::Permission(id)) => Some(Expr::Permission(id, name.span)),
            Some(Symbol::Relation(id)) => {
                self.used.insert((ty, id));
                let relation = self.types.get(ty.0)?.relation(id)?;
                if self.broken.relations.contains(&(ty, id)) {
                    return None;
                }
                if relation.to_objects {
                    let message = format!("\"{0}\" names objects, not people; follow it, as in {0}.view", name.value);
                    self.error(301, name.span, message);
                    return None;
                }
                Some(Expr::Relation(id, name.span))
            }
            None => {
                self.unknown(ty, name);
                None
            }
        }
    }

    fn unknown(&mut self, ty: TypeId, name: &Name) {
        if self.broken.types.contains(&ty) {
            return;
        }
        let near = suggest::nearest(&name.value, BUILT_IN);
        let hint = match near {
            Some(_) => suggest::or_list(near, "", &[]),
            None => self.suggest_member(ty, &name.value),
        };
        let message = format!("{} has no relation or permission \"{}\"{hint}", self.type_name(ty), name.value);
        self.error(203, name.span, message);
    }

    fn follow(&mut self, ty: TypeId, relation: &Name, name: &Name) -> Option<Expr> {
        let id = match self.symbol(ty, &relation.value) {
            Some(Symbol::Relation(id)) => id,
            Some(Symbol::Permission(_)) => {
                let message =
                    format!("\"{}\" is a permission; only a relation to objects can be followed", relation.value);
                self.error(301, relation.span, message);
                return None;
            }
            None if relation.value == "this" => {
                self.error(
                    301,
                    relation.span,
                    "\"this\" is the row inside a condition; outside braces name the relation alone",
                );
                return None;
            }
            None => {
                self.unknown(ty, relation);
                return None;
            }
        };
        self.used.insert((ty, id));
        if self.broken.relations.contains(&(ty, id)) {
            return None;
        }
        let found = self.types.get(ty.0)?.relation(id)?.clone();
        let reached = self.followed_types(&found, relation)?;
        let resolved: Vec<Option<(TypeId, Target)>> = reached.iter().map(|to| self.target(*to, name)).collect();
        let targets = resolved.into_iter().collect::<Option<Vec<_>>>()?;
        Some(Expr::Follow { relation: id, targets, span: relation.span.to(name.span) })
    }

    /// The types a followed relation reaches, in the order first written.
    fn followed_types(&mut self, relation: &Relation, name: &Name) -> Option<Vec<TypeId>> {
        let mut reached: Vec<TypeId> = Vec::new();
        for source in &relation.sources {
            match source.subject {
                Subject::Type(ty) if !reached.contains(&ty) => reached.push(ty),
                Subject::Type(_) => {}
                Subject::Group(..) | Subject::Everyone(_) | Subject::Anyone | Subject::Link => {
                    let message = format!("\"{}\" names groups or everyone, which cannot be followed", name.value);
                    self.error(301, name.span, message);
                    return None;
                }
            }
        }
        if !relation.to_objects {
            self.not_built(name.span, "following a relation to users is");
            return None;
        }
        Some(reached)
    }

    fn target(&mut self, ty: TypeId, name: &Name) -> Option<(TypeId, Target)> {
        match self.symbol(ty, &name.value) {
            Some(Symbol::Permission(id)) => Some((ty, Target::Permission(id))),
            Some(Symbol::Relation(id)) => {
                self.used.insert((ty, id));
                let objects = self.types.get(ty.0)?.relation(id)?.to_objects;
                if self.broken.relations.contains(&(ty, id)) {
                    return None;
                }
                if objects {
                    let message = format!("\"{}\" of {} names objects, not people", name.value, self.type_name(ty));
                    self.error(301, name.span, message);
                    return None;
                }
                Some((ty, Target::Relation(id)))
            }
            None => {
                self.unknown(ty, name);
                None
            }
        }
    }

    /// `roles` in an expression: the type must have a `roles` line.
    fn roles_term(&mut self, ty: TypeId, span: Span) -> Option<Expr> {
        let decl = self.decls.get(ty.0)?;
        if !decl.members.iter().any(|m| matches!(m, Member::Roles(_))) {
            let message = format!("{} has no \"roles :\" line saying who may hold roles", self.type_name(ty));
            self.error(210, span, message);
        }
        None
    }

    /// `roles : SUBJECTS [from REL]`
    pub(super) fn roles(&mut self, ty: TypeId, decl: &RolesDecl) {
        self.not_built(decl.span, "roles made at run time are");
        for subject in &decl.subjects {
            if matches!(
                subject,
                ast::SubjectDecl::Anyone(_) | ast::SubjectDecl::Link(_) | ast::SubjectDecl::Everyone(_)
            ) {
                self.error(210, subject.span(), "roles are held by people and groups, not by anyone");
            } else {
                self.subject(subject, true);
            }
        }
        let Some(from) = &decl.from else { return };
        match self.symbol(ty, &from.value) {
            Some(Symbol::Relation(id)) => {
                self.used.insert((ty, id));
                self.role_owner(ty, id, from);
            }
            _ => {
                let message = format!("{} has no relation \"{}\" to the roles' owner", self.type_name(ty), from.value);
                self.error(211, from.span, message);
            }
        }
    }

    fn role_owner(&mut self, ty: TypeId, id: RelId, from: &Name) {
        let lines = self.decls.get(ty.0).into_iter().flat_map(|decl| &decl.members);
        let mut bodies = lines.filter_map(|member| match member {
            Member::Relation(r) if r.name.value == from.value => r.body.as_ref(),
            _ => None,
        });
        let one = bodies.next().filter(|_| bodies.next().is_none());
        let Some(one) = one else {
            if !self.broken.relations.contains(&(ty, id)) {
                self.error(211, from.span, format!("\"{}\" has several sources and cannot name one owner", from.value));
            }
            return;
        };
        let column = matches!(one.source, ast::SourceDecl::Columns(_));
        if !column || one.subjects.len() != 1 || !matches!(one.subjects.first(), Some(ast::SubjectDecl::Type(_))) {
            self.error(211, from.span, format!("\"{}\" is not a column that names one owner", from.value));
        }
    }

    /// Permissions the run time asks for by name must stand where it asks for them.
    pub(super) fn run_time_permissions(&mut self) {
        use crate::compiler::model::Place;
        let mut found = Vec::new();
        let broken: HashSet<TypeId> = self.broken.relations.iter().map(|(ty, _)| *ty).collect();
        for (at, def) in self.types.iter().enumerate() {
            // A line that could not be read may be the one that shares.
            let unsure = broken.contains(&TypeId(at));
            let sharers: Vec<_> = (def.relations.iter().flat_map(|r| &r.sources))
                .filter_map(|s| if let Place::Shared { by, .. } = s.place { Some(by) } else { None })
                .collect();
            for (at, permission) in def.permissions.iter().enumerate() {
                let name = permission.name.as_str();
                if name == "share" && !sharers.iter().any(|by| by.0 == at) && !unsure {
                    let message =
                        format!("nothing asks for \"share\" of {}: it has no relation that \"share\" shares", def.name);
                    found.push(Diagnostic::error(307, permission.span, message));
                } else if RUN_TIME.contains(&name) {
                    found.push(self.run_time_permission(def, permission, !sharers.is_empty()));
                }
            }
        }
        self.diagnostics.extend(found);
    }

    fn run_time_permission(
        &self,
        def: &crate::compiler::model::TypeDef,
        permission: &crate::compiler::model::Permission,
        shares: bool,
    ) -> Diagnostic {
        let (asked, place) = match permission.name.as_str() {
            "break_glass" => (shares, "a type with shared relations"),
            "impersonate" => (def.name == "user", "user"),
            "manage_keys" => (def.signs_in, "a type that signs in"),
            _ => (self.owns_roles(&def.name), "the type that owns roles"),
        };
        if asked {
            let message = format!("what \"{}\" allows at run time is not built yet", permission.name);
            return Diagnostic::error(super::NOT_BUILT, permission.span, message);
        }
        let message = format!("nothing asks for \"{}\" of {}; it belongs on {place}", permission.name, def.name);
        Diagnostic::error(307, permission.span, message)
    }

    /// Whether custom roles of some type belong to objects of the type with this name.
    fn owns_roles(&self, owner: &str) -> bool {
        self.decls.iter().any(|decl| {
            decl.members.iter().any(|member| match member {
                Member::Roles(RolesDecl { from: None, .. }) => decl.name.value == owner,
                Member::Roles(RolesDecl { from: Some(from), .. }) => decl.members.iter().any(|m| match m {
                    Member::Relation(r) if r.name.value == from.value => r
                        .body
                        .iter()
                        .flat_map(|b| &b.subjects)
                        .any(|s| matches!(s, ast::SubjectDecl::Type(name) if name.value == owner)),
                    _ => false,
                }),
                _ => false,
            })
        })
    }

    /// Relations no expression, rule, group or role looks at. Only in a policy that is right otherwise: a broken line
    /// may have been the one that used it.
    pub(super) fn unused_relations(&mut self) {
        if !self.diagnostics.is_empty() {
            return;
        }
        for (at, def) in self.types.iter().enumerate() {
            for (id, relation) in def.relations.iter().enumerate() {
                if !self.used.contains(&(TypeId(at), RelId(id))) {
                    let message = format!("nothing uses relation \"{}\" of {}", relation.name, def.name);
                    self.diagnostics.push(Diagnostic::warning(208, relation.span, message));
                }
            }
        }
    }

    pub(super) fn check_other_name(&mut self, name: &Name) {
        self.check_name(name, Naming::Other);
    }
}

/// Joins nested terms of the same kind, so `a or (b or c)` has three terms.
fn flat(terms: Vec<Expr>, or: bool) -> Vec<Expr> {
    let mut out = Vec::with_capacity(terms.len());
    for term in terms {
        match term {
            Expr::Or(inner) if or => out.extend(inner),
            Expr::And(inner) if !or => out.extend(inner),
            other => out.push(other),
        }
    }
    out
}
