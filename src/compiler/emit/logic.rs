//! Simplifying expressions before they become SQL, so that tiers which include each other grow linearly.
//!
//! `can edit = share or editor or (parent.edit and {c})` names `share`, which inherits over the same links; written out
//! naively each tier repeats the ones below it at every level. Here an `or` is flattened through the permissions it
//! names, repeats are dropped, and a term that another one implies is absorbed (`parent.share and {c}` by
//! `parent.edit and {c}`, since `edit` includes `share`).

use std::collections::BTreeSet;

use crate::compiler::model::{Condition, Expr, GraphId, Inheritance, Model, PermId, Target, TypeId};
use crate::compiler::span::Span;

/// The terms of a permission as they hold on a row itself: inheriting terms stay as followed relations.
pub fn row_terms(model: &Model, ty: TypeId, expr: &Expr) -> Vec<Expr> {
    let mut terms = Vec::new();
    let mut seen = BTreeSet::new();
    flatten(
        expr,
        &mut |permission| {
            let found = model.ty(ty)?.permission(permission)?;
            // A permission met again adds nothing, so it expands to "never" and is dropped below.
            Some(if seen.insert(permission) { found.expr.clone() } else { Expr::Nobody(Span::default()) })
        },
        &mut terms,
    );
    absorb(model, ty, terms)
}

/// The terms that start an inheriting permission: it holds on an object when one of them holds on the object or on an
/// ancestor. A tier that inherits over a part of the same links gives its own terms; any other permission stays a
/// term of its own.
pub fn base_terms(model: &Model, ty: TypeId, inherits: &Inheritance) -> Vec<Expr> {
    let mut terms = Vec::new();
    let mut seen = BTreeSet::new();
    flatten(
        &inherits.base,
        &mut |permission| {
            let found = model.ty(ty)?.permission(permission)?;
            let expanded = match &found.inherits {
                None => found.expr.clone(),
                Some(inner) if starts_within(model, ty, inner, inherits) => inner.base.clone(),
                Some(_) => return None,
            };
            // A permission met again adds nothing, so it expands to "never" and is dropped below.
            Some(if seen.insert(permission) { expanded } else { Expr::Nobody(Span::default()) })
        },
        &mut terms,
    );
    absorb(model, ty, terms)
}

/// Whether whatever starts `inner`, which `ty` names at its top, may be taken for a start of `outer`: it is passed on over a
/// part of the same links, nothing cuts it, and the other types name it too.
fn starts_within(model: &Model, ty: TypeId, inner: &Inheritance, outer: &Inheritance) -> bool {
    let named = |(of, narrow): &(TypeId, PermId)| {
        *of == ty || outer.members.iter().any(|(t, wide)| t == of && includes(model, *t, *wide, *narrow))
    };
    inner.denies.is_empty() && within(model, inner.graph, outer.graph) && inner.members.iter().all(named)
}

/// Whether every link of `inner` is a link of `outer` too.
fn within(model: &Model, inner: GraphId, outer: GraphId) -> bool {
    let key = |graph: GraphId| -> Vec<_> {
        model.graph(graph).map_or_else(Vec::new, |g| {
            g.links
                .iter()
                .map(|l| (l.child, l.parent, l.relation, l.source, l.condition.as_ref().map(|c| c.sql.trim())))
                .collect()
        })
    };
    let outer = key(outer);
    key(inner).iter().all(|link| outer.contains(link))
}

/// Collects the terms of an `or`, going through permissions that `expand` opens. Works on a stack of its own: policies
/// come from people and from generators, and neither should be able to exhaust ours.
fn flatten(expr: &Expr, expand: &mut dyn FnMut(PermId) -> Option<Expr>, terms: &mut Vec<Expr>) {
    let mut stack = vec![expr.clone()];
    while let Some(next) = stack.pop() {
        match next {
            Expr::Or(parts) => stack.extend(parts.into_iter().rev()),
            Expr::Permission(id, span) => match expand(id) {
                Some(inner) => stack.push(inner),
                None => push_new(terms, Expr::Permission(id, span)),
            },
            Expr::Nobody(_) => {}
            other => push_new(terms, other),
        }
    }
}

fn push_new(terms: &mut Vec<Expr>, term: Expr) {
    let term = without_spans(&term);
    if !terms.contains(&term) {
        terms.push(term);
    }
}

