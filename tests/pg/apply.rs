//! Applying a policy: what it makes, keeps and drops.

use rowdeck::compiler::ident::Ident;
use rowdeck::compiler::objects::{ObjectKind, Phase};
use rowdeck::db::cancel::Stop;
use rowdeck::db::error::DbError;
use rowdeck::db::plan::Change;
use rowdeck::db::progress::{Progress, Reporter};

use crate::apply_world::{Draft, Ground, listen, object, quick};

/// The plan's objects with this change, by name.
fn with(plan: &rowdeck::db::plan::Plan, change: Change) -> Vec<&str> {
    plan.objects.iter().filter(|o| o.change == change).map(|o| o.name.as_str()).collect()
}

async fn index_files(ground: &Ground) -> String {
    let sql = "SELECT string_agg(relname || relfilenode, ',' ORDER BY relname) FROM pg_class
               WHERE relnamespace = 'authz_int'::regnamespace AND relname ~ '^g[0-9a-f]{8}_'";
    ground.one(sql).await
}

#[tokio::test]
async fn a_policy_is_applied_and_the_same_again_changes_nothing() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let draft = ground.draft();
    let plan = draft.plan(&session.client).await;
    assert_eq!(plan.blockers, []);
    assert!(!plan.unchanged && plan.in_force.is_none());
    assert_eq!(with(&plan, Change::New).len(), plan.objects.len());
    assert!(plan.graphs.iter().all(|g| g.build) && plan.rows_to_build > 0);

    let (reporter, heard) = listen();
    let report = draft.apply_with(&session, &quick(), &reporter, &Stop::never()).await.unwrap();
    drop(reporter);
    assert_eq!((report.unchanged, report.version, report.graphs_built, report.graphs_kept), (false, 1, 2, 0));
    assert!(report.rows_built >= 200 && report.seconds > 0.0);
    let heard = heard.await.unwrap();
    let phases: Vec<usize> = heard
        .iter()
        .filter_map(|p| if let Progress::Phase { number, .. } = p { Some(*number) } else { None })
        .collect();
    assert_eq!(phases, (1..=plan.steps.len()).collect::<Vec<_>>());
    assert_eq!(ground.one::<i64>("SELECT count(*) FROM pg_policy").await, 1);
    assert_eq!(ground.one::<i64>("SELECT count(*) FROM authz_int.graphs").await, 2);

    let before = ground.fingerprint().await;
    let again = draft.apply(&session).await.unwrap();
    assert!(again.unchanged);
    assert_eq!((again.version, again.objects, again.rows_built, again.graphs_kept), (1, 0, 0, 2));
    assert_eq!(ground.fingerprint().await, before);
    let plan = draft.plan(&session.client).await;
    assert!(plan.unchanged && plan.steps.is_empty() && plan.locks.needed == 0);
    assert_eq!(ground.fingerprint().await, before);
}

#[tokio::test]
async fn the_plan_changes_nothing_and_reads_well() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let before = ground.fingerprint().await;
    let plan = ground.draft().plan(&session.client).await;
    assert_eq!(ground.fingerprint().await, before);
    let text = plan.summary().join("\n");
    assert!(text.contains("from nothing to docs.authz"), "{text}");
    assert!(text.contains("locks SHARE ROW EXCLUSIVE on app.folder_links, app.folders"), "{text}");
    assert!(text.contains("locks ACCESS EXCLUSIVE on app.folders"), "{text}");
    let json = serde_json::to_value(&plan).unwrap();
    assert_eq!(json["graphs"][0]["build"], true);
    assert_eq!(json["steps"][1]["locks"][0]["mode"], "SHARE ROW EXCLUSIVE");
    assert_eq!(plan.digest, ground.draft().plan(&session.client).await.digest);
}

#[tokio::test]
async fn changing_a_permission_keeps_the_index() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let mut draft = ground.draft();
    draft.apply(&session).await.unwrap();
    let files = index_files(&ground).await;
    draft.see = "id < 50".to_owned();
    let plan = draft.plan(&session.client).await;
    assert_eq!(with(&plan, Change::Changed), ["authz_gen.folder_view"]);
    assert_eq!(plan.rows_to_build, 0);
    let report = draft.apply(&session).await.unwrap();
    assert_eq!((report.version, report.graphs_built, report.graphs_kept, report.rows_built), (2, 0, 2, 0));
    assert_eq!(index_files(&ground).await, files);
    ground.admin.batch_execute(&format!("SET ROLE {}", ground.app)).await.unwrap();
    assert_eq!(ground.one::<i64>("SELECT count(*) FROM app.folders").await, 49);
}

#[tokio::test]
async fn new_text_over_the_same_sql_is_kept_as_a_version() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let mut draft = ground.draft();
    draft.apply(&session).await.unwrap();
    let before = ground.fingerprint().await;
    draft.text = "the policy -- with a comment".to_owned();
    let report = draft.apply(&session).await.unwrap();
    assert_eq!((report.unchanged, report.version, report.objects), (false, 2, 0));
    assert_eq!(ground.fingerprint().await, before);
    assert!(draft.apply(&session).await.unwrap().unchanged);
}

