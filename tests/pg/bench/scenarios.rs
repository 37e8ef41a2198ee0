//! Every scenario on a real server, shortly: it passes as things are, and fails when what it watches over is broken.

use std::ffi::OsString;
use std::time::Duration;

use rowdeck::bench::engine::Tally;
use rowdeck::bench::result::RunResult;
use rowdeck::bench::run::{self, Plan};
use rowdeck::bench::scenario::{How, Scenario};
use rowdeck::bench::scenarios::{ALL, BIG_MOVE, LIVE, find};
use rowdeck::db::cancel::Stop;
use rowdeck::db::progress::Reporter;

use super::{Docs, schema, small};

impl Docs {
    pub fn plan(&self, scenario: &str) -> Plan {
        let scenario = find(scenario).unwrap();
        let target = self.database.target(&self.owner);
        let db = format!(
            "host={} user={} dbname={} sslmode=disable",
            crate::server::socket().parent().unwrap().display(),
            self.owner,
            self.database.name
        );
        let arguments: Vec<OsString> = vec!["--db".into(), db.into()];
        Plan {
            concurrency: 4,
            warm_up: Duration::from_millis(20),
            measure: Duration::from_millis(200),
            // A busy machine takes longer; what counts here is what happens.
            until: Some((Duration::from_secs(20), all_required)),
            processes: 2,
            program: (env!("CARGO_BIN_EXE_rowdeck").into(), arguments),
            ..Plan::new(scenario, target)
        }
    }

    async fn measure(&self, plan: &Plan) -> RunResult {
        match run::run(plan, &Stop::never(), &Reporter::silent()).await {
            Ok(result) => result,
            Err(error) => panic!("{}: {error}", plan.scenario.name),
        }
    }

    async fn owner_does(&self, sql: &str) {
        self.session().await.client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }

    /// The functions of this name as they are, to be put back.
    async fn functions(&self, schema: &str, name: &str) -> String {
        let sql = "SELECT string_agg(pg_get_functiondef(p.oid), ';') FROM pg_proc p
                    WHERE p.pronamespace = $1::text::regnamespace AND p.proname = $2";
        self.admin.query_one(sql, &[&schema, &name]).await.unwrap().get(0)
    }
}

fn own(label: &str) -> &str {
    label.rsplit_once(':').map_or(label, |(_, own)| own)
}

fn all_required(scenario: &Scenario, tally: &Tally) -> bool {
    scenario.criterion.required.iter().all(|required| tally.outcomes.keys().any(|label| own(label) == *required))
}

fn one_too_many(scenario: &Scenario, tally: &Tally) -> bool {
    tally.outcomes.keys().any(|label| !scenario.criterion.allowed.contains(&own(label)))
}

fn driven() -> impl Iterator<Item = &'static str> {
    ALL.iter().filter(|one| matches!(one.how, How::Workload(_))).map(|one| one.name)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_scenario_passes_as_things_are_and_leaves_nothing_behind() {
    let docs = Docs::with(&small()).await;
    let before = docs.fingerprint().await;
    for name in driven() {
        let result = docs.measure(&docs.plan(name)).await;
        assert!(result.complete && result.criterion.met, "{}", result.text());
        assert_eq!(result.exit_code(), 0, "{name}");
        assert!(result.operations > 0 && result.cold_ms.n > 0, "{}", result.text());
        assert_eq!(result.pace, "closed");
        let counted: u64 = result.outcomes.values().map(|one| one.count).sum();
        assert_eq!(counted, result.operations);
        let buckets: u64 = result.histogram.iter().map(|bucket| bucket.count).sum();
        assert_eq!(buckets, result.latency_ms.n);
        schema::check(&serde_json::to_value(&result).unwrap());
        assert_eq!(docs.fingerprint().await, before, "{name} left something behind");
    }
    let open = Plan { rate: Some(40.0), until: None, measure: Duration::from_millis(400), ..docs.plan("open-file") };
    let result = docs.measure(&open).await;
    assert_eq!((result.pace.as_str(), result.latency_is.as_str()), ("open", "from the intended start"));
    assert!((12..=20).contains(&result.operations), "{}", result.text());
    assert!(result.service_ms.n > 0);
}

/// What breaks a scenario, how it is mended, and what the scenario must then say.
struct Fault {
    scenario: &'static str,
    sql: &'static str,
    /// `schema.function` to put back, or SQL.
    mend: Mend,
    says: &'static str,
}

