//! Random rows for the tables of a policy, small numbers of them, and random shares.

use std::collections::BTreeSet;

use super::shape::{ColumnKind, Shape, TableShape};
use crate::compiler::evaluate::facts::{Datum, Facts, Holder, Key, RoleHeld, Share, Table};
use crate::compiler::model::{KeyType, Model, PermId, Place, RelId, Subject, TypeId};

/// A small generator of numbers (SplitMix64), so that a seed says everything about a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random(pub u64);

impl Random {
    /// The next number below `n`; 0 when `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        usize::try_from(z % u64::try_from(n.max(1)).unwrap_or(1)).unwrap_or_default()
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of them.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }
}

/// The value of a key column of type `ty` for the object called `number`; parts but the last repeat.
fn key_part(ty: KeyType, number: usize, last: bool) -> Datum {
    let number = if last { number } else { number % 3 };
    match ty {
        KeyType::Bigint | KeyType::Integer | KeyType::Smallint => Datum::Int(i64::try_from(number).unwrap_or(i64::MAX)),
        // Now and then a key that must be quoted wherever keys are put together.
        KeyType::Text | KeyType::Varchar if number % 5 == 4 => Datum::Text(format!("k{number}, \"x'\\")),
        KeyType::Text | KeyType::Varchar => Datum::Text(format!("k{number}")),
        KeyType::Uuid => Datum::Text(format!("00000000-0000-4000-8000-{number:012x}")),
    }
}

/// The key of a type's object called `number`.
pub fn key(model: &Model, ty: TypeId, number: usize) -> Key {
    let key = model.ty(ty).map(|def| def.key.as_slice()).unwrap_or_default();
    key.iter().enumerate().map(|(at, k)| key_part(k.ty, number, at + 1 == key.len())).collect()
}

/// Makes rows and shares.
#[derive(Debug)]
pub struct Sampler<'a> {
    /// The policy.
    pub model: &'a Model,
    /// Its tables.
    pub shape: &'a Shape,
    /// How many objects of each type there may be, by the type's index.
    pub sizes: Vec<usize>,
    /// Where chance comes from.
    pub random: Random,
}

