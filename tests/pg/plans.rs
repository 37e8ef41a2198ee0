//! What a plan says before anything runs, and that an apply keeps to it.

use std::time::Instant;

use rowdeck::compiler::ident::QualName;
use rowdeck::compiler::objects::{Lock, LockMode, ObjectKind, Phase};
use rowdeck::db::cancel::Stop;
use rowdeck::db::progress::Reporter;

use crate::apply_world::{Ground, object, quick};

#[tokio::test]
async fn a_plan_says_what_each_statement_takes() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let plan = ground.draft().plan(&session.client).await;
    let policy = plan.objects.iter().find(|o| o.name == "app.folders: select").unwrap();
    assert_eq!(policy.locks, [Lock { table: QualName::new("app", "folders"), mode: LockMode::AccessExclusive }]);
    assert!(plan.objects.iter().all(|o| o.kept || o.seconds > 0.0));
    let steps: f64 = plan.steps.iter().map(|step| step.seconds).sum();
    assert!(plan.seconds > 0.0 && (steps - plan.seconds).abs() < 1e-9);
    assert!(plan.disk > 0 && plan.disk == plan.graphs.iter().map(|g| g.bytes).sum::<u64>());
    let text = plan.summary().join("\n");
    assert!(text.contains("of work") && text.contains("MB for new indexes"), "{text}");
    ground.draft().apply(&session).await.unwrap();
    let plan = ground.draft().plan(&session.client).await;
    assert_eq!((plan.disk, plan.seconds), (0, 0.0));
}

#[tokio::test]
async fn a_plan_that_was_read_is_refused_when_something_moved() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let draft = ground.draft();
    let mut options = quick();
    let app = &ground.app;
    let moves = [
        "ALTER TABLE app.folders ADD COLUMN more int".to_owned(),
        "CREATE INDEX ON app.folder_links (shown_in)".to_owned(),
        "CREATE POLICY mine ON app.folders USING (true)".to_owned(),
        "DROP POLICY mine ON app.folders".to_owned(),
        "CREATE TABLE app.more () INHERITS (app.folders)".to_owned(),
        format!("GRANT UPDATE ON app.folders TO {app}"),
        format!("CREATE ROLE more_{app}; GRANT more_{app} TO {app}"),
        format!("REVOKE more_{app} FROM {app}"),
    ];
    for sql in moves {
        let plan = draft.plan(&session.client).await;
        options.agreed_plan = Some(plan.digest);
        ground.admin.batch_execute(&sql).await.unwrap();
        let error = draft.apply_with(&session, &options, &Reporter::silent(), &Stop::never()).await.unwrap_err();
        assert!(error.to_string().contains("plan again"), "after {sql}: {error}");
    }
    // Rows and statistics are no reason.
    let plan = draft.plan(&session.client).await;
    options.agreed_plan = Some(plan.digest);
    ground.admin.batch_execute("INSERT INTO app.folders (id) VALUES (1000)").await.unwrap();
    ground.admin.batch_execute("VACUUM ANALYZE app.folders").await.unwrap();
    draft.apply_with(&session, &options, &Reporter::silent(), &Stop::never()).await.unwrap();
}

#[tokio::test]
async fn a_lock_table_that_is_too_small_is_said_at_once() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let mut draft = ground.draft();
    let sql = "SELECT current_setting('max_locks_per_transaction')::int8 * current_setting('max_connections')::int8";
    let capacity: i64 = ground.one(sql).await;
    for at in 0..capacity {
        let name = format!("authz_int.t{at}");
        draft.extra.push(object(ObjectKind::Index, Phase::Tables, &name, &format!("CREATE TABLE {name} (id int)")));
    }
    let emitted = Instant::now();
    drop(draft.emitted());
    let emitting = emitted.elapsed();
    let started = Instant::now();
    let plan = draft.plan(&session.client).await;
    let took = started.elapsed().saturating_sub(emitting);
    let said: Vec<String> = plan.blockers.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("AZ802"), "{said:?}");
    let help = plan.blockers[0].help.clone().unwrap();
    assert!(help.starts_with("set max_locks_per_transaction to "), "{help}");
    // A debug build on a machine that does much else; an optimized one takes a tenth.
    assert!(took.as_secs_f64() < 5.0, "{took:?}");
}

#[tokio::test]
async fn schemas_of_others_with_our_names_are_in_the_way() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let sql = format!("SET ROLE {}; CREATE SCHEMA authz; CREATE TABLE authz.theirs (id int); RESET ROLE", ground.owner);
    ground.admin.batch_execute(&sql).await.unwrap();
    ground.admin.batch_execute(&format!("GRANT CREATE ON SCHEMA app TO {}", ground.app)).await.unwrap();
    let plan = ground.draft().plan(&session.client).await;
    let said: Vec<String> = plan.blockers.iter().map(ToString::to_string).collect();
    assert!(said.iter().any(|b| b.contains("schema authz holds objects that no apply made")), "{said:?}");
    assert!(plan.notes.iter().any(|note| note.contains("may create objects in schema app")), "{:?}", plan.notes);
}
