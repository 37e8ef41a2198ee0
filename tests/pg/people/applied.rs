//! The whole policy, applied as its owner, and its own tests.

use rowdeck::compiler::compile;
use rowdeck::compiler::emit::emit;
use rowdeck::db::apply::{ApplyOptions, apply};
use rowdeck::db::cancel::Stop;
use rowdeck::db::connect::Session;
use rowdeck::db::plan::{Plan, Policy, plan};
use rowdeck::db::policy_tests;
use rowdeck::db::progress::Reporter;

use super::{POLICY, SCHEMA};
use crate::server::Database;

const TESTS: &str = "
invariants
  never doc: share and not owner
test
  user 1 can share doc 1
  service a can edit doc 1
  service b cannot view doc 1
  user 1 with scope read can view doc 1
  user 1 with scope read cannot share doc 1
  user 1 with scope write cannot view doc 1
  as user 1 with scope read sees 2 {SELECT FROM app.docs}
  as service a sees 1 {SELECT FROM app.docs}
test \"under a scope\"
  given doc = {INSERT INTO app.docs (id, org_id, owner_id) VALUES (50, 1, 4) RETURNING id}
  as user 4 allowed {UPDATE app.docs SET title = 'a' WHERE id = $doc}
  as user 4 with scope read refused {UPDATE app.docs SET title = 'b' WHERE id = $doc}
  as user 4 with scope write, read allowed {UPDATE app.docs SET title = 'c' WHERE id = $doc}
  as user 4 with scope read refused {SELECT authz.share('doc', $doc, 'viewer', 'user', 5)}
  as user 4 allowed {SELECT authz.share('doc', $doc, 'viewer', 'anyone', '')}
  anyone can view doc $doc
  as user 4 allowed {SELECT authz.share('doc', $doc, 'banned', 'service', 'b')}
  service b can view doc $doc
  service b cannot read doc $doc
  anyone can read doc $doc
  anyone cannot listen doc $doc
test \"a failing one\"
  user 1 with scope read can share doc 1
";

async fn ground() -> Session {
    let database = Database::create().await;
    let admin = database.connect().await;
    let owner = format!("owner_{}", database.name);
    let roles = format!(
        "DO $$ BEGIN CREATE ROLE app_user LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
         CREATE ROLE {owner} LOGIN; GRANT app_user TO {owner}; ALTER DATABASE {} OWNER TO {owner}",
        database.name
    );
    admin.batch_execute(&roles).await.unwrap();
    let session = Session::open(&database.target(&owner)).await.unwrap();
    session.client.batch_execute(SCHEMA).await.unwrap();
    session
}

async fn planned(session: &Session, text: &str) -> Plan {
    let compiled = compile("people.authz", text);
    let model = compiled.model.as_ref().unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics));
    let emitted = emit(model).unwrap();
    let policy = Policy { name: "people.authz", sources: &compiled.sources, model, emitted: &emitted };
    plan(&session.client, &policy).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_with_all_of_it_is_applied_and_runs_its_tests() {
    let session = ground().await;
    let text = format!("{POLICY}{TESTS}");
    let compiled = compile("people.authz", &text);
    let model = compiled.model.as_ref().unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics));
    let emitted = emit(model).unwrap();
    let policy = Policy { name: "people.authz", sources: &compiled.sources, model, emitted: &emitted };
    apply(&session, &policy, &ApplyOptions::default(), &Reporter::silent(), &Stop::never()).await.unwrap();
    session
        .client
        .batch_execute("INSERT INTO authz.settings (key, value) VALUES ('development', 'true')")
        .await
        .unwrap();
    let session = Session::open(&session.target).await.unwrap();
    let report = policy_tests::run(&session, model, &compiled.sources, &Reporter::silent()).await.unwrap();
    let failed: Vec<_> = report.tests.iter().filter_map(|t| Some((&t.name, t.failure.as_ref()?))).collect();
    assert_eq!(failed.len(), 1, "{failed:#?}");
    assert_eq!(failed[0].0, "a failing one");
    assert_eq!(failed[0].1.message, "it does not hold");
    let broken = session.client.query("SELECT * FROM authz.check_invariants()", &[]).await.unwrap();
    assert!(broken.is_empty());
    // Shares, links and roles outlive another apply of the same policy.
    session
        .client
        .batch_execute(
            "BEGIN; SET LOCAL ROLE app_user; SELECT authz.act_as('user', 1); \
        SELECT authz.share('doc', 1, 'role:' || authz.create_role('org', 1, 'doc', 'r', '{view}'), 'user', 5); COMMIT",
        )
        .await
        .unwrap();
    let other = format!("{POLICY}  update title : share\n");
    let compiled = compile("people.authz", &other);
    let model = compiled.model.as_ref().unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics));
    let emitted = emit(model).unwrap();
    let policy = Policy { name: "people.authz", sources: &compiled.sources, model, emitted: &emitted };
    apply(&session, &policy, &ApplyOptions::default(), &Reporter::silent(), &Stop::never()).await.unwrap();
    session.client.batch_execute("BEGIN; SET LOCAL ROLE app_user; SELECT authz.act_as('user', 5)").await.unwrap();
    let can: bool = session.client.query_one("SELECT authz.can('doc', 1, 'view')", &[]).await.unwrap().get(0);
    assert!(can);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caveat_that_does_not_run_is_found_before_applying() {
    let session = ground().await;
    let fine = planned(&session, POLICY).await;
    assert!(fine.blockers.is_empty(), "{:?}", fine.blockers.iter().map(ToString::to_string).collect::<Vec<_>>());
    for (caveat, says) in [("arg('n') + 1 = 2", "AZ613"), ("nonsense('x')", "AZ613"), ("arg('n')", "AZ613")] {
        let text = POLICY.replace("arg('n')::int < 10", caveat);
        let plan = planned(&session, &text).await;
        let found: Vec<String> = plan.blockers.iter().map(ToString::to_string).collect();
        assert!(found.len() == 1 && found[0].contains(says), "{caveat}: {found:?}");
    }
}
