//! What the app role may try with nothing but SQL: to be nobody in particular, to be somebody else, to see the index,
//! to put its own tables and functions in the way.

use rowdeck::compiler::emit::Options;
use tokio_postgres::Client;

use crate::agree;
use crate::server::Database;

/// User 1 owns folder 1 with file 1; user 2 owns folder 2 with file 2.
async fn ground() -> (Database, Client, Client) {
    let (database, owner) = agree::world(&Options::default()).await;
    owner
        .batch_execute(
            "INSERT INTO app.folders VALUES (1, 1, NULL, 1, 'one', true), (2, 1, NULL, 2, 'two', true);
             INSERT INTO app.files VALUES (1, 1, 1, 'a'), (2, 2, 2, 'b');",
        )
        .await
        .unwrap();
    let app = database.connect_as("app_user").await;
    (database, owner, app)
}

async fn refused(client: &Client, sql: &str, code: &str) {
    match client.batch_execute(sql).await {
        Ok(()) => panic!("allowed: {sql}"),
        Err(e) => {
            let found = e.as_db_error().unwrap_or_else(|| panic!("{sql}: {e}"));
            assert_eq!(found.code().code(), code, "{sql}: {found:?}");
        }
    }
    client.batch_execute("ROLLBACK").await.unwrap();
}

