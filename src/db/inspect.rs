//! Who can see what, and why: the questions behind the Inspect screen and `can`, `list`, `who`, `why`, `perms`.
//!
//! What a person sees is never worked out here. It is asked of PostgreSQL, as the app role with that person signed in,
//! in a read-only transaction that is rolled back; so the answer is the one the app would get.

use serde::Serialize;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use super::as_role::{self, Principal};
use super::connect::Session;
use super::error::DbError;
use super::why::Why;
use crate::compiler::ident::Ident;
use crate::compiler::model::{KeyType, Model, TypeDef};

/// The longest a question may take. A question that takes longer is a finding by itself.
const TIMEOUT: &str = "20s";

/// The longest label that is read, in characters.
const LABEL_CHARACTERS: usize = 120;

/// Columns that name a row for people, in the order they are looked for.
const LABEL_COLUMNS: &[&str] = &["name", "title", "label", "subject", "email", "slug"];

/// An object or a person, with the name its row carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Named {
    /// The policy's type.
    #[serde(rename = "type")]
    pub ty: String,
    /// The id, as text.
    pub id: String,
    /// A name from the row, when it has one.
    pub label: Option<String>,
}

/// A page of objects, in key order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct Page {
    /// The objects.
    pub rows: Vec<Named>,
    /// Where the next page starts; `None` at the end.
    pub after: Option<String>,
}

/// Asks questions of one policy in one database.
#[derive(Debug, Clone, Copy)]
pub struct Inspector<'a> {
    client: &'a Client,
    model: &'a Model,
}

/// The policy in force, compiled from the text that the database keeps with it.
pub async fn model_in_force(session: &Session) -> Result<Model, DbError> {
    let (name, text) = super::kept::text(session).await?;
    let compiled = super::kept::compile(&name, &text);
    compiled.model.ok_or(DbError::Policy(compiled.diagnostics))
}

impl<'a> Inspector<'a> {
    /// Asks through `client` about `model`, which must be the policy in force.
    pub fn new(client: &'a Client, model: &'a Model) -> Self {
        Inspector { client, model }
    }

