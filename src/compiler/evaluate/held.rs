//! What one caller holds: every relation and permission on every object, as a least fixed point.

use std::collections::BTreeMap;

use super::facts::{Caller, Datum, Key};
use super::sql::{self, Asked, Scope, Sql};
use super::{CannotEvaluate, Edge, Evaluated, Guard, Term, To, Var, World};
use crate::compiler::ident::QualName;
use crate::compiler::model::{PermId, RelId, TypeId};
use crate::compiler::span::Span;

/// What a caller holds.
pub struct Held<'w, 'a> {
    pub(super) world: &'w World<'a>,
    caller: &'w Caller,
    /// Who is signed in, if the row counts.
    pub(super) me: Option<(TypeId, usize)>,
    uid: Datum,
    /// For each var and object, when it was found to hold; 0 is never. What something follows from was found earlier,
    /// which is how it is explained.
    pub(super) found: Vec<Vec<u32>>,
}

impl<'a> World<'a> {
    /// What a caller holds.
    ///
    /// # Errors
    /// A condition that cannot be worked out.
    pub fn ask<'w>(&'w self, caller: &'w Caller) -> Evaluated<Held<'w, 'a>> {
        let me = caller.principal.as_ref().and_then(|(ty, key)| {
            let signs_in = self.model.ty(*ty).is_some_and(|def| def.signs_in);
            self.index(*ty, key).filter(|_| signs_in).map(|found| (*ty, found))
        });
        let uid = match (&caller.principal, me) {
            (Some((ty, key)), Some(_)) if *ty == self.model.user => key.first().cloned().unwrap_or(Datum::Null),
            _ => Datum::Null,
        };
        let count = |ty: TypeId| self.objects.get(ty.0).map(|o| o.keys.len()).unwrap_or_default();
        let found = self.vars.iter().map(|var| vec![0; count(var.ty)]).collect();
        let mut held = Held { world: self, caller, me, uid, found };
        let mut time = 0;
        for stratum in &self.strata {
            held.fill(stratum, &mut time)?;
        }
        Ok(held)
    }
}

