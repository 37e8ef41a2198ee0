//! Names with capitals, spaces, quotes, dots, reserved words, 63 bytes, letters of several bytes: everything holds as it
//! does under plain names, and a second apply changes nothing.

use rowdeck::compiler::diagnostic::Diagnostic;
use rowdeck::compiler::emit::{Options, emit_with};
use rowdeck::compiler::{compile, lint};

use crate::keys;
use crate::plain::Town;

/// The names of [`keys`] and what they become. Among them are the aliases and words of the generated SQL itself.
const NAMES: [(&str, &str); 23] = [
    ("app", "\"Ops \"\"Room\"\"\""),
    ("app_user", "\"App \"\"user\"\" é\""),
    ("users", "\"User\""),
    ("orgs", "\"order\""),
    ("org_admins", "\"group by\""),
    ("teams", "\"ééééééééééééééééééééééééééééééx\""),
    ("team_members", "\"a.b\""),
    ("team_teams", "\"x'y\""),
    ("docs", "\"select\""),
    ("doc_teams", "\"authz_gen\""),
    ("notes", "\"Notes; DROP TABLE x --\""),
    ("org_code", "\"Org Code\""),
    ("slug", "\"desc\""),
    ("user_id", "\"userId\""),
    ("owner_id", "\"ééééééééééééééééééééééééééééé \"\"\""),
    ("team_org", "\"from\""),
    ("team_slug", "\"TO\""),
    ("m_org", "\"1\""),
    ("m_slug", "\" \""),
    ("doc_org", "\"this\""),
    ("doc_no", "\"v\""),
    ("t_org", "\"member\""),
    ("t_slug", "\"l\""),
];

/// Every word that is one of [`NAMES`], as it is written there; what begins with `authz` is ours.
fn hostile(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '_') {
        let (before, word) = rest.split_at(start);
        let end = word.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        out.push_str(before);
        // `app role` begins a line of the policy.
        let word_of_policy = word == "app" && after.starts_with(" role");
        let named = NAMES.iter().find(|(name, _)| *name == word && !word_of_policy && !before.ends_with('\''));
        out.push_str(named.map_or(word, |(_, hostile)| hostile));
        rest = after;
    }
    out + rest
}

/// A relation whose generated names are cut.
fn policy() -> String {
    let long = "shown_to_the_members_of_all_these_teams_and_to_nobody_else_at_all_not_even_once";
    let policy = keys::POLICY.replace("shown :", &format!("{long} :")).replace("shown.", &format!("{long}."));
    assert!(policy.contains(&format!("{long}.member")));
    policy + "rules app.teams\n  select : view\n"
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_names_agree_with_a_plain_walk_and_apply_once() {
    for (name, hostile) in NAMES {
        assert!(hostile.len() <= 66, "{name}");
    }
    let town = Town::named(keys::SCHEMA, hostile).await;
    let policy = policy();
    town.apply(&policy).await.unwrap();
    let again = town.apply(&policy).await.unwrap();
    assert!(again.unchanged, "a second apply changes nothing");
    // Part of it changed, and back: in place, and as it was.
    town.apply(&policy.replace("can edit = owner or editor", "can edit = owner")).await.unwrap();
    town.apply(&policy).await.unwrap();
    let plan = town.plan(&policy).await;
    assert!(plan.unchanged && plan.blockers.is_empty(), "{:?}", plan.summary());
    keys::random(town, 31).await;
}

#[test]
fn hostile_names_are_linted_and_emitted_the_same_each_time() {
    let compiled = compile("policy.authz", &hostile(&policy()));
    assert!(!compiled.has_errors(), "{:#?}", compiled.diagnostics);
    let model = compiled.model.unwrap();
    let emitted = emit_with(&model, &Options::default()).unwrap();
    assert_eq!(emitted, emit_with(&model, &Options::default()).unwrap());
    // The same is to be said of it under any names.
    let plain = compile("policy.authz", &policy()).model.unwrap();
    let plain_emitted = emit_with(&plain, &Options::default()).unwrap();
    let codes = |found: Vec<Diagnostic>| found.into_iter().map(|finding| finding.code).collect::<Vec<_>>();
    let (found, expected) = (lint::lint(&model, Some(&emitted)), lint::lint(&plain, Some(&plain_emitted)));
    assert_eq!(codes(found), codes(expected));
}

#[test]
fn a_name_that_would_end_a_function_body_is_refused() {
    let policy = "app role app_user\ntype user = app.users\ntype a = app.\"x$authz$y\"\n  owner : user = owner_id\n  can view = owner\n";
    let model = compile("policy.authz", policy).model.unwrap();
    let found = emit_with(&model, &Options::default()).unwrap_err();
    assert!(found.len() == 1 && found[0].code.0 == 107, "{found:?}");
}
