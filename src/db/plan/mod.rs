//! Everything that can be known of an apply before its first statement: what changes, what is built, what is locked
//! and for whom, and what stands in the way. Making a plan changes nothing.

mod advisories;
pub mod changes;
mod conditions;
mod estimate;
mod live;
pub(crate) mod locks;
pub(crate) mod names;
mod names_in_conditions;
mod preflight;
mod rules;
pub mod state;
mod text;
pub mod way;

use serde::{Serialize, Serializer};
use tokio_postgres::Client;

pub use changes::{Change, PlannedGraph, PlannedObject};
pub use locks::LockNeed;
pub use state::{Again, InForce};
pub(crate) use text::blocked;

use crate::compiler::diagnostic::{Code, Diagnostic};
use crate::compiler::model::Model;
use crate::compiler::objects::{Emitted, Lock};
use crate::compiler::span::{SourceMap, Span};
use crate::db::error::DbError;

/// A policy ready to be planned or applied.
#[derive(Debug, Clone, Copy)]
pub struct Policy<'a> {
    /// What the version is called: the file's name.
    pub name: &'a str,
    /// Its text, kept with the version and used to say where a finding is.
    pub sources: &'a SourceMap,
    /// What it means.
    pub model: &'a Model,
    /// What it becomes.
    pub emitted: &'a Emitted,
}

impl Policy<'_> {
    /// The policy's whole text: its main file, and behind it each included one under a comment with its name.
    pub fn text(&self) -> String {
        let mut files = self.sources.files().iter();
        let mut out = files.next().map(|file| file.text.clone()).unwrap_or_default();
        for file in files {
            if !out.ends_with('\n') {
                out.push('\n');
            }
            out.push_str(&format!("{}{}\n{}", super::kept::INCLUDED, file.name, file.text));
        }
        out
    }
}

/// What an apply would do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// Names this plan: the same policy over the same state has the same digest, so that an apply can refuse when
    /// something moved since the plan was read.
    pub digest: String,
    /// The database.
    pub database: String,
    /// The policy's name.
    pub name: String,
    /// Digest of the SQL it becomes.
    pub policy_digest: String,
    /// The policy in force now.
    pub in_force: Option<InForce>,
    /// True when this very policy is in force and nothing of it is missing: applying would change nothing.
    pub unchanged: bool,
    /// Every object, made and dropped, in order.
    pub objects: Vec<PlannedObject>,
    /// The inheritance indexes, built and kept.
    pub graphs: Vec<PlannedGraph>,
    /// Rows of the index to build, as far as the server's estimates are right.
    pub rows_to_build: u64,
    /// The steps, with what each locks.
    pub steps: Vec<Step>,
    /// Seconds of work in all, estimated; waiting for locks comes on top.
    pub seconds: f64,
    /// Bytes on disk that new indexes take, estimated.
    pub disk: u64,
    /// Names what the plan starts from in the catalog: tables, columns, rules, triggers, memberships of the app role.
    pub state_digest: String,
    /// Entries of the server's lock table.
    pub locks: LockNeed,
    /// What stands in the way; an apply refuses while there is anything here.
    pub blockers: Vec<Blocker>,
    /// Worth knowing, in the way of nothing.
    pub notes: Vec<String>,
}

/// One step of an apply.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// What it does.
    pub title: String,
    /// Objects it makes or drops.
    pub objects: usize,
    /// Rows it builds, estimated.
    pub rows: u64,
    /// Seconds it takes, estimated.
    pub seconds: f64,
    /// The locks it takes on tables that are there, in the order it takes them. They are kept until the commit.
    #[serde(serialize_with = "lock_words")]
    pub locks: Vec<Lock>,
}

impl Step {
    /// Its locks in a few words: `ACCESS EXCLUSIVE on app.files, app.folders`, or `none`.
    pub fn locks_text(&self) -> String {
        locks::words(&self.locks)
    }
}

/// Something that must be mended before the policy can be applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Blocker {
    /// Its code, where it has one.
    #[serde(serialize_with = "code_word")]
    pub code: Option<Code>,
    /// What is in the way, in one sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The policy's line, where one is to blame: file, line and column, as people count.
    pub place: Option<BlockerPlace>,
    /// The same for programs.
    #[serde(skip)]
    pub span: Option<Span>,
}

/// Where in the policy a blocker comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockerPlace {
    /// The file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl Blocker {
    /// A blocker that no line of the policy is to blame for.
    pub(crate) fn new(message: impl Into<String>) -> Blocker {
        Blocker { code: None, message: message.into(), help: None, place: None, span: None }
    }

    /// With a code.
    pub(crate) fn code(mut self, code: u16) -> Blocker {
        self.code = Some(Code(code));
        self
    }

    /// With what to do.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Blocker {
        self.help = Some(help.into());
        self
    }

    /// With the place in the policy.
    pub(crate) fn at(mut self, sources: &SourceMap, span: Span) -> Blocker {
        let (place, _) = sources.places(span);
        self.span = Some(span);
        self.place = sources.file(span.file).map(|file| BlockerPlace {
            file: file.name.clone(),
            line: place.line,
            column: place.column,
        });
        self
    }

    /// As a diagnostic beside the policy's text, when a place in it and a code are known.
    pub fn diagnostic(&self) -> Option<Diagnostic> {
        let mut diagnostic = Diagnostic::error(self.code?.0, self.span?, self.message.clone());
        diagnostic.help.clone_from(&self.help);
        Some(diagnostic)
    }
}

