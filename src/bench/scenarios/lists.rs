//! Lists: whole, in pages, of readers who see much and little, and with filters.

use std::sync::{Mutex, PoisonError};

use futures_util::future::BoxFuture;

use super::{OK, Sight, readers, unsuitable};
use crate::bench::engine::Worker;
use crate::bench::error::BenchError;
use crate::bench::scenario::{Criterion, Family, How, Load, Operation, Outcome, Scenario, Setting, Workload};

const CRITERION: Criterion = Criterion {
    words: "every list is complete and exact, and nothing failed",
    allowed: &["ok"],
    required: &["ok"],
    verify: false,
};

const PREPARATION: &str = "takes an admin who reaches every folder, whoever holds most, whoever sees least and a few \
                           others, and works out what each of them sees from the rows";

/// `list`
pub static LIST: Scenario = Scenario {
    name: "list",
    family: Family::Work,
    measures: "authz.list whole: every file somebody may view, counted and summed up on the server",
    preparation: PREPARATION,
    outcomes: &[OK],
    criterion: CRITERION,
    load: Load::FEW,
    how: How::Workload(|setting| Box::pin(async move { whole(setting).await })),
};

/// `list-pages`
pub static LIST_PAGES: Scenario = Scenario {
    name: "list-pages",
    family: Family::Work,
    measures: "authz.list in pages of 1,000, each after the last one's end; an operation is a page",
    preparation: PREPARATION,
    outcomes: &[OK],
    criterion: CRITERION,
    load: Load::MANY,
    how: How::Workload(|setting| Box::pin(async move { pages(setting).await })),
};

/// `readers`
pub static READERS: Scenario = Scenario {
    name: "readers",
    family: Family::Work,
    measures: "a count of all files, the 50 newest and one row, for who sees all, some, and one file in thousands",
    preparation: PREPARATION,
    outcomes: &[("ok", "exactly what the rows give; the labels say whose and which: all/count:ok, few/newest:ok, ...")],
    criterion: CRITERION,
    load: Load::FEW,
    how: How::Workload(|setting| Box::pin(async move { three_readers(setting).await })),
};

/// `complex-list`
pub static COMPLEX_LIST: Scenario = Scenario {
    name: "complex-list",
    family: Family::Abuse,
    measures: "filtered and ordered lists by whoever holds most, straight on the table: exact totals, exact pages",
    preparation: "takes the user who holds most and works out each list from the rows",
    outcomes: &[OK],
    criterion: CRITERION,
    load: Load::FEW,
    how: How::Workload(|setting| Box::pin(async move { complex(setting).await })),
};

struct Whole {
    /// Reader, how many, sum of ids.
    cases: Vec<(i64, i64, i64)>,
}

async fn whole(setting: &Setting) -> Result<Box<dyn Workload>, BenchError> {
    let mut cases = Vec::new();
    for user in readers(setting, 5) {
        let (count, sum) = Sight::of(&setting.facts, user).total(&setting.owner, "").await?;
        cases.push((user, count, sum));
    }
    Ok(Box::new(Whole { cases }))
}

