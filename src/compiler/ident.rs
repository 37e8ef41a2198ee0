//! The one type through which names reach SQL text.

use std::fmt;

/// A PostgreSQL identifier as the catalog stores it (already folded or unquoted). Its [`fmt::Display`] is always
/// quoted, so it may be written into SQL text as it is. PostgreSQL keeps 63 bytes of a name; longer ones never match
/// a catalog entry, and [`Ident::generated`] shortens ours.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ident(String);

/// The longest name PostgreSQL keeps, in bytes (`NAMEDATALEN - 1`).
pub const MAX_NAME_BYTES: usize = 63;

impl Ident {
    /// An identifier spelled exactly so in the catalog.
    pub fn new(name: impl Into<String>) -> Self {
        Ident(name.into())
    }

    /// A name for a generated object: `parts` joined by `_`, cut to 63 bytes with a hash of the whole when longer.
    pub fn generated(parts: &[&str]) -> Self {
        use sha2::{Digest, Sha256};
        let whole = parts.join("_");
        if whole.len() <= MAX_NAME_BYTES {
            return Ident(whole);
        }
        let hash = Sha256::digest(whole.as_bytes());
        let mut tail = String::from("_");
        for byte in hash.iter().take(6) {
            tail.push_str(&format!("{byte:02x}"));
        }
        let mut cut = MAX_NAME_BYTES - tail.len();
        while !whole.is_char_boundary(cut) {
            cut -= 1;
        }
        Ident(whole.get(..cut).unwrap_or("").to_owned() + &tail)
    }

    /// The bare name, as the catalog stores it: for parameters and for people, never for SQL text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Ident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.replace('"', "\"\""))
    }
}

/// A schema-qualified name; displays as `"schema"."name"`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QualName {
    /// The schema.
    pub schema: Ident,
    /// The object in it.
    pub name: Ident,
}

impl QualName {
    /// `schema.name`, both as the catalog stores them.
    pub fn new(schema: impl Into<String>, name: impl Into<String>) -> Self {
        QualName { schema: Ident::new(schema), name: Ident::new(name) }
    }

    /// The name for people: quoted only where it must be.
    pub fn plain(&self) -> String {
        format!("{}.{}", self.schema.plain(), self.name.plain())
    }
}

impl Ident {
    /// The name for people: quoted only where unquoted text would not name it.
    pub fn plain(&self) -> String {
        let simple = self
            .0
            .chars()
            .enumerate()
            .all(|(i, c)| c == '_' || c.is_ascii_lowercase() || (i > 0 && c.is_ascii_digit()));
        if simple && !self.0.is_empty() { self.0.clone() } else { self.to_string() }
    }
}

impl fmt::Display for QualName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// `text` as an SQL string literal, for the few places (function bodies, DO blocks) where a parameter cannot stand.
pub fn literal(text: &str) -> String {
    let body = text.replace('\'', "''");
    if body.contains('\\') { format!(" E'{}'", body.replace('\\', "\\\\")) } else { format!("'{body}'") }
}