    pub(super) fn model(&self) -> &'a Model {
        self.model
    }

    pub(super) fn client(&self) -> &'a Client {
        self.client
    }

    /// May `who` do `permission` on the object?
    pub async fn can(&self, who: &Principal, ty: &str, id: &str, permission: &str) -> Result<bool, DbError> {
        self.check_permission(ty, permission)?;
        self.check_ids(who, ty, id)?;
        self.as_principal(who, async {
            let asked = "SELECT authz.can($1::text, $2::text, $3::text)";
            let row = self.client.query_one(asked, &[&ty, &id, &permission]).await?;
            Ok(row.try_get::<_, Option<bool>>(0)?.unwrap_or(false))
        })
        .await
    }

    /// The permissions `who` holds on the object.
    pub async fn perms(&self, who: &Principal, ty: &str, id: &str) -> Result<Vec<String>, DbError> {
        self.type_named(ty)?;
        self.as_principal(who, async {
            let rows = self.client.query("SELECT unnest(authz.perms($1::text, $2::text))", &[&ty, &id]).await?;
            rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
        })
        .await
    }

    /// A page of the ids on which `who` holds `permission`, by `authz.list`.
    pub async fn list(
        &self,
        who: &Principal,
        ty: &str,
        permission: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page, DbError> {
        self.check_permission(ty, permission)?;
        let more = i32::try_from(limit.saturating_add(1)).unwrap_or(i32::MAX);
        self.as_principal(who, async {
            let asked = "SELECT id::text FROM authz.list($1::text, $2::text, $3::text, $4) AS l(id)";
            let rows = self.client.query(asked, &[&ty, &permission, &after, &more]).await?;
            let rows = rows
                .iter()
                .map(|row| Ok(Named { ty: ty.to_owned(), id: row.try_get(0)?, label: None }))
                .collect::<Result<Vec<_>, DbError>>()?;
            Ok(page(rows, limit))
        })
        .await
    }

    /// A page of the rows of `ty` that `who` sees, as row-level security gives them.
    pub async fn sees(&self, who: &Principal, ty: &str, after: Option<&str>, limit: u32) -> Result<Page, DbError> {
        let def = self.type_named(ty)?;
        let label = self.label_column(def).await?;
        self.as_principal(who, self.rows(def, label.as_ref(), after, limit)).await
    }

    /// A page of all objects of `ty`, with the session's own rights.
    pub async fn browse(&self, ty: &str, after: Option<&str>, limit: u32) -> Result<Page, DbError> {
        let def = self.type_named(ty)?;
        let label = self.label_column(def).await?;
        self.in_transaction(self.rows(def, label.as_ref(), after, limit)).await
    }

    /// Who holds `permission` on the object, at most `limit` of them; `after` is `Some` when there are more. People of
    /// the user type carry their rows' names; `anyone`, `everyone` (who is signed
    /// in as a user; the label says who does not hold it), `nobody` (who is not signed in) and `link` are types of their own.
    pub async fn who(&self, ty: &str, id: &str, permission: &str, limit: u32) -> Result<Page, DbError> {
        self.check_permission(ty, permission)?;
        self.check_ids(&Principal::Nobody, ty, id)?;
        let Some(user) = self.model.ty(self.model.user) else { return Err(DbError::NoPolicy(String::new())) };
        let label = self.label_column(user).await?;
        // The people are cut before their rows are joined, so that only so many rows are read.
        let asked = format!(
            "SELECT w.subject_kind, w.subject_id, coalesce({}, 'except ' || array_to_string(w.exceptions, ', '))
             FROM (SELECT * FROM authz.who($1::text, $2::text, $3::text) LIMIT {}) w
             LEFT JOIN {} AS t ON w.subject_kind = $4 AND {} = w.subject_id
             ORDER BY w.subject_kind <> $4 DESC, length(w.subject_id), w.subject_id",
            label_text(label.as_ref()),
            limit.saturating_add(1),
            user.table,
            key_text(user)
        );
        let rows = self
            .in_transaction(async { Ok(self.client.query(&asked, &[&ty, &id, &permission, &user.name]).await?) })
            .await?;
        let rows = rows
            .iter()
            .map(|row| Ok(Named { ty: row.try_get(0)?, id: row.try_get(1)?, label: row.try_get(2)? }))
            .collect::<Result<Vec<_>, DbError>>()?;
        Ok(page(rows, limit))
    }

    /// Why `who` holds `permission` on the object, or what is missing.
    pub async fn why(&self, who: &Principal, ty: &str, id: &str, permission: &str) -> Result<Why, DbError> {
        self.check_permission(ty, permission)?;
        self.check_ids(who, ty, id)?;
        self.in_transaction(why_within(self.client, who, ty, id, permission)).await
    }

    /// The object's row, with the session's own rights; `None` when there is no such row.
    pub async fn object(&self, ty: &str, id: &str) -> Result<Option<Named>, DbError> {
        let def = self.type_named(ty)?;
        let label = self.label_column(def).await?;
        let key = key_parts(def, id)?;
        let conditions: Vec<String> = (1..)
            .zip(&def.key)
            .map(|(at, column)| format!("t.{} = ${at}::text::{}", column.column, column.ty.sql()))
            .collect();
        let asked = format!(
            "SELECT {}, {} FROM {} AS t WHERE {}",
            key_text(def),
            label_text(label.as_ref()),
            def.table,
            conditions.join(" AND ")
        );
        let parameters: Vec<&(dyn ToSql + Sync)> = key.iter().map(|part| part as &(dyn ToSql + Sync)).collect();
        let row = self.in_transaction(async { Ok(self.client.query_opt(&asked, &parameters).await?) }).await?;
        row.map(|row| Ok(Named { ty: ty.to_owned(), id: row.try_get(0)?, label: row.try_get(1)? })).transpose()
    }

    /// True when there certainly is no such row. A session that may not read all rows of the table cannot tell.
    pub async fn is_missing(&self, ty: &str, id: &str) -> Result<bool, DbError> {
        let table = &self.type_named(ty)?.table;
        let reads_all = self
            .client
            .query_opt(
                "SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                 WHERE n.nspname = $1 AND c.relname = $2 AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
                   AND pg_catalog.has_table_privilege(c.oid, 'SELECT') AND NOT pg_catalog.row_security_active(c.oid)",
                &[&table.schema.as_str(), &table.name.as_str()],
            )
            .await?
            .is_some();
        Ok(reads_all && self.object(ty, id).await?.is_none())
    }

    async fn rows(
        &self,
        def: &TypeDef,
        label: Option<&Ident>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page, DbError> {
        let columns = def.key.iter().map(|key| format!("t.{}", key.column)).collect::<Vec<_>>().join(", ");
        let start = match after {
            None => Vec::new(),
            Some(after) => key_parts(def, after)?,
        };
        let from = if start.is_empty() {
            String::new()
        } else {
            let values: Vec<String> =
                (1..).zip(&def.key).map(|(at, column)| format!("${at}::text::{}", column.ty.sql())).collect();
            format!(" WHERE ({columns}) > ({})", values.join(", "))
        };
        let asked = format!(
            "SELECT {}, {} FROM {} AS t{from} ORDER BY {columns} LIMIT {}",
            key_text(def),
            label_text(label),
            def.table,
            limit.saturating_add(1)
        );
        let parameters: Vec<&(dyn ToSql + Sync)> = start.iter().map(|part| part as &(dyn ToSql + Sync)).collect();
        let rows = self.client.query(&asked, &parameters).await?;
        let rows = rows
            .iter()
            .map(|row| Ok(Named { ty: def.name.clone(), id: row.try_get(0)?, label: row.try_get(1)? }))
            .collect::<Result<Vec<_>, DbError>>()?;
        Ok(page(rows, limit))
    }

    /// The column that names a row of the type for people.
    pub(super) async fn label_column(&self, def: &TypeDef) -> Result<Option<Ident>, DbError> {
        let row = self
            .client
            .query_opt(
                "SELECT a.attname::text FROM pg_catalog.pg_attribute a
                 JOIN pg_catalog.pg_class c ON c.oid = a.attrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                 JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
                 WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped
                   AND t.typcategory = 'S' AND lower(a.attname) = ANY ($3)
                 ORDER BY array_position($3, lower(a.attname)) LIMIT 1",
                &[&def.table.schema.as_str(), &def.table.name.as_str(), &LABEL_COLUMNS],
            )
            .await?;
        row.map(|row| Ok(Ident::new(row.try_get::<_, String>(0)?))).transpose()
    }

    async fn as_principal<T>(
        &self,
        who: &Principal,
        work: impl Future<Output = Result<T, DbError>>,
    ) -> Result<T, DbError> {
        if let Principal::Of { ty, .. } = who {
            let def = self.type_named(ty)?;
            if !def.signs_in {
                return Err(DbError::Usage(format!("a {} does not sign in", def.name)));
            }
        }
        as_role::require_switch(self.client, &self.model.app_role).await?;
        self.in_transaction(async {
            as_role::become_principal(self.client, &self.model.app_role, who).await?;
            work.await
        })
        .await
    }

    /// Runs `work` in a read-only transaction that is rolled back.
    pub(super) async fn in_transaction<T>(&self, work: impl Future<Output = Result<T, DbError>>) -> Result<T, DbError> {
        self.client.batch_execute(&format!("BEGIN READ ONLY; SET LOCAL statement_timeout = '{TIMEOUT}'")).await?;
        let result = work.await;
        let rolled_back = self.client.batch_execute("ROLLBACK").await;
        let value = result?;
        rolled_back?;
        Ok(value)
    }

    pub(super) fn type_named(&self, ty: &str) -> Result<&'a TypeDef, DbError> {
        let found = self.model.type_named(ty).and_then(|id| self.model.ty(id));
        found.ok_or_else(|| {
            let types: Vec<&str> = self.model.types.iter().map(|t| t.name.as_str()).collect();
            DbError::Usage(format!("the policy has no type \"{}\"; it has {}", crate::text::line(ty), types.join(", ")))
        })
    }

    fn check_ids(&self, who: &Principal, ty: &str, id: &str) -> Result<(), DbError> {
        if let Principal::Of { ty, id } = who {
            check_id(self.type_named(ty)?, id)?;
        }
        check_id(self.type_named(ty)?, id)
    }

    fn check_permission(&self, ty: &str, permission: &str) -> Result<(), DbError> {
        let def = self.type_named(ty)?;
        if def.permission_named(permission).is_some() {
            return Ok(());
        }
        let known: Vec<&str> = def.permissions.iter().map(|p| p.name.as_str()).collect();
        let has = if known.is_empty() { "no permissions".to_owned() } else { known.join(", ") };
        let asked = crate::text::line(permission);
        Err(DbError::Usage(format!("type \"{ty}\" has no permission \"{asked}\"; it has {has}")))
    }
}

