//! Reads through the rules beside the same reads with no policy at all: the same statements, the same four round trips.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio_postgres::Client;

use crate::bench::engine::Worker;
use crate::bench::error::BenchError;
use crate::bench::facts::{Facts, Permission};
use crate::bench::histogram::Latencies;
use crate::bench::random::Rng;
use crate::bench::result::{Percentiles, Target};
use crate::db::target::Target as Where;

/// What was measured of one kind of read, in milliseconds.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Read {
    /// With no policy.
    pub plain: Percentiles,
    /// Through the rules.
    pub rules: Percentiles,
}

/// All of them.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Reads {
    /// By name.
    pub reads: BTreeMap<&'static str, Read>,
    /// Planning one file's read without preparing it, warm.
    pub planning_ms: f64,
    /// Files that the guest sees, of all.
    pub guest_sees: (i64, i64),
}

/// Who reads.
struct Readers {
    member: i64,
    admin: i64,
    heaviest: i64,
    lightest: i64,
    /// Readers and files that they may open, and may not.
    allowed: Vec<(i64, i64)>,
    refused: Vec<(i64, i64)>,
    /// The heaviest reader's.
    of_heaviest: Vec<(i64, i64)>,
    folders: Vec<(i64, i64)>,
}

const FILE: &str = "SELECT id, folder_id, owner_id, name, confidential, created_at FROM app.files WHERE id = $1";
const FOLDER: &str = "SELECT id, name, confidential, created_at FROM app.files WHERE folder_id = $1 ORDER BY name";
const NEWEST: &str = "SELECT id, name FROM app.files ORDER BY created_at DESC, id DESC LIMIT 20";
const PAGE: &str = "SELECT id, name FROM app.files ORDER BY created_at DESC, id DESC LIMIT 50";
const COUNT: &str = "SELECT count(*) FROM app.files";
const CAN: &str = "SELECT authz.can('file', $1::bigint, 'view')";
const ONE: &str = "SELECT 1, $1::bigint";
const LIST: &str = "SELECT count(*) FROM authz.list('file', 'view')";
const LIST_PLAIN: &str = "SELECT count(*) FROM (SELECT id::text FROM app.files ORDER BY id) AS all_of_them";
const LIST_PAGE: &str = "SELECT * FROM authz.list('file', 'view', NULL::bigint, 1000)";
const LIST_PAGE_PLAIN: &str = "SELECT id::text FROM app.files ORDER BY id LIMIT 1000";

