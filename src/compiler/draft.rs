//! A first policy from a database's tables, keys and foreign keys. It gives nobody more than what a row's own columns and
//! memberships say, must compile, and marks with LOOK every choice that only a person can make.

use std::collections::{BTreeMap, BTreeSet};

use super::ident::{Ident, QualName};

mod names;
mod shape;
mod write;

/// A table as the catalog describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: QualName,
    /// Its columns, in order.
    pub columns: Vec<Column>,
    /// The columns of its primary key.
    pub key: Vec<Ident>,
    /// Its foreign keys.
    pub foreign: Vec<ForeignKey>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: Ident,
    /// Its type, as the catalog spells it.
    pub ty: String,
    /// It is NOT NULL.
    pub required: bool,
}

/// A foreign key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// Its columns, in the order of the key they name.
    pub columns: Vec<Ident>,
    /// The table it names.
    pub table: QualName,
    /// It names that table's primary key.
    pub to_key: bool,
    /// Deleting the named row deletes this one.
    pub cascades: bool,
}

/// What the draft is made with.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The app's role.
    pub app_role: Option<Ident>,
    /// The table of those who sign in; guessed when left out.
    pub users: Option<QualName>,
}

/// Why there is no draft.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// No table could be users'.
    #[error("no table looks like the users' (users, accounts, people, members ...); name it: --users schema.table")]
    NoUsers,
    /// The table named is not there.
    #[error("there is no table {0} that could be the users': it must be there and have a primary key of one column")]
    NotUsers(String),
}

/// Drafts a policy.
///
/// # Errors
/// When nobody could sign in.
pub fn draft(tables: &[Table], options: &Options) -> Result<String, DraftError> {
    let by_name: BTreeMap<&QualName, &Table> = tables.iter().map(|table| (&table.name, table)).collect();
    let (users, others) = users(tables, options)?;
    let shape = shape::Shape::of(tables, &by_name, users);
    let text = write::policy(&shape, options, &others);
    // What is drafted is set as everything else is; a draft that could not be read would be a mistake of ours, and is
    // then handed over as it is, for the compiler to show.
    Ok(super::format::format(&text).unwrap_or(text))
}

/// Names of tables of people, the likeliest first.
const USERS: [&str; 12] = [
    "users",
    "user",
    "app_users",
    "accounts",
    "account",
    "people",
    "persons",
    "person",
    "members",
    "employees",
    "customers",
    "profiles",
];

/// The table of those who sign in, and which others it could be.
fn users<'t>(tables: &'t [Table], options: &Options) -> Result<(&'t Table, Vec<&'t Table>), DraftError> {
    let usable = |table: &&Table| table.key.len() == 1 && shape::key_types(table).is_some();
    if let Some(named) = &options.users {
        let found = tables.iter().filter(usable).find(|table| table.name == *named);
        return found.map(|table| (table, Vec::new())).ok_or_else(|| DraftError::NotUsers(named.plain()));
    }
    let named: BTreeMap<&QualName, usize> =
        tables.iter().flat_map(|t| &t.foreign).fold(BTreeMap::new(), |mut counts, key| {
            *counts.entry(&key.table).or_default() += 1;
            counts
        });
    let mut candidates: Vec<(usize, std::cmp::Reverse<usize>, &Table)> = tables
        .iter()
        .filter(usable)
        .filter_map(|table| {
            let likely = USERS.iter().position(|name| *name == table.name.name.as_str().to_lowercase())?;
            Some((likely, std::cmp::Reverse(named.get(&table.name).copied().unwrap_or(0)), table))
        })
        .collect();
    candidates.sort_by(|a, b| (a.0, a.1, &a.2.name).cmp(&(b.0, b.1, &b.2.name)));
    let mut tables = candidates.into_iter().map(|(_, _, table)| table);
    let first = tables.next().ok_or(DraftError::NoUsers)?;
    Ok((first, tables.collect()))
}

/// Tables by name.
type Tables<'t> = BTreeMap<&'t QualName, &'t Table>;
/// Names in use.
type Taken = BTreeSet<String>;
