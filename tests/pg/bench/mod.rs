//! The docs example's data, and the live benchmark on it: what it counts, and that it leaves nothing behind. Nothing
//! here asserts that anything is fast.

use std::time::Duration;

use rowdeck::bench::error::BenchError;
use rowdeck::bench::generate::{Dataset, Shape, Size};
use rowdeck::bench::headless::{Plan, run_headless};
use rowdeck::bench::live::{self, Command, Kind, LiveReport, Options, Phase};
use rowdeck::bench::random::Rng;
use rowdeck::bench::{self, load};
use rowdeck::compiler::{self, emit};
use rowdeck::db::apply::{self, ApplyOptions};
use rowdeck::db::cancel::Stop;
use rowdeck::db::connect::Session;
use rowdeck::db::error::DbError;
use rowdeck::db::plan::Policy;
use rowdeck::db::policy_tests;
use rowdeck::db::progress::Reporter;
use tokio_postgres::Client;

mod program;
mod scenarios;
mod schema;
mod whole;

use crate::server::Database;

/// The docs example in a database of its own.
struct Docs {
    database: Database,
    owner: String,
    admin: Client,
}

impl Docs {
    /// Its tables, empty.
    async fn bare() -> Docs {
        let database = Database::create().await;
        let admin = database.connect().await;
        let owner = format!("owner_{}", database.name);
        let roles = format!(
            "DO $$ BEGIN CREATE ROLE app_user LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
             CREATE ROLE {owner} LOGIN; GRANT app_user TO {owner}; ALTER DATABASE {} OWNER TO {owner}",
            database.name
        );
        admin.batch_execute(&roles).await.unwrap();
        let docs = Docs { database, owner, admin };
        docs.session().await.client.batch_execute(bench::EXAMPLE_SCHEMA).await.unwrap();
        docs
    }

    /// Filled, with the policy in force and marked as a development database.
    async fn with(data: &Dataset) -> Docs {
        let docs = Docs::bare().await;
        let session = docs.session().await;
        load::load_dataset(&session.client, data, &Reporter::silent()).await.unwrap();
        let compiled = compiler::compile(bench::EXAMPLE_POLICY_NAME, bench::EXAMPLE_POLICY);
        let model = compiled.model.as_ref().expect("the example compiles");
        let emitted = emit::emit(model).expect("the example is emitted");
        let policy = Policy { name: bench::EXAMPLE_POLICY_NAME, sources: &compiled.sources, model, emitted: &emitted };
        let options = ApplyOptions { cluster_size: 16, ..ApplyOptions::default() };
        apply::apply(&session, &policy, &options, &Reporter::silent(), &Stop::never()).await.unwrap();
        load::load_dataset_shares(&session.client, data, &Reporter::silent()).await.unwrap();
        let mark = "INSERT INTO authz.settings (key, value) VALUES ('development', 'true')";
        session.client.batch_execute(mark).await.unwrap();
        docs
    }

    async fn session(&self) -> Session {
        Session::open(&self.database.target(&self.owner)).await.unwrap()
    }

    /// Every row that a run may write, in one value.
    async fn fingerprint(&self) -> String {
        let all = "SELECT (SELECT md5(string_agg(f::text, '|' ORDER BY id)) FROM app.folders f)
                       || (SELECT md5(string_agg(l::text, '|' ORDER BY l)) FROM app.folder_links l)
                       || (SELECT md5(string_agg(f::text, '|' ORDER BY id)) FROM app.files f)";
        self.admin.query_one(all, &[]).await.unwrap().get(0)
    }

    fn options(&self, reads: f64, writes: f64) -> Options {
        let target = self.database.target(&self.owner);
        Options { reads, writes, read_connections: 2, write_connections: 3, ..Options::new(target) }
    }
}

fn small() -> Dataset {
    Dataset::grown(Shape { folders: 600, levels: 9, files_per_folder: 3, held: 12, orgs: 3 }, 1)
}

