//! What may happen to an apply: whatever it is, the database is as it was or as the plan said.

use std::time::{Duration, Instant};

use rowdeck::compiler::objects::{Object, ObjectKind, Phase};
use rowdeck::db::cancel::Stop;
use rowdeck::db::connect::Session;
use rowdeck::db::error::DbError;
use rowdeck::db::progress::{ApplyReport, Progress, Reporter};

use crate::apply_world::{Draft, Ground, listen, object, quick};
use crate::relay::{Relay, Then};

/// An object that takes its time.
fn slow() -> Object {
    object(ObjectKind::Function, Phase::Functions, "authz_gen.slow()", "SELECT pg_sleep(30)")
}

fn waits(heard: &[Progress]) -> Vec<String> {
    let blockers =
        |p: &Progress| if let Progress::Waiting { blockers, .. } = p { blockers.clone() } else { Vec::new() };
    heard.iter().flat_map(blockers).collect()
}

#[tokio::test]
async fn an_object_the_server_refuses_leaves_everything_as_it_was() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let good = ground.draft();
    let mut bad = good.clone();
    bad.see = "no_such_column".to_owned();
    for applied in [false, true] {
        if applied {
            good.apply(&session).await.unwrap();
        }
        let before = ground.fingerprint().await;
        let error = bad.apply(&session).await.unwrap_err();
        assert!(matches!(error, DbError::Object { .. }));
        assert_eq!(
            error.to_string(),
            "making view authz_gen.folder_view failed: column \"no_such_column\" does not exist [42703]"
        );
        assert_eq!(ground.fingerprint().await, before);
    }
    // The session is of use afterwards.
    assert!(good.apply(&session).await.unwrap().unchanged);
}

#[tokio::test]
async fn a_ring_that_is_there_already_is_named() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    // Through links it is fine.
    ground.admin.batch_execute("INSERT INTO app.folder_links VALUES (1, 40), (40, 1), (7, 7)").await.unwrap();
    let draft = ground.draft();
    draft.apply(&session).await.unwrap();
    // Through columns it is not; it got there with triggers off.
    let ring = "SET session_replication_role = replica; UPDATE app.folders SET parent_id = 90 WHERE id = 10;
                SET session_replication_role = origin";
    ground.admin.batch_execute(ring).await.unwrap();
    let node: String =
        ground.one("SELECT 'authz_int.' || relname FROM pg_class WHERE relname ~ '_node$' ORDER BY 1 LIMIT 1").await;
    ground.admin.batch_execute(&format!("DROP TABLE {node} CASCADE")).await.unwrap();
    let before = ground.fingerprint().await;
    let words = draft.apply(&session).await.unwrap_err().to_string();
    assert!(words.starts_with("making the index of folder.parent"), "{words}");
    assert!(words.contains("AZ713: folder ") && words.contains("would be inside itself"), "{words}");
    assert_eq!(ground.fingerprint().await, before);
}

#[tokio::test]
async fn a_second_apply_at_once_is_told_about_the_first() {
    let ground = Ground::new().await;
    let (first, second) = (ground.session().await, ground.session().await);
    let draft = ground.draft();
    let mut long = draft.clone();
    long.extra.push(object(ObjectKind::Function, Phase::Functions, "authz_gen.slow()", "SELECT pg_sleep(6)"));
    let running = tokio::spawn(async move { long.apply(&first).await });
    let pid = ground.applier().await;
    let error = draft.apply(&second).await.unwrap_err();
    let words = error.to_string();
    assert!(matches!(error, DbError::Busy(_)), "{words}");
    assert!(words.contains("another apply is running") && words.contains(&format!("pid {pid}")), "{words}");
    let report = running.await.unwrap().unwrap();
    assert_eq!(report.version, 1);
    assert_eq!(draft.apply(&second).await.unwrap().version, 2);
}

