//! Every way around row-level security is planted, found, and closed by the statement that the finding names; and what
//! differs from what an apply left is found and mended by the statement that drift names.

use rowdeck::db::apply::{ApplyOptions, remove};
use rowdeck::db::cancel::Stop;
use rowdeck::db::connect::Session;
use rowdeck::db::drift::{self, Drift};
use rowdeck::db::error::DbError;
use rowdeck::db::lint::{self, Finding};
use rowdeck::db::plan::Again;
use rowdeck::db::progress::Reporter;

use crate::apply_world::{Ground, quick};

async fn findings(session: &Session, code: &str) -> Vec<Finding> {
    let all = lint::run(&session.client).await.unwrap();
    all.into_iter().filter(|finding| finding.code == code).collect()
}

/// Plants one way around as the superuser; it must be found, with words, and its statement must close it.
async fn planted(ground: &Ground, session: &Session, code: &str, plant: &str, object: &str, why: &str) {
    let before = findings(session, code).await;
    let plant = plant.replace("APP", &ground.app).replace("OWNER", &ground.owner);
    ground.admin.batch_execute(&plant).await.unwrap_or_else(|e| panic!("{plant}: {e:?}"));
    let found: Vec<Finding> = findings(session, code).await.into_iter().filter(|f| !before.contains(f)).collect();
    assert_eq!(found.len(), 1, "{code} after {plant}: {found:#?}");
    let (object, why) =
        (object.replace("APP", &ground.app), why.replace("APP", &ground.app).replace("OWNER", &ground.owner));
    assert_eq!(found[0].object, object, "{found:?}");
    assert!(found[0].why.contains(&why), "{found:?} has no \"{why}\"");
    let fix = &found[0].fix;
    ground.admin.batch_execute(fix).await.unwrap_or_else(|e| panic!("{fix}: {e:?}"));
    assert_eq!(findings(session, code).await, before, "{fix} did not close it");
}

