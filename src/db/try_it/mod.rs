//! One statement as somebody, always rolled back, and what it means when it touches no row.
//!
//! The statement travels as `DECLARE name CURSOR FOR statement` or `PREPARE name AS statement` in one message of the
//! extended protocol, so the server itself refuses a second statement and anything that is not a query or a change of
//! rows: no COMMIT, no SET ROLE, no DDL.

pub mod shape;

use std::time::Instant;

use futures_util::StreamExt as _;
use serde::Serialize;
use tokio_postgres::{Client, SimpleQueryMessage, SimpleQueryRow};

use self::shape::{Shape, Verb};
use super::as_role::{self, Principal};
use super::connect::Session;
use super::error::DbError;
use crate::compiler::Compiled;
use crate::compiler::model::{Command, Model, TypeDef};

/// What is read of a result at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Rows.
    pub rows: usize,
    /// Bytes in all.
    pub bytes: usize,
    /// Characters of a cell.
    pub cell: usize,
}

impl Caps {
    /// For a screen.
    pub const SCREEN: Caps = Caps { rows: 1_000, bytes: 1 << 20, cell: 500 };
}

/// The longest the statement may run, and wait for a lock: it must not keep others waiting.
const LIMITS: &str = "SET LOCAL statement_timeout = '30s'; SET LOCAL lock_timeout = '2s'; \
                      SET LOCAL idle_in_transaction_session_timeout = '60s'";
const CURSOR: &str = "DECLARE rowdeck_try NO SCROLL CURSOR FOR ";
const PREPARE: &str = "PREPARE rowdeck_try AS ";

/// What a statement did before it was rolled back.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct Tried {
    /// The result's columns; none for a statement that returns no rows.
    pub columns: Vec<String>,
    /// Rows, as text; `None` is NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// Why there may be more rows than these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
    /// Rows returned or changed.
    pub touched: u64,
    /// How long the server took, with the way there and back.
    pub seconds: f64,
    /// Why the server refused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The SQLSTATE of the refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sqlstate: Option<String>,
    /// For no row: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apart: Option<Apart>,
}

/// Why a statement touched no row, or was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "why")]
pub enum Apart {
    /// Nobody has such a row.
    NoSuchRow,
    /// There are such rows, and they do not see them.
    NotVisible {
        /// The rows, at most a few.
        rows: Vec<String>,
        /// The rules that decide, as the policy says them.
        rules: Vec<String>,
    },
    /// They see the rows and may not do this to them.
    NotAllowed {
        /// The rows, at most a few.
        rows: Vec<String>,
        /// The rules that decide, as the policy says them.
        rules: Vec<String>,
    },
    /// It cannot be told.
    Unknown {
        /// Why not.
        because: String,
    },
}

impl Apart {
    /// In words, a line each.
    pub fn lines(&self) -> Vec<String> {
        let list = |rows: &[String]| rows.join(", ");
        let mut lines = Vec::new();
        match self {
            Apart::NoSuchRow => lines.push("no such row: the condition holds on no row, whoever asks".to_owned()),
            Apart::NotVisible { rows, rules } => {
                lines.push(format!("not visible: there are such rows ({}), and they see none of them", list(rows)));
                lines.extend(rules.iter().map(|rule| format!("decided by {rule}")));
            }
            Apart::NotAllowed { rows, rules } => {
                lines.push(format!("not allowed: they see such rows ({}) and may not do this to them", list(rows)));
                lines.extend(rules.iter().map(|rule| format!("decided by {rule}")));
            }
            Apart::Unknown { because } => lines.push(format!("why not cannot be told: {because}")),
        }
        lines.iter().map(|line| crate::text::line(line).into_owned()).collect()
    }
}

