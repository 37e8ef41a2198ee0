//! Reads whose answers are known: each is compared with what the rows say.

use futures_util::future::BoxFuture;

use super::{OK, REFUSED, unsuitable};
use crate::bench::engine::Worker;
use crate::bench::error::BenchError;
use crate::bench::facts::{File, Permission};
use crate::bench::random::Rng;
use crate::bench::scenario::{Criterion, Family, How, Load, Operation, Outcome, Scenario, Setting, Workload};

const CRITERION: Criterion = Criterion {
    words: "every answer is the right one, yes and no both occur, and nothing failed",
    allowed: &["ok", "refused"],
    required: &["ok", "refused"],
    verify: false,
};

const PREPARATION: &str = "draws readers (a quarter of them admins who reach every folder) and objects, half of them \
                           held by their reader, and works out each answer from the rows";

/// `check`
pub static CHECK: Scenario = Scenario {
    name: "check",
    family: Family::Work,
    measures: "authz.can on a file or a folder, for view, edit or share",
    preparation: PREPARATION,
    outcomes: &[OK, REFUSED],
    criterion: CRITERION,
    load: Load::MANY,
    how: How::Workload(|setting| Box::pin(async move { boxed(check(setting, true)?) })),
};

/// `open-file`
pub static OPEN_FILE: Scenario = Scenario {
    name: "open-file",
    family: Family::Work,
    measures: "one file by its id, through the rules",
    preparation: PREPARATION,
    outcomes: &[OK, REFUSED],
    criterion: CRITERION,
    load: Load::MANY,
    how: How::Workload(|setting| Box::pin(async move { boxed(open_file(setting, true)?) })),
};

/// `open-folder`
pub static OPEN_FOLDER: Scenario = Scenario {
    name: "open-folder",
    family: Family::Work,
    measures: "the files of one folder by name, through the rules",
    preparation: "draws readers and folders, and counts the files each reader sees in each folder",
    outcomes: &[OK, ("refused", "nothing in the folder is for this reader, or the folder is empty")],
    criterion: Criterion {
        words: "every folder shows exactly the files its reader may see, and nothing failed",
        required: &["ok"],
        ..CRITERION
    },
    load: Load::MANY,
    how: How::Workload(|setting| Box::pin(async move { boxed(open_folder(setting, true).await?) })),
};

/// `who`
pub static WHO: Scenario = Scenario {
    name: "who",
    family: Family::Work,
    measures: "authz.who: everyone who holds a permission on a folder, asked by one of them",
    preparation: "draws folders and works out their holders from the rows",
    outcomes: &[OK],
    criterion: Criterion {
        words: "every list of holders is complete and exact, and nothing failed",
        allowed: &["ok"],
        required: &["ok"],
        verify: false,
    },
    load: Load::MANY,
    how: How::Workload(|setting| Box::pin(async move { boxed(who(setting)?) })),
};

/// `explain`
pub static EXPLAIN: Scenario = Scenario {
    name: "explain",
    family: Family::Work,
    measures: "authz.explain: why somebody may view a file, or what is missing",
    preparation: PREPARATION,
    outcomes: &[OK, REFUSED],
    criterion: CRITERION,
    load: Load::MANY,
    how: How::Workload(|setting| Box::pin(async move { boxed(explain(setting)?) })),
};

fn boxed<W: Workload + 'static>(workload: W) -> Result<Box<dyn Workload>, BenchError> {
    Ok(Box::new(workload))
}

/// A reader, what they ask about, and the answer.
#[derive(Debug, Clone, Copy)]
struct Case {
    user: i64,
    id: i64,
    permission: Permission,
    expected: bool,
}

const CASES: usize = 1024;

