//! Applying a policy: all of it in one transaction, so that whatever happens the database is either as it was or as
//! the plan said.
//!
//! Inside that transaction the work is ordered by what it locks: first what blocks nobody, then what blocks writers
//! (the triggers that keep an index must stand before it is built), and last, for as short as can be, what blocks
//! everybody. Each lock is asked for with a short `lock_timeout`, again and again within a budget, so that those who
//! queue behind us never wait long for something we do not have yet.

mod clear;
mod holders;
mod remove;
mod run;
mod tables;

pub use remove::{Removal, RemoveReport, removal, remove};

use std::time::{Duration, Instant};

use tokio_postgres::Client;

use super::cancel::Stop;
use super::connect::Session;
use super::error::DbError;
use super::lint;
use super::plan::{self, Again, Plan, Policy};
use super::progress::{ApplyReport, Progress, Reporter};
use crate::compiler::ident::QualName;

/// How an apply goes about it.
#[derive(Debug, Clone)]
pub struct ApplyOptions {
    /// How long one request for a lock may make others queue behind it. Below `deadlock_timeout` (a second by
    /// default) it is we who give way in a deadlock, not a session of the app.
    pub lock_timeout: Duration,
    /// How long to wait for locks in all.
    pub budget: Duration,
    /// How many objects a cluster of the index holds at most.
    pub cluster_size: u32,
    /// The digest of the plan that was read and agreed to. Anything else is refused.
    pub agreed_plan: Option<String>,
    /// What is made again though it is as it was made.
    pub again: Again,
}

impl Default for ApplyOptions {
    fn default() -> Self {
        ApplyOptions {
            lock_timeout: Duration::from_millis(500),
            budget: Duration::from_secs(30),
            cluster_size: 256,
            agreed_plan: None,
            again: Again::No,
        }
    }
}

/// The key of the advisory lock that lets one apply run at a time in a database: `rowd`, `eck!` in ASCII.
const APPLYING: (i32, i32) = (0x726f_7764, 0x6563_6b21);

/// What a transaction of ours starts with: everything in force that would make it end at another's pleasure is turned
/// off, and a lock is not waited for longer than `wait`.
fn begin_sql(wait: Duration, version_num: i32) -> String {
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
         SET LOCAL lock_timeout = '{}ms';
         SET LOCAL statement_timeout = 0;
         SET LOCAL idle_in_transaction_session_timeout = 0;
         {}
         SET LOCAL search_path = pg_catalog, pg_temp;
         SET LOCAL client_min_messages = warning",
        wait.as_millis().max(1),
        if version_num >= 170_000 { "SET LOCAL transaction_timeout = 0;" } else { "" }
    )
}

/// The whole apply is started again at most so often, once its index is built: a build may take long.
const RESTARTS: u32 = 5;

/// Why one try did not succeed.
enum Failure {
    /// Somebody holds one of these tables.
    Locked { tables: Vec<QualName> },
    /// The connection ended while the commit of this version was under way.
    AtCommit { version: i64, why: DbError },
    /// Everything else.
    Fatal(DbError),
}

impl From<DbError> for Failure {
    fn from(error: DbError) -> Self {
        Failure::Fatal(error)
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Failure::Fatal(error.into())
    }
}

/// Applies `policy`, or says that it is in force already. The session must not be in a transaction. When `stop` is
/// asked, the statement that runs is cancelled on the server and everything is rolled back.
pub async fn apply(
    session: &Session,
    policy: &Policy<'_>,
    options: &ApplyOptions,
    reporter: &Reporter,
    stop: &Stop,
) -> Result<ApplyReport, DbError> {
    let started = Instant::now();
    // Before the plan, which would wait for the tables of the other.
    if let Some(other) = holders::running(&session.client).await? {
        return Err(other);
    }
    let plan = plan::plan_again(&session.client, policy, options.again).await?;
    if plan.unchanged {
        // What would be in the way of doing something is in the way of nothing here; the plan names it.
        return Ok(unchanged(&plan, started));
    }
    if let Some(agreed) = options.agreed_plan.as_ref().filter(|agreed| **agreed != plan.digest) {
        return Err(moved(agreed, &plan.digest));
    }
    if !plan.blockers.is_empty() {
        return Err(DbError::Blocked(plan.blockers));
    }
    for note in &plan.notes {
        reporter.send(Progress::Note { text: note.clone() }).await;
    }
    let mut waits = Waits::new(options);
    loop {
        let job = run::Job { session, policy, plan: &plan, options, reporter, stop, started };
        let failure = match stoppable(session, stop, job.run(&mut waits)).await {
            Ok(report) => return Ok(looked_around(session, report, reporter).await),
            Err(failure) => failure,
        };
        match failure {
            Failure::AtCommit { version, why } => {
                return after_lost_commit(session, &plan, version, why, started).await;
            }
            Failure::Fatal(error) => return Err(ended(session, stop, error).await),
            Failure::Locked { tables } => {
                // Whoever held the table may hold it because of us; only an ended transaction lets go of everything.
                session.client.batch_execute("ROLLBACK").await?;
                waits.again(&session.client, &tables, reporter, stop).await?;
            }
        }
    }
}

