//! Random trees under random writes: after each, the index equals a plain walk.

use futures_util::SinkExt;

use crate::world::World;

/// A small deterministic generator, so that a failure can be run again from its seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 11) % n.max(1)
    }
}

/// Ids in use.
async fn ids(world: &World) -> Vec<i64> {
    world.client.query("SELECT id FROM app.folders ORDER BY id", &[]).await.unwrap().iter().map(|r| r.get(0)).collect()
}

fn some(random: &mut Random, ids: &[i64]) -> i64 {
    if ids.is_empty() { 0 } else { ids[random.below(ids.len() as u64) as usize] }
}

fn parent(random: &mut Random, ids: &[i64]) -> String {
    if ids.is_empty() || random.below(8) == 0 { "NULL".to_owned() } else { some(random, ids).to_string() }
}

/// One random write, as SQL.
fn write(random: &mut Random, ids: &[i64], next: &mut i64) -> String {
    let fresh = |next: &mut i64| {
        *next += 1;
        *next
    };
    match random.below(20) {
        0..=3 => {
            format!(
                "INSERT INTO app.folders VALUES ({}, {}, '', {})",
                fresh(next),
                parent(random, ids),
                random.below(5) > 0
            )
        }
        4 | 5 => {
            // Several at once, some inside each other, in any order.
            let first = *next + 1;
            let n = 2 + random.below(12) as i64;
            let mut rows: Vec<String> = (first..first + n)
                .map(|id| {
                    let p = if id > first && random.below(3) > 0 {
                        (first + random.below((id - first) as u64) as i64).to_string()
                    } else {
                        parent(random, ids)
                    };
                    format!("({id}, {p}, '', {})", random.below(6) > 0)
                })
                .collect();
            *next += n;
            if random.below(2) == 0 {
                rows.reverse();
            }
            format!("INSERT INTO app.folders VALUES {}", rows.join(", "))
        }
        6..=8 => format!("UPDATE app.folders SET parent_id = {} WHERE id = {}", parent(random, ids), some(random, ids)),
        9 => {
            let (a, b) = (some(random, ids), some(random, ids));
            format!(
                "UPDATE app.folders SET parent_id = CASE id WHEN {a} THEN {} ELSE {a} END WHERE id IN ({a}, {b})",
                parent(random, ids)
            )
        }
        10..=12 => format!(
            "INSERT INTO app.folder_links VALUES ({}, {}) ON CONFLICT DO NOTHING",
            some(random, ids),
            some(random, ids)
        ),
        13 => format!("DELETE FROM app.folder_links WHERE folder_id % 5 = {}", random.below(5)),
        14 => format!(
            "DELETE FROM app.folder_links WHERE folder_id = {} OR shown_in = {}",
            some(random, ids),
            some(random, ids)
        ),
        15 => format!("UPDATE app.folders SET inherit = NOT inherit WHERE id % 7 = {}", random.below(7)),
        16 => format!("DELETE FROM app.folders WHERE id = {}", some(random, ids)),
        17 => format!("UPDATE app.folders SET id = {} WHERE id = {}", fresh(next), some(random, ids)),
        18 => {
            format!(
                "UPDATE app.folder_links SET shown_in = {} WHERE folder_id = {} AND shown_in = {}",
                some(random, ids),
                some(random, ids),
                some(random, ids)
            )
        }
        _ if random.below(12) == 0 => "TRUNCATE app.folder_links".to_owned(),
        _ => {
            let (a, b) = (some(random, ids), some(random, ids));
            format!(
                "MERGE INTO app.folders f USING (VALUES ({a}::bigint, {p}::bigint), ({n}, {b})) v(id, p) ON f.id = v.id
                 WHEN MATCHED THEN UPDATE SET parent_id = v.p WHEN NOT MATCHED THEN INSERT (id, parent_id) VALUES (v.id, v.p)",
                p = parent(random, ids),
                n = fresh(next)
            )
        }
    }
}

async fn random_writes(cluster_size: u32, seed: u64, steps: usize) {
    let mut world = World::new(cluster_size).await;
    write_at_random(&mut world, cluster_size, seed, steps).await;
}

/// Random writes on whatever is there, comparing after each.
pub async fn write_at_random(world: &mut World, cluster_size: u32, seed: u64, steps: usize) {
    let mut random = Random(seed);
    let mut next = ids(world).await.last().copied().unwrap_or(0);
    for step in 0..steps {
        let ids = ids(world).await;
        let sql = if ids.is_empty() {
            next += 3;
            format!("INSERT INTO app.folders VALUES ({}, NULL), ({}, {})", next - 1, next, next - 1)
        } else {
            write(&mut random, &ids, &mut next)
        };
        let when = format!("size {cluster_size} seed {seed} step {step}: {sql}");
        let rolled_back = random.below(10) == 0;
        let t = world.client.transaction().await.unwrap();
        let result = t.batch_execute(&sql).await;
        match result {
            Ok(()) if rolled_back => t.rollback().await.unwrap(),
            Ok(()) => t.commit().await.unwrap(),
            Err(e) => {
                t.rollback().await.unwrap();
                let db = e.as_db_error().unwrap_or_else(|| panic!("{when}: {e}"));
                let expected = db.message().starts_with("AZ713") && db.code().code() == "23514"
                    || db.message().contains("folder_links_pkey");
                assert!(expected, "{when}: {e:?}");
            }
        }
        world.agree(&when).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_writes_in_clusters_of_2() {
    for seed in seeds() {
        random_writes(2, seed, 200).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_writes_in_clusters_of_3() {
    for seed in seeds() {
        random_writes(3, seed, 200).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_writes_in_clusters_of_256() {
    for seed in seeds() {
        random_writes(256, seed, 200).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn copied_truncated_and_rolled_back() {
    let world = World::new(3).await;
    let rows: String =
        (1..=1500).map(|i| format!("{i}\t{}\n", if i < 9 { "\\N".to_owned() } else { (i / 3).to_string() })).collect();
    // Children before their parents, in one statement.
    let rows = rows.lines().rev().map(|l| format!("{l}\n")).collect::<String>();
    let sink = world.client.copy_in("COPY app.folders (id, parent_id) FROM STDIN").await.unwrap();
    let mut sink = std::pin::pin!(sink);
    sink.send(bytes::Bytes::from(rows)).await.unwrap();
    sink.finish().await.unwrap();
    world.agree("COPY").await;
    world
        .run(
            "BEGIN; UPDATE app.folders SET parent_id = 5 WHERE id = 9; SAVEPOINT s; DELETE FROM app.folders WHERE id = 3;
             INSERT INTO app.folder_links VALUES (5, 9), (9, 6); ROLLBACK TO s; UPDATE app.folders SET parent_id = 6 WHERE id = 5; COMMIT",
        )
        .await;
    world.agree("a savepoint rolled back").await;
    // Everything at once, upside down.
    world.run("UPDATE app.folders SET parent_id = CASE WHEN id > 1000 THEN NULL ELSE 1500 - id / 3 END").await;
    world.agree("a move of everything").await;
    world.run("TRUNCATE app.folders CASCADE").await;
    world.agree("TRUNCATE").await;
    world.run("INSERT INTO app.folders (id, parent_id) VALUES (1, NULL), (2, 1)").await;
    world.agree("an insert after TRUNCATE").await;
}

/// `ROWDECK_SEEDS` runs more of them.
fn seeds() -> std::ops::RangeInclusive<u64> {
    1..=std::env::var("ROWDECK_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(2)
}