enum Mend {
    Function(&'static str, &'static str),
    Sql(&'static str),
}

const LEAK: &str = "CREATE POLICY fault ON app.files FOR SELECT TO app_user USING (id % 3 = 0)";
const MEND_LEAK: Mend = Mend::Sql("DROP POLICY fault ON app.files");
const ALWAYS: &str = "CREATE OR REPLACE FUNCTION authz.can(kind text, id text, perm text) RETURNS boolean
    LANGUAGE sql STABLE AS 'SELECT true'";
const MEND_CAN: Mend = Mend::Function("authz", "can");
const LIST: &str = "CREATE OR REPLACE FUNCTION authz.list(kind text, perm text, after text DEFAULT NULL,
        most integer DEFAULT NULL) RETURNS SETOF text LANGUAGE sql STABLE SECURITY DEFINER
    AS 'SELECT f.id::text FROM app.files f WHERE f.id > coalesce(after::bigint, 0) AND f.id % 9 > 0 ORDER BY f.id LIMIT most'";
const TRUST: &str = "CREATE OR REPLACE FUNCTION authz_int.session() RETURNS text[] LANGUAGE sql STABLE AS
    $$ SELECT CASE WHEN coalesce(current_setting('authz.session', true), '') = '' THEN ARRAY['', '', '']
       ELSE ARRAY[split_part(substr(current_setting('authz.session', true), 65), '|', 2),
                  split_part(substr(current_setting('authz.session', true), 65), '|', 4), ''] END $$";
const KEEP_SHARES: &str =
    "CREATE OR REPLACE FUNCTION authz.unshare(kind text, id text, relation text, subject_kind text,
        subject_id text, subject_relation text DEFAULT '') RETURNS boolean LANGUAGE sql AS 'SELECT true'";