impl std::fmt::Display for Blocker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{}:{}:{}: ", place.file, place.line, place.column)?;
        }
        write!(f, "{}", self.message)?;
        if let Some(code) = self.code {
            write!(f, " [{code}]")?;
        }
        Ok(())
    }
}

fn code_word<S: Serializer>(code: &Option<Code>, serializer: S) -> Result<S::Ok, S::Error> {
    code.map(|code| code.to_string()).serialize(serializer)
}

fn lock_words<S: Serializer>(list: &[Lock], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Word {
        table: String,
        mode: &'static str,
    }
    serializer.collect_seq(list.iter().map(|lock| Word { table: lock.table.plain(), mode: lock.mode.sql() }))
}

/// Plans an apply of `policy` in the database `client` is connected to. What stands in the way is in the plan, not an
/// error: an error means that the database could not be asked.
pub async fn plan(client: &Client, policy: &Policy<'_>) -> Result<Plan, DbError> {
    plan_again(client, policy, Again::No).await
}

/// The same for a policy that may be in force and is to be made again all the same.
pub async fn plan_again(client: &Client, policy: &Policy<'_>, again: Again) -> Result<Plan, DbError> {
    // One transaction, rolled back, under the search path that an apply makes its objects under: bare names mean
    // PostgreSQL's own. Whoever holds a table in a way that keeps even readers out is not waited for.
    const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL search_path = pg_catalog, pg_temp;
        SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = '30s'";
    client.batch_execute(BEGIN).await?;
    let result = inside(client, policy, again).await;
    // A session that is lost has rolled back by itself, and the error says that it is lost.
    let ended = client.batch_execute("ROLLBACK").await;
    let plan = match result {
        Err(DbError::Server(refusal)) if refusal.sqlstate == "55P03" => {
            return Err(DbError::Busy(
                "somebody keeps even readers out of a table of the policy, which an apply or another change of the \
                 schema does; plan again when it has ended"
                    .to_owned(),
            ));
        }
        other => other?,
    };
    ended?;
    Ok(plan)
}

async fn inside(client: &Client, policy: &Policy<'_>, again: Again) -> Result<Plan, DbError> {
    let state = state::read(client, policy.emitted).await?.again(again);
    let mut plan = draft(client, policy, &state).await?;
    let found = preflight::run(client, policy, &plan).await?;
    plan.blockers = found.blockers;
    plan.notes.extend(found.notes);
    Ok(plan)
}

/// The plan without its preflight. An apply makes it again, under its own lock, to see whether something moved.
pub(crate) async fn draft(client: &Client, policy: &Policy<'_>, state: &state::State) -> Result<Plan, DbError> {
    let row = client.query_one("SELECT current_database()::text", &[]).await?;
    let database: String = row.try_get(0)?;
    let way = way::best(policy, state);
    let objects = changes::objects(policy, state, &way);
    let unchanged = way::is_in_force(policy, state) && changes::is_same_text(policy, state);
    let graphs = changes::graphs(client, policy, state).await?;
    let disk = estimate::disk(&graphs);
    let rows_to_build = graphs.iter().filter(|graph| graph.build).map(|graph| graph.rows).sum();
    let steps = if unchanged { Vec::new() } else { changes::steps(policy, state, &way, &objects, &graphs) };
    let locks = locks::need(client, &objects, &steps).await?;
    let mut plan = Plan {
        digest: String::new(),
        database,
        name: policy.name.to_owned(),
        policy_digest: policy.emitted.digest.clone(),
        in_force: state.in_force.clone(),
        unchanged,
        objects,
        graphs,
        rows_to_build,
        seconds: steps.iter().map(|step| step.seconds).sum(),
        disk,
        state_digest: live::digest(client, policy).await?,
        steps,
        locks,
        blockers: Vec::new(),
        notes: changes::notes(policy, state),
    };
    plan.digest = digest(&plan, &policy.text());
    Ok(plan)
}

/// Over what the plan does and what it starts from; not over estimates and free locks, which change by the minute.
fn digest(plan: &Plan, text: &str) -> String {
    let mut parts: Vec<String> =
        vec![plan.database.clone(), plan.policy_digest.clone(), text.to_owned(), plan.state_digest.clone()];
    parts.push(plan.in_force.as_ref().map_or_else(String::new, |v| format!("{} {}", v.version, v.digest)));
    parts.extend(plan.objects.iter().map(|o| format!("{} {} {}", o.change.word(), o.kind.word(), o.name)));
    parts.extend(plan.graphs.iter().map(|g| format!("{} {}", g.name, g.build)));
    for step in &plan.steps {
        parts.push(step.title.clone());
        parts.extend(step.locks.iter().map(|lock| format!("{} {}", lock.table, lock.mode.sql())));
    }
    state::hex_digest(parts.iter().map(String::as_bytes))
}
