//! Two sessions at once, on what must come out one way or the other.

use futures_util::future::BoxFuture;
use tokio_postgres::types::ToSql;

use super::unsuitable;
use crate::bench::engine::Worker;
use crate::bench::error::BenchError;
use crate::bench::facts::Permission;
use crate::bench::random::Rng;
use crate::bench::scenario::{Criterion, Family, How, Load, Operation, Outcome, Scenario, Setting, Trouble, Workload};

/// `move-race`
pub static MOVE_RACE: Scenario = Scenario {
    name: "move-race",
    family: Family::Consistency,
    measures: "crossed moves: one session puts a folder into another while a second puts that one into the first",
    preparation: "makes two folders for each connection, by a user who may move both",
    outcomes: &[
        ("ok", "one move won, the other was refused (AZ713, or a serialization failure or deadlock to retry)"),
        ("both_refused", "neither won"),
    ],
    criterion: Criterion {
        words: "never both: no ring, and the index is exact afterwards",
        allowed: &["ok", "both_refused"],
        required: &["ok"],
        verify: true,
    },
    load: Load::MANY,
    how: How::Workload(|setting| Box::pin(async move { crossed(setting).await })),
};

/// `share-delete-race`
pub static SHARE_DELETE: Scenario = Scenario {
    name: "share-delete-race",
    family: Family::Consistency,
    measures: "a file shared by one session while another deletes it; then its id is used again",
    preparation: "draws folders with somebody who may share what is in them and users who may not view it",
    outcomes: &[
        ("ok", "the file is gone, and the share does not live on in the next file with its id"),
        ("kept", "the delete was the one refused (a deadlock or a serialization failure to retry)"),
    ],
    criterion: Criterion {
        words: "no share outlives its file, and nothing failed",
        allowed: &["ok", "kept"],
        required: &["ok"],
        verify: false,
    },
    load: Load::MANY,
    how: How::Workload(|setting| Box::pin(async move { share_delete(setting) })),
};

/// Refusals that say: somebody else came first.
const FIRST_COME: [&str; 3] = ["23514", "40001", "40P01"];

struct Crossed {
    /// For each connection: who moves, the folder that both are in, and the two.
    pairs: Vec<(i64, i64, [i64; 2])>,
}

async fn crossed(setting: &Setting) -> Result<Box<dyn Workload>, BenchError> {
    let mut rng = Rng::split(setting.seed, "crossed", 0);
    let doing = || BenchError::database("making folders");
    let mut pairs = Vec::new();
    for number in 0..setting.concurrency {
        let (home, org, user) =
            setting.world.folder_and_holder(&mut rng).ok_or_else(|| unsuitable("there are no folders"))?;
        let mut two = [0; 2];
        for (which, id) in two.iter_mut().enumerate() {
            let name = format!("{}crossed {number} {which}", setting.world.prefix);
            let make =
                "INSERT INTO app.folders (parent_id, org_id, owner_id, name) VALUES ($1, $2, $3, $4) RETURNING id";
            let row = setting.owner.query_one(make, &[&home, &org, &user, &name]).await.map_err(doing())?;
            *id = row.try_get(0).map_err(doing())?;
        }
        pairs.push((user, home, two));
    }
    Ok(Box::new(Crossed { pairs }))
}

const MOVE: &str = "UPDATE app.folders SET parent_id = $2 WHERE id = $1";

impl Workload for Crossed {
    fn operate<'a>(&'a self, worker: &'a mut Worker) -> BoxFuture<'a, Operation> {
        Box::pin(async move {
            let Some((user, home, [a, b])) = self.pairs.get(worker.number).copied() else {
                return Ok(Outcome::labelled("failed"));
            };
            worker.second().await.map_err(|error| Trouble::Other(error.to_string()))?;
            let Some((mut first, second)) = worker.both() else { return Ok(Outcome::labelled("failed")) };
            let (there, back): ([&(dyn ToSql + Sync); 2], [&(dyn ToSql + Sync); 2]) = ([&a, &b], [&b, &a]);
            let (one, other) = tokio::join!(first.write(user, MOVE, &there), second.write(user, MOVE, &back));
            let outcome = match (one?, other?) {
                (Ok(1), Ok(1)) => Outcome::violation(format!("folders {a} and {b} are both in the other one")),
                (Ok(1), Err(refused)) | (Err(refused), Ok(1)) if FIRST_COME.contains(&refused.code.as_str()) => {
                    Outcome::ok()
                }
                (Err(one), Err(other))
                    if [&one, &other].iter().all(|refused| FIRST_COME.contains(&refused.code.as_str())) =>
                {
                    Outcome::labelled("both_refused")
                }
                (one, other) => Outcome { label: "failed".to_owned(), words: Some(format!("{one:?}, {other:?}")) },
            };
            // Both go back, outside what is raced.
            for id in [a, b] {
                if let Err(refused) = worker.write(user, MOVE, &[&id, &home]).await? {
                    return Err(Trouble::Other(format!("moving folder {id} back: {}", refused.words)));
                }
            }
            Ok(outcome)
        })
    }

