//! What an expression is worth on a row.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::super::facts::{Datum, Facts, Table};
use super::{Compare, Function, Query, Sql};
use crate::compiler::ident::{Ident, QualName};

/// The row an expression looks at, and those around it.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// What its columns may be qualified by, besides `this` on the outermost.
    pub alias: Option<&'a Ident>,
    /// Its table.
    pub table: &'a Table,
    /// Its values.
    pub row: &'a [Datum],
    /// The row around it, for a query inside a condition.
    pub outer: Option<&'a Scope<'a>>,
}

/// What does not depend on the row.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// All tables.
    pub facts: &'a Facts,
    /// `authz.uid()`
    pub uid: &'a Datum,
    /// `authz.ctx()`
    pub context: &'a BTreeMap<String, String>,
    /// `arg()`
    pub arguments: &'a BTreeMap<String, String>,
    /// The moment.
    pub now: i64,
}

type Worth = Result<Datum, String>;

/// The value of `sql`; on no row in a caveat.
///
/// # Errors
/// What cannot be worked out here, for a message.
pub fn eval(sql: &Sql, scope: Option<&Scope<'_>>, asked: &Asked<'_>) -> Worth {
    let value = |part: &Sql| eval(part, scope, asked);
    Ok(match sql {
        Sql::Value(value) => value.clone(),
        Sql::This(name) => {
            let mut outermost = scope.ok_or_else(|| format!("this.{} without a row", name.plain()))?;
            while let Some(outer) = outermost.outer {
                outermost = outer;
            }
            of_row(outermost, name).ok_or_else(|| format!("the column this.{}", name.plain()))?
        }
        Sql::Column(qualifier, name) => column(qualifier.as_ref(), name, scope)?,
        Sql::Not(inner) => match truth(value(inner)?)? {
            Some(value) => Datum::Bool(!value),
            None => Datum::Null,
        },
        Sql::And(a, b) => match truth(value(a)?)? {
            Some(false) => Datum::Bool(false),
            first => match (first, truth(value(b)?)?) {
                (_, Some(false)) => Datum::Bool(false),
                (Some(true), Some(true)) => Datum::Bool(true),
                _ => Datum::Null,
            },
        },
        Sql::Or(a, b) => match truth(value(a)?)? {
            Some(true) => Datum::Bool(true),
            first => match (first, truth(value(b)?)?) {
                (_, Some(true)) => Datum::Bool(true),
                (Some(false), Some(false)) => Datum::Bool(false),
                _ => Datum::Null,
            },
        },
        Sql::Compare(how, a, b) => compare(*how, &value(a)?, &value(b)?)?,
        Sql::Arithmetic(operator, a, b) => arithmetic(*operator, value(a)?, value(b)?)?,
        Sql::Is(inner, what, differs) => Datum::Bool((value(inner)? == *what) != *differs),
        Sql::Distinct(a, b, differs) => {
            let (a, b) = (value(a)?, value(b)?);
            let same = match (&a, &b) {
                (Datum::Null, Datum::Null) => true,
                (Datum::Null, _) | (_, Datum::Null) => false,
                _ => compare(Compare::Equal, &a, &b)? == Datum::Bool(true),
            };
            Datum::Bool(same != *differs)
        }
        Sql::In(a, list) => {
            let a = value(a)?;
            let items: Vec<Datum> = list.iter().map(value).collect::<Result<_, _>>()?;
            among(&a, &items)?
        }
        Sql::InQuery(a, query) => among(&value(a)?, &rows(query, scope, asked)?)?,
        Sql::Exists(query) => Datum::Bool(!rows(query, scope, asked)?.is_empty()),
        Sql::Call(function, list) => {
            let list: Vec<Datum> = list.iter().map(value).collect::<Result<_, _>>()?;
            call(*function, &list)?
        }
        Sql::Uid => asked.uid.clone(),
        Sql::Context(key) => given(asked.context, key),
        Sql::Argument(name) => given(asked.arguments, name),
        Sql::Now => Datum::Time(asked.now),
    })
}

/// A context value: one that is empty is none.
fn given(values: &BTreeMap<String, String>, key: &str) -> Datum {
    values.get(key).filter(|value| !value.is_empty()).map_or(Datum::Null, |value| Datum::Text(value.clone()))
}

fn of_row(scope: &Scope<'_>, name: &Ident) -> Option<Datum> {
    scope.table.column(name).and_then(|at| scope.row.get(at)).cloned()
}

/// A column of the nearest row that has it.
fn column(qualifier: Option<&Ident>, name: &Ident, scope: Option<&Scope<'_>>) -> Worth {
    let mut at = scope;
    while let Some(row) = at {
        if qualifier.is_none_or(|q| row.alias == Some(q))
            && let Some(value) = of_row(row, name)
        {
            return Ok(value);
        }
        at = row.outer;
    }
    let qualifier = qualifier.map(|q| format!("{}.", q.plain())).unwrap_or_default();
    Err(format!("the column {qualifier}{}", name.plain()))
}

/// What a query selects: one value for each row, NULL when it selects none in particular.
fn rows(query: &Query, scope: Option<&Scope<'_>>, asked: &Asked<'_>) -> Result<Vec<Datum>, String> {
    let table = table(asked.facts, &query.table)?;
    let mut found = Vec::new();
    for row in &table.rows {
        let inner = Scope { alias: Some(&query.alias), table, row, outer: scope };
        let keep = match &query.condition {
            Some(condition) => truth(eval(condition, Some(&inner), asked)?)? == Some(true),
            None => true,
        };
        if keep {
            let value = query.column.as_ref().map(|column| eval(column, Some(&inner), asked)).transpose()?;
            found.push(value.unwrap_or(Datum::Null));
        }
    }
    Ok(found)
}

