//! Check, list, who and row-level security are one meaning in several shapes: each must agree with a plain walk in
//! memory, for every user and for nobody, after every one of many random changes, in each read form and with clusters
//! small enough that every path leaves them.

pub mod changes;
mod facts;

use std::collections::BTreeSet;

use rowdeck::compiler::emit::{Options, emit_with, runtime};
use tokio_postgres::Client;

use crate::server::Database;
use changes::Random;
use facts::Facts;

const TYPES: [(&str, &str); 2] = [("folder", "app.folders"), ("file", "app.files")];
const PERMISSIONS: [&str; 3] = ["share", "edit", "view"];

/// A database with the docs example, empty, and its policy, emitted with `options`.
pub async fn world(options: &Options) -> (Database, Client) {
    let database = Database::create().await;
    let client = database.connect().await;
    client
        .batch_execute(
            "DO $$ BEGIN CREATE ROLE app_user LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$",
        )
        .await
        .unwrap();
    client.batch_execute(include_str!("../../../examples/docs/schema.sql")).await.unwrap();
    let compiled = rowdeck::compiler::compile("docs.authz", include_str!("../../../examples/docs/docs.authz"));
    let emitted = emit_with(&compiled.model.expect("the docs policy compiles"), options).unwrap();
    let mut all = String::from("BEGIN;");
    for (_, sql) in runtime() {
        all.push_str(sql);
    }
    client.batch_execute(&all).await.unwrap();
    for object in &emitted.objects {
        if let Err(e) = client.batch_execute(&object.sql).await {
            panic!("{}: {e:?}\n{}", object.name, object.sql);
        }
    }
    client.batch_execute("COMMIT").await.unwrap();
    client.batch_execute("SET client_min_messages = warning").await.unwrap();
    client.batch_execute(&changes::start()).await.unwrap();
    (database, client)
}

/// Compares everything, for one principal.
async fn compare(client: &Client, facts: &Facts, user: Option<i64>, when: &str) {
    client.batch_execute("BEGIN; SET LOCAL ROLE app_user").await.unwrap();
    let id = user.map(|u| u.to_string());
    client.execute("SELECT authz.act_as($1, $2::text)", &[&user.map(|_| "user"), &id]).await.unwrap();
    for (ty, table) in TYPES {
        let ids = facts.ids(ty);
        let asked: Vec<i64> = ids.iter().copied().chain([999_999]).collect();
        for permission in PERMISSIONS {
            let expected: BTreeSet<i64> =
                ids.iter().copied().filter(|id| facts.holds(user, ty, permission, *id)).collect();
            let sql = "SELECT a FROM unnest($1::bigint[]) a WHERE authz.can($2, a, $3)";
            let can = client.query(sql, &[&asked, &ty, &permission]).await.unwrap();
            let can: BTreeSet<i64> = can.iter().map(|r| r.get(0)).collect();
            assert_eq!(can, expected, "can {permission} {ty} as {user:?} after {when}");
            let list = client.query("SELECT a::bigint FROM authz.list($1, $2) a", &[&ty, &permission]).await.unwrap();
            let list: Vec<i64> = list.iter().map(|r| r.get(0)).collect();
            assert_eq!(
                list,
                expected.iter().copied().collect::<Vec<_>>(),
                "list {permission} {ty} as {user:?} after {when}"
            );
            if permission == "view" {
                let rows = client.query(&format!("SELECT id FROM {table}"), &[]).await.unwrap();
                let rows: BTreeSet<i64> = rows.iter().map(|r| r.get(0)).collect();
                assert_eq!(rows, expected, "rows of {table} as {user:?} after {when}");
                pages(client, ty, &list, when).await;
            }
        }
    }
    client.batch_execute("ROLLBACK").await.unwrap();
}

/// Pages of two: no repeats, no gaps.
async fn pages(client: &Client, ty: &str, whole: &[i64], when: &str) {
    let mut found: Vec<i64> = Vec::new();
    loop {
        let after = found.last().map(|id| id.to_string());
        let sql = "SELECT a::bigint FROM authz.list($1, 'view', $2::text, 2) a";
        let page = client.query(sql, &[&ty, &after]).await.unwrap();
        found.extend(page.iter().map(|r| r.get::<_, i64>(0)));
        if page.len() < 2 {
            break;
        }
    }
    assert_eq!(found, whole, "pages of {ty} after {when}");
}

/// `who` and `explain`, as the operator.
async fn compare_who(client: &Client, facts: &Facts, when: &str) {
    for (ty, _) in TYPES {
        for id in facts.ids(ty) {
            for permission in PERMISSIONS {
                let sql = "SELECT subject_kind, subject_id FROM authz.who($1, $2::bigint, $3)";
                let rows = client.query(sql, &[&ty, &id, &permission]).await.unwrap();
                let mut who: BTreeSet<i64> = BTreeSet::new();
                for row in &rows {
                    match row.get::<_, String>(0).as_str() {
                        "user" => {
                            who.insert(row.get::<_, String>(1).parse().unwrap());
                        }
                        "everyone" => who.extend(facts.users.iter().filter(|(_, active)| **active).map(|(u, _)| *u)),
                        other => panic!("who says {other}"),
                    }
                }
                let expected: BTreeSet<i64> =
                    facts.users.keys().copied().filter(|u| facts.holds(Some(*u), ty, permission, id)).collect();
                assert_eq!(who, expected, "who holds {permission} on {ty} {id} after {when}");
            }
        }
    }
}

