//! The SQL screen: the objects the policy becomes.

use super::field::Field;
use crate::compiler::objects::{Emitted, Object};

/// The SQL screen.
#[derive(Debug, Clone, Default)]
pub struct Sql {
    /// The marked object among those shown.
    pub at: usize,
    /// First line of its statement shown.
    pub scroll: usize,
    /// What is being typed, while it is.
    pub search: Option<Field>,
    /// Only objects whose name or statement holds this are listed.
    pub filter: String,
}

impl Sql {
    /// The objects listed now.
    pub fn shown<'a>(&self, emitted: &'a Emitted) -> Vec<&'a Object> {
        let wanted = self.search.as_ref().map_or(&self.filter, |field| &field.text).to_lowercase();
        emitted
            .objects
            .iter()
            .filter(|o| {
                wanted.is_empty()
                    || o.name.to_lowercase().contains(&wanted)
                    || o.kind.word().contains(&wanted)
                    || o.sql.to_lowercase().contains(&wanted)
            })
            .collect()
    }
}