/// Runs `statement` as `who`, with its changes where `writes` says so, and rolls it back.
pub async fn run(
    session: &Session,
    policy: &Compiled,
    who: &Principal,
    statement: &str,
    writes: bool,
    caps: Caps,
) -> Result<Tried, DbError> {
    let Some(model) = &policy.model else { return Err(DbError::Policy(policy.diagnostics.clone())) };
    if let Principal::Of { ty, .. } = who
        && model.type_named(ty).and_then(|id| model.ty(id)).is_none_or(|def| !def.signs_in)
    {
        return Err(DbError::Usage(format!("no type \"{}\" of the policy in force signs in", crate::text::line(ty))));
    }
    let statement = statement.trim().trim_end_matches(';').trim_end();
    if statement.is_empty() {
        return Err(DbError::Usage("there is no statement".to_owned()));
    }
    let client = &session.client;
    as_role::require_switch(client, &model.app_role).await?;
    let begin = if writes { "BEGIN READ WRITE" } else { "BEGIN READ ONLY" };
    client.batch_execute(&format!("{begin}; {LIMITS}")).await?;
    let done = tried(session, model, who, statement, caps).await;
    // Also after an error; a session that is lost rolls back by itself.
    let rolled_back = client.batch_execute("ROLLBACK").await;
    if rolled_back.is_ok() {
        forget(client).await?;
    }
    let mut tried = done?;
    rolled_back?;
    let by_the_rules = tried.sqlstate.as_deref() == Some("42501");
    if (tried.touched == 0 && tried.refused.is_none()) || by_the_rules {
        tried.apart = apart(client, policy, model, who, statement, by_the_rules).await?;
    }
    Ok(tried)
}

/// A prepared statement outlives its transaction; it may not have come to be one.
async fn forget(client: &Client) -> Result<(), DbError> {
    match client.batch_execute("DEALLOCATE rowdeck_try").await.map_err(DbError::from) {
        Err(error) if error.sqlstate() != Some("26000") => Err(error),
        _ => Ok(()),
    }
}

async fn tried(
    session: &Session,
    model: &Model,
    who: &Principal,
    statement: &str,
    caps: Caps,
) -> Result<Tried, DbError> {
    let client = &session.client;
    as_role::become_principal(client, &model.app_role, who).await?;
    let began = Instant::now();
    let outcome = fetch(session, statement, caps);
    match outcome.await {
        Ok(mut tried) => {
            tried.seconds = began.elapsed().as_secs_f64();
            let role: String = client.query_one("SELECT current_user::text", &[]).await?.try_get(0)?;
            if role != model.app_role.as_str() {
                let role = crate::text::line(&role);
                return Err(DbError::Unbound(format!("the statement made itself role \"{role}\"")));
            }
            Ok(tried)
        }
        Err(DbError::Server(refusal)) => {
            let seconds = began.elapsed().as_secs_f64();
            let sqlstate = Some(refusal.sqlstate.clone());
            let words = match refusal.sqlstate.as_str() {
                "42601" if shape::ends_itself(statement) => {
                    "only one SELECT, INSERT, UPDATE, DELETE, MERGE or VALUES can be tried; it is always rolled back"
                        .to_owned()
                }
                _ => DbError::Server(refusal).to_string(),
            };
            Ok(Tried { refused: Some(words), sqlstate, seconds, ..Tried::default() })
        }
        Err(error) => Err(error),
    }
}

/// Runs it and reads the result as far as the caps allow. What reads is read through a cursor, so that the server works
/// out no more than is shown; a change of rows is done whole.
async fn fetch(session: &Session, statement: &str, caps: Caps) -> Result<Tried, DbError> {
    let client = &session.client;
    if shape::may_be_read_by_a_cursor(statement) {
        client.batch_execute("SAVEPOINT rowdeck_cursor").await?;
        // In one message and as one statement, or not at all.
        match client.query(&format!("{CURSOR}{statement}"), &[]).await.map_err(DbError::from) {
            Ok(_) => return fetch_pages(client, caps).await,
            // A WITH that changes rows has no cursor.
            Err(error) if error.sqlstate() == Some("0A000") => {
                client.batch_execute("ROLLBACK TO SAVEPOINT rowdeck_cursor").await?;
            }
            Err(error) => return Err(error),
        }
    }
    client.query(&format!("{PREPARE}{statement}"), &[]).await?;
    let mut reader = Reader { caps, bytes: 0, tried: Tried::default() };
    reader.read(client, "EXECUTE rowdeck_try").await?;
    Ok(reader.tried)
}

