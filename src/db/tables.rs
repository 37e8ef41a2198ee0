//! Tables with their columns, keys and foreign keys, as `rowdeck init` drafts from them.

use std::collections::BTreeMap;

use tokio_postgres::Client;

use super::error::DbError;
use crate::compiler::draft::{Column, ForeignKey, Table};
use crate::compiler::ident::{Ident, QualName};

/// Schemas of the server and of ours are nobody's data.
const OURS: [&str; 3] = ["authz", "authz_gen", "authz_int"];

/// Reads the tables of these schemas, of all where none is named, by name. Partitions are their parent's.
pub async fn read(client: &Client, schemas: &[String]) -> Result<Vec<Table>, DbError> {
    let mut tables = columns(client, schemas).await?;
    // A foreign key names its columns in the order of the key it points to.
    let keys = client
        .query(
            "SELECT k.conrelid, k.contype = 'p', n.nspname::text, f.relname::text, k.confdeltype = 'c',
                    ARRAY(SELECT a.attname::text FROM unnest(k.conkey, k.confkey) WITH ORDINALITY AS c(own, other, place)
                          JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = c.own
                          ORDER BY CASE WHEN k.contype = 'f' THEN array_position(p.conkey, c.other) ELSE c.place END),
                    k.contype = 'f' AND p.conkey @> k.confkey AND p.conkey <@ k.confkey
             FROM pg_catalog.pg_constraint k
             LEFT JOIN pg_catalog.pg_class f ON f.oid = k.confrelid
             LEFT JOIN pg_catalog.pg_namespace n ON n.oid = f.relnamespace
             LEFT JOIN pg_catalog.pg_constraint p ON p.conrelid = k.confrelid AND p.contype = 'p'
             WHERE k.contype IN ('p', 'f') ORDER BY k.conrelid, k.conname",
            &[],
        )
        .await?;
    for row in &keys {
        let Some(table) = tables.get_mut(&row.try_get::<_, u32>(0)?) else { continue };
        let columns: Vec<Ident> = row.try_get::<_, Vec<String>>(5)?.into_iter().map(Ident::new).collect();
        if row.try_get(1)? {
            table.key = columns;
            continue;
        }
        let (Some(schema), Some(name)) = (row.try_get::<_, Option<String>>(2)?, row.try_get::<_, Option<String>>(3)?)
        else {
            continue;
        };
        table.foreign.push(ForeignKey {
            columns,
            table: QualName::new(schema, name),
            to_key: row.try_get::<_, Option<bool>>(6)?.unwrap_or(false),
            cascades: row.try_get(4)?,
        });
    }
    let mut tables: Vec<Table> = tables.into_values().collect();
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(tables)
}

/// Tables with their columns alone, by their numbers in the catalog.
async fn columns(client: &Client, schemas: &[String]) -> Result<BTreeMap<u32, Table>, DbError> {
    let rows = client
        .query(
            "SELECT c.oid, n.nspname::text, c.relname::text, a.attname::text,
                    pg_catalog.format_type(coalesce(nullif(t.typbasetype, 0), t.oid), NULL), a.attnotnull
             FROM pg_catalog.pg_class c
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
             JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
             JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
             WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = 'p'
               AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> ALL ($1::text[])
               AND (cardinality($2::text[]) = 0 OR n.nspname = ANY ($2::text[]))
             ORDER BY c.oid, a.attnum",
            &[&OURS.as_slice(), &schemas],
        )
        .await?;
    let mut tables: BTreeMap<u32, Table> = BTreeMap::new();
    for row in &rows {
        let name = QualName::new(row.try_get::<_, String>(1)?, row.try_get::<_, String>(2)?);
        let table = tables.entry(row.try_get(0)?).or_insert_with(|| Table {
            name,
            columns: Vec::new(),
            key: Vec::new(),
            foreign: Vec::new(),
        });
        table.columns.push(Column {
            name: Ident::new(row.try_get::<_, String>(3)?),
            ty: row.try_get(4)?,
            required: row.try_get(5)?,
        });
    }
    Ok(tables)
}
