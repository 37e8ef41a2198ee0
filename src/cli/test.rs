//! `rowdeck test`.

use std::path::{Path, PathBuf};

use super::args::Global;
use super::database::finish;
use super::output::{self, Output};
use super::{Ended, FINDING, policy, targets};
use crate::db::connect::Session;
use crate::db::error::DbError;
use crate::db::policy_tests::{self, TestReport};
use crate::policy_file::PolicyFile;

/// `rowdeck test`.
pub async fn test(global: &Global, out: Output, given: Option<&Path>, more: &[PathBuf], coverage: bool) -> Ended {
    let mut files = targets::config()?.test_paths();
    files.extend(more.iter().cloned());
    let compiled = PolicyFile::read(&targets::policy_path(given)?)?.compile_with_tests(&files)?;
    let Some(model) = compiled.model.as_ref() else {
        policy::show_findings(out, &compiled, &compiled.diagnostics)?;
        return Ok(FINDING);
    };
    let target = targets::target(global)?;
    policy_tests::refuse_production(&target)?;
    let session = Session::open(&target).await?;
    let (reporter, shown) = output::show_progress();
    let report = match coverage {
        true => policy_tests::run_with_coverage(&session, &compiled, model, &reporter).await,
        false => policy_tests::run(&session, model, &compiled.sources, &reporter).await,
    };
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

/// Shows each failure, the branches not reached when they were asked for, and the count.
pub(super) fn show_tests(out: Output, report: &TestReport) -> Result<(), DbError> {
    for test in report.tests.iter().filter(|test| !test.passed) {
        out.line(&format!("failed: {}", crate::text::line(&test.name)))?;
        if let Some(failure) = &test.failure {
            out.line(&format!("  {}:{}: {}", failure.file, failure.line, failure.step))?;
            out.line(&format!("  {}", failure.message))?;
            failure.why.iter().try_for_each(|line| out.line(&format!("    {line}")))?;
        }
    }
    if let Some(coverage) = &report.coverage {
        for branch in coverage.branches.iter().filter(|branch| !branch.reached) {
            out.line(&format!("never true: {}:{}: {}: {}", branch.file, branch.line, branch.of, branch.text))?;
        }
        out.line(&format!("{} of {} branches made true", coverage.reached, coverage.branches.len()))?;
    }
    let seconds = output::duration(report.seconds);
    out.line(&format!("{} passed, {} failed, in {seconds}", report.passed, report.failed))
}