/// Files with readers: half of the readers hold what is asked, where anybody does.
fn file_cases(setting: &Setting, only: Option<Permission>) -> Result<Vec<Case>, BenchError> {
    let mut rng = Rng::split(setting.seed, "file cases", 0);
    let mut cases = Vec::with_capacity(CASES);
    while cases.len() < CASES {
        let file: &File = rng.pick(&setting.facts.files).ok_or_else(|| unsuitable("there are no files"))?;
        let permission = only.or_else(|| rng.pick(&Permission::ALL).copied()).unwrap_or(Permission::View);
        let holders = setting.facts.on_file(file, permission);
        let mut users: Vec<i64> = holders.users.iter().copied().collect();
        users.sort_unstable();
        let random = setting.world.reader(&mut rng).ok_or_else(|| unsuitable("there are no active users"))?;
        let user = rng.pick(&users).copied().filter(|_| cases.len() % 2 == 0).unwrap_or(random);
        cases.push(Case { user, id: file.id, permission, expected: holders.has(user) });
    }
    Ok(cases)
}

pub(super) struct Check {
    cases: Vec<Case>,
    /// False where other operations change who may do what meanwhile: then a yes and a no are both right.
    exact: bool,
}

pub(super) fn check(setting: &Setting, exact: bool) -> Result<Check, BenchError> {
    Ok(Check { cases: file_cases(setting, None)?, exact })
}

fn judge(answer: bool, case: &Case, exact: bool, what: &str) -> Outcome {
    let expected = if exact { case.expected } else { answer };
    let (user, id, permission) = (case.user, case.id, case.permission.word());
    Outcome::judged(answer, expected, || format!("{what} of user {user} on file {id} for {permission}"))
}

fn case<'c>(cases: &'c [Case], rng: &mut Rng) -> Result<&'c Case, crate::bench::scenario::Trouble> {
    rng.pick(cases).ok_or_else(|| crate::bench::scenario::Trouble::Other("no case was drawn".to_owned()))
}

impl Workload for Check {
    fn operate<'a>(&'a self, worker: &'a mut Worker) -> BoxFuture<'a, Operation> {
        Box::pin(async move {
            let case = case(&self.cases, &mut worker.rng)?;
            let sql = "SELECT authz.can('file', $1::bigint, $2::text)";
            let rows = worker.ask(case.user, sql, &[&case.id, &case.permission.word()]).await?;
            let answer = rows.first().map(|row| row.try_get::<_, bool>(0)).transpose()?.unwrap_or(false);
            Ok(judge(answer, case, self.exact, "can"))
        })
    }
}

pub(super) struct OpenFile {
    cases: Vec<Case>,
    exact: bool,
}

pub(super) fn open_file(setting: &Setting, exact: bool) -> Result<OpenFile, BenchError> {
    Ok(OpenFile { cases: file_cases(setting, Some(Permission::View))?, exact })
}

impl Workload for OpenFile {
    fn operate<'a>(&'a self, worker: &'a mut Worker) -> BoxFuture<'a, Operation> {
        Box::pin(async move {
            let case = case(&self.cases, &mut worker.rng)?;
            let sql = "SELECT id, folder_id, owner_id, name, confidential, created_at FROM app.files WHERE id = $1";
            let rows = worker.ask(case.user, sql, &[&case.id]).await?;
            Ok(judge(!rows.is_empty(), case, self.exact, "opening"))
        })
    }
}

pub(super) struct OpenFolder {
    /// Reader, folder, how many files they see in it.
    cases: Vec<(i64, i64, usize)>,
    exact: bool,
}

pub(super) async fn open_folder(setting: &Setting, exact: bool) -> Result<OpenFolder, BenchError> {
    let mut rng = Rng::split(setting.seed, "folder cases", 0);
    let doing = || BenchError::database("reading the files of folders");
    let mut cases = Vec::new();
    for number in 0..128 {
        let folder = setting.world.any_folder(&mut rng).ok_or_else(|| unsuitable("there are no folders"))?;
        let query = "SELECT id, owner_id, confidential FROM app.files WHERE folder_id = $1";
        let mut files = Vec::new();
        for row in setting.owner.query(query, &[&folder]).await.map_err(doing())? {
            files.push(File {
                id: row.try_get(0).map_err(doing())?,
                folder,
                owner: row.try_get(1).map_err(doing())?,
                confidential: row.try_get(2).map_err(doing())?,
            });
        }
        let mut users: Vec<i64> = setting.facts.on_folder(folder, Permission::View).users.into_iter().collect();
        users.sort_unstable();
        let random = setting.world.reader(&mut rng).ok_or_else(|| unsuitable("there are no active users"))?;
        let user = rng.pick(&users).copied().filter(|_| number % 2 == 0).unwrap_or(random);
        let sees = |file: &&File| setting.facts.on_file(file, Permission::View).has(user);
        cases.push((user, folder, files.iter().filter(sees).count()));
    }
    Ok(OpenFolder { cases, exact })
}

