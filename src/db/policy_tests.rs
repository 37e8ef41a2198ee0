//! Runs the tests a policy brings, on the server, through the rules in force.
//!
//! A named test brings its own rows: it runs in a transaction that is always rolled back, and only where the database is
//! marked a development database and the target is not marked as production, since its statements may fire triggers, take locks and use up sequence numbers.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Instant;

use futures_util::{StreamExt, pin_mut};
use serde::Serialize;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use super::as_role::{self, Principal, TextParameter};
use super::catalog;
use super::connect::Session;
use super::coverage::{Coverage, Watch};
use super::error::{DbError, Refusal};
use super::facts::{self, Snapshot};
use super::inspect::{key_parts, why_within};
use super::progress::{Progress, Reporter};
use super::target::Target;
use crate::compiler::Compiled;
use crate::compiler::evaluate::facts::{Caller as Asking, Datum, Key};
use crate::compiler::ident::Ident;
use crate::compiler::model::{Condition, Model, ScopeId, Test, TestStep, TypeId, Value, Who};
use crate::compiler::span::{SourceMap, Span};
use crate::compiler::sql::{PieceKind, pieces};

/// How the tests went.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct TestReport {
    /// Tests that passed.
    pub passed: usize,
    /// Tests that failed.
    pub failed: usize,
    /// Each of them, in the order written.
    pub tests: Vec<TestResult>,
    /// Seconds in all.
    pub seconds: f64,
    /// What the passing checks made true, when that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
}

/// How one test went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TestResult {
    /// Its name, or where it stands when it has none.
    pub name: String,
    /// The line of its header.
    pub line: usize,
    /// It passed.
    pub passed: bool,
    /// The line that failed, and why.
    pub failure: Option<Failure>,
}

/// A line of a test that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The file.
    pub file: String,
    /// Its line.
    pub line: usize,
    /// The line as written.
    pub step: String,
    /// What happened instead, in one sentence without a full stop.
    pub message: String,
    /// Of a check: why it holds, or what is missing, line by line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
}

/// Why a step did not do what it should.
enum StepError {
    /// The policy says otherwise than the test, or the statement is wrong.
    Failed(String),
    /// A rule or a missing privilege stopped the statement (SQLSTATE 42501).
    Refused(String),
    /// The session cannot go on.
    Session(DbError),
}

impl From<DbError> for StepError {
    fn from(error: DbError) -> Self {
        match error {
            DbError::Server(refusal) if refusal.sqlstate == "42501" => StepError::Refused(refusal_words(&refusal)),
            DbError::Server(refusal) => StepError::Failed(refusal_words(&refusal)),
            other => StepError::Session(other),
        }
    }
}

impl From<tokio_postgres::Error> for StepError {
    fn from(error: tokio_postgres::Error) -> Self {
        DbError::from(error).into()
    }
}

fn refusal_words(refusal: &Refusal) -> String {
    let words = format!("the server said: {} [{}]", refusal.message, refusal.sqlstate);
    crate::text::line(&words).into_owned()
}

/// Refuses a target that is marked as production, whatever its database says of itself.
pub fn refuse_production(target: &Target) -> Result<(), DbError> {
    if target.production {
        let place = target.describe();
        return Err(DbError::Usage(format!("{place} is marked as production; tests write rows and refuse")));
    }
    Ok(())
}

/// Runs all tests of `model` against the policy in force. An error means that they could not be run.
pub async fn run(
    session: &Session,
    model: &Model,
    sources: &SourceMap,
    reporter: &Reporter,
) -> Result<TestReport, DbError> {
    run_all(session, model, sources, reporter, None).await
}

/// The same, and says which branches of permissions and rules passing checks made true. It works that out from all that
/// the policy decides from, again for every check, and so is for small databases.
pub async fn run_with_coverage(
    session: &Session,
    compiled: &Compiled,
    model: &Model,
    reporter: &Reporter,
) -> Result<TestReport, DbError> {
    let watch = Mutex::new(Watch::new(compiled)?);
    let mut report = run_all(session, model, &compiled.sources, reporter, Some(&watch)).await?;
    report.coverage = watch.into_inner().ok().map(Watch::report);
    Ok(report)
}

