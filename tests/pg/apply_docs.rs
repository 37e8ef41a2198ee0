//! The docs example, applied as its owner.

use rowdeck::bench::generate::Size;
use rowdeck::compiler::emit::emit;
use rowdeck::compiler::objects::Emitted;
use rowdeck::compiler::{Compiled, compile};
use rowdeck::db::apply::{ApplyOptions, apply};
use rowdeck::db::cancel::Stop;
use rowdeck::db::connect::Session;
use rowdeck::db::error::DbError;
use rowdeck::db::plan::{Change, Plan, Policy, plan};
use rowdeck::db::progress::{ApplyReport, Reporter};
use tokio_postgres::Client;

use crate::server::Database;

pub const POLICY: &str = include_str!("../../examples/docs/docs.authz");

/// A compiled policy and what it becomes.
pub struct Docs {
    compiled: Compiled,
    emitted: Emitted,
}

impl Docs {
    pub fn new(text: &str) -> Docs {
        let compiled = compile("docs.authz", text);
        let emitted = emit(compiled.model.as_ref().expect("it compiles")).unwrap();
        Docs { compiled, emitted }
    }

    fn policy(&self) -> Policy<'_> {
        let model = self.compiled.model.as_ref().unwrap();
        Policy { name: "docs.authz", sources: &self.compiled.sources, model, emitted: &self.emitted }
    }

    pub async fn apply(&self, session: &Session) -> Result<ApplyReport, DbError> {
        let options = ApplyOptions::default();
        apply(session, &self.policy(), &options, &Reporter::silent(), &Stop::never()).await
    }

    async fn plan(&self, session: &Session) -> Plan {
        plan(&session.client, &self.policy()).await.unwrap()
    }
}

/// The example's tables with its data, owned by a role of their own.
pub async fn ground(size: Size) -> (Client, Session) {
    let database = Database::create().await;
    let admin = database.connect().await;
    let owner = format!("owner_{}", database.name);
    let sql = format!(
        "DO $$ BEGIN CREATE ROLE app_user LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
         CREATE ROLE {owner} LOGIN; GRANT CREATE ON DATABASE {name} TO {owner};
         GRANT app_user TO {owner}",
        name = database.name
    );
    admin.batch_execute(&sql).await.unwrap();
    let session = Session::open(&database.target(&owner)).await.unwrap();
    session.client.batch_execute(include_str!("../../examples/docs/schema.sql")).await.unwrap();
    rowdeck::bench::load::load(&session.client, size, 1, &Reporter::silent()).await.unwrap();
    (admin, session)
}

pub async fn as_user(session: &Session, user: i64, sql: &str) -> i64 {
    let client = &session.client;
    client.batch_execute("BEGIN; SET LOCAL ROLE app_user").await.unwrap();
    client.execute("SELECT authz.act_as('user', $1::bigint)", &[&user]).await.unwrap();
    let n = client.query_one(sql, &[]).await.unwrap().get(0);
    client.batch_execute("ROLLBACK").await.unwrap();
    n
}

#[tokio::test]
async fn the_example_is_applied_changed_and_applied_again() {
    let (admin, session) = ground(Size::Tiny).await;
    let docs = Docs::new(POLICY);
    let first = docs.plan(&session).await;
    assert_eq!(first.blockers, []);
    let report = docs.apply(&session).await.unwrap();
    assert_eq!((report.unchanged, report.version, report.graphs_built), (false, 1, 2));
    let missing: Vec<_> = docs.plan(&session).await.objects.into_iter().filter(|o| o.change != Change::Same).collect();
    assert_eq!(missing, []);
    assert!(docs.apply(&session).await.unwrap().unchanged);
    let verified: bool = admin.query_one("SELECT authz.verify()", &[]).await.unwrap().get(0);
    assert!(verified);

    // Less may be seen, the index stays.
    let count = "SELECT count(*) FROM app.files";
    let before = as_user(&session, 1, count).await;
    let stricter =
        Docs::new(&POLICY.replace("can view  = edit or viewer or (folder.view", "can view  = nobody and (folder.view"));
    let plan = stricter.plan(&session).await;
    let changed = plan.objects.iter().filter(|o| o.change != Change::Same).count();
    assert!(changed > 0 && changed < plan.objects.len() / 2, "{changed} of {}", plan.objects.len());
    let switch = plan.steps.iter().find(|step| step.title.starts_with("close")).unwrap();
    assert_eq!(switch.locks_text(), "ACCESS EXCLUSIVE on app.files");
    let report = stricter.apply(&session).await.unwrap();
    assert_eq!((report.graphs_built, report.graphs_kept, report.version), (0, 2, 2));
    assert!(before > 0 && as_user(&session, 1, count).await == 0);
    let report = docs.apply(&session).await.unwrap();
    assert_eq!((report.graphs_kept, report.version), (2, 3));
    assert_eq!(as_user(&session, 1, count).await, before);
    assert!(docs.apply(&session).await.unwrap().unchanged);
}

