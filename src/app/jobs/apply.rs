//! Planning, applying, and the policy's tests.

use std::path::PathBuf;

use super::{Context, compile};
use crate::app::message::Message;
use crate::app::model::policy::TestRun;
use crate::db::connect::Session;
use crate::db::progress::Reporter;

/// The apply, while it runs.
#[derive(Debug, Default)]
pub struct Applying;

/// Runs the policy's tests against the policy in force.
pub async fn run_tests(context: Context, name: PathBuf, text: String) {
    let result = tests(&context, name, text).await;
    context.tell(Message::Tested(result)).await;
}

async fn tests(context: &Context, name: PathBuf, text: String) -> Result<TestRun, String> {
    let compiled = compile(name, text).await?;
    let session = Session::open(&context.writable()).await.map_err(|e| e.to_string())?;
    let report =
        crate::db::policy_tests::run(&session, &compiled.model, &compiled.sources, &Reporter::silent())
            .await
            .map_err(|e| e.to_string())?;
    let failed = report.tests.iter().filter(|test| !test.passed).map(|test| {
        let why = test.failure.as_ref().map_or_else(String::new, |f| format!(", line {}: {}: {}", f.line, f.step, f.message));
        crate::text::line(&format!("{}{why}", test.name)).into_owned()
    });
    Ok(TestRun { passed: report.passed, failed: failed.collect() })
}