impl Sampler<'_> {
    /// A number that some object of the type may have, from 1.
    pub fn number(&mut self, ty: TypeId) -> usize {
        let most = self.sizes.get(ty.0).copied().unwrap_or(1);
        1 + self.random.below(most)
    }

    /// A random row of a table, for the object called `number` where it holds objects. References may lead nowhere.
    pub fn row(&mut self, table: &TableShape, number: usize) -> Vec<Datum> {
        let mut values: Vec<Option<Datum>> = vec![None; table.columns.len()];
        if let Some(ty) = table.ty {
            for (at, value) in table.key.iter().zip(key(self.model, ty, number)) {
                if let Some(slot) = values.get_mut(*at) {
                    *slot = Some(value);
                }
            }
        }
        for at in 0..table.references.len() {
            self.refer(table, at, &mut values);
        }
        let mut row = Vec::with_capacity(values.len());
        for (value, column) in values.into_iter().zip(&table.columns) {
            let value = match value {
                Some(value) => value,
                None => self.value(&column.kind),
            };
            row.push(value);
        }
        row
    }

    /// Fills the columns of a reference that nothing has filled yet.
    pub fn refer(&mut self, table: &TableShape, at: usize, values: &mut [Option<Datum>]) {
        let Some(reference) = table.references.get(at) else { return };
        let Some(ty) = self.random.pick(&reference.types).copied() else { return };
        let number = self.number(ty);
        // A link without one of its ends is no link; elsewhere NULL is common.
        let names_nothing = self.random.once_in(if table.ty.is_some() { 5 } else { 12 });
        for (column, value) in reference.columns.iter().zip(key(self.model, ty, number)) {
            let kind = table.columns.get(*column).map(|c| &c.kind);
            let value = match (kind, names_nothing) {
                (_, true) => Datum::Null,
                (Some(ColumnKind::Key(ty)), false) => value.as_key(*ty),
                _ => value,
            };
            if let Some(slot @ None) = values.get_mut(*column) {
                *slot = Some(value);
            }
        }
        if let Some(slot) = reference.type_column.and_then(|column| values.get_mut(column)) {
            *slot = self.model.ty(ty).map(|def| Datum::Text(def.name.clone()));
        }
    }

    /// A value for a column that is neither key nor reference.
    pub fn value(&mut self, kind: &ColumnKind) -> Datum {
        if self.random.once_in(8) {
            return Datum::Null;
        }
        match kind {
            ColumnKind::Bool => Datum::Bool(self.random.below(3) > 0),
            ColumnKind::Int(known) if !known.is_empty() => {
                self.random.pick(known).copied().map_or(Datum::Null, Datum::Int)
            }
            ColumnKind::Int(_) => Datum::Int(i64::try_from(self.random.below(4)).unwrap_or_default()),
            ColumnKind::Text(known) => {
                let text = self.random.pick(known).filter(|_| known.len() > 1).cloned();
                let other = || "other".to_owned();
                Datum::Text(if self.random.once_in(4) {
                    other()
                } else {
                    text.or(known.first().cloned()).unwrap_or_else(other)
                })
            }
            ColumnKind::Time => Datum::Time(if self.random.once_in(2) { 0 } else { 4_000_000_000_000_000 }),
            ColumnKind::Key(ty) => key_part(*ty, 1 + self.random.below(4), true),
            ColumnKind::TypeName(types) => {
                let def = self.random.pick(types).and_then(|ty| self.model.ty(*ty));
                def.map_or(Datum::Null, |def| Datum::Text(def.name.clone()))
            }
        }
    }

    /// Every shared source: its type, relation, and whom it is shared with.
    pub fn shared(&self) -> Vec<(TypeId, RelId, Subject)> {
        let mut found = Vec::new();
        for (at, def) in self.model.types.iter().enumerate() {
            for (rel, relation) in def.relations.iter().enumerate() {
                let shared = relation.sources.iter().filter(|s| matches!(s.place, Place::Shared { .. }));
                found.extend(shared.map(|source| (TypeId(at), RelId(rel), source.subject)));
            }
        }
        found
    }

    /// With whom a shared source may be shared, at random.
    pub fn holder(&mut self, subject: Subject) -> Holder {
        match subject {
            Subject::Type(ty) => {
                let number = self.number(ty);
                Holder::One(ty, key(self.model, ty, number))
            }
            Subject::Group(ty, relation) => {
                let number = self.number(ty);
                Holder::Group(ty, relation, key(self.model, ty, number))
            }
            Subject::Everyone(ty) => Holder::Everyone(ty),
            Subject::Anyone => Holder::Anyone,
            Subject::Link => Holder::Link("a link".to_owned()),
        }
    }

    /// A whole small world: in each table up to as many rows as it may have objects.
    pub fn facts(&mut self, links: usize, shares: usize) -> Facts {
        let mut facts = Facts::default();
        for table in &self.shape.tables {
            let mut rows = Vec::new();
            match table.ty {
                Some(ty) => {
                    for number in 1..=self.sizes.get(ty.0).copied().unwrap_or_default() {
                        // A world with gaps has references that lead nowhere.
                        if !self.random.once_in(12) {
                            rows.push(self.row(table, number));
                        }
                    }
                }
                None => {
                    for _ in 0..self.random.below(links + 1) {
                        rows.push(self.row(table, 0));
                    }
                }
            }
            let columns = table.columns.iter().map(|c| c.name.clone()).collect();
            facts.tables.insert(table.name.clone(), Table { columns, rows });
        }
        let shared = self.shared();
        for _ in 0..self.random.below(shares + 1) {
            let Some((ty, relation, subject)) = self.random.pick(&shared).copied() else { break };
            let number = self.number(ty);
            let with = self.holder(subject);
            let object = key(self.model, ty, number);
            facts.shares.push(Share { ty, relation, object, with, starts: None, expires: None, caveat: None });
        }
        self.roles(shares, &mut facts);
        facts
    }

    /// Roles made at run time, where the policy has any.
    fn roles(&mut self, most: usize, facts: &mut Facts) {
        let model = self.model;
        for (at, def) in model.types.iter().enumerate() {
            let (Some(roles), ty) = (&def.roles, TypeId(at)) else { continue };
            let all = (0..def.permissions.len()).map(PermId);
            let all: Vec<(PermId, RelId)> = all.filter_map(|p| Some((p, def.roles_relation(p)?))).collect();
            for _ in 0..self.random.below(most + 1) {
                let Some((permission, relation)) = self.random.pick(&all).copied() else { break };
                let Some(subject) = self.random.pick(&roles.subjects).copied() else { break };
                let with = self.holder(subject);
                let object = key(model, ty, self.number(ty));
                let owner = if roles.from.is_some() {
                    key(model, roles.owner, self.number(roles.owner))
                } else {
                    object.clone()
                };
                let share = Share { ty, relation, object, with, starts: None, expires: None, caveat: None };
                let permissions = BTreeSet::from([(ty, permission)]);
                facts.roles.push(RoleHeld { owner: (roles.owner, owner), permissions, share });
            }
        }
    }
}