#[tokio::test]
async fn each_way_around_is_found_and_closed() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let report = ground.draft().apply(&session).await.unwrap();
    let serious: Vec<_> = report.findings.iter().filter(|f| f.is_serious()).collect();
    assert_eq!(serious, Vec::<&Finding>::new());
    let (wider, boss) = (format!("wider_{}", ground.database.name), format!("boss_{}", ground.database.name));
    let roles = format!("CREATE ROLE {boss} BYPASSRLS; CREATE ROLE {wider}; GRANT {boss} TO {wider}");
    ground.admin.batch_execute(&roles).await.unwrap();
    let cases: Vec<(&str, String, &str, String)> = vec![
        ("AZ820", "ALTER ROLE APP BYPASSRLS".into(), "APP", "has BYPASSRLS".into()),
        ("AZ820", "ALTER ROLE APP SUPERUSER".into(), "APP", "superuser".into()),
        ("AZ820", format!("GRANT {wider} TO APP"), "APP", format!("through APP -> {wider} -> {boss}")),
        ("AZ822", "ALTER TABLE app.folders OWNER TO APP".into(), "app.folders", "owns it".into()),
        ("AZ821", "ALTER TABLE app.folders DISABLE ROW LEVEL SECURITY".into(), "app.folders", "is off".into()),
        ("AZ821", "ALTER TABLE app.folders FORCE ROW LEVEL SECURITY".into(), "app.folders", "is forced".into()),
        ("AZ823", "CREATE POLICY mine ON app.folders USING (true)".into(), "app.folders", "policy mine".into()),
        ("AZ824", "CREATE TABLE app.more () INHERITS (app.folders); GRANT SELECT ON app.more TO APP".into(), "app.more", "which the app may".into()),
        ("AZ825", "CREATE VIEW app.all_folders AS SELECT * FROM app.folders; GRANT SELECT ON app.all_folders TO PUBLIC".into(), "app.all_folders", "a view reads app.folders".into()),
        ("AZ825", "CREATE VIEW app.hidden AS SELECT * FROM app.folders; CREATE VIEW app.outer_one AS SELECT * FROM app.hidden; GRANT SELECT ON app.outer_one TO APP".into(), "app.outer_one", "a view reads app.folders".into()),
        ("AZ825", "CREATE MATERIALIZED VIEW app.kept AS SELECT * FROM app.folders; GRANT SELECT ON app.kept TO APP".into(), "app.kept", "materialized".into()),
        ("AZ826", "CREATE FUNCTION app.n() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = app, pg_temp AS 'BEGIN RETURN (SELECT count(*) FROM app.folders); END'".into(), "app.n()", "app.folders do not bind".into()),
        ("AZ827", "CREATE FUNCTION app.one() RETURNS int LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog AS 'SELECT 1'".into(), "app.one()", "does not end in pg_temp".into()),
        ("AZ827", "CREATE FUNCTION app.two() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'".into(), "app.two()", "its caller's search_path".into()),
        ("AZ827", "CREATE FUNCTION app.three() RETURNS int LANGUAGE sql SECURITY DEFINER SET search_path = '' AS 'SELECT 1'".into(), "app.three()", "does not end in pg_temp".into()),
        ("AZ828", "GRANT TRUNCATE, REFERENCES ON app.folders TO APP".into(), "app.folders", "REFERENCES, TRUNCATE".into()),
        ("AZ828", "GRANT TRIGGER ON app.folder_links TO PUBLIC".into(), "app.folder_links", "PUBLIC has TRIGGER".into()),
        ("AZ829", "GRANT INSERT ON app.folder_links TO APP".into(), "app.folder_links", "may INSERT".into()),
        ("AZ831", "GRANT INSERT ON app.folders TO APP; ALTER TABLE app.folders ADD CONSTRAINT one_name UNIQUE (id, name)".into(), "app.folders", "is unique".into()),
        ("AZ833", "GRANT SELECT ON authz_int.session_key TO APP".into(), "SELECT on table authz_int.session_key to APP", "behind the policy's back".into()),
        ("AZ834", "GRANT CREATE ON SCHEMA app TO PUBLIC".into(), "app", "PUBLIC may create".into()),
        ("AZ834", "GRANT CREATE ON SCHEMA public TO APP".into(), "public", "search_path".into()),
        ("AZ835", "ALTER ROLE APP SET jit = on".into(), "APP", "JIT is on".into()),
        ("AZ836", "CREATE TABLE app.notes (id int); GRANT SELECT ON app.notes TO APP".into(), "app.notes", "no rule filters it".into()),
    ];
    for (code, plant, object, why) in &cases {
        if code == &"AZ831" {
            // The table's foreign key to itself tells as much from the moment the app may write it.
            ground.admin.batch_execute(&format!("GRANT INSERT ON app.folders TO {}", ground.app)).await.unwrap();
        }
        planted(&ground, &session, code, plant, object, why).await;
    }
    let plant = format!("ALTER TABLE app.folders OWNER TO {boss}; GRANT {wider} TO APP");
    planted(&ground, &session, "AZ822", &plant, "app.folders", &format!("through APP -> {wider} -> {boss}")).await;
    ground.admin.batch_execute(&format!("ALTER TABLE app.folders OWNER TO {}", ground.owner)).await.unwrap();
    let trigger: String = ground
        .one("SELECT tgname::text FROM pg_trigger WHERE tgname ~ '^authz_' AND tgrelid = 'app.folders'::regclass LIMIT 1")
        .await;
    let plant = format!("ALTER TABLE app.folders DISABLE TRIGGER {trigger}");
    planted(&ground, &session, "AZ832", &plant, "app.folders", "is disabled").await;
    let plant = format!("ALTER DATABASE {} SET session_replication_role = replica", ground.database.name);
    planted(&ground, &session, "AZ832", &plant, &ground.database.name, "session_replication_role").await;
}

