//! The facts a policy decides from, read from a database in one snapshot, as the role that is connected: it must see
//! every row, so a table whose rules would hide some from it is an error.

use tokio_postgres::{Client, Row};

use super::error::DbError;
use crate::compiler::emit::share_table;
use crate::compiler::evaluate::facts::{Datum, Facts, Holder, Share, Table};
use crate::compiler::evaluate::{self, CannotEvaluate};
use crate::compiler::ident::{Ident, QualName};
use crate::compiler::model::{Model, Place, RelId, Source, Subject, TypeId};

/// Facts, and the moment they are of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// What the tables and shares hold.
    pub facts: Facts,
    /// Microseconds since 1970.
    pub now: i64,
}

/// Reads what a policy decides from.
///
/// # Errors
/// What the server refuses; a table that is missing or hides rows from this role; a condition whose tables cannot be
/// told.
pub async fn read(client: &Client, model: &Model) -> Result<Snapshot, DbError> {
    let found = read_each(client, &[model]).await?.pop();
    found.ok_or_else(|| DbError::Unexpected("no facts were read".to_owned()))
}

/// The same for several policies, all of one moment.
///
/// # Errors
/// As [`read`].
pub async fn read_each(client: &Client, models: &[&Model]) -> Result<Vec<Snapshot>, DbError> {
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL row_security = off").await?;
    let found = read_all(client, models).await;
    // A failed read has failed for its own reason, whatever becomes of the rollback.
    let ended = client.batch_execute("ROLLBACK").await;
    let snapshots = found?;
    ended?;
    Ok(snapshots)
}

/// The same inside the transaction that the session is in, whatever it has done so far.
pub(super) async fn read_within(client: &Client, model: &Model) -> Result<Snapshot, DbError> {
    client.batch_execute("SAVEPOINT facts; SET LOCAL row_security = off").await?;
    let mut snapshots = read_all(client, &[model]).await?;
    client.batch_execute("ROLLBACK TO SAVEPOINT facts; RELEASE SAVEPOINT facts").await?;
    snapshots.pop().ok_or_else(|| DbError::Unexpected("no facts were read".to_owned()))
}

async fn read_all(client: &Client, models: &[&Model]) -> Result<Vec<Snapshot>, DbError> {
    let moment = "SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint";
    let now: i64 = client.query_one(moment, &[]).await?.try_get(0)?;
    let mut snapshots = Vec::new();
    for model in models {
        let mut facts = Facts { shares: shares(client, model).await?, ..Facts::default() };
        for (table, columns) in evaluate::needs(model).map_err(unknown)? {
            let found = read_table(client, &table, |name| columns.contains(name)).await?;
            let found = found.ok_or_else(|| DbError::Usage(format!("there is no table {}", table.plain())))?;
            facts.tables.insert(table, found);
        }
        snapshots.push(Snapshot { facts, now });
    }
    Ok(snapshots)
}

pub(super) fn unknown(error: CannotEvaluate) -> DbError {
    DbError::Usage(error.to_string())
}

/// How a column is read: as what, and by which SQL.
#[derive(Clone, Copy)]
enum Kind {
    Bool,
    Int,
    Text,
    Time,
    Other,
}

impl Kind {
    fn of(name: &str, class: &str) -> Kind {
        match (name, class) {
            ("bool", _) => Kind::Bool,
            ("int2" | "int4" | "int8", _) => Kind::Int,
            ("text" | "varchar" | "uuid", _) | (_, "e") => Kind::Text,
            ("timestamptz", _) => Kind::Time,
            _ => Kind::Other,
        }
    }

    fn select(self, column: &Ident) -> String {
        match self {
            Kind::Bool => format!("t.{column}::boolean"),
            Kind::Int => format!("t.{column}::bigint"),
            Kind::Text | Kind::Other => format!("t.{column}::text"),
            Kind::Time => format!(
                "CASE WHEN t.{column} = 'infinity' THEN {} WHEN t.{column} = '-infinity' THEN {} \
                 ELSE (extract(epoch FROM t.{column}) * 1000000)::bigint END",
                i64::MAX,
                i64::MIN + 1
            ),
        }
    }

