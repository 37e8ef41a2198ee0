//! Requests by nobody, as fast as they go, beside somebody who works.

use futures_util::future::BoxFuture;

use super::reads;
use crate::bench::engine::Worker;
use crate::bench::error::BenchError;
use crate::bench::scenario::{Criterion, Family, How, Load, Operation, Outcome, Scenario, Setting, Workload};

/// `request-flood`
pub static FLOOD: Scenario = Scenario {
    name: "request-flood",
    family: Family::Abuse,
    measures: "seven connections in eight ask without signing in, as fast as they can; the eighth checks as ever",
    preparation: "as for check",
    outcomes: &[
        ("ok", "a right yes to the one who works: benign:ok"),
        ("refused", "flood:refused, SQLSTATE 28000 and no work done; benign:refused, a right no"),
    ],
    criterion: Criterion {
        words: "every request of the flood is refused, and every answer to the one who works is the right one",
        allowed: &["ok", "refused"],
        required: &["ok", "refused"],
        verify: false,
    },
    load: Load::MANY,
    how: How::Workload(|setting| Box::pin(async move { flood(setting) })),
};

struct Flood {
    benign: reads::Check,
}

fn flood(setting: &Setting) -> Result<Box<dyn Workload>, BenchError> {
    Ok(Box::new(Flood { benign: reads::check(setting, true)? }))
}

const REQUESTS: [&str; 4] = [
    "SELECT authz.can('file', 1::bigint, 'view')",
    "SELECT name FROM app.files WHERE id = 1",
    "SELECT count(*) FROM app.files",
    "SELECT authz.list('file', 'view', NULL::text, 1000)",
];

impl Workload for Flood {
    fn operate<'a>(&'a self, worker: &'a mut Worker) -> BoxFuture<'a, Operation> {
        Box::pin(async move {
            if worker.number.is_multiple_of(8) {
                let mut outcome = self.benign.operate(worker).await?;
                outcome.label = format!("benign:{}", outcome.label);
                return Ok(outcome);
            }
            let Some(sql) = worker.rng.pick(&REQUESTS).copied() else { return Ok(Outcome::refused()) };
            let statement = worker.statement(sql).await?;
            match worker.client.query(&statement, &[]).await {
                Err(error) if error.code().is_some_and(|code| code.code() == "28000") => {
                    Ok(Outcome::labelled("flood:refused"))
                }
                Err(error) => Err(error.into()),
                Ok(rows) => {
                    let words = Some(format!("{} rows for nobody from {sql}", rows.len()));
                    Ok(Outcome { label: "flood:invariant_violation".to_owned(), words })
                }
            }
        })
    }
}
