//! Inputs of a megabyte where an id or a word is due.

use futures_util::future::BoxFuture;

use super::unsuitable;
use crate::bench::engine::Worker;
use crate::bench::error::BenchError;
use crate::bench::scenario::{Criterion, Family, How, Load, Operation, Outcome, Scenario, Setting, Workload};

/// `oversized-input`
pub static OVERSIZED: Scenario = Scenario {
    name: "oversized-input",
    family: Family::Abuse,
    measures: "a megabyte of text as an id, a type, a permission, a relation or the start of a page",
    preparation: "takes a user to ask as",
    outcomes: &[("refused", "an error that names a wrong input")],
    criterion: Criterion {
        words: "every oversized input is refused as a wrong input; none is answered",
        allowed: &["refused"],
        required: &["refused"],
        verify: false,
    },
    load: Load::MANY,
    how: How::Workload(|setting| Box::pin(async move { oversized(setting) })),
};

struct Oversized {
    user: i64,
    digits: String,
    letters: String,
}

const MEGABYTE: usize = 1 << 20;

fn oversized(setting: &Setting) -> Result<Box<dyn Workload>, BenchError> {
    let user = setting.world.users().first().copied().ok_or_else(|| unsuitable("there are no active users"))?;
    Ok(Box::new(Oversized { user, digits: "9".repeat(MEGABYTE), letters: "a".repeat(MEGABYTE) }))
}

/// What is sent, with the place of the megabyte.
const QUESTIONS: [&str; 7] = [
    "SELECT authz.can('file', $1::text, 'view')",
    "SELECT authz.can($1::text, '1', 'view')",
    "SELECT authz.can('file', '1', $1::text)",
    "SELECT authz.list('file', 'view', $1::text, 10)",
    "SELECT authz.perms('folder', $1::text)",
    "SELECT authz.share('folder', $1::text, 'viewer', 'user', '1')",
    "SELECT authz.share('folder', '1', $1::text, 'user', '1')",
];

/// Wrong text for a number, too large a number, an unknown word, no permission, text too long.
const WRONG_INPUT: [&str; 6] = ["22P02", "22003", "22023", "P0001", "42501", "54000"];

impl Workload for Oversized {
    fn operate<'a>(&'a self, worker: &'a mut Worker) -> BoxFuture<'a, Operation> {
        Box::pin(async move {
            let Some(sql) = worker.rng.pick(&QUESTIONS).copied() else { return Ok(Outcome::refused()) };
            let text = if worker.rng.chance(500) { &self.digits } else { &self.letters };
            match worker.write(self.user, sql, &[text]).await? {
                Err(refused) if WRONG_INPUT.contains(&refused.code.as_str()) => Ok(Outcome::refused()),
                Err(refused) => Ok(Outcome::labelled(format!("sqlstate_{}", refused.code))),
                Ok(_) => Ok(Outcome::violation(format!("answered: {sql}"))),
            }
        })
    }
}