async fn run_all(
    session: &Session,
    model: &Model,
    sources: &SourceMap,
    reporter: &Reporter,
    watch: Option<&Mutex<Watch>>,
) -> Result<TestReport, DbError> {
    let began = Instant::now();
    refuse_production(&session.target)?;
    session.info.require_policy()?;
    let own_rows = |test: &Test| test.steps.iter().any(|s| matches!(s, TestStep::Given { .. } | TestStep::Run { .. }));
    if !session.info.development && model.tests.iter().any(|test| test.name.is_some() || own_rows(test)) {
        return Err(DbError::NotDevelopment(session.info.database.clone()));
    }
    as_role::require_switch(&session.client, &model.app_role).await?;
    let governed: Vec<_> =
        model.rules.iter().filter_map(|rules| model.ty(rules.ty)).map(|ty| ty.table.clone()).collect();
    catalog::require_bound(&session.client, &model.app_role, &governed).await?;
    let runner = Runner { client: &session.client, model, sources, app_role: &model.app_role, watch };
    let title = format!("run {}", crate::text::counted(u64::try_from(model.tests.len()).unwrap_or(u64::MAX), "test"));
    reporter.send(Progress::Phase { number: 1, of: 1, title, locks: "none".to_owned() }).await;
    let mut report = TestReport::default();
    let of = u64::try_from(model.tests.len()).unwrap_or(u64::MAX);
    for (done, test) in (1u64..).zip(&model.tests) {
        let result = runner.test(test).await?;
        if result.passed {
            report.passed += 1
        } else {
            report.failed += 1
        }
        report.tests.push(result);
        let seconds = began.elapsed().as_secs_f64().max(1e-6);
        let rate = done as f64 / seconds;
        let left = Some(of.saturating_sub(done) as f64 / rate);
        reporter.send(Progress::Batch { batch: done, of: Some(of), rows: done, rows_of: Some(of), rate, left }).await;
    }
    report.seconds = began.elapsed().as_secs_f64();
    Ok(report)
}

/// Who a step asks as, and what the session is limited to.
struct Caller {
    principal: Principal,
    scopes: Vec<String>,
}

struct Runner<'a> {
    client: &'a Client,
    model: &'a Model,
    sources: &'a SourceMap,
    app_role: &'a Ident,
    /// Notes what passing checks make true.
    watch: Option<&'a Mutex<Watch>>,
}

/// What earlier `given` lines of a test returned.
type Given = HashMap<String, String>;

