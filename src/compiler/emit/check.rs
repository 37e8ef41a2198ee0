//! An expression as an SQL condition on one row.
//!
//! Every text made here is true where the expression holds and false or NULL where it does not; only `not` turns NULL
//! into true, through IS NOT TRUE. So a condition that is NULL holds nothing, whatever stands around it.

use std::collections::BTreeSet;

use crate::compiler::model::{Condition, Expr, Place, RelId, Subject, Target, TypeId};

use super::context::{Emit, Form, Policy, Scope, not_built};
use super::key::{Id, Key};
use super::logic;
use super::names;

impl Policy<'_> {
    /// The condition under which `expr` holds on the scope's row.
    pub fn check(&self, scope: &mut Scope, expr: &Expr) -> Emit<String> {
        match expr {
            Expr::Or(_) | Expr::Permission(..) => {
                let terms = logic::row_terms(self.model, scope.ty, expr);
                self.any_of(scope, &terms)
            }
            Expr::And(parts) => {
                // What is written twice is asked once.
                let mut seen: Vec<Expr> = Vec::new();
                let mut texts = Vec::new();
                for part in parts {
                    let bare = logic::without_spans(part);
                    if !seen.contains(&bare) {
                        texts.push(self.check(scope, part)?);
                        seen.push(bare);
                    }
                }
                Ok(format!("({})", texts.join(" AND ")))
            }
            Expr::Not(inner) => Ok(format!("(({}) IS NOT TRUE)", self.check(scope, inner)?)),
            Expr::Relation(relation, _) => self.check_relation(scope, *relation),
            Expr::Follow { relation, targets, .. } => self.check_follow(scope, *relation, targets),
            Expr::SignedIn(_) => {
                let all: Vec<String> = (self.model.principals())
                    .map(|ty| Ok(format!("{} IS NOT NULL", scope.me(self, ty)?)))
                    .collect::<Emit<_>>()?;
                Ok(format!("({})", all.join(" OR ")))
            }
            Expr::Anyone(_) => Ok("true".to_owned()),
            Expr::Nobody(_) => Ok("false".to_owned()),
            Expr::Sql(condition) => Ok(self.on_row(&self.ty(scope.ty)?.table, condition, &scope.row)),
        }
    }

    /// Any of `terms`, cheapest first.
    pub fn any_of(&self, scope: &mut Scope, terms: &[Expr]) -> Emit<String> {
        let pairs: Vec<_> = (0..terms.len()).map(|at| self.guarded_pair(scope.ty, terms, at)).collect();
        let guarded: BTreeSet<usize> = pairs.iter().flatten().map(|(wide, ..)| *wide).collect();
        let mut texts: Vec<(u8, String)> = Vec::new();
        for (at, (term, pair)) in terms.iter().zip(&pairs).enumerate() {
            if guarded.contains(&at) {
                continue;
            }
            let text = self.check(scope, term)?;
            texts.push(match pair {
                // narrow or (wide and c), where narrow implies wide: one look-up a row instead of two.
                Some((_, wide, condition)) => {
                    let wide = self.check(scope, wide)?;
                    let condition = self.on_row(&self.ty(scope.ty)?.table, condition, &scope.row);
                    (3, format!("CASE WHEN {condition} THEN {wide} ELSE {text} END"))
                }
                None => (self.cost(scope.ty, term), text),
            });
        }
        texts.sort_by_key(|(cost, _)| *cost);
        Ok(match texts.as_slice() {
            [] => "false".to_owned(),
            [(_, one)] => one.clone(),
            many => format!("({})", many.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" OR ")),
        })
    }

    /// For a followed term: the term `wide and {c}` among the others that this one is a narrower form of.
    fn guarded_pair<'t>(&self, ty: TypeId, terms: &'t [Expr], at: usize) -> Option<(usize, &'t Expr, &'t Condition)> {
        let narrow = terms.get(at).filter(|term| matches!(term, Expr::Follow { .. }))?;
        terms.iter().enumerate().find_map(|(other, term)| {
            let Expr::And(parts) = term else { return None };
            let [wide @ Expr::Follow { .. }, Expr::Sql(condition)] = parts.as_slice() else { return None };
            (other != at && logic::implies(self.model, ty, narrow, wide)).then_some((other, wide, condition))
        })
    }

    /// A rough order of cost: 0 the row's own columns, 1 the caller's id, 2 the caller's groups, 3 a look-up.
    fn cost(&self, ty: TypeId, term: &Expr) -> u8 {
        match term {
            Expr::Sql(_) | Expr::Anyone(_) | Expr::Nobody(_) => 0,
            Expr::SignedIn(_) => 1,
            Expr::Relation(relation, _) => match self.relation(ty, *relation) {
                Ok(found) if found.sources.iter().all(|s| s.place.is_in_row()) => 1,
                _ => 3,
            },
            Expr::Follow { relation, targets, .. } => {
                let column = self.relation(ty, *relation).is_ok_and(|r| r.sources.iter().all(|s| s.place.is_in_row()));
                let membership = targets
                    .iter()
                    .all(|(ty, target)| matches!(target, Target::Relation(r) if self.is_membership(*ty, *r)));
                if column && membership { 2 } else { 3 }
            }
            _ => 3,
        }
    }

    fn check_relation(&self, scope: &mut Scope, relation: RelId) -> Emit<String> {
        let found = self.relation(scope.ty, relation)?;
        let mut texts = Vec::new();
        for source in &found.sources {
            if let Some(named) = self.named_in_row(scope.ty, source, &scope.row)? {
                let holder = self.is_caller(scope, source.subject, Some(&named.id))?;
                texts.push(named.when(holder));
            }
        }
        if found.sources.iter().any(|s| !s.place.is_in_row()) {
            let def = self.ty(scope.ty)?;
            let key = self.key(scope.ty)?;
            let id = key.of_row(&scope.row);
            let listed = self.listed_part(scope.ty, relation)?;
            texts.push(match scope.form {
                Form::Probe => {
                    let view = names::view(def, &listed);
                    scope.views.push(view.clone());
                    probe(key, &view, &id)
                }
                Form::Set => key.in_set(&id, &names::function("set", def, &listed)),
            });
        }
        Ok(match texts.as_slice() {
            [one] => one.clone(),
            many => format!("({})", many.join(" OR ")),
        })
    }

    /// What the view and the set of the sources that do not stand in the type's own row are called: the relation
    /// itself when it has no other sources.
    pub fn listed_part(&self, ty: TypeId, relation: RelId) -> Emit<String> {
        let found = self.relation(ty, relation)?;
        let columns = found.sources.iter().any(|s| s.place.is_in_row());
        Ok(if columns { format!("{}__listed", found.name) } else { found.name.clone() })
    }

    /// The condition under which the caller is the subject that `value` names; `None` where the subject has no id.
    pub fn is_caller(&self, scope: &mut Scope, subject: Subject, value: Option<&Id>) -> Emit<String> {
        let value = || value.ok_or_else(|| not_built(Default::default(), "a subject without an id"));
        match subject {
            Subject::Type(ty) => Ok(value()?.equals(&self.key(ty)?.of_value(&scope.me(self, ty)?))),
            Subject::Group(ty, relation) => {
                let mine = scope.mine(self, ty, relation)?;
                Ok(self.key(ty)?.among(value()?, &mine))
            }
            Subject::Everyone(ty) => Ok(format!("{} IS NOT NULL", scope.me(self, ty)?)),
            Subject::Anyone => Ok("true".to_owned()),
            Subject::Link => Ok(format!("{} = ANY ({})", value()?.list(), scope.links())),
        }
    }

    fn check_follow(&self, scope: &mut Scope, relation: RelId, targets: &[(TypeId, Target)]) -> Emit<String> {
        let found = self.relation(scope.ty, relation)?;
        let mut texts = Vec::new();
        for source in &found.sources {
            let Subject::Type(reached) = source.subject else {
                return Err(not_built(source.span, "following a relation to groups"));
            };
            let Some((_, target)) = targets.iter().find(|(ty, _)| *ty == reached) else { continue };
            texts.push(match self.named_in_row(scope.ty, source, &scope.row)? {
                Some(named) => {
                    let holds = self.reached(scope, reached, *target, &named.id)?;
                    named.when(holds)
                }
                None => {
                    let def = self.ty(scope.ty)?;
                    let target = self.target_name(reached, *target)?;
                    let key = self.key(scope.ty)?;
                    let id = key.of_row(&scope.row);
                    match scope.form {
                        Form::Probe => {
                            let view = names::followed(def, &found.name, target);
                            scope.views.push(view.clone());
                            probe(key, &view, &id)
                        }
                        Form::Set => {
                            let name = format!("{}__{target}", found.name);
                            key.in_set(&id, &names::function("set", def, &name))
                        }
                    }
                }
            });
        }
        texts.sort();
        texts.dedup();
        Ok(match texts.as_slice() {
            [one] => one.clone(),
            many => format!("({})", many.join(" OR ")),
        })
    }

    /// The condition under which `target` holds on the object of type `ty` whose id is `value`.
    pub fn reached(&self, scope: &mut Scope, ty: TypeId, target: Target, value: &Id) -> Emit<String> {
        let def = self.ty(ty)?;
        let key = self.key(ty)?;
        let name = self.target_name(ty, target)?;
        if let Target::Relation(relation) = target
            && self.is_membership(ty, relation)
        {
            let mine = scope.mine(self, ty, relation)?;
            return Ok(key.among(value, &mine));
        }
        Ok(match scope.form {
            Form::Probe => {
                let view = names::view(def, name);
                scope.views.push(view.clone());
                probe(key, &view, value)
            }
            Form::Set => key.in_set(value, &names::function("set", def, name)),
        })
    }

    /// Whether a relation is one of few objects a person is in (a membership kept in tables), so that the caller's ids
    /// are best held in an array.
    pub fn is_membership(&self, ty: TypeId, relation: RelId) -> bool {
        self.relation(ty, relation).is_ok_and(|r| {
            r.sources.iter().all(|s| matches!(s.place, Place::Table { .. } | Place::Shared { .. } | Place::Role { .. }))
        })
    }

    /// The policy name of what a followed relation asks for.
    pub fn target_name(&self, ty: TypeId, target: Target) -> Emit<&str> {
        Ok(match target {
            Target::Permission(id) => &self.permission(ty, id)?.name,
            Target::Relation(id) => &self.relation(ty, id)?.name,
        })
    }

    /// The type's own condition on a row called `row`, as ` AND (...)`; empty when every row counts.
    pub fn counts(&self, ty: TypeId, row: &str) -> Emit<String> {
        let def = self.ty(ty)?;
        Ok(match &def.condition {
            Some(condition) => format!(" AND {}", self.on_row(&def.table, condition, row)),
            None => String::new(),
        })
    }
}

/// A look-up by id in a generated view, as a scalar sub-select: PostgreSQL cannot turn it into a hash of the whole
/// view, as it may an EXISTS or an IN.
pub fn probe(key: Key<'_>, view: &str, value: &Id) -> String {
    format!("(SELECT true FROM {view} v WHERE {} LIMIT 1)", key.of_view("v").equals(value))
}
