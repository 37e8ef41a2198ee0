//! Where we are connected, as what, and since when not any more.

use std::time::Duration;

/// What the header says of the server. All of it is asked again at each reconnect.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// The server as people name it: host and port, or the socket's folder.
    pub server: String,
    /// The database.
    pub database: String,
    /// The role we act as.
    pub role: String,
    /// What is dangerous about that role, in words: `SUPERUSER`, `bypasses RLS`, `owns tables`.
    pub dangers: Vec<String>,
    /// The server's version, such as `15.6`.
    pub version: String,
    /// What protects the connection, in words: `TLS verified`, `no TLS (unix socket)`.
    pub tls: String,
    /// The policy in force.
    pub policy: Option<InForce>,
    /// The database is marked as one for development.
    pub development: bool,
    /// How many locks the server can hold in all, and how many are held now, where it may be asked.
    pub locks: Option<LockTable>,
}

/// The server's lock table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockTable {
    /// `max_locks_per_transaction` times the connections and prepared transactions there may be.
    pub capacity: u64,
    /// Held now.
    pub held: u64,
}

/// The policy in force.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InForce {
    /// Its version.
    pub version: i64,
    /// Its name.
    pub name: String,
    /// The digest of its generated SQL.
    pub digest: String,
    /// When and by whom, in words.
    pub applied: String,
}

/// The state of the connection.
#[derive(Debug, Clone, PartialEq)]
pub enum Link {
    /// The console was opened without a database.
    Unused,
    /// The first connection is being made.
    Connecting,
    /// Connected.
    Up(Facts),
    /// Not connected: never, or not any more.
    Down {
        /// What was known before, when it was connected before.
        last: Option<Facts>,
        /// Since when, on the console's clock.
        since: Duration,
        /// Why, in the server's or the system's words.
        reason: String,
        /// Tries since.
        tries: u32,
        /// When the next try is due, on the console's clock; `None` when trying again by itself makes no sense.
        retry_at: Option<Duration>,
    },
}

impl Link {
    /// What is known of the server now.
    pub fn facts(&self) -> Option<&Facts> {
        match self {
            Link::Up(facts) => Some(facts),
            Link::Down { last, .. } => last.as_ref(),
            Link::Unused | Link::Connecting => None,
        }
    }

    /// Connected now.
    pub fn is_up(&self) -> bool {
        matches!(self, Link::Up(_))
    }

    /// An age is shown.
    pub fn wants_clock(&self) -> bool {
        matches!(self, Link::Down { .. })
    }

    /// Why there is no data, for a screen that has none.
    pub fn why_no_data(&self) -> &'static str {
        match self {
            Link::Unused => "no database: start with --db or a target in rowdeck.toml",
            Link::Connecting => "connecting ...",
            Link::Up(_) => "connected",
            Link::Down { .. } => "not connected; trying again",
        }
    }
}