fn table<'a>(facts: &'a Facts, name: &QualName) -> Result<&'a Table, String> {
    facts.tables.get(name).ok_or_else(|| format!("the table {}", name.plain()))
}

/// A condition's truth: NULL is `None`.
pub fn truth(value: Datum) -> Result<Option<bool>, String> {
    match value {
        Datum::Null => Ok(None),
        Datum::Bool(value) => Ok(Some(value)),
        other => Err(format!("{other} as a condition")),
    }
}

fn among(a: &Datum, items: &[Datum]) -> Worth {
    let mut unknown = false;
    for item in items {
        match compare(Compare::Equal, a, item)? {
            Datum::Bool(true) => return Ok(Datum::Bool(true)),
            Datum::Null => unknown = true,
            _ => {}
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(false) })
}

fn compare(how: Compare, a: &Datum, b: &Datum) -> Worth {
    if *a == Datum::Null || *b == Datum::Null {
        return Ok(Datum::Null);
    }
    let equality = matches!(how, Compare::Equal | Compare::Unequal);
    let cannot = || format!("comparing {a} with {b}");
    let order = match (a, b) {
        (Datum::Int(a), Datum::Int(b)) | (Datum::Time(a), Datum::Time(b)) => a.cmp(b),
        (Datum::Bool(a), Datum::Bool(b)) => a.cmp(b),
        // How text is ordered is the collation's business.
        (Datum::Text(a), Datum::Text(b)) if equality => a.cmp(b),
        (Datum::Int(a), Datum::Text(b)) => a.cmp(&b.parse().map_err(|_| cannot())?),
        (Datum::Text(a), Datum::Int(b)) => a.parse::<i64>().map_err(|_| cannot())?.cmp(b),
        _ => return Err(cannot()),
    };
    Ok(Datum::Bool(match how {
        Compare::Equal => order == Ordering::Equal,
        Compare::Unequal => order != Ordering::Equal,
        Compare::Less => order == Ordering::Less,
        Compare::AtMost => order != Ordering::Greater,
        Compare::More => order == Ordering::Greater,
        Compare::AtLeast => order != Ordering::Less,
    }))
}

fn arithmetic(operator: char, a: Datum, b: Datum) -> Worth {
    let (a, b) = match (a, b) {
        (Datum::Null, _) | (_, Datum::Null) => return Ok(Datum::Null),
        (Datum::Text(a), b) if operator == '|' => return Ok(Datum::Text(format!("{a}{b}"))),
        (a, Datum::Text(b)) if operator == '|' => return Ok(Datum::Text(format!("{a}{b}"))),
        (Datum::Int(a), Datum::Int(b)) => (a, b),
        (a, b) => return Err(format!("{a} {operator} {b}")),
    };
    let result = match operator {
        '+' => a.checked_add(b),
        '-' => a.checked_sub(b),
        '*' => a.checked_mul(b),
        '/' => a.checked_div(b),
        '%' => a.checked_rem(b),
        _ => None,
    };
    result.map(Datum::Int).ok_or_else(|| format!("{a} {operator} {b}"))
}

fn call(function: Function, list: &[Datum]) -> Worth {
    if function == Function::Coalesce {
        return Ok(list.iter().find(|value| **value != Datum::Null).cloned().unwrap_or(Datum::Null));
    }
    let first = list.first().cloned().unwrap_or(Datum::Null);
    if function == Function::NullIf {
        let second = list.get(1).cloned().unwrap_or(Datum::Null);
        let same = compare(Compare::Equal, &first, &second)? == Datum::Bool(true);
        return Ok(if same { Datum::Null } else { first });
    }
    Ok(match (function, first) {
        (_, Datum::Null) => Datum::Null,
        (Function::Lower, Datum::Text(text)) if text.is_ascii() => Datum::Text(text.to_ascii_lowercase()),
        (Function::Upper, Datum::Text(text)) if text.is_ascii() => Datum::Text(text.to_ascii_uppercase()),
        (Function::Length, Datum::Text(text)) => Datum::Int(i64::try_from(text.chars().count()).unwrap_or(i64::MAX)),
        (Function::Abs, Datum::Int(n)) => Datum::Int(n.checked_abs().ok_or("the size of the smallest number")?),
        (Function::ToInteger, Datum::Int(n)) => Datum::Int(n),
        (Function::ToInteger, Datum::Text(text)) => {
            Datum::Int(text.parse().map_err(|_| format!("'{text}' as a number"))?)
        }
        (Function::ToText, Datum::Int(n)) => Datum::Text(n.to_string()),
        (Function::ToText, Datum::Text(text)) => Datum::Text(text),
        (Function::ToBool, Datum::Bool(value)) => Datum::Bool(value),
        (Function::ToBool, Datum::Text(text)) => match text.as_str() {
            "true" | "t" => Datum::Bool(true),
            "false" | "f" => Datum::Bool(false),
            other => return Err(format!("'{other}' as a boolean")),
        },
        (_, other) => return Err(format!("a function of {other}")),
    })
}