impl Workload for Whole {
    fn operate<'a>(&'a self, worker: &'a mut Worker) -> BoxFuture<'a, Operation> {
        Box::pin(async move {
            let Some((user, count, sum)) = worker.rng.pick(&self.cases).copied() else {
                return Ok(Outcome::labelled("failed"));
            };
            let sql = "SELECT count(*), coalesce(sum(id::bigint), 0)::bigint FROM authz.list('file', 'view') AS id";
            let rows = worker.ask(user, sql, &[]).await?;
            let Some(row) = rows.first() else { return Ok(Outcome::violation("no answer")) };
            let found: (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
            if found == (count, sum) {
                return Ok(Outcome::ok());
            }
            Ok(Outcome::violation(format!("user {user} lists {} files, where it must be {count}", found.0)))
        })
    }
}

/// Where one connection is in its walk through a list.
#[derive(Debug, Clone, Default)]
struct Walk {
    reader: usize,
    after: Option<i64>,
    count: i64,
    sum: i64,
}

struct Pages {
    cases: Vec<(i64, i64, i64)>,
    walks: Vec<Mutex<Walk>>,
}

async fn pages(setting: &Setting) -> Result<Box<dyn Workload>, BenchError> {
    let mut cases = Vec::new();
    for user in readers(setting, 5) {
        let (count, sum) = Sight::of(&setting.facts, user).total(&setting.owner, "").await?;
        cases.push((user, count, sum));
    }
    let walks = (0..setting.concurrency).map(|reader| Mutex::new(Walk { reader, ..Walk::default() })).collect();
    Ok(Box::new(Pages { cases, walks }))
}

impl Workload for Pages {
    fn operate<'a>(&'a self, worker: &'a mut Worker) -> BoxFuture<'a, Operation> {
        Box::pin(async move {
            let Some(place) = self.walks.get(worker.number) else { return Ok(Outcome::labelled("failed")) };
            let mut walk = place.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let at = walk.reader % self.cases.len().max(1);
            let Some((user, count, sum)) = self.cases.get(at).copied() else { return Ok(Outcome::labelled("failed")) };
            let rows = match walk.after {
                None => worker.ask(user, "SELECT * FROM authz.list('file', 'view', NULL::bigint, 1000)", &[]).await?,
                Some(after) => {
                    worker.ask(user, "SELECT * FROM authz.list('file', 'view', $1::bigint, 1000)", &[&after]).await?
                }
            };
            for row in &rows {
                let id = row.try_get::<_, String>(0)?.parse::<i64>().unwrap_or(-1);
                if walk.after.is_some_and(|after| id <= after) {
                    return Ok(Outcome::violation(format!("file {id} comes after file {:?}", walk.after)));
                }
                walk.after = Some(id);
                walk.count += 1;
                walk.sum += id;
            }
            let mut outcome = Outcome::ok();
            if rows.len() < 1000 {
                if (walk.count, walk.sum) != (count, sum) {
                    let found = walk.count;
                    outcome =
                        Outcome::violation(format!("the pages of user {user} hold {found} files instead of {count}"));
                }
                walk = Walk { reader: walk.reader + 1, ..Walk::default() };
            }
            *place.lock().unwrap_or_else(PoisonError::into_inner) = walk;
            Ok(outcome)
        })
    }
}

struct Sees {
    word: &'static str,
    user: i64,
    count: i64,
    newest: Vec<i64>,
    one: Vec<i64>,
}

struct Readers {
    readers: Vec<Sees>,
    notes: Vec<String>,
}

const NEWEST: &str = "ORDER BY created_at DESC, id DESC LIMIT 50";

async fn three_readers(setting: &Setting) -> Result<Box<dyn Workload>, BenchError> {
    let mut rng = crate::bench::random::Rng::split(setting.seed, "three readers", 0);
    let some = rng.pick(setting.world.users()).copied();
    let mut found = Vec::new();
    let mut notes = Vec::new();
    for (word, user) in
        [("all", setting.world.admin()), ("some", some), ("few", setting.facts.lightest_reader(&mut rng))]
    {
        let Some(user) = user else { return Err(unsuitable("there are no readers of all three kinds")) };
        let sight = Sight::of(&setting.facts, user);
        let (count, _) = sight.total(&setting.owner, "").await?;
        let newest = sight.ids(&setting.owner, NEWEST).await?;
        let one = sight.ids(&setting.owner, "ORDER BY id LIMIT 50").await?;
        notes.push(format!("{word}: user {user} sees {count} files"));
        found.push(Sees { word, user, count, newest, one });
    }
    Ok(Box::new(Readers { readers: found, notes }))
}

impl Workload for Readers {
    fn operate<'a>(&'a self, worker: &'a mut Worker) -> BoxFuture<'a, Operation> {
        Box::pin(async move {
            let at = worker.rng.index(self.readers.len());
            let Some(reader) = self.readers.get(at) else { return Ok(Outcome::labelled("failed")) };
            let (which, right) = match worker.rng.below(10) {
                0 => {
                    let rows = worker.ask(reader.user, "SELECT count(*) FROM app.files", &[]).await?;
                    let count = rows.first().map(|row| row.try_get::<_, i64>(0)).transpose()?;
                    ("count", count == Some(reader.count))
                }
                1..4 => {
                    let sql = "SELECT id, name FROM app.files ORDER BY created_at DESC, id DESC LIMIT 50";
                    let rows = worker.ask(reader.user, sql, &[]).await?;
                    let ids: Result<Vec<i64>, _> = rows.iter().map(|row| row.try_get(0)).collect();
                    ("newest", ids? == reader.newest)
                }
                _ => {
                    let Some(id) = worker.rng.pick(&reader.one).copied() else { return Ok(Outcome::ok()) };
                    let rows = worker.ask(reader.user, "SELECT name FROM app.files WHERE id = $1", &[&id]).await?;
                    ("row", rows.len() == 1)
                }
            };
            let label = if right { "ok" } else { "invariant_violation" };
            let words = (!right).then(|| format!("user {} does not see exactly what they may", reader.user));
            Ok(Outcome { label: format!("{}/{which}:{label}", reader.word), words })
        })
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

/// What is asked of the table: the statement, and the end of the same one for the owner.
const LISTS: [(&str, &str); 4] = [
    (
        "SELECT id FROM app.files ORDER BY created_at DESC, id DESC LIMIT 20",
        "ORDER BY created_at DESC, id DESC LIMIT 20",
    ),
    (
        "SELECT id FROM app.files WHERE confidential AND name LIKE '%a%' AND created_at < '2026-04-01' ORDER BY id LIMIT 200",
        "AND confidential AND name LIKE '%a%' AND created_at < '2026-04-01' ORDER BY id LIMIT 200",
    ),
    (
        "SELECT id FROM app.files WHERE NOT confidential AND (id % 7 = 3 OR name LIKE '%plan%') ORDER BY name, id LIMIT 50",
        "AND NOT confidential AND (id % 7 = 3 OR name LIKE '%plan%') ORDER BY name, id LIMIT 50",
    ),
    (
        "SELECT id FROM app.files WHERE id % 3 = 1 ORDER BY created_at DESC, id DESC LIMIT 50 OFFSET 500",
        "AND id % 3 = 1 ORDER BY created_at DESC, id DESC LIMIT 50 OFFSET 500",
    ),
];

struct Complex {
    user: i64,
    total: i64,
    expected: Vec<Vec<i64>>,
    notes: Vec<String>,
}

async fn complex(setting: &Setting) -> Result<Box<dyn Workload>, BenchError> {
    let user = setting.facts.heaviest_reader().ok_or_else(|| unsuitable("there are no active users"))?;
    let sight = Sight::of(&setting.facts, user);
    let (total, _) = sight.total(&setting.owner, "AND NOT confidential AND name LIKE '%e%'").await?;
    let mut expected = Vec::new();
    for (_, rest) in LISTS {
        expected.push(sight.ids(&setting.owner, rest).await?);
    }
    let notes = vec![format!("user {user} may edit {} folders and view {}", sight.edit.len(), sight.view.len())];
    Ok(Box::new(Complex { user, total, expected, notes }))
}

impl Workload for Complex {
    fn operate<'a>(&'a self, worker: &'a mut Worker) -> BoxFuture<'a, Operation> {
        Box::pin(async move {
            let at = worker.rng.index(LISTS.len() + 1);
            if let (Some((sql, _)), Some(expected)) = (LISTS.get(at), self.expected.get(at)) {
                let rows = worker.ask(self.user, sql, &[]).await?;
                let ids: Result<Vec<i64>, _> = rows.iter().map(|row| row.try_get(0)).collect();
                if ids? != *expected {
                    return Ok(Outcome::violation(format!("another page than it must be: {sql}")));
                }
                return Ok(Outcome::ok());
            }
            let sql = "SELECT count(*) FROM app.files WHERE NOT confidential AND name LIKE '%e%'";
            let rows = worker.ask(self.user, sql, &[]).await?;
            let count = rows.first().map(|row| row.try_get::<_, i64>(0)).transpose()?.unwrap_or(-1);
            if count == self.total {
                return Ok(Outcome::ok());
            }
            Ok(Outcome::violation(format!("{count} rows, where it must be {}", self.total)))
        })
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}
