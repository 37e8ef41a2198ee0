//! What the emitter produces: an ordered list of objects with their SQL and the locks that making them takes, and the
//! inheritance graphs that must be built. The console's SQL screen shows this list; apply runs it.

use super::ident::{Ident, QualName};
use super::model::TypeId;

/// Everything a policy becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emitted {
    /// In the order they must be made.
    pub objects: Vec<Object>,
    /// The graphs whose index tables must be filled, in the order of the model's graphs.
    pub graphs: Vec<GraphTables>,
    /// The governed tables, each with the views a read of it makes PostgreSQL expand.
    pub tables: Vec<GovernedTable>,
    /// SHA-256, in hex, of the objects' SQL in order: two policies with one digest make the same database.
    pub digest: String,
}

/// One object to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// What it is.
    pub kind: ObjectKind,
    /// Its name for people, such as `authz_gen.folder_view` or `app.files: select`.
    pub name: String,
    /// The statement that makes it, without a trailing semicolon. One statement.
    pub sql: String,
    /// What making it locks, beyond the object itself.
    pub locks: Vec<Lock>,
    /// The step of an apply it belongs to.
    pub phase: Phase,
    /// The graph (by [`GraphTables::name`]) whose index it is part of. Tables and indexes of a graph that is in the
    /// database already are kept, not made again.
    pub graph: Option<String>,
}

/// The steps of an apply, in order. All of them run in one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Tables of the index and of shares: made when missing, kept when their definition is unchanged.
    Tables,
    /// Triggers that keep the index; from here on writers of the base tables wait.
    Upkeep,
    /// Functions and views.
    Functions,
    /// Row-level security policies, grants: the switch.
    Rules,
}

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ObjectKind {
    /// A schema.
    Schema,
    /// A composite type.
    Type,
    /// A table.
    Table,
    /// An index.
    Index,
    /// A function.
    Function,
    /// A view.
    View,
    /// A trigger.
    Trigger,
    /// A row-level security policy, or the switch that turns it on.
    Policy,
    /// A grant or revoke.
    Grant,
}

impl ObjectKind {
    /// One word for people.
    pub fn word(self) -> &'static str {
        match self {
            ObjectKind::Schema => "schema",
            ObjectKind::Type => "type",
            ObjectKind::Table => "table",
            ObjectKind::Index => "index",
            ObjectKind::Function => "function",
            ObjectKind::View => "view",
            ObjectKind::Trigger => "trigger",
            ObjectKind::Policy => "policy",
            ObjectKind::Grant => "grant",
        }
    }
}

/// A lock on a table that exists before the apply.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lock {
    /// The table.
    pub table: QualName,
    /// How strong.
    pub mode: LockMode,
}

/// PostgreSQL's table locks that we take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LockMode {
    /// `ACCESS SHARE`
    AccessShare,
    /// `SHARE ROW EXCLUSIVE` (CREATE TRIGGER): blocks writers, not readers.
    ShareRowExclusive,
    /// `ACCESS EXCLUSIVE` (CREATE POLICY, ENABLE ROW LEVEL SECURITY): blocks everybody.
    AccessExclusive,
}

impl LockMode {
    /// As PostgreSQL writes it.
    pub fn sql(self) -> &'static str {
        match self {
            LockMode::AccessShare => "ACCESS SHARE",
            LockMode::ShareRowExclusive => "SHARE ROW EXCLUSIVE",
            LockMode::AccessExclusive => "ACCESS EXCLUSIVE",
        }
    }
}

/// The stored index of one inheritance graph. Over a single type with a single key column it holds keys; any other holds
/// numbers that stand for keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphTables {
    /// `g` and the first eight hex digits of the digest of the graph's definition (type's table, key, links,
    /// conditions): the same links have the same name under any policy, so an index is rebuilt only when it must be.
    pub name: String,
    /// `folder.parent{inherit}, folder.linked`: for people.
    pub title: String,
    /// The type's table.
    pub table: QualName,
    /// `SELECT child, parent` for every effective link, for the build: `child` and `parent` of the key's type.
    pub links_sql: String,
    /// `SELECT id` of every object.
    pub objects_sql: String,
    /// The SQL type of what the index holds.
    pub key_type: &'static str,
    /// Statements that a build runs first: they give every object its number.
    pub prepare: Vec<String>,
    /// Where the numbers of each type's objects are; empty when the index holds keys.
    pub numbers: Vec<NumberTable>,
}

/// The numbers of one type's objects in one graph. The key's columns are called `authz__k` (or `authz__k1 ..`), the number
/// `authz__n`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberTable {
    /// The type.
    pub ty: TypeId,
    /// `schema.table`, quoted.
    pub table: String,
}

/// A table with rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GovernedTable {
    /// The table.
    pub table: QualName,
    /// The app role.
    pub role: Ident,
    /// The masked view of it, when it has one.
    pub view: Option<QualName>,
    /// How many views PostgreSQL expands for `SELECT` from it (AZ801), counted as the server's rewriter does: a view
    /// named twice counts twice, and views inside views count.
    pub expanded_views: usize,
    /// Their names, as often as they count, outermost first.
    pub views: Vec<String>,
}
