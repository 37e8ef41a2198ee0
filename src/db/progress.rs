//! One stream of progress, over a bounded channel, that feeds the console, the plain-text lines and `--json` alike;
//! and the reports long work ends with.

use serde::Serialize;
use tokio::sync::mpsc;

/// The sending side of a progress stream. Sending waits when the reader is slow; a reader that went away is ignored.
#[derive(Debug, Clone)]
pub struct Reporter(Option<mpsc::Sender<Progress>>);

impl Reporter {
    /// A reporter and the stream it feeds (64 messages are held at most).
    pub fn channel() -> (Self, mpsc::Receiver<Progress>) {
        let (sender, receiver) = mpsc::channel(64);
        (Reporter(Some(sender)), receiver)
    }

    /// A reporter nobody listens to.
    pub fn silent() -> Self {
        Reporter(None)
    }

    /// Sends one message.
    pub async fn send(&self, progress: Progress) {
        if let Some(sender) = &self.0 {
            // The reader may have gone away; the work goes on all the same.
            let _ = sender.send(progress).await;
        }
    }
}

/// One piece of news from long work.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Progress {
    /// A phase begins. Phases are numbered from 1.
    Phase {
        /// Which one.
        number: usize,
        /// Of how many.
        of: usize,
        /// What it does, in a few words.
        title: String,
        /// What it holds locked meanwhile, in words (`none`, `SHARE ROW EXCLUSIVE on app.folders`).
        locks: String,
    },
    /// A batch of the current phase ended.
    Batch {
        /// Batches done in this phase.
        batch: u64,
        /// Of how many, where known.
        of: Option<u64>,
        /// Rows done in this phase.
        rows: u64,
        /// Of how many, where known.
        rows_of: Option<u64>,
        /// Rows a second over this phase.
        rate: f64,
        /// Seconds left at this rate, where known.
        left: Option<f64>,
    },
    /// Waiting for a lock: who holds it, in words.
    Waiting {
        /// For how long, in seconds.
        seconds: f64,
        /// `pid 4602 (psql, idle in transaction) holds app.folders`.
        blockers: Vec<String>,
    },
    /// Something worth a line in the log.
    Note {
        /// One sentence.
        text: String,
    },
}

/// How an apply ended.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct ApplyReport {
    /// Seconds from the first statement to the commit.
    pub seconds: f64,
    /// Rows of the index that were built (nodes and clusters).
    pub rows_built: u64,
    /// True when this very policy was in force already and nothing was changed.
    pub unchanged: bool,
    /// The version now in force.
    pub version: i64,
    /// Digest of the generated SQL now in force.
    pub digest: String,
    /// Objects made.
    pub objects: usize,
    /// Graphs built, and graphs kept because their definition did not change.
    pub graphs_built: usize,
    /// See `graphs_built`.
    pub graphs_kept: usize,
    /// Ways around the rules that are in the database (`rowdeck lint`); not looked for when nothing was changed.
    pub findings: Vec<super::lint::Finding>,
}

/// One wrong object that verify found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wrong {
    /// The graph's title.
    pub graph: String,
    /// The object's type.
    #[serde(rename = "type")]
    pub ty: String,
    /// The object's id, as text.
    pub id: String,
    /// Ancestors as stored, nearest first where they are ordered; `None` when the object is not in the index.
    pub stored: Option<Vec<String>>,
    /// Ancestors as they should be; `None` when the object should not be in the index.
    pub expected: Option<Vec<String>>,
    /// What is wrong in words.
    pub what: String,
}

/// One batch of a verify.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerifyBatch {
    /// Where the next batch starts; `None` after the last.
    pub cursor: Option<String>,
    /// Objects checked in this batch.
    pub checked: u64,
    /// What was wrong in it.
    pub wrong: Vec<Wrong>,
    /// Seconds it took.
    pub seconds: f64,
}

/// How a verify ended, or stands.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct VerifyReport {
    /// True when everything was checked and nothing was wrong.
    pub ok: bool,
    /// Objects checked.
    pub checked: u64,
    /// What was wrong.
    pub wrong: Vec<Wrong>,
    /// Where to go on, when it stopped before the end.
    pub cursor: Option<String>,
    /// Batches run.
    pub batches: u64,
    /// Seconds in all.
    pub seconds: f64,
}