    fn finish<'a>(&'a self, setting: &'a Setting) -> BoxFuture<'a, Result<Vec<String>, BenchError>> {
        Box::pin(async move {
            let rings = "WITH RECURSIVE up(id, at, steps) AS (
                    SELECT id, parent_id, 1 FROM app.folders WHERE starts_with(name, $1)
                    UNION ALL
                    SELECT up.id, f.parent_id, steps + 1 FROM up JOIN app.folders f ON f.id = up.at
                     WHERE up.at <> up.id AND steps < 10000)
                SELECT count(*) FROM up WHERE at = id";
            let doing = || BenchError::database("looking for rings");
            let row = setting.owner.query_one(rings, &[&setting.world.prefix]).await.map_err(doing())?;
            let rings: i64 = row.try_get(0).map_err(doing())?;
            Ok(if rings > 0 { vec![format!("{rings} folders are inside themselves")] } else { Vec::new() })
        })
    }
}

struct ShareDelete {
    /// A folder, who may share what is in it, and who may not view it.
    cases: Vec<(i64, i64, i64)>,
    prefix: String,
}

fn share_delete(setting: &Setting) -> Result<Box<dyn Workload>, BenchError> {
    let mut rng = Rng::split(setting.seed, "share and delete", 0);
    let mut cases = Vec::new();
    for _ in 0..5000 {
        let Some((folder, _, by)) = setting.world.folder_and_holder(&mut rng) else { break };
        let Some(with) = rng.pick(setting.world.users()).copied() else { break };
        if !setting.facts.on_folder(folder, Permission::View).has(with) {
            cases.push((folder, by, with));
        }
        if cases.len() == 500 {
            break;
        }
    }
    if cases.is_empty() {
        return Err(unsuitable("everybody may view every folder already"));
    }
    Ok(Box::new(ShareDelete { cases, prefix: setting.world.prefix.clone() }))
}

const NEW_FILE: &str = "INSERT INTO app.files (folder_id, owner_id, name) VALUES ($1, $2, $3) RETURNING id";
const SAME_FILE: &str = "INSERT INTO app.files (id, folder_id, owner_id, name) VALUES ($1, $2, $3, $4)";
const DELETE_FILE: &str = "DELETE FROM app.files WHERE id = $1";
const SHARE_FILE: &str = "SELECT authz.share('file', $1::bigint, 'viewer', 'user', $2::bigint)";
const CAN_VIEW: &str = "SELECT authz.can('file', $1::bigint, 'view')";

/// The file is not there, or may not be shared any more; or somebody came first.
const TOO_LATE: [&str; 5] = ["P0001", "42501", "23503", "40001", "40P01"];

impl Workload for ShareDelete {
    fn operate<'a>(&'a self, worker: &'a mut Worker) -> BoxFuture<'a, Operation> {
        Box::pin(async move {
            let Some((folder, by, with)) = worker.rng.pick(&self.cases).copied() else {
                return Ok(Outcome::labelled("failed"));
            };
            let name = format!("{}raced", self.prefix);
            let rows = worker.ask(by, NEW_FILE, &[&folder, &by, &name]).await?;
            let Some(row) = rows.first() else { return Ok(Outcome::labelled("failed")) };
            let file: i64 = row.try_get(0)?;
            worker.second().await.map_err(|error| Trouble::Other(error.to_string()))?;
            let Some((mut first, second)) = worker.both() else { return Ok(Outcome::labelled("failed")) };
            let (both, one): ([&(dyn ToSql + Sync); 2], [&(dyn ToSql + Sync); 1]) = ([&file, &with], [&file]);
            let (shared, deleted) =
                tokio::join!(first.write(by, SHARE_FILE, &both), second.write(by, DELETE_FILE, &one));
            if let Err(refused) = shared?
                && !TOO_LATE.contains(&refused.code.as_str())
            {
                return Ok(Outcome { label: format!("sqlstate_{}", refused.code), words: Some(refused.words) });
            }
            match deleted? {
                Ok(1) => {}
                Ok(_) => return Ok(Outcome::violation(format!("file {file} was gone before it was deleted"))),
                Err(refused) if ["40001", "40P01"].contains(&refused.code.as_str()) => {
                    worker.ask(by, DELETE_FILE, &[&file]).await?;
                    return Ok(Outcome::labelled("kept"));
                }
                Err(refused) => {
                    return Ok(Outcome { label: format!("sqlstate_{}", refused.code), words: Some(refused.words) });
                }
            }
            worker.ask(by, SAME_FILE, &[&file, &folder, &by, &name]).await?;
            let rows = worker.ask(with, CAN_VIEW, &[&file]).await?;
            let seen = rows.first().map(|row| row.try_get::<_, bool>(0)).transpose()?;
            worker.ask(by, DELETE_FILE, &[&file]).await?;
            Ok(match seen {
                Some(false) => Outcome::ok(),
                _ => Outcome::violation(format!("user {with} may view the new file {file} by the old one's share")),
            })
        })
    }
}