#[tokio::test]
async fn what_is_missing_is_made_again() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let draft = ground.draft();
    draft.apply(&session).await.unwrap();
    let node: String =
        ground.one("SELECT 'authz_int.' || relname FROM pg_class WHERE relname ~ '_node$' ORDER BY 1 LIMIT 1").await;
    ground.admin.batch_execute(&format!("DROP TABLE {node} CASCADE; DROP VIEW authz_gen.folder_view")).await.unwrap();
    let plan = draft.plan(&session.client).await;
    assert!(with(&plan, Change::Missing).contains(&"authz_gen.folder_view"), "{:?}", with(&plan, Change::Missing));
    let report = draft.apply(&session).await.unwrap();
    assert_eq!((report.graphs_built, report.graphs_kept), (1, 1));
    assert_eq!(ground.one::<i64>(&format!("SELECT count(*) FROM {node}")).await, 100);
    assert!(draft.apply(&session).await.unwrap().unchanged);
}

#[tokio::test]
async fn what_is_no_longer_needed_goes() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let first = ground.draft();
    first.apply(&session).await.unwrap();
    let triggers: i64 = ground.one("SELECT count(*) FROM pg_trigger WHERE tgname ~ '^authz_'").await;

    // One graph less, no shares, another app role.
    let mut draft = first.clone();
    draft.model.graphs.pop();
    draft.shares = false;
    let other = format!("other_{}", ground.database.name);
    let sql = format!("CREATE ROLE {other}; GRANT {other} TO {}", ground.owner);
    ground.admin.batch_execute(&sql).await.unwrap();
    draft.model.app_role = Ident::new(&other);
    let report = draft.apply(&session).await.unwrap();
    assert_eq!((report.graphs_built, report.graphs_kept), (0, 1));
    let left: i64 = ground.one("SELECT count(*) FROM pg_trigger WHERE tgname ~ '^authz_'").await;
    assert!(left > 0 && left < triggers, "{left} of {triggers}");
    assert_eq!(ground.one::<i64>("SELECT count(*) FROM authz_int.graphs").await, 1);
    let graphs = "SELECT count(DISTINCT substr(relname, 1, 9)) FROM pg_class WHERE relname ~ '^g[0-9a-f]{8}_node$'";
    assert_eq!(ground.one::<i64>(graphs).await, 1);
    assert!(ground.one::<bool>("SELECT to_regclass('authz_int.share_folder_viewer_user') IS NULL").await);
    let usage = |role: &str| format!("SELECT has_schema_privilege('{role}', 'authz_gen', 'USAGE')");
    assert!(!ground.one::<bool>(&usage(&ground.app)).await);
    assert!(ground.one::<bool>(&usage(&other)).await);

    // And back again.
    let report = first.apply(&session).await.unwrap();
    assert_eq!((report.graphs_built, report.graphs_kept), (1, 1));
    assert_eq!(ground.one::<i64>("SELECT count(*) FROM pg_trigger WHERE tgname ~ '^authz_'").await, triggers);
}

#[tokio::test]
async fn shares_survive_a_policy_without_them() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let first = ground.draft();
    first.apply(&session).await.unwrap();
    ground.admin.batch_execute("INSERT INTO authz_int.share_folder_viewer_user VALUES (1, 2)").await.unwrap();
    let mut without = first.clone();
    without.shares = false;
    for text in ["one", "two"] {
        without.text = text.to_owned();
        without.see = format!("name <> '{text}'");
        let (reporter, heard) = listen();
        without.apply_with(&session, &quick(), &reporter, &Stop::never()).await.unwrap();
        drop(reporter);
        let notes = heard.await.unwrap();
        let kept = |p: &Progress| matches!(p, Progress::Note { text } if text.contains("share_folder_viewer_user"));
        assert!(notes.iter().any(kept), "{notes:?}");
    }
    // The table comes back as it was, and the plan knows that it is the same.
    let plan = first.plan(&session.client).await;
    assert!(with(&plan, Change::Same).contains(&"authz_int.share_folder_viewer_user"));
    first.apply(&session).await.unwrap();
    assert_eq!(ground.one::<i64>("SELECT count(*) FROM authz_int.share_folder_viewer_user").await, 1);
}

#[tokio::test]
async fn nothing_of_others_is_dropped() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let mut draft = ground.draft();
    draft.apply(&session).await.unwrap();
    session.client.batch_execute("CREATE VIEW app.mine AS SELECT * FROM authz_gen.folder_view").await.unwrap();
    // What is replaced in place leaves it alone.
    draft.see = "id < 9".to_owned();
    draft.apply(&session).await.unwrap();
    assert_eq!(ground.one::<i64>("SELECT count(*) FROM app.mine").await, 8);
    // What cannot be, does not take it along.
    let before = ground.fingerprint().await;
    draft.columns = "name, id";
    let error = draft.apply(&session).await.unwrap_err();
    let words = error.to_string();
    assert!(matches!(error, DbError::Blocked(_)), "{words}");
    assert!(words.contains("view app.mine uses view authz_gen.folder_view") && words.contains("AZ614"), "{words}");
    assert_eq!(ground.fingerprint().await, before);
}

