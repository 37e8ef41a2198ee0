//! Every mistake has its code, its place and its words; one compile finds them all; nothing makes the compiler panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::collections::BTreeMap;

use rowdeck::compiler::codes;
use rowdeck::compiler::diagnostic::Diagnostic;
use rowdeck::compiler::include::NoFiles;
use rowdeck::compiler::{Compiled, compile, compile_bytes, compile_with};

/// The codes the policy's text alone can have, each of which must show a policy that has it.
const COMPILE_TIME: [std::ops::RangeInclusive<u16>; 7] =
    [101..=113, 199..=199, 201..=211, 301..=307, 401..=404, 501..=503, 803..=804];

fn findings(compiled: &Compiled) -> Vec<Diagnostic> {
    let mut all = compiled.diagnostics.clone();
    all.extend(compiled.lints(None));
    all
}

fn rendered(text: &str) -> String {
    let compiled = compile("docs.authz", text);
    let lines: Vec<String> = findings(&compiled).iter().map(|d| d.render(&compiled.sources)).collect();
    lines.join("\n")
}

fn codes_of(text: &str) -> Vec<u16> {
    findings(&compile("docs.authz", text)).iter().map(|d| d.code.0).collect()
}

#[test]
fn every_bad_policy_has_its_code_and_every_good_one_has_nothing() {
    let mut wrong = Vec::new();
    for info in codes::codes() {
        let Some(example) = &info.example else { continue };
        if !codes_of(example.bad).contains(&info.code) {
            wrong.push(format!("{}: the bad policy gives {}", info.name(), rendered(example.bad)));
        }
        if !codes_of(example.good).is_empty() {
            wrong.push(format!("{}: the good policy gives {}", info.name(), rendered(example.good)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_code_the_compiler_makes_shows_an_example() {
    for code in COMPILE_TIME.into_iter().flatten() {
        let info = codes::by_number(code).unwrap_or_else(|| panic!("AZ{code} is not in the table"));
        assert!(info.example.is_some(), "AZ{code} shows no example");
    }
}

/// The codes that only a server, a database's state or the run time raises: their pages show what raises them.
const RAISED: [std::ops::RangeInclusive<u16>; 6] = [601..=618, 624..=626, 701..=715, 801..=802, 805..=807, 820..=820];

#[test]
fn every_other_code_shows_what_raises_it() {
    for code in RAISED.into_iter().flatten() {
        let info = codes::by_number(code).unwrap_or_else(|| panic!("AZ{code} is not in the table"));
        assert!(info.example.is_none(), "AZ{code} shows a policy");
        assert!(codes::raised_by(code).is_some(), "nothing is said to raise AZ{code}");
        assert!(info.page().contains("This raises it"), "AZ{code}");
    }
    for info in codes::codes().filter(|info| info.code < 820) {
        let compiled = COMPILE_TIME.iter().any(|codes| codes.contains(&info.code));
        let raised = RAISED.iter().any(|codes| codes.contains(&info.code));
        assert!(compiled != raised, "{} is neither the compiler's nor raised, or both", info.name());
        assert!(compiled || info.example.is_none());
        assert!(!compiled || codes::raised_by(info.code).is_none());
    }
}

#[test]
fn codes_are_found_however_they_are_written() {
    for written in ["AZ304", "az304", "304"] {
        assert_eq!(codes::explain(written).unwrap().code, 304);
    }
    assert_eq!(codes::explain("AZ999"), None);
    assert_eq!(codes::explain("nonsense"), None);
    let numbers: Vec<u16> = codes::codes().map(|info| info.code).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "the codes stand in order, each once");
}

/// `UPDATE_DOCS=1 cargo test --test diagnostics` writes them.
#[test]
fn the_pages_about_codes_are_up_to_date() {
    let folder = std::path::Path::new("docs/codes");
    let pages: BTreeMap<String, String> = codes::pages().into_iter().collect();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(folder).unwrap();
        for (name, text) in &pages {
            std::fs::write(folder.join(name), text).unwrap();
        }
    }
    let written: BTreeMap<String, String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(path).unwrap()))
        .collect();
    assert!(written == pages, "docs/codes is stale; run UPDATE_DOCS=1 cargo test --test diagnostics");
}

/// Each policy in `tests/diagnostics` and everything that is said of it, as a terminal shows it.
#[test]
fn policies_with_many_mistakes_are_told_all_of_them() {
    let mut paths: Vec<_> = std::fs::read_dir("tests/diagnostics").unwrap().map(|e| e.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "authz"));
    paths.sort();
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let compiled = compile(&format!("{name}.authz"), &text);
        let lines: Vec<String> = findings(&compiled).iter().map(|d| d.render(&compiled.sources)).collect();
        insta::with_settings!({ prepend_module_to_snapshot => false, snapshot_path => "diagnostics", omit_expression => true }, {
            insta::assert_snapshot!(name, lines.join("\n"));
        });
    }
}

#[test]
fn a_mistake_is_shown_as_the_language_page_says() {
    let text = "app role app_user\ntype user = app.users\ntype note = app.notes\n  viewer : person = viewer_id\n  can view = viewer\n";
    let expected = "docs.authz:4:12: unknown type \"person\"; did you mean \"user\"? [AZ201]\n      viewer : person = viewer_id\n               ~~~~~~";
    assert_eq!(rendered(text), expected);
}

