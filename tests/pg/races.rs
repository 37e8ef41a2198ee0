//! Every pair of tree writes raced in two sessions, at each isolation level, in forced orders: whatever commits, the index
//! equals a plain walk afterwards, and what failed failed with an error that a retry cures or that says why.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::{Client, Error};

use crate::world::World;

const TREE: &str = "TRUNCATE app.folders CASCADE;
INSERT INTO app.folders (id, parent_id) VALUES
  (1, NULL), (2, 1), (3, 1), (4, 2), (5, 4), (6, 3), (7, 6), (8, NULL), (9, 5), (20, NULL), (21, NULL), (22, NULL), (23, 20);
INSERT INTO app.folder_links VALUES (7, 8), (20, 21), (21, 20), (20, 22), (9, 22)";

/// Writes; `{n}` is different in the two sessions.
const WRITES: &[&str] = &[
    "INSERT INTO app.folders (id, parent_id) VALUES (10{n}, 5)",
    "INSERT INTO app.folders (id, parent_id) VALUES (10{n}, 7)",
    "INSERT INTO app.folders (id, parent_id) SELECT 1000 + 100 * {n} + i, CASE WHEN i < 4 THEN 5 ELSE 1000 + 100 * {n} + i / 3 END FROM generate_series(1, 30) i",
    "UPDATE app.folders SET parent_id = 7 WHERE id = 2",
    "UPDATE app.folders SET parent_id = 5 WHERE id = 3",
    "UPDATE app.folders SET parent_id = 8 WHERE id = 4",
    "UPDATE app.folders SET parent_id = NULL WHERE id = 6",
    "UPDATE app.folders SET inherit = NOT inherit WHERE id IN (4, 7)",
    "INSERT INTO app.folder_links VALUES (8, 5) ON CONFLICT DO NOTHING",
    "INSERT INTO app.folder_links VALUES (4, 20) ON CONFLICT DO NOTHING",
    "DELETE FROM app.folder_links WHERE folder_id = 20 AND shown_in = 22",
    "DELETE FROM app.folder_links WHERE folder_id = 21",
    "DELETE FROM app.folders WHERE id = 4",
    "DELETE FROM app.folders WHERE id = 8",
];

