//! Splitting inheriting permissions into what starts them and the links they are passed on over.

use std::collections::HashSet;

use super::cycles::{Node, dependencies};
use super::{permission, title};
use crate::compiler::diagnostic::Diagnostic;
use crate::compiler::model::{Condition, Expr, GraphLink, PermId, Place, RelId, Subject, Target, TypeDef, TypeId};
use crate::compiler::span::Span;

/// A permission split.
#[derive(Debug, Clone, Default)]
pub(super) struct Parts {
    /// What starts it; `None` when it only comes from elsewhere.
    pub(super) base: Option<Expr>,
    /// The links it is passed on over.
    pub(super) links: Vec<Link>,
    /// `and not hidden`: the permissions, each where it is named.
    pub(super) denies: Vec<(PermId, Span)>,
}

/// One way to inherit.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) child: TypeId,
    pub(super) parent: TypeId,
    pub(super) relation: RelId,
    pub(super) source: usize,
    /// All of them must hold on the child's row.
    pub(super) conditions: Vec<Condition>,
    /// The permission of the parent that is inherited.
    pub(super) target: PermId,
}

impl Link {
    /// As the graph holds it.
    pub(super) fn graph_link(&self) -> GraphLink {
        let Link { child, parent, relation, source, .. } = *self;
        GraphLink { child, parent, relation, source, condition: all_of(&self.conditions) }
    }
}

/// Splits a permission of `group`, the permissions that depend on each other. Mistakes are added to `mistakes`.
pub(super) fn split(types: &[TypeDef], node: Node, group: &HashSet<Node>, mistakes: &mut Vec<Diagnostic>) -> Parts {
    let Some(permission) = permission(types, node) else { return Parts::default() };
    let mut splitter = Splitter { types, node, group, mistakes };
    splitter.parts(&permission.expr)
}

struct Splitter<'t, 'm> {
    types: &'t [TypeDef],
    node: Node,
    group: &'t HashSet<Node>,
    mistakes: &'m mut Vec<Diagnostic>,
}

impl Splitter<'_, '_> {
    fn inherits(&self, expr: &Expr) -> bool {
        dependencies(self.node.0, expr).iter().any(|d| self.group.contains(&d.on))
    }

    fn title(&self) -> String {
        title(self.types, self.node)
    }

    fn parts(&mut self, expr: &Expr) -> Parts {
        if !self.inherits(expr) {
            return Parts { base: Some(expr.clone()), ..Parts::default() };
        }
        match expr {
            Expr::Or(all) => self.alternatives(all),
            Expr::And(all) => self.limited(all),
            Expr::Follow { relation, targets, span } => self.links(*relation, targets, *span),
            Expr::Not(inner) => {
                let message = format!("{} depends on not having itself", self.title());
                self.mistakes.push(Diagnostic::error(302, span_of(inner), message));
                Parts::default()
            }
            other => {
                let message = format!("{} depends on itself on the same object", self.title());
                self.mistakes.push(Diagnostic::error(302, span_of(other), message));
                Parts::default()
            }
        }
    }

    fn alternatives(&mut self, all: &[Expr]) -> Parts {
        let mut bases = Vec::new();
        let mut links = Vec::new();
        for term in all {
            let parts = self.parts(term);
            if let Some((id, span)) = parts.denies.first() {
                let message = format!(
                    "not {} cuts only a part of {}; a deny must stand beside the whole of it",
                    title(self.types, (self.node.0, *id)),
                    self.title()
                );
                let help = "write (... or parent.view) and not hidden, with every way to have it inside the parentheses; what the deny should not cut goes in a permission of its own";
                self.mistakes.push(Diagnostic::error(306, *span, message).with_help(help));
            }
            bases.extend(parts.base);
            links.extend(parts.links);
        }
        Parts { base: join(bases, Expr::Or), links, denies: Vec::new() }
    }

    /// `(... or parent.view) and {condition}`: the condition limits the links and, at each level, the base. A permission
    /// that must not hold is kept apart: it is inherited itself, so it is enough to ask for it on the object.
    fn limited(&mut self, all: &[Expr]) -> Parts {
        let (inheriting, rest): (Vec<&Expr>, Vec<&Expr>) = all.iter().partition(|e| self.inherits(e));
        let [inner] = inheriting.as_slice() else {
            let message = format!("{} is inherited over two relations at once, which must both hold", self.title());
            self.mistakes.push(Diagnostic::error(304, span_of_all(all), message));
            return Parts::default();
        };
        let mut parts = self.parts(inner);
        let mut conditions = Vec::new();
        for limit in rest {
            match as_condition(limit) {
                Some(condition) => conditions.push(condition),
                None => self.deny(limit, &mut parts.denies),
            }
        }
        for link in &mut parts.links {
            link.conditions.extend(conditions.iter().cloned());
        }
        parts.base = parts.base.and_then(|base| {
            let terms = std::iter::once(base).chain(conditions.iter().cloned().map(Expr::Sql)).collect();
            join(terms, Expr::And)
        });
        parts
    }

