//! A statement that is tried, on a session of its own.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::{Context, Slot};
use crate::app::message::Message;
use crate::app::model::inspect::parse_object;
use crate::compiler::Compiled;
use crate::db::as_role::Principal;
use crate::db::connect::{Cancel, Session};
use crate::db::error::DbError;
use crate::db::try_it::{self, Caps, Tried};

/// The policy in force, as of its version.
type Known = (i64, Arc<Compiled>);

/// Runs statements, one at a time.
#[derive(Debug, Clone, Default)]
pub struct Trying {
    slot: Slot,
    known: Arc<Mutex<Option<Known>>>,
    cancel: Arc<std::sync::Mutex<Option<Cancel>>>,
}

impl Trying {
    /// Runs one and rolls it back.
    pub async fn run(&self, context: &Context, asked: u64, who: String, statement: String, writes: bool) {
        let result = self.tried(context, &who, &statement, writes).await;
        self.set_cancel(None);
        let result = result.map(Box::new).map_err(|error| error.to_string());
        context.tell(Message::Tried { asked, result }).await;
    }

    async fn tried(&self, context: &Context, who: &str, statement: &str, writes: bool) -> Result<Tried, DbError> {
        let who = match parse_object(who) {
            Some(person) => Principal::Of { ty: person.ty, id: person.id },
            None => Principal::Nobody,
        };
        let target = if writes { context.writable() } else { context.target.clone() };
        let held = self.slot.open(&target).await?;
        let Some(session) = held.as_ref() else { return Err(DbError::Unexpected("no session".into())) };
        self.set_cancel(Some(session.cancel.clone()));
        let policy = self.policy(session).await?;
        try_it::run(session, &policy, &who, statement, writes, Caps::SCREEN).await
    }

    async fn policy(&self, session: &Session) -> Result<Arc<Compiled>, DbError> {
        let version = session.info.require_policy()?.version;
        let mut known = self.known.lock().await;
        match known.as_ref() {
            Some((at, policy)) if *at == version => Ok(Arc::clone(policy)),
            _ => {
                let policy = Arc::new(try_it::policy_in_force(session).await?);
                *known = Some((version, Arc::clone(&policy)));
                Ok(policy)
            }
        }
    }

    fn set_cancel(&self, cancel: Option<Cancel>) {
        if let Ok(mut held) = self.cancel.lock() {
            *held = cancel;
        }
    }

    /// Cancels what runs on the server.
    pub fn cancel(&self) {
        let held = Arc::clone(&self.cancel);
        tokio::spawn(async move {
            // The server forgets a cancel that comes between two statements, so it is sent until the run has ended.
            for _ in 0..100 {
                let Some(cancel) = held.lock().ok().and_then(|held| held.clone()) else { return };
                if let Err(error) = cancel.cancel().await {
                    tracing::warn!("a statement could not be cancelled: {error}");
                }
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
        });
    }
}