const LEVELS: &[&str] = &["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

#[derive(Debug, Clone, Copy)]
enum Order {
    /// The second begins while the first holds its locks; the first commits first.
    FirstCommits,
    /// As above, but the second commits first if it does not have to wait.
    SecondCommits,
    /// The second has its snapshot before the first begins, and writes after it committed.
    OldSnapshot,
    /// As [`Order::FirstCommits`], and the first rolls back.
    FirstRollsBack,
}

const ORDERS: &[Order] = &[Order::FirstCommits, Order::SecondCommits, Order::OldSnapshot, Order::FirstRollsBack];

/// Two sessions, and a third to look at them.
struct Race {
    world: World,
    first: Client,
    second: Arc<Client>,
    second_pid: i32,
}

impl Race {
    async fn new(cluster_size: u32) -> Race {
        let world = World::new(cluster_size).await;
        let first = world.database.connect().await;
        let second = Arc::new(world.database.connect().await);
        let second_pid = second.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        Race { world, first, second, second_pid }
    }

    async fn run(&self, level: &str, order: Order, a: &str, b: &str) {
        let (a, b) = (a.replace("{n}", "1"), b.replace("{n}", "2"));
        let what = format!("{level} {order:?}: {a} | {b}");
        self.world.run(TREE).await;
        let begin = format!("BEGIN ISOLATION LEVEL {level}");
        self.first.batch_execute(&begin).await.unwrap();
        self.second.batch_execute(&begin).await.unwrap();
        if matches!(order, Order::OldSnapshot) {
            self.second.batch_execute("SELECT count(*) FROM app.folders").await.unwrap();
        }
        let first = self.first.batch_execute(&a).await;
        assert!(allowed(&first), "{what}: {first:?}");
        if matches!(order, Order::OldSnapshot) {
            self.first.batch_execute("COMMIT").await.unwrap();
        }
        let (session, statement) = (self.second.clone(), b.clone());
        let second = tokio::spawn(async move { session.batch_execute(&statement).await });
        let waits = self.waits(&second).await;
        let end = if matches!(order, Order::FirstRollsBack) { "ROLLBACK" } else { "COMMIT" };
        let early = matches!(order, Order::SecondCommits) && !waits;
        if !early && !matches!(order, Order::OldSnapshot) {
            // At SERIALIZABLE the commit itself may fail.
            let ended = self.first.batch_execute(end).await;
            assert!(allowed(&ended), "{what}: {ended:?}");
        }
        let second = second.await.unwrap();
        assert!(allowed(&second), "{what}: {second:?}");
        let ended = self.second.batch_execute("COMMIT").await;
        assert!(allowed(&ended), "{what}: {ended:?}");
        if early {
            let ended = self.first.batch_execute(end).await;
            assert!(allowed(&ended), "{what}: {ended:?}");
        }
        self.world.agree(&what).await;
        self.no_ring(&what).await;
        if retry_cures(&second) || retry_cures(&ended) {
            let again = self.second.batch_execute(&b).await;
            assert!(allowed(&again) && !retry_cures(&again), "{what}, again: {again:?}");
            self.world.agree(&format!("{what}, again")).await;
            self.no_ring(&what).await;
        }
    }

    /// True when the second session waits for the first; false when it is done.
    async fn waits(&self, second: &tokio::task::JoinHandle<Result<(), Error>>) -> bool {
        loop {
            if second.is_finished() {
                return false;
            }
            let sql = "SELECT cardinality(pg_blocking_pids($1)) > 0";
            if self.world.client.query_one(sql, &[&self.second_pid]).await.unwrap().get(0) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// No folder is inside itself by `parent_id`.
    async fn no_ring(&self, what: &str) {
        let sql = "WITH RECURSIVE up(x, a) AS (SELECT id, parent_id FROM app.folders UNION
            SELECT x, parent_id FROM up JOIN app.folders ON id = a WHERE x <> a) SELECT x FROM up WHERE x = a";
        let ring = self.world.client.query(sql, &[]).await.unwrap();
        assert!(ring.is_empty(), "{what}: {:?} inside itself", ring[0].get::<_, i64>(0));
    }
}

fn code(result: &Result<(), Error>) -> Option<String> {
    result.as_ref().err().map(|e| e.as_db_error().map_or_else(|| e.to_string(), |d| d.code().code().to_owned()))
}

/// Serialization failure or deadlock.
fn retry_cures(result: &Result<(), Error>) -> bool {
    matches!(code(result).as_deref(), Some("40001" | "40P01"))
}

/// Done, or failed in a way that is right.
fn allowed(result: &Result<(), Error>) -> bool {
    // 23503: the other session deleted the parent. 25P02: COMMIT after an error, reported by some versions.
    match result.as_ref().err().and_then(Error::as_db_error) {
        None => result.is_ok(),
        Some(e) if e.code().code() == "23514" => e.message().starts_with("AZ713"),
        Some(e) => matches!(e.code().code(), "40001" | "40P01" | "23503" | "25P02"),
    }
}

/// All of them with `ROWDECK_RACES=all` (minutes); else one in `of`.
fn chosen(n: usize, of: usize) -> bool {
    n.is_multiple_of(of) || std::env::var("ROWDECK_RACES").is_ok_and(|v| v == "all")
}

async fn all_pairs(cluster_size: u32, level: &str) {
    let race = Race::new(cluster_size).await;
    for (i, a) in WRITES.iter().enumerate() {
        for (j, b) in WRITES.iter().enumerate() {
            for (k, order) in ORDERS.iter().enumerate() {
                if chosen(i * 7 + j * 3 + k + level.len(), 10) {
                    race.run(level, *order, a, b).await;
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_pairs_read_committed() {
    all_pairs(3, LEVELS[0]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_pairs_repeatable_read() {
    all_pairs(3, LEVELS[1]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_pairs_serializable() {
    all_pairs(3, LEVELS[2]).await;
}

/// The ones most likely to go wrong, at the other sizes: crossed moves, a create under what moves, a ring's link.
#[tokio::test(flavor = "multi_thread")]
async fn named_races_at_other_sizes() {
    let named =
        [(3, 4), (4, 3), (0, 3), (3, 0), (1, 4), (4, 1), (2, 3), (3, 2), (10, 11), (11, 10), (10, 9), (5, 7), (7, 5)];
    for cluster_size in [2, 256] {
        let race = Race::new(cluster_size).await;
        for level in LEVELS {
            for (i, (a, b)) in named.into_iter().enumerate() {
                for (k, order) in ORDERS.iter().enumerate() {
                    if chosen(i + k, 4) {
                        race.run(level, *order, WRITES[a], WRITES[b]).await;
                    }
                }
            }
        }
    }
}

/// Many clients at once for a while: no error but those that a retry of that statement cures, and the index is exact.
#[tokio::test(flavor = "multi_thread")]
async fn many_clients_at_once() {
    let seconds: u64 = std::env::var("ROWDECK_STRESS").ok().and_then(|s| s.parse().ok()).unwrap_or(4);
    let world = World::new(3).await;
    world
        .run("INSERT INTO app.folders (id, parent_id) SELECT i, NULLIF(i / 2, 0) FROM generate_series(1, 400) i")
        .await;
    let end = std::time::Instant::now() + Duration::from_secs(seconds);
    let mut clients = Vec::new();
    for c in 0..16i64 {
        let client = world.database.connect().await;
        clients.push(tokio::spawn(async move { busy(&client, c, end).await }));
    }
    let (mut done, mut retried) = (0, 0);
    for c in clients {
        let (d, r) = c.await.unwrap();
        done += d;
        retried += r;
    }
    assert!(done > 50, "{done} writes");
    println!("{done} writes, {retried} retried");
    world.agree("many clients").await;
}

/// Half creates, a third moves, links and deletes the rest. Returns writes done, and those that took more than one try.
async fn busy(client: &Client, c: i64, end: std::time::Instant) -> (u64, u64) {
    let mut random = crate::trees::Random(77 + c as u64);
    let (mut done, mut retried, mut next) = (0, 0, 1_000_000 * (c + 1));
    while std::time::Instant::now() < end {
        let (x, y) = (1 + random.below(400), 1 + random.below(400));
        let sql = match random.below(12) {
            0..=5 => {
                next += 1;
                let p = if random.below(2) == 0 { x as i64 } else { next - 1 };
                format!(
                    "INSERT INTO app.folders (id, parent_id) SELECT {next}, (SELECT id FROM app.folders WHERE id = {p})"
                )
            }
            6..=9 => format!(
                "UPDATE app.folders SET parent_id = {x} WHERE id = {y} AND EXISTS (SELECT FROM app.folders WHERE id = {x})"
            ),
            10 => format!(
                "INSERT INTO app.folder_links SELECT a.id, b.id FROM app.folders a, app.folders b WHERE a.id = {x} AND b.id = {y} ON CONFLICT DO NOTHING"
            ),
            _ if random.below(3) == 0 => format!("DELETE FROM app.folders WHERE id = {}", 200 + x / 2),
            _ => format!("DELETE FROM app.folder_links WHERE folder_id = {x}"),
        };
        let mut tries = 0;
        loop {
            let result = client.batch_execute(&sql).await;
            assert!(allowed(&result), "{sql}: {result:?}");
            if !retry_cures(&result) {
                break;
            }
            tries += 1;
            assert!(tries < 20, "{sql}: {result:?}");
        }
        done += 1;
        retried += u64::from(tries > 0);
    }
    (done, retried)
}
