//! How somebody came to hold something: the rows it follows from, one after the other.

use std::fmt;

use super::facts::key_text;
use super::{Edge, Evaluated, Held, Term, To, Var};
use crate::compiler::model::{PermId, TypeId};

/// A step of an explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// An object, and the permission or relation that holds on it.
    Has {
        /// `folder 3`
        object: String,
        /// `view`
        name: String,
    },
    /// A row that names another object, to which the next step goes.
    To {
        /// `folder 3`
        object: String,
        /// The relation.
        relation: String,
        /// `folder 1`
        other: String,
    },
    /// A row that names the caller, or everyone.
    Named {
        /// `folder 1`
        object: String,
        /// The relation.
        relation: String,
        /// `user 7`, `everyone signed in`, `anyone`.
        subject: String,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Has { object, name } => write!(f, "{name} on {object}"),
            Step::To { object, relation, other } => write!(f, "{relation} of {object} is {other}"),
            Step::Named { object, relation, subject } => write!(f, "{subject} is {relation} of {object}"),
        }
    }
}

impl Held<'_, '_> {
    /// How the caller came to have a permission; empty when they do not have it. A part that is only a condition or a
    /// deny adds no step.
    ///
    /// # Errors
    /// A condition that cannot be worked out.
    pub fn why(&self, ty: TypeId, permission: PermId, key: &[super::facts::Datum]) -> Evaluated<Vec<Step>> {
        let mut steps = Vec::new();
        let mut next = self.world.permission_var(ty, permission).zip(self.world.index(ty, key));
        while let Some((var, object)) = next.filter(|(var, object)| self.has(*var, *object)) {
            next = self.step(var, object, &mut steps)?;
        }
        Ok(steps)
    }

    /// What a var on an object follows from: adds the steps, and gives the next one.
    fn step(&self, var: Var, object: usize, steps: &mut Vec<Step>) -> Evaluated<Option<(Var, usize)>> {
        let Some(definition) = self.world.vars.get(var.0) else { return Ok(None) };
        let (ty, before) = (definition.ty, self.when(var, object));
        if self.world.is_permission(ty, var) {
            steps.push(Step::Has { object: self.object_name(ty, object), name: self.var_name(ty, var) });
        }
        let mut ways = Vec::new();
        self.ways(&definition.term, object, before, &mut ways)?;
        let Some(way) = ways.into_iter().min_by_key(|way| way.0) else { return Ok(None) };
        match way.1 {
            Way::Var(next) => Ok(Some((next, object))),
            Way::Edge(source, edge, target) => {
                let (other, next) = match (&edge.to, target) {
                    (To::Object(to, other), Some(target)) => (self.object_name(*to, *other), Some((target, *other))),
                    (To::Object(to, other), None) => (self.object_name(*to, *other), None),
                    (To::Group(to, var, other), _) => (
                        format!("{} of {}", self.var_name(*to, *var), self.object_name(*to, *other)),
                        Some((*var, *other)),
                    ),
                    (To::Everyone(_), _) => ("everyone signed in".to_owned(), None),
                    (To::Anyone, _) => ("anyone".to_owned(), None),
                    (To::Link(_), _) => ("whoever holds the link".to_owned(), None),
                };
                let (object, relation) = (self.object_name(ty, object), self.world.source_name(source));
                steps.push(if next.is_some() {
                    Step::To { object, relation, other }
                } else {
                    Step::Named { object, relation, subject: other }
                });
                Ok(next)
            }
            Way::Nothing => Ok(None),
        }
    }

    /// The ways in which a term that holds follows from what was found before, with the time of the newest.
    fn ways<'t>(&'t self, term: &Term, object: usize, before: u32, found: &mut Vec<(u32, Way<'t>)>) -> Evaluated<()> {
        match term {
            Term::Any(parts) => {
                for part in parts {
                    if self.held_before(part, object, before)? {
                        self.ways(part, object, before, found)?;
                    }
                }
            }
            // The part that was found last is the one that tells most.
            Term::All(parts) => {
                let mut all = Vec::new();
                for part in parts {
                    self.ways(part, object, before, &mut all)?;
                }
                found.extend(all.into_iter().max_by_key(|way| way.0));
            }
            Term::Var(var) => {
                let when = self.when(*var, object);
                found.extend((when > 0 && when < before).then_some((when, Way::Var(*var))));
            }
            Term::Among(source) => {
                for edge in self.world.edges(*source, object) {
                    let when = match &edge.to {
                        To::Group(_, var, other) => self.when(*var, *other),
                        _ => 0,
                    };
                    if self.is_me(edge)? && when < before {
                        found.push((when, Way::Edge(*source, edge, None)));
                    }
                }
            }
            Term::Via(source, ty, var) => {
                for edge in self.world.edges(*source, object) {
                    if let To::Object(named, other) = edge.to
                        && named == *ty
                        && self.passes(edge)?
                    {
                        let when = self.when(*var, other);
                        found.extend(
                            (when > 0 && when < before).then_some((when, Way::Edge(*source, edge, Some(*var)))),
                        );
                    }
                }
            }
            _ => found.push((0, Way::Nothing)),
        }
        Ok(())
    }

    /// Whether a term held by what was found before a time.
    fn held_before(&self, term: &Term, object: usize, before: u32) -> Evaluated<bool> {
        if !self.holds(term, object)? {
            return Ok(false);
        }
        let mut ways = Vec::new();
        self.ways(term, object, before, &mut ways)?;
        Ok(!ways.is_empty())
    }

    fn object_name(&self, ty: TypeId, object: usize) -> String {
        let name = self.world.model.ty(ty).map(|def| def.name.as_str()).unwrap_or_default();
        let key = self.world.keys(ty).get(object).map(|key| key_text(key)).unwrap_or_default();
        format!("{name} {key}")
    }

    fn var_name(&self, ty: TypeId, var: Var) -> String {
        let Some((def, first)) = self.world.model.ty(ty).zip(self.world.first.get(ty.0)) else { return String::new() };
        let at = var.0 - first;
        let relation = def.relations.get(at).map(|r| &r.name);
        let permission = || def.permissions.get(at.checked_sub(def.relations.len())?).map(|p| &p.name);
        relation.or_else(permission).cloned().unwrap_or_default()
    }
}

enum Way<'t> {
    Var(Var),
    Edge(usize, &'t Edge, Option<Var>),
    Nothing,
}

impl super::World<'_> {
    fn is_permission(&self, ty: TypeId, var: Var) -> bool {
        let relations = self.model.ty(ty).map(|def| def.relations.len()).unwrap_or_default();
        self.first.get(ty.0).is_some_and(|first| var.0 >= first + relations)
    }

    /// The name of the relation a source belongs to: sources are numbered in the model's order.
    fn source_name(&self, source: usize) -> String {
        let relations = self.model.types.iter().flat_map(|def| &def.relations);
        let mut names = relations.flat_map(|r| r.sources.iter().map(move |_| &r.name));
        names.nth(source).cloned().unwrap_or_default()
    }
}
