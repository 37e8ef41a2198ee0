//! The build: from tables that were there before the index, and then kept by the upkeep.

use rowdeck::db::build::build;
use rowdeck::db::progress::{Progress, Reporter};

use crate::trees::{Random, write_at_random};
use crate::world::World;

/// A random forest with links, some of which close rings.
pub async fn fill(world: &World, seed: u64, folders: i64, links: i64) {
    let mut random = Random(seed);
    let rows: Vec<String> = (1..=folders)
        .map(|id| {
            let p = if id == 1 || random.below(20) == 0 {
                "NULL".to_owned()
            } else {
                (1 + random.below(id as u64 - 1)).to_string()
            };
            format!("({id}, {p}, '', {})", random.below(10) > 0)
        })
        .collect();
    world.run(&format!("INSERT INTO app.folders VALUES {}", rows.join(", "))).await;
    let n = folders as u64;
    let rows: Vec<String> = (0..links).map(|_| format!("({}, {})", 1 + random.below(n), 1 + random.below(n))).collect();
    world.run(&format!("INSERT INTO app.folder_links VALUES {} ON CONFLICT DO NOTHING", rows.join(", "))).await;
}

async fn build_all(world: &World, cluster_size: u32) {
    for g in &world.graphs {
        let (reporter, mut stream) = Reporter::channel();
        let built = build(&world.client, &g.tables, cluster_size, &reporter).await.unwrap();
        drop(reporter);
        let mut rows = 0;
        while let Some(progress) = stream.recv().await {
            if let Progress::Batch { rows: r, .. } = progress {
                rows = r;
            }
        }
        assert_eq!(rows, built.nodes + built.clusters + built.edges);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn built_then_kept() {
    for (cluster_size, seed) in [(2, 1), (3, 2), (256, 3), (256, 4)] {
        let mut world = World::bare(cluster_size).await;
        fill(&world, seed, 400, 40).await;
        world.install().await;
        build_all(&world, cluster_size).await;
        world.agree("build").await;
        write_at_random(&mut world, cluster_size, seed, 60).await;
        // A second build replaces what is there.
        build_all(&world, cluster_size).await;
        world.agree("second build").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_to_build() {
    let world = World::new(256).await;
    build_all(&world, 256).await;
    world.run("INSERT INTO app.folders VALUES (1, NULL), (2, 1)").await;
    world.agree("an insert after an empty build").await;
}
