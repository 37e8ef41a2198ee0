//! Tiers that include each other over a chain of types grow by a step for each type, as PostgreSQL itself counts; rules
//! that read each other's tables do not recurse.

use std::collections::BTreeMap;

use rowdeck::compiler::emit::{Options, emit_with};
use rowdeck::compiler::objects::Emitted;

use crate::plain::{Town, compiled};

/// `admin < edit < comment < view` over `types` chained types, each inheriting from the one above.
fn policy(types: usize) -> String {
    let mut text = "app role app_user\ntype user = app.users\n".to_owned();
    for at in 1..=types {
        text.push_str(&format!("type t{at} = app.t{at}\n  owner : user = owner_id\n"));
        for people in ["editor", "commenter", "viewer"] {
            text.push_str(&format!("  {people} : user = app.{people}s{at}(id -> user_id)\n"));
        }
        let parent = |tier: &str| {
            if at == 1 { String::new() } else { format!(" or parent.{tier}") }
        };
        let (admin, edit, comment, view) = (parent("admin"), parent("edit"), parent("comment"), parent("view"));
        if at > 1 {
            text.push_str(&format!("  parent : t{} = parent_id\n", at - 1));
        }
        text.push_str(&format!(
            "  can admin = owner{admin}\n  can edit = admin or editor{edit}\n  can comment = edit or commenter{comment}\n  \
             can view = comment or viewer{view} or (viewer and viewer and viewer)\n"
        ));
    }
    for at in 1..=types {
        text.push_str(&format!("rules app.t{at}\n  select : view\n  update : edit\n"));
    }
    text
}

fn schema(types: usize) -> String {
    let mut text =
        "CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO app_user; CREATE TABLE app.users (id bigint PRIMARY KEY);
        INSERT INTO app.users SELECT generate_series(1, 9);"
            .to_owned();
    for at in 1..=types {
        text.push_str(&format!(
            "CREATE TABLE app.t{at} (id bigint PRIMARY KEY, parent_id bigint, owner_id bigint);
             INSERT INTO app.t{at} SELECT i, 1 + i / 2, 1 + (i + {at}) % 9 FROM generate_series(1, 20) i;"
        ));
        for people in ["editor", "commenter", "viewer"] {
            text.push_str(&format!(
                "CREATE TABLE app.{people}s{at} (id bigint, user_id bigint, PRIMARY KEY (id, user_id));
                 INSERT INTO app.{people}s{at} SELECT i, 1 + (i * {at}) % 9 FROM generate_series(1, 20, 3) i;"
            ));
        }
    }
    text
}

/// The views that the rewriter expands for each governed table's select policy: every range table entry of a view in
/// the policy's own tree, and in the trees of the views it names, as often as it stands there.
async fn expanded(town: &Town) -> BTreeMap<String, usize> {
    let views = town
        .texts(
            "SELECT c.oid::text, r.ev_action::text FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
             WHERE c.relkind = 'v' AND c.relnamespace = 'authz_gen'::regnamespace",
        )
        .await;
    let ids: Vec<String> = views.iter().map(|row| row[0].clone()).collect();
    // A view's own tree holds entries of itself, for OLD and NEW.
    let named = |tree: &str, own: &str| -> Vec<String> {
        let entries = tree.split(":relid ").skip(1).filter_map(|rest| rest.split_whitespace().next());
        entries.filter(|id| *id != own && ids.iter().any(|view| view == id)).map(str::to_owned).collect()
    };
    let inside: BTreeMap<String, Vec<String>> =
        views.iter().map(|row| (row[0].clone(), named(&row[1], &row[0]))).collect();
    let policies = town
        .texts("SELECT polrelid::regclass::text, polqual::text FROM pg_policy WHERE polname = 'authz_select'")
        .await;
    let mut out = BTreeMap::new();
    for row in policies {
        let mut count = 0;
        let mut todo = named(&row[1], "");
        while let Some(view) = todo.pop() {
            count += 1;
            todo.extend(inside[&view].iter().cloned());
        }
        out.insert(row[0].clone(), count);
    }
    out
}

fn counted(emitted: &Emitted) -> BTreeMap<String, usize> {
    emitted.tables.iter().map(|table| (table.table.plain(), table.expanded_views)).collect()
}