/// Drops every term that another one implies.
fn absorb(model: &Model, ty: TypeId, terms: Vec<Expr>) -> Vec<Expr> {
    // Quadratic in the terms of one permission; past this many, absorbing is not worth its time.
    const MOST: usize = 400;
    if terms.len() > MOST {
        return terms;
    }
    let mut kept: Vec<Expr> = Vec::new();
    for (at, term) in terms.iter().enumerate() {
        let weaker = terms.iter().enumerate().any(|(other_at, other)| {
            other_at != at && implies(model, ty, term, other) && (other_at < at || !implies(model, ty, other, term))
        });
        if !weaker {
            kept.push(term.clone());
        }
    }
    kept
}

/// Whether `a` holding means that `b` holds, as far as the shapes show.
pub fn implies(model: &Model, ty: TypeId, a: &Expr, b: &Expr) -> bool {
    if a == b {
        return true;
    }
    match (a, b) {
        (Expr::Or(parts), _) => parts.iter().all(|part| implies(model, ty, part, b)),
        (_, Expr::And(parts)) => parts.iter().all(|part| implies(model, ty, a, part)),
        (Expr::And(parts), _) => parts.iter().any(|part| implies(model, ty, part, b)),
        (_, Expr::Or(parts)) => parts.iter().any(|part| implies(model, ty, a, part)),
        (Expr::Permission(p, _), Expr::Permission(q, _)) => includes(model, ty, *q, *p),
        (Expr::Follow { relation: ra, targets: ta, .. }, Expr::Follow { relation: rb, targets: tb, .. }) => {
            ra == rb
                && ta.len() == tb.len()
                && ta
                    .iter()
                    .zip(tb)
                    .all(|((type_a, a), (type_b, b))| type_a == type_b && reaches(model, *type_a, *a, *b))
        }
        _ => false,
    }
}

fn reaches(model: &Model, ty: TypeId, a: Target, b: Target) -> bool {
    match (a, b) {
        (Target::Permission(a), Target::Permission(b)) => includes(model, ty, b, a),
        (Target::Relation(a), Target::Relation(b)) => a == b,
        (Target::Relation(a), Target::Permission(b)) => or_names(model, ty, b).1.contains(&a.0),
        (Target::Permission(_), Target::Relation(_)) => false,
    }
}

/// Whether permission `wide` names `narrow` at its top, directly or through others.
fn includes(model: &Model, ty: TypeId, wide: PermId, narrow: PermId) -> bool {
    wide == narrow || or_names(model, ty, wide).0.contains(&narrow)
}

/// The permissions and relations (by index) that hold only if `permission` holds: those at the top of its `or`.
fn or_names(model: &Model, ty: TypeId, permission: PermId) -> (BTreeSet<PermId>, BTreeSet<usize>) {
    let mut permissions = BTreeSet::new();
    let mut relations = BTreeSet::new();
    let Some(def) = model.ty(ty) else { return (permissions, relations) };
    let mut stack: Vec<&Expr> = def.permission(permission).map(|p| &p.expr).into_iter().collect();
    while let Some(next) = stack.pop() {
        match next {
            Expr::Or(parts) => stack.extend(parts),
            Expr::Permission(id, _) if permissions.insert(*id) => {
                stack.extend(def.permission(*id).map(|p| &p.expr));
            }
            Expr::Relation(id, _) => {
                relations.insert(id.0);
            }
            _ => {}
        }
    }
    (permissions, relations)
}

/// The same expression with its places forgotten, so that equal meanings compare equal.
pub fn without_spans(expr: &Expr) -> Expr {
    let none = Span::default();
    match expr {
        Expr::Or(parts) => Expr::Or(parts.iter().map(without_spans).collect()),
        Expr::And(parts) => Expr::And(parts.iter().map(without_spans).collect()),
        Expr::Not(inner) => Expr::Not(Box::new(without_spans(inner))),
        Expr::Relation(id, _) => Expr::Relation(*id, none),
        Expr::Permission(id, _) => Expr::Permission(*id, none),
        Expr::Follow { relation, targets, .. } => {
            Expr::Follow { relation: *relation, targets: targets.clone(), span: none }
        }
        Expr::SignedIn(_) => Expr::SignedIn(none),
        Expr::Anyone(_) => Expr::Anyone(none),
        Expr::Nobody(_) => Expr::Nobody(none),
        Expr::Sql(condition) => Expr::Sql(Condition { sql: condition.sql.trim().to_owned(), span: none }),
    }
}
