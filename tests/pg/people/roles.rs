//! Roles that people make at run time.

use super::{agree, town};

async fn number(town: &crate::plain::Town, user: &str, sql: &str) -> i64 {
    town.owner.batch_execute("BEGIN; SET LOCAL ROLE app_user").await.unwrap();
    town.owner.execute("SELECT authz.act_as('user', $1::text)", &[&user]).await.unwrap();
    let id = town.owner.query_one(sql, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e:?}")).get(0);
    town.owner.batch_execute("COMMIT").await.unwrap();
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_gives_what_it_includes_where_its_owner_owns() {
    let town = town().await;
    let reader = number(&town, "1", "SELECT authz.create_role('org', 1, 'doc', 'Reader', ARRAY['view'])").await;
    let writer =
        number(&town, "1", "SELECT authz.create_role('org', 1, 'doc', 'Writer', ARRAY['edit', 'view', 'edit'])").await;
    let other = number(&town, "2", "SELECT authz.create_role('org', 2, 'doc', 'Reader', ARRAY['view'])").await;
    let share = |doc: i64, role: i64, kind: &str, id: &str, member: &str| {
        format!("SELECT authz.share('doc', {doc}, 'role:{role}', '{kind}', '{id}', '{member}')")
    };
    for (user, sql) in [
        ("1", share(1, reader, "user", "5", "")),
        ("1", share(1, writer, "team", "2", "member")),
        ("2", share(2, reader, "service", "b", "")),
        ("2", share(4, other, "user", "5", "")),
    ] {
        town.act(Some(user), &sql, true).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    }
    agree(&town).await;
    let listed = "SELECT relation, subject_kind, subject_id FROM authz.list_shares('doc', 1) ORDER BY 1";
    assert_eq!(
        town.seen(Some("1"), listed).await,
        [[format!("role:{reader}").as_str(), "user", "5"], [format!("role:{writer}").as_str(), "team", "2"]]
    );
    // A role of another organisation is no role here, and neither is one that is not there.
    for (doc, role, code) in [(1, other, "P0001"), (1, 999_999, "P0001"), (5, reader, "42501")] {
        town.refused(Some("1"), &share(doc, role, "user", "4", ""), code).await;
    }
    // Moved to another organisation, the document's roles do not come along.
    town.run("UPDATE app.docs SET org_id = 2 WHERE id = 1").await;
    agree(&town).await;
    town.run("UPDATE app.docs SET org_id = 1 WHERE id = 1").await;
    town.act(Some("1"), &format!("SELECT authz.set_role_permissions({writer}, ARRAY['view'])"), true).await.unwrap();
    agree(&town).await;
    town.act(Some("1"), &format!("SELECT authz.unshare('doc', 1, 'role:{reader}', 'user', 5)"), true).await.unwrap();
    agree(&town).await;
    town.act(Some("1"), &format!("SELECT authz.delete_role({writer})"), true).await.unwrap();
    agree(&town).await;
    assert_eq!(town.texts("SELECT count(*)::text FROM authz_int.role__doc__team__member").await, [["0"]]);
    // Roles end with their owner.
    town.run("DELETE FROM app.orgs WHERE id = 2; INSERT INTO app.orgs VALUES (2, 2)").await;
    assert_eq!(town.texts("SELECT count(*)::text FROM authz_int.roles WHERE owner_id = '2'").await, [["0"]]);
    agree(&town).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_give_nobody_more_than_may_be_given() {
    let town = town().await;
    let role = number(&town, "1", "SELECT authz.create_role('org', 1, 'doc', 'Reader', ARRAY['view'])").await;
    for (user, sql, code) in [
        ("2", "SELECT authz.create_role('org', 1, 'doc', 'Mine', ARRAY['view'])".to_owned(), "42501"),
        ("4", format!("SELECT authz.set_role_permissions({role}, ARRAY['edit'])"), "42501"),
        ("2", format!("SELECT authz.delete_role({role})"), "42501"),
        ("2", "SELECT * FROM authz.roles_of('org', 1)".to_owned(), "42501"),
        // `share` takes no role, so none can give it; neither can one give what is not there.
        ("1", "SELECT authz.create_role('org', 1, 'doc', 'All', ARRAY['share'])".to_owned(), "P0001"),
        ("1", format!("SELECT authz.set_role_permissions({role}, ARRAY['view', 'nothing'])"), "P0001"),
        ("1", "SELECT authz.create_role('org', 1, 'doc', 'Reader', ARRAY['edit'])".to_owned(), "22023"),
        ("1", "SELECT authz.create_role('org', 1, 'doc', '', ARRAY['edit'])".to_owned(), "22023"),
        ("1", "SELECT authz.create_role('org', 1, 'team', 'x', ARRAY['view'])".to_owned(), "P0001"),
        ("1", "SELECT authz.create_role('org', 77, 'doc', 'x', ARRAY['view'])".to_owned(), "42501"),
        ("3", format!("SELECT authz.share('doc', 1, 'role:{role}', 'user', 3)"), "42501"),
        ("1", format!("SELECT authz.share('doc', 1, 'role:{role} ', 'user', 3)"), "P0001"),
        ("1", format!("SELECT authz.share('doc', 1, 'role:{role}', 'anyone', '')"), "P0001"),
        ("1", "SELECT authz.share('doc', 1, 'roles__view', 'user', 3)".to_owned(), "P0001"),
        ("1", "SELECT * FROM authz_int.roles".to_owned(), "42501"),
        ("1", "SELECT authz.set_role_permissions(NULL, ARRAY['view'])".to_owned(), "P0001"),
    ] {
        town.refused(Some(user), &sql, code).await;
    }
    assert_eq!(
        town.seen(Some("1"), "SELECT name, permissions::text FROM authz.roles_of('org', 1)").await,
        [["Reader", "{view}"]]
    );
}
