//! The plans of reads through the rules, as the server makes them: a point read finds its row and its folder's node by
//! index and works out no set; a big read probes a few rows, tests some against what is held and the rest against
//! what is reached, each set made once. `docs/ARCHITECTURE.md`, "The read form", says why this form.

use serde_json::Value;
use tokio_postgres::Client;

use crate::agree;
use rowdeck::compiler::emit::Options;

/// 3,000 folders, three below each, and ten files in each.
const DATA: &str = "
    INSERT INTO app.users SELECT i, 'u' || i FROM generate_series(10, 100) i;
    INSERT INTO app.folders SELECT i, 1, nullif(i / 3, 0), 10 + i % 90, 'f', true FROM generate_series(1, 3000) i;
    INSERT INTO app.files SELECT i, 1 + i % 3000, 10 + i % 90, 'n', i % 10 = 0, now() - i * interval '1 minute'
      FROM generate_series(1, 30000) i;
    SELECT authz.act_as('user', 10); SELECT set_config('authz.session', '', false);
    VACUUM ANALYZE;";

/// One node of a plan.
struct Node {
    kind: String,
    relation: String,
    index: String,
    output: String,
    loops: f64,
}

fn collect(plan: &Value, nodes: &mut Vec<Node>) {
    let text = |key: &str| plan[key].as_str().unwrap_or("").to_owned();
    nodes.push(Node {
        kind: text("Node Type"),
        relation: text("Relation Name"),
        index: text("Index Name"),
        output: plan["Output"].to_string(),
        loops: plan["Actual Loops"].as_f64().unwrap(),
    });
    for child in plan["Plans"].as_array().into_iter().flatten() {
        collect(child, nodes);
    }
}

/// The executed plan of `query` as `user`.
async fn plan(client: &Client, user: i64, query: &str) -> Vec<Node> {
    client.batch_execute("BEGIN; SET LOCAL ROLE app_user").await.unwrap();
    client.execute("SELECT authz.act_as('user', $1::bigint)", &[&user]).await.unwrap();
    let explained = client.query_one(&format!("EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) {query}"), &[]).await.unwrap();
    client.batch_execute("ROLLBACK").await.unwrap();
    let value: Value = explained.get(0);
    let mut nodes = Vec::new();
    collect(&value[0]["Plan"], &mut nodes);
    nodes
}

/// How often a set function was evaluated.
fn evaluated(nodes: &[Node], function: &str) -> f64 {
    nodes.iter().filter(|n| n.kind == "ProjectSet" && n.output.contains(function)).map(|n| n.loops).sum()
}

fn no_scan_of_index_tables(nodes: &[Node], what: &str) {
    for node in nodes.iter().filter(|n| n.kind == "Seq Scan" && n.loops > 0.0) {
        let index_table = node.relation.starts_with('g') && node.relation.contains("_node");
        assert!(!index_table && !node.relation.ends_with("_cluster"), "{what}: Seq Scan on {}", node.relation);
    }
}

/// How often nodes were looked up by key.
fn looked_up(nodes: &[Node]) -> f64 {
    nodes.iter().filter(|n| n.index.ends_with("_node_pkey")).map(|n| n.loops).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_choose_their_form_as_they_go() {
    let (_database, client) = agree::world(&Options::default()).await;
    client.batch_execute("SET jit = off").await.unwrap();
    for statement in DATA.split_inclusive(';') {
        client.batch_execute(statement).await.unwrap();
    }
    let verify: bool = client.query_one("SELECT authz.verify()", &[]).await.unwrap().get(0);
    assert!(verify);
    // User 12 owns folder 2 and what is in it, which is a third of everything.
    let point = plan(&client, 12, "SELECT * FROM app.files WHERE id = 5").await;
    assert!(point.iter().any(|n| n.index == "files_pkey"), "a point read goes by the key");
    no_scan_of_index_tables(&point, "a point read");
    assert!(looked_up(&point) <= 1.0, "a point read looks up one node");
    assert_eq!(
        evaluated(&point, "set__") + evaluated(&point, "held__"),
        0.0,
        "a point read works out no set of folders"
    );

    let folder = plan(&client, 12, "SELECT * FROM app.files WHERE folder_id = 200").await;
    assert!(folder.iter().any(|n| n.index == "files_folder_id_idx"));
    no_scan_of_index_tables(&folder, "opening a folder");
    assert_eq!(evaluated(&folder, "set__folder"), 0.0);

    let newest = plan(&client, 12, "SELECT id FROM app.files ORDER BY created_at DESC, id DESC LIMIT 20").await;
    assert!(newest.iter().any(|n| n.index == "files_created_at_id_idx"), "the newest come by the index of their date");
    no_scan_of_index_tables(&newest, "the newest 20");

    let refused = plan(&client, 100, "SELECT * FROM app.files WHERE id = 5").await;
    no_scan_of_index_tables(&refused, "a refused read");
    assert!(looked_up(&refused) <= 1.0);

    let all = plan(&client, 12, "SELECT count(*) FROM app.files").await;
    let probed = looked_up(&all);
    assert!((1900.0..=2100.0).contains(&probed), "a count probes {probed} rows before it goes over to sets");
    assert_eq!(evaluated(&all, "held__folder__view"), 1.0, "what is held is worked out once");
    assert_eq!(evaluated(&all, "set__folder__view"), 1.0, "what is reached is worked out once");
}