/// Everything the apply defines, as the server writes it, with grants; sorted.
async fn shape(admin: &Client, owner: &str) -> Vec<String> {
    let spaces = "(SELECT oid FROM pg_namespace WHERE nspname IN ('app', 'authz', 'authz_gen', 'authz_int'))";
    // Nothing written and the owner's own rights written out are one and the same.
    let acl = |of: &str| format!("(SELECT string_agg(a::text, ' ' ORDER BY a::text) FROM unnest({of}) AS a)");
    let proc = acl("coalesce(proacl, acldefault('f', proowner))");
    let rel = acl("coalesce(relacl, acldefault(CASE WHEN relkind = 'S' THEN 's' ELSE 'r' END::\"char\", relowner))");
    let sql = format!(
        "SELECT pg_get_functiondef(oid) || {proc}
           FROM pg_proc WHERE pronamespace IN {spaces}
         UNION ALL SELECT oid::regclass::text || pg_get_viewdef(oid) || coalesce(reloptions::text, '') FROM pg_class
           WHERE relkind = 'v' AND relnamespace IN {spaces}
         UNION ALL SELECT oid::regclass::text || relkind::text || relrowsecurity::text || coalesce({rel}, '')
           FROM pg_class WHERE relnamespace IN {spaces}
         UNION ALL SELECT pg_get_triggerdef(oid) || tgenabled::text FROM pg_trigger WHERE tgname ~ '^authz_'
         UNION ALL SELECT to_jsonb(p)::text FROM pg_policies p
         UNION ALL SELECT nspname || array_to_string(nspacl, ' ') FROM pg_namespace WHERE nspname ~ '^authz'
         UNION ALL SELECT name FROM authz_int.graphs"
    );
    let rows = admin.query(&sql, &[]).await.unwrap();
    let mut out: Vec<String> = rows.iter().map(|row| row.get::<_, String>(0).replace(owner, "owner")).collect();
    out.sort();
    out
}

/// Ways in which the example's policy may change, each by a text and what stands in its place.
const CHANGES: &[(&str, &[(&str, &str)])] = &[
    (
        "a permission of one table",
        &[("can view  = edit or viewer or (folder.view", "can view  = edit or (folder.view")],
    ),
    (
        "a new permission",
        &[("  can view  = edit or viewer or (folder", "  can find = view\n  can view  = edit or viewer or (folder")],
    ),
    ("a rule less", &[("  update folder_id after : folder.edit\n", "")]),
    ("a command nobody may run", &[("  delete : share\n", "")]),
    (
        "a graph less",
        &[("or shown.view or", "or"), ("  shown  : folder = app.folder_links(folder_id -> shown_in)\n", "")],
    ),
    ("a group less", &[("  member : team#member = app.team_teams(team_id -> member_team_id)\n", "")]),
];

#[tokio::test]
async fn every_change_comes_to_what_a_fresh_apply_makes() {
    let (admin, session) = ground(Size::Tiny).await;
    let owner = session.info.role.clone();
    let base = Docs::new(POLICY);
    base.apply(&session).await.unwrap();
    let before = shape(&admin, &owner).await;
    for (what, replacements) in CHANGES {
        let mut text = POLICY.to_owned();
        for (from, to) in *replacements {
            assert!(text.contains(from), "{what}: {from}");
            text = text.replace(from, to);
        }
        // Its tests may speak of what is gone.
        let text = text.split("\ntest").next().unwrap();
        let changed = Docs::new(text);
        let plan = changed.plan(&session).await;
        let switch = plan.steps.iter().find(|step| step.title.starts_with("close")).unwrap();
        println!("{what}: {}; {}", plan.counts(), switch.locks_text());
        changed.apply(&session).await.unwrap_or_else(|e| panic!("{what}: {e}"));
        let reached = shape(&admin, &owner).await;
        let (fresh_admin, fresh) = ground(Size::Tiny).await;
        changed.apply(&fresh).await.unwrap();
        let fresh_shape = shape(&fresh_admin, &fresh.info.role).await;
        similar(what, &reached, &fresh_shape);
        base.apply(&session).await.unwrap_or_else(|e| panic!("{what}, back: {e}"));
        similar(&format!("{what}, back"), &shape(&admin, &owner).await, &before);
        let verified: bool = admin.query_one("SELECT authz.verify()", &[]).await.unwrap().get(0);
        assert!(verified, "{what}");
    }
}

fn similar(what: &str, found: &[String], expected: &[String]) {
    let more: Vec<_> = found.iter().filter(|line| !expected.contains(line)).collect();
    let less: Vec<_> = expected.iter().filter(|line| !found.contains(line)).collect();
    assert!(more.is_empty() && less.is_empty(), "{what}: more: {more:#?}\nless: {less:#?}");
}

/// How long the parts take on more data; run with `--ignored --nocapture`.
#[tokio::test]
#[ignore = "measures"]
async fn measure() {
    let (_admin, session) = ground(Size::Dev).await;
    let docs = Docs::new(POLICY);
    let started = std::time::Instant::now();
    let plan = docs.plan(&session).await;
    println!("plan {:?}\n{}", started.elapsed(), plan.summary().join("\n"));
    println!("{:?}", docs.apply(&session).await.unwrap());
    let started = std::time::Instant::now();
    println!("{:?} {:?}", docs.apply(&session).await.unwrap(), started.elapsed());
    let other =
        Docs::new(&POLICY.replace("can view  = edit or viewer or (folder.view", "can view  = nobody and (folder.view"));
    println!("{}", other.plan(&session).await.summary().join("\n"));
    println!("{:?}", other.apply(&session).await.unwrap());
}
