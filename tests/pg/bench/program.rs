//! The program itself: its exit codes, what it keeps when it is interrupted, what it refuses.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rowdeck::bench::run;
use rowdeck::bench::seed::{self, Spec};
use rowdeck::bench::soak::{self, Event};
use rowdeck::bench::{compare, page, result};
use rowdeck::db::cancel::Stop;
use rowdeck::db::progress::Reporter;
use serde_json::Value;

use super::{Docs, schema, small};

impl Docs {
    fn program(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rowdeck"));
        let plan = self.plan("check");
        command.args(&plan.program.1).arg("bench").args(arguments).stdin(Stdio::null());
        command
    }

    fn bench(&self, arguments: &[&str]) -> Output {
        self.program(arguments).output().unwrap()
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn said(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_run_is_kept_marked_and_exits_1() {
    let docs = Docs::with(&small()).await;
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("partial.json");
    let path = out.to_str().unwrap();
    let fixed = ["run", "create", "--rate", "20", "--concurrency", "2", "--seconds", "10m", "--out", path];
    let before = docs.fingerprint().await;
    let mut child =
        docs.program(&[&fixed[..], &["--warm-up", "50ms"]].concat()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut seen = Vec::new();
    // Lines of the second second on: something was measured by then.
    for line in lines {
        let second = line.contains("/s   p95");
        seen.push(line);
        if second && seen.iter().filter(|line| line.contains("/s   p95")).count() == 2 {
            kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(1), "{seen:#?}");
    let kept = read(&out);
    assert_eq!((&kept["complete"], &kept["failure"]), (&Value::Bool(false), &Value::from("stopped by SIGINT")));
    assert!(kept["operations"].as_u64().unwrap() > 5, "{kept}");
    assert!(kept["environment"]["program_sha256"].as_str().is_some_and(|hash| hash.len() == 64));
    schema::check(&kept);
    assert_eq!(docs.fingerprint().await, before, "what it wrote is taken back");

    // A path that is used is refused before anything is measured.
    let again = docs.bench(&fixed);
    assert_eq!(again.status.code(), Some(2), "{}", said(&again));
    assert!(said(&again).contains("not written over"), "{}", said(&again));

    // Before measuring began there is nothing to keep.
    let early = folder.path().join("early.json");
    let arguments = ["run", "check", "--concurrency", "2", "--warm-up", "10m", "--out", early.to_str().unwrap()];
    let mut child = docs.program(&arguments).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("warming up")));
    std::thread::sleep(Duration::from_millis(300));
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(!early.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_stay_in_the_table_with_the_servers_words_and_exit_3() {
    let docs = Docs::with(&small()).await;
    docs.admin.batch_execute("REVOKE SELECT ON app.files FROM app_user").await.unwrap();
    let quick = ["run", "open-file", "--concurrency", "2", "--warm-up", "20ms", "--seconds", "300ms"];
    let failed = docs.bench(&quick);
    assert_eq!(failed.status.code(), Some(3), "{}", said(&failed));
    assert!(said(&failed).contains("permission denied for table files"), "{}", said(&failed));
    let failed = docs.bench(&[&quick[..], &["--json"]].concat());
    let json: Value = serde_json::from_slice(&failed.stdout).unwrap();
    assert!(json["outcomes"]["sqlstate_42501"]["count"].as_u64().unwrap() > 0, "{json}");
    assert_eq!(json["complete"], true);
    docs.admin.batch_execute("GRANT SELECT ON app.files TO app_user").await.unwrap();

    docs.admin.batch_execute("UPDATE authz.settings SET value = 'false' WHERE key = 'development'").await.unwrap();
    for refused in [&["run", "check"][..], &["soak", "check"], &["clean", "--seed", "1"]] {
        let refused = docs.bench(refused);
        assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
        assert!(said(&refused).contains("not marked as a development database"), "{}", said(&refused));
    }
    for wrong in [
        &["run", "no-such-scenario"][..],
        &["run", "check", "--concurrency", "0"],
        &["run", "check", "--seed-file", "/no/such/file"],
        &["soak", "check", "--for", "0"],
        &["soak", "check", "--for", "1m", "--event", "vacuum@2m"],
        &["run", "scale"],
        &["regress"],
    ] {
        let wrong_usage = docs.bench(wrong);
        let code = if wrong.contains(&"--seed-file") { 1 } else { 2 };
        assert_eq!(wrong_usage.status.code(), Some(code), "{wrong:?}: {}", said(&wrong_usage));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_server_ends_the_run_with_what_it_has() {
    let docs = Docs::with(&small()).await;
    let plan = run::Plan {
        measure: Duration::from_secs(60),
        patience: Duration::from_millis(500),
        until: None,
        ..docs.plan("check")
    };
    let name = docs.database.name.clone();
    let admin = crate::server::Database { name: "postgres".to_owned() }.connect().await;
    let shut = async {
        let count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rowdeck bench' AND datname = $1";
        while admin.query_one(count, &[&name]).await.unwrap().get::<_, i64>(0) < 4 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(700)).await;
        admin.batch_execute(&format!("ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")).await.unwrap();
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                    WHERE application_name = 'rowdeck bench' AND datname = $1";
        admin.query_one(end, &[&name]).await.unwrap();
    };
    let (never, silent) = (Stop::never(), Reporter::silent());
    let (result, ()) = tokio::join!(run::run(&plan, &never, &silent), shut);
    let result = result.unwrap();
    assert!(!result.complete && result.exit_code() == 1, "{}", result.text());
    assert!(result.failure.as_deref().unwrap().contains("the server was lost"), "{:?}", result.failure);
    assert!(result.operations > 0 && result.duration_s < 30.0, "{}", result.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stall_counts_against_every_operation_that_was_due() {
    let docs = Docs::with(&small()).await;
    let plan = run::Plan {
        rate: Some(100.0),
        concurrency: 2,
        measure: Duration::from_millis(2500),
        until: None,
        ..docs.plan("open-file")
    };
    let stall = async {
        let count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rowdeck bench'";
        while docs.admin.query_one(count, &[]).await.unwrap().get::<_, i64>(0) < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(600)).await;
        docs.admin.batch_execute("BEGIN; LOCK TABLE app.files IN ACCESS EXCLUSIVE MODE").await.unwrap();
        tokio::time::sleep(Duration::from_millis(1000)).await;
        docs.admin.batch_execute("COMMIT").await.unwrap();
    };
    let (never, silent) = (Stop::never(), Reporter::silent());
    let (result, ()) = tokio::join!(run::run(&plan, &never, &silent), stall);
    let result = result.unwrap();
    let slow: u64 = result.histogram.iter().filter(|one| one.le_us > 300_000).map(|one| one.count).sum();
    // A hundred came in that second. A closed loop on two connections would have seen two slow ones.
    assert!(slow >= 40, "{}", result.text());
    assert!(result.missed_starts >= 40, "{}", result.text());
    assert!(result.latency_ms.p95.unwrap() > 300.0 && result.service_ms.p50.unwrap() < result.latency_ms.p95.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seed_makes_the_same_rows_conflicts_with_itself_and_can_be_removed() {
    let docs = Docs::with(&small()).await;
    let before = docs.fingerprint().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("seed.json");
    let numbers = ["--users", "60", "--orgs", "5", "--large", "40", "--group", "10", "--teams", "12"];
    let more =
        ["--folders", "200", "--files", "500", "--services", "2", "--seed", "7", "--out", file.to_str().unwrap()];
    let seed = [&["seed"][..], &numbers, &more].concat();
    let made = docs.bench(&seed);
    assert_eq!(made.status.code(), Some(0), "{}", said(&made));
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(read(&file)["prefix"], "b7-");
    let rows = "SELECT md5(string_agg(row, '|' ORDER BY row)) FROM (
        SELECT f.name || coalesce(p.name, '') || u.name || f.inherit AS row FROM app.folders f
          LEFT JOIN app.folders p ON p.id = f.parent_id JOIN app.users u ON u.id = f.owner_id WHERE starts_with(f.name, 'b7-')
        UNION ALL SELECT d.name || f.name || d.confidential FROM app.files d JOIN app.folders f ON f.id = d.folder_id
          WHERE starts_with(d.name, 'b7-')
        UNION ALL SELECT t.name || u.name FROM app.team_members m JOIN app.teams t ON t.id = m.team_id
          JOIN app.users u ON u.id = m.user_id WHERE starts_with(t.name, 'b7-')) AS all_rows";
    let first: String = docs.admin.query_one(rows, &[]).await.unwrap().get(0);
    let counts = "SELECT count(*) FROM app.folders WHERE starts_with(name, 'b7-')
        UNION ALL SELECT count(*) FROM app.files WHERE starts_with(name, 'b7-')
        UNION ALL SELECT count(*) FROM app.users WHERE starts_with(name, 'b7-')";
    let counts: Vec<i64> = docs.admin.query(counts, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(counts, [200, 500, 62]);

    let used = docs.bench(&seed);
    assert_eq!(used.status.code(), Some(2), "the file is there: {}", said(&used));
    let target = docs.plan("check").target;
    let spec =
        Spec { users: 60, orgs: 5, large: 40, group: 10, teams: 12, folders: 200, files: 500, services: 2, seed: 7 };
    let conflict = seed::seed(&target, &spec, &Reporter::silent()).await.unwrap_err().to_string();
    assert!(conflict.contains("already") && conflict.contains("b7-"), "{conflict}");

    let (prefix, value) = seed::read_file(&file).unwrap();
    let plan = run::Plan { only: Some((prefix, value)), ..docs.plan("check") };
    let measured = run::run(&plan, &Stop::never(), &Reporter::silent()).await.unwrap();
    assert!(measured.criterion.met, "{}", measured.text());
    assert_eq!((&measured.data["folders"], &measured.data["seed_file"]["users"]), (&200.into(), &60.into()));

    let cleaned = docs.bench(&["clean", "--seed", "7"]);
    assert_eq!(cleaned.status.code(), Some(0), "{}", said(&cleaned));
    assert_eq!(docs.fingerprint().await, before);
    seed::seed(&target, &spec, &Reporter::silent()).await.unwrap();
    let second: String = docs.admin.query_one(rows, &[]).await.unwrap().get(0);
    assert_eq!(first, second, "the same numbers make the same rows");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_soak_measures_in_windows_with_events_and_a_page_tells_of_it() {
    let docs = Docs::with(&small()).await;
    let before = docs.fingerprint().await;
    let plan = docs.plan("mixed");
    let ms = Duration::from_millis;
    let events = [(Event::Vacuum, ms(100)), (Event::Dump, ms(300))];
    let soaked = soak::run(&plan, ms(2500), ms(1000), &events, &Stop::never(), &Reporter::silent()).await.unwrap();
    assert!(soaked.complete && soaked.criterion.met, "{}", soaked.text());
    let lengths: Vec<f64> = soaked.windows.iter().map(|one| one.duration_s).collect();
    assert!(lengths.len() == 3 && lengths[2] < 0.95 * lengths[0], "the last window is shortened: {lengths:?}");
    assert!(soaked.windows.iter().all(|one| one.operations > 0));
    assert!(
        soaked.events.len() == 2 && soaked.events.iter().all(|one| one.began_s >= one.planned_s),
        "{:?}",
        soaked.events
    );
    schema::check(&serde_json::to_value(&soaked).unwrap());
    assert_eq!(docs.fingerprint().await, before);

    // A switch of the policy in force: nobody is told anything wrong meanwhile, though the server may send somebody away.
    let policy = [(Event::Policy, ms(200))];
    let switched = soak::run(&plan, ms(1500), ms(800), &policy, &Stop::never(), &Reporter::silent()).await.unwrap();
    assert_eq!(switched.events[0].failure, None);
    let labels: Vec<&String> = switched.windows.iter().flat_map(|one| one.outcomes.keys()).collect();
    let fine = |label: &str| ["ok", "refused", "exhausted", "sqlstate_40P01"].iter().any(|end| label.ends_with(end));
    assert!(labels.iter().all(|label| fine(label)), "{labels:?}");

    // A planted fault is found in the windows it touches.
    docs.admin
        .batch_execute("CREATE POLICY fault ON app.folders AS RESTRICTIVE FOR INSERT TO app_user WITH CHECK (false)")
        .await
        .unwrap();
    let broken = soak::run(&plan, ms(1500), ms(1500), &[], &Stop::never(), &Reporter::silent()).await.unwrap();
    assert_eq!(broken.exit_code(), 3, "{}", broken.text());
    docs.admin.batch_execute("DROP POLICY fault ON app.folders").await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    let check = run::Plan { warm_up: ms(20), measure: ms(200), ..docs.plan("check") };
    let compared =
        compare::run((&check, "a"), (&check, "the same"), 2, &Stop::never(), &Reporter::silent()).await.unwrap();
    assert!(compared.complete && compared.ratios["p50_ms"].pairs.len() == 2, "{}", compared.text());
    schema::check(&serde_json::to_value(&compared).unwrap());
    result::save(&folder.path().join("soak.json"), &soaked).unwrap();
    result::save(&folder.path().join("aa.json"), &compared).unwrap();
    result::save(&folder.path().join("window.json"), &soaked.windows[0]).unwrap();
    let out = folder.path().join("page.md");
    let arguments = ["report", folder.path().to_str().unwrap(), "--out", out.to_str().unwrap()];
    let made = docs.bench(&arguments);
    assert_eq!(made.status.code(), Some(0), "{}", said(&made));
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.contains("(soak of mixed)") && text.contains("(comparison, check)"), "{text}");
    for (name, _) in page::page(&page::read(folder.path()).unwrap(), "page").charts {
        assert!(folder.path().join("page").join(&name).is_file(), "{name}");
    }
    assert_eq!(docs.bench(&arguments).status.code(), Some(2), "a page is not written over");
}