async fn fetch_pages(client: &Client, caps: Caps) -> Result<Tried, DbError> {
    let mut reader = Reader { caps, bytes: 0, tried: Tried::default() };
    let mut page = 1;
    while reader.tried.cut.is_none() {
        let before = (reader.tried.rows.len(), reader.bytes);
        reader.read(client, &format!("FETCH FORWARD {page} FROM rowdeck_try")).await?;
        let rows = reader.tried.rows.len() - before.0;
        if rows < page {
            break;
        }
        // Long rows are asked for in small pages: the server makes a page whole before it sends any of it.
        let each = (reader.bytes - before.1) / rows.max(1) + 1;
        page = (caps.bytes / each).clamp(1, 4 * page).min(500);
    }
    reader.tried.touched = reader.tried.rows.len() as u64;
    Ok(reader.tried)
}

struct Reader {
    caps: Caps,
    /// Bytes that came, whole cells counted.
    bytes: usize,
    tried: Tried,
}

impl Reader {
    async fn read(&mut self, client: &Client, asked: &str) -> Result<(), DbError> {
        let stream = client.simple_query_raw(asked).await?;
        let mut stream = std::pin::pin!(stream);
        while let Some(message) = stream.next().await {
            match message? {
                SimpleQueryMessage::RowDescription(columns) => {
                    self.tried.columns = columns.iter().map(|c| crate::text::line(c.name()).into_owned()).collect();
                }
                SimpleQueryMessage::Row(row) => self.take(&row),
                SimpleQueryMessage::CommandComplete(count) => self.tried.touched = self.tried.touched.max(count),
                _ => {}
            }
        }
        Ok(())
    }

    fn take(&mut self, row: &SimpleQueryRow) {
        if self.tried.cut.is_some() {
            return;
        }
        if self.tried.rows.len() >= self.caps.rows {
            self.tried.cut = Some(format!("the first {} rows", crate::text::count(self.caps.rows as u64)));
            return;
        }
        let cells = (0..row.len()).map(|at| row.get(at));
        self.bytes += cells.clone().flatten().map(str::len).sum::<usize>();
        self.tried.rows.push(cells.map(|text| text.map(|text| cell(text, self.caps.cell))).collect());
        if self.bytes >= self.caps.bytes {
            let (rows, size) = (self.tried.rows.len() as u64, self.bytes as u64);
            let rows = crate::text::counted(rows, "row");
            self.tried.cut = Some(format!("the first {rows}, {} bytes,", crate::text::count(size)));
        }
    }
}

/// A cell, cut to so many characters with a mark and its true size.
fn cell(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => {
            let start = text.get(..at).unwrap_or("");
            format!("{start}… ({} bytes)", crate::text::count(text.len() as u64))
        }
    }
}

