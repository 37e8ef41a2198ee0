//! What a scenario is. `scenarios/` has one file for each kind; to add one, copy the nearest, change its
//! [`Scenario`], and list it in `scenarios/mod.rs`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Serialize;
use tokio_postgres::Client;

use super::engine::Worker;
use super::error::BenchError;
use super::facts::Facts;
use super::world::World;
use crate::db::target::Target;

/// What kind of scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// What an app does all day.
    Work,
    /// What nobody should do.
    Abuse,
    /// What must stay true when things happen at once.
    Consistency,
    /// Measures on a server of its own, or in steps of its own.
    Whole,
}

/// One scenario, as data.
#[derive(Debug)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// What kind.
    pub family: Family,
    /// What it measures, in one line.
    pub measures: &'static str,
    /// What it prepares before anything is measured.
    pub preparation: &'static str,
    /// Every label an operation may end with that is expected, and what it means. Others may occur: `sqlstate_CODE`,
    /// `timeout`, `lost`, `invariant_violation`.
    pub outcomes: &'static [(&'static str, &'static str)],
    /// When it passes.
    pub criterion: Criterion,
    /// How much at a time, when nothing else is asked for.
    pub load: Load,
    /// How it runs.
    pub how: How,
}

/// How much a scenario does at a time, when nothing else is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Connections.
    pub concurrency: u16,
    /// A statement that takes longer than so many seconds is cut off.
    pub cut_off_s: u16,
}

impl Load {
    /// Many short statements, cut off after four periods of a second.
    pub const MANY: Load = Load { concurrency: 32, cut_off_s: 4 };
    /// Few long ones.
    pub const FEW: Load = Load { concurrency: 2, cut_off_s: 60 };
}

/// When a run passes: no other outcome than these, each of the required ones at least once, nothing left broken.
#[derive(Debug, Clone, Copy)]
pub struct Criterion {
    /// In words, for `bench list`.
    pub words: &'static str,
    /// Labels that may occur. A label of a mix is judged by what follows its colon.
    pub allowed: &'static [&'static str],
    /// Labels that must.
    pub required: &'static [&'static str],
    /// Whether `authz.verify()` must be true afterwards.
    pub verify: bool,
}

/// How a scenario runs.
#[derive(Clone, Copy)]
pub enum How {
    /// Prepared by this, then driven by the engine.
    Workload(Make),
    /// By code of its own, with options of its own.
    Own,
}

impl std::fmt::Debug for How {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            How::Workload(_) => "Workload",
            How::Own => "Own",
        })
    }
}

/// Prepares a workload.
pub type Make = for<'a> fn(&'a Setting) -> BoxFuture<'a, Result<Box<dyn Workload>, BenchError>>;

/// What a prepared scenario does.
pub trait Workload: Send + Sync {
    /// One operation, from outside, as the app. Everything it does is measured.
    fn operate<'a>(&'a self, worker: &'a mut Worker) -> BoxFuture<'a, Operation>;

    /// Takes back what was written and says what is broken, one line each.
    fn finish<'a>(&'a self, setting: &'a Setting) -> BoxFuture<'a, Result<Vec<String>, BenchError>> {
        let _ = setting;
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Words for the result.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// How an operation ended.
pub type Operation = Result<Outcome, Trouble>;

/// The label of an operation that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// `ok`, `refused`, ...
    pub label: String,
    /// More about it, when it is not as it should be.
    pub words: Option<String>,
}

impl Outcome {
    /// As it should be.
    pub fn ok() -> Outcome {
        Outcome::labelled("ok")
    }

    /// A no, where no is right.
    pub fn refused() -> Outcome {
        Outcome::labelled("refused")
    }

    /// Any other label.
    pub fn labelled(label: impl Into<String>) -> Outcome {
        Outcome { label: label.into(), words: None }
    }

    /// What must never be.
    pub fn violation(words: impl Into<String>) -> Outcome {
        Outcome { label: "invariant_violation".to_owned(), words: Some(words.into()) }
    }

    /// `ok` or `refused` when the answer is what it must be.
    pub fn judged(answer: bool, expected: bool, what: impl FnOnce() -> String) -> Outcome {
        match (answer, expected) {
            (true, true) => Outcome::ok(),
            (false, false) => Outcome::refused(),
            _ => Outcome::violation(format!("{}: {answer}, where it must be {expected}", what())),
        }
    }
}

/// An operation that did not come to an answer.
#[derive(Debug)]
pub enum Trouble {
    /// The server refused, or the connection was lost.
    Database(tokio_postgres::Error),
    /// Anything else.
    Other(String),
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Self {
        Trouble::Database(error)
    }
}

/// What a scenario prepares with.
pub struct Setting {
    /// The owner's target.
    pub target: Target,
    /// The owner's connection: for preparing and cleaning up, never for what is measured.
    pub owner: Client,
    /// What there is, and what is written.
    pub(crate) world: Arc<World>,
    /// Who may do what.
    pub(crate) facts: Arc<Facts>,
    /// What random choices follow from.
    pub seed: u64,
    /// Operations at a time.
    pub concurrency: usize,
    /// Separate client processes, for the scenarios that use them.
    pub processes: usize,
    /// This program, and the arguments that name the target: for separate client processes.
    pub program: (PathBuf, Vec<OsString>),
}

/// What a criterion says of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The criterion.
    pub words: String,
    /// True when it is met.
    pub met: bool,
    /// What is not as it should be, one line each.
    pub broken: Vec<String>,
}

impl Criterion {
    /// Judges the labels with their counts and last words.
    pub fn judge<'a>(
        &self,
        outcomes: impl Iterator<Item = (&'a str, u64, Option<&'a str>)>,
        mut broken: Vec<String>,
    ) -> Verdict {
        let own = |label: &'a str| label.rsplit_once(':').map_or(label, |(_, own)| own);
        let mut seen = Vec::new();
        for (label, count, words) in outcomes {
            seen.push(own(label));
            if !self.allowed.contains(&own(label)) {
                let words = words.map_or_else(String::new, |words| format!(": {words}"));
                broken.push(format!("{count} times {label}{words}"));
            }
        }
        for required in self.required.iter().filter(|required| !seen.contains(required)) {
            broken.push(format!("never {required}"));
        }
        Verdict { words: self.words.to_owned(), met: broken.is_empty(), broken }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRITERION: Criterion = Criterion { words: "", allowed: &["ok", "refused"], required: &["ok"], verify: false };

    #[test]
    fn labels_that_are_not_allowed_or_do_not_occur_fail() {
        let judge = |labels: &[(&'static str, u64)]| {
            CRITERION.judge(labels.iter().map(|(label, n)| (*label, *n, Some("why"))), Vec::new())
        };
        assert!(judge(&[("ok", 5), ("refused", 1)]).met);
        assert!(judge(&[("check:ok", 5)]).met);
        assert_eq!(judge(&[("refused", 1)]).broken, ["never ok"]);
        assert_eq!(judge(&[("ok", 1), ("a:sqlstate_42501", 2)]).broken, ["2 times a:sqlstate_42501: why"]);
        assert_eq!(judge(&[]).broken, ["never ok"], "a run without a single operation passes nothing");
    }
}
