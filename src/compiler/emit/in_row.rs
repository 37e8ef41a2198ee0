//! Sources that stand in the row of the type's own table: columns with a subject's key, and pairs of columns with a type's
//! name and a key.

use crate::compiler::ident::literal;
use crate::compiler::model::{KeyType, Place, Source, Subject, TypeId};

use super::context::{Emit, Policy, not_built};
use super::key::Id;

/// The subject that a row itself names.
pub struct Named {
    /// Its id.
    pub id: Id,
    /// What must hold for the row to name a subject of the source's type; `None` when it always does.
    pub test: Option<String>,
}

impl Named {
    /// `condition` where the row names such a subject at all.
    pub fn when(&self, condition: String) -> String {
        match &self.test {
            Some(test) => format!("({test} AND {condition})"),
            None => condition,
        }
    }
}

impl Policy<'_> {
    /// The subject that the row `row` of type `ty` names by `source`; `None` for a source that stands elsewhere.
    pub fn named_in_row(&self, ty: TypeId, source: &Source, row: &str) -> Emit<Option<Named>> {
        match &source.place {
            Place::Column { columns } => Ok(Some(Named { id: Id::of(row, columns), test: None })),
            Place::Polymorphic { type_column, id_column } => {
                let (Subject::Type(to) | Subject::Group(to, _)) = source.subject else {
                    return Err(not_built(source.span, "a pair of columns that names everyone"));
                };
                let to = self.ty(to)?;
                // The column may be text or an enumeration.
                let test = format!("{row}.{type_column}::text = {}", literal(&to.name));
                let id = format!("{row}.{id_column}");
                let key = to.key.first().map(|key| key.ty);
                let id = match key {
                    Some(key) if self.model.pair_holds_text(ty, id_column) => from_text(key, &test, &id),
                    _ => id,
                };
                Ok(Some(Named { id: Id::one(id), test: Some(test) }))
            }
            Place::Table { .. } | Place::Shared { .. } | Place::Role { .. } => Ok(None),
        }
    }
}

/// A key read from a column that holds keys of several types as text; NULL where `test` does not hold or the text is no
/// such key. Each CASE keeps the next expression from being worked out on what it would fail on.
pub(super) fn from_text(key: KeyType, test: &str, id: &str) -> String {
    let (pattern, range) = match key {
        KeyType::Text | KeyType::Varchar => return id.to_owned(),
        KeyType::Uuid => ("^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", None),
        KeyType::Bigint => (INTEGER, Some(("-9223372036854775808", "9223372036854775807"))),
        KeyType::Integer => (INTEGER, Some(("-2147483648", "2147483647"))),
        KeyType::Smallint => (INTEGER, Some(("-32768", "32767"))),
    };
    let cast = format!("{id}::{}", key.sql());
    let inner = match range {
        Some((least, most)) => format!("CASE WHEN {id}::numeric BETWEEN {least} AND {most} THEN {cast} END"),
        None => cast,
    };
    format!("CASE WHEN {test} THEN CASE WHEN {id} ~ '{pattern}' THEN {inner} END END")
}

/// An integer as PostgreSQL writes it.
const INTEGER: &str = "^(0|-?[1-9][0-9]{0,18})$";