async fn run(options: Options, seconds: f64, big_moves: &[f64]) -> Result<LiveReport, BenchError> {
    let plan = Plan { seconds, big_moves: big_moves.to_vec() };
    run_headless(options, &plan, std::future::pending(), |_| {}).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_tests_pass_on_its_tiny_data() {
    let docs = Docs::with(&Dataset::new(Size::Tiny, 1)).await;
    let compiled = compiler::compile(bench::EXAMPLE_POLICY_NAME, bench::EXAMPLE_POLICY);
    assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
    let model = compiled.model.as_ref().unwrap();
    assert!(model.tests.len() >= 25);
    let session = docs.session().await;
    let before = docs.fingerprint().await;
    let report = policy_tests::run(&session, model, &compiled.sources, &Reporter::silent()).await.unwrap();
    let failures: Vec<_> = report.tests.iter().filter_map(|test| test.failure.as_ref()).collect();
    assert!(failures.is_empty(), "{failures:#?}");
    assert_eq!(report.passed, model.tests.len());
    assert_eq!(docs.fingerprint().await, before);
}

#[tokio::test]
async fn data_is_loaded_whole_and_only_into_empty_tables() {
    let docs = Docs::bare().await;
    let session = docs.session().await;
    let keys = "SELECT string_agg(conname || pg_get_constraintdef(oid), ';' ORDER BY conname) FROM pg_constraint
                 WHERE contype = 'f'";
    let before: String = docs.admin.query_one(keys, &[]).await.unwrap().get(0);
    let data = small();
    let report = load::load_dataset(&session.client, &data, &Reporter::silent()).await.unwrap();
    assert_eq!(report.rows, data.rows());
    for (table, rows) in &report.tables {
        let there: i64 = docs.admin.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.unwrap().get(0);
        assert_eq!(there as u64, *rows, "{table}");
    }
    let after: String = docs.admin.query_one(keys, &[]).await.unwrap().get(0);
    assert_eq!(after, before, "foreign keys are as they were");
    let next = "INSERT INTO app.users (name) VALUES ('next') RETURNING id";
    let next: i64 = session.client.query_one(next, &[]).await.unwrap().get(0);
    assert_eq!(next, data.users.len() as i64 + 1);
    let error = load::load(&session.client, Size::Tiny, 1, &Reporter::silent()).await.unwrap_err();
    assert!(matches!(&error, BenchError::NotEmpty { table } if table == "app.orgs"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_counts_everything_and_leaves_nothing_behind() {
    let docs = Docs::with(&small()).await;
    let before = docs.fingerprint().await;
    let report = run(docs.options(60.0, 60.0), 4.0, &[1.0, 2.5]).await.unwrap();
    assert!(report.complete, "{:?}", report.failure);
    let measured = &report.measured;
    assert!(measured.errors.is_empty(), "{:?}", measured.errors);
    for kind in [Kind::OpenFile, Kind::OpenFolder, Kind::Can, Kind::Create, Kind::Move, Kind::BigMove] {
        assert!(measured.operations.iter().any(|one| one.kind == kind && one.done > 0), "no {kind:?}");
    }
    for class in [&measured.reads, &measured.writes] {
        assert!(class.done > 0 && class.failed == 0 && class.timeouts == 0, "{class:?}");
        assert_eq!(class.latency.n, class.done);
    }
    let by_second: u64 = measured.series.iter().map(|second| second.reads.done).sum();
    assert_eq!(by_second, measured.reads.done, "no second is missing");
    let numbered = measured.series.iter().enumerate().all(|(at, second)| second.second == at as u64);
    assert!(numbered, "seconds in order, none twice");
    let in_buckets: u64 = report.buckets.values().flatten().map(|(_, n)| n).sum();
    let done: u64 = measured.operations.iter().map(|one| one.done).sum();
    assert_eq!(in_buckets, done);

    assert_eq!(measured.big_moves.len(), 2);
    assert!(measured.big_moves.iter().all(|big| big.error.is_none() && big.milliseconds.is_some() && big.below > 50));
    assert_eq!(measured.big_moves[1].to, None, "back to where it was: a root");
    assert!(measured.series.iter().any(|second| second.big_move));

    let creates = measured.operations.iter().find(|one| one.kind == Kind::Create).unwrap().done;
    assert_eq!(report.cleanup.deleted, creates);
    assert!(report.cleanup.moved_back > 0);
    assert_eq!(docs.fingerprint().await, before, "every row is as it was");
    let verified: bool = docs.session().await.client.query_one("SELECT authz.verify()", &[]).await.unwrap().get(0);
    assert!(verified, "the index is right after all of it");
    let text = report.text();
    assert!(text.contains("open-file") && text.contains("big move at"), "{text}");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["scenario"], "live");
    assert!(json["measured"]["series"].as_array().is_some_and(|series| series.len() >= 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_behind_a_locked_table_count_from_the_intended_start() {
    let docs = Docs::with(&small()).await;
    let handle = live::start(docs.options(50.0, 0.0));
    let mut snapshots = handle.snapshots.clone();
    snapshots.wait_for(|snapshot| snapshot.reads.done > 10).await.unwrap();
    docs.admin.batch_execute("BEGIN; LOCK TABLE app.files IN ACCESS EXCLUSIVE MODE").await.unwrap();
    tokio::time::sleep(Duration::from_millis(1000)).await;
    docs.admin.batch_execute("COMMIT").await.unwrap();
    let done = snapshots.borrow().reads.done;
    snapshots.wait_for(|snapshot| snapshot.reads.done > done + 60).await.unwrap();
    handle.commands.send(Command::Stop).await.unwrap();
    let report = handle.done.await.unwrap().unwrap();
    let slow: u64 = report.buckets.values().flatten().filter(|(micros, _)| *micros > 300_000).map(|(_, n)| n).sum();
    // 50 came in that second, and most waited 0.3 s or longer. Two connections that wait for their answers before they
    // go on would have seen two slow reads.
    assert!(slow >= 20, "{slow} slow reads: {:?}", report.measured.reads);
    assert!(report.measured.reads.missed >= 20, "{:?}", report.measured.reads);
    let service: Vec<_> = report.measured.operations.iter().map(|one| one.service.p50).collect();
    assert!(report.measured.errors.is_empty(), "{:?} {service:?}", report.measured.errors);
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_that_take_too_long_are_cut_off_and_counted() {
    let docs = Docs::with(&small()).await;
    let before = docs.fingerprint().await;
    let options = Options { cut_off: Duration::from_millis(200), ..docs.options(20.0, 20.0) };
    let handle = live::start(options);
    let mut snapshots = handle.snapshots.clone();
    snapshots.wait_for(|snapshot| snapshot.writes.done > 5).await.unwrap();
    docs.admin.batch_execute("BEGIN; LOCK TABLE app.folders IN ACCESS EXCLUSIVE MODE").await.unwrap();
    snapshots.wait_for(|snapshot| snapshot.writes.timeouts > 2).await.unwrap();
    docs.admin.batch_execute("COMMIT").await.unwrap();
    let done = snapshots.borrow().writes.done;
    snapshots.wait_for(|snapshot| snapshot.writes.done > done + 5).await.unwrap();
    // Nobody listens any more: as good as a stop.
    drop(handle.commands);
    let report = handle.done.await.unwrap().unwrap();
    let measured = &report.measured;
    let timeouts: u64 = measured.operations.iter().map(|one| one.timeouts).sum();
    assert_eq!(measured.errors["57014"].count, timeouts);
    assert_eq!(measured.errors.len(), 1, "{:?}", measured.errors);
    assert_eq!(measured.writes.latency.n, measured.writes.done, "a statement cut off has no latency");
    assert!(report.complete);
    assert_eq!(docs.fingerprint().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_counted_and_replaced() {
    let docs = Docs::with(&small()).await;
    let before = docs.fingerprint().await;
    let handle = live::start(docs.options(20.0, 20.0));
    let mut snapshots = handle.snapshots.clone();
    snapshots.wait_for(|snapshot| snapshot.writes.done > 5).await.unwrap();
    // The owner's connection too: taking back what was written needs a new one.
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                 WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
    let killed: i64 = docs.admin.query_one(kill, &[]).await.unwrap().get(0);
    assert!(killed >= 6, "{killed}");
    let done = snapshots.borrow().writes.done;
    snapshots.wait_for(|snapshot| snapshot.writes.done > done + 10 && snapshot.reads.done > done).await.unwrap();
    handle.commands.send(Command::Stop).await.unwrap();
    let report = handle.done.await.unwrap().unwrap();
    assert!(report.complete, "{:?}", report.failure);
    let codes: Vec<&String> = report.measured.errors.keys().collect();
    assert!(!codes.is_empty() && codes.iter().all(|code| ["57P01", "lost"].contains(&code.as_str())), "{codes:?}");
    assert_eq!(docs.fingerprint().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_development_database_is_written_to_and_only_by_one_run() {
    let docs = Docs::with(&Dataset::new(Size::Tiny, 1)).await;
    let first = live::start(docs.options(1.0, 1.0));
    first.snapshots.clone().wait_for(|snapshot| snapshot.phase == Phase::Running).await.unwrap();
    let second = run(docs.options(1.0, 1.0), 1.0, &[]).await.unwrap_err();
    assert!(second.to_string().contains("another benchmark"), "{second}");
    first.commands.send(Command::SetRates { reads: 20.0, writes: 20.0 }).await.unwrap();
    first.snapshots.clone().wait_for(|snapshot| snapshot.writes.done > 5).await.unwrap();
    first.commands.send(Command::Stop).await.unwrap();
    assert!(first.done.await.unwrap().unwrap().complete);

    docs.admin.batch_execute("UPDATE authz.settings SET value = 'false' WHERE key = 'development'").await.unwrap();
    let before = docs.fingerprint().await;
    let error = run(docs.options(5.0, 5.0), 1.0, &[]).await.unwrap_err();
    assert!(matches!(error, BenchError::Db(DbError::NotDevelopment(_))), "{error}");
    let mut options = docs.options(5.0, 5.0);
    options.target.production = true;
    let error = run(options, 1.0, &[]).await.unwrap_err();
    assert!(error.to_string().contains("production"), "{error}");
    assert_eq!(docs.fingerprint().await, before);

    let bare = Docs::bare().await;
    let error = run(bare.options(5.0, 5.0), 1.0, &[]).await.unwrap_err();
    assert!(matches!(error, BenchError::Db(DbError::NoPolicy(_))), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_run_keeps_what_it_measured_and_says_so() {
    let docs = Docs::with(&small()).await;
    let before = docs.fingerprint().await;
    let plan = Plan { seconds: 60.0, big_moves: Vec::new() };
    let (interrupt, interrupted) = tokio::sync::oneshot::channel::<String>();
    let mut interrupt = Some(interrupt);
    let interrupted = async { interrupted.await.unwrap() };
    let report = run_headless(docs.options(20.0, 20.0), &plan, interrupted, |snapshot| {
        if snapshot.writes.done > 10
            && let Some(interrupt) = interrupt.take()
        {
            interrupt.send("stopped by SIGINT".to_owned()).unwrap();
        }
    })
    .await
    .unwrap();
    assert!(!report.complete);
    assert_eq!(report.failure.as_deref(), Some("stopped by SIGINT"));
    assert!(report.measured.writes.done > 10);
    assert_eq!(docs.fingerprint().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_closure_baseline_stays_exact() {
    let docs = Docs::bare().await;
    let session = docs.session().await;
    let owner = &session.client;
    let data = Dataset::grown(Shape { folders: 120, levels: 6, files_per_folder: 0, held: 12, orgs: 2 }, 1);
    load::load_dataset(owner, &data, &Reporter::silent()).await.unwrap();
    bench::versus::build_closure(owner).await.unwrap();
    let mut rng = Rng::new(5);
    for step in 0..150 {
        let mut folder = || 1 + rng.below(120);
        let (a, b, c) = (folder(), folder(), folder());
        let write = match rng.below(10) {
            0..2 => format!(
                "INSERT INTO app.folders (org_id, parent_id, owner_id, name) SELECT 1, id, 1, 'new' FROM app.folders WHERE id = {a}"
            ),
            // Columns may form rings here: there is no policy to refuse them.
            2..5 => {
                format!("UPDATE app.folders SET parent_id = (SELECT id FROM app.folders WHERE id = {b}) WHERE id = {a}")
            }
            5 => format!("UPDATE app.folders SET inherit = NOT inherit WHERE id IN ({a}, {b})"),
            6..8 => format!(
                "INSERT INTO app.folder_links SELECT f.id, s.id FROM app.folders f, app.folders s
                  WHERE f.id IN ({a}, {c}) AND s.id = {b} ON CONFLICT DO NOTHING"
            ),
            8 => format!("DELETE FROM app.folder_links WHERE folder_id = {a} OR shown_in = {b}"),
            _ => format!(
                "DELETE FROM app.folders WHERE id = {a} AND (SELECT count(*) FROM app.folders WHERE parent_id = {a}) < 3"
            ),
        };
        owner.batch_execute(&write).await.unwrap();
        let exact: bool =
            owner.query_one("SELECT closure.edit_exact() AND closure.view_exact()", &[]).await.unwrap().get(0);
        assert!(exact, "step {step}: {write}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_closure_baseline_stays_exact_when_sessions_race() {
    let docs = Docs::bare().await;
    let owner = docs.session().await.client;
    let data = Dataset::grown(Shape { folders: 300, levels: 8, files_per_folder: 0, held: 12, orgs: 2 }, 1);
    load::load_dataset(&owner, &data, &Reporter::silent()).await.unwrap();
    bench::versus::build_closure(&owner).await.unwrap();
    let mut sessions = Vec::new();
    for number in 0..8 {
        let client = docs.database.connect_as(&docs.owner).await;
        sessions.push(tokio::spawn(async move {
            let mut rng = Rng::split(9, "closure races", number);
            let mut done = 0;
            for _ in 0..40 {
                let (a, b) = (1 + rng.below(300), 1 + rng.below(300));
                let write = match rng.below(10) {
                    0..5 => {
                        format!("INSERT INTO app.folders (org_id, parent_id, owner_id, name) VALUES (1, {b}, 1, 'new')")
                    }
                    5..8 => format!("UPDATE app.folders SET parent_id = {b} WHERE id = {a}"),
                    8 => format!("INSERT INTO app.folder_links VALUES ({a}, {b}) ON CONFLICT DO NOTHING"),
                    _ => format!("DELETE FROM app.folder_links WHERE folder_id = {a}"),
                };
                // Two sessions may meet on rows of the tables themselves; whoever is sent away may try again.
                match client.batch_execute(&write).await {
                    Ok(()) => done += 1,
                    Err(error) => assert!(["40P01", "40001"].contains(&error.code().unwrap().code()), "{error:?}"),
                }
            }
            done
        }));
    }
    for session in sessions {
        assert!(session.await.unwrap() > 10);
    }
    let exact: bool =
        owner.query_one("SELECT closure.edit_exact() AND closure.view_exact()", &[]).await.unwrap().get(0);
    assert!(exact);
    let old = "BEGIN ISOLATION LEVEL REPEATABLE READ; UPDATE app.folders SET parent_id = 1 WHERE id = 9";
    let refused = owner.batch_execute(old).await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "40001", "{refused:?}");
}
