//! A database with the docs graphs, and the plain in-memory walk that their index must agree with.

use std::collections::{BTreeMap, BTreeSet};

use rowdeck::compiler::emit::graph::{GraphEmitted, emit_graph, emit_verify};
use rowdeck::compiler::model::GraphId;
use tokio_postgres::Client;

use crate::docs;
use crate::server::Database;

/// Sets of ancestors by object.
pub type Ancestors = BTreeMap<i64, BTreeSet<i64>>;

/// A database with the docs schema and the index of both graphs.
pub struct World {
    pub database: Database,
    pub client: Client,
    pub graphs: Vec<GraphEmitted>,
}

impl World {
    /// Makes one; the index is there from the start.
    pub async fn new(cluster_size: u32) -> World {
        let world = World::bare(cluster_size).await;
        world.install().await;
        world
    }

    /// Makes one without the index.
    pub async fn bare(cluster_size: u32) -> World {
        let database = Database::create().await;
        let client = database.connect().await;
        client.batch_execute(docs::SCHEMA).await.unwrap();
        let model = docs::model();
        let graphs = (0..model.graphs.len()).map(|g| emit_graph(&model, GraphId(g), cluster_size).unwrap()).collect();
        World { database, client, graphs }
    }

    /// Makes the index's objects.
    pub async fn install(&self) {
        for object in self.graphs.iter().flat_map(|g| g.objects.iter()).chain(&emit_verify(&self.graphs)) {
            if let Err(e) = self.client.batch_execute(&object.sql).await {
                panic!("{}: {e:?}\n{}", object.name, object.sql);
            }
        }
    }

    /// Runs statements.
    pub async fn run(&self, sql: &str) {
        if let Err(e) = self.client.batch_execute(sql).await {
            panic!("{sql}: {e:?}");
        }
    }

    /// The stored ancestors of every object, of one graph.
    pub async fn stored(&self, graph: usize) -> Ancestors {
        let g = &self.graphs[graph].tables.name;
        let sql = format!(
            "SELECT n.id, n.local || c.above FROM authz_int.{g}_node n JOIN authz_int.{g}_cluster c ON c.id = n.cluster"
        );
        let rows = self.client.query(&sql, &[]).await.unwrap();
        rows.iter().map(|r| (r.get::<_, i64>(0), r.get::<_, Vec<i64>>(1).into_iter().collect())).collect()
    }

    /// The ancestors of every object, walked from the tables.
    pub async fn walked(&self, graph: usize) -> Ancestors {
        let mut parents: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
        for r in self.client.query("SELECT id, parent_id, inherit FROM app.folders", &[]).await.unwrap() {
            let set = parents.entry(r.get(0)).or_default();
            if let (Some(p), true) = (r.get::<_, Option<i64>>(1), r.get::<_, bool>(2)) {
                set.insert(p);
            }
        }
        if graph == 1 {
            for r in self.client.query("SELECT folder_id, shown_in FROM app.folder_links", &[]).await.unwrap() {
                let (child, parent) = (r.get::<_, i64>(0), r.get::<_, i64>(1));
                if child != parent {
                    // A link may outlive its folder where triggers were off.
                    parents.entry(child).and_modify(|set| _ = set.insert(parent));
                }
            }
        }
        let walk = |&x: &i64| {
            let mut seen = BTreeSet::new();
            let mut todo: Vec<i64> = parents[&x].iter().copied().filter(|p| parents.contains_key(p)).collect();
            while let Some(a) = todo.pop() {
                if seen.insert(a) {
                    todo.extend(parents[&a].iter().copied().filter(|p| parents.contains_key(p)));
                }
            }
            (x, seen)
        };
        parents.keys().map(walk).collect()
    }

    /// `authz.verify()`.
    pub async fn verified(&self) -> bool {
        self.client.query_one("SELECT authz.verify()", &[]).await.unwrap().get(0)
    }

    /// All that verify finds, in batches of a size.
    pub async fn wrong(&self, size: u32) -> Vec<rowdeck::db::progress::Wrong> {
        let (mut cursor, mut wrong) = (None, Vec::new());
        loop {
            let batch = rowdeck::db::verify::next_batch(&self.client, cursor.as_deref(), size).await.unwrap();
            wrong.extend(batch.wrong);
            cursor = batch.cursor;
            if cursor.is_none() {
                return wrong;
            }
        }
    }

    /// Both agree, in both graphs, and the invariants of the tables hold.
    pub async fn agree(&self, when: &str) {
        for graph in 0..self.graphs.len() {
            let (stored, walked) = (self.stored(graph).await, self.walked(graph).await);
            if stored != walked {
                let differs: Vec<_> = walked
                    .iter()
                    .filter(|(x, set)| stored.get(x) != Some(set))
                    .map(|(x, set)| format!("{x}: stored {:?}, is {set:?}", stored.get(x)))
                    .chain(stored.keys().filter(|x| !walked.contains_key(x)).map(|x| format!("{x}: stored only")))
                    .take(20)
                    .collect();
                panic!("graph {graph} after {when}:\n{}", differs.join("\n"));
            }
            self.invariants(graph, when).await;
        }
        if !self.verified().await {
            panic!("verify is false after {when}: {:?}", self.wrong(1000).await);
        }
    }

    /// The shape of the clusters.
    async fn invariants(&self, graph: usize, when: &str) {
        let g = &self.graphs[graph].tables.name;
        let checks = [
            (
                "a size",
                format!(
                    "SELECT c.id FROM authz_int.{g}_cluster c WHERE c.size <> (SELECT count(*) FROM authz_int.{g}_node n WHERE n.cluster = c.id)"
                ),
            ),
            (
                "an empty cluster",
                format!(
                    "SELECT c.id FROM authz_int.{g}_cluster c WHERE NOT EXISTS (SELECT FROM authz_int.{g}_node n WHERE n.cluster = c.id)"
                ),
            ),
            (
                "a parent cluster",
                format!(
                    "SELECT e.child FROM authz_int.{g}_edge e LEFT JOIN authz_int.{g}_node n ON n.id = e.parent WHERE n.cluster IS DISTINCT FROM e.parent_cluster"
                ),
            ),
            (
                "an edge of no cluster",
                format!(
                    "SELECT e.child FROM authz_int.{g}_edge e WHERE NOT EXISTS (SELECT FROM authz_int.{g}_cluster c WHERE c.id = e.child)"
                ),
            ),
            (
                "a root of several",
                format!(
                    "SELECT e.child FROM authz_int.{g}_edge e GROUP BY e.child HAVING count(*) > 1 AND (SELECT count(*) FROM authz_int.{g}_node n WHERE n.cluster = e.child AND n.local = '{{}}') > 1"
                ),
            ),
            (
                "a local",
                format!(
                    "SELECT n.id FROM authz_int.{g}_node n WHERE n.local <> '{{}}' AND NOT EXISTS (SELECT FROM authz_int.{g}_node p WHERE p.id = n.local[1] AND p.cluster = n.cluster AND n.local = p.id || p.local)"
                ),
            ),
        ];
        for (what, sql) in checks {
            let wrong = self.client.query(&sql, &[]).await.unwrap();
            assert!(wrong.is_empty(), "graph {graph} after {when}: {what}: {:?}", wrong[0].get::<_, i64>(0));
        }
    }
}