    fn datum(self, row: &Row, at: usize) -> Result<Datum, DbError> {
        let found = match self {
            Kind::Bool => row.try_get::<_, Option<bool>>(at)?.map(Datum::Bool),
            Kind::Int => row.try_get::<_, Option<i64>>(at)?.map(Datum::Int),
            Kind::Text => row.try_get::<_, Option<String>>(at)?.map(Datum::Text),
            Kind::Time => row.try_get::<_, Option<i64>>(at)?.map(Datum::Time),
            Kind::Other => row.try_get::<_, Option<String>>(at)?.map(Datum::Other),
        };
        Ok(found.unwrap_or(Datum::Null))
    }
}

/// The wanted columns of a table; `None` when there is no such table.
async fn read_table(
    client: &Client,
    table: &QualName,
    wanted: impl Fn(&Ident) -> bool,
) -> Result<Option<Table>, DbError> {
    let sql = "SELECT a.attname::text, b.typname::text, b.typtype::text FROM pg_catalog.pg_attribute a
        JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
        JOIN pg_catalog.pg_type b ON b.oid = coalesce(nullif(t.typbasetype, 0), t.oid)
        WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";
    let described = client.query(sql, &[&table.schema.as_str(), &table.name.as_str()]).await?;
    if described.is_empty() {
        return Ok(None);
    }
    let mut columns = Vec::new();
    for row in &described {
        let name = Ident::new(row.try_get::<_, String>(0)?);
        if wanted(&name) {
            columns.push((name, Kind::of(row.try_get(1)?, row.try_get(2)?)));
        }
    }
    let selected: Vec<String> = columns.iter().map(|(name, kind)| kind.select(name)).collect();
    let rows = client.query(&format!("SELECT {} FROM {table} AS t", selected.join(", ")), &[]).await?;
    let read = |row: &Row| {
        columns.iter().enumerate().map(|(at, (_, kind))| kind.datum(row, at)).collect::<Result<Vec<_>, _>>()
    };
    let rows = rows.iter().map(read).collect::<Result<_, _>>()?;
    Ok(Some(Table { columns: columns.into_iter().map(|(name, _)| name).collect(), rows }))
}

/// Every share of every shared relation. A table of shares that is not there holds none: the policy may not have been
/// applied.
async fn shares(client: &Client, model: &Model) -> Result<Vec<Share>, DbError> {
    let mut found = Vec::new();
    for (at, def) in model.types.iter().enumerate() {
        for (rel, relation) in def.relations.iter().enumerate() {
            for source in relation.sources.iter().filter(|s| matches!(s.place, Place::Shared { .. })) {
                let Some(table) = share_table(model, TypeId(at), RelId(rel), source.subject) else { continue };
                let Some(rows) = read_table(client, &table, |_| true).await? else { continue };
                for row in &rows.rows {
                    found.extend(share(TypeId(at), RelId(rel), source, &rows, row));
                }
            }
        }
    }
    Ok(found)
}

fn share(ty: TypeId, relation: RelId, source: &Source, table: &Table, row: &[Datum]) -> Option<Share> {
    let value = |name: &str| table.column(&Ident::new(name)).and_then(|at| row.get(at));
    let key = |name: &str| -> Vec<Datum> {
        let numbered = |column: &Ident| column.as_str().strip_prefix(name).is_some_and(|n| n.parse::<u32>().is_ok());
        let columns = table.columns.iter().zip(row);
        columns.filter(|(column, _)| column.as_str() == name || numbered(column)).map(|(_, v)| v.clone()).collect()
    };
    let time = |name: &str| match value(name) {
        Some(Datum::Time(time)) => Some(*time),
        _ => None,
    };
    let with = match source.subject {
        Subject::Type(ty) => Holder::One(ty, key("subject")),
        Subject::Group(ty, relation) => Holder::Group(ty, relation, key("subject")),
        Subject::Everyone(ty) => Holder::Everyone(ty),
        Subject::Anyone => Holder::Anyone,
        Subject::Link => return None,
    };
    Some(Share {
        ty,
        relation,
        object: key("object"),
        with,
        starts: time("starts"),
        expires: time("expires"),
        caveat: None,
    })
}