#[tokio::test]
async fn a_masked_column_that_can_be_read_is_found() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    ground.draft().apply(&session).await.unwrap();
    // As a policy with `mask name` records it.
    let sql = "UPDATE authz.policy_versions SET objects = jsonb_set(objects, '{masks}', '[[\"app\", \"folders\", \"name\"]]')";
    ground.admin.batch_execute(sql).await.unwrap();
    let found = findings(&session, "AZ830").await;
    assert_eq!(found.iter().map(|f| f.object.as_str()).collect::<Vec<_>>(), ["app.folders.name"]);
    session.client.batch_execute(&found[0].fix).await.unwrap();
    assert_eq!(findings(&session, "AZ830").await, []);
    // The other columns can still be read.
    let reads = format!("SELECT has_column_privilege('{}', 'app.folders', 'id', 'SELECT')", ground.app);
    assert!(ground.one::<bool>(&reads).await);
}

#[tokio::test]
async fn a_connection_is_checked_by_the_app_itself() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let mut draft = ground.draft();
    let grant = format!("GRANT EXECUTE ON FUNCTION authz.connection_check() TO {}", ground.app);
    let usage = format!("GRANT USAGE ON SCHEMA authz TO {}", ground.app);
    for (name, sql) in [("check", &grant), ("usage", &usage)] {
        use rowdeck::compiler::objects::{ObjectKind, Phase};
        draft.extra.push(crate::apply_world::object(ObjectKind::Grant, Phase::Rules, name, sql));
    }
    draft.apply(&session).await.unwrap();
    let app = ground.database.connect_as(&ground.app).await;
    assert_eq!(lint::connection(&app).await.unwrap(), []);
    let owner = lint::connection(&session.client).await.unwrap();
    assert!(
        owner.iter().any(|f| f.code == "AZ822" && f.fix.contains(&ground.app) && f.fix.contains("never FORCE")),
        "{owner:?}"
    );
    // A superuser who has set the app role may take it back.
    ground.admin.batch_execute(&format!("SET ROLE {}", ground.app)).await.unwrap();
    let admin = lint::connection(&ground.admin).await.unwrap();
    assert!(admin.iter().any(|f| f.code == "AZ820" && f.why.contains("superuser")), "{admin:?}");
    ground.admin.batch_execute("RESET ROLE").await.unwrap();
    // Nobody but the owner asks for everything.
    assert!(app.query("SELECT * FROM authz.lint()", &[]).await.is_err());
    assert!(app.query("SELECT * FROM authz.drift()", &[]).await.is_err());
}

async fn drifted(session: &Session) -> Vec<Drift> {
    drift::run(&session.client).await.unwrap()
}

