//! Questions about many objects, many people, and about statements.

use super::town;

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_is_the_same_as_each() {
    let town = town().await;
    for sql in
        ["SELECT authz.share('doc', 1, 'viewer', 'anyone', '')", "SELECT authz.share('doc', 1, 'banned', 'user', 4)"]
    {
        town.act(Some("1"), sql, true).await.unwrap();
    }
    let each = "SELECT i::text, authz.perms('doc', i)::text FROM unnest(ARRAY[3, 1, 77, 2]) WITH ORDINALITY u(i, n) ORDER BY n";
    for ids in ["ARRAY[3, 1, 77, 2]::bigint[]", "ARRAY['3', '1', '77', '2']"] {
        let many = format!("SELECT id, perms::text FROM authz.perms_of('doc', {ids})");
        for who in [Some("1"), Some("4"), Some("service:a"), None] {
            assert_eq!(town.seen(who, &many).await, town.seen(who, each).await, "{who:?}");
        }
    }
    let among =
        |perm: &str| format!("SELECT w FROM authz.who_among('doc', 1, '{perm}', ARRAY[5, 1, 99, 4, 5]::bigint[]) w");
    assert_eq!(town.seen(Some("1"), &among("read")).await, [["5"], ["1"]]);
    assert_eq!(town.seen(Some("1"), &among("edit")).await, [["1"]]);
    assert_eq!(town.texts(&among("view")).await, [["5"], ["1"], ["4"]]);
    town.refused(Some("4"), &among("edit"), "42501").await;
    // Whoever asked is still who they were.
    let after = "SELECT w, authz.principal() FROM authz.who_among('doc', 1, 'share', ARRAY['1']) w";
    assert_eq!(town.seen(Some("1"), after).await, [["1", "user 1"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_says_why_it_lets_a_row_through_or_not() {
    let town = town().await;
    town.act(Some("1"), "SELECT authz.share('doc', 1, 'viewer', 'user', 4)", true).await.unwrap();
    let ask = async |user: Option<&str>, args: &str| {
        let sql = format!("SELECT authz.explain_rule({args})::text");
        serde_json::from_str::<serde_json::Value>(match town.seen(user, &sql).await[0][0].as_str() {
            "" => "null",
            text => text,
        })
        .unwrap()
    };
    let answer = ask(Some("1"), "'app.docs', 'update', '1'").await;
    assert_eq!(answer["allowed"], true, "{answer}");
    // A reader may not write, and is told which rule it is and what is missing.
    let answer = ask(Some("4"), "'app.docs', 'update', '1'").await;
    assert_eq!(answer["allowed"], false, "{answer}");
    let refused: Vec<&serde_json::Value> =
        answer["rules"].as_array().unwrap().iter().filter(|rule| rule["holds"] == false).collect();
    assert_eq!(refused[0]["rule"], "update : edit", "{answer}");
    assert_eq!(refused[0]["on"], "the row before", "{answer}");
    assert!(
        refused[0]["ways"].to_string().contains("\"needs\": \"owner\"")
            || refused[0]["ways"].to_string().contains("\"needs\":\"owner\""),
        "{answer}"
    );
    // What is not there and what is hidden look the same.
    assert!(ask(Some("5"), "'app.docs', 'update', '1'").await.is_null());
    assert!(ask(Some("5"), "'app.docs', 'delete', '999'").await.is_null());
    let answer = ask(Some("5"), "'app.docs', 'insert', NULL, '{\"id\": 70, \"owner_id\": 5}'").await;
    assert_eq!(answer["allowed"], true, "{answer}");
    let answer = ask(Some("5"), "'app.docs', 'insert', NULL, '{\"id\": 70, \"owner_id\": 1}'").await;
    assert_eq!(answer["allowed"], false, "{answer}");
    let answer = ask(Some("1"), "'app.docs', 'update', '1', '{\"owner_id\": 5, \"robot_code\": null}'").await;
    assert_eq!(answer["allowed"], false, "the row after would be somebody else's: {answer}");
    town.refused(Some("1"), "SELECT authz.explain_rule('app.docs', 'merge', '1')", "22023").await;
    town.refused(Some("1"), "SELECT authz.explain_rule('app.users', 'select', '1')", "P0001").await;
}