/// Tells no row, unseen rows and rows that may not be changed apart, by asking for the rows of the statement's
/// condition: first with the session's own rights, then as the person.
async fn apart(
    client: &Client,
    policy: &Compiled,
    model: &Model,
    who: &Principal,
    statement: &str,
    refused: bool,
) -> Result<Option<Apart>, DbError> {
    let unknown = |because: &str| Ok(Some(Apart::Unknown { because: because.to_owned() }));
    let shape = match shape::read(statement) {
        Ok(shape) => shape,
        // A refusal has its own words.
        Err(_) if refused => return Ok(None),
        Err(because) => return unknown(because),
    };
    let found = client
        .query_opt(
            "SELECT n.nspname::text, c.relname::text, pg_catalog.row_security_active(c.oid)
             FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
             WHERE c.oid = pg_catalog.to_regclass($1)",
            &[&shape.table],
        )
        .await?;
    let Some(row) = found else { return Ok(None) };
    let (schema, name, bound): (String, String, bool) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let governed = model.rules.iter().find_map(|rules| {
        let def = model.ty(rules.ty)?;
        (def.table.schema.as_str() == schema && def.table.name.as_str() == name).then_some((rules, def))
    });
    let Some((rules, def)) = governed else { return unknown("the policy in force has no rules on this table") };
    let lines = |select: bool| -> Vec<String> {
        let decides = |command: &Command| match (&shape.verb, command) {
            (_, Command::Select) => select || shape.verb == Verb::Select,
            (Verb::Insert, Command::Insert) | (Verb::Delete, Command::Delete) => !select,
            (Verb::Update, Command::Update | Command::UpdateBefore(_) | Command::UpdateAfter(_)) => !select,
            _ => false,
        };
        let chosen = rules.rules.iter().filter(|rule| decides(&rule.command));
        chosen
            .map(|rule| format!("\"{}\" of rules {}", policy.sources.text(rule.span).trim(), def.table.plain()))
            .collect()
    };
    if refused {
        // It was refused on rows it sees, or on the row it would make.
        return Ok((shape.verb != Verb::Select).then(|| Apart::NotAllowed { rows: Vec::new(), rules: lines(false) }));
    }
    if shape.verb == Verb::Insert {
        return unknown("it made no row, and none was refused");
    }
    if bound {
        return unknown("this role is bound by the rules itself, so a row it may not see looks like none");
    }
    let asked = rows_of(&shape, def);
    client.batch_execute(&format!("BEGIN READ ONLY; {LIMITS}")).await?;
    let answer = async {
        let there = ids(client, &asked).await?;
        if there.is_empty() {
            return Ok(Apart::NoSuchRow);
        }
        as_role::become_principal(client, &model.app_role, who).await?;
        let seen = ids(client, &asked).await?;
        Ok(if seen.is_empty() {
            Apart::NotVisible { rows: there, rules: lines(true) }
        } else {
            Apart::NotAllowed { rows: seen, rules: lines(false) }
        })
    };
    let answer: Result<Apart, DbError> = answer.await;
    client.batch_execute("ROLLBACK").await?;
    match answer {
        Ok(apart) => Ok(Some(apart)),
        Err(DbError::Server(refusal)) => unknown(&crate::text::line(&refusal.message)),
        Err(error) => Err(error),
    }
}

fn rows_of(shape: &Shape, def: &TypeDef) -> String {
    let keys: Vec<String> = def.key.iter().map(|key| key.column.to_string()).collect();
    let key = match keys.as_slice() {
        [one] => format!("{one}::text"),
        several => format!("ROW({})::text", several.join(", ")),
    };
    let condition = shape.condition.as_ref().map_or_else(String::new, |c| format!(" WHERE ({c}\n)"));
    format!("SELECT {key} FROM {}{condition} LIMIT 6", shape.from)
}

async fn ids(client: &Client, asked: &str) -> Result<Vec<String>, DbError> {
    let rows = client.query(asked, &[]).await?;
    let mut out = Vec::new();
    for row in rows.iter().take(5) {
        out.push(row.try_get::<_, Option<String>>(0)?.unwrap_or_default());
    }
    if rows.len() > 5 {
        out.push("…".to_owned());
    }
    Ok(out)
}

/// The policy in force as the database keeps it, with its text.
pub async fn policy_in_force(session: &Session) -> Result<Compiled, DbError> {
    let policy = session.info.require_policy()?;
    let row = session
        .client
        .query_one("SELECT source FROM authz.policy_versions WHERE version = $1", &[&policy.version])
        .await?;
    Ok(crate::compiler::compile(&policy.name, row.try_get(0)?))
}