impl<'a> Held<'_, 'a> {
    /// Works out vars that depend on each other, until nothing is new.
    fn fill(&mut self, stratum: &[Var], time: &mut u32) -> Evaluated<()> {
        loop {
            let before = *time;
            for var in stratum {
                let Some(definition) = self.world.vars.get(var.0) else { continue };
                for object in 0..self.found.get(var.0).map(Vec::len).unwrap_or_default() {
                    if !self.has(*var, object) && self.holds(&definition.term, object)? {
                        *time += 1;
                        if let Some(entry) = self.found.get_mut(var.0).and_then(|list| list.get_mut(object)) {
                            *entry = *time;
                        }
                    }
                }
            }
            if *time == before {
                return Ok(());
            }
        }
    }

    /// When a var was found to hold on an object; 0 for never.
    pub(super) fn when(&self, var: Var, object: usize) -> u32 {
        self.found.get(var.0).and_then(|list| list.get(object)).copied().unwrap_or_default()
    }

    pub(super) fn has(&self, var: Var, object: usize) -> bool {
        self.when(var, object) > 0
    }

    pub(super) fn holds(&self, term: &Term, object: usize) -> Evaluated<bool> {
        Ok(match term {
            Term::Any(parts) => {
                for part in parts {
                    if self.holds(part, object)? {
                        return Ok(true);
                    }
                }
                false
            }
            Term::All(parts) => {
                for part in parts {
                    if !self.holds(part, object)? {
                        return Ok(false);
                    }
                }
                true
            }
            Term::Not(inner) => !self.holds(inner, object)?,
            Term::Var(var) => self.has(*var, object),
            Term::Among(source) => {
                for edge in self.world.edges(*source, object) {
                    if self.is_me(edge)? {
                        return Ok(true);
                    }
                }
                false
            }
            Term::Via(source, ty, var) => {
                for edge in self.world.edges(*source, object) {
                    if let To::Object(named, other) = edge.to
                        && named == *ty
                        && self.has(*var, other)
                        && self.passes(edge.guard.as_ref())?
                    {
                        return Ok(true);
                    }
                }
                false
            }
            Term::SignedIn => self.me.is_some(),
            Term::Always => true,
            Term::Never => false,
            Term::Same(condition) => {
                self.world.same.get(*condition).and_then(|holds| holds.get(object)).copied().unwrap_or_default()
            }
            Term::Varies(condition) => match self.world.varying.get(*condition) {
                Some(varying) => {
                    let row = self.world.objects.get(varying.ty.0).and_then(|o| o.rows.get(object)).copied();
                    let table = self.world.model.ty(varying.ty).map(|def| &def.table);
                    self.condition(&varying.sql, varying.span, table, row)?
                }
                None => false,
            },
        })
    }

    /// Whether the caller is whom an edge names.
    pub(super) fn is_me(&self, edge: &Edge) -> Evaluated<bool> {
        let named = match edge.to {
            To::Object(ty, object) => self.me == Some((ty, object)),
            To::Group(_, var, object) => self.has(var, object),
            To::Everyone(ty) => self.me.is_some_and(|(mine, _)| mine == ty),
            To::Anyone => true,
        };
        Ok(named && self.passes(edge.guard.as_ref())?)
    }

    pub(super) fn passes(&self, guard: Option<&Guard>) -> Evaluated<bool> {
        match guard {
            Some(guard) => self.condition(&guard.sql, guard.span, Some(&guard.table), Some(guard.row)),
            None => Ok(true),
        }
    }

    fn condition(&self, sql: &Sql, span: Span, table: Option<&QualName>, row: Option<usize>) -> Evaluated<bool> {
        let empty = BTreeMap::new();
        let asked = Asked {
            facts: self.world.facts,
            uid: &self.uid,
            context: &self.caller.context,
            arguments: &empty,
            now: self.world.now,
        };
        let table = table.and_then(|name| self.world.facts.tables.get(name));
        let values = table.zip(row).and_then(|(table, row)| Some((table, table.rows.get(row)?)));
        let scope = values.map(|(table, row)| Scope { alias: None, table, row, outer: None });
        let value = sql::eval(sql, scope.as_ref(), &asked).map_err(|what| CannotEvaluate::new(span, what))?;
        Ok(sql::truth(value).map_err(|what| CannotEvaluate::new(span, what))? == Some(true))
    }

    fn ids(&self, var: Option<Var>, ty: TypeId) -> Vec<&Key> {
        let list = var.and_then(|var| self.found.get(var.0)).map(Vec::as_slice).unwrap_or_default();
        self.world.keys(ty).iter().zip(list).filter(|(_, when)| **when > 0).map(|(key, _)| key).collect()
    }

    /// The objects on which the caller has a permission, in the order of the table.
    pub fn permitted(&self, ty: TypeId, permission: PermId) -> Vec<&Key> {
        self.ids(self.world.permission_var(ty, permission), ty)
    }

    /// The objects in whose relation to people the caller is.
    pub fn related(&self, ty: TypeId, relation: RelId) -> Vec<&Key> {
        self.ids(self.world.relation_var(ty, relation), ty)
    }

    /// Whether the caller has a permission of an object.
    pub fn can(&self, ty: TypeId, permission: PermId, key: &[Datum]) -> bool {
        let var = self.world.permission_var(ty, permission);
        var.zip(self.world.index(ty, key)).is_some_and(|(var, object)| self.has(var, object))
    }

    /// Whether a rule (by the index of its table's rules, and its own) holds on a row.
    ///
    /// # Errors
    /// A condition that cannot be worked out.
    pub fn rule(&self, rules: usize, rule: usize, key: &[Datum]) -> Evaluated<bool> {
        let Some(ty) = self.world.model.rules.get(rules).map(|rules| rules.ty) else { return Ok(false) };
        let term = self.world.rules.get(rules).and_then(|terms| terms.get(rule));
        match term.zip(self.world.index(ty, key)) {
            Some((term, object)) => self.holds(term, object),
            None => Ok(false),
        }
    }
}

impl World<'_> {
    pub(super) fn relation_var(&self, ty: TypeId, relation: RelId) -> Option<Var> {
        let def = self.model.ty(ty)?;
        (relation.0 < def.relations.len()).then_some(Var(self.first.get(ty.0)? + relation.0))
    }

    pub(super) fn permission_var(&self, ty: TypeId, permission: PermId) -> Option<Var> {
        let def = self.model.ty(ty)?;
        (permission.0 < def.permissions.len())
            .then_some(Var(self.first.get(ty.0)? + def.relations.len() + permission.0))
    }
}
