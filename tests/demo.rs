//! `rowdeck demo` from outside, and an operator's round on the server that `--keep` leaves running.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

struct Run {
    code: i32,
    out: String,
    err: String,
}

/// A demo's folder, where the server's user can reach it when the tests run as root.
struct Demo {
    outer: tempfile::TempDir,
}

impl Demo {
    fn new() -> Demo {
        let outer = tempfile::Builder::new().prefix("rd-").tempdir_in("/tmp").unwrap();
        std::fs::set_permissions(outer.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Demo { outer }
    }

    fn folder(&self) -> PathBuf {
        self.outer.path().join("demo")
    }

    fn run(&self, arguments: &[&str]) -> Run {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rowdeck"));
        for (name, _) in std::env::vars() {
            if name.starts_with("PG") {
                command.env_remove(name);
            }
        }
        command.env("XDG_STATE_HOME", self.outer.path().join("state")).current_dir(self.outer.path());
        let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Run { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }

    fn demo(&self, more: &[&str]) -> Run {
        let folder = self.folder();
        let mut arguments = vec!["demo", "--headless", "--size", "tiny", "--dir", folder.to_str().unwrap()];
        arguments.extend(more);
        self.run(&arguments)
    }

    /// Runs a command on the server as `role`.
    fn ask(&self, role: &str, arguments: &[&str]) -> Run {
        let db = format!("postgresql:///docs?host={}&user={role}", self.folder().join("run").display());
        self.run(&[&["--db", &db], arguments].concat())
    }

    fn sql(&self, role: &str, sql: &str) {
        let target = rowdeck::db::target::Target::socket(self.folder().join("run"), 5432, role, "docs");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            rowdeck::db::connect::client(&target).await.unwrap().batch_execute(sql).await.unwrap();
        });
    }

    fn policy(&self, from: &str, to: &str) -> String {
        let text = std::fs::read_to_string(self.folder().join("docs.authz")).unwrap();
        assert!(text.contains(from));
        let path = self.outer.path().join("changed.authz");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// Stops the server that `--keep` leaves, also after a failure.
impl Drop for Demo {
    fn drop(&mut self) {
        if running(&self.folder()) {
            self.demo(&[]);
        }
    }
}

fn running(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        matches!(rowdeck::db::embedded::read_pid_file(&entry.path()), rowdeck::db::embedded::PidFile::Running(_))
    })
}

#[test]
fn the_whole_round_prints_what_it_did_and_stops_the_server() {
    let demo = Demo::new();
    let run = demo.demo(&["--json"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&report), ["server_version", "apply", "verify", "tests"]);
    assert_eq!(keys(&report["apply"]), ["seconds", "rows_built", "unchanged"]);
    assert_eq!(keys(&report["verify"]), ["ok", "checked", "wrong", "seconds"]);
    assert_eq!(keys(&report["tests"]), ["passed", "failed"]);
    assert_eq!((&report["apply"]["unchanged"], &report["verify"]["ok"]), (&false.into(), &true.into()));
    assert!(report["apply"]["rows_built"].as_u64().unwrap() > 0 && report["verify"]["checked"].as_u64().unwrap() > 0);
    assert!(report["tests"]["passed"].as_u64().unwrap() >= 25 && report["tests"]["failed"] == 0);
    assert!(!running(&demo.folder()));

    let again: Value = serde_json::from_str(&demo.demo(&["--json"]).out).unwrap();
    assert_eq!((&again["apply"]["unchanged"], &again["apply"]["rows_built"]), (&true.into(), &0.into()));

    let folder = demo.folder();
    let other = demo.run(&["demo", "--headless", "--size", "dev", "--dir", folder.to_str().unwrap()]);
    assert!(other.code == 2 && other.err.contains("size tiny"), "{}", other.err);
    assert!(!running(&demo.folder()));
}

#[test]
fn an_operators_round_on_a_kept_server() {
    let demo = Demo::new();
    assert_eq!(demo.demo(&["--keep"]).code, 0);
    assert!(running(&demo.folder()));
    asking(&demo);
    a_stale_row_is_named_and_mended(&demo);
    applying(&demo);
    roles_that_may_not(&demo);
    // Without --keep the server that ran on is used, and stopped.
    assert_eq!(demo.demo(&[]).code, 0);
    assert!(!running(&demo.folder()));
}

