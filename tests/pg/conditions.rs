//! Conditions that read other tables, call functions and use operators of the app's own, in every place a condition can
//! stand: they read with the owner's rights, whatever the app role may read.

use std::collections::BTreeSet;

use rowdeck::compiler::emit::Options;

use crate::plain::{Ask, Town, pairs};

/// The same column names everywhere, and nothing that the app may read.
const SCHEMA: &str = "
CREATE SCHEMA app;
CREATE TABLE app.users (id bigint PRIMARY KEY, active boolean);
CREATE TABLE app.bans (id bigint, user_id bigint);
CREATE TABLE app.projects (id bigint PRIMARY KEY, status text, lead_id bigint, owner_id bigint);
CREATE TABLE app.tasks (id bigint PRIMARY KEY, project_id bigint, status text, owner_id bigint, size integer, secret boolean);
CREATE TABLE app.trash (id bigint, task_id bigint);
CREATE TABLE app.helpers (task_id bigint, user_id bigint, status text);
CREATE TABLE app.moves (id bigint, before text, status text);
CREATE FUNCTION app.accepted(h app.helpers) RETURNS boolean LANGUAGE sql STABLE
  AS 'SELECT h.status = ''yes'' AND NOT EXISTS (SELECT FROM app.bans b WHERE b.user_id = h.user_id)';
CREATE FUNCTION app.is_open(status text) RETURNS boolean LANGUAGE sql STABLE
  AS 'SELECT EXISTS (SELECT FROM app.moves m WHERE m.status = $1)';
CREATE FUNCTION app.near(a integer, b integer) RETURNS boolean LANGUAGE sql STABLE
  AS 'SELECT abs(a - b) <= (SELECT count(*) FROM app.moves)';
CREATE OPERATOR app.@@@ (leftarg = integer, rightarg = integer, function = app.near);
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA app FROM PUBLIC;
GRANT USAGE ON SCHEMA app TO app_user;
INSERT INTO app.users SELECT i, i <> 4 FROM generate_series(1, 5) i;
INSERT INTO app.bans VALUES (1, 3);
INSERT INTO app.projects SELECT i, (ARRAY['open', 'shut', NULL])[1 + i % 3], 1 + i % 4, 1 + i % 5 FROM generate_series(1, 7) i;
INSERT INTO app.tasks SELECT i, 1 + i % 7, (ARRAY['open', 'shut', NULL, 'open'])[1 + i % 4], 1 + i % 5, i, (ARRAY[true, false, NULL])[1 + i % 3]
  FROM generate_series(1, 30) i;
INSERT INTO app.trash SELECT i, i FROM generate_series(5, 30, 7) i;
INSERT INTO app.helpers SELECT i, 1 + (i * 3) % 5, (ARRAY['yes', 'no'])[1 + i % 2] FROM generate_series(1, 30) i;
INSERT INTO app.moves VALUES (1, 'open', 'shut'), (2, 'shut', 'shut');";

const POLICY: &str = "
app role app_user
type user = app.users where {active and not exists (select from app.bans b where b.user_id = this.id)}
type project = app.projects
  lead : user = lead_id
  can view = lead and {status = 'open'}
type task = app.tasks where {not exists (select from app.trash t where t.task_id = this.id)}
  owner : user = owner_id
  project : project = project_id
  helper : user = app.helpers(task_id -> user_id) where {app.accepted(this)}
  can near = {exists (select from app.projects p where p.id = this.project_id and p.status = this.status
                      and exists (select from app.tasks t where t.project_id = p.id and t.status = p.status
                                  and t.id <> this.id and t.owner_id = authz.uid()))}
  can tall = signed_in and {size operator(app.@@@) 12 and authz.ctx('tall') = 'yes'}
  can odd = owner and {status = 'open' or app.is_open(status)}
  can plain = signed_in and not {owner_id = authz.uid()} and {secret is not true}
  can view = owner or helper or near or (project.view and {secret is not true})
rules app.projects
  select : view
rules app.tasks
  select : view
  insert : owner and {exists (select from app.projects p where p.id = this.project_id and p.status = 'open')}
  update : owner
  update status after : {app.is_open(this.status)}
  delete : owner and {app.is_open(status)}
