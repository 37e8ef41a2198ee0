//! The benchmarks with a server of their own, shortly.

use std::process::Command;
use std::time::Duration;

use rowdeck::bench::generate::Size;
use rowdeck::bench::run;
use rowdeck::bench::scale::{self, ScaleSize, regress};
use rowdeck::bench::scenarios::find;
use rowdeck::bench::soak::{self, Event};
use rowdeck::bench::versus;
use rowdeck::db::cancel::Stop;
use rowdeck::db::progress::Reporter;
use rowdeck::db::target::Target;

use super::schema;

#[tokio::test(flavor = "multi_thread")]
async fn scale_judges_the_gate_the_lists_and_verify() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("kept");
    let options = scale::Options {
        step: Duration::from_millis(900),
        reads: 60.0,
        clients: vec![1, 4],
        folder: Some(data),
        keep: true,
        ..scale::Options::new(ScaleSize::Folders(400))
    };
    let report = scale::run(&options, &Stop::never(), &Reporter::silent()).await.unwrap();
    let result = report.result();
    assert!(result.complete && result.criterion.met, "{}", result.text());
    assert_eq!(result.targets.len(), 3, "{}", result.text());
    assert!(result.targets["gate: failed tree writes"].met);
    assert!(result.notes.iter().any(|note| note.contains("reads scaled to 60")), "{:?}", result.notes);
    assert!(report.steps.clients.len() == 2 && report.steps.lists.len() == 2);
    assert!(!report.steps.big_move.as_ref().unwrap().measured.big_moves.is_empty());
    schema::check(&serde_json::to_value(&result).unwrap());

    // On the kept one, whose index is now wrong in one place.
    let kept = result.notes.iter().find_map(|note| note.strip_prefix("kept: ")).unwrap();
    let target = Target::parse(kept, &|_| None).unwrap();
    let owner = rowdeck::db::connect::client(&target).await.unwrap();
    let spoil = "DO $$ DECLARE t text; BEGIN
        SELECT relname INTO t FROM pg_class WHERE relname ~ '^g[0-9a-f]{8}_node$' AND relkind = 'r' LIMIT 1;
        EXECUTE format('UPDATE authz_int.%I SET local = local || 1::bigint WHERE id = (SELECT max(id) FROM authz_int.%I)', t, t);
        END $$";
    owner.batch_execute(spoil).await.unwrap();
    let again = scale::Options { again: true, clients: Vec::new(), ..options.clone() };
    let result = scale::run(&again, &Stop::never(), &Reporter::silent()).await.unwrap().result();
    assert_eq!(result.exit_code(), 3);
    assert!(result.criterion.broken.iter().any(|one| one.contains("authz.verify() is false")), "{}", result.text());
    // The server goes down with all its connections and comes back.
    let check = run::Plan {
        concurrency: 2,
        warm_up: Duration::from_millis(20),
        ..run::Plan::new(find("check").unwrap(), target.clone())
    };
    let crash = [(Event::Crash, Duration::from_millis(300))];
    let (total, window) = (Duration::from_secs(4), Duration::from_secs(2));
    let crashed = soak::run(&check, total, window, &crash, &Stop::never(), &Reporter::silent()).await.unwrap();
    assert!(crashed.complete && crashed.events[0].failure.is_none(), "{}", crashed.text());
    let sent_away = |label: &String| label == "lost" || label.starts_with("sqlstate_57P");
    assert!(crashed.windows[0].outcomes.keys().any(sent_away), "{}", crashed.text());
    assert!(crashed.windows[1].outcomes.contains_key("ok"), "{}", crashed.text());
    assert_eq!(crashed.exit_code(), 3, "what failed meanwhile did fail");
    let twice = scale::run(&options, &Stop::never(), &Reporter::silent()).await.unwrap_err();
    assert!(twice.to_string().contains("--again"), "{twice}");
    drop(owner);
    // Taken up once more and not kept, it ends.
    let mut server =
        rowdeck::db::embedded::Server::start(options.folder.as_ref().unwrap(), &Reporter::silent()).await.unwrap();
    server.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn versus_closure_runs_and_judges_by_ratios() {
    let options = versus::Options { size: Size::Tiny, seed: 1, rounds: 1, step: Duration::from_millis(100) };
    let report = versus::run(&options, &Reporter::silent()).await.unwrap();
    for one in report.subjects.values() {
        assert!(one.creates_by_1[0] > 0.0 && one.creates_by_8[0] > 0.0 && one.failed == 0, "{one:?}");
        assert_eq!(one.big_moves.len(), 2);
    }
    assert_eq!(report.subjects["plain"].exact, None);
    assert_eq!(report.subjects["rowdeck"].exact, Some(true));
    assert!(report.subjects["closure"].index_bytes > 0);
    assert!(report.targets.len() >= 25, "{:?}", report.targets.keys());
    let result = report.result();
    assert!(result.complete && result.criterion.met, "{}", result.text());
    schema::check(&serde_json::to_value(&result).unwrap());
    let mut wrong = report.clone();
    wrong.subjects.get_mut("rowdeck").unwrap().exact = Some(false);
    let wrong = wrong.result();
    assert_eq!((wrong.criterion.met, wrong.exit_code()), (false, 3));
}

#[test]
fn regress_needs_a_baseline_and_can_record_one() {
    let folder = tempfile::tempdir().unwrap();
    let baseline = folder.path().join("baseline.json");
    let run = |more: &[&str]| {
        let fixed = ["bench", "regress", "--folders", "300", "--step", "600ms", "--rate", "100", "--baseline"];
        Command::new(env!("CARGO_BIN_EXE_rowdeck")).args(fixed).arg(&baseline).args(more).output().unwrap()
    };
    let none = run(&[]);
    assert_eq!(none.status.code(), Some(1), "{none:?}");
    assert!(String::from_utf8_lossy(&none.stderr).contains("--record"), "{none:?}");
    let recorded = run(&["--record"]);
    assert_eq!(recorded.status.code(), Some(0), "{recorded:?}");
    let kept = regress::read(&baseline).unwrap().unwrap();
    assert!(kept.verified && kept.p95_ms.contains_key("reads alone: open-file"), "{kept:?}");
}