#[tokio::test]
async fn each_difference_is_found_and_mended() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    ground.draft().apply(&session).await.unwrap();
    assert_eq!(drifted(&session).await, []);
    let trigger: String = ground
        .one("SELECT tgname::text FROM pg_trigger WHERE tgname ~ '^authz_' AND tgrelid = 'app.folders'::regclass ORDER BY 1 LIMIT 1")
        .await;
    let index: String = ground
        .one(
            "SELECT indexrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
                    WHERE relname ~ '_edge$' AND NOT indisprimary ORDER BY 1 LIMIT 1",
        )
        .await;
    let cases: Vec<(String, &str, &str, &str)> = vec![
        ("ALTER TABLE app.folders DISABLE ROW LEVEL SECURITY".into(), "missing", "row security", "app.folders"),
        ("ALTER TABLE app.folders FORCE ROW LEVEL SECURITY".into(), "extra", "forced row security", "app.folders"),
        ("CREATE POLICY mine ON app.folders USING (true)".into(), "extra", "policy", "app.folders: mine"),
        ("DROP POLICY authz_select ON app.folders".into(), "missing", "policy", "app.folders: authz_select"),
        ("ALTER POLICY authz_select ON app.folders USING (true)".into(), "changed", "policy", "app.folders: authz_select"),
        ("ALTER POLICY authz_select ON app.folders TO PUBLIC".into(), "changed", "policy", "app.folders: authz_select"),
        (format!("DROP TRIGGER {trigger} ON app.folders"), "missing", "trigger", ""),
        (format!("ALTER TABLE app.folders DISABLE TRIGGER {trigger}"), "changed", "trigger state", ""),
        (format!("ALTER TABLE app.folders ENABLE ALWAYS TRIGGER {trigger}"), "changed", "trigger state", ""),
        ("GRANT SELECT ON authz_int.session_key TO APP".into(), "extra", "grant", "SELECT on table authz_int.session_key to APP"),
        ("GRANT SELECT (key) ON authz.settings TO PUBLIC".into(), "extra", "grant", "SELECT (key) on table authz.settings to PUBLIC"),
        ("REVOKE USAGE ON SCHEMA authz_gen FROM APP".into(), "missing", "grant", "USAGE on schema authz_gen to APP"),
        ("CREATE OR REPLACE FUNCTION authz_gen.sees(v_id bigint) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT true'".into(), "changed", "function", "authz_gen.sees(bigint)"),
        ("ALTER FUNCTION authz_gen.sees(bigint) SECURITY INVOKER".into(), "changed", "function", "authz_gen.sees(bigint)"),
        ("CREATE FUNCTION authz.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'".into(), "extra", "function", "authz.mine()"),
        ("CREATE OR REPLACE VIEW authz_gen.folder_view AS SELECT id FROM app.folders WHERE id > 3".into(), "changed", "view", "authz_gen.folder_view"),
        (format!("DROP INDEX {index}"), "missing", "index", ""),
        ("DROP FUNCTION authz.ctx(text)".into(), "missing", "function", "authz.ctx(text)"),
        ("CREATE TABLE authz_int.mine (id int)".into(), "extra", "table", "authz_int.mine"),
        ("ALTER TABLE authz.settings OWNER TO postgres".into(), "changed", "owner", "table authz.settings"),
    ];
    for (plant, what, kind, object) in cases {
        let plant = plant.replace("APP", &ground.app);
        ground.admin.batch_execute(&plant).await.unwrap_or_else(|e| panic!("{plant}: {e:?}"));
        // A superuser looks, who also sees what the owner lost.
        let found = drift::run(&ground.admin).await.unwrap();
        assert_eq!(found.len(), 1, "after {plant}: {found:#?}");
        assert_eq!((found[0].what.as_str(), found[0].kind.as_str()), (what, kind), "after {plant}");
        assert!(object.is_empty() || found[0].object == object.replace("APP", &ground.app), "{found:?}");
        let mend = found[0].mend.clone().unwrap();
        let mend = format!("SET ROLE {}; {mend}", ground.owner);
        let mend = if kind == "owner" || what == "extra" { mend.split_once("; ").unwrap().1.to_owned() } else { mend };
        ground.admin.batch_execute(&mend).await.unwrap_or_else(|e| panic!("{mend}: {e:?}"));
        ground.admin.batch_execute("RESET ROLE").await.unwrap();
        assert_eq!(drifted(&session).await, [], "{mend} did not mend it");
    }
}

#[tokio::test]
async fn an_apply_that_passes_by_takes_nothing_strange_for_right() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let mut draft = ground.draft();
    draft.apply(&session).await.unwrap();
    let sql = format!(
        "CREATE POLICY authz_mine ON app.folder_links USING (true); CREATE POLICY mine ON app.folders USING (true);
         GRANT SELECT ON authz_int.session_key TO {};
         CREATE OR REPLACE FUNCTION authz_gen.sees(v_id bigint) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER AS 'SELECT true'",
        ground.app
    );
    ground.admin.batch_execute(&sql).await.unwrap();
    let before = drifted(&session).await;
    assert_eq!(before.len(), 4, "{before:#?}");
    // In place: the function stays as it is.
    draft.see = "id < 50".to_owned();
    draft.apply(&session).await.unwrap();
    let after = drifted(&session).await;
    let of = |list: &[Drift]| list.iter().map(|d| (d.what.clone(), d.object.clone())).collect::<Vec<_>>();
    let strange = |list: &[Drift]| of(list).into_iter().filter(|(_, o)| !o.contains("authz_mine")).collect::<Vec<_>>();
    assert_eq!(strange(&after), strange(&before));
    // Made again, all that is ours is right; what is not ours is still said.
    let options = ApplyOptions { again: Again::Rules, ..quick() };
    let report = draft.apply_with(&session, &options, &Reporter::silent(), &Stop::never()).await.unwrap();
    assert!(!report.unchanged && report.graphs_built == 0);
    let left = of(&drifted(&session).await);
    assert_eq!(left, [("extra".to_owned(), "app.folders: mine".to_owned())]);
    let options = ApplyOptions { again: Again::Everything, ..quick() };
    let report = draft.apply_with(&session, &options, &Reporter::silent(), &Stop::never()).await.unwrap();
    assert_eq!((report.graphs_built, report.rows_built > 0), (2, true));
}

