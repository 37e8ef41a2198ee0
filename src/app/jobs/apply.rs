//! Planning, applying, and the policy's tests.

use std::path::{Path, PathBuf};

use tokio::task::JoinHandle;

use super::{Compiled, Context, compile};
use crate::app::message::Message;
use crate::app::model::apply::{NotApplied, Plan, PlanStep};
use crate::app::model::policy::TestRun;
use crate::db::apply::{ApplyOptions, apply};
use crate::db::cancel::{Stop, Stopper};
use crate::db::connect::Session;
use crate::db::error::DbError;
use crate::db::plan::{self, Policy};
use crate::db::progress::{ApplyReport, Reporter};

/// The apply, while it runs.
#[derive(Debug, Default)]
pub struct Applying {
    stopper: Option<Stopper>,
    task: Option<JoinHandle<()>>,
}

impl Applying {
    /// Starts an apply of this text, if the plan is still the one that was agreed to.
    pub fn start(&mut self, context: Context, name: PathBuf, text: String, agreed: String) {
        let (stopper, stop) = Stop::channel();
        self.stopper = Some(stopper);
        self.task = Some(tokio::spawn(async move {
            let result = run(&context, &name, text, agreed, &stop).await;
            // What the header says of the policy in force has changed.
            context.refresh.notify_one();
            context.tell(Message::Applied(result)).await;
        }));
    }

    /// Cancels it on the server.
    pub fn cancel(&self) {
        if let Some(stopper) = &self.stopper {
            stopper.stop();
        }
    }

    /// Cancels it and waits until the server has rolled back.
    pub async fn end(&mut self) {
        self.cancel();
        if let Some(task) = self.task.take()
            && let Err(error) = task.await
        {
            tracing::error!("the apply's task failed: {error}");
        }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn policy<'a>(name: &'a str, compiled: &'a Compiled) -> Policy<'a> {
    Policy { name, sources: &compiled.sources, model: &compiled.model, emitted: &compiled.emitted }
}

async fn run(
    context: &Context,
    name: &Path,
    text: String,
    agreed: String,
    stop: &Stop,
) -> Result<ApplyReport, NotApplied> {
    let compiled = compile(name.to_owned(), text).await?;
    let session = Session::open(&context.writable()).await.map_err(|e| e.to_string())?;
    let options = ApplyOptions { agreed_plan: Some(agreed), ..ApplyOptions::default() };
    let (reporter, mut news) = Reporter::channel();
    let forward = {
        let context = context.clone();
        tokio::spawn(async move {
            while let Some(progress) = news.recv().await {
                context.tell(Message::Applying(progress)).await;
            }
        })
    };
    let name = file_name(name);
    let result = apply(&session, &policy(&name, &compiled), &options, &reporter, stop).await;
    drop(reporter);
    // Its news come before its end.
    if let Err(error) = forward.await {
        tracing::error!("the apply's progress was lost: {error}");
    }
    result.map_err(|error| match error {
        DbError::Unknown(_) => NotApplied::Unknown(error.to_string()),
        other => other.to_string().into(),
    })
}

/// Makes a plan; changes nothing.
pub async fn make_plan(context: Context, name: PathBuf, text: String, revision: u64) {
    let result = planned(&context, &name, text, revision).await;
    context.tell(Message::Planned(result.map(Box::new))).await;
}

async fn planned(context: &Context, name: &Path, text: String, revision: u64) -> Result<Plan, String> {
    let compiled = compile(name.to_owned(), text).await?;
    let session = Session::open(&context.target).await.map_err(|e| e.to_string())?;
    let name = file_name(name);
    let made = plan::plan(&session.client, &policy(&name, &compiled)).await.map_err(|e| e.to_string())?;
    Ok(words(&made, revision))
}

/// The plan as the screen shows it.
fn words(made: &plan::Plan, revision: u64) -> Plan {
    let clean = |text: &str| crate::text::line(text).into_owned();
    let steps = made.steps.iter().map(|step| PlanStep {
        what: clean(&step.title),
        lock: clean(&step.locks_text()),
        cost: match step.rows {
            0 if step.objects == 0 => String::new(),
            0 => crate::text::counted(step.objects as u64, "object"),
            rows => format!("about {}", crate::text::counted(rows, "row")),
        },
    });
    let refusals = made.blockers.iter().map(|blocker| {
        let help = blocker.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
        clean(&format!("{blocker}{help}"))
    });
    Plan {
        digest: made.digest.clone(),
        revision,
        from: made.in_force.as_ref().map(|version| version.version),
        unchanged: made.unchanged,
        steps: steps.collect(),
        graphs: made
            .graphs
            .iter()
            .map(|graph| {
                let what = if graph.build { "is built" } else { "is kept" };
                clean(&format!("index of {} {what}, about {}", graph.title, crate::text::counted(graph.rows, "row")))
            })
            .collect(),
        locks: Some((made.locks.needed, made.locks.free)),
        warnings: made.notes.iter().map(|note| clean(note)).collect(),
        refusals: refusals.collect(),
    }
}

/// Runs the policy's tests against the policy in force.
pub async fn run_tests(context: Context, name: PathBuf, text: String) {
    let result = tests(&context, name, text).await;
    context.tell(Message::Tested(result)).await;
}

async fn tests(context: &Context, name: PathBuf, text: String) -> Result<TestRun, String> {
    let compiled = compile(name, text).await?;
    let session = Session::open(&context.writable()).await.map_err(|e| e.to_string())?;
    let silent = Reporter::silent();
    let run = crate::db::policy_tests::run(&session, &compiled.model, &compiled.sources, &silent);
    let report = run.await.map_err(|e| e.to_string())?;
    let failed = report.tests.iter().filter(|test| !test.passed).map(|test| {
        let failure = test.failure.as_ref();
        let why = failure.map_or_else(String::new, |f| format!(", line {}: {}: {}", f.line, f.step, f.message));
        crate::text::line(&format!("{}{why}", test.name)).into_owned()
    });
    Ok(TestRun { passed: report.passed, failed: failed.collect() })
}
