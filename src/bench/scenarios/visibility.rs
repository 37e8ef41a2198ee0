//! What was revoked is gone for everyone at once: separate client processes look.

use std::collections::HashMap;
use std::io::Write as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::{BoxFuture, join_all};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::oneshot;

use super::unsuitable;
use super::writes::unshare;
use crate::bench::engine::Worker;
use crate::bench::error::BenchError;
use crate::bench::facts::Permission;
use crate::bench::random::Rng;
use crate::bench::scenario::{Criterion, Family, How, Load, Operation, Outcome, Scenario, Setting, Trouble, Workload};
use crate::db::error::DbError;
use crate::db::target::Target;

/// `revoke-visibility`
pub static REVOKE: Scenario = Scenario {
    name: "revoke-visibility",
    family: Family::Consistency,
    measures: "a share made, seen by separate client processes, taken back, and looked for again by all of them at once",
    preparation: "starts the client processes (--processes), each with connections of its own",
    outcomes: &[("ok", "seen by every process after the share, by none after its revoke was committed")],
    criterion: Criterion {
        words: "no read that begins after a committed revoke sees the row, in any process",
        allowed: &["ok"],
        required: &["ok"],
        verify: false,
    },
    load: Load::MANY,
    how: How::Workload(|setting| Box::pin(async move { revoke(setting).await })),
};

type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<bool>>>>;

/// A client process.
struct Looker {
    input: tokio::sync::Mutex<ChildStdin>,
    waiting: Waiting,
    child: tokio::sync::Mutex<Child>,
    alive: Arc<AtomicBool>,
}

struct Revoke {
    lookers: Vec<Looker>,
    /// A folder and a file in it, who may share the folder, who may not view it; one for each connection.
    cases: Vec<tokio::sync::Mutex<(i64, i64, i64, i64)>>,
    made: Mutex<Vec<(i64, i64, i64)>>,
    next: AtomicU64,
    notes: Vec<String>,
}

fn held<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn revoke(setting: &Setting) -> Result<Box<dyn Workload>, BenchError> {
    let cases = cases(setting)?.into_iter().map(tokio::sync::Mutex::new).collect();
    let (program, arguments) = &setting.program;
    if program.as_os_str().is_empty() {
        return Err(unsuitable("separate client processes need this program's own path"));
    }
    let mut lookers = Vec::new();
    for _ in 0..setting.processes.max(1) {
        let mut command = Command::new(program);
        command.args(arguments).args(["bench", "look"]).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| DbError::io("cannot start a client process", error))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(unsuitable("a client process without pipes"));
        };
        let waiting = Waiting::default();
        let alive = Arc::new(AtomicBool::new(true));
        tokio::spawn(listen(BufReader::new(output), Arc::clone(&waiting), Arc::clone(&alive)));
        lookers.push(Looker {
            input: tokio::sync::Mutex::new(input),
            waiting,
            child: tokio::sync::Mutex::new(child),
            alive,
        });
    }
    let notes = vec![format!("{} separate client processes looked", lookers.len())];
    Ok(Box::new(Revoke { lookers, cases, made: Mutex::default(), next: AtomicU64::new(0), notes }))
}

fn cases(setting: &Setting) -> Result<Vec<(i64, i64, i64, i64)>, BenchError> {
    let mut rng = Rng::split(setting.seed, "revoke", 0);
    let mut cases: Vec<(i64, i64, i64, i64)> = Vec::new();
    for _ in 0..20_000 {
        if cases.len() == setting.concurrency {
            break;
        }
        let Some(file) = rng.pick(&setting.facts.files).copied() else { break };
        let Some(with) = rng.pick(setting.world.users()).copied() else { break };
        // One receiver for each connection: two shares to one user would show each other's folders.
        if file.confidential || cases.iter().any(|(_, _, _, other)| *other == with) {
            continue;
        }
        let by = setting.facts.on_folder(file.folder, Permission::Share).users.into_iter().min();
        if let Some(by) = by.filter(|_| !setting.facts.on_file(&file, Permission::View).has(with)) {
            cases.push((file.folder, file.id, by, with));
        }
    }
    if cases.is_empty() { Err(unsuitable("everybody may view every file already")) } else { Ok(cases) }
}

/// Takes a client process's answers: `NUMBER seen` or `NUMBER unseen`.
async fn listen(mut output: BufReader<tokio::process::ChildStdout>, waiting: Waiting, alive: Arc<AtomicBool>) {
    let mut line = String::new();
    while output.read_line(&mut line).await.is_ok_and(|n| n > 0) {
        if let Some((number, answer)) = line.trim().split_once(' ')
            && let Ok(number) = number.parse::<u64>()
            && let Some(waiter) = held(&waiting).remove(&number)
            && let Some(seen) = match answer {
                "seen" => Some(true),
                "unseen" => Some(false),
                _ => None,
            }
        {
            // Whoever asked may have been cut off meanwhile.
            let _ = waiter.send(seen);
        }
        line.clear();
    }
    alive.store(false, Ordering::Relaxed);
    // Those still waiting learn that nobody answers any more.
    held(&waiting).clear();
}

