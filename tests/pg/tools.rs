//! A policy drafted from a real catalog, and tests that explain themselves and say what they reach.

use rowdeck::bench::generate::Size;
use rowdeck::compiler::draft::{Options, draft};
use rowdeck::compiler::include::NoFiles;
use rowdeck::compiler::{compile, compile_with_tests};
use rowdeck::db::as_role::Principal;
use rowdeck::db::connect::Session;
use rowdeck::db::inspect::Inspector;
use rowdeck::db::policy_tests::{self, TestReport};
use rowdeck::db::progress::Reporter;
use rowdeck::db::tables;

use crate::apply_docs::{Docs, POLICY, ground};

/// The docs example in force on tiny data, in a development database.
async fn world() -> Session {
    let (_, session) = ground(Size::Tiny).await;
    Docs::new(POLICY).apply(&session).await.unwrap();
    let mark = "INSERT INTO authz.settings (key, value) VALUES ('development', 'true') ON CONFLICT DO NOTHING";
    session.client.batch_execute(mark).await.unwrap();
    Session::open(&session.target).await.unwrap()
}

#[tokio::test]
async fn a_draft_of_the_examples_tables_compiles() {
    let (_, session) = ground(Size::Tiny).await;
    session
        .client
        .batch_execute(
            "CREATE TABLE app.pairs (a bigint, b text, PRIMARY KEY (b, a));
             CREATE TABLE app.of_pairs (id uuid PRIMARY KEY, of_a bigint, of_b text,
                 FOREIGN KEY (of_a, of_b) REFERENCES app.pairs (a, b))",
        )
        .await
        .unwrap();
    let read = tables::read(&session.client, &["app".to_owned()]).await.unwrap();
    let pairs = read.iter().find(|t| t.name.plain() == "app.of_pairs").unwrap();
    let named: Vec<String> = pairs.foreign[0].columns.iter().map(|c| c.plain()).collect();
    // In the order of the key, not in that of the constraint.
    assert_eq!((named, pairs.foreign[0].to_key), (vec!["of_b".to_owned(), "of_a".to_owned()], true));
    let text = draft(&read, &Options::default()).unwrap();
    let compiled = compile("draft", &text);
    let said: Vec<String> = compiled.diagnostics.iter().map(|d| d.render(&compiled.sources)).collect();
    assert!(said.is_empty(), "{}\n{text}", said.join("\n"));
    for line in [
        "type user = app.users where {active}",
        "  admin : user = app.org_admins(org_id -> user_id)",
        "  parent : folder = parent_id",
        "  member : user = app.team_members(team_id -> user_id)",
        "  folder : folder = folder_id",
        "type pair = app.pairs (b text, a bigint)",
    ] {
        assert!(text.lines().any(|l| l.split_whitespace().eq(line.split_whitespace())), "{line}\n{text}");
    }
}

async fn run(session: &Session, tests: &str) -> TestReport {
    // The policy without its own tests.
    let policy = &POLICY[..POLICY.find("\ntest \"").unwrap() + 1];
    let files = [("more.authz".to_owned(), tests.to_owned())];
    let compiled = compile_with_tests("docs.authz", policy, &NoFiles, &files);
    assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
    let model = compiled.model.clone().unwrap();
    policy_tests::run_with_coverage(session, &compiled, &model, &Reporter::silent()).await.unwrap()
}

const GIVEN: &str = "  given org = {INSERT INTO app.orgs (name) VALUES ('Acme') RETURNING id}
  given ann = {INSERT INTO app.users (name) VALUES ('Ann') RETURNING id}
  given bob = {INSERT INTO app.users (name) VALUES ('Bob') RETURNING id}
  given top = {INSERT INTO app.folders (org_id, owner_id, name) VALUES ($org, $ann, 'a') RETURNING id}
  given sub = {INSERT INTO app.folders (org_id, owner_id, name, parent_id) VALUES ($org, $bob, 'b', $top) RETURNING id}
";

#[tokio::test]
async fn a_failing_check_says_what_is_missing_or_why_it_holds() {
    let session = world().await;
    let tests = format!(
        "test \"no\"\n{GIVEN}  user $bob can edit folder $top\ntest \"yes\"\n{GIVEN}  user $ann cannot edit folder $sub\n"
    );
    let report = run(&session, &tests).await;
    assert_eq!((report.passed, report.failed), (0, 2));
    let why = |at: usize| report.tests[at].failure.as_ref().unwrap();
    assert_eq!((why(0).file.as_str(), why(0).line), ("more.authz", 7));
    assert!(why(0).why[0].starts_with("no; any one of these"), "{:?}", why(0));
    assert!(why(0).why.iter().any(|line| line.trim() == "owner"), "{:?}", why(0));
    assert_eq!(why(1).why[0].split([',', ' ']).next(), Some("yes"), "{:?}", why(1));
    assert!(why(1).why.iter().any(|line| line.contains("app.folders.parent_id")), "{:?}", why(1));
}

#[tokio::test]
async fn coverage_names_the_branches_that_no_passing_check_made_true() {
    let session = world().await;
    let tests = format!(
        "test \"some\"\n{GIVEN}  user $ann can view folder $sub\n  user $bob cannot share folder $top\n  \
         as user $ann allowed {{UPDATE app.folders SET owner_id = $ann WHERE id = $sub}}\n"
    );
    let report = run(&session, &tests).await;
    assert_eq!((report.passed, report.failed), (1, 0), "{:?}", report.tests);
    let coverage = report.coverage.unwrap();
    let reached = |of: &str, text: &str| {
        let found = coverage.branches.iter().find(|b| b.of == of && b.text == text);
        found.unwrap_or_else(|| panic!("{of}: {text}: {:#?}", coverage.branches)).reached
    };
    // Ann holds the folder below through the one above, at every tier.
    assert!(reached("folder.view", "edit") && reached("folder.edit", "share"));
    assert!(reached("folder.share", "parent.share and {inherit}"));
    // Of that folder she is no owner, and nobody asked about the one she owns.
    assert!(!reached("folder.share", "owner") && !reached("folder.share", "org.admin"));
    assert!(!reached("folder.edit", "editor") && !reached("folder.view", "shown.view"));
    assert!(reached("app.folders update", "edit"));
    assert!(reached("app.folders update org_id, owner_id, parent_id", "share"));
    assert!(reached("app.folders update after", "owner"), "the row after is hers");
    assert!(!reached("app.folders delete", "share") && !reached("app.files insert", "folder.edit"));
    assert_eq!(coverage.reached, coverage.branches.iter().filter(|b| b.reached).count());
}

#[tokio::test]
async fn an_id_that_can_be_none_is_wrong_usage() {
    let session = world().await;
    let model = compile("docs.authz", POLICY).model.unwrap();
    let inspector = Inspector::new(&session.client, &model);
    let user = |id: &str| Principal::Of { ty: "user".into(), id: id.into() };
    for (who, id, said) in
        [(user("1"), "abc", "\"abc\" is not an id of a file"), (user("x"), "1", "\"x\" is not an id of a user")]
    {
        let error = inspector.can(&who, "file", id, "view").await.unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(said), "{error}");
    }
}