#[tokio::test]
async fn waits_are_reported_and_end_with_the_budget() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let draft = ground.draft();
    for (lock, when) in [("SELECT count(*) FROM app.folders", "late"), ("UPDATE app.folders SET name = name", "early")]
    {
        let holder = ground.database.connect().await;
        holder.batch_execute(&format!("SET application_name = 'holder'; BEGIN; {lock}")).await.unwrap();
        let pid: i32 = holder.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        let before = ground.fingerprint().await;
        let (reporter, heard) = listen();
        let started = Instant::now();
        let error = draft.apply_with(&session, &quick(), &reporter, &Stop::never()).await.unwrap_err();
        assert!(started.elapsed() < Duration::from_secs(8), "{when}");
        drop(reporter);
        let words = error.to_string();
        assert!(matches!(error, DbError::Busy(_)), "{when}: {words}");
        assert!(words.starts_with("gave up after waiting "), "{when}: {words}");
        let who = format!("pid {pid} (holder as postgres");
        assert!(words.contains(&who) && words.contains("holds app.folders"), "{when}: {words}");
        assert!(waits(&heard.await.unwrap()).iter().any(|b| b.contains(&who)), "{when}");
        assert_eq!(ground.fingerprint().await, before, "{when}");
    }
    // The holders' sessions are gone by now, or go while we wait.
    assert_eq!(draft.apply(&session).await.unwrap().version, 1);
}

#[tokio::test]
async fn a_lock_that_is_let_go_is_taken() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let holder = ground.database.connect().await;
    holder.batch_execute("BEGIN; SELECT count(*) FROM app.folders").await.unwrap();
    let looking = ground.database.connect().await;
    let letting_go = tokio::spawn(async move {
        until_waited_for(&looking).await;
        // Longer than one request lasts, so that at least one was given up.
        tokio::time::sleep(Duration::from_millis(200)).await;
        holder.batch_execute("COMMIT").await.unwrap();
        holder
    });
    let (reporter, heard) = listen();
    let report = ground.draft().apply_with(&session, &quick(), &reporter, &Stop::never()).await.unwrap();
    drop(reporter);
    assert_eq!((report.version, report.graphs_built), (1, 2));
    assert!(!waits(&heard.await.unwrap()).is_empty());
    letting_go.await.unwrap();
}

#[tokio::test]
async fn a_reader_that_then_writes_is_let_through() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let app = ground.database.connect().await;
    app.batch_execute("SET deadlock_timeout = '10s'; BEGIN; SELECT count(*) FROM app.folders").await.unwrap();
    // Once the apply holds what blocks writers, the reader writes: each waits for the other, and the apply gives way.
    let looking = ground.database.connect().await;
    let writing = tokio::spawn(async move {
        until_held(&looking).await;
        app.batch_execute("UPDATE app.folders SET name = 'written' WHERE id = 1; COMMIT").await.unwrap();
    });
    let mut options = quick();
    options.budget = Duration::from_secs(10);
    let report = ground.draft().apply_with(&session, &options, &Reporter::silent(), &Stop::never()).await.unwrap();
    writing.await.unwrap();
    assert_eq!(report.version, 1);
    assert_eq!(ground.one::<String>("SELECT name FROM app.folders WHERE id = 1").await, "written");
}

#[tokio::test]
async fn a_stop_cancels_on_the_server_and_rolls_back() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let mut draft = ground.draft();
    draft.apply(&session).await.unwrap();
    draft.extra.push(slow());
    let before = ground.fingerprint().await;
    let (stopper, stop) = Stop::channel();
    let running = tokio::spawn(async move {
        let result = draft.apply_with(&session, &quick(), &Reporter::silent(), &stop).await;
        (result, session)
    });
    let pid = ground.applier().await;
    let started = Instant::now();
    stopper.stop();
    let (result, session) = running.await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(3));
    let error = result.unwrap_err();
    assert!(matches!(error, DbError::Stopped(_)), "{error}");
    assert_eq!(ground.fingerprint().await, before);
    let busy = format!("SELECT state FROM pg_stat_activity WHERE pid = {pid}");
    assert_eq!(ground.one::<String>(&busy).await, "idle");
    session.client.batch_execute("SELECT 1").await.unwrap();
}

#[tokio::test]
async fn a_lost_connection_leaves_everything_as_it_was() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let mut draft = ground.draft();
    for applied in [false, true] {
        let mut long = draft.clone();
        long.extra.push(slow());
        let before = ground.fingerprint().await;
        let session = if applied { ground.session().await } else { session_of(&ground).await };
        let running = tokio::spawn(async move { long.apply(&session).await });
        let pid = ground.applier().await;
        ground.admin.execute("SELECT pg_terminate_backend($1)", &[&pid]).await.unwrap();
        let error = running.await.unwrap().unwrap_err();
        let words = error.to_string();
        assert!(error.is_lost(), "{words}");
        assert!(words.contains("while making function authz_gen.slow()") && words.contains("as it was"), "{words}");
        gone(&ground, pid).await;
        assert_eq!(ground.fingerprint().await, before);
        draft.apply(&session_of(&ground).await).await.unwrap();
        draft.see = "id < 3".to_owned();
    }
    drop(session);
}