impl Looker {
    async fn look(&self, number: u64, user: i64, file: i64) -> Result<bool, Trouble> {
        let gone = || Trouble::Other("a client process ended or could not look".to_owned());
        let (sender, receiver) = oneshot::channel();
        held(&self.waiting).insert(number, sender);
        if !self.alive.load(Ordering::Relaxed) {
            return Err(gone());
        }
        let line = format!("{number} {user} {file}\n");
        self.input.lock().await.write_all(line.as_bytes()).await.map_err(|_| gone())?;
        receiver.await.map_err(|_| gone())
    }
}

impl Revoke {
    /// How many of the processes see it.
    async fn look(&self, user: i64, file: i64) -> Result<usize, Trouble> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut seen = 0;
        for answer in join_all(self.lookers.iter().map(|looker| looker.look(number, user, file))).await {
            seen += usize::from(answer?);
        }
        Ok(seen)
    }
}

const SHARE: &str = "SELECT authz.share('folder', $1::bigint, 'viewer', 'user', $2::bigint)";
const UNSHARE: &str = "SELECT authz.unshare('folder', $1::bigint, 'viewer', 'user', $2::bigint)";

impl Workload for Revoke {
    fn operate<'a>(&'a self, worker: &'a mut Worker) -> BoxFuture<'a, Operation> {
        Box::pin(async move {
            let Some(case) = self.cases.get(worker.number % self.cases.len().max(1)) else {
                return Ok(Outcome::labelled("failed"));
            };
            // Where there are fewer receivers than connections, some wait for each other.
            let held_case = case.lock().await;
            let (folder, file, by, with) = *held_case;
            held(&self.made).push((folder, by, with));
            worker.ask(by, SHARE, &[&folder, &with]).await?;
            let seen = self.look(with, file).await?;
            worker.ask(by, UNSHARE, &[&folder, &with]).await?;
            held(&self.made).retain(|made| *made != (folder, by, with));
            let still = self.look(with, file).await?;
            let of = self.lookers.len();
            if still > 0 {
                return Ok(Outcome::violation(format!("{still} of {of} processes see file {file} after the revoke")));
            }
            if seen < of {
                return Ok(Outcome::violation(format!("{seen} of {of} processes see file {file} after the share")));
            }
            Ok(Outcome::ok())
        })
    }

    fn finish<'a>(&'a self, setting: &'a Setting) -> BoxFuture<'a, Result<Vec<String>, BenchError>> {
        Box::pin(async move {
            let left: Vec<_> = held(&self.made).drain(..).collect();
            for (folder, by, with) in left {
                unshare(setting, folder, by, with).await?;
            }
            for looker in &self.lookers {
                // Their input closes with it, and they end by themselves; a process that is gone is no matter.
                let _ = looker.child.lock().await.kill().await;
            }
            Ok(Vec::new())
        })
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

/// The client process: reads `NUMBER USER FILE` lines, looks as that user, and writes `NUMBER seen` or `NUMBER unseen`,
/// on a handful of connections that stay open, so that whatever a connection remembers is put to the test.
pub async fn look(target: &Target) -> Result<(), DbError> {
    let mut workers = Vec::new();
    for number in 0..4 {
        let worker = Worker::connect(target, crate::bench::live::CUT_OFF, number, Rng::new(number as u64)).await?;
        workers.push(Arc::new(tokio::sync::Mutex::new(worker)));
    }
    let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel::<String>();
    // A thread of its own, as reading a pipe blocks. The input's end, or a program that ends, ends it.
    std::thread::spawn(move || std::io::stdin().lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let mut next = 0_usize;
    loop {
        let Some(line) = lines.recv().await else { return Ok(()) };
        let words: Vec<i64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [number, user, file] = words.as_slice() else { continue };
        let (number, user, file) = (*number, *user, *file);
        next += 1;
        let Some(worker) = workers.get(next % workers.len().max(1)).map(Arc::clone) else { continue };
        tokio::spawn(async move {
            let sql = "SELECT name FROM app.files WHERE id = $1";
            let found = worker.lock().await.ask(user, sql, &[&file]).await;
            let word = match found {
                Ok(rows) if rows.is_empty() => "unseen".to_owned(),
                Ok(_) => "seen".to_owned(),
                Err(error) => format!("failed {error}"),
            };
            // A parent that is gone reads nothing.
            let _ = std::io::stdout().lock().write_all(format!("{number} {word}\n").as_bytes());
        });
    }
}
