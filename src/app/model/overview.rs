//! The Overview screen: is anything wrong, and the rates of the last minutes.

use std::collections::VecDeque;
use std::time::Duration;

use super::verify::Mode;
use super::{Model, Screen};
pub use crate::db::overview::{Attention, Counters, Overview as Read, Wait, Weight};

/// Readings of rates that are kept.
const KEPT: usize = 240;

/// The policy in force, counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InNumbers {
    /// Types.
    pub types: usize,
    /// Permissions of all types.
    pub permissions: usize,
    /// Tables with rules.
    pub tables: usize,
    /// The table whose reads expand the most views, and how many.
    pub most_views: Option<(String, usize)>,
}

/// Per second, between two readings.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rate {
    /// Rows of governed tables written.
    pub rows: f64,
    /// Rows of the index written.
    pub index: f64,
    /// Transactions committed.
    pub commits: f64,
    /// Transactions rolled back.
    pub rollbacks: f64,
}

/// The Overview screen.
#[derive(Debug, Clone, Default)]
pub struct Overview {
    /// What was read last.
    pub read: Option<Read>,
    /// The policy in force, counted; nothing where the role may not read it.
    pub numbers: Option<InNumbers>,
    /// When, on the console's clock.
    pub read_at: Duration,
    /// Rates, the newest last.
    pub rates: VecDeque<Rate>,
    /// The marked line of what needs the operator.
    pub at: usize,
    /// Why nothing could be read.
    pub failure: Option<String>,
}

impl Overview {
    /// A reading came.
    pub fn take(&mut self, read: Read, numbers: Option<InNumbers>, clock: Duration) {
        if let Some(before) = self.read.as_ref().map(|read| read.counters) {
            let seconds = read.counters.at - before.at;
            let per = |now: i64, then: i64| (now - then).max(0) as f64 / seconds;
            let now = read.counters;
            // Statistics that were reset, or a reading of another server, make no rate.
            if seconds > 0.2 && now.committed >= before.committed {
                self.rates.push_back(Rate {
                    rows: per(now.rows_written, before.rows_written),
                    index: per(now.index_written, before.index_written),
                    commits: per(now.committed, before.committed),
                    rollbacks: per(now.rolled_back, before.rolled_back),
                });
                while self.rates.len() > KEPT {
                    self.rates.pop_front();
                }
            }
        }
        (self.read, self.numbers, self.read_at, self.failure) = (Some(read), numbers, clock, None);
    }
}

/// A line of what needs the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// How bad it is.
    pub weight: Weight,
    /// What it is.
    pub words: String,
    /// What to do.
    pub help: String,
    /// Where.
    pub screen: Option<Screen>,
}

/// Everything that needs the operator, the worst first: what the server says, and what this console knows.
pub fn items(model: &Model) -> Vec<Item> {
    let mut items = Vec::new();
    let mut add = |weight: Weight, words: String, help: &str, screen: Option<Screen>| {
        items.push(Item { weight, words, help: help.to_owned(), screen });
    };
    if model.link.is_up() && model.link.facts().is_some_and(|facts| facts.policy.is_none()) {
        let help = "plan and apply one, or connect as the role that applied it";
        add(Weight::Wrong, "no policy in force is visible to this role".to_owned(), help, Some(Screen::Apply));
    }
    match (model.verify.wrong_total(), model.verify.mode) {
        (0, Mode::Failed) => {
            add(Weight::Look, "the last verify did not end".to_owned(), "go on from its cursor", Some(Screen::Verify))
        }
        (0, _) => {}
        (wrong, _) => add(
            Weight::Wrong,
            format!("{} of the index wrong", crate::text::counted(wrong, "object")),
            "look at what is stored and what should be, then repair",
            Some(Screen::Verify),
        ),
    }
    if model.policy.unsaved() {
        let words = format!("{} is not saved", model.policy.name);
        add(Weight::Look, words, "save it", Some(Screen::Policy));
    }
    let (mistakes, _) = model.policy.counts();
    if mistakes > 0 {
        let words = format!("{} has {}", model.policy.name, crate::text::counted(mistakes as u64, "mistake"));
        add(Weight::Look, words, "the first is under its line", Some(Screen::Policy));
    } else if differs(model) {
        let words = format!("{} is not the policy in force", model.policy.name);
        add(Weight::Look, words, "plan says what applying it would change", Some(Screen::Apply));
    }
    if let Some(read) = &model.overview.read {
        for wait in &read.waits {
            let words = format!("pid {} waits {:.0} s for {}", wait.pid, wait.seconds, wait.waits_for);
            add(Weight::Look, words, &format!("held by {}", wait.holders.join(", ")), Some(Screen::Activity));
        }
        for found in &read.attention {
            add(found.weight, found.words.clone(), &found.help, None);
        }
    }
    if let Some(locks) = model.link.facts().and_then(|facts| facts.locks)
        && locks.held * 10 > locks.capacity * 8
    {
        let words = format!("{} of {} locks of the server are held", locks.held, locks.capacity);
        add(Weight::Look, words, "an apply may not find enough; max_locks_per_transaction", Some(Screen::Activity));
    }
    items.sort_by_key(|item| item.weight);
    items
}

/// The text that is open compiles to something else than what is in force under its name.
fn differs(model: &Model) -> bool {
    let policy = &model.policy;
    let in_force = model.link.facts().and_then(|facts| facts.policy.as_ref());
    match (in_force, &policy.last_good) {
        (Some(in_force), Some((revision, emitted))) => {
            *revision == policy.revision && in_force.name == policy.name && in_force.digest != emitted.digest
        }
        _ => false,
    }
}