/// `explain` gives the verdict of `can`; a yes has a chain that ends with the user or with everyone.
async fn compare_why(client: &Client, facts: &Facts, random: &mut Random, when: &str) {
    for (ty, _) in TYPES {
        for id in facts.ids(ty) {
            let user = i64::try_from(random.below(changes::USERS) + 1).unwrap();
            let permission = PERMISSIONS[usize::try_from(random.below(3)).unwrap()];
            client.batch_execute("BEGIN").await.unwrap();
            let sql = "SELECT authz.explain($1, $2::bigint, $3, $4::bigint)";
            let answer: serde_json::Value =
                client.query_one(sql, &[&ty, &id, &permission, &user]).await.unwrap().get(0);
            client.batch_execute("ROLLBACK").await.unwrap();
            let expected = facts.holds(Some(user), ty, permission, id);
            assert_eq!(answer["allowed"], expected, "explain {permission} {ty} {id} for {user} after {when}: {answer}");
            if expected {
                let chains = answer["chains"].as_array().unwrap_or_else(|| panic!("no chain after {when}: {answer}"));
                let named =
                    chains[0].as_array().unwrap().iter().any(|step| {
                        step["subject"] == format!("user {user}") || step["subject"] == "everyone signed in"
                    });
                assert!(named, "{answer}");
            } else {
                assert!(!answer["missing"].as_array().unwrap().is_empty(), "{answer}");
            }
        }
    }
}

/// Random changes in each test; `ROWDECK_STEPS` asks for more, for a soak.
fn steps() -> usize {
    std::env::var("ROWDECK_STEPS").ok().and_then(|n| n.parse().ok()).unwrap_or(12)
}

/// Random changes in one transaction, and what they were; one that is refused leaves nothing behind.
async fn transaction(client: &Client, random: &mut Random, changes: u64) -> String {
    let mut done = String::new();
    client.batch_execute("BEGIN").await.unwrap();
    for _ in 0..changes {
        let sql = changes::change(random);
        client.batch_execute("SAVEPOINT s").await.unwrap();
        match client.batch_execute(&sql).await {
            Ok(()) => done.push_str(&format!("\n  {sql}")),
            Err(e) => {
                let refusal = e.as_db_error().unwrap_or_else(|| panic!("{sql}: {e}"));
                // A folder inside itself, a row that is there already or still needed, a share with somebody inactive.
                let fine = ["23514", "23505", "23503"].contains(&refusal.code().code())
                    || refusal.message().starts_with("AZ708");
                assert!(fine, "{sql}: {refusal:?}");
                client.batch_execute("ROLLBACK TO s").await.unwrap();
            }
        }
    }
    client.batch_execute("COMMIT").await.unwrap();
    done
}

async fn run(options: Options, seed: u64) {
    let (_database, client) = world(&options).await;
    let mut random = Random(seed);
    // A world with something in it; the comparisons start from there.
    for _ in 0..30 {
        transaction(&client, &mut random, 4).await;
    }
    for step in 0..steps() {
        let mut when = format!("seed {seed} step {step} {options:?}:");
        // Several statements in one transaction now and then.
        let changes = 1 + random.below(3);
        when.push_str(&transaction(&client, &mut random, changes).await);
        let verify: bool = client.query_one("SELECT authz.verify()", &[]).await.unwrap().get(0);
        assert!(verify, "verify after {when}");
        let facts = Facts::read(&client).await;
        for user in facts.users.keys().copied().map(Some).chain([None, Some(777)]) {
            compare(&client, &facts, user, &when).await;
        }
        if step % 4 == 3 {
            compare_who(&client, &facts, &when).await;
            compare_why(&client, &facts, &mut random, &when).await;
        }
    }
}

/// The read form as it is: worlds this small are probed row by row.
#[tokio::test(flavor = "multi_thread")]
async fn by_probing_with_clusters_of_two() {
    run(Options { cluster_size: 2, ..Options::default() }, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn by_probing_with_clusters_of_256() {
    run(Options::default(), 2).await;
}

/// From the first row on against what the caller holds.
#[tokio::test(flavor = "multi_thread")]
async fn by_what_is_held_with_clusters_of_three() {
    run(Options { cluster_size: 3, first_rows: 0, ..Options::default() }, 3).await;
}

/// From the first row on against everything reached.
#[tokio::test(flavor = "multi_thread")]
async fn by_what_is_reached_with_clusters_of_two() {
    run(Options { cluster_size: 2, first_rows: 0, held_rows: 0 }, 4).await;
}

/// Changing from one form to the next in the middle of a statement.
#[tokio::test(flavor = "multi_thread")]
async fn by_all_three_forms_in_one_statement() {
    run(Options { cluster_size: 3, first_rows: 3, held_rows: 7 }, 5).await;
}