fn page(mut rows: Vec<Named>, limit: u32) -> Page {
    let more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let after = if more { rows.last().map(|row| row.id.clone()) } else { None };
    Page { rows, after }
}

/// The id as text: the one key column, or the row `(1,42)`.
pub(super) fn key_text(def: &TypeDef) -> String {
    let columns: Vec<String> = def.key.iter().map(|key| format!("t.{}", key.column)).collect();
    match columns.as_slice() {
        [one] => format!("{one}::text"),
        several => format!("ROW({})::text", several.join(", ")),
    }
}

pub(super) fn label_text(label: Option<&Ident>) -> String {
    label.map_or_else(|| "NULL::text".to_owned(), |column| format!("left(t.{column}::text, {LABEL_CHARACTERS})"))
}

/// The values of the key columns in an id's text.
pub(super) fn key_parts(def: &TypeDef, id: &str) -> Result<Vec<String>, DbError> {
    let parts = if def.key.len() == 1 { vec![id.to_owned()] } else { record_parts(id) };
    if parts.len() == def.key.len() {
        return Ok(parts);
    }
    let columns: Vec<String> = def.key.iter().map(|key| key.column.plain()).collect();
    let shown = crate::text::line(id);
    Err(DbError::Usage(format!("\"{shown}\" is not an id of a {}; write ({})", def.name, columns.join(","))))
}

