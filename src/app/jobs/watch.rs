//! What the Overview and the Activity screen show, read again every two seconds while they are on the screen.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::{Context, Slot};
use crate::app::message::Message;
use crate::app::model::Watched;
use crate::app::model::activity::{End, Sessions};
use crate::app::model::overview::{InNumbers, Read};
use crate::db::connect::Session;
use crate::db::error::DbError;
use crate::db::{overview, sessions, try_it};

/// Between two readings.
const EVERY: Duration = Duration::from_secs(2);
/// A reading must not wait behind what it is to show.
const BEGIN: &str = "BEGIN READ ONLY; SET LOCAL statement_timeout = '5s'; SET LOCAL lock_timeout = '1s'";

/// The policy in force, as of its version: counted, and its app role.
type Known = Option<(i64, Option<InNumbers>, Option<String>)>;

/// The reading that goes on.
#[derive(Debug, Default)]
pub struct Watch {
    /// Dropped to end the reading; one that is under way is still ended in order, so that no transaction stays open.
    goes_on: Option<watch::Sender<()>>,
    slot: Slot,
    again: Arc<Notify>,
}

impl Watch {
    /// Reads this from now on, instead of what was read before.
    pub fn set(&mut self, context: Option<&Context>, what: Option<Watched>) {
        self.goes_on = None;
        if let (Some(context), Some(what)) = (context, what) {
            let (slot, again) = (self.slot.clone(), Arc::clone(&self.again));
            let (goes_on, ended) = watch::channel(());
            self.goes_on = Some(goes_on);
            tokio::spawn(keep_reading(context.clone(), slot, again, what, ended));
        }
    }

    /// Reads it now.
    pub fn now(&self) {
        self.again.notify_one();
    }
}

async fn keep_reading(context: Context, slot: Slot, again: Arc<Notify>, what: Watched, mut ended: watch::Receiver<()>) {
    let mut known: Known = None;
    loop {
        let message = match what {
            Watched::Overview => {
                let read = read_overview(&context, &slot, &mut known).await;
                Message::Overview(read.map(|(read, numbers)| (Box::new(read), numbers)).map_err(|e| e.to_string()))
            }
            Watched::Sessions => {
                Message::Sessions(read_sessions(&context, &slot).await.map(Box::new).map_err(|e| e.to_string()))
            }
        };
        if ended.has_changed().is_err() {
            return;
        }
        context.tell(message).await;
        tokio::select! {
            _ = ended.changed() => return,
            () = tokio::time::sleep(EVERY) => {}
            () = again.notified() => {}
        }
    }
}

async fn read_overview(
    context: &Context,
    slot: &Slot,
    known: &mut Known,
) -> Result<(Read, Option<InNumbers>), DbError> {
    let held = slot.open(&context.target).await?;
    let Some(session) = held.as_ref() else { return Err(DbError::Unexpected("no session".into())) };
    let version = session.info.policy.as_ref().map(|policy| policy.version);
    if let Some(version) = version
        && known.as_ref().is_none_or(|(at, ..)| *at != version)
    {
        let (numbers, role) = in_numbers(session).await?;
        *known = Some((version, numbers, role));
    }
    let (numbers, role) = match known {
        Some((_, numbers, role)) if version.is_some() => (numbers.clone(), role.clone()),
        _ => (None, None),
    };
    let read = briefly(session, overview::read(&session.client, role.as_deref())).await?;
    Ok((read, numbers))
}

async fn read_sessions(context: &Context, slot: &Slot) -> Result<Sessions, DbError> {
    let held = slot.open(&context.target).await?;
    let Some(session) = held.as_ref() else { return Err(DbError::Unexpected("no session".into())) };
    briefly(session, sessions::read(&session.client)).await
}

async fn briefly<T>(session: &Session, work: impl Future<Output = Result<T, DbError>>) -> Result<T, DbError> {
    session.client.batch_execute(BEGIN).await?;
    let result = work.await;
    // It changed nothing, and a roll back would be counted among those of the application.
    let ended = session.client.batch_execute("COMMIT").await;
    let value = result?;
    ended?;
    Ok(value)
}

/// The policy in force, counted. One that this version of rowdeck cannot compile has no numbers, which is no reason to
/// show nothing.
async fn in_numbers(session: &Session) -> Result<(Option<InNumbers>, Option<String>), DbError> {
    let compiled = try_it::policy_in_force(session).await?;
    let work = move || {
        let model = compiled.model?;
        let emitted = crate::compiler::emit::emit(&model).ok();
        let most = emitted.iter().flat_map(|e| &e.tables).max_by_key(|table| table.expanded_views);
        let numbers = InNumbers {
            types: model.types.len(),
            permissions: model.types.iter().map(|ty| ty.permissions.len()).sum(),
            tables: model.rules.len(),
            most_views: most.map(|table| (crate::text::line(&table.table.plain()).into_owned(), table.expanded_views)),
        };
        Some((numbers, model.app_role.as_str().to_owned()))
    };
    let counted = tokio::task::spawn_blocking(work).await.map_err(|e| DbError::Unexpected(e.to_string()))?;
    Ok(match counted {
        Some((numbers, role)) => (Some(numbers), Some(role)),
        None => (None, None),
    })
}

/// Cancels what a session runs, or ends it.
pub async fn end_session(context: Context, pid: i32, started: f64, how: End) {
    let result = async {
        let session = Session::open(&context.target).await?;
        sessions::end(&session.client, pid, started, how).await
    };
    let result: Result<bool, DbError> = result.await;
    context.tell(Message::SessionEnded { pid, how, result: result.map_err(|e| e.to_string()) }).await;
}
