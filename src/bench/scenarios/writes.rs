//! Writes by those who may, and now and then by those who may not.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;

use super::{REFUSED, unsuitable};
use crate::bench::engine::Worker;
use crate::bench::error::BenchError;
use crate::bench::facts::Permission;
use crate::bench::live::{Kind, statement};
use crate::bench::random::Rng;
use crate::bench::scenario::{Criterion, Family, How, Load, Operation, Outcome, Scenario, Setting, Trouble, Workload};
use crate::bench::world::{Chosen, World};

const WRITTEN: (&str, &str) = ("ok", "written");

const CRITERION: Criterion = Criterion {
    words: "whoever may write can, whoever may not is refused, nothing failed, and the index is exact afterwards",
    allowed: &["ok", "refused"],
    required: &["ok", "refused"],
    verify: true,
};

const PREPARATION: &str = "reads the tree, to choose writes that the policy allows; one write in ten is by a user who \
                           may not. Everything is taken back afterwards";

/// `create`
pub static CREATE: Scenario = Scenario {
    name: "create",
    family: Family::Work,
    measures: "a new folder inside another one, with its id returned",
    preparation: PREPARATION,
    outcomes: &[WRITTEN, REFUSED],
    criterion: CRITERION,
    load: Load::MANY,
    how: How::Workload(|setting| {
        Box::pin(async move { Ok(Box::new(tree(setting, Kind::Create, true)) as Box<dyn Workload>) })
    }),
};

/// `move`
pub static MOVE: Scenario = Scenario {
    name: "move",
    family: Family::Work,
    measures: "a folder with at most twenty below it into another one",
    preparation: PREPARATION,
    outcomes: &[WRITTEN, REFUSED],
    criterion: CRITERION,
    load: Load::MANY,
    how: How::Workload(|setting| {
        Box::pin(async move { Ok(Box::new(tree(setting, Kind::Move, true)) as Box<dyn Workload>) })
    }),
};

/// `link`
pub static LINK: Scenario = Scenario {
    name: "link",
    family: Family::Work,
    measures: "a folder also shown in another one, through the app's function",
    preparation: PREPARATION,
    outcomes: &[
        WRITTEN,
        REFUSED,
        ("exhausted", "every pair that may be linked is linked; nothing was sent to the server"),
    ],
    criterion: Criterion { allowed: &["ok", "refused", "exhausted"], ..CRITERION },
    load: Load::MANY,
    how: How::Workload(|setting| {
        Box::pin(async move { Ok(Box::new(tree(setting, Kind::Link, true)) as Box<dyn Workload>) })
    }),
};

/// `share`
pub static SHARE: Scenario = Scenario {
    name: "share",
    family: Family::Work,
    measures: "a folder shared with a user who then sees it, and unshared, after which they do not: four transactions",
    preparation: "draws folders with somebody who may share them and users who may not view them",
    outcomes: &[("ok", "seen after the share, not seen after it was taken back")],
    criterion: Criterion {
        words: "every share shows its folder at once, every one taken back hides it at once, and nothing failed",
        allowed: &["ok"],
        required: &["ok"],
        verify: false,
    },
    load: Load::MANY,
    how: How::Workload(|setting| Box::pin(async move { Ok(Box::new(share(setting, true)?) as Box<dyn Workload>) })),
};

/// Tree writes of one kind.
pub(super) struct Tree {
    kind: Kind,
    world: Arc<World>,
    /// Folders with a user who may not edit them.
    strangers: Vec<(i64, i64, i64)>,
    /// Whether one write in ten is by somebody who may not.
    refusals: bool,
}

/// Nobody has this id: signing in as it is signing in as nobody.
const NOBODY: i64 = -1;

pub(super) fn tree(setting: &Setting, kind: Kind, refusals: bool) -> Tree {
    let mut rng = Rng::split(setting.seed, "strangers", 0);
    let mut strangers = Vec::new();
    for _ in 0..500 {
        let Some((folder, org, _)) = setting.world.folder_and_holder(&mut rng) else { break };
        let Some(user) = rng.pick(setting.world.users()).copied() else { break };
        // Writes change nothing about who may edit the folders that were there before, but moves do.
        let user = if kind == Kind::Create { user } else { NOBODY };
        if user == NOBODY || !setting.facts.on_folder(folder, Permission::Edit).has(user) {
            strangers.push((folder, org, user));
        }
        if strangers.len() == 64 {
            break;
        }
    }
    Tree { kind, world: Arc::clone(&setting.world), strangers, refusals }
}