/// Measures in turns, a read with no policy and then the same through the rules.
pub(super) async fn measure(
    plain: &Where,
    rules: &Where,
    owner: &Client,
    seed: u64,
    points: usize,
) -> Result<Reads, BenchError> {
    let facts = Facts::read(owner, "").await?;
    let readers = Readers::choose(&facts, seed)?;
    let limit = Duration::from_secs(120);
    let mut plain = Worker::connect(plain, limit, 0, Rng::new(seed)).await?.with_sign_in("SELECT $1::bigint");
    let mut rules = Worker::connect(rules, limit, 0, Rng::new(seed)).await?;
    let mut reads = BTreeMap::new();
    let whole = (points / 20).clamp(3, 40);
    for (name, cases, sql, how_many) in [
        ("a file", &readers.allowed, (FILE, FILE), points),
        ("a file, refused", &readers.refused, (FILE, FILE), points),
        ("a file, held by who holds most", &readers.of_heaviest, (FILE, FILE), points),
        ("a folder of 20", &readers.folders, (FOLDER, FOLDER), points),
        ("authz.can beside a signed-in SELECT 1", &readers.allowed, (ONE, CAN), points),
    ] {
        let mut read = (Latencies::new(), Latencies::new());
        // The first tenth warms up.
        for number in 0..how_many + how_many / 10 {
            let Some((user, id)) = cases.get(number % cases.len().max(1)).copied() else { break };
            let times =
                (timed(&mut plain, user, sql.0, Some(id)).await?, timed(&mut rules, user, sql.1, Some(id)).await?);
            if number >= how_many / 10 {
                read.0.record(times.0);
                read.1.record(times.1);
            }
        }
        reads.insert(name, Read { plain: Percentiles::of(&read.0), rules: Percentiles::of(&read.1) });
    }
    for (name, user, sql, how_many) in [
        ("20 newest, a member", readers.member, (NEWEST, NEWEST), whole.max(20)),
        ("20 newest, an admin of one organisation", readers.admin, (NEWEST, NEWEST), whole.max(20)),
        ("a page of 50, who sees least", readers.lightest, (PAGE, PAGE), whole.max(20)),
        ("count, a member", readers.member, (COUNT, COUNT), whole),
        ("count, an admin of one organisation", readers.admin, (COUNT, COUNT), whole),
        ("authz.list whole, an admin of one organisation", readers.admin, (LIST_PLAIN, LIST), whole),
        ("authz.list, a page of 1,000", readers.member, (LIST_PAGE_PLAIN, LIST_PAGE), whole.max(20)),
    ] {
        let mut read = (Latencies::new(), Latencies::new());
        for number in 0..=how_many {
            let times = (timed(&mut plain, user, sql.0, None).await?, timed(&mut rules, user, sql.1, None).await?);
            if number > 0 {
                read.0.record(times.0);
                read.1.record(times.1);
            }
        }
        reads.insert(name, Read { plain: Percentiles::of(&read.0), rules: Percentiles::of(&read.1) });
    }
    let planning_ms = planning(&mut rules, readers.member, readers.allowed.first().map_or(1, |case| case.1)).await?;
    let doing = || BenchError::database("counting what the guest sees");
    let seen = rules.ask(readers.lightest, COUNT, &[]).await.map_err(doing())?;
    let all = plain.ask(readers.lightest, COUNT, &[]).await.map_err(doing())?;
    let count = |rows: &[tokio_postgres::Row]| rows.first().and_then(|row| row.try_get(0).ok()).unwrap_or(0);
    Ok(Reads { reads, planning_ms, guest_sees: (count(&seen), count(&all)) })
}

async fn timed(worker: &mut Worker, user: i64, sql: &'static str, id: Option<i64>) -> Result<Duration, BenchError> {
    let began = Instant::now();
    let ended = match &id {
        Some(id) => worker.ask(user, sql, &[id]).await,
        None => worker.ask(user, sql, &[]).await,
    };
    ended.map_err(BenchError::database(sql))?;
    Ok(began.elapsed())
}

/// Milliseconds to plan one file's read in a warm session: the median of fifteen.
async fn planning(worker: &mut Worker, user: i64, file: i64) -> Result<f64, BenchError> {
    let doing = || BenchError::database("planning a read");
    let mut times = Vec::new();
    worker.begin(user).await.map_err(doing())?;
    for _ in 0..20 {
        let explain = format!("EXPLAIN (SUMMARY, FORMAT TEXT) {}", FILE.replace("$1", &file.to_string()));
        for message in worker.client.simple_query(&explain).await.map_err(doing())? {
            if let tokio_postgres::SimpleQueryMessage::Row(row) = message
                && let Some(line) = row.get(0).and_then(|line| line.strip_prefix("Planning Time: "))
                && let Some(time) = line.split(' ').next().and_then(|time| time.parse::<f64>().ok())
            {
                times.push(time);
            }
        }
    }
    worker.commit().await.map_err(doing())?;
    Ok(super::report::median(times.get(5..).unwrap_or(&times)))
}

