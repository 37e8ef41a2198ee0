//! Everything that talks to the server for a screen. Each kind of work has a session of its own, so that a long verify
//! keeps no question waiting.

mod apply;
mod ask;
mod bench;
mod try_it;
mod verify;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::Sender;
use tokio::sync::{Mutex, Notify, OwnedMutexGuard};

use super::effect::Effect;
use super::message::Message;
use super::model::Watched;
use crate::compiler::model::Model as Policy;
use crate::compiler::objects::Emitted;
use crate::compiler::span::SourceMap;
use crate::db::connect::Session;
use crate::db::error::DbError;
use crate::db::target::Target;

/// A session that is opened when it is first needed, and again after it was lost.
#[derive(Debug, Clone, Default)]
pub struct Slot(Arc<Mutex<Option<Session>>>);

impl Slot {
    /// The session, once nobody else uses it.
    async fn open(&self, target: &Target) -> Result<OwnedMutexGuard<Option<Session>>, DbError> {
        let mut held = Arc::clone(&self.0).lock_owned().await;
        // The role and the policy in force may have changed since; and a session that was ended meanwhile shows here.
        let fresh = match held.as_mut() {
            Some(session) if session.lost().is_none() => session.refresh().await.is_ok(),
            _ => false,
        };
        if !fresh {
            *held = Some(Session::open(target).await?);
        }
        Ok(held)
    }
}

/// What every piece of work needs.
#[derive(Debug, Clone)]
struct Context {
    target: Target,
    sender: Sender<Message>,
    /// Reads the facts in the header again.
    refresh: Arc<Notify>,
}

impl Context {
    /// The target for work that changes the database. It is only started where the console allows changes, which an
    /// operator may do for a target that is read-only by itself.
    fn writable(&self) -> Target {
        Target { read_only: false, ..self.target.clone() }
    }

    async fn tell(&self, message: Message) {
        // The console may have ended meanwhile.
        let _ = self.sender.send(message).await;
    }
}

/// The work that runs, and how to end it.
#[derive(Debug)]
pub struct Jobs {
    context: Option<Context>,
    questions: ask::Questions,
    apply: apply::Applying,
    load: bench::Load,
    verify: Slot,
    trying: try_it::Trying,
    watch: watch::Watch,
}

impl Jobs {
    /// Nothing runs yet.
    pub fn new(target: Option<Target>, sender: Sender<Message>, refresh: Arc<Notify>) -> Self {
        Jobs {
            context: target.map(|target| Context { target, sender, refresh }),
            questions: ask::Questions::default(),
            apply: apply::Applying::default(),
            load: bench::Load::default(),
            verify: Slot::default(),
            trying: try_it::Trying::default(),
            watch: watch::Watch::default(),
        }
    }

    /// Starts it. Without a target the model refuses everything that comes here.
    pub fn act(&mut self, effect: Effect) {
        let Some(context) = self.context.clone() else { return };
        match effect {
            Effect::Ask { asked, ask } => {
                let questions = self.questions.clone();
                tokio::spawn(async move { questions.answer(&context, asked, ask).await });
            }
            Effect::RunTests { name, text } => {
                tokio::spawn(apply::run_tests(context, name, text));
            }
            Effect::Plan { name, text, revision } => {
                tokio::spawn(apply::make_plan(context, name, text, revision));
            }
            Effect::Apply { name, text, plan } => self.apply.start(context, name, text, plan),
            Effect::CancelApply => self.apply.cancel(),
            Effect::VerifyBatch { cursor, size } => {
                tokio::spawn(verify::batch(context, self.verify.clone(), cursor, size));
            }
            Effect::Repair(wrong) => {
                tokio::spawn(verify::repair(context, wrong));
            }
            Effect::Try { asked, who, statement, writes } => {
                let trying = self.trying.clone();
                tokio::spawn(async move { trying.run(&context, asked, who, statement, writes).await });
            }
            Effect::CancelTry => self.trying.cancel(),
            Effect::WatchNow => self.watch.now(),
            Effect::EndSession { pid, started, how } => {
                tokio::spawn(watch::end_session(context, pid, started, how));
            }
            Effect::BenchStart(rates) => self.load.start(context, rates),
            Effect::BenchRates(rates) => self.load.set_rates(rates),
            Effect::BenchMove => self.load.big_move(),
            Effect::BenchStop => self.load.stop(),
            _ => {}
        }
    }

    /// What is to be read again and again from now on.
    pub fn watch(&mut self, what: Option<Watched>) {
        self.watch.set(self.context.as_ref(), what);
    }

    /// Ends what runs, and waits until the server has let go of it, or for a few seconds.
    pub async fn stop(&mut self, patience: Duration) {
        self.watch.set(None, None);
        self.trying.cancel();
        let (load, apply) = (self.load.end(), self.apply.end());
        let both = async { tokio::join!(load, apply) };
        if tokio::time::timeout(patience, both).await.is_err() {
            tracing::warn!("the console ended before all work on the server did");
        }
    }
}

/// A policy compiled for the server.
#[derive(Debug)]
struct Compiled {
    sources: SourceMap,
    model: Policy,
    emitted: Emitted,
}

/// Compiles off the runtime's threads.
async fn compile(name: PathBuf, text: String) -> Result<Compiled, String> {
    let work = move || {
        let compiled = crate::policy_file::compile_file(&name, &text);
        let Some(model) = compiled.model else { return Err(DbError::Policy(compiled.diagnostics).to_string()) };
        let emitted = crate::compiler::emit::emit(&model).map_err(|found| DbError::Policy(found).to_string())?;
        Ok(Compiled { sources: compiled.sources, model, emitted })
    };
    tokio::task::spawn_blocking(work).await.map_err(|e| format!("the compiler failed: {e}"))?
}
