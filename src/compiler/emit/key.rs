//! Keys in statements. A key has one column or several, and everything generated keeps to this:
//!
//! - views and sets of ids have a column `id`, or `id1 .. idn` for a key of several columns, so that ids are compared
//!   natively and indexes serve;
//! - where one value must stand for an id (arrays, arguments, what the API takes and gives) it is the column's own type,
//!   or the composite type `authz_gen.key__TYPE`, whose text is the API's id: `(1,42)`.

use crate::compiler::ident::Ident;
use crate::compiler::model::{KeyType, TypeDef};

use super::names;

/// The key of a type.
#[derive(Debug, Clone, Copy)]
pub struct Key<'m> {
    def: &'m TypeDef,
}

/// One id in a statement: an SQL text for each column of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Id(Vec<String>);

/// The type in which generated code holds a key column. `varchar` is held as `text`, to which PostgreSQL converts it
/// without work and by whose operators it compares it anyway.
pub fn held_type(ty: KeyType) -> &'static str {
    match ty {
        KeyType::Varchar => KeyType::Text.sql(),
        other => other.sql(),
    }
}

impl<'m> Key<'m> {
    /// The key of a type.
    pub fn new(def: &'m TypeDef) -> Self {
        Key { def }
    }

    /// Whether it has several columns.
    pub fn is_composite(&self) -> bool {
        self.def.key.len() != 1
    }

    /// The SQL type of one value.
    pub fn sql(&self) -> String {
        match self.def.key.as_slice() {
            [one] => held_type(one.ty).to_owned(),
            _ => names::key_type(self.def),
        }
    }

    /// The SQL types of its columns.
    pub fn part_types(&self) -> Vec<&'static str> {
        self.def.key.iter().map(|column| held_type(column.ty)).collect()
    }

    /// Names for its columns: `prefix`, or `prefix1 .. prefixn`.
    pub fn named(&self, prefix: &str) -> Vec<String> {
        match self.def.key.len() {
            1 => vec![prefix.to_owned()],
            n => (1..=n).map(|at| format!("{prefix}{at}")).collect(),
        }
    }

    /// The id of the row `row` of the type's own table.
    pub fn of_row(&self, row: &str) -> Id {
        Id(self.def.key.iter().map(|key| format!("{row}.{}", key.column)).collect())
    }

    /// The id in columns called `prefix` (or `prefix1 ..`) of `alias`.
    pub fn of_columns(&self, alias: &str, prefix: &str) -> Id {
        Id(self.named(prefix).into_iter().map(|name| format!("{alias}.{name}")).collect())
    }

    /// The id in a row of a generated view or set.
    pub fn of_view(&self, alias: &str) -> Id {
        self.of_columns(alias, "id")
    }

    /// The id that one value (SQL text of [`Key::sql`]) stands for.
    pub fn of_value(&self, value: &str) -> Id {
        if !self.is_composite() {
            return Id(vec![value.to_owned()]);
        }
        Id(self.named("id").into_iter().map(|name| format!("({value}).{name}")).collect())
    }

    /// The id that a text (SQL text) names, as the API takes it.
    pub fn of_text(&self, text: &str) -> Id {
        self.of_value(&format!("{text}::{}", self.sql()))
    }

    /// The id as one value of exactly [`Key::sql`].
    pub fn value(&self, id: &Id) -> String {
        if self.is_composite() {
            format!("ROW({})::{}", id.list(), self.sql())
        } else {
            format!("{}::{}", id.list(), self.sql())
        }
    }

    /// The id as the API's text.
    pub fn text(&self, id: &Id) -> String {
        if self.is_composite() { format!("ROW({})::text", id.list()) } else { format!("{}::text", id.list()) }
    }

    /// A list for SELECT in which the id's columns are called `prefix ..` and have exactly the key's types: what a
    /// function returns, and the arms of a recursive query, must not depend on the type of a column that refers to it.
    pub fn typed(&self, id: &Id, prefix: &str) -> String {
        let parts = id.0.iter().zip(self.part_types()).zip(self.named(prefix));
        parts.map(|((part, ty), name)| format!("{part}::{ty} AS {name}")).collect::<Vec<_>>().join(", ")
    }

    /// A list for SELECT in which the id's columns are called `prefix ..`, of whatever type they are, so that an index
    /// on them serves a comparison from outside.
    pub fn plain(&self, id: &Id, prefix: &str) -> String {
        let parts = id.0.iter().zip(self.named(prefix));
        parts.map(|(part, name)| format!("{part} AS {name}")).collect::<Vec<_>>().join(", ")
    }

    /// The id is among those of an array of [`Key::sql`].
    pub fn among(&self, id: &Id, array: &str) -> String {
        if !self.is_composite() {
            return format!("{} = ANY ({array})", id.list());
        }
        // Composite values compare NULL as equal to NULL, and nothing here may.
        format!("({} = ANY ({array}) AND {})", self.value(id), id.is_there())
    }

    /// The id is among those of an array, in a query that starts from the array: an index on the id's columns serves.
    pub fn starts_among(&self, id: &Id, array: &str) -> String {
        if !self.is_composite() {
            return self.among(id, array);
        }
        format!("{} IN (SELECT {} FROM unnest({array}) m)", id.row(), self.of_columns("m", "id").list())
    }

    /// The id is among those that a generated set returns.
    pub fn in_set(&self, id: &Id, function: &str) -> String {
        if self.is_composite() {
            format!("({} IN (SELECT {} FROM {function}() s))", id.row(), self.of_view("s").list())
        } else {
            format!("({} IN (SELECT {function}()))", id.list())
        }
    }

    /// What a set of ids is declared to return.
    pub fn set_of(&self) -> String {
        format!("SETOF {}", self.sql())
    }

    /// The statement that makes the composite type; `None` for a key of one column.
    pub fn create_type(&self) -> Option<String> {
        let columns: Vec<String> =
            self.named("id").into_iter().zip(self.part_types()).map(|(name, ty)| format!("{name} {ty}")).collect();
        self.is_composite().then(|| format!("CREATE TYPE {} AS ({})", self.sql(), columns.join(", ")))
    }
}

