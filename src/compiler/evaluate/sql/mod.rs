//! The part of SQL's expressions that the evaluator knows: columns, literals, comparisons, logic with three values,
//! lists, simple arithmetic, `authz.uid()`, `authz.ctx()`, and EXISTS or IN over one table. Anything else is reported,
//! never guessed.

mod eval;
mod parse;

pub use eval::{Asked, Scope, eval, truth};
pub use parse::parse;

use crate::compiler::ident::{Ident, QualName};

/// An expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sql {
    /// A value as written.
    Value(super::facts::Datum),
    /// `this.column`
    This(Ident),
    /// `column` or `alias.column`
    Column(Option<Ident>, Ident),
    /// NOT
    Not(Box<Sql>),
    /// AND
    And(Box<Sql>, Box<Sql>),
    /// OR
    Or(Box<Sql>, Box<Sql>),
    /// A comparison.
    Compare(Compare, Box<Sql>, Box<Sql>),
    /// Arithmetic, and `||`.
    Arithmetic(char, Box<Sql>, Box<Sql>),
    /// IS [NOT] NULL, TRUE, FALSE, UNKNOWN: what it is compared with, and whether it must differ.
    Is(Box<Sql>, super::facts::Datum, bool),
    /// IS [NOT] DISTINCT FROM; true when they must differ.
    Distinct(Box<Sql>, Box<Sql>, bool),
    /// IN a list.
    In(Box<Sql>, Vec<Sql>),
    /// IN a query of one column.
    InQuery(Box<Sql>, Box<Query>),
    /// EXISTS
    Exists(Box<Query>),
    /// A function that looks at its arguments alone.
    Call(Function, Vec<Sql>),
    /// `authz.uid()`
    Uid,
    /// `authz.ctx('key')`
    Context(String),
    /// `arg('name')`, in a caveat.
    Argument(String),
    /// The moment of the statement.
    Now,
}

/// `SELECT column FROM table alias WHERE condition`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// What it selects, when IN needs it.
    pub column: Option<Sql>,
    /// The table.
    pub table: QualName,
    /// What its columns may be qualified by.
    pub alias: Ident,
    /// Which rows.
    pub condition: Option<Sql>,
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// `=`
    Equal,
    /// `<>`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
}

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// The first that is not NULL.
    Coalesce,
    /// NULL if both are equal.
    NullIf,
    /// Lower case.
    Lower,
    /// Upper case.
    Upper,
    /// Characters in a text.
    Length,
    /// Without the sign.
    Abs,
    /// A cast to an integer type.
    ToInteger,
    /// A cast to text.
    ToText,
    /// A cast to boolean.
    ToBool,
}

impl Sql {
    /// Calls `visit` with this and every expression in it, also those inside queries.
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Sql)) {
        visit(self);
        match self {
            Sql::Not(a) | Sql::Is(a, ..) => a.walk(visit),
            Sql::And(a, b)
            | Sql::Or(a, b)
            | Sql::Compare(_, a, b)
            | Sql::Arithmetic(_, a, b)
            | Sql::Distinct(a, b, _) => {
                a.walk(visit);
                b.walk(visit);
            }
            Sql::In(a, list) => {
                a.walk(visit);
                list.iter().for_each(|item| item.walk(visit));
            }
            Sql::InQuery(a, query) => {
                a.walk(visit);
                query.walk(visit);
            }
            Sql::Exists(query) => query.walk(visit),
            Sql::Call(_, list) => list.iter().for_each(|item| item.walk(visit)),
            _ => {}
        }
    }

    /// Whether its value depends on who asks or on the request.
    pub fn depends_on_asker(&self) -> bool {
        let mut depends = false;
        self.walk(&mut |part| depends |= matches!(part, Sql::Uid | Sql::Context(_) | Sql::Argument(_)));
        depends
    }

    /// The tables it reads.
    pub fn tables(&self) -> Vec<&QualName> {
        let mut found = Vec::new();
        self.walk(&mut |part| {
            if let Sql::Exists(query) | Sql::InQuery(_, query) = part {
                found.push(&query.table);
            }
        });
        found
    }

    /// The names of the columns it looks at, of whatever table.
    pub fn columns(&self) -> Vec<&Ident> {
        let mut found = Vec::new();
        self.walk(&mut |part| {
            if let Sql::This(name) | Sql::Column(_, name) = part {
                found.push(name);
            }
        });
        found
    }
}

impl Query {
    fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Sql)) {
        self.column.iter().chain(&self.condition).for_each(|part| part.walk(visit));
    }
}