";

/// What is expected, written by hand; `$u` stands for the user's id.
const HOLDS: [(&str, &str); 5] = [
    (
        "near",
        "EXISTS (SELECT FROM app.projects p, app.tasks o WHERE p.id = t.project_id AND p.status = t.status AND o.project_id = p.id
           AND o.status = p.status AND o.id <> t.id AND o.owner_id = $u)",
    ),
    ("tall", "$u IS NOT NULL AND t.size BETWEEN 10 AND 14"),
    ("odd", "t.owner_id = $u AND t.status IN ('open', 'shut')"),
    ("plain", "$u IS NOT NULL AND t.owner_id IS DISTINCT FROM $u AND t.secret IS NOT TRUE"),
    (
        "view",
        "t.owner_id = $u OR EXISTS (SELECT FROM app.helpers h WHERE h.task_id = t.id AND h.user_id = $u AND h.status = 'yes')
         OR EXISTS (SELECT FROM app.projects p, app.tasks o WHERE p.id = t.project_id AND p.status = t.status AND o.project_id = p.id
           AND o.status = p.status AND o.id <> t.id AND o.owner_id = $u)
         OR EXISTS (SELECT FROM app.projects p WHERE p.id = t.project_id AND p.status = 'open' AND p.lead_id = $u AND t.secret IS NOT TRUE)",
    ),
];