#[tokio::test]
async fn a_new_child_is_said_until_it_is_applied() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let draft = ground.draft();
    draft.apply(&session).await.unwrap();
    session.client.batch_execute("CREATE TABLE app.more () INHERITS (app.folders)").await.unwrap();
    let found = drifted(&session).await;
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].kind.as_str(), found[0].object.as_str()), ("child", "app.more of app.folders"));
    let options = ApplyOptions { again: Again::Rules, ..quick() };
    draft.apply_with(&session, &options, &Reporter::silent(), &Stop::never()).await.unwrap();
    assert_eq!(drifted(&session).await, []);
}

#[tokio::test]
async fn what_is_removed_leaves_tables_closed() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let draft = ground.draft();
    draft.apply(&session).await.unwrap();
    let session = ground.session().await;
    session.client.batch_execute("CREATE VIEW app.mine AS SELECT * FROM authz_gen.folder_view").await.unwrap();
    let before = ground.fingerprint().await;
    let error = remove(&session, &quick(), &Reporter::silent(), &Stop::never()).await.unwrap_err();
    assert!(matches!(error, DbError::Blocked(_)) && error.to_string().contains("view app.mine"), "{error}");
    assert_eq!(ground.fingerprint().await, before);
    session.client.batch_execute("DROP VIEW app.mine").await.unwrap();
    let report = remove(&session, &quick(), &Reporter::silent(), &Stop::never()).await.unwrap();
    assert_eq!(report.removal.tables, ["app.folders"]);
    assert_eq!(report.to_open.len(), 1);
    let left = "SELECT count(*) FROM pg_namespace WHERE nspname ~ '^authz'";
    assert_eq!(ground.one::<i64>(left).await, 0);
    assert_eq!(ground.one::<i64>("SELECT count(*) FROM pg_trigger WHERE tgname ~ '^authz_'").await, 0);
    ground.admin.batch_execute(&format!("SET ROLE {}", ground.app)).await.unwrap();
    assert_eq!(ground.one::<i64>("SELECT count(*) FROM app.folders").await, 0);
    ground.admin.batch_execute("RESET ROLE").await.unwrap();
    session.client.batch_execute(&report.to_open[0]).await.unwrap();
    assert!(ground.one::<bool>("SELECT NOT relrowsecurity FROM pg_class WHERE oid = 'app.folders'::regclass").await);
    // And from the beginning.
    let session = ground.session().await;
    draft.apply(&session).await.unwrap();
    assert_eq!(drifted(&session).await, []);
}

#[tokio::test]
async fn programs_and_databases_of_other_releases_are_refused() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let draft = ground.draft();
    draft.apply(&session).await.unwrap();
    let set = |program: &str| format!("UPDATE authz.policy_versions SET program = '{program}'");
    ground.admin.batch_execute(&set("rowdeck 999.0.0")).await.unwrap();
    for error in [
        drift::run(&session.client).await.unwrap_err(),
        remove(&session, &quick(), &Reporter::silent(), &Stop::never()).await.unwrap_err(),
    ] {
        assert!(error.to_string().contains("AZ616"), "{error}");
    }
    let changed = crate::apply_world::Draft { see: "id = 1".to_owned(), ..draft.clone() };
    let error = changed.apply(&session).await.unwrap_err();
    assert!(matches!(&error, DbError::Blocked(_)) && error.to_string().contains("AZ616"), "{error}");
    ground.admin.batch_execute(&set("rowdeck 0.0.1")).await.unwrap();
    let error = lint::run(&session.client).await.unwrap_err();
    assert!(error.to_string().contains("AZ626"), "{error}");
    // An older database is applied to, and is then of this release.
    changed.apply(&session).await.unwrap();
    assert_eq!(drifted(&session).await, []);
}
