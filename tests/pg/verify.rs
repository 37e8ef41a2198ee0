//! Verify finds what is wrong, names it, and repair mends it.

use std::collections::BTreeSet;

use rowdeck::db::progress::{Progress, Reporter};
use rowdeck::db::verify::{Control, Options, repair, run};
use tokio::sync::watch;

use crate::build::fill;
use crate::trees::Random;
use crate::world::World;

/// Runs statements without any trigger.
async fn behind_its_back(world: &World, sql: &str) {
    world.run(&format!("SET session_replication_role = replica; {sql}; RESET session_replication_role")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_moved_without_triggers_is_named_and_repaired() {
    let world = World::new(3).await;
    // 4 has a hundred folders below it.
    world
        .run(
            "INSERT INTO app.folders (id, parent_id) VALUES (1, NULL), (2, 1), (4, 2), (9, 1);
             INSERT INTO app.folders (id, parent_id) SELECT i, CASE WHEN i < 110 THEN 4 ELSE i / 2 + 45 END FROM generate_series(100, 200) i",
        )
        .await;
    world.agree("the tree").await;
    behind_its_back(&world, "UPDATE app.folders SET parent_id = 9 WHERE id = 4").await;
    assert!(!world.verified().await);
    for size in [1, 7, 1000] {
        let wrong = world.wrong(size).await;
        let ids: Vec<_> = wrong.iter().map(|w| w.id.as_str()).collect();
        assert_eq!(ids, ["4", "4"], "once in each graph: {wrong:?}");
        let sorted = |v: &Option<Vec<String>>| v.iter().flatten().cloned().collect::<BTreeSet<_>>();
        assert_eq!(sorted(&wrong[0].stored), ["1", "2"].map(str::to_owned).into());
        assert_eq!(sorted(&wrong[0].expected), ["1", "9"].map(str::to_owned).into());
        assert_eq!(wrong[0].ty, "folder");
    }
    assert_eq!(repair(&world.client, &world.wrong(50).await).await.unwrap(), 2);
    world.agree("repair").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ring_keeps_no_lost_ancestor_alive() {
    let world = World::new(2).await;
    // 1 and 2 show each other, and 2 is shown in 3; 5 and 6 are below.
    world
        .run(
            "INSERT INTO app.folders (id, parent_id) VALUES (1, NULL), (2, NULL), (3, NULL), (5, 1), (6, 5);
             INSERT INTO app.folder_links VALUES (1, 2), (2, 1), (2, 3)",
        )
        .await;
    world.agree("the ring").await;
    world.run("DELETE FROM app.folder_links WHERE shown_in = 3").await;
    world.agree("a link taken out of the ring").await;
    // The same as a wrong index would have it: each member confirms the lost ancestor to the other.
    let g = world.graphs[1].tables.name.clone();
    behind_its_back(
        &world,
        &format!("UPDATE authz_int.{g}_cluster SET above = above || 3::bigint WHERE above @> '{{1,2}}'"),
    )
    .await;
    let wrong = world.wrong(1000).await;
    assert!(!wrong.is_empty() && wrong.iter().all(|w| w.what.contains("outside its cluster")), "{wrong:?}");
    repair(&world.client, &wrong).await.unwrap();
    world.agree("repair").await;
}

/// Any damage, to the tables or to the index, is found, and repaired by repairing what was found.
#[tokio::test(flavor = "multi_thread")]
async fn any_damage_is_found_and_repaired() {
    for (cluster_size, seed) in [(2, 11), (3, 12), (256, 13)] {
        let world = World::new(cluster_size).await;
        fill(&world, seed, 150, 20).await;
        world.agree("the tree").await;
        let mut random = Random(seed);
        for step in 0..40 {
            let g = &world.graphs[random.below(2) as usize].tables.name;
            let id = 1 + random.below(150);
            let other = 1 + random.below(150);
            let damage = match random.below(12) {
                0 => format!(
                    "UPDATE app.folders SET parent_id = NULLIF({other}, {id}) WHERE id = {id} AND {other} < {id}"
                ),
                1 => format!("INSERT INTO app.folders (id, parent_id) VALUES ({}, {other})", 1000 + step),
                2 => format!("DELETE FROM app.folders WHERE id = {id} AND id > 1"),
                3 => format!("UPDATE app.folders SET inherit = NOT inherit WHERE id % 11 = {}", id % 11),
                4 => format!("INSERT INTO app.folder_links VALUES ({id}, {other}) ON CONFLICT DO NOTHING"),
                5 => format!("DELETE FROM app.folder_links WHERE folder_id % 3 = {}", id % 3),
                6 => format!("DELETE FROM authz_int.{g}_node WHERE id % 13 = {}", id % 13),
                7 => format!(
                    "DELETE FROM authz_int.{g}_cluster WHERE id IN (SELECT cluster FROM authz_int.{g}_node WHERE id = {id})"
                ),
                8 => format!("DELETE FROM authz_int.{g}_edge WHERE parent = {id}"),
                9 => format!("UPDATE authz_int.{g}_node SET local = '{{}}' WHERE id = {id} AND local <> '{{}}'"),
                10 => format!(
                    "UPDATE authz_int.{g}_cluster SET above = above || {other}::bigint WHERE NOT above @> ARRAY[{other}::bigint] AND id % 5 = {}",
                    id % 5
                ),
                _ => format!("INSERT INTO authz_int.{g}_node VALUES ({}, {other}, '{{}}')", 5000 + step),
            };
            behind_its_back(&world, &damage).await;
            let exact =
                world.stored(0).await == world.walked(0).await && world.stored(1).await == world.walked(1).await;
            let wrong = world.wrong(1 + random.below(60) as u32).await;
            assert!(exact || !wrong.is_empty(), "size {cluster_size}: not found: {damage}");
            // A second round mends what the first could not see for the damage.
            for round in 0.. {
                let wrong = world.wrong(1000).await;
                if wrong.is_empty() {
                    break;
                }
                assert!(round < 4, "size {cluster_size}: not repaired: {damage}: {wrong:?}");
                repair(&world.client, &wrong).await.unwrap();
            }
            world.agree(&format!("repair of {damage}")).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_pauses_steps_stops_and_goes_on() {
    let world = World::new(256).await;
    fill(&world, 5, 100, 5).await;
    let (control, wishes) = watch::channel(Control::Pause);
    let (reporter, mut stream) = Reporter::channel();
    let options = Options { batch: 30, control: Some(wishes), ..Options::default() };
    let client = world.database.connect().await;
    let running = tokio::spawn(async move { run(&client, options, &reporter).await.unwrap() });
    for n in 1..=2 {
        assert!(stream.try_recv().is_err(), "paused");
        control.send(Control::Step(n)).unwrap();
        let Some(Progress::Batch { batch, rows, .. }) = stream.recv().await else { panic!("no batch") };
        assert_eq!((batch, rows), (n, 30 * n));
    }
    control.send(Control::Stop).unwrap();
    let stopped = running.await.unwrap();
    assert!(!stopped.ok && stopped.cursor.is_some() && stopped.checked == 60, "{stopped:?}");
    let rest = Options { batch: 30, from: stopped.cursor, ..Options::default() };
    let rest = run(&world.client, rest, &Reporter::silent()).await.unwrap();
    assert!(rest.ok && rest.cursor.is_none(), "{rest:?}");
    assert_eq!(stopped.checked + rest.checked, 200, "100 folders in two graphs");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_policy_it_says_so() {
    let world = World::bare(256).await;
    let error = run(&world.client, Options::default(), &Reporter::silent()).await.unwrap_err();
    assert!(matches!(error, rowdeck::db::error::DbError::NoPolicy(_)), "{error}");
}