async fn run(options: Options) {
    let town = Town::new(SCHEMA, POLICY, &options).await;
    town.run("SET authz_ctx.tall = 'yes'").await;
    // 3 is banned and 4 is not active: both are nobody.
    let users = ["1", "2", "3", "4", "5"];
    for (permission, holds) in HOLDS {
        let expected: BTreeSet<(String, String)> = pairs(
            &town,
            &format!(
                "SELECT coalesce(u.id::text, ''), t.id::text FROM (SELECT u.id, u.id AS real FROM app.users u UNION ALL SELECT NULL, NULL) u(id, real), app.tasks t
                 WHERE t.id NOT IN (SELECT task_id FROM app.trash) AND ({})",
                holds.replace("$u", "nullif(nullif(u.id, 3), 4)")
            ),
        )
        .await;
        assert!(!expected.is_empty());
        let ids = "SELECT id::text FROM app.tasks ORDER BY tasks.id";
        let rows = (permission == "view").then_some("SELECT id::text FROM app.tasks");
        let holds =
            |user: Option<&str>, id: &str| expected.contains(&(user.unwrap_or_default().to_owned(), id.to_owned()));
        town.agree(&users, &Ask { ty: "task", permission, ids, rows, holds: &holds }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_that_read_agree_with_what_is_written_by_hand() {
    run(Options::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_that_read_agree_with_what_is_written_by_hand_from_sets() {
    run(Options { first_rows: 0, held_rows: 0, ..Options::default() }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_on_writes_see_the_new_row() {
    let town = Town::new(SCHEMA, POLICY, &Options::default()).await;
    town.run("GRANT INSERT, UPDATE, DELETE ON app.tasks TO app_user").await;
    let open = town.texts("SELECT id::text FROM app.projects WHERE status = 'open' LIMIT 1").await;
    let shut = town.texts("SELECT id::text FROM app.projects WHERE status = 'shut' LIMIT 1").await;
    let (open, shut) = (&open[0][0], &shut[0][0]);
    let insert = |project: &str, owner: u32| {
        format!("INSERT INTO app.tasks VALUES (99, {project}, 'shut', {owner}, 1, false) RETURNING id")
    };
    town.act(Some("1"), &insert(open, 1), false).await.unwrap();
    for sql in [insert(shut, 1), insert(open, 2)] {
        assert!(town.refused(Some("1"), &sql, "42501").await.contains("AZ709"));
    }
    town.act(Some("1"), &insert(open, 1), true).await.unwrap();
    town.act(Some("1"), "UPDATE app.tasks SET status = 'shut', size = 2 WHERE id = 99", true).await.unwrap();
    let refused = town.refused(Some("1"), "UPDATE app.tasks SET status = 'open' WHERE id = 99", "42501").await;
    assert!(refused.contains("AZ709"), "{refused}");
    // Nothing of what the conditions read is the app's to read.
    for table in ["bans", "trash", "helpers", "moves"] {
        town.refused(Some("1"), &format!("SELECT FROM app.{table}"), "42501").await;
    }
    town.refused(Some("1"), "SELECT app.is_open('shut')", "42501").await;
    town.act(Some("1"), "DELETE FROM app.tasks WHERE id = 99", true).await.unwrap();
    assert_eq!(town.texts("SELECT count(*)::text FROM app.tasks WHERE id = 99").await, [["0"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn applying_names_conditions_that_do_not_run_and_names_that_mean_something_else() {
    let town = Town::new(SCHEMA, POLICY, &Options::default()).await;
    let policy = "
app role app_user
type user = app.users
type task = app.tasks
  owner : user = owner_id
  can a = owner and {exists (select from app.projects p where p.id = project_id and status = 'open')}
  can b = owner and {exists (select from app.moves m where m.before = status and exists (select from app.bans where id = size))}
  can c = owner and {exists (select from app.projects p where p.id = this.project_id and p.nothing = 1)}
  can d = owner and {size operator(app.@@@@) 3}
  can e = owner and {ctid is not null}
rules app.tasks
  select : a or b or c or d or e
";
    let plan = town.plan(policy).await;
    let found: Vec<String> = plan.blockers.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(found[0].starts_with("policy.authz:8:") && found[0].contains("p.nothing"), "{found:#?}");
    assert!(found[1].starts_with("policy.authz:9:") && found[1].contains("@@@@"), "{found:#?}");
    assert!(found[2].starts_with("policy.authz:10:") && found[2].contains("ctid"), "{found:#?}");
    assert!(found.iter().all(|line| line.contains("AZ613")), "{found:#?}");
    // Of the names both could mean, these three are the sub-select's; project_id and size are the row's.
    let strays: Vec<&String> = plan.notes.iter().filter(|note| note.contains("sub-select")).collect();
    assert_eq!(strays.len(), 3, "{:#?}", plan.notes);
    assert!(strays[0].starts_with("policy.authz:6:") && strays[0].contains("status is a column"), "{strays:#?}");
    assert!(strays[1].starts_with("policy.authz:7:") && strays[1].contains("status is a column"), "{strays:#?}");
    assert!(strays[2].starts_with("policy.authz:7:") && strays[2].contains("id is a column"), "{strays:#?}");
}

/// A cast that somebody else made stands behind an operator that looks like PostgreSQL's own.
#[tokio::test(flavor = "multi_thread")]
async fn a_condition_is_not_put_into_the_rules_when_it_uses_what_is_not_postgresqls() {
    let town = Town::new(SCHEMA, POLICY, &Options::default()).await;
    town.run(
        "CREATE TYPE app.mood AS ENUM ('good', 'bad');
         CREATE FUNCTION app.words(app.mood) RETURNS text LANGUAGE sql STABLE AS 'SELECT min(status) FROM app.moves';
         CREATE CAST (app.mood AS text) WITH FUNCTION app.words(app.mood) AS IMPLICIT;
         ALTER TABLE app.tasks ADD COLUMN mood app.mood",
    )
    .await;
    let policy = |condition: &str| {
        format!(
            "app role app_user\ntype user = app.users\ntype task = app.tasks\n  owner : user = owner_id\n  \
             can view = owner and {{{condition}}}\nrules app.tasks\n  select : view\n"
        )
    };
    let plan = town.plan(&policy("lower(mood) = 'x'")).await;
    let found: Vec<String> = plan.blockers.iter().map(ToString::to_string).collect();
    assert!(found.len() == 1 && found[0].contains("app.words(app.mood)"), "{found:#?}");
    assert!(found[0].starts_with("policy.authz:5:"), "{found:#?}");
    let plan = town.plan(&policy("(select lower(mood)) = 'x'")).await;
    assert!(plan.blockers.is_empty(), "{:#?}", plan.blockers);
}
