//! Does what [`super::update`] wants done: files, the compiler, and everything that talks to the server. Nothing here
//! waits on the caller's time; results come back as messages.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::Sender;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::compile::Compiler;
use super::effect::Effect;
use super::files::{self, Kept};
use super::jobs::Jobs;
use super::link;
use super::message::Message;
use super::model::{Level, Model, Watched};
use super::runtime::{Named, Options, state_folder};

/// How long unsaved text may be newer than what is kept of it.
const KEEP_AFTER: Duration = Duration::from_millis(500);

/// Everything that works in the background.
#[derive(Debug)]
pub struct Work {
    sender: Sender<Message>,
    compiler: Compiler,
    policy: Option<PathBuf>,
    kept: Option<Kept>,
    keeping: Option<watch::Sender<Option<String>>>,
    reconnect: Arc<Notify>,
    link: Option<JoinHandle<()>>,
    jobs: Jobs,
    watched: Option<Watched>,
    targets: Vec<Named>,
    export: PathBuf,
}

impl Work {
    /// Starts the compiler and, when there is a target, the connection. News of the server go to `remote`.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(options: Options, sender: Sender<Message>, remote: Sender<Message>) -> std::io::Result<Self> {
        let compiler = Compiler::start(sender.clone())?;
        let reconnect = Arc::new(Notify::new());
        let link = options
            .target
            .clone()
            .map(|target| tokio::spawn(link::keep(target, remote.clone(), Arc::clone(&reconnect))));
        let mut work = Work {
            jobs: Jobs::new(options.target, remote, Arc::clone(&reconnect)),
            watched: None,
            targets: options.targets,
            export: options.settings.export.unwrap_or_default(),
            sender,
            compiler,
            policy: options.policy,
            kept: None,
            keeping: None,
            reconnect,
            link,
        };
        work.open_kept(options.state.or_else(state_folder));
        Ok(work)
    }

    /// What is to be done at the start.
    pub fn first_effects(&self) -> Vec<Effect> {
        self.policy.iter().cloned().map(Effect::Load).collect()
    }

    /// Finds text that was not saved last time, and starts keeping what is not saved this time.
    fn open_kept(&mut self, folder: Option<PathBuf>) {
        let (Some(folder), Some(policy)) = (folder, &self.policy) else { return };
        let (kept, found) = Kept::open(&folder, policy);
        let (keeping, receiver) = watch::channel(None);
        tokio::spawn(keep(kept.clone(), receiver, self.sender.clone()));
        self.kept = Some(kept);
        self.keeping = Some(keeping);
        if let Some(text) = found {
            let sender = self.sender.clone();
            tokio::spawn(async move {
                // After the file itself is loaded, which is asked for first.
                tokio::time::sleep(Duration::from_millis(150)).await;
                let _ = sender.send(Message::Recovered(text)).await;
            });
        }
    }

    /// Does it, in the background.
    pub fn act(&mut self, effect: Effect) {
        match effect {
            Effect::Compile { revision, name, text } => self.compiler.compile(revision, name, text),
            Effect::Load(path) => self.blocking(move || {
                let result = files::load(&path);
                Message::Loaded { path, result }
            }),
            Effect::Save { path, text, revision, expect } => self.blocking(move || {
                let result = files::save(&path, &text, expect);
                Message::Saved { revision, result }
            }),
            Effect::Keep { text } => {
                if let Some(keeping) = &self.keeping {
                    keeping.send_replace(Some(text));
                }
            }
            Effect::DropKept => {
                if let Some(keeping) = &self.keeping {
                    keeping.send_replace(None);
                }
                if let Some(kept) = &self.kept {
                    kept.drop_own();
                }
            }
            Effect::DropFound => {
                if let Some(kept) = &mut self.kept {
                    kept.drop_found();
                }
            }
            Effect::AdoptFound => {
                if let Some(kept) = &mut self.kept {
                    kept.adopt_found();
                }
            }
            Effect::Export { name, text } => {
                let path = self.export.join(&name);
                self.blocking(move || {
                    let result = files::write_new_file(&path, &text);
                    Message::Exported { path: crate::text::line(&path.display().to_string()).into_owned(), result }
                });
            }
            Effect::Reconnect => self.reconnect.notify_one(),
            other => self.jobs.act(other),
        }
    }

    /// Connects to another target. What comes from the one before goes to a channel that nobody reads any more.
    pub fn switch(&mut self, name: &str, remote: Sender<Message>) {
        let Some((_, Ok(target))) = self.targets.iter().find(|(known, _)| known == name) else { return };
        if let Some(link) = self.link.take() {
            link.abort();
        }
        self.jobs.watch(None);
        self.watched = None;
        self.link = Some(tokio::spawn(link::keep(target.clone(), remote.clone(), Arc::clone(&self.reconnect))));
        self.jobs = Jobs::new(Some(target.clone()), remote, Arc::clone(&self.reconnect));
    }

    /// What the screen reads again and again.
    pub fn watch(&mut self, what: Option<Watched>) {
        if self.watched != what {
            self.watched = what;
            self.jobs.watch(what);
        }
    }

    fn blocking(&self, work: impl FnOnce() -> Message + Send + 'static) {
        let sender = self.sender.clone();
        tokio::task::spawn_blocking(move || {
            // The console may have ended meanwhile.
            let _ = sender.blocking_send(work());
        });
    }

    /// Ends what runs, waiting so long at most for the server to let go of it.
    pub async fn stop(&mut self, patience: Duration) {
        if let Some(link) = self.link.take() {
            link.abort();
        }
        self.jobs.stop(patience).await;
    }

    /// We are being ended: unsaved text is kept now. What runs on the server ends with our connections.
    pub fn abandon(&self, model: &Model) {
        if let Some(kept) = self.kept.as_ref().filter(|_| model.policy.unsaved())
            && let Err(error) = kept.keep(&model.policy.text())
        {
            tracing::error!("unsaved text could not be kept: {error}");
        }
    }
}

/// Keeps the newest unsaved text, shortly after it changed.
async fn keep(kept: Kept, mut receiver: watch::Receiver<Option<String>>, sender: Sender<Message>) {
    let mut told = false;
    while receiver.changed().await.is_ok() {
        tokio::time::sleep(KEEP_AFTER).await;
        let Some(text) = receiver.borrow_and_update().clone() else { continue };
        let place = kept.clone();
        let result = tokio::task::spawn_blocking(move || place.keep(&text)).await;
        if receiver.borrow().is_none() {
            // It was saved while it was being kept.
            kept.drop_own();
        }
        if let Ok(Err(error)) = result
            && !told
        {
            told = true;
            let words = format!("unsaved text cannot be kept against a crash: {error}");
            let _ = sender.send(Message::Said(Level::Warn, words)).await;
        }
    }
}
