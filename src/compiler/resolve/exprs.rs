//! Expressions: what each name in them stands for.

use super::names::Naming;
use super::{Resolver, Symbol};
use crate::compiler::ast::{self, Member, Name};
use crate::compiler::diagnostic::Diagnostic;
use crate::compiler::model::{Expr, RelId, Relation, Subject, Target, TypeId};
use crate::compiler::suggest;

/// Names that expressions know without a declaration.
const BUILT_IN: [&str; 3] = ["signed_in", "anyone", "nobody"];

impl Resolver<'_> {
    pub(super) fn permissions(&mut self) {
        for (at, decl) in self.decls.clone().into_iter().enumerate() {
            let ty = TypeId(at);
            for member in &decl.members {
                let Member::Permission(permission) = member else { continue };
                let Some(Symbol::Permission(id)) = self.symbol(ty, &permission.name.value) else { continue };
                self.within = Some(id);
                let expr = self.expr(ty, &permission.expr);
                self.within = None;
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
