//! What lies directly under an object: the rows of other types, and of its own, that name it in a relation.

use tokio_postgres::types::ToSql;

use super::error::DbError;
use super::inspect::{Inspector, Named, key_parts, key_text, label_text};
use crate::compiler::ident::Ident;
use crate::compiler::model::{Model, Place, Subject, TypeDef};

/// A child, and the relation by which it is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// The object.
    pub object: Named,
    /// The relation's name.
    pub through: String,
}

/// Where a page goes on: the way, and the last id of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cursor {
    /// Which of the ways that lead to children.
    way: usize,
    /// The last id read of it.
    after: Option<String>,
}

impl Cursor {
    /// Reads what [`std::fmt::Display`] wrote.
    pub fn parse(text: &str) -> Option<Cursor> {
        let (way, after) = text.split_once(':')?;
        Some(Cursor { way: way.parse().ok()?, after: (!after.is_empty()).then(|| after.to_owned()) })
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.way, self.after.as_deref().unwrap_or(""))
    }
}

/// One source by which objects of a type name objects of another.
struct Way<'a> {
    child: &'a TypeDef,
    through: &'a str,
    place: &'a Place,
}

fn ways<'a>(model: &'a Model, ty: &str) -> Vec<Way<'a>> {
    let Some(parent) = model.type_named(ty) else { return Vec::new() };
    let mut found = Vec::new();
    for child in &model.types {
        for relation in child.relations.iter().filter(|relation| relation.to_objects) {
            let sources = relation.sources.iter().filter(|s| s.subject == Subject::Type(parent));
            for source in sources.filter(|s| matches!(s.place, Place::Column { .. } | Place::Table { .. })) {
                found.push(Way { child, through: &relation.name, place: &source.place });
            }
        }
    }
    found
}

impl Inspector<'_> {
    /// A page of what lies directly under an object, with the session's own rights, and where the next one starts.
    pub async fn children(
        &self,
        ty: &str,
        id: &str,
        from: &Cursor,
        limit: u32,
    ) -> Result<(Vec<Child>, Option<Cursor>), DbError> {
        let parent = self.type_named(ty)?;
        let key = key_parts(parent, id)?;
        let ways = ways(self.model(), ty);
        let mut found: Vec<Child> = Vec::new();
        let mut after = from.after.clone();
        for (number, way) in ways.iter().enumerate().skip(from.way) {
            let left = (limit as usize).saturating_sub(found.len());
            if left == 0 {
                return Ok((found, Some(Cursor { way: number, after: None })));
            }
            let mut rows = self.one_way(parent, &key, way, after.take().as_deref(), left + 1).await?;
            let more = rows.len() > left;
            rows.truncate(left);
            let last = rows.last().map(|row| row.id.clone());
            let through = way.through.to_owned();
            found.extend(rows.into_iter().map(|object| Child { object, through: through.clone() }));
            if more {
                return Ok((found, Some(Cursor { way: number, after: last })));
            }
        }
        Ok((found, None))
    }

    async fn one_way(
        &self,
        parent: &TypeDef,
        key: &[String],
        way: &Way<'_>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Named>, DbError> {
        let label = self.label_column(way.child).await?;
        let mut values: Vec<String> = key.to_vec();
        let equal = |alias: &str, columns: &[Ident]| -> String {
            let each = (1..).zip(columns).zip(&parent.key);
            let each = each.map(|((at, column), key)| format!("{alias}.{column} = ${at}::text::{}", key.ty.sql()));
            each.collect::<Vec<_>>().join(" AND ")
        };
        let keys = way.child.key.iter().map(|key| format!("t.{}", key.column)).collect::<Vec<_>>().join(", ");
        let (from, holds) = match way.place {
            Place::Column { columns } => (format!("{} AS t", way.child.table), equal("t", columns)),
            Place::Table { table, object, subject, .. } => {
                let on = object.iter().zip(&way.child.key).map(|(o, key)| format!("l.{o} = t.{}", key.column));
                let on = on.collect::<Vec<_>>().join(" AND ");
                (format!("{table} AS l JOIN {} AS t ON {on}", way.child.table), equal("l", subject))
            }
            _ => return Ok(Vec::new()),
        };
        let mut start = String::new();
        if let Some(after) = after {
            let parts = key_parts(way.child, after)?;
            let first = values.len() + 1;
            let list = (first..).zip(&way.child.key).map(|(at, key)| format!("${at}::text::{}", key.ty.sql()));
            start = format!(" AND ({keys}) > ({})", list.collect::<Vec<_>>().join(", "));
            values.extend(parts);
        }
        let asked = format!(
            "SELECT {}, {} FROM {from} WHERE {holds}{start} ORDER BY {keys} LIMIT {limit}",
            key_text(way.child),
            label_text(label.as_ref())
        );
        let parameters: Vec<&(dyn ToSql + Sync)> = values.iter().map(|v| v as &(dyn ToSql + Sync)).collect();
        let rows = self.in_transaction(async { Ok(self.client().query(&asked, &parameters).await?) }).await?;
        rows.iter()
            .map(|row| Ok(Named { ty: way.child.name.clone(), id: row.try_get(0)?, label: row.try_get(1)? }))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::Cursor;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        for cursor in [Cursor::default(), Cursor { way: 3, after: Some("(1,a:b)".into()) }] {
            assert_eq!(Cursor::parse(&cursor.to_string()).unwrap(), cursor);
        }
    }
}
