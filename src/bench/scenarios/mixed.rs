//! What an app does all day, by weights.

use futures_util::future::BoxFuture;

use super::{reads, writes};
use crate::bench::engine::Worker;
use crate::bench::error::BenchError;
use crate::bench::live::Kind;
use crate::bench::scenario::{Criterion, Family, How, Load, Operation, Scenario, Setting, Workload};

/// `mixed`
pub static MIXED: Scenario = Scenario {
    name: "mixed",
    family: Family::Work,
    measures: "by weights: check 40, open-file 25, open-folder 15, create 10, share 5, move 4, link 1",
    preparation: "as for the scenarios in it. Moves change who may do what, so a yes and a no are both taken for right",
    outcomes: &[
        ("ok", "a yes, or something shown or written; labels say of what: check:ok, move:ok, ..."),
        ("refused", "a no, or nothing shown"),
        ("exhausted", "every pair that may be linked is linked; nothing was sent to the server"),
    ],
    criterion: Criterion {
        words: "nothing failed, every share shows its folder at once, and the index is exact afterwards",
        allowed: &["ok", "refused", "exhausted"],
        required: &["ok"],
        verify: true,
    },
    load: Load::MANY,
    how: How::Workload(|setting| Box::pin(async move { mixed(setting).await })),
};

struct Mixed {
    parts: Vec<(u64, &'static str, Box<dyn Workload>)>,
}

async fn mixed(setting: &Setting) -> Result<Box<dyn Workload>, BenchError> {
    let parts: Vec<(u64, &'static str, Box<dyn Workload>)> = vec![
        (40, "check", Box::new(reads::check(setting, false)?)),
        (25, "open-file", Box::new(reads::open_file(setting, false)?)),
        (15, "open-folder", Box::new(reads::open_folder(setting, false).await?)),
        (10, "create", Box::new(writes::tree(setting, Kind::Create, false))),
        (5, "share", Box::new(writes::share(setting, false)?)),
        (4, "move", Box::new(writes::tree(setting, Kind::Move, false))),
        (1, "link", Box::new(writes::tree(setting, Kind::Link, false))),
    ];
    Ok(Box::new(Mixed { parts }))
}

impl Workload for Mixed {
    fn operate<'a>(&'a self, worker: &'a mut Worker) -> BoxFuture<'a, Operation> {
        Box::pin(async move {
            let all: u64 = self.parts.iter().map(|(weight, ..)| weight).sum();
            let mut at = worker.rng.below(all);
            for (weight, name, part) in &self.parts {
                if at < *weight {
                    let mut outcome = part.operate(worker).await?;
                    outcome.label = format!("{name}:{}", outcome.label);
                    return Ok(outcome);
                }
                at -= weight;
            }
            Ok(crate::bench::scenario::Outcome::labelled("failed"))
        })
    }

    fn finish<'a>(&'a self, setting: &'a Setting) -> BoxFuture<'a, Result<Vec<String>, BenchError>> {
        Box::pin(async move {
            let mut broken = Vec::new();
            for (_, name, part) in &self.parts {
                broken.extend(part.finish(setting).await?.into_iter().map(|one| format!("{name}: {one}")));
            }
            Ok(broken)
        })
    }
}
