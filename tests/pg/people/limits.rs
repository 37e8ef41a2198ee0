//! Sessions limited to scopes, denies, and invariants.

use rowdeck::compiler::emit::Options;

use super::{SCHEMA, town};
use crate::plain::Town;

/// Statements as the app, in a session limited to scopes, as a sign-in with a key does it.
async fn limited(town: &Town, user: &str, scopes: &str, sql: &str) -> Result<Vec<String>, tokio_postgres::Error> {
    town.owner.batch_execute("BEGIN").await.unwrap();
    let sign_in = format!("SELECT authz_gen.sign_in('user', '{user}', '{{{scopes}}}')");
    let signed_in = town.owner.batch_execute(&format!("{sign_in}; SET LOCAL ROLE app_user")).await;
    let rows = match signed_in {
        Ok(()) => town.owner.query(sql, &[]).await,
        Err(error) => Err(error),
    };
    town.owner.batch_execute("ROLLBACK").await.unwrap();
    let text = |row: &tokio_postgres::Row| row.try_get::<_, Option<String>>(0).ok().flatten().unwrap_or_default();
    rows.map(|rows| rows.iter().map(text).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_does_only_what_some_of_its_scopes_name() {
    let town = town().await;
    let docs = "SELECT id::text FROM app.docs ORDER BY id";
    let update = "UPDATE app.docs SET title = 'x' WHERE id = 1 RETURNING id::text";
    let insert = "INSERT INTO app.docs (id, owner_id) VALUES (8, 1) RETURNING id::text";
    let delete = "DELETE FROM app.docs WHERE id = 1 RETURNING id::text";
    let can = |permission: &str| format!("SELECT authz.can('doc', 1, '{permission}')::text");
    let list = |permission: &str| format!("SELECT * FROM authz.list('doc', '{permission}')");
    // Scopes, then: rows seen, rows updated, rows deleted, view, edit, listed for view, share.
    for (scopes, seen, updated, deleted, view, edit, listed) in [
        ("", 2, 1, 1, "true", "true", 2),
        ("read", 2, 0, 0, "true", "false", 2),
        ("look", 2, 0, 0, "true", "false", 2),
        ("write", 2, 1, 0, "false", "false", 0),
        ("look,write", 2, 1, 0, "true", "false", 2),
    ] {
        let count = async |sql: &str| {
            limited(&town, "1", scopes, sql).await.unwrap_or_else(|e| panic!("{scopes} {sql}: {e:?}")).len()
        };
        assert_eq!(count(docs).await, seen, "{scopes}");
        assert_eq!(count(update).await, updated, "{scopes}");
        assert_eq!(count(delete).await, deleted, "{scopes}");
        assert_eq!(limited(&town, "1", scopes, &can("view")).await.unwrap(), [view], "{scopes}");
        assert_eq!(limited(&town, "1", scopes, &can("edit")).await.unwrap(), [edit], "{scopes}");
        assert_eq!(count(&list("view")).await, listed, "{scopes}");
        let perms = limited(&town, "1", scopes, "SELECT unnest(authz.perms('doc', 1))").await.unwrap();
        assert_eq!(perms.contains(&"view".to_owned()), view == "true", "{scopes}: {perms:?}");
        let all = scopes.is_empty();
        for sql in [
            insert,
            "SELECT authz.share('doc', 1, 'viewer', 'user', 4)",
            "SELECT authz.create_link('doc', 1, 'viewer')",
            "SELECT authz.create_role('org', 1, 'doc', 'r', '{view}')",
        ] {
            let done = limited(&town, "1", scopes, sql).await;
            assert_eq!(done.is_ok(), all, "{scopes}: {sql}");
            if let Err(error) = done {
                assert_eq!(error.code().unwrap().code(), "42501", "{scopes}: {sql}: {error:?}");
            }
        }
        if !all {
            let shares = limited(&town, "1", scopes, "SELECT relation FROM authz.list_shares('doc', 1)").await.unwrap();
            assert!(shares.is_empty());
        }
    }
    let error = limited(&town, "1", "nonsense", docs).await.expect_err("an unknown scope signs nobody in");
    assert_eq!(error.code().unwrap().code(), "P0001", "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_statement_of_the_app_widens_its_scopes() {
    let town = town().await;
    let app = town.database().connect().await;
    let begin = "BEGIN; SELECT authz_gen.sign_in('user', '1', '{read}'); SET LOCAL ROLE app_user";
    for (sql, code) in [
        ("SELECT authz.act_as('user', 1)", "28000"),
        ("SELECT authz.act_as(NULL, NULL)", "28000"),
        ("SELECT authz_gen.sign_in('user', '1')", "42501"),
        ("SELECT authz_gen.sign_in('user', '1', '{look}')", "42501"),
        ("SELECT authz_int.sign_in('user', '1', '{}')", "42501"),
        (
            "SELECT set_config('authz.session', replace(current_setting('authz.session'), '|read|', '||'), true); SELECT authz.can('doc', 1, 'edit')",
            "28000",
        ),
        (
            "SELECT set_config('authz.session', replace(current_setting('authz.session'), '|read|', '|write|'), true); SELECT * FROM app.docs",
            "28000",
        ),
        ("SELECT set_config('authz.session', '', true); SELECT * FROM app.docs", "28000"),
        ("SELECT authz.explain('doc', 1, 'view', 2)", "42501"),
    ] {
        app.batch_execute(begin).await.unwrap();
        let error = app.batch_execute(sql).await.expect_err(sql);
        assert_eq!(error.code().unwrap().code(), code, "{sql}: {error:?}");
        app.batch_execute("ROLLBACK").await.unwrap();
    }
    // With signing in by name switched off, a session cannot be left by emptying it either.
    town.run("INSERT INTO authz.settings VALUES ('act_as', 'off')").await;
    app.batch_execute(begin).await.unwrap();
    let error = app.batch_execute("SET LOCAL authz.session = ''; SELECT authz.act_as('user', 1)").await.unwrap_err();
    assert!(error.as_db_error().unwrap().message().starts_with("AZ703"), "{error:?}");
    app.batch_execute("ROLLBACK; BEGIN; SELECT authz.act_as('user', 1)").await.unwrap();
    app.batch_execute("ROLLBACK").await.unwrap();
    // The inside stays closed.
    for call in [
        "authz_int.session()",
        "authz_int.links()",
        "authz_int.guard_ends(NULL)",
        "authz.check_invariants()",
        "nextval('authz_int.link_number')",
    ] {
        town.run("DELETE FROM authz.settings").await;
        town.refused(Some("1"), &format!("SELECT {call}"), "42501").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everyone_but_the_banned_is_one_answer_everywhere() {
    let town = town().await;
    for doc in [1, 3] {
        town.act(Some("1"), &format!("SELECT authz.share('doc', {doc}, 'viewer', 'anyone', '')"), true).await.unwrap();
    }
    for sql in
        ["SELECT authz.share('doc', 1, 'banned', 'user', 4)", "SELECT authz.share('doc', 1, 'banned', 'service', 'a')"]
    {
        town.act(Some("1"), sql, true).await.unwrap();
    }
    super::agree(&town).await;
    let who = town
        .texts("SELECT subject_kind, subject_id, exceptions::text FROM authz.who('doc', 1, 'read') ORDER BY 1")
        .await;
    assert_eq!(who, [["everyone", "", "{4}"], ["nobody", "", ""], ["service", "b", ""]]);
    // Somebody who was banned is not let in by asking together with others, or by listing.
    assert!(!town.seen(Some("4"), "SELECT l FROM authz.list('doc', 'read') l").await.contains(&vec!["1".to_owned()]));
    let asked =
        town.seen(Some("4"), "SELECT authz.can('doc', 1, 'read')::text, authz.can('doc', 3, 'read')::text").await;
    assert_eq!(asked, [["false", "true"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn invariants_are_held_against_the_data() {
    let policy = "
app role app_user
type user = app.users where {active}
type service = app.services (code text) principal where {enabled}
type org = app.orgs
  boss : user = boss_id
type doc = app.docs
  org : org = org_id
  owner : user = owner_id
  robot : service = robot_code
  viewer : user, service, anyone shared by edit
  can edit = owner or robot
  can view = edit or viewer
rules app.docs
  select : view
invariants
  never doc: edit and not org.boss and {frozen}
  never doc: robot and {frozen}
  never doc: view and not signed_in
";
    let town = Town::new(SCHEMA, policy, &Options::default()).await;
    let found = "SELECT invariant, id, principal FROM authz.check_invariants()";
    // Document 3 is frozen, in the organisation of 2, and belongs to 1 and service b.
    let row = |text: &str, id: &str, who: &str| vec![text.to_owned(), id.to_owned(), who.to_owned()];
    let edit = "never doc: edit and not org.boss and {frozen}";
    let expected = vec![
        row(edit, "3", "user 1"),
        row(edit, "3", "service b"),
        row("never doc: robot and {frozen}", "3", "service b"),
    ];
    assert_eq!(town.texts(found).await, expected);
    town.run("UPDATE app.docs SET frozen = false").await;
    assert!(town.texts(found).await.is_empty());
    town.act(Some("2"), "SELECT authz.share('doc', 2, 'viewer', 'anyone', '')", true).await.unwrap();
    assert_eq!(town.texts(found).await, [row("never doc: view and not signed_in", "2", "nobody")]);
    town.refused(Some("1"), "SELECT * FROM authz.check_invariants()", "42501").await;
}