    /// What limits inheritance and is no condition: denies, or a mistake.
    fn deny(&mut self, limit: &Expr, denies: &mut Vec<(PermId, Span)>) {
        let title = self.title();
        let Expr::Not(denied) = limit else {
            let message = format!("only a condition can limit how {title} is inherited");
            let help = "a condition on the row, as in (parent.view and {inherit}); what depends on the reader cannot be stored";
            self.mistakes.push(Diagnostic::error(304, span_of(limit), message).with_help(help));
            return;
        };
        let several = if let Expr::Or(all) = &**denied { all.as_slice() } else { std::slice::from_ref(&**denied) };
        for one in several {
            match one {
                Expr::Permission(id, span) => denies.push((*id, *span)),
                other => {
                    let message = format!("this deny would only cut {title} on one object and not below it");
                    self.mistakes.push(Diagnostic::error(306, span_of(other), message).with_help(DENY_HELP));
                }
            }
        }
    }

    fn links(&mut self, relation: RelId, targets: &[(TypeId, Target)], span: Span) -> Parts {
        let inherited = |target: &(TypeId, Target)| match target {
            (ty, Target::Permission(id)) if self.group.contains(&(*ty, *id)) => Some((*ty, *id)),
            _ => None,
        };
        let elsewhere: Vec<(TypeId, Target)> = targets.iter().copied().filter(|t| inherited(t).is_none()).collect();
        let child = self.node.0;
        let sources = self.types.get(child.0).and_then(|t| t.relation(relation)).map(|r| r.sources.as_slice());
        let mut links = Vec::new();
        for (parent, target) in targets.iter().filter_map(inherited) {
            for (source, found) in sources.unwrap_or_default().iter().enumerate() {
                if found.subject == Subject::Type(parent) {
                    // A share counts only while its own condition holds, so it passes nothing on otherwise.
                    let conditions = match &found.place {
                        Place::Shared { condition, .. } => condition.iter().cloned().collect(),
                        _ => Vec::new(),
                    };
                    links.push(Link { child, parent, relation, source, conditions, target });
                }
            }
        }
        let base = (!elsewhere.is_empty()).then_some(Expr::Follow { relation, targets: elsewhere, span });
        Parts { base, links, denies: Vec::new() }
    }
}

pub(super) const DENY_HELP: &str =
    "a deny must be a permission that is inherited over the same relations, with the same conditions or fewer";

/// An expression that is nothing but conditions, as one condition.
fn as_condition(expr: &Expr) -> Option<Condition> {
    let joined = |all: &[Expr], word: &str| {
        let all: Vec<Condition> = all.iter().map(as_condition).collect::<Option<_>>()?;
        let span = all.first()?.span.to(all.last()?.span);
        let parts: Vec<String> = all.iter().map(|c| format!("({})", c.sql)).collect();
        Some(Condition { sql: parts.join(word), span })
    };
    match expr {
        Expr::Sql(condition) => Some(condition.clone()),
        Expr::And(all) => joined(all, " AND "),
        Expr::Or(all) => joined(all, " OR "),
        // A condition that is NULL holds nothing, so its negation holds.
        Expr::Not(inner) => {
            as_condition(inner).map(|c| Condition { sql: format!("({}) IS NOT TRUE", c.sql), span: c.span })
        }
        _ => None,
    }
}

/// Several conditions as one; `None` of none.
fn all_of(conditions: &[Condition]) -> Option<Condition> {
    match conditions {
        [] => None,
        [one] => Some(one.clone()),
        _ => as_condition(&Expr::And(conditions.iter().cloned().map(Expr::Sql).collect())),
    }
}

fn join(mut terms: Vec<Expr>, with: impl Fn(Vec<Expr>) -> Expr) -> Option<Expr> {
    match terms.len() {
        0 | 1 => terms.pop(),
        _ => Some(with(terms)),
    }
}

fn span_of_all(all: &[Expr]) -> Span {
    match (all.first(), all.last()) {
        (Some(first), Some(last)) => span_of(first).to(span_of(last)),
        _ => Span::default(),
    }
}

/// Where an expression stands.
pub(super) fn span_of(expr: &Expr) -> Span {
    match expr {
        Expr::Or(all) | Expr::And(all) => span_of_all(all),
        Expr::Not(inner) => span_of(inner),
        Expr::Relation(_, span) | Expr::Permission(_, span) | Expr::Follow { span, .. } => *span,
        Expr::SignedIn(span) | Expr::Anyone(span) | Expr::Nobody(span) => *span,
        Expr::Sql(condition) => condition.span,
    }
}