impl Id {
    /// An id in the columns `columns` of `alias`.
    pub fn of(alias: &str, columns: &[Ident]) -> Id {
        Id(columns.iter().map(|column| format!("{alias}.{column}")).collect())
    }

    /// An id of one column that this SQL text gives.
    pub fn one(text: impl Into<String>) -> Id {
        Id(vec![text.into()])
    }

    /// Its columns, joined by commas.
    pub fn list(&self) -> String {
        self.0.join(", ")
    }

    /// Its column, or its columns in parentheses: for comparisons of rows.
    pub fn row(&self) -> String {
        if self.0.len() == 1 { self.list() } else { format!("({})", self.list()) }
    }

    /// Both are the same id: NULL where either is.
    pub fn equals(&self, other: &Id) -> String {
        let pairs: Vec<String> = self.0.iter().zip(&other.0).map(|(a, b)| format!("{a} = {b}")).collect();
        if pairs.len() == 1 { pairs.join("") } else { format!("({})", pairs.join(" AND ")) }
    }

    /// Whether there is an id: no column of it is NULL.
    pub fn is_there(&self) -> String {
        self.0.iter().map(|part| format!("{part} IS NOT NULL")).collect::<Vec<_>>().join(" AND ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::ident::QualName;
    use crate::compiler::model::KeyColumn;
    use crate::compiler::span::Span;

    fn def(columns: &[(&str, KeyType)]) -> TypeDef {
        TypeDef {
            name: "team".into(),
            table: QualName::new("app", "teams"),
            key: columns.iter().map(|(name, ty)| KeyColumn { column: Ident::new(*name), ty: *ty }).collect(),
            condition: None,
            signs_in: false,
            relations: Vec::new(),
            permissions: Vec::new(),
            roles: None,
            span: Span::default(),
        }
    }

    #[test]
    fn a_key_of_one_column_is_that_column() {
        let def = def(&[("Code", KeyType::Varchar)]);
        let key = Key::new(&def);
        let id = key.of_row("this");
        assert_eq!(key.sql(), "text");
        assert_eq!(key.of_view("v").equals(&id), "v.id = this.\"Code\"");
        assert_eq!(key.of_text("$1").list(), "$1::text");
        assert_eq!(key.typed(&id, "id"), "this.\"Code\"::text AS id");
        assert_eq!(key.among(&id, "a"), "this.\"Code\" = ANY (a)");
        assert_eq!(key.create_type(), None);
    }

    #[test]
    fn a_key_of_two_columns_is_compared_column_by_column() {
        let def = def(&[("org_id", KeyType::Bigint), ("slug", KeyType::Text)]);
        let key = Key::new(&def);
        let id = Id::of("l", &[Ident::new("o"), Ident::new("s")]);
        assert_eq!(key.sql(), "authz_gen.\"key__team\"");
        assert_eq!(key.of_view("v").equals(&id), "(v.id1 = l.\"o\" AND v.id2 = l.\"s\")");
        assert_eq!(key.of_text("$1").list(), "($1::authz_gen.\"key__team\").id1, ($1::authz_gen.\"key__team\").id2");
        assert_eq!(key.plain(&id, "id"), "l.\"o\" AS id1, l.\"s\" AS id2");
        assert!(key.among(&id, "a").contains("l.\"s\" IS NOT NULL"));
        assert_eq!(key.create_type().as_deref(), Some("CREATE TYPE authz_gen.\"key__team\" AS (id1 bigint, id2 text)"));
    }
}
