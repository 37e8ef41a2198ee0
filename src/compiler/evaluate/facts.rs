//! What is in the tables and among the shares, as plain values: everything the evaluator may look at.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::compiler::ident::{Ident, QualName};
use crate::compiler::model::{KeyType, PermId, RelId, ScopeId, TypeId};

/// A value of a column.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Datum {
    /// NULL, which is also what a comparison with it gives.
    Null,
    /// A boolean.
    Bool(bool),
    /// Any of the integer types.
    Int(i64),
    /// Text, varchar, and uuid in its usual spelling.
    Text(String),
    /// A moment: microseconds since 1970, UTC.
    Time(i64),
    /// A value of any other type, as text; it can be tested for NULL and nothing else.
    Other(String),
}

/// A key: as many values as its type has key columns.
pub type Key = Vec<Datum>;

impl Datum {
    /// The value as one of a key column: text that holds a number is that number, and the other way round.
    pub fn as_key(&self, ty: KeyType) -> Datum {
        match (ty, self) {
            (KeyType::Bigint | KeyType::Integer | KeyType::Smallint, Datum::Text(text)) => {
                text.parse().map_or(Datum::Null, Datum::Int)
            }
            (KeyType::Text | KeyType::Varchar, Datum::Int(n)) => Datum::Text(n.to_string()),
            (KeyType::Uuid, Datum::Text(text)) => Datum::Text(text.to_lowercase()),
            (_, other) => other.clone(),
        }
    }
}

impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Datum::Null => f.write_str("NULL"),
            Datum::Bool(value) => write!(f, "{value}"),
            Datum::Int(value) => write!(f, "{value}"),
            Datum::Text(value) | Datum::Other(value) => f.write_str(value),
            Datum::Time(value) => write!(f, "{value} µs"),
        }
    }
}

/// A key as the API spells it: the bare value, or `(1,42)` for one of several columns.
pub fn key_text(key: &[Datum]) -> String {
    match key {
        [one] => one.to_string(),
        many => format!("({})", many.iter().map(part_text).collect::<Vec<_>>().join(",")),
    }
}

/// A part of a composite value, quoted where PostgreSQL quotes it.
fn part_text(datum: &Datum) -> String {
    let text = datum.to_string();
    let special = |c: char| c.is_whitespace() || matches!(c, '"' | '\\' | '(' | ')' | ',');
    match datum {
        Datum::Null => String::new(),
        Datum::Text(_) if text.is_empty() || text.contains(special) => {
            format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\"\""))
        }
        _ => text,
    }
}

/// The rows of a table, with the columns that the policy looks at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// What its columns are called.
    pub columns: Vec<Ident>,
    /// One value for each column.
    pub rows: Vec<Vec<Datum>>,
}

impl Table {
    /// An empty table with these columns.
    pub fn with_columns(columns: &[&str]) -> Table {
        Table { columns: columns.iter().map(|c| Ident::new(*c)).collect(), rows: Vec::new() }
    }

    /// Where a column is.
    pub fn column(&self, name: &Ident) -> Option<usize> {
        self.columns.iter().position(|c| c == name)
    }
}

/// Everything a policy decides from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Tables of types, link tables, and what conditions read.
    pub tables: BTreeMap<QualName, Table>,
    /// What was shared at run time.
    pub shares: Vec<Share>,
    /// Who holds which role that was made at run time, and on what.
    pub roles: Vec<RoleHeld>,
}

/// A share made at run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The type of the object.
    pub ty: TypeId,
    /// The shared relation.
    pub relation: RelId,
    /// The object.
    pub object: Key,
    /// With whom.
    pub with: Holder,
    /// Counts from here on.
    pub starts: Option<i64>,
    /// Counts until just before this.
    pub expires: Option<i64>,
    /// The caveat it carries, and its arguments.
    pub caveat: Option<(String, BTreeMap<String, String>)>,
}

/// A role made at run time, held on an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleHeld {
    /// The object whose role it is.
    pub owner: (TypeId, Key),
    /// What the role includes.
    pub permissions: BTreeSet<(TypeId, PermId)>,
    /// The object it is held on, by whom, and when.
    pub share: Share,
}

/// With whom something is shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// A person or an object.
    One(TypeId, Key),
    /// Those in a relation of a group.
    Group(TypeId, RelId, Key),
    /// Everyone signed in as this type.
    Everyone(TypeId),
    /// Anyone at all.
    Anyone,
    /// Whoever holds this share link.
    Link(String),
}

/// Who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// Who is signed in; nobody when `None`, and also when there is no such row or it does not count.
    pub principal: Option<(TypeId, Key)>,
    /// The request's context, `authz.ctx`.
    pub context: BTreeMap<String, String>,
    /// What the session is limited to; empty when to nothing.
    pub scopes: Vec<ScopeId>,
    /// The share links it came with.
    pub links: BTreeSet<String>,
}

impl Caller {
    /// Nobody.
    pub fn nobody() -> Caller {
        Caller::default()
    }

    /// A person, without a context, scopes or links.
    pub fn of(ty: TypeId, key: Key) -> Caller {
        Caller { principal: Some((ty, key)), ..Caller::default() }
    }
}