impl Workload for OpenFolder {
    fn operate<'a>(&'a self, worker: &'a mut Worker) -> BoxFuture<'a, Operation> {
        Box::pin(async move {
            let Some((user, folder, expected)) = worker.rng.pick(&self.cases).copied() else {
                return Ok(Outcome::refused());
            };
            let sql = "SELECT id, name, confidential, created_at FROM app.files WHERE folder_id = $1 ORDER BY name";
            let rows = worker.ask(user, sql, &[&folder]).await?;
            if self.exact && rows.len() != expected {
                let found = rows.len();
                return Ok(Outcome::violation(format!(
                    "user {user} sees {found} files in folder {folder}, where it must be {expected}"
                )));
            }
            Ok(if rows.is_empty() { Outcome::refused() } else { Outcome::ok() })
        })
    }
}

struct Who {
    /// Who asks, the folder, the permission, everyone who holds it.
    cases: Vec<(i64, i64, Permission, Vec<i64>)>,
}

fn who(setting: &Setting) -> Result<Who, BenchError> {
    let mut rng = Rng::split(setting.seed, "who cases", 0);
    let mut cases = Vec::new();
    for _ in 0..2000 {
        let Some(folder) = setting.world.any_folder(&mut rng) else { break };
        let permission = rng.pick(&Permission::ALL).copied().unwrap_or(Permission::View);
        let holders = setting.facts.on_folder(folder, permission);
        // Where everyone holds it, the answer is one word.
        if holders.everyone || holders.users.is_empty() {
            continue;
        }
        let mut users: Vec<i64> = holders.users.into_iter().collect();
        users.sort_unstable();
        let Some(asker) = rng.pick(&users).copied() else { continue };
        cases.push((asker, folder, permission, users));
        if cases.len() == 256 {
            break;
        }
    }
    if cases.is_empty() { Err(unsuitable("nobody holds anything on any folder")) } else { Ok(Who { cases }) }
}

impl Workload for Who {
    fn operate<'a>(&'a self, worker: &'a mut Worker) -> BoxFuture<'a, Operation> {
        Box::pin(async move {
            let at = worker.rng.index(self.cases.len());
            let Some((asker, folder, permission, expected)) = self.cases.get(at) else {
                return Ok(Outcome::refused());
            };
            let sql = "SELECT subject_id FROM authz.who('folder', $1::bigint, $2::text) WHERE subject_kind = 'user'";
            let rows = worker.ask(*asker, sql, &[folder, &permission.word()]).await?;
            let mut found = Vec::with_capacity(rows.len());
            for row in rows {
                found.push(row.try_get::<_, String>(0)?.parse::<i64>().unwrap_or(-1));
            }
            found.sort_unstable();
            if found == *expected {
                return Ok(Outcome::ok());
            }
            let (word, n, of) = (permission.word(), found.len(), expected.len());
            Ok(Outcome::violation(format!("{n} hold {word} on folder {folder}, where it must be other {of}")))
        })
    }
}

struct Explain {
    cases: Vec<Case>,
}

fn explain(setting: &Setting) -> Result<Explain, BenchError> {
    Ok(Explain { cases: file_cases(setting, Some(Permission::View))? })
}

impl Workload for Explain {
    fn operate<'a>(&'a self, worker: &'a mut Worker) -> BoxFuture<'a, Operation> {
        Box::pin(async move {
            let case = case(&self.cases, &mut worker.rng)?;
            let sql = "SELECT (authz.explain('file', $1::bigint, 'view') ->> 'allowed')::boolean";
            let rows = worker.ask(case.user, sql, &[&case.id]).await?;
            let answer = rows.first().map(|row| row.try_get::<_, Option<bool>>(0)).transpose()?.flatten();
            match answer {
                Some(answer) => Ok(judge(answer, case, true, "explaining")),
                None => Ok(Outcome::violation(format!("no answer about file {}", case.id))),
            }
        })
    }
}