#[test]
fn a_finding_is_plain_data_with_columns_in_characters() {
    let text = "app role app_user\ntype user = app.users\ntype note = app.notes where {title <> 'žluť'} principle\n";
    let compiled = compile("p.authz", text);
    let finding = compiled.diagnostics[0].finding(&compiled.sources);
    let json = serde_json::to_value(&finding).unwrap();
    assert_eq!(json["code"], "AZ101");
    assert_eq!(json["severity"], "error");
    assert_eq!((&json["line"], &json["column"], &json["end_column"]), (&3.into(), &47.into(), &56.into()));
    let keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = ["code", "severity", "file", "line", "column", "end_line", "end_column", "message", "help"];
    assert_eq!(keys, expected);
    assert!(json["help"].is_string());
}

#[test]
fn what_is_printed_cannot_steer_the_terminal() {
    let text = "app role app_user\ntype user = app.users\n\u{1b}[2J\u{202e}evil : user = x\n";
    let shown = rendered(text);
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown:?}");
}

#[test]
fn a_long_line_is_cut_around_the_mistake() {
    let long = "author or ".repeat(100_000);
    let text = format!(
        "app role app_user\ntype user = app.users\ntype note = app.notes\n  author : user = a\n  can view = {long}autor\n"
    );
    let shown = rendered(&text);
    assert!(shown.contains("did you mean \"author\"?"), "{shown}");
    assert!(shown.len() < 500, "{}", shown.len());
}

#[test]
fn one_mistake_does_not_hide_or_cause_others() {
    // A header, a relation, a condition and a rule, each wrong once; everything that uses them stays silent.
    let text = "app role app_user\ntype user = app.users\ntype org app.orgs\n  admin : user = app.org_admins(org_id -> user_id)\n\
                type note = app.notes\n  org : org = org_id\n  author : user app.authors\n  can edit = org.admin or author or {a = (1}\n  can view = edit or\n\
                rules app.notes\n  select : view\n  insert edit\ntest\n  user 1 can view note 2\n";
    assert_eq!(codes_of(text), [101, 103, 102, 102, 105]);
}

#[test]
fn a_forgotten_brace_spoils_one_declaration() {
    let text = "app role app_user\ntype user = app.users\ntype note = app.notes\n  author : user = author_id\n\
                can_not : user = x\n  can view = author or {not hidden\n    and open\n  can edit = author or {open}\n\
                rules app.notes\n  select : view\n  update : edt\n";
    assert_eq!(codes_of(text), [101, 102, 203]);
}

#[test]
fn includes_are_read_once_and_from_inside_the_folder() {
    let files: BTreeMap<String, String> = [
        ("types/people.authz", "type user = app.users\ninclude \"notes.authz\"\ninclude \"../more.authz\"\n"),
        ("types/notes.authz", "type note = app.notes\n  author : usr = a\n"),
        ("more.authz", "include \"types/people.authz\"\ninclude \"types/../../up.authz\"\n"),
    ]
    .map(|(name, text)| (name.to_owned(), text.to_owned()))
    .into();
    let compiled = compile_with("policy.authz", "app role app_user\ninclude \"types/people.authz\"\n", &files);
    let found: Vec<(String, u16)> =
        compiled.diagnostics.iter().map(|d| (d.finding(&compiled.sources).file, d.code.0)).collect();
    let expected = [("types/notes.authz", 201), ("more.authz", 108), ("more.authz", 108)];
    assert_eq!(found, expected.map(|(file, code)| (file.to_owned(), code)));
}

#[test]
fn bytes_that_are_not_text_are_a_mistake_with_a_place() {
    let compiled = compile_bytes("p.authz", b"app role app_user\ntype user = app.us\xffers\n", &NoFiles);
    let finding = compiled.diagnostics[0].finding(&compiled.sources);
    assert_eq!((finding.code.as_str(), finding.line, finding.column), ("AZ101", 2, 19));
    assert!(compiled.model.is_none());
}

#[test]
fn a_comment_with_a_reason_silences_a_lint() {
    let policy = |above: &str, behind: &str| {
        format!(
            "app role app_user\ntype user = app.users\ntype note = app.notes\n  author : user = author_id\n  can edit = author\n\
             rules app.notes\n{above}  update : edit{behind}\n"
        )
    };
    assert_eq!(codes_of(&policy("", "")), [803]);
    assert_eq!(codes_of(&policy("", " -- allow AZ803: authors may give notes away")), [0u16; 0]);
    assert_eq!(codes_of(&policy("  -- allow AZ803: authors may give notes away\n", "")), [0u16; 0]);
    assert_eq!(codes_of(&policy("  -- allow AZ803: one\n  -- allow AZ804: two\n", "")), [0u16; 0]);
    assert_eq!(codes_of(&policy("  -- allow AZ804: another\n", "")), [803]);
    assert_eq!(codes_of(&policy("", " -- allow AZ803:")), [803], "without a reason it says nothing");
}

#[test]
fn lints_name_the_column() {
    let text = "app role app_user\ntype user = app.users\ntype note = app.notes\n  author : user = author_id\n  can edit = author and {not locked or until < date '2030-01-01' or lower(kind::text) = 'x'}\n\
                rules app.notes\n  update : edit\n";
    let messages: Vec<String> = findings(&compile("p", text)).into_iter().map(|d| d.message).collect();
    let columns: Vec<&str> = messages.iter().map(|m| m.split([' ', ',']).nth(3).unwrap()).collect();
    assert_eq!(columns, ["author_id", "kind", "locked", "until"]);
}
