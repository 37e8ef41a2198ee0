//! Commands that work with a policy and a database.

use std::path::Path;

use super::args::Global;
use super::output::{self, Output};
use super::{Ended, FINDING, policy, targets};
use crate::db::error::DbError;
use crate::db::policy_tests::{self, TestReport};
use crate::policy_file::PolicyFile;

/// `rowdeck test`.
pub async fn test(global: &Global, out: Output, given: Option<&Path>) -> Ended {
    let compiled = PolicyFile::read(&targets::policy_path(given)?)?.compile();
    let Some(model) = compiled.model.as_ref() else {
        policy::show_findings(out, &compiled, &compiled.diagnostics)?;
        return Ok(FINDING);
    };
    let session = targets::session(global).await?;
    let (reporter, shown) = output::show_progress();
    let report = policy_tests::run(&session, model, &compiled.sources, &reporter).await;
    drop(reporter);
    finish(shown).await?;
    let report = report?;
    if out.json {
        out.json(&report)?;
    } else {
        show_tests(out, &report)?;
    }
    Ok(if report.failed == 0 { 0 } else { FINDING })
}

/// Shows each failure and the count.
pub(super) fn show_tests(out: Output, report: &TestReport) -> Result<(), DbError> {
    for test in report.tests.iter().filter(|test| !test.passed) {
        out.line(&format!("failed: {}", crate::text::line(&test.name)))?;
        if let Some(failure) = &test.failure {
            out.line(&format!("  {}:{}: {}", failure.file, failure.line, failure.step))?;
            out.line(&format!("  {}", failure.message))?;
        }
    }
    let seconds = output::duration(report.seconds);
    out.line(&format!("{} passed, {} failed, in {seconds}", report.passed, report.failed))
}

/// Waits until the last line of progress is written.
pub(super) async fn finish(shown: tokio::task::JoinHandle<()>) -> Result<(), DbError> {
    shown.await.map_err(|e| DbError::Unexpected(format!("the progress display failed: {e}")))
}