impl Tree {
    fn choose(&self, rng: &mut Rng) -> Option<Chosen> {
        match self.kind {
            Kind::Move => self.world.move_op(rng),
            Kind::Link => self.world.link_op(rng),
            _ => self.world.create_op(rng),
        }
    }

    /// A write by somebody who may not.
    fn forbidden(&self, rng: &mut Rng) -> Option<Chosen> {
        let (id, org, user) = *rng.pick(&self.strangers)?;
        let other = match self.kind {
            Kind::Create => Some(org),
            _ => self.world.any_folder(rng).filter(|other| *other != id),
        };
        // Named as what is taken back, should it be let through.
        Some(Chosen { kind: self.kind, user, id, other, name: format!("{}forbidden", self.world.prefix) })
    }
}

impl Workload for Tree {
    fn operate<'a>(&'a self, worker: &'a mut Worker) -> BoxFuture<'a, Operation> {
        Box::pin(async move {
            let forbidden = self.refusals && worker.rng.chance(100);
            let chosen = if forbidden { self.forbidden(&mut worker.rng) } else { self.choose(&mut worker.rng) };
            let Some(chosen) = chosen else {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                return Ok(Outcome::labelled("exhausted"));
            };
            let sql = statement(chosen.kind);
            let written = match chosen.kind {
                Kind::Create => {
                    worker.write(chosen.user, sql, &[&chosen.id, &chosen.other, &chosen.user, &chosen.name]).await?
                }
                _ => worker.write(chosen.user, sql, &[&chosen.id, &chosen.other]).await?,
            };
            let what = || format!("user {} and folder {}", chosen.user, chosen.id);
            Ok(match (forbidden, written) {
                (true, Ok(0)) => Outcome::refused(),
                (true, Ok(_)) => Outcome::violation(format!("written by one who may not: {}", what())),
                (true, Err(refused)) if refused.code == "42501" => Outcome::refused(),
                (false, Ok(1)) => Outcome::ok(),
                (false, Ok(rows)) => Outcome::violation(format!("{rows} rows written by one who may: {}", what())),
                (_, Err(refused)) => {
                    let words = Some(format!("{}: {}", what(), refused.words));
                    Outcome { label: format!("sqlstate_{}", refused.code), words }
                }
            })
        })
    }
}

type Pair = (i64, i64, i64);

/// Shares that come and go.
pub(super) struct Sharing {
    /// A folder, who shares it, and whom with.
    pairs: Vec<Pair>,
    /// Receivers and their folders under way: two shares to one user would show each other's folders.
    busy: Mutex<HashSet<i64>>,
    /// Shares that may be there.
    made: Mutex<HashSet<Pair>>,
    /// Whether it must be hidden again afterwards: where folders move meanwhile it may be shown for other reasons.
    exact: bool,
}

pub(super) fn share(setting: &Setting, exact: bool) -> Result<Sharing, BenchError> {
    let mut rng = Rng::split(setting.seed, "shares", 1);
    let mut pairs = Vec::new();
    for _ in 0..5000 {
        let Some((folder, _, by)) = setting.world.folder_and_holder(&mut rng) else { break };
        let Some(with) = rng.pick(setting.world.users()).copied() else { break };
        if !setting.facts.on_folder(folder, Permission::View).has(with) {
            pairs.push((folder, by, with));
        }
        if pairs.len() == 1000 {
            break;
        }
    }
    if pairs.is_empty() {
        return Err(unsuitable("everybody may view every folder already: there is nothing to share"));
    }
    Ok(Sharing { pairs, busy: Mutex::default(), made: Mutex::default(), exact })
}

const CAN_VIEW: &str = "SELECT authz.can('folder', $1::bigint, 'view')";
const DO_SHARE: &str = "SELECT authz.share('folder', $1::bigint, 'viewer', 'user', $2::bigint)";
const UNSHARE: &str = "SELECT authz.unshare('folder', $1::bigint, 'viewer', 'user', $2::bigint)";

