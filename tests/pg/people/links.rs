//! Share links: a token shown once, of which only a hash is kept.

use super::town;

#[tokio::test(flavor = "multi_thread")]
async fn a_link_opens_what_it_was_made_for_and_nothing_else() {
    let town = town().await;
    town.owner.batch_execute("BEGIN; SET LOCAL ROLE app_user; SELECT authz.act_as('user', 1)").await.unwrap();
    let make = async |sql: &str| -> String { town.owner.query_one(sql, &[]).await.unwrap().get(0) };
    let token = make("SELECT authz.create_link('doc', 1, 'viewer')").await;
    let short = make("SELECT authz.create_link('doc', 3, 'viewer', clock_timestamp() + interval '1 second')").await;
    town.owner.batch_execute("COMMIT").await.unwrap();
    assert!(token.starts_with("ln_") && token.len() == 67 && token != short, "{token}");
    let kept = town.texts("SELECT t::text FROM authz_int.share__doc__viewer__link t").await;
    assert_eq!(kept.len(), 2);
    assert!(kept.iter().all(|row| !row[0].contains(&token[3..])), "only a hash is kept");

    let docs = async |user: Option<&str>, links: &str| {
        let sql = format!(
            "SELECT string_agg(d.id::text, ',' ORDER BY d.id), (SELECT string_agg(l, ',') FROM authz.list('doc', 'view') l)
             FROM set_config('authz_ctx.links', '{links}', true) s, LATERAL (SELECT s) x, app.docs d"
        );
        let rows = town.seen(user, &sql).await;
        assert_eq!(rows[0][0], rows[0][1], "{links} as {user:?}");
        rows[0][0].clone()
    };
    assert_eq!(docs(None, "").await, "");
    assert_eq!(docs(None, &token).await, "1");
    assert_eq!(docs(None, &format!("x, {short} ,{token}")).await, "1,3");
    assert_eq!(docs(Some("service:b"), &token).await, "1,3", "a link adds to what one has anyway");
    for wrong in [&token[..66], "ln_", &token[3..], "', 1, '"] {
        assert_eq!(docs(None, &wrong.replace('\'', "''")).await, "", "{wrong}");
    }
    let may = "SELECT set_config('authz_ctx.links', $$TOKEN$$, true), authz.can('doc', 1, 'view')::text, authz.can('doc', 1, 'edit')::text";
    let rows = town.seen(None, &may.replace("TOKEN", &token)).await;
    assert_eq!(rows[0][1..], ["true", "false"], "a viewer's link does not edit");
    let who = town.texts("SELECT subject_kind FROM authz.who('doc', 1, 'view') WHERE subject_kind = 'link'").await;
    assert_eq!(who.len(), 1);

    tokio::time::sleep(std::time::Duration::from_millis(1200)).await;
    assert_eq!(docs(None, &short).await, "", "it has expired");
    let list = "SELECT link::text, relation, made_by FROM authz.list_links('doc', 1)";
    let listed = town.seen(Some("1"), list).await;
    assert_eq!(listed[0][1..], ["viewer", "user 1"]);
    for (user, sql) in [
        (Some("4"), list.to_owned()),
        (None, list.to_owned()),
        (Some("4"), "SELECT authz.create_link('doc', 1, 'viewer')".to_owned()),
        (Some("2"), format!("SELECT authz.revoke_link('doc', 1, {})", listed[0][0])),
    ] {
        town.refused(user, &sql, "42501").await;
    }
    // A link of another document is not revoked through this one.
    town.act(
        Some("1"),
        &format!("DO $$ BEGIN IF authz.revoke_link('doc', 3, {}) THEN RAISE 'it was'; END IF; END $$", listed[0][0]),
        true,
    )
    .await
    .unwrap();
    assert_eq!(docs(None, &token).await, "1");
    town.act(Some("1"), &format!("SELECT authz.revoke_link('doc', 1, {})", listed[0][0]), true).await.unwrap();
    assert_eq!(docs(None, &token).await, "", "it was revoked");
    town.refused(Some("1"), "SELECT authz.create_link('doc', 1, 'editor')", "P0001").await;
    // The document takes its links with it.
    town.run("DELETE FROM app.docs WHERE id = 3; INSERT INTO app.docs VALUES (3, 2, 1)").await;
    assert_eq!(town.texts("SELECT count(*)::text FROM authz_int.share__doc__viewer__link").await, [["0"]]);
}