impl Readers {
    fn choose(facts: &Facts, seed: u64) -> Result<Readers, BenchError> {
        let missing = || BenchError::Unsuitable("the data have no readers of every kind".to_owned());
        let mut rng = Rng::split(seed, "versus readers", 0);
        let heaviest = facts.heaviest_reader().ok_or_else(missing)?;
        let lightest = facts.lightest_reader(&mut rng).ok_or_else(missing)?;
        let ordinary = facts.ordinary_readers(&[heaviest, lightest]);
        let member = *rng.pick(&ordinary).ok_or_else(missing)?;
        let admin = facts.admin_of_one().ok_or_else(missing)?;
        let mut readers = Readers {
            member,
            admin,
            heaviest,
            lightest,
            allowed: Vec::new(),
            refused: Vec::new(),
            of_heaviest: Vec::new(),
            folders: Vec::new(),
        };
        for _ in 0..200_000 {
            let Some(file) = rng.pick(&facts.files).copied() else { break };
            let holders = facts.on_file(&file, Permission::View);
            let Some(user) = rng.pick(&ordinary).copied() else { break };
            if readers.refused.len() < 400 && !holders.has(user) {
                readers.refused.push((user, file.id));
            }
            // A member, not one of the admins who reach everything.
            let mut holding: Vec<i64> = holders.users.iter().copied().filter(|user| ordinary.contains(user)).collect();
            holding.sort_unstable();
            if readers.allowed.len() < 400
                && let Some(user) = rng.pick(&holding).copied()
            {
                readers.allowed.push((user, file.id));
                readers.folders.push((user, file.folder));
            }
            if readers.of_heaviest.len() < 400 && holders.has(readers.heaviest) {
                readers.of_heaviest.push((readers.heaviest, file.id));
            }
            if [&readers.allowed, &readers.refused, &readers.of_heaviest].iter().all(|cases| cases.len() >= 400) {
                break;
            }
        }
        if readers.allowed.is_empty() { Err(missing()) } else { Ok(readers) }
    }
}

impl Reads {
    /// What is aimed for, of those that were measured.
    pub(super) fn targets(&self) -> Vec<(&'static str, Target)> {
        let of = |name: &str| self.reads.get(name);
        let p50 = |name: &str| of(name).and_then(|read| read.rules.p50);
        let p95 = |name: &str| of(name).and_then(|read| read.rules.p95);
        let times = |name: &str, percentile: fn(&Percentiles) -> Option<f64>| {
            of(name).and_then(|read| Some(percentile(&read.rules)? / percentile(&read.plain)?))
        };
        let relative = |name: &str, to: &str| Some(p50(name)? / p50(to)?);
        let most = |name: &'static str, value: Option<f64>, target: f64| Some((name, Target::most(value?, target)));
        [
            most("open a file, p50, times plain", times("a file", |p| p.p50), 6.0),
            most("open a file, p95, times plain", times("a file", |p| p.p95), 8.0),
            most("open a folder of 20, p50, times plain", times("a folder of 20", |p| p.p50), 6.0),
            most("open a folder of 20, p95, times plain", times("a folder of 20", |p| p.p95), 8.0),
            most("open a file, refused, p50, times allowed", relative("a file, refused", "a file"), 1.5),
            most(
                "open a file, who holds most, p50, times a member",
                relative("a file, held by who holds most", "a file"),
                2.0,
            ),
            most("plan a file's read, unprepared, ms", Some(self.planning_ms), 1.0),
            most(
                "authz.can, p50, times a signed-in SELECT 1",
                times("authz.can beside a signed-in SELECT 1", |p| p.p50),
                4.0,
            ),
            most("20 newest, member, p50 ms", p50("20 newest, a member"), 30.0),
            most("20 newest, member, p95 ms", p95("20 newest, a member"), 50.0),
            most("20 newest, admin of one org, p50 ms", p50("20 newest, an admin of one organisation"), 30.0),
            most("20 newest, admin of one org, p95 ms", p95("20 newest, an admin of one organisation"), 50.0),
            most("page of 50, who sees least, p50 ms", p50("a page of 50, who sees least"), 30.0),
            most("page of 50, who sees least, p95 ms", p95("a page of 50, who sees least"), 50.0),
            most("authz.list whole, p50 ms", p50("authz.list whole, an admin of one organisation"), 500.0),
            most("authz.list, a page of 1,000, p50 ms", p50("authz.list, a page of 1,000"), 30.0),
            most("count, member, p50, times plain", times("count, a member", |p| p.p50), 4.0),
            most(
                "count, admin of one org, p50, times plain",
                times("count, an admin of one organisation", |p| p.p50),
                4.0,
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
