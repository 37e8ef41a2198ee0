//! Numbers for people, not judged: `cargo test --test pg -- --ignored --nocapture measure`.

use std::time::Instant;

use rowdeck::db::build::build;
use rowdeck::db::progress::Reporter;

use crate::world::World;

/// Folders on exactly 20 levels, each 1.5 times wider than the one above; one in twenty is linked nearer the top.
const TREE: &str = "
CREATE TABLE level AS SELECT l, CASE WHEN l = 20 THEN 0 ELSE 0 END AS x FROM generate_series(1, 20) l;
CREATE TABLE width AS SELECT l, greatest(1, round({n} * 0.5 / (1.5 ^ 20 - 1) * 1.5 ^ (l - 1)))::bigint AS w FROM generate_series(1, 20) l;
CREATE TABLE span AS SELECT l, w, sum(w) OVER (ORDER BY l) - w AS before, lag(w) OVER (ORDER BY l) AS pw,
  sum(w) OVER (ORDER BY l) - w - lag(w) OVER (ORDER BY l) AS pbefore FROM width;
INSERT INTO app.folders (id, parent_id, inherit)
  SELECT before + i, CASE WHEN l > 1 THEN pbefore + 1 + ((i * 7919) % pw) END, i % 50 <> 0 FROM span, generate_series(1, w) i;
INSERT INTO app.folder_links SELECT f.id, 1 + (f.id * 104729) % (SELECT before + 1 FROM span WHERE l = 12)
  FROM app.folders f, span s WHERE s.l = 13 AND f.id > s.before AND f.id % 20 = 0;
ANALYZE;";

async fn number(world: &World, sql: &str) -> i64 {
    world.client.query_one(sql, &[]).await.unwrap().get(0)
}

async fn timed(world: &World, what: &str, sql: &str) {
    world.run("BEGIN").await;
    let start = Instant::now();
    world.run(sql).await;
    let t = start.elapsed();
    world.run("ROLLBACK").await;
    println!("{what}: {:.1} ms", t.as_secs_f64() * 1e3);
}

/// Microseconds a row for one-row statements, in the server.
async fn one_by_one(world: &World, what: &str, statement: &str, n: i64) {
    world.run("BEGIN").await;
    let run = format!("DO $$ BEGIN FOR i IN 1..{n} LOOP {statement}; END LOOP; END $$");
    world.run(&run.replace(&format!("1..{n}"), "-50..0")).await;
    let start = Instant::now();
    world.run(&run).await;
    println!("{what}: {:.1} us each", start.elapsed().as_secs_f64() * 1e6 / n as f64);
    world.run("ROLLBACK").await;
}

async fn writes(world: &World, top: i64) {
    let insert = "INSERT INTO app.folders (id, parent_id) VALUES (10000000 + i, 1 + (i * 7907 + 7907*51) % 40000)";
    one_by_one(world, "create", insert, 1000).await;
    one_by_one(world, "rename", "UPDATE app.folders SET name = 'n' || i WHERE id = 100 + i", 1000).await;
    let moved = "UPDATE app.folders SET parent_id = 200 + i WHERE id = 40000 + i";
    one_by_one(world, "move a small folder", moved, 300).await;
    timed(world, "1,000 folders in one INSERT", "INSERT INTO app.folders (id, parent_id) SELECT 20000000 + i, 1 + (i * 7907) % 40000 FROM generate_series(1, 1000) i").await;
    timed(
        world,
        "1,000 folders in one INSERT, one parent",
        "INSERT INTO app.folders (id, parent_id) SELECT 20000000 + i, 777 FROM generate_series(1, 1000) i",
    )
    .await;
    timed(world, "100,000 folders in one INSERT, nested", "INSERT INTO app.folders (id, parent_id) SELECT 20000000 + i, CASE WHEN i < 100 THEN i ELSE 20000000 + i / 3 END FROM generate_series(1, 100000) i").await;
    timed(world, "rename all", "UPDATE app.folders SET name = 'x'").await;
    timed(world, "flip all conditions", "UPDATE app.folders SET inherit = NOT inherit").await;
    for _ in 0..3 {
        timed(world, "the biggest move", &format!("UPDATE app.folders SET parent_id = NULL WHERE id = {top}; UPDATE app.folders SET parent_id = (SELECT max(id) FROM app.folders WHERE parent_id IS NULL AND id <> {top}) WHERE id = {top}")).await;
    }
    timed(world, "delete the biggest subtree", &format!("DELETE FROM app.folders WHERE id = {top}")).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "prints numbers"]
async fn measure() {
    let folders: i64 = std::env::var("ROWDECK_FOLDERS").ok().and_then(|n| n.parse().ok()).unwrap_or(50_000);
    let world = World::bare(256).await;
    world.run(&TREE.replace("{n}", &folders.to_string())).await;
    println!(
        "folders {} links {} depth 20",
        number(&world, "SELECT count(*) FROM app.folders").await,
        number(&world, "SELECT count(*) FROM app.folder_links").await
    );
    let top = number(&world, "WITH RECURSIVE d(top, id) AS (SELECT id, id FROM app.folders WHERE parent_id IS NULL UNION ALL SELECT d.top, f.id FROM d JOIN app.folders f ON f.parent_id = d.id) SELECT top FROM d GROUP BY top ORDER BY count(*) DESC LIMIT 1").await;
    println!("-- plain");
    writes(&world, top).await;
    world.install().await;
    for g in &world.graphs {
        let built = build(&world.client, &g.tables, 256, &Reporter::silent()).await.unwrap();
        let bytes =
            ["node", "cluster", "edge"].map(|t| format!("pg_total_relation_size('authz_int.{}_{t}')", g.tables.name));
        println!(
            "built {} {built:?} bytes {}",
            g.tables.title,
            number(&world, &format!("SELECT {}", bytes.join("+"))).await
        );
    }
    println!("-- with two graphs; top {top}");
    writes(&world, top).await;
    world.agree("the measured writes").await;
}