const FAULTS: &[Fault] = &[
    Fault { scenario: "check", sql: ALWAYS, mend: MEND_CAN, says: "can of user" },
    Fault { scenario: "open-file", sql: LEAK, mend: MEND_LEAK, says: "opening of user" },
    Fault { scenario: "open-folder", sql: LEAK, mend: MEND_LEAK, says: "files in folder" },
    Fault { scenario: "list", sql: LIST, mend: Mend::Function("authz", "list"), says: "lists" },
    Fault { scenario: "list-pages", sql: LIST, mend: Mend::Function("authz", "list"), says: "the pages of user" },
    Fault { scenario: "readers", sql: LEAK, mend: MEND_LEAK, says: "does not see exactly" },
    Fault {
        scenario: "who",
        sql: "CREATE OR REPLACE FUNCTION authz.who(kind text, id text, perm text)
            RETURNS TABLE(subject_kind text, subject_id text) LANGUAGE sql AS $$ SELECT 'user', '1' $$",
        mend: Mend::Function("authz", "who"),
        says: "where it must be other",
    },
    Fault {
        scenario: "explain",
        sql: r#"CREATE OR REPLACE FUNCTION authz.explain(kind text, id text, perm text, subject_id text DEFAULT NULL)
            RETURNS jsonb LANGUAGE sql AS $$ SELECT '{"allowed": true}'::jsonb $$"#,
        mend: Mend::Function("authz", "explain"),
        says: "explaining of user",
    },
    Fault {
        scenario: "create",
        sql: "CREATE POLICY fault ON app.folders FOR INSERT TO app_user WITH CHECK (true);
              CREATE POLICY fault_read ON app.folders FOR SELECT TO app_user USING (true)",
        mend: Mend::Sql("DROP POLICY fault ON app.folders; DROP POLICY fault_read ON app.folders"),
        says: "written by one who may not",
    },
    Fault {
        scenario: "move",
        sql: "CREATE POLICY fault ON app.folders FOR ALL TO app_user USING (true) WITH CHECK (true);
              ALTER TABLE app.folders DISABLE TRIGGER authz_rule_3",
        mend: Mend::Sql("DROP POLICY fault ON app.folders; ALTER TABLE app.folders ENABLE TRIGGER authz_rule_3"),
        says: "written by one who may not",
    },
    Fault {
        scenario: "link",
        sql: "CREATE OR REPLACE FUNCTION app.link_folder(folder bigint, shown_in bigint) RETURNS void LANGUAGE sql
            SECURITY DEFINER AS 'INSERT INTO app.folder_links VALUES ($1, $2) ON CONFLICT DO NOTHING'",
        mend: Mend::Function("app", "link_folder"),
        says: "written by one who may not",
    },
    Fault { scenario: "share", sql: KEEP_SHARES, mend: Mend::Function("authz", "unshare"), says: "still sees folder" },
    Fault { scenario: "import", sql: ALWAYS, mend: MEND_CAN, says: "was taken out and may edit" },
    Fault {
        scenario: "mixed",
        sql: "CREATE POLICY fault ON app.folders AS RESTRICTIVE FOR INSERT TO app_user WITH CHECK (false)",
        mend: Mend::Sql("DROP POLICY fault ON app.folders"),
        says: "create:sqlstate_42501",
    },
    Fault { scenario: "oversized-input", sql: ALWAYS, mend: MEND_CAN, says: "answered" },
    Fault {
        scenario: "request-flood",
        sql: TRUST,
        mend: Mend::Function("authz_int", "session"),
        says: "flood:invariant_violation",
    },
    Fault { scenario: "complex-list", sql: LEAK, mend: MEND_LEAK, says: "it must be" },
    Fault { scenario: "settings-tamper", sql: TRUST, mend: Mend::Function("authz_int", "session"), says: "rows from" },
    Fault {
        scenario: "revoke-visibility",
        sql: KEEP_SHARES,
        mend: Mend::Function("authz", "unshare"),
        says: "after the revoke",
    },
    Fault {
        scenario: "share-delete-race",
        sql: "ALTER TABLE app.files DISABLE TRIGGER USER",
        mend: Mend::Sql("ALTER TABLE app.files ENABLE TRIGGER USER"),
        says: "by the old one's share",
    },
    // The last one, as it leaves the index wrong.
    Fault {
        scenario: "move-race",
        sql: "ALTER TABLE app.folders DISABLE TRIGGER USER",
        mend: Mend::Sql("ALTER TABLE app.folders ENABLE TRIGGER USER"),
        says: "are both in the other one",
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn every_scenario_fails_when_what_it_watches_over_is_broken() {
    let docs = Docs::with(&small()).await;
    for name in driven() {
        assert!(FAULTS.iter().any(|fault| fault.scenario == name), "{name} has no planted fault");
    }
    for fault in FAULTS {
        let mend = match fault.mend {
            Mend::Function(schema, name) => docs.functions(schema, name).await,
            Mend::Sql(sql) => sql.to_owned(),
        };
        docs.owner_does(fault.sql).await;
        let concurrency = if fault.scenario == "request-flood" { 8 } else { 4 };
        let result = docs
            .measure(&Plan {
                concurrency,
                until: Some((Duration::from_secs(20), one_too_many)),
                ..docs.plan(fault.scenario)
            })
            .await;
        docs.owner_does(&mend).await;
        assert!(!result.criterion.met, "{}", result.text());
        let said = result.criterion.broken.join("\n");
        assert!(said.contains(fault.says), "{}: {said}", fault.scenario);
        assert!(result.complete && result.exit_code() == 3, "{}", result.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scenarios_of_their_own_course_are_judged_too() {
    let docs = Docs::with(&small()).await;
    let report = super::run(docs.options(20.0, 20.0), 1.5, &[0.5]).await.unwrap();
    for scenario in [&LIVE, &BIG_MOVE] {
        let result = report.result(scenario, 40.0, Ok(true));
        assert!(result.criterion.met && result.exit_code() == 0, "{}", result.text());
        assert_eq!(result.operations, result.outcomes.values().map(|one| one.count).sum::<u64>());
        schema::check(&serde_json::to_value(&result).unwrap());
        let result = report.result(scenario, 40.0, Ok(false));
        assert_eq!((result.exit_code(), result.criterion.broken.len()), (3, 1));
        assert_eq!(report.result(scenario, 40.0, Err("gone".into())).exit_code(), 1);
    }
    docs.owner_does(
        "CREATE POLICY fault ON app.folders AS RESTRICTIVE FOR UPDATE TO app_user USING (true) WITH CHECK (false)",
    )
    .await;
    let report = super::run(docs.options(20.0, 20.0), 1.0, &[0.3]).await.unwrap();
    let result = report.result(&BIG_MOVE, 40.0, Ok(true));
    assert_eq!(result.exit_code(), 3, "{}", result.text());
    assert!(result.criterion.broken.iter().any(|line| line.contains("the big move")), "{}", result.text());
}