#[tokio::test]
async fn what_cannot_be_replaced_in_place_is_made_again() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let mut draft = ground.draft();
    draft.apply(&session).await.unwrap();
    draft.columns = "name, id";
    let (reporter, heard) = listen();
    draft.apply_with(&session, &quick(), &reporter, &Stop::never()).await.unwrap();
    drop(reporter);
    let heard = heard.await.unwrap();
    let again =
        |p: &Progress| matches!(p, Progress::Note { text } if text.contains("folder_view cannot be made in place"));
    assert!(heard.iter().any(again), "{heard:?}");
    assert!(draft.apply(&session).await.unwrap().unchanged);
    ground.admin.batch_execute(&format!("SET ROLE {}", ground.app)).await.unwrap();
    assert_eq!(ground.one::<i64>("SELECT count(*) FROM app.folders").await, 100);
}

#[tokio::test]
async fn a_lost_policy_or_trigger_is_put_back() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let draft = ground.draft();
    draft.apply(&session).await.unwrap();
    let trigger: String =
        ground.one("SELECT tgname::text FROM pg_trigger WHERE tgname ~ '^authz_' AND tgrelid = 'app.folders'::regclass LIMIT 1").await;
    let lost = format!("DROP POLICY authz_select ON app.folders; DROP TRIGGER {trigger} ON app.folders");
    ground.admin.batch_execute(&lost).await.unwrap();
    let plan = draft.plan(&session.client).await;
    assert_eq!(with(&plan, Change::Missing).len(), 2, "{:?}", with(&plan, Change::Missing));
    draft.apply(&session).await.unwrap();
    assert_eq!(ground.one::<i64>("SELECT count(*) FROM pg_policy").await, 1);
    assert!(draft.apply(&session).await.unwrap().unchanged);
}

#[tokio::test]
async fn a_table_no_longer_governed_stays_closed() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let first = ground.draft();
    first.apply(&session).await.unwrap();
    let mut emitted = first.emitted();
    emitted.objects.retain(|object| !object.name.starts_with("app.folders: s") && !object.name.ends_with("security"));
    emitted.tables.clear();
    emitted.digest.push('x');
    let sources = rowdeck::compiler::span::SourceMap::single("docs.authz", "other");
    let policy = rowdeck::db::plan::Policy { name: "d", sources: &sources, model: &first.model, emitted: &emitted };
    let (reporter, heard) = listen();
    rowdeck::db::apply::apply(&session, &policy, &quick(), &reporter, &Stop::never()).await.unwrap();
    drop(reporter);
    let notes = heard.await.unwrap();
    let closed = |p: &Progress| matches!(p, Progress::Note { text } if text.contains("app.folders has no rules"));
    assert!(notes.iter().any(closed), "{notes:?}");
    assert!(ground.one::<bool>("SELECT relrowsecurity FROM pg_class WHERE oid = 'app.folders'::regclass").await);
    ground.admin.batch_execute(&format!("SET ROLE {}", ground.app)).await.unwrap();
    assert_eq!(ground.one::<i64>("SELECT count(*) FROM app.folders").await, 0);
}

#[tokio::test]
async fn an_agreed_plan_is_kept_to() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let mut draft = ground.draft();
    let plan = draft.plan(&session.client).await;
    let mut options = quick();
    options.agreed_plan = Some(plan.digest.clone());
    let changed = Draft { see: "id = 1".to_owned(), ..draft.clone() };
    let error = changed.apply_with(&session, &options, &Reporter::silent(), &Stop::never()).await.unwrap_err();
    assert!(error.to_string().contains("plan again"), "{error}");
    draft.apply_with(&session, &options, &Reporter::silent(), &Stop::never()).await.unwrap();
    draft.see = "id = 2".to_owned();
    let error = draft.apply_with(&session, &options, &Reporter::silent(), &Stop::never()).await.unwrap_err();
    assert!(error.to_string().contains("plan again"), "{error}");
}

#[tokio::test]
async fn the_lock_estimate_covers_what_is_taken() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    ground
        .admin
        .batch_execute("CREATE TABLE public.seen (n bigint); GRANT ALL ON public.seen TO PUBLIC")
        .await
        .unwrap();
    let mut draft = ground.draft();
    let count = "INSERT INTO public.seen SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()";
    draft.extra.push(object(ObjectKind::Grant, Phase::Rules, "count", count));
    for see in ["true", "id < 7"] {
        draft.see = see.to_owned();
        let plan = draft.plan(&session.client).await;
        draft.apply(&session).await.unwrap();
        let taken: i64 = ground.one("SELECT n FROM public.seen ORDER BY ctid DESC LIMIT 1").await;
        let taken = u64::try_from(taken).unwrap();
        assert!(taken <= plan.locks.needed, "{taken} taken, {} estimated", plan.locks.needed);
        assert!(plan.locks.needed < taken * 3 + 128, "{taken} taken, {} estimated", plan.locks.needed);
        assert!(plan.locks.free > 1000);
    }
}