fn held<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sharing {
    fn take(&self, rng: &mut Rng) -> Option<Pair> {
        let mut busy = held(&self.busy);
        (0..50).find_map(|_| {
            let pair = *rng.pick(&self.pairs)?;
            busy.insert(pair.2).then_some(pair)
        })
    }

    async fn come_and_go(&self, worker: &mut Worker, pair: Pair) -> Operation {
        let (folder, by, with) = pair;
        held(&self.made).insert(pair);
        worker.ask(by, DO_SHARE, &[&folder, &with]).await?;
        let shown = answer(&worker.ask(with, CAN_VIEW, &[&folder]).await?)?;
        worker.ask(by, UNSHARE, &[&folder, &with]).await?;
        held(&self.made).remove(&pair);
        let hidden = !answer(&worker.ask(with, CAN_VIEW, &[&folder]).await?)?;
        Ok(match (shown, hidden) {
            (false, _) => Outcome::violation(format!("user {with} does not see folder {folder} that was shared")),
            (true, false) if self.exact => {
                Outcome::violation(format!("user {with} still sees folder {folder} that was unshared"))
            }
            _ => Outcome::ok(),
        })
    }
}

/// The one yes or no.
fn answer(rows: &[tokio_postgres::Row]) -> Result<bool, Trouble> {
    match rows.first() {
        Some(row) => Ok(row.try_get(0)?),
        None => Err(Trouble::Other("no answer".to_owned())),
    }
}

impl Workload for Sharing {
    fn operate<'a>(&'a self, worker: &'a mut Worker) -> BoxFuture<'a, Operation> {
        Box::pin(async move {
            let pair = loop {
                match self.take(&mut worker.rng) {
                    Some(pair) => break pair,
                    None => tokio::time::sleep(std::time::Duration::from_millis(1)).await,
                }
            };
            let ended = self.come_and_go(worker, pair).await;
            held(&self.busy).remove(&pair.2);
            ended
        })
    }

    fn finish<'a>(&'a self, setting: &'a Setting) -> BoxFuture<'a, Result<Vec<String>, BenchError>> {
        Box::pin(async move {
            let left: Vec<Pair> = held(&self.made).drain().collect();
            for (folder, by, with) in left {
                unshare(setting, folder, by, with).await?;
            }
            Ok(Vec::new())
        })
    }
}

/// Takes a share back that an operation left, as who made it.
pub(super) async fn unshare(setting: &Setting, folder: i64, by: i64, with: i64) -> Result<(), BenchError> {
    let doing = || BenchError::database("taking a share back");
    setting.owner.batch_execute("BEGIN").await.map_err(doing())?;
    setting.owner.query("SELECT authz.act_as('user', $1::bigint)", &[&by]).await.map_err(doing())?;
    setting.owner.query(UNSHARE, &[&folder, &with]).await.map_err(doing())?;
    setting.owner.batch_execute("COMMIT").await.map_err(doing())
}

/// What `scale` drives with 1, 10 and 50 clients; it has no name of its own on the command line.
pub(crate) static TREE_WRITES: Scenario = Scenario {
    name: "tree-writes",
    family: Family::Whole,
    measures: "90% new folders, 9% moves of small folders, 1% links, by clients that wait for their answers",
    preparation: PREPARATION,
    outcomes: &[WRITTEN],
    criterion: Criterion { allowed: &["ok"], required: &["ok"], ..CRITERION },
    load: Load::MANY,
    how: How::Workload(|setting| {
        Box::pin(async move { Ok(Box::new(TreeMix(Arc::clone(&setting.world))) as Box<dyn Workload>) })
    }),
};

struct TreeMix(Arc<World>);

impl Workload for TreeMix {
    fn operate<'a>(&'a self, worker: &'a mut Worker) -> BoxFuture<'a, Operation> {
        Box::pin(async move {
            let chosen =
                self.0.write_op(&mut worker.rng).ok_or_else(|| Trouble::Other("nothing to write".to_owned()))?;
            let sql = statement(chosen.kind);
            let written = match chosen.kind {
                Kind::Create => {
                    worker.write(chosen.user, sql, &[&chosen.id, &chosen.other, &chosen.user, &chosen.name]).await?
                }
                _ => worker.write(chosen.user, sql, &[&chosen.id, &chosen.other]).await?,
            };
            let (label, words) = match written {
                Ok(1) => ("ok".to_owned(), None),
                Ok(rows) => ("no-row".to_owned(), Some(format!("{rows} rows"))),
                Err(refused) => (format!("sqlstate_{}", refused.code), Some(refused.words)),
            };
            Ok(Outcome { label: format!("{}:{label}", chosen.kind.word()), words })
        })
    }
}