fn asking(demo: &Demo) {
    let who = demo.ask("rowdeck_owner", &["who", "folder", "2", "view", "--json"]);
    let people: Vec<Value> = who.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(who.code == 0 && !people.is_empty(), "{}", who.err);
    let all = demo.ask("rowdeck_owner", &["list", "folder", "view", "--as", "user:1"]);
    let seen = demo.ask("rowdeck_owner", &["sees", "folder", "--as", "user:1"]);
    let ids: Vec<&str> = seen.out.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(all.out.lines().collect::<Vec<_>>(), ids);
    assert!(!ids.is_empty());
    for person in &people {
        let one = format!("user:{}", person["id"].as_str().unwrap());
        let can = demo.ask("rowdeck_owner", &["can", "folder", "2", "view", "--as", &one]);
        assert_eq!((can.code, can.out.as_str()), (0, "yes\n"), "{one}");
        let why = demo.ask("rowdeck_owner", &["why", "folder", "2", "view", "--as", &one]);
        assert!(why.code == 0 && why.out.starts_with("yes"), "{one}: {}", why.out);
        let perms = demo.ask("rowdeck_owner", &["perms", "folder", "2", "--as", &one]);
        assert!(perms.out.lines().any(|line| line == "view"), "{one}: {}", perms.out);
    }
    let nobody = demo.ask("rowdeck_owner", &["can", "folder", "2", "view", "--as", "nobody"]);
    assert_eq!((nobody.code, nobody.out.as_str()), (1, "no\n"));
    let first = demo.ask("rowdeck_owner", &["list", "folder", "view", "--as", "user:1", "--limit", "1"]);
    assert!(first.out.lines().count() == 1 && first.err.contains(&format!("--after '{}'", ids[0])), "{}", first.err);
    let unknown = demo.ask("rowdeck_owner", &["can", "folder", "2", "vew", "--as", "user:1"]);
    assert!(unknown.code == 2 && unknown.err.contains("share, edit, view"), "{}", unknown.err);
    let none = demo.ask("rowdeck_owner", &["who", "folder", "999999999", "view"]);
    assert_eq!((none.code, none.out.as_str(), none.err.as_str()), (1, "", "there is no folder 999999999\n"));
    let none = demo.ask("rowdeck_owner", &["why", "folder", "2", "view", "--as", "user:999999999"]);
    assert_eq!((none.code, none.out.as_str(), none.err.as_str()), (1, "", "there is no user 999999999\n"));
}

fn a_stale_row_is_named_and_mended(demo: &Demo) {
    demo.sql(
        "postgres",
        "SET session_replication_role = replica;
         UPDATE app.folders SET parent_id = NULL
          WHERE id = (SELECT max(id) FROM app.folders WHERE parent_id IS NOT NULL AND inherit)",
    );
    let wrong = demo.ask("rowdeck_owner", &["verify", "--json"]);
    let report: Value = serde_json::from_str(&wrong.out).unwrap();
    assert_eq!((wrong.code, &report["ok"]), (1, &false.into()));
    assert_eq!(report["wrong"][0]["type"], "folder");
    let mended = demo.ask("rowdeck_owner", &["verify", "--repair", "--json"]);
    let report: Value = serde_json::from_str(&mended.out).unwrap();
    assert_eq!((mended.code, &report["ok"]), (0, &true.into()), "{}", mended.err);
}

fn applying(demo: &Demo) {
    let changed = demo.policy("can share = owner or org.admin", "can share = owner");
    let plan = demo.ask("rowdeck_owner", &["plan", &changed]);
    assert!(plan.code == 0 && plan.out.contains("changed"), "{}{}", plan.out, plan.err);
    // Nobody can be asked here, so nothing is done.
    assert_eq!(demo.ask("rowdeck_owner", &["apply", &changed]).code, 2);
    let applied = demo.ask("rowdeck_owner", &["apply", "--yes", "--json", &changed]);
    let report: Value = serde_json::from_str(&applied.out).unwrap();
    assert_eq!((applied.code, &report["unchanged"]), (0, &false.into()), "{}", applied.err);
    let again = demo.ask("rowdeck_owner", &["apply", "--yes", &changed]);
    assert!(again.code == 0 && again.out.starts_with("unchanged"), "{}", again.out);
    // The tests of the policy say what no longer holds.
    let tests = demo.ask("rowdeck_owner", &["test", &changed]);
    assert!(tests.code == 1 && tests.out.contains("failed: "), "{}{}", tests.out, tests.err);
    demo.sql("rowdeck_owner", "UPDATE authz.settings SET value = 'false' WHERE key = 'development'");
    let tests = demo.ask("rowdeck_owner", &["test", &changed]);
    assert!(tests.code == 1 && tests.err.contains("[AZ610]"), "{}", tests.err);
    demo.sql("rowdeck_owner", "UPDATE authz.settings SET value = 'true' WHERE key = 'development'");
}

fn roles_that_may_not(demo: &Demo) {
    let changed = demo.policy("can edit  = share or editor", "can edit  = share");
    let before = demo.ask("rowdeck_owner", &["plan", "--json", &changed]).out;
    for role in ["rowdeck_ro", "app_user"] {
        let run = demo.ask(role, &["apply", "--yes", &changed]);
        assert!(run.code == 1 && run.err.lines().last().unwrap().starts_with("rowdeck: "), "{role}: {}", run.err);
    }
    assert_eq!(demo.ask("rowdeck_owner", &["plan", "--json", &changed]).out, before);
    // What is in force already needs nothing that this role lacks.
    let in_force = demo.outer.path().join("in_force.authz");
    let policy = demo.policy("can share = owner or org.admin", "can share = owner");
    std::fs::rename(policy, &in_force).unwrap();
    let same = demo.ask("rowdeck_ro", &["apply", "--yes", in_force.to_str().unwrap()]);
    assert!(same.code == 0 && same.out.starts_with("unchanged") && same.err.is_empty(), "{}{}", same.out, same.err);
    let reader = demo.ask("rowdeck_ro", &["can", "folder", "2", "view", "--as", "user:1"]);
    assert!(reader.err.is_empty(), "{}", reader.err);
    let app = demo.ask("app_user", &["can", "folder", "2", "view", "--as", "user:1"]);
    assert!(app.code == 1 && app.err.contains("may not read the policy in force"), "{}", app.err);
}