impl Runner<'_> {
    async fn test(&self, test: &Test) -> Result<TestResult, DbError> {
        let line = self.sources.places(test.span).0.line;
        let name = test.name.clone().unwrap_or_else(|| format!("line {line}"));
        self.client.batch_execute("BEGIN").await?;
        let mut given = Given::new();
        let mut failure = None;
        for step in &test.steps {
            match self.step(step, &mut given).await {
                Ok(()) => {}
                Err(StepError::Session(error)) => {
                    // The rollback fails only when the session is gone, and then the server rolls back by itself.
                    let _ = self.client.batch_execute("ROLLBACK").await;
                    return Err(error);
                }
                Err(StepError::Failed(message) | StepError::Refused(message)) => {
                    let why = self.why(step, &given).await?;
                    failure = Some(self.failure(step, message, why));
                    break;
                }
            }
        }
        self.client.batch_execute("ROLLBACK").await?;
        Ok(TestResult { name, line, passed: failure.is_none(), failure })
    }

    /// Of a check that failed: why it holds, or what is missing. Other lines say all in their message.
    async fn why(&self, step: &TestStep, given: &Given) -> Result<Vec<String>, DbError> {
        let TestStep::Check { who, scopes, permission, ty, id, .. } = step else { return Ok(Vec::new()) };
        let asked = (self.principal(who, scopes, given), self.type_name(*ty), value(id, given));
        let (Ok(principal), Ok(ty), Ok(id)) = asked else { return Ok(Vec::new()) };
        let words = match why_within(self.client, &principal.principal, ty, id, permission).await {
            Ok(why) => why.lines(),
            // The check failed because of what the server said, which is its message; the explanation has no more.
            Err(DbError::Server(_)) => Vec::new(),
            Err(other) => return Err(other),
        };
        Ok(words)
    }

    fn failure(&self, step: &TestStep, message: String, why: Vec<String>) -> Failure {
        let span = step_span(step);
        let file = self.sources.file(span.file);
        let line = self.sources.places(span).0.line;
        let written = file.and_then(|file| file.text.lines().nth(line - 1)).unwrap_or("").trim();
        Failure {
            file: file.map_or_else(String::new, |file| file.name.clone()),
            line,
            step: crate::text::line(written).into_owned(),
            message,
            why,
        }
    }

    async fn step(&self, step: &TestStep, given: &mut Given) -> Result<(), StepError> {
        match step {
            TestStep::Given { name, sql } => self.given(name.as_deref(), sql, given).await,
            TestStep::Check { who, scopes, allowed, permission, ty, id, .. } => {
                let principal = self.principal(who, scopes, given)?;
                let holds = self.check(&principal, permission, *ty, id, given).await?;
                if holds == *allowed {
                    if holds && self.watch.is_some() {
                        let (caller, key) = (self.asking(&principal.principal)?, self.key(*ty, value(id, given)?)?);
                        let now = self.facts().await?;
                        self.note(|watch| watch.check(&now, &caller, *ty, permission, &key))?;
                    }
                    return Ok(());
                }
                let words = if holds { "it holds" } else { "it does not hold" };
                Err(StepError::Failed(words.to_owned()))
            }
            TestStep::Run { who, scopes, allowed, sql, .. } => {
                let principal = self.principal(who, scopes, given)?;
                self.run(&principal, *allowed, sql, given).await
            }
            TestStep::Sees { who, scopes, rows, sql, .. } => {
                let principal = self.principal(who, scopes, given)?;
                self.client.batch_execute("SAVEPOINT step").await?;
                self.sign_in(&principal).await?;
                let seen = self.count(sql, given).await?;
                self.client.batch_execute("ROLLBACK TO SAVEPOINT step").await?;
                if seen == *rows {
                    if seen > 0 && self.watch.is_some() {
                        let (caller, now) = (self.asking(&principal.principal)?, self.facts().await?);
                        self.note(|watch| watch.statement(&now, &now, &caller, &sql.sql))?;
                    }
                    return Ok(());
                }
                Err(StepError::Failed(format!("it sees {}", crate::text::counted(seen, "row"))))
            }
        }
    }

    async fn given(&self, name: Option<&str>, sql: &Condition, given: &mut Given) -> Result<(), StepError> {
        let Some(name) = name else {
            self.count(sql, given).await?;
            return Ok(());
        };
        let (text, parameters) = bind(&sql.sql, given)?;
        let rows = self.client.query(&text, &references(&parameters)).await?;
        match rows.as_slice() {
            [row] => {
                given.insert(name.to_owned(), value_text(row)?);
                Ok(())
            }
            rows => {
                let count = crate::text::counted(u64::try_from(rows.len()).unwrap_or(u64::MAX), "row");
                Err(StepError::Failed(format!("${name} takes one row, and the statement returned {count}")))
            }
        }
    }

    async fn check(
        &self,
        principal: &Caller,
        permission: &str,
        ty: TypeId,
        id: &Value,
        given: &Given,
    ) -> Result<bool, StepError> {
        let ty = self.type_name(ty)?;
        let id = value(id, given)?;
        self.client.batch_execute("SAVEPOINT step").await?;
        self.sign_in(principal).await?;
        let asked = "SELECT authz.can($1::text, $2::text, $3::text)";
        let row = self.client.query_one(asked, &[&ty, &id, &permission]).await?;
        self.client.batch_execute("ROLLBACK TO SAVEPOINT step").await?;
        Ok(row.try_get::<_, Option<bool>>(0)?.unwrap_or(false))
    }

    /// Refused means that a rule or a missing privilege stopped it (42501), or that it changed or returned no row.
    async fn run(&self, who: &Caller, allowed: bool, sql: &Condition, given: &Given) -> Result<(), StepError> {
        let before = if allowed && self.watch.is_some() { Some(self.facts().await?) } else { None };
        self.client.batch_execute("SAVEPOINT step").await?;
        self.sign_in(who).await?;
        match self.count(sql, given).await {
            Ok(0) if allowed => Err(StepError::Failed("it changed no row".to_owned())),
            Ok(_) if allowed => {
                as_role::become_self(self.client).await?;
                self.client.batch_execute("RELEASE SAVEPOINT step").await?;
                if let Some(before) = before {
                    let (caller, after) = (self.asking(&who.principal)?, self.facts().await?);
                    self.note(|watch| watch.statement(&before, &after, &caller, &sql.sql))?;
                }
                Ok(())
            }
            Ok(0) => {
                self.client.batch_execute("ROLLBACK TO SAVEPOINT step").await?;
                Ok(())
            }
            Ok(rows) => Err(StepError::Failed(format!("it was allowed ({})", crate::text::counted(rows, "row")))),
            Err(StepError::Refused(_)) if !allowed => {
                self.client.batch_execute("ROLLBACK TO SAVEPOINT step").await?;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Rows changed or returned.
    async fn count(&self, sql: &Condition, given: &Given) -> Result<u64, StepError> {
        let (text, parameters) = bind(&sql.sql, given)?;
        let stream = self.client.query_raw(&text, references(&parameters)).await?;
        pin_mut!(stream);
        let mut returned = 0;
        while let Some(row) = stream.next().await {
            row?;
            returned += 1;
        }
        // What changes rows and returns none says how many it changed.
        Ok(stream.rows_affected().unwrap_or(0).max(returned))
    }

    /// What the policy decides from, as it is now in this transaction.
    async fn facts(&self) -> Result<Snapshot, StepError> {
        Ok(facts::read_within(self.client, self.model).await?)
    }

    fn note(&self, note: impl FnOnce(&mut Watch) -> Result<(), DbError>) -> Result<(), StepError> {
        let mut watch = self.watch.and_then(|watch| watch.lock().ok());
        Ok(watch.as_mut().map_or(Ok(()), |watch| note(watch))?)
    }

    /// Who asks, as the evaluator takes it.
    fn asking(&self, principal: &Principal) -> Result<Asking, StepError> {
        let Principal::Of { ty, id } = principal else { return Ok(Asking::nobody()) };
        let Some(at) = self.model.types.iter().position(|def| def.name == *ty).map(TypeId) else {
            return Ok(Asking::nobody());
        };
        Ok(Asking::of(at, self.key(at, id)?))
    }

    fn key(&self, ty: TypeId, id: &str) -> Result<Key, StepError> {
        let Some(def) = self.model.ty(ty) else { return Ok(Key::new()) };
        let parts = key_parts(def, id)?.into_iter().zip(&def.key);
        Ok(parts.map(|(part, column)| Datum::Text(part).as_key(column.ty)).collect())
    }

    fn principal(&self, who: &Who, scopes: &[ScopeId], given: &Given) -> Result<Caller, StepError> {
        let principal = match who {
            Who::Anyone => Principal::Nobody,
            Who::Principal(ty, id) => {
                Principal::Of { ty: self.type_name(*ty)?.to_owned(), id: value(id, given)?.to_owned() }
            }
        };
        let scopes = scopes.iter().filter_map(|id| self.model.scope(*id)).map(|scope| scope.name.clone()).collect();
        Ok(Caller { principal, scopes })
    }

    /// From here on as the app role, signed in as `caller`.
    async fn sign_in(&self, caller: &Caller) -> Result<(), StepError> {
        if caller.scopes.is_empty() {
            as_role::become_principal(self.client, self.app_role, &caller.principal).await?;
        } else {
            as_role::become_limited(self.client, self.app_role, &caller.principal, &caller.scopes).await?;
        }
        Ok(())
    }

    fn type_name(&self, ty: TypeId) -> Result<&str, StepError> {
        let found = self.model.ty(ty).map(|ty| ty.name.as_str());
        found.ok_or_else(|| StepError::Failed("its type is not in the policy".to_owned()))
    }
}

fn step_span(step: &TestStep) -> Span {
    match step {
        TestStep::Given { sql, .. } => sql.span,
        TestStep::Check { span, .. } | TestStep::Run { span, .. } | TestStep::Sees { span, .. } => *span,
    }
}

fn value<'v>(value: &'v Value, given: &'v Given) -> Result<&'v str, StepError> {
    match value {
        Value::Literal(text) => Ok(text),
        Value::Given(name) => lookup(name, given),
    }
}

fn lookup<'v>(name: &str, given: &'v Given) -> Result<&'v str, StepError> {
    given.get(name).map(String::as_str).ok_or_else(|| StepError::Failed(format!("${name} was not given before")))
}

