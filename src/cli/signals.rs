//! Signals that end us. They are waited for rather than left to their default, so that the embedded server is stopped
//! and what runs on a server is cancelled.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::db::error::DbError;

/// SIGINT, SIGTERM and SIGHUP, from when this is made on.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

/// The signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caught {
    /// Its name.
    pub name: &'static str,
    /// The exit code that says so, as shells have it.
    pub exit_code: u8,
}

impl Signals {
    /// Starts listening.
    pub fn new() -> Result<Signals, DbError> {
        let listen = |kind| signal(kind).map_err(|e| DbError::io("cannot listen for signals", e));
        Ok(Signals {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// Waits for the next of them.
    pub async fn next(&mut self) -> Caught {
        tokio::select! {
            _ = self.interrupt.recv() => Caught { name: "SIGINT", exit_code: 130 },
            _ = self.terminate.recv() => Caught { name: "SIGTERM", exit_code: 143 },
            _ = self.hang_up.recv() => Caught { name: "SIGHUP", exit_code: 129 },
        }
    }
}
