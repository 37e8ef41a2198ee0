//! The program from outside: what it prints, where, and its exit codes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::path::Path;
use std::process::{Command, Output, Stdio};

struct Run {
    code: i32,
    out: String,
    err: String,
}

/// Runs it in `folder` with none of the surroundings' databases.
fn rowdeck(folder: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowdeck"));
    for (name, _) in std::env::vars() {
        if name.starts_with("PG") {
            command.env_remove(name);
        }
    }
    command
        .current_dir(folder)
        .env("HOME", folder)
        .env_remove("XDG_CONFIG_HOME")
        .env("XDG_STATE_HOME", folder.join("state"));
    let Output { status, stdout, stderr } = command.args(arguments).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: status.code().unwrap(), out: text(stdout), err: text(stderr) }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

const GOOD: &str = "app role app\ntype user = s.users\ntype doc = s.docs\n  owner : user = owner_id\n  can view = owner\n\
                    rules s.docs\n  select : view\n";

#[test]
fn a_right_policy_is_0_and_a_wrong_one_is_1_with_its_place() {
    let folder = folder();
    std::fs::write(folder.path().join("good.authz"), GOOD).unwrap();
    let run = rowdeck(folder.path(), &["check", "good.authz"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", run.out);
    std::fs::write(folder.path().join("bad.authz"), GOOD.replace("owner : user", "owner : usr")).unwrap();
    let run = rowdeck(folder.path(), &["check", "bad.authz"]);
    assert_eq!(run.code, 1);
    assert!(run.out.starts_with("bad.authz:4:11: unknown type \"usr\""), "{}", run.out);
    assert!(run.out.contains("[AZ201]\n      owner : usr = owner_id\n              ~~~\n"), "{}", run.out);
    let run = rowdeck(folder.path(), &["check", "--json", "bad.authz"]);
    let list: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let first = &list[0];
    assert_eq!((run.code, &first["code"], &first["severity"]), (1, &"AZ201".into(), &"error".into()));
    assert_eq!((&first["line"], &first["column"], &first["end_column"]), (&4.into(), &11.into(), &14.into()));
    let keys: Vec<&str> = first.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["code", "severity", "file", "line", "column", "end_line", "end_column", "message", "help"]);
}

#[test]
fn the_policy_comes_from_rowdeck_toml_in_a_folder_above() {
    let folder = folder();
    std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
    std::fs::write(folder.path().join("p.authz"), GOOD).unwrap();
    std::fs::write(folder.path().join("rowdeck.toml"), "policy = \"p.authz\"\n").unwrap();
    assert_eq!(rowdeck(&folder.path().join("a/b"), &["check"]).code, 0);
    std::fs::write(folder.path().join("rowdeck.toml"), "polcy = \"p.authz\"\n").unwrap();
    let run = rowdeck(folder.path(), &["check"]);
    assert!(run.code == 2 && run.err.contains("rowdeck.toml:1:") && run.err.contains("polcy"), "{}", run.err);
}

#[test]
fn what_is_no_policy_ends_in_one_sentence() {
    let folder = folder();
    let noise: Vec<u8> = (0..100_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(folder.path().join("noise.authz"), &noise).unwrap();
    std::fs::write(folder.path().join("big.authz"), vec![b'a'; 10_000_000]).unwrap();
    for name in ["noise.authz", "big.authz", "none.authz", "."] {
        let run = rowdeck(folder.path(), &["check", name]);
        assert_eq!((run.code, run.out.as_str(), run.err.lines().count()), (1, "", 1), "{name}: {}", run.err);
        assert!(run.err.starts_with("rowdeck: "), "{}", run.err);
    }
    // Noise that happens to be text is many mistakes; they are cut.
    let text: String = noise.iter().map(|byte| char::from(byte % 94 + 32)).collect();
    std::fs::write(folder.path().join("text.authz"), text.replace('~', "\n")).unwrap();
    let run = rowdeck(folder.path(), &["check", "text.authz"]);
    assert!(run.code == 1 && run.out.lines().count() < 300, "{} lines", run.out.lines().count());
}

#[test]
fn without_a_server_there_is_one_sentence() {
    let folder = folder();
    let db = "postgresql://ann@127.0.0.1:1/docs";
    for arguments in
        [&["--db", db, "can", "doc", "1", "view", "--as", "user:1"][..], &["--db", db, "who", "doc", "1", "view"]]
    {
        let run = rowdeck(folder.path(), arguments);
        assert_eq!(run.code, 1);
        assert_eq!(run.err, "rowdeck: no server answers at 127.0.0.1:1 (connection refused)\n");
    }
}

#[test]
fn tests_refuse_production_without_a_look_at_it() {
    let folder = folder();
    let toml =
        "policy = \"docs.authz\"\n[targets.live]\nurl = \"postgresql://ann@127.0.0.1:1/docs\"\nproduction = true\n";
    std::fs::write(folder.path().join("rowdeck.toml"), toml).unwrap();
    std::fs::write(folder.path().join("docs.authz"), GOOD).unwrap();
    let run = rowdeck(folder.path(), &["--target", "live", "test"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    let said = "rowdeck: ann@127.0.0.1:1/docs is marked as production; tests write rows and refuse\n";
    assert_eq!(run.err, said);
}

#[test]
fn a_password_in_the_arguments_is_warned_about_and_never_shown() {
    let folder = folder();
    let run = rowdeck(folder.path(), &["--db", "postgresql://ann:hunter2@127.0.0.1:1/docs", "who", "doc", "1", "view"]);
    assert!(run.err.contains("other users can see the password") && !run.err.contains("hunter2"), "{}", run.err);
    let log: String = std::fs::read_dir(folder.path().join("state/rowdeck"))
        .unwrap()
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    assert!(log.contains("no server answers") && !log.contains("hunter2"), "{log}");
}

#[test]
fn wrong_usage_is_2() {
    let folder = folder();
    for arguments in [&["nonsense"][..], &["check"], &["can", "doc"], &["--db", "docs", "who", "doc", "1", "view"], &[]]
    {
        let run = rowdeck(folder.path(), arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.err);
        assert!(!run.err.is_empty());
    }
}

#[test]
fn codes_are_explained_and_lints_are_findings() {
    let folder = folder();
    let run = rowdeck(folder.path(), &["help", "az201"]);
    assert_eq!(run.code, 0);
    assert!(run.out.starts_with("# AZ201: ") && run.out.contains("This one does not:"), "{}", run.out);
    assert_eq!(rowdeck(folder.path(), &["help", "AZ999"]).code, 2);
    std::fs::write(folder.path().join("good.authz"), GOOD).unwrap();
    let run = rowdeck(folder.path(), &["lint", "--json", "good.authz"]);
    let list: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let views = list.as_array().unwrap().iter().find(|finding| finding["code"] == "AZ801").unwrap();
    assert!(views["message"].as_str().unwrap().contains(" view"), "{views}");
    let run = rowdeck(folder.path(), &["sql", "good.authz"]);
    assert!(run.code == 0 && run.out.contains("CREATE POLICY"), "{}", run.err);
}

#[test]
fn fmt_writes_what_it_sets_and_check_only_says() {
    let folder = folder();
    let path = folder.path().join("p.authz");
    let crooked = GOOD.replace("  owner : user = owner_id", "    owner:user=owner_id -- theirs");
    std::fs::write(&path, &crooked).unwrap();
    let run = rowdeck(folder.path(), &["fmt", "--check", "p.authz"]);
    assert_eq!((run.code, run.out.as_str()), (1, "p.authz is not formatted\n"), "{}", run.err);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), crooked);
    let run = rowdeck(folder.path(), &["fmt", "p.authz"]);
    assert_eq!((run.code, run.out.as_str()), (0, "p.authz is formatted\n"), "{}", run.err);
    assert!(std::fs::read_to_string(&path).unwrap().contains("\n  owner : user = owner_id  -- theirs\n"));
    assert_eq!(rowdeck(folder.path(), &["fmt", "--check", "p.authz"]).code, 0);
    std::fs::write(&path, "type user app.users\n").unwrap();
    let run = rowdeck(folder.path(), &["fmt", "p.authz"]);
    assert_eq!(run.code, 1);
    assert!(run.out.contains("[AZ101]") && run.err.contains("p.authz is left as it is"), "{}{}", run.out, run.err);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "type user app.users\n");
    let json: serde_json::Value =
        serde_json::from_str(&rowdeck(folder.path(), &["fmt", "--json", "p.authz"]).out).unwrap();
    assert_eq!((&json[0]["changed"], &json[0]["mistakes"][0]["code"]), (&false.into(), &"AZ101".into()));
}

#[test]
fn a_file_of_tests_holds_nothing_but_tests() {
    let folder = folder();
    std::fs::write(folder.path().join("p.authz"), GOOD).unwrap();
    std::fs::write(folder.path().join("t.authz"), "type more = s.more\ntest \"t\"\n  anyone can viwe doc 1\n").unwrap();
    std::fs::write(folder.path().join("rowdeck.toml"), "policy = \"p.authz\"\ntests = [\"t.authz\"]\n").unwrap();
    let run = rowdeck(folder.path(), &["test"]);
    assert_eq!(run.code, 1);
    assert!(run.out.contains("t.authz:1:6: a file of tests holds nothing but tests [AZ101]"), "{}", run.out);
    assert!(run.out.contains("t.authz:3:14: ") && run.out.contains("did you mean \"view\"?"), "{}", run.out);
}

#[test]
fn configuration_is_checked_and_what_is_wrong_is_named() {
    let folder = folder();
    let run = rowdeck(folder.path(), &["config", "check"]);
    assert_eq!(run.code, 0, "{}", run.out);
    std::fs::write(folder.path().join("rowdeck.toml"), "policy = \"no.authz\"\n[targets.a]\nurl = \"env:NOT_SET\"\n")
        .unwrap();
    let settings = folder.path().join(".config/rowdeck");
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(settings.join("config.toml"), "[keys]\n\"verify.run\" = \"n\"\n").unwrap();
    let run = rowdeck(folder.path(), &["config", "check"]);
    assert_eq!(run.code, 1);
    for words in ["there is no file", "NOT_SET", "n would mean both verify.step and verify.run"] {
        assert!(run.out.contains(words), "{words}: {}", run.out);
    }
}

#[test]
fn completions_and_the_man_page_are_made() {
    let folder = folder();
    for shell in ["bash", "zsh", "fish"] {
        let run = rowdeck(folder.path(), &["completions", shell]);
        assert!(run.code == 0 && run.out.contains("sql-as"), "{shell}: {}", run.err);
    }
    let man = rowdeck(folder.path(), &["man"]);
    assert!(man.code == 0 && man.out.contains(".TH rowdeck") && man.out.contains("read\\-only"), "{}", man.out);
}

#[test]
fn the_console_as_text_reads_screens_and_runs_commands_by_name() {
    use std::io::Write as _;
    let folder = folder();
    std::fs::write(folder.path().join("good.authz"), GOOD).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rowdeck"));
    command.current_dir(folder.path()).env("HOME", folder.path()).args(["--plain", "good.authz"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let input = "\ngo.sql\nsql.search\npolicy\nnonsense\nkeys 5r\nquit\n";
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let Output { status, stdout, .. } = child.wait_with_output().unwrap();
    let out = String::from_utf8(stdout).unwrap();
    assert!(status.success(), "{out}");
    for words in [
        "screen: Policy",
        "type doc = s.docs",
        "screen: SQL",
        "there is no command \"nonsense\"",
        "screen: Verify",
        "warning: no database",
    ] {
        assert!(out.contains(words), "{words} is not in:\n{out}");
    }
    assert!(!out.contains('│') && !out.contains('\u{1b}'), "{out}");
}
