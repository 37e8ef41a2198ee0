//! The Targets screen: the servers of rowdeck.toml.

/// A server of rowdeck.toml.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRow {
    /// Its name.
    pub name: String,
    /// Role, server and database, or why it cannot be used.
    pub place: Result<String, String>,
    /// Marked as production.
    pub production: bool,
    /// Marked as read-only.
    pub read_only: bool,
    /// How TLS is used, in words.
    pub tls: String,
}

/// The Targets screen.
#[derive(Debug, Clone, Default)]
pub struct Targets {
    /// Those of rowdeck.toml.
    pub rows: Vec<TargetRow>,
    /// The file, where there is one.
    pub file: Option<String>,
    /// The marked one.
    pub at: usize,
}