/// The statement with every `$name` as a parameter of its own, so that the server may read one value as several types.
fn bind(sql: &str, given: &Given) -> Result<(String, Vec<TextParameter>), StepError> {
    let mut text = String::with_capacity(sql.len());
    let mut parameters = Vec::new();
    for piece in pieces(sql) {
        if piece.kind == PieceKind::Variable {
            parameters.push(TextParameter(lookup(piece.text.trim_start_matches('$'), given)?.to_owned()));
            text.push_str(&format!("${}", parameters.len()));
        } else {
            text.push_str(piece.text);
        }
    }
    Ok((text, parameters))
}

fn references(parameters: &[TextParameter]) -> Vec<&(dyn ToSql + Sync)> {
    parameters.iter().map(|parameter| parameter as &(dyn ToSql + Sync)).collect()
}

/// The first column of a row as text.
fn value_text(row: &Row) -> Result<String, StepError> {
    let Some(column) = row.columns().first() else {
        return Err(StepError::Failed("the statement returned no column".to_owned()));
    };
    let text = match *column.type_() {
        Type::INT8 => row.try_get::<_, Option<i64>>(0)?.map(|v| v.to_string()),
        Type::INT4 => row.try_get::<_, Option<i32>>(0)?.map(|v| v.to_string()),
        Type::INT2 => row.try_get::<_, Option<i16>>(0)?.map(|v| v.to_string()),
        Type::BOOL => row.try_get::<_, Option<bool>>(0)?.map(|v| v.to_string()),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME => row.try_get::<_, Option<String>>(0)?,
        Type::UUID => row.try_get::<_, Option<super::keys::Uuid>>(0)?.map(|v| v.to_string()),
        ref other => {
            let words = format!("a value of type {} cannot be kept; return it as text: {}::text", other, column.name());
            return Err(StepError::Failed(crate::text::line(&words).into_owned()));
        }
    };
    text.ok_or_else(|| StepError::Failed("the value returned is NULL".to_owned()))
}
