//! Everything that talks to the server for a screen.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio::sync::mpsc::Sender;

use super::effect::Effect;
use super::message::Message;
use crate::db::target::Target;

/// The work that runs, and how to end it.
#[derive(Debug)]
pub struct Jobs {
    target: Option<Target>,
    sender: Sender<Message>,
    reconnect: Arc<Notify>,
}

impl Jobs {
    /// Nothing runs yet.
    pub fn new(target: Option<Target>, sender: Sender<Message>, reconnect: Arc<Notify>) -> Self {
        Jobs { target, sender, reconnect }
    }

    /// Starts it.
    pub fn act(&mut self, effect: Effect) {
        let _ = (&self.target, &self.sender, &self.reconnect, effect);
    }

    /// Ends what runs.
    pub async fn stop(&mut self) {}
}