/// Chained types have no graph, so their rules work from sets; a policy in which the last type's rows lie in folders
/// reads by probing, which is what expands views.
fn with_folders(types: usize) -> String {
    let tiers = ["admin", "edit", "comment", "view"];
    let mut folder = "type folder = app.folders\n  owner : user = owner_id\n  parent : folder = parent_id\n".to_owned();
    let mut below = "owner".to_owned();
    for tier in tiers {
        folder.push_str(&format!("  can {tier} = {below} or parent.{tier}\n"));
        below = tier.to_owned();
    }
    let text = policy(types).replacen("type t1 ", &format!("{folder}type t1 "), 1);
    let mut first = text.replacen(
        "  can admin = owner\n",
        "  folder : folder = parent_id\n  can admin = owner or folder.admin\n",
        1,
    );
    for (tier, from) in [("edit", "editor"), ("comment", "commenter"), ("view", "viewer")] {
        let lower = tiers[tiers.iter().position(|t| *t == tier).unwrap() - 1];
        let line = format!("  can {tier} = {lower} or {from}");
        first = first.replacen(&line, &format!("{line} or folder.{tier}"), 1);
    }
    first
}

#[tokio::test(flavor = "multi_thread")]
async fn tiers_over_chained_types_expand_a_step_for_each_type() {
    let folders = "CREATE TABLE app.folders (id bigint PRIMARY KEY, parent_id bigint, owner_id bigint);";
    let town = Town::new(&format!("{}{folders}", schema(7)), &with_folders(7), &Options::default()).await;
    let emitted = emit_with(&compiled(&with_folders(7)).model.unwrap(), &Options::default()).unwrap();
    let (ours, servers) = (counted(&emitted), expanded(&town).await);
    assert_eq!(ours, servers, "our count is the server's");
    let of = |at: usize| ours[&format!("app.t{at}")];
    let step = of(7) - of(6);
    assert!(step > 0);
    for at in 2..7 {
        assert_eq!(of(at + 1) - of(at), step, "t{at}: {ours:?}");
    }
    assert!(of(7) <= 50, "within what a lint lets pass: {ours:?}");
}

/// Planning a read of the last table grows with the chain, not with a power of it.
#[tokio::test(flavor = "multi_thread")]
async fn planning_a_read_grows_with_the_chain() {
    let folders = "CREATE TABLE app.folders (id bigint PRIMARY KEY, parent_id bigint, owner_id bigint);";
    let town = Town::new(&format!("{}{folders}", schema(7)), &with_folders(7), &Options::default()).await;
    let mut best = BTreeMap::new();
    for at in [3, 7] {
        let mut times = Vec::new();
        for _ in 0..7 {
            let sql = format!("EXPLAIN (SUMMARY) SELECT FROM app.t{at} WHERE id = 1");
            let plan = town.seen(Some("1"), &sql).await;
            let line = plan.iter().map(|row| &row[0]).find(|line| line.starts_with("Planning Time")).unwrap().clone();
            times.push(line.split_whitespace().nth(2).unwrap().parse::<f64>().unwrap());
        }
        let fastest = times.into_iter().fold(f64::INFINITY, f64::min);
        println!("planning a read of t{at}: {fastest} ms");
        best.insert(at, fastest);
    }
    // Linear would be a little over twice; multiplying tiers would be hundreds of times.
    assert!(best[&7] < best[&3] * 8.0, "{best:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_whose_rules_read_each_other_show_their_rows() {
    let town = Town::bare(
        "CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO app_user; CREATE TABLE app.users (id bigint PRIMARY KEY);
         INSERT INTO app.users VALUES (1), (2), (3);
         CREATE TABLE app.rooms (id bigint PRIMARY KEY, pinned bigint);
         CREATE TABLE app.members (room_id bigint, user_id integer, PRIMARY KEY (room_id, user_id));
         INSERT INTO app.rooms VALUES (1, NULL), (2, NULL), (3, NULL); INSERT INTO app.members VALUES (1, 1), (1, 2), (2, 2)",
    )
    .await;
    let policy = "
app role app_user
type user = app.users
type room = app.rooms
  member : user = app.members(room_id -> user_id)
  can view = member or {exists (select from app.members m where m.room_id = this.id and m.user_id = authz.uid())}
type membership = app.members (room_id bigint, user_id integer)
  room : room = room_id
  person : user = user_id
  can view = person or room.view
rules app.rooms
  select : view
rules app.members
  select : view
";
    town.apply(policy).await.unwrap();
    let rooms = "SELECT id::text FROM app.rooms ORDER BY id";
    let members = "SELECT room_id::text || user_id FROM app.members ORDER BY 1";
    assert_eq!(town.seen(Some("1"), rooms).await.concat(), ["1"]);
    assert_eq!(town.seen(Some("1"), members).await.concat(), ["11", "12"]);
    assert_eq!(town.seen(Some("2"), rooms).await.concat(), ["1", "2"]);
    assert_eq!(town.seen(Some("2"), members).await.concat(), ["11", "12", "22"]);
    assert!(town.seen(Some("3"), members).await.is_empty());
}