/// Until somebody asks for a lock on the folders that blocks everybody and does not get it.
async fn until_waited_for(looking: &tokio_postgres::Client) {
    let sql = "SELECT FROM pg_locks WHERE NOT granted AND relation = 'app.folders'::regclass AND mode = 'AccessExclusiveLock'";
    for _ in 0..2000 {
        if looking.query_opt(sql, &[]).await.unwrap().is_some() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("nobody waits");
}

/// Until somebody holds what keeps writers out of the folders.
async fn until_held(looking: &tokio_postgres::Client) {
    let sql = "SELECT FROM pg_locks WHERE granted AND relation = 'app.folders'::regclass
               AND mode = 'ShareRowExclusiveLock'";
    for _ in 0..2000 {
        if looking.query_opt(sql, &[]).await.unwrap().is_some() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("nobody keeps writers out");
}

async fn session_of(ground: &Ground) -> Session {
    ground.session().await
}

/// Waits until a backend has ended.
async fn gone(ground: &Ground, pid: i32) {
    let sql = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}");
    for _ in 0..200 {
        if ground.one::<i64>(&sql).await == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("backend {pid} is still there");
}

/// A policy whose commit takes a while: a deferred trigger runs in it.
fn slow_commit(draft: &mut Draft) {
    for sql in [
        "CREATE OR REPLACE FUNCTION authz_gen.late() RETURNS trigger LANGUAGE plpgsql AS
         'BEGIN PERFORM pg_sleep(30); RETURN NULL; END'",
        "CREATE TABLE authz_gen.late_rows (a int)",
        "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON authz_gen.late_rows DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW EXECUTE FUNCTION authz_gen.late()",
        "INSERT INTO authz_gen.late_rows VALUES (1)",
    ] {
        draft.extra.push(object(ObjectKind::Grant, Phase::Functions, "late", sql));
    }
}

#[tokio::test]
async fn a_connection_lost_at_the_commit_is_looked_into() {
    let ground = Ground::new().await;
    let session = ground.session().await;
    let mut draft = ground.draft();
    slow_commit(&mut draft);
    let before = ground.fingerprint().await;
    let running = tokio::spawn(async move { draft.apply(&session).await });
    let mut pid = None;
    for _ in 0..500 {
        let sql = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query = 'COMMIT' AND state = 'active'";
        pid = ground.admin.query_opt(sql, &[]).await.unwrap().map(|row| row.get::<_, i32>(0));
        if pid.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ground.admin.execute("SELECT pg_terminate_backend($1)", &[&pid.unwrap()]).await.unwrap();
    let error = running.await.unwrap().unwrap_err();
    let words = error.to_string();
    assert!(error.is_lost(), "{words}");
    assert!(words.contains("while it committed") && words.contains("nothing was changed"), "{words}");
    assert_eq!(ground.fingerprint().await, before);
}

/// An apply whose commit goes through while its answer is lost on the way.
async fn unanswered_commit(ground: &Ground, then: Then) -> Result<ApplyReport, DbError> {
    let relay = Relay::start(then);
    let session = Session::open(&relay.target(&ground.owner, &ground.database.name)).await.unwrap();
    let ended = ground.draft().apply(&session).await;
    assert!(relay.swallowed(), "the commit's answer was not lost");
    assert_eq!(ground.one::<i64>("SELECT count(*) FROM authz.policy_versions").await, 1);
    ended
}

#[tokio::test]
async fn a_commit_that_went_through_is_reported_as_such() {
    let ground = Ground::new().await;
    let report = unanswered_commit(&ground, Then::Relay).await.unwrap();
    assert_eq!((report.version, report.unchanged), (1, false));
}

#[tokio::test]
async fn a_commit_nobody_can_be_asked_about_is_unknown() {
    let ground = Ground::new().await;
    let error = unanswered_commit(&ground, Then::Refuse).await.unwrap_err();
    assert!(matches!(error, DbError::Unknown(_)), "{error}");
    assert!(error.to_string().contains("either all of version 1 is in force or nothing was changed"), "{error}");
}