/// Runs `work`; once `stop` is asked, cancels its statements until it ends.
async fn stoppable<T>(
    session: &Session,
    stop: &Stop,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::pin!(work);
    tokio::select! {
        result = &mut work => return result,
        () = stop.wait() => {}
    }
    loop {
        // A request may come between two statements and then cancels nothing, so it is repeated. When the server
        // takes no connection for it, the work still stops before its next statement.
        if let Err(error) = session.cancel.cancel().await {
            tracing::warn!("cancelling failed: {error}");
        }
        tokio::select! {
            result = &mut work => return result,
            () = tokio::time::sleep(Duration::from_millis(200)) => {}
        }
    }
}

/// Rolls back and says what that means.
async fn ended(session: &Session, stop: &Stop, error: DbError) -> DbError {
    const AS_IT_WAS: &str = "an apply is one transaction, so the database is as it was";
    if let DbError::Lost(why) = error {
        return DbError::Lost(format!("{why}; {AS_IT_WAS}"));
    }
    if let Err(rollback) = session.client.batch_execute("ROLLBACK").await {
        tracing::warn!("rolling back after \"{error}\" failed: {rollback}");
        // Without a rollback of ours, the server rolls back when the session ends.
        return DbError::Lost(format!("{error}; {AS_IT_WAS}"));
    }
    if stop.asked() {
        return DbError::Stopped("the statement was cancelled and everything rolled back; nothing was changed".into());
    }
    error
}

/// The commit was sent and its answer never came. The version's row says which way it went, once no transaction that
/// could still write it is left: whoever holds the advisory lock afterwards knows that.
async fn after_lost_commit(
    session: &Session,
    plan: &Plan,
    version: i64,
    why: DbError,
    started: Instant,
) -> Result<ApplyReport, DbError> {
    let mut last = why.to_string();
    for wait in [100, 300, 1000, 3000, 5000_u64] {
        tokio::time::sleep(Duration::from_millis(wait)).await;
        match committed(session, plan, version).await {
            Ok(true) => return Ok(report(plan, version, 0, started)),
            Ok(false) => {
                return Err(DbError::Lost(format!(
                    "{why}, while it committed; version {version} is not in the database, so nothing was changed"
                )));
            }
            Err(error) => last = error.to_string(),
        }
    }
    Err(DbError::Unknown(format!(
        "{why}, while it committed, and the server cannot be asked how that ended ({last}); either all of version \
         {version} is in force or nothing was changed: rowdeck plan tells which"
    )))
}

async fn committed(session: &Session, plan: &Plan, version: i64) -> Result<bool, DbError> {
    let other = Session::open(&session.target).await?;
    other.client.batch_execute("BEGIN; SET LOCAL lock_timeout = '10s'").await?;
    other.client.execute("SELECT pg_advisory_xact_lock($1, $2)", &[&APPLYING.0, &APPLYING.1]).await?;
    let row = other.client.query_one("SELECT to_regclass('authz.policy_versions') IS NOT NULL", &[]).await?;
    if !row.try_get::<_, bool>(0)? {
        return Ok(false);
    }
    let sql = "SELECT FROM authz.policy_versions WHERE version = $1 AND digest = $2";
    Ok(other.client.query_opt(sql, &[&version, &plan.policy_digest]).await?.is_some())
}