async fn files(client: &Client) -> Vec<i64> {
    client.query("SELECT id FROM app.files ORDER BY id", &[]).await.unwrap().iter().map(|r| r.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_signed_in_is_one_clear_error_each_time() {
    let (_database, _owner, app) = ground().await;
    for _ in 0..3 {
        refused(&app, "SELECT * FROM app.files", "28000").await;
        refused(&app, "SELECT authz.can('file', 1, 'view')", "28000").await;
        app.batch_execute("BEGIN; SELECT authz.act_as('user', 1)").await.unwrap();
        assert_eq!(files(&app).await, [1]);
        app.batch_execute("COMMIT").await.unwrap();
    }
    app.batch_execute("BEGIN; SELECT authz.act_as(NULL, NULL)").await.unwrap();
    assert!(files(&app).await.is_empty(), "nobody on purpose sees nothing here");
    app.batch_execute("ROLLBACK").await.unwrap();
    refused(&app, "BEGIN; SELECT authz.act_as('folder', 1)", "P0001").await;
    refused(&app, "BEGIN; SELECT authz.act_as('user', NULL)", "22023").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_made_up_or_kept_is_refused() {
    let (database, _owner, app) = ground().await;
    for made_up in ["x", "user|1", &format!("{}0|user|2", "0".repeat(64)), &"|".repeat(70)] {
        refused(&app, &format!("BEGIN; SET LOCAL authz.session = '{made_up}'; SELECT * FROM app.files"), "28000").await;
    }
    app.batch_execute("BEGIN; SELECT authz.act_as('user', 1)").await.unwrap();
    let kept: String = app.query_one("SELECT current_setting('authz.session')", &[]).await.unwrap().get(0);
    // Another name in the same record breaks its seal.
    let other = format!("{}2", &kept[..kept.len() - 1]);
    app.batch_execute(&format!("SET LOCAL authz.session = '{other}'")).await.unwrap();
    let error = app.query("SELECT * FROM app.files", &[]).await.unwrap_err();
    assert!(error.as_db_error().unwrap().message().contains("AZ702"), "{error:?}");
    app.batch_execute("ROLLBACK").await.unwrap();
    refused(&app, &format!("BEGIN; SET LOCAL authz.session = '{kept}'; SELECT * FROM app.files"), "28000").await;
    let second = database.connect_as("app_user").await;
    refused(&second, &format!("BEGIN; SET LOCAL authz.session = '{kept}'; SELECT * FROM app.files"), "28000").await;
    // A setting that outlives its transaction, as a careless pool leaves it.
    app.batch_execute(&format!("SET authz.session = '{kept}'")).await.unwrap();
    refused(&app, "SELECT * FROM app.files", "28000").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inside_is_closed() {
    let (_database, owner, app) = ground().await;
    let rows = owner
        .query(
            "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = 'authz_int' AND c.relkind IN ('r', 'v', 'S') UNION ALL VALUES ('authz.settings'), ('authz.policy_versions')",
            &[],
        )
        .await
        .unwrap();
    assert!(rows.len() > 10);
    for row in rows {
        refused(&app, &format!("SELECT * FROM {}", row.get::<_, String>(0)), "42501").await;
    }
    for call in [
        "authz_int.sign_in('user', '2')",
        "authz_int.session()",
        "authz_int.is_operator()",
        "authz_gen.who__file__view(ARRAY[2]::bigint[])",
        "authz_gen.why__file__view(2)",
        "authz.repair('folder.parent', ARRAY['1'])",
    ] {
        refused(&app, &format!("BEGIN; SELECT authz.act_as('user', 1); SELECT {call}"), "42501").await;
    }
    // Asking about others is for those who hold the permission, and for the operator.
    refused(&app, "BEGIN; SELECT authz.act_as('user', 1); SELECT * FROM authz.who('file', 2, 'view')", "42501").await;
    refused(&app, "BEGIN; SELECT authz.act_as('user', 1); SELECT authz.explain('file', 2, 'view', 2)", "42501").await;
    refused(&app, "SET row_security = off; SELECT * FROM app.files", "42501").await;
    app.batch_execute("RESET row_security").await.unwrap();
    refused(&app, "ALTER TABLE app.files DISABLE ROW LEVEL SECURITY", "42501").await;
    refused(&app, "DROP POLICY authz_select ON app.files", "42501").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_and_functions_of_its_own_stand_in_nobodys_way() {
    let (database, owner, app) = ground().await;
    owner.batch_execute(&format!("GRANT TEMPORARY ON DATABASE {} TO app_user", database.name)).await.unwrap();
    app.batch_execute(
        "CREATE TEMP TABLE team_members (team_id bigint, user_id bigint); INSERT INTO team_members VALUES (1, 1);
         CREATE TEMP TABLE org_admins (org_id bigint, user_id bigint); INSERT INTO org_admins VALUES (1, 1);
         CREATE TEMP TABLE users (id bigint, active boolean); INSERT INTO users VALUES (1, true);
         CREATE TEMP TABLE pg_class (oid oid); CREATE TEMP TABLE seen (id bigint);
         CREATE FUNCTION pg_temp.sha256(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT $1';
         CREATE FUNCTION pg_temp.uid() RETURNS bigint LANGUAGE sql AS 'SELECT 2::bigint';
         CREATE FUNCTION pg_temp.leak(bigint) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS
           $$ BEGIN INSERT INTO pg_temp.seen VALUES ($1); RETURN true; END $$;",
    )
    .await
    .unwrap();
    app.batch_execute("SET search_path = pg_temp, pg_catalog; BEGIN; SELECT authz.act_as('user', 1)").await.unwrap();
    assert_eq!(files(&app).await, [1]);
    // A function that costs nothing and tells what it was given runs after the rules, on tables and on views.
    app.batch_execute("SELECT * FROM app.files WHERE pg_temp.leak(id)").await.unwrap();
    app.batch_execute("SELECT * FROM authz_gen.file__view WHERE pg_temp.leak(id)").await.unwrap();
    app.batch_execute("SELECT * FROM authz_gen.folder__view WHERE pg_temp.leak(id)").await.unwrap();
    let seen: Vec<i64> =
        app.query("SELECT DISTINCT id FROM pg_temp.seen", &[]).await.unwrap().iter().map(|r| r.get(0)).collect();
    assert_eq!(seen, [1], "a leaky function saw a hidden row");
    app.batch_execute("ROLLBACK").await.unwrap();
}

/// A function of the caller's in WHERE, cheaper than any condition of ours, over every view the role may read, with
/// and without index scans: it meets the caller's own ids and no others.
#[tokio::test(flavor = "multi_thread")]
async fn a_leaky_function_meets_only_what_a_view_shows() {
    let (database, owner, app) = ground().await;
    owner
        .batch_execute(&format!(
            "GRANT TEMPORARY ON DATABASE {} TO app_user;
             INSERT INTO app.teams VALUES (7, 1, 'x') ON CONFLICT DO NOTHING; INSERT INTO app.team_members VALUES (2, 2), (1, 1);
             INSERT INTO app.team_teams VALUES (3, 2); INSERT INTO app.folder_teams VALUES (2, 2), (1, 1);
             INSERT INTO app.org_admins VALUES (2, 2);
             BEGIN; SELECT authz.act_as('user', 2); SELECT authz.share('folder', 2, 'viewer', 'user', 3);
             SELECT authz.share('folder', 2, 'editor', 'user', 3); SELECT authz.share('folder', 2, 'viewer', 'team', 2, 'member');
             SELECT authz.share('file', 2, 'viewer', 'user', 3); SELECT authz.share('file', 2, 'viewer', 'team', 2, 'member'); COMMIT",
            database.name
        ))
        .await
        .unwrap();
    let views = owner
        .query("SELECT c.oid::regclass::text FROM pg_class c WHERE relnamespace = 'authz_gen'::regnamespace AND relkind = 'v'
                AND has_table_privilege('app_user', c.oid, 'SELECT') ORDER BY 1", &[])
        .await
        .unwrap();
    assert!(views.len() > 8);
    app.batch_execute(
        "CREATE TEMP TABLE seen (id bigint);
         CREATE FUNCTION pg_temp.leak(bigint) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS
           $$ BEGIN INSERT INTO pg_temp.seen VALUES ($1); RETURN true; END $$;",
    )
    .await
    .unwrap();
    for scans in ["on", "off"] {
        for view in &views {
            let view: String = view.get(0);
            app.batch_execute(&format!(
                "BEGIN; SET LOCAL enable_indexscan = {scans}; SET LOCAL enable_bitmapscan = {scans};
                 SET LOCAL enable_indexonlyscan = {scans}; TRUNCATE pg_temp.seen; SELECT authz.act_as('user', 1);
                 SELECT * FROM {view} v WHERE pg_temp.leak(v.id)"
            ))
            .await
            .unwrap();
            let sql =
                format!("SELECT count(*) FROM (SELECT id FROM pg_temp.seen EXCEPT SELECT v.id FROM {view} v) hidden");
            let hidden: i64 = app.query_one(&sql, &[]).await.unwrap().get(0);
            assert_eq!(hidden, 0, "{view} with index scans {scans}");
            app.batch_execute("ROLLBACK").await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_name_the_rule_and_no_row() {
    let (_database, _owner, app) = ground().await;
    app.batch_execute("BEGIN; SELECT authz.act_as('user', 1)").await.unwrap();
    app.batch_execute("SAVEPOINT s").await.unwrap();
    for (sql, constraint, rule) in [
        ("INSERT INTO app.files VALUES (3, 2, 1, 'x')", "authz_insert", "insert : folder.edit"),
        ("UPDATE app.files SET folder_id = 2 WHERE id = 1", "authz_update", "update folder_id after : folder.edit"),
        ("UPDATE app.folders SET parent_id = 2 WHERE id = 1", "authz_update", ""),
    ] {
        let Err(error) = app.batch_execute(sql).await else {
            // The owner of a folder may put it anywhere: the example's rule says so.
            assert!(rule.is_empty(), "allowed: {sql}");
            continue;
        };
        let error = error.as_db_error().unwrap();
        assert_eq!(error.code().code(), "42501", "{sql}: {error:?}");
        assert!(error.message().starts_with("AZ709"), "{error:?}");
        assert_eq!(error.constraint(), Some(constraint));
        assert!(error.detail().unwrap().contains(rule), "{error:?}");
        app.batch_execute("ROLLBACK TO s").await.unwrap();
    }
    let changed = app.execute("UPDATE app.files SET name = 'mine' WHERE id = 2", &[]).await.unwrap();
    assert_eq!(changed, 0, "a hidden row is not there");
    // A row just written can be returned, before any trigger has put it into the index.
    let rows = app
        .query(
            "INSERT INTO app.folders (id, org_id, parent_id, owner_id, name) VALUES (9, 1, 1, 1, 'new') RETURNING id",
            &[],
        )
        .await
        .unwrap();
    assert_eq!(rows.len(), 1);
    app.batch_execute("ROLLBACK").await.unwrap();
}
