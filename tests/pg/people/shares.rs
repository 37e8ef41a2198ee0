//! Shares: with whom, while what holds, and when they end.

use super::{agree, town};
use crate::agree::changes::Random;

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_shared_with_whomever_everything_agrees() {
    let town = town().await;
    let mut random = Random(11);
    let mut made = 0;
    for round in 0..120 {
        let doc = random.below(5) + 1;
        let owner = ["1", "2", "1", "2", "3"][doc as usize - 1];
        let relation = ["viewer", "viewer", "editor", "banned"][random.below(4) as usize];
        let (kind, id, member) = match random.below(7) {
            0 | 1 => ("user", (random.below(5) + 1).to_string(), ""),
            2 => ("service", ["a", "b"][random.below(2) as usize].to_owned(), ""),
            3 | 4 => ("team", (random.below(2) + 1).to_string(), "member"),
            5 => (["user", "service"][random.below(2) as usize], "*".to_owned(), ""),
            _ => ("anyone", String::new(), ""),
        };
        let undo = random.below(3) == 0;
        let sql = match undo {
            true => format!("SELECT authz.unshare('doc', {doc}, '{relation}', '{kind}', '{id}', '{member}')"),
            false => format!("SELECT authz.share('doc', {doc}, '{relation}', '{kind}', '{id}', '{member}')"),
        };
        let allowed = match (relation, kind, id.as_str()) {
            ("editor", "user", id) => id != "*" && (doc != 3 || undo),
            ("editor", "team", _) => doc != 3 || undo,
            ("editor", ..) => false,
            ("banned", "user" | "service", id) => id != "*",
            ("banned", ..) => false,
            _ => true,
        };
        match town.act(Some(owner), &sql, true).await {
            Ok(()) => assert!(allowed, "{sql}"),
            Err(error) => {
                assert!(!allowed, "{sql}: {error:?}");
                assert!(error.as_db_error().unwrap().message().starts_with("AZ706"), "{sql}: {error:?}");
            }
        }
        made += usize::from(allowed);
        if round % 20 == 19 {
            if round == 59 {
                town.run("UPDATE app.docs SET frozen = NOT frozen WHERE id IN (1, 3)").await;
            }
            agree(&town).await;
            if round == 59 {
                town.run("UPDATE app.docs SET frozen = NOT frozen WHERE id IN (1, 3)").await;
            }
        }
    }
    assert!(made > 60, "{made}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_share_ends_with_either_end() {
    let town = town().await;
    for sql in [
        "SELECT authz.share('doc', 1, 'viewer', 'user', 4)",
        "SELECT authz.share('doc', 1, 'viewer', 'service', 'b')",
        "SELECT authz.share('doc', 1, 'viewer', 'team', 2, 'member')",
        "SELECT authz.share('doc', 1, 'viewer', 'anyone', '')",
    ] {
        town.act(Some("1"), sql, true).await.unwrap();
    }
    let left = "SELECT count(*)::text FROM authz_int.share__doc__viewer__";
    let count = async |table: &str| town.texts(&format!("{left}{table}")).await[0][0].clone();
    town.run("DELETE FROM app.users WHERE id = 4; INSERT INTO app.users VALUES (4)").await;
    assert_eq!(count("user").await, "0");
    town.run("UPDATE app.services SET code = 'bb' WHERE code = 'b'").await;
    assert_eq!(count("service").await, "0");
    town.run("INSERT INTO app.services VALUES ('b')").await;
    town.run("TRUNCATE app.teams").await;
    assert_eq!(count("team__member").await, "0");
    town.run("UPDATE app.docs SET id = 9 WHERE id = 1").await;
    assert_eq!(count("anyone").await, "0");
    agree(&town).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_outlives_its_ends_under_an_old_snapshot() {
    let town = town().await;
    let late = town.database().connect().await;
    // The snapshot is older than the share, which the delete would then not see.
    late.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM app.users").await.unwrap();
    town.act(Some("1"), "SELECT authz.share('doc', 1, 'viewer', 'user', 5)", true).await.unwrap();
    let error = late.batch_execute("DELETE FROM app.users WHERE id = 5").await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "40001", "{error:?}");
    late.batch_execute("ROLLBACK").await.unwrap();
    late.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM app.users").await.unwrap();
    town.act(Some("1"), "SELECT authz.share('doc', 1, 'viewer', 'team', 2, 'member')", true).await.unwrap();
    let error = late.batch_execute("TRUNCATE app.teams").await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "40001", "{error:?}");
    late.batch_execute("ROLLBACK").await.unwrap();
    // A share waits for a delete that came first, and then there is nothing to share with.
    let first = town.database().connect().await;
    first.batch_execute("BEGIN; DELETE FROM app.users WHERE id = 4").await.unwrap();
    let share = town.refused(Some("1"), "SELECT authz.share('doc', 1, 'viewer', 'user', 4)", "P0001");
    let end = async {
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        first.batch_execute("COMMIT").await.unwrap();
    };
    let (message, ()) = tokio::join!(share, end);
    assert!(message.starts_with("AZ708"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_clock_counts_within_one_transaction() {
    let town = town().await;
    let soon = "clock_timestamp() + interval '1500 milliseconds'";
    let sql = format!(
        "SELECT authz.share('doc', 1, 'viewer', 'user', 4, '', expires => {soon}); SELECT authz.share('doc', 2, 'viewer', 'user', 4)"
    );
    let error = town.act(Some("1"), &sql, true).await.unwrap_err();
    assert!(error.as_db_error().unwrap().message().starts_with("AZ705"), "doc 2 is not theirs: {error:?}");
    let one = format!("SELECT authz.share('doc', 1, 'viewer', 'user', 4, '', expires => {soon})");
    town.act(Some("1"), &one, true).await.unwrap();
    let two = format!("SELECT authz.share('doc', 2, 'viewer', 'user', 4, '', starts => {soon})");
    town.act(Some("2"), &two, true).await.unwrap();
    let app = town.database().connect().await;
    app.batch_execute("BEGIN; SET LOCAL ROLE app_user; SELECT authz.act_as('user', 4)").await.unwrap();
    let asks = async |expected: [i64; 1]| {
        let rows = app.query("SELECT id FROM app.docs ORDER BY id", &[]).await.unwrap();
        assert_eq!(rows.iter().map(|r| r.get::<_, i64>(0)).collect::<Vec<_>>(), expected);
        let list = app.query("SELECT l::bigint FROM authz.list('doc', 'view') l", &[]).await.unwrap();
        assert_eq!(list.iter().map(|r| r.get::<_, i64>(0)).collect::<Vec<_>>(), expected);
        for id in [1_i64, 2] {
            let can: bool = app.query_one("SELECT authz.can('doc', $1::bigint, 'view')", &[&id]).await.unwrap().get(0);
            assert_eq!(can, expected.contains(&id));
        }
    };
    asks([1]).await;
    app.query("SELECT pg_sleep(2)", &[]).await.unwrap();
    asks([2]).await;
    let who = "SELECT subject_id FROM authz.who('doc', 1, 'view')";
    assert_eq!(town.texts(who).await, [["1"], ["a"]], "the owner and the robot are left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caveat_is_asked_at_each_request() {
    let town = town().await;
    let share =
        "SELECT authz.share('doc', 1, 'viewer', 'user', 4, '', caveat => 'from_ip', args => '{\"ip\": \"10.0.0.1\"}')";
    town.act(Some("1"), share, true).await.unwrap();
    let ip = |ip: &str, ask: &str| format!("SET LOCAL authz_ctx.ip = '{ip}'; {ask}");
    let ask = "DO $$ BEGIN IF NOT authz.can('doc', 1, 'view') OR (SELECT count(*) FROM app.docs) <> 1 THEN RAISE 'no'; END IF; END $$";
    town.act(Some("4"), &ip("10.0.0.1", ask), false).await.unwrap();
    town.act(Some("4"), &ip("10.0.0.2", ask), false).await.unwrap_err();
    town.act(Some("4"), ask, false).await.unwrap_err();
    // Arguments a caveat fails on hold nothing, and break nobody's reads.
    let bad = "SELECT authz.share('doc', 1, 'viewer', 'anyone', '', caveat => 'few', args => '{\"n\": \"many\"}')";
    town.act(Some("1"), bad, true).await.unwrap();
    assert!(town.seen(Some("5"), "SELECT id::text FROM app.docs WHERE id = 1").await.is_empty());
    let good = "SELECT authz.share('doc', 1, 'viewer', 'anyone', '', caveat => 'few', args => '{\"n\": \"3\"}')";
    town.act(Some("1"), good, true).await.unwrap();
    assert_eq!(town.seen(None, "SELECT id::text FROM app.docs").await, [["1"]]);
    let listed = "SELECT subject_kind, caveat, args ->> 'n' FROM authz.list_shares('doc', 1) ORDER BY made_at";
    assert_eq!(town.seen(Some("1"), listed).await, [["user", "from_ip", ""], ["anyone", "few", "3"]]);
    assert!(town.seen(Some("4"), listed).await.is_empty(), "whoever may not share sees no shares");
    // A caveat that the policy no longer has holds never, and one it never had cannot be shared.
    town.run("UPDATE authz_int.share__doc__viewer__anyone SET caveat = 'gone'").await;
    assert!(town.seen(None, "SELECT id::text FROM app.docs").await.is_empty());
    for (args, code) in
        [("caveat => 'nope'", "P0001"), ("args => '{}'", "22023"), ("caveat => 'few', args => '[]'", "22023")]
    {
        let sql = format!("SELECT authz.share('doc', 1, 'viewer', 'user', 5, '', {args})");
        town.refused(Some("1"), &sql, code).await;
    }
}
