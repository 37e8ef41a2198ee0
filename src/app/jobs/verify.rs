//! Verify, batch by batch, and repair.

use super::{Context, Slot};
use crate::app::message::Message;
use crate::db::connect::Session;
use crate::db::error::DbError;
use crate::db::progress::{VerifyBatch, Wrong};
use crate::db::verify;

/// Checks one batch. The session is kept from batch to batch; each batch is a transaction of its own.
pub async fn batch(context: Context, slot: Slot, cursor: Option<String>, size: u32) {
    let result = next(&context, &slot, cursor.as_deref(), size).await;
    context.tell(Message::Verified(result.map_err(|e| e.to_string()))).await;
}

async fn next(context: &Context, slot: &Slot, cursor: Option<&str>, size: u32) -> Result<VerifyBatch, DbError> {
    let held = slot.open(&context.target).await?;
    let Some(session) = held.as_ref() else { return Err(DbError::Unexpected("no session".into())) };
    if cursor.is_none()
        && let Some(total) = verify::about(&session.client).await?
    {
        context.tell(Message::VerifyTotal(total)).await;
    }
    verify::next_batch(&session.client, cursor, size).await
}

/// Derives what was found wrong anew.
pub async fn repair(context: Context, wrong: Vec<Wrong>) {
    let result = async {
        let session = Session::open(&context.writable()).await?;
        verify::repair(&session.client, &wrong).await
    };
    let result = result.await;
    context.tell(Message::Repaired(result.map_err(|e: DbError| e.to_string()))).await;
}
