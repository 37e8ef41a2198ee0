//! Commands that work with a policy and a database.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

use super::args::Global;
use super::output::{self, Output, note};
use super::signals::Signals;
use super::{Ended, FINDING, policy, targets};
use crate::db::apply::{self, ApplyOptions};
use crate::db::cancel::Stop;
use crate::db::connect::Session;
use crate::db::error::DbError;
use crate::db::plan::{self, Plan, Policy};
use crate::db::progress::{ApplyReport, Reporter};
use crate::policy_file::PolicyFile;

/// `rowdeck plan`.
pub async fn plan(global: &Global, out: Output, given: Option<&Path>) -> Ended {
    let file = PolicyFile::read(&targets::policy_path(given)?)?;
    let Some(ready) = policy::ready(out, &file)? else { return Ok(FINDING) };
    let session = targets::session(global).await?;
    let plan = plan::plan(&session.client, &ready.policy(&file)).await?;
    if out.json {
        out.json(&plan)?
    } else {
        show_plan(out, &plan)?
    }
    Ok(if plan.blockers.is_empty() { 0 } else { FINDING })
}

/// `rowdeck apply`.
pub async fn apply(global: &Global, out: Output, given: Option<&Path>, yes: bool, reviewed: Option<&str>) -> Ended {
    let file = PolicyFile::read(&targets::policy_path(given)?)?;
    let Some(ready) = policy::ready(out, &file)? else { return Ok(FINDING) };
    let session = targets::session(global).await?;
    apply_it(out, &session, &ready.policy(&file), ApplyOptions::default(), Asked { yes, reviewed }).await
}

/// What was agreed to beforehand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    /// Do not ask.
    pub(super) yes: bool,
    /// The digest of the plan that was read.
    pub(super) reviewed: Option<&'a str>,
}

/// Plans, asks, applies.
pub(super) async fn apply_it(
    out: Output,
    session: &Session,
    policy: &Policy<'_>,
    mut options: ApplyOptions,
    asked: Asked<'_>,
) -> Ended {
    let plan = plan::plan_again(&session.client, policy, options.again).await?;
    if let Some(reviewed) = asked.reviewed {
        // Eight digits are what the plan's first line shows.
        if reviewed.len() < 8 || !plan.digest.starts_with(&reviewed.to_ascii_lowercase()) {
            return Err(apply::moved(reviewed, &plan.digest));
        }
    }
    if !plan.unchanged {
        if !asked.yes && !out.json {
            show_plan(Output { json: false }, &plan)?;
        }
        if !plan.blockers.is_empty() {
            // One sentence is the error; all of them are needed to mend things in one go.
            plan.blockers.iter().for_each(|blocker| note(&format!("in the way: {blocker}")));
            return Err(DbError::Blocked(plan.blockers));
        }
        if !asked.yes && !agreed(session, "apply this to", &plan.database)? {
            note("not applied");
            return Ok(FINDING);
        }
    }
    options.agreed_plan = Some(plan.digest.clone());
    let words = |report: &ApplyReport| applied_words(report);
    stoppable(out, words, async |reporter, stop| apply::apply(session, policy, &options, reporter, stop).await).await
}

/// Runs work that shows its progress. The first signal cancels the statement that runs on the server and waits until
/// everything is rolled back; leaving at once would leave it running there with its locks.
pub(super) async fn stoppable<T: serde::Serialize>(
    out: Output,
    words: impl Fn(&T) -> String,
    work: impl AsyncFnOnce(&Reporter, &Stop) -> Result<T, DbError>,
) -> Ended {
    let (reporter, shown) = output::show_progress();
    let (stopper, stop) = Stop::channel();
    let mut signals = Signals::new()?;
    let mut stopped_by = None;
    let result = {
        let work = work(&reporter, &stop);
        tokio::pin!(work);
        loop {
            tokio::select! {
                result = &mut work => break result,
                caught = signals.next() => {
                    note(&format!("rowdeck: {}: stopping on the server", caught.name));
                    stopped_by = Some(caught);
                    stopper.stop();
                }
            }
        }
    };
    drop(reporter);
    finish(shown).await?;
    match (result, stopped_by) {
        (Ok(report), _) => {
            if out.json {
                out.json(&report)?
            } else {
                out.line(&words(&report))?
            }
            Ok(0)
        }
        (Err(error), Some(caught)) => {
            note(&format!("rowdeck: {error}"));
            Ok(caught.exit_code)
        }
        (Err(error), None) => Err(error),
    }
}

/// Asks on the terminal. Where more is at stake the database's name must be typed.
pub(super) fn agreed(session: &Session, what: &str, database: &str) -> Result<bool, DbError> {
    if !std::io::stdin().is_terminal() {
        return Err(DbError::Usage("nobody can be asked here; read what it would do, then say --yes".to_owned()));
    }
    let name = crate::text::line(database);
    let expected = if session.target.production {
        note(&format!("{name} is a production database; type its name to {what} it:"));
        database
    } else {
        note(&format!("{what} {name}? Type yes:"));
        "yes"
    };
    let mut answer = String::new();
    let said = std::io::stderr().flush().and_then(|()| std::io::stdin().lock().read_line(&mut answer));
    said.map_err(|e| DbError::io("cannot read the answer", e))?;
    Ok(answer.trim() == expected)
}

/// How an apply ended, in a line.
pub(super) fn applied_words(report: &ApplyReport) -> String {
    let seconds = output::duration(report.seconds);
    if report.unchanged {
        return format!("unchanged: this very policy is in force already (version {}), in {seconds}", report.version);
    }
    format!(
        "version {} is in force: {} made, {} built ({}), {} kept, in {seconds}",
        report.version,
        crate::text::counted(u64::try_from(report.objects).unwrap_or(u64::MAX), "object"),
        crate::text::counted(u64::try_from(report.graphs_built).unwrap_or(u64::MAX), "index table set"),
        crate::text::counted(report.rows_built, "row"),
        report.graphs_kept
    )
}

fn show_plan(out: Output, plan: &Plan) -> Result<(), DbError> {
    plan.summary().iter().try_for_each(|line| out.line(line))
}

/// Waits until the last line of progress is written.
pub(super) async fn finish(shown: tokio::task::JoinHandle<()>) -> Result<(), DbError> {
    shown.await.map_err(|e| DbError::Unexpected(format!("the progress display failed: {e}")))
}
