//! Keeps one session open to know where we are connected; when it is lost, tries again with growing waits.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};

use super::message::Message;
use super::model::link::{Facts, InForce, LockTable};
use crate::db::connect::Session;
use crate::db::error::DbError;
use crate::db::target::Target;
use crate::policy_text::Table;

/// How often the policy in force and the role's rights are read again.
const REFRESH: Duration = Duration::from_secs(5);

/// Columns of the database that are read for completion.
const MOST_COLUMNS: i64 = 20_000;

/// Runs until the console ends.
pub async fn keep(target: Target, sender: mpsc::Sender<Message>, again: Arc<Notify>) {
    let mut tries: u32 = 0;
    loop {
        let (reason, wait) = match Session::open(&target).await {
            Ok(session) => {
                tries = 0;
                let reason = watch(session, &sender, &again).await;
                (reason, Some(Duration::from_millis(500)))
            }
            Err(error) => {
                tries = tries.saturating_add(1);
                (error.to_string(), wait_after(&error, tries))
            }
        };
        if sender.send(Message::LinkDown { reason, retry_in: wait }).await.is_err() {
            return;
        }
        match wait {
            Some(wait) => tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = again.notified() => {}
            },
            None => again.notified().await,
        }
    }
}

/// A refused password is not tried again by itself: some servers lock the account.
fn wait_after(error: &DbError, tries: u32) -> Option<Duration> {
    let refused = matches!(error, DbError::Usage(_)) || error.sqlstate().is_some_and(|state| state.starts_with("28"));
    (!refused).then(|| Duration::from_secs((1_u64 << tries.min(4)).min(15)))
}

/// Watches an open session until it is lost; returns why.
async fn watch(mut session: Session, sender: &mpsc::Sender<Message>, again: &Notify) -> String {
    let locks = lock_table(&session).await;
    let mut known = facts(&session, locks);
    if sender.send(Message::LinkUp(Box::new(known.clone()))).await.is_err() {
        return "the console ended".into();
    }
    // They only help with typing: where they cannot be read, nothing is missed.
    if let Ok(tables) = crate::db::catalog::columns(&session.client, MOST_COLUMNS).await {
        let clean = |text: String| crate::text::line(&text).into_owned();
        let table = |(name, columns): (String, Vec<String>)| Table {
            name: clean(name),
            columns: columns.into_iter().map(clean).collect(),
        };
        let _ = sender.send(Message::Tables(tables.into_iter().map(table).collect())).await;
    }
    loop {
        tokio::select! {
            changed = session.closed.changed() => {
                // Also when the sender is gone: then the connection's own task has ended.
                let _ = changed;
                return session.lost().unwrap_or_else(|| "the connection ended".into());
            }
            () = tokio::time::sleep(REFRESH) => {}
            () = again.notified() => {}
        }
        if let Err(error) = session.refresh().await {
            if session.lost().is_some() || error.is_lost() {
                return session.lost().unwrap_or_else(|| error.to_string());
            }
            let words = format!("the server's facts cannot be read again: {error}");
            if sender.send(Message::Said(super::model::Level::Warn, words)).await.is_err() {
                return "the console ended".into();
            }
            continue;
        }
        let mut now = facts(&session, known.locks);
        if now != known {
            now.locks = lock_table(&session).await;
            known = now;
            if sender.send(Message::LinkUp(Box::new(known.clone()))).await.is_err() {
                return "the console ended".into();
            }
        }
    }
}

/// What the server's lock table holds; `None` where the role may not ask.
async fn lock_table(session: &Session) -> Option<LockTable> {
    let table = crate::db::catalog::LockTable::read(&session.client).await;
    table.ok().map(|table| LockTable { capacity: table.capacity, held: table.held })
}

fn facts(session: &Session, locks: Option<LockTable>) -> Facts {
    let info = &session.info;
    let clean = |text: &str| crate::text::line(text).into_owned();
    let mut dangers: Vec<String> =
        info.flags.words().into_iter().map(|word| word.replace("superuser", "SUPERUSER")).collect();
    if info.in_recovery {
        dangers.push("STANDBY".into());
    }
    let hosts: Vec<String> = session.target.hosts.iter().map(ToString::to_string).collect();
    Facts {
        server: clean(&hosts.join(",")),
        database: clean(&info.database),
        role: clean(&info.role),
        dangers,
        version: clean(&info.version),
        tls: info.tls.words().to_owned(),
        policy: info.policy.as_ref().map(|p| InForce {
            version: p.version,
            name: clean(&p.name),
            digest: clean(&p.digest),
            applied: clean(&format!("{} by {}", p.applied_at, p.applied_by)),
        }),
        development: info.development,
        locks,
    }
}