/// After an apply: the ways around it that there are. The apply is done, whatever comes of this.
async fn looked_around(session: &Session, mut report: ApplyReport, reporter: &Reporter) -> ApplyReport {
    match lint::run(&session.client).await {
        Ok(findings) => {
            for finding in findings.iter().filter(|finding| finding.is_serious()) {
                reporter
                    .send(Progress::Note { text: finding.lines().join("; close it with: ").replace("    ", "") })
                    .await;
            }
            report.findings = findings;
        }
        Err(error) => {
            reporter.send(Progress::Note { text: format!("looking for ways around the rules failed: {error}") }).await;
        }
    }
    report
}

fn unchanged(plan: &Plan, started: Instant) -> ApplyReport {
    ApplyReport {
        seconds: started.elapsed().as_secs_f64(),
        unchanged: true,
        version: plan.in_force.as_ref().map_or(0, |v| v.version),
        digest: plan.policy_digest.clone(),
        graphs_kept: plan.graphs.len(),
        ..ApplyReport::default()
    }
}

fn report(plan: &Plan, version: i64, rows_built: u64, started: Instant) -> ApplyReport {
    let made = |object: &&plan::PlannedObject| !object.kept && object.change != plan::Change::Dropped;
    ApplyReport {
        seconds: started.elapsed().as_secs_f64(),
        rows_built,
        unchanged: false,
        version,
        digest: plan.policy_digest.clone(),
        objects: plan.objects.iter().filter(made).count(),
        graphs_built: plan.graphs.iter().filter(|graph| graph.build).count(),
        graphs_kept: plan.graphs.iter().filter(|graph| !graph.build).count(),
        findings: Vec::new(),
    }
}

/// The plan that was read is not the one there is now.
pub(crate) fn moved(agreed: &str, now: &str) -> DbError {
    let short = |digest: &str| digest.chars().take(8).collect::<String>();
    DbError::Busy(format!(
        "the database or the policy changed since plan {} was made (it is {} now); nothing was changed, plan again",
        short(agreed),
        short(now)
    ))
}

/// What is left of the budget for waiting.
struct Waits {
    budget: Duration,
    waited: Duration,
    step: Duration,
    pause: Duration,
    restarts: u32,
}

impl Waits {
    fn new(options: &ApplyOptions) -> Waits {
        let (budget, step) = (options.budget, options.lock_timeout);
        Waits { budget, waited: Duration::ZERO, step, pause: Duration::from_millis(100), restarts: 0 }
    }

    /// A request for a lock ran out of time: says who holds it and pauses, or gives up with the budget.
    async fn again(
        &mut self,
        client: &Client,
        tables: &[QualName],
        reporter: &Reporter,
        stop: &Stop,
    ) -> Result<(), DbError> {
        self.waited += self.step;
        let blockers = holders::of(client, tables).await?;
        let seconds = self.waited.as_secs_f64();
        if self.waited >= self.budget {
            let who =
                if blockers.is_empty() { "somebody held a table too often".to_owned() } else { blockers.join("; ") };
            return Err(DbError::Busy(format!(
                "gave up after waiting {seconds:.1} seconds for locks: {who}; nothing was changed"
            )));
        }
        reporter.send(Progress::Waiting { seconds, blockers }).await;
        tokio::select! {
            () = tokio::time::sleep(self.pause) => {}
            () = stop.wait() => {
                return Err(DbError::Stopped("it was waiting for a lock; nothing was changed".to_owned()));
            }
        }
        self.waited += self.pause;
        self.pause = (self.pause * 2).min(Duration::from_secs(2));
        Ok(())
    }

    /// True for the first half of the budget.
    fn is_early(&self) -> bool {
        self.waited < self.budget / 2
    }

    /// Counts a start from the beginning after work was done.
    fn restart(&mut self) -> Result<(), DbError> {
        self.restarts += 1;
        if self.restarts <= RESTARTS {
            return Ok(());
        }
        Err(DbError::Busy(format!(
            "gave up after {RESTARTS} restarts: sessions that read the tables keep waiting to write them, each in one \
             transaction; nothing was changed, apply again when fewer of them run"
        )))
    }
}