/// Why, inside the transaction that the session is in; signs in for the rest of it.
pub(super) async fn why_within(
    client: &Client,
    who: &Principal,
    ty: &str,
    id: &str,
    permission: &str,
) -> Result<Why, DbError> {
    // As ourselves, not as the app role: it answers for whoever is signed in, and shows rows that only the operator may
    // see.
    as_role::sign_in(client, who).await?;
    let asked = "SELECT authz.explain($1::text, $2::text, $3::text)";
    let row = client.query_one(asked, &[&ty, &id, &permission]).await?;
    let answer: serde_json::Value = row.try_get(0)?;
    serde_json::from_value(answer).map_err(|e| DbError::Unexpected(format!("authz.explain: {e}")))
}

/// Fails with the id when a key of this type cannot be so: the server's own words would name neither.
fn check_id(def: &TypeDef, id: &str) -> Result<(), DbError> {
    for (part, column) in key_parts(def, id)?.iter().zip(&def.key) {
        let hex = |c: char| c.is_ascii_hexdigit() || matches!(c, '-' | '{' | '}');
        let fits = match column.ty {
            KeyType::Bigint => part.trim().parse::<i64>().is_ok(),
            KeyType::Integer => part.trim().parse::<i32>().is_ok(),
            KeyType::Smallint => part.trim().parse::<i16>().is_ok(),
            KeyType::Uuid => !part.is_empty() && part.trim().chars().all(hex),
            KeyType::Text | KeyType::Varchar => true,
        };
        if !fits {
            let (id, part) = (crate::text::line(id), crate::text::line(part));
            let part = if id == part { String::new() } else { format!(" (\"{part}\" in it)") };
            return Err(DbError::Usage(format!(
                "\"{id}\" is not an id of a {}{part}: {} is of type {}",
                def.name,
                column.column.plain(),
                column.ty.sql()
            )));
        }
    }
    Ok(())
}

/// The fields of a row's text as PostgreSQL writes it: `(1,"a ""b""")`.
fn record_parts(text: &str) -> Vec<String> {
    let Some(inner) = text.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) else { return Vec::new() };
    let mut parts = vec![String::new()];
    let mut quoted = false;
    let mut chars = inner.chars().peekable();
    while let Some(c) = chars.next() {
        let plain = match c {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => Some('"'),
            '"' => {
                quoted = !quoted;
                None
            }
            '\\' => chars.next(),
            ',' if !quoted => {
                parts.push(String::new());
                None
            }
            c => Some(c),
        };
        if let Some(last) = parts.last_mut() {
            last.extend(plain);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_postgresql_writes_it() {
        assert_eq!(record_parts("(1,42)"), ["1", "42"]);
        assert_eq!(record_parts(r#"(7,"a ""b"", c")"#), ["7", "a \"b\", c"]);
        assert_eq!(record_parts(r#"(7,"a\\b")"#), ["7", "a\\b"]);
        assert!(record_parts("42").is_empty());
    }

    #[test]
    fn a_page_says_where_the_next_one_starts() {
        let row = |id: &str| Named { ty: "file".into(), id: id.into(), label: None };
        let full = page(vec![row("1"), row("2"), row("3")], 2);
        assert_eq!((full.rows.len(), full.after.as_deref()), (2, Some("2")));
        assert_eq!(page(vec![row("1")], 2).after, None);
    }
}
