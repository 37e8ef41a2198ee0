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
                        && self.passes(edge)?
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
                    self.condition(&varying.sql, varying.span, table.zip(row), &BTreeMap::new())?
                }
                None => false,
            },
        })
    }

    /// Whether the caller is whom an edge names.
    pub(super) fn is_me(&self, edge: &Edge) -> Evaluated<bool> {
        let named = match &edge.to {
            To::Object(ty, object) => self.me == Some((*ty, *object)),
            To::Group(_, var, object) => self.has(*var, *object),
            To::Everyone(ty) => self.me.is_some_and(|(mine, _)| mine == *ty),
            To::Anyone => true,
            To::Link(link) => self.caller.links.contains(link),
        };
        Ok(named && self.passes(edge)?)
    }

    /// Whether everything holds that an edge asks of the caller or the request besides.
    pub(super) fn passes(&self, edge: &Edge) -> Evaluated<bool> {
        for Guard { row, arguments, sql, span } in &edge.guards {
            let row = row.as_ref().map(|(table, row)| (table, *row));
            if !self.condition(sql, *span, row, arguments)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn condition(
        &self,
        sql: &Sql,
        span: Span,
        row: Option<(&QualName, usize)>,
        arguments: &BTreeMap<String, String>,
    ) -> Evaluated<bool> {
        let asked = Asked {
            facts: self.world.facts,
            uid: &self.uid,
            context: &self.caller.context,
            arguments,
            now: self.world.now,
        };
        let values = row.and_then(|(table, row)| {
            let table = self.world.facts.tables.get(table)?;
            Some((table, table.rows.get(row)?))
        });
        let scope = values.map(|(table, row)| Scope { alias: None, table, row, outer: None });
        let value = sql::eval(sql, scope.as_ref(), &asked).map_err(|what| CannotEvaluate::new(span, what))?;
        Ok(sql::truth(value).map_err(|what| CannotEvaluate::new(span, what))? == Some(true))
    }

    fn ids(&self, var: Option<Var>, ty: TypeId) -> Vec<&Key> {
        let list = var.and_then(|var| self.found.get(var.0)).map(Vec::as_slice).unwrap_or_default();
        self.world.keys(ty).iter().zip(list).filter(|(_, when)| **when > 0).map(|(key, _)| key).collect()
    }

    /// The objects on which the caller has a permission, in the order of the table; none when the session's scopes do
    /// not name it.
    pub fn permitted(&self, ty: TypeId, permission: PermId) -> Vec<&Key> {
        if !self.world.model.scopes_allow(&self.caller.scopes, ty, permission) {
            return Vec::new();
        }
        self.ids(self.world.permission_var(ty, permission), ty)
    }

    /// The objects in whose relation to people the caller is.
    pub fn related(&self, ty: TypeId, relation: RelId) -> Vec<&Key> {
        self.ids(self.world.relation_var(ty, relation), ty)
    }

    /// Whether the caller has a permission of an object.
    pub fn can(&self, ty: TypeId, permission: PermId, key: &[Datum]) -> bool {
        let var = self.world.permission_var(ty, permission);
        let asked = self.world.model.scopes_allow(&self.caller.scopes, ty, permission);
        asked && var.zip(self.world.index(ty, key)).is_some_and(|(var, object)| self.has(var, object))
    }

    /// The objects on which something holds that may never hold.
    ///
    /// # Errors
    /// A condition that cannot be worked out.
    pub fn violates(&self, invariant: usize) -> Evaluated<Vec<&Key>> {
        let model = self.world.model;
        let never = model.invariants.get(invariant).zip(self.world.invariants.get(invariant));
        let Some((never, term)) = never else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for (object, key) in self.world.keys(never.ty).iter().enumerate() {
            if self.holds(term, object)? {
                found.push(key);
            }
        }
        Ok(found)
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
