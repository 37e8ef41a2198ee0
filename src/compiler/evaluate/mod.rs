//! The second opinion: who holds what, worked out from a policy's model and plain facts, as sets of ids to a least
//! fixed point. It makes no SQL and shares nothing with the emitter, so that what both say is not one mistake twice.
//!
//! [`World`] is a policy on facts at a moment; [`World::ask`] gives what one caller holds.

mod build;
pub mod facts;
mod held;
mod needs;
mod order;
mod proof;
pub mod sql;

use std::collections::{BTreeMap, HashMap};

use crate::compiler::ident::QualName;
use crate::compiler::model::{Model, TypeId};
use crate::compiler::span::Span;

use facts::{Datum, Facts, Key};
use sql::Sql;

pub use held::Held;
pub use needs::{Needed, needs};
pub use proof::Step;

/// What the evaluator cannot say, and where it stands in the policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot evaluate {what}")]
pub struct CannotEvaluate {
    /// What it does not know.
    pub what: String,
    /// Where.
    pub span: Span,
}

impl CannotEvaluate {
    fn new(span: Span, what: impl Into<String>) -> Self {
        CannotEvaluate { what: what.into(), span }
    }
}

/// A result, or what the evaluator cannot say.
pub type Evaluated<T> = Result<T, CannotEvaluate>;

/// A relation or a permission of a type: what is worked out for every caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var(usize);

/// A policy on facts, at a moment.
pub struct World<'a> {
    model: &'a Model,
    facts: &'a Facts,
    /// Microseconds since 1970.
    now: i64,
    /// The objects of each type that count.
    objects: Vec<Objects>,
    /// Relations and permissions, type by type.
    vars: Vec<Definition>,
    /// The first of each type's vars: its relations, then its permissions.
    first: Vec<usize>,
    /// The subjects of each source, for each object of its type.
    edges: Vec<Vec<Vec<Edge>>>,
    /// Conditions that say the same to every caller: whether they hold, for each object.
    same: Vec<Vec<bool>>,
    /// The others.
    varying: Vec<Varying>,
    /// Which vars are worked out together, in order.
    strata: Vec<Vec<Var>>,
    /// Rules, as the model has them.
    rules: Vec<Vec<Term>>,
    /// What may never hold, as the model has it.
    invariants: Vec<Term>,
}

/// The objects of a type: rows that count.
#[derive(Default)]
struct Objects {
    keys: Vec<Key>,
    index: HashMap<Key, usize>,
    /// Which row of the table each is.
    rows: Vec<usize>,
}

struct Definition {
    ty: TypeId,
    term: Term,
}

/// An expression over an object, with names replaced by what they stand for.
#[derive(Debug, Clone)]
enum Term {
    Any(Vec<Term>),
    All(Vec<Term>),
    Not(Box<Term>),
    /// A relation or permission of the same object.
    Var(Var),
    /// The caller is among the subjects of a source.
    Among(usize),
    /// A relation or permission of an object that a source names, for the type it names.
    Via(usize, TypeId, Var),
    SignedIn,
    Always,
    Never,
    /// A condition that is the same for all.
    Same(usize),
    /// One that is not.
    Varies(usize),
}

/// A condition that depends on who asks.
struct Varying {
    ty: TypeId,
    sql: Sql,
    span: Span,
}

/// A subject of an object.
#[derive(Debug, Clone)]
struct Edge {
    to: To,
    /// What must hold of the caller or the request besides, all of it.
    guards: Vec<Guard>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum To {
    /// An object, or a person.
    Object(TypeId, usize),
    /// Those in a relation of an object.
    Group(TypeId, Var, usize),
    /// Everyone signed in as a type.
    Everyone(TypeId),
    /// Anyone at all.
    Anyone,
    /// Whoever came with a share link.
    Link(String),
}

/// A condition that depends on who asks: on a row of a link table or of the object, or a caveat's, which has none.
#[derive(Debug, Clone)]
struct Guard {
    row: Option<(QualName, usize)>,
    arguments: BTreeMap<String, String>,
    sql: Sql,
    span: Span,
}

impl<'a> World<'a> {
    /// Works out what is the same for every caller.
    ///
    /// # Errors
    /// A condition that cannot be read, a table that is missing, or a policy that denies by what depends on it.
    pub fn new(model: &'a Model, facts: &'a Facts, now: i64) -> Evaluated<World<'a>> {
        build::world(model, facts, now)
    }

    /// The policy.
    pub fn model(&self) -> &'a Model {
        self.model
    }

    /// The keys of a type's objects that count, in the order of the table.
    pub fn keys(&self, ty: TypeId) -> &[Key] {
        self.objects.get(ty.0).map(|objects| objects.keys.as_slice()).unwrap_or_default()
    }

    fn index(&self, ty: TypeId, key: &[Datum]) -> Option<usize> {
        self.objects.get(ty.0)?.index.get(key).copied()
    }

    fn edges(&self, source: usize, object: usize) -> &[Edge] {
        self.edges.get(source).and_then(|edges| edges.get(object)).map(Vec::as_slice).unwrap_or_default()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
mod tests;
