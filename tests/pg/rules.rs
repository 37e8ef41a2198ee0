//! Rules beyond the four commands: masks and their views, columns before and after, cascades, partitions and children, and
//! writes that the select rule refuses.

use std::collections::BTreeSet;

use crate::plain::Town;

const SCHEMA: &str = "
CREATE SCHEMA app;
CREATE TABLE app.users (id bigint PRIMARY KEY);
INSERT INTO app.users SELECT generate_series(1, 4);
CREATE TABLE app.people (id bigint PRIMARY KEY, owner_id bigint REFERENCES app.users ON DELETE CASCADE, boss_id bigint REFERENCES app.users,
  gone text, salary numeric(10, 2) DEFAULT 5, phone text, name text);
ALTER TABLE app.people DROP COLUMN gone;
CREATE TABLE app.friends (person_id bigint, user_id bigint);
INSERT INTO app.people SELECT i, 1 + i % 4, 1 + (i / 2) % 4, i * 10, 'phone ' || i, 'name ' || i FROM generate_series(1, 20) i;
INSERT INTO app.friends SELECT i, 1 + (i * 3) % 4 FROM generate_series(1, 20) i;
GRANT USAGE ON SCHEMA app TO app_user;";

const POLICY: &str = "
app role app_user
type user = app.users
type person = app.people
  owner : user = owner_id
  boss : user = boss_id
  friend : user = app.friends(person_id -> user_id)
  can view = owner or boss or friend
  can pay = owner or boss
rules app.people view app.\"People shown\"
  select : view
  insert : owner or boss
  update : view
  update salary before : boss
  update salary, name after : {salary < 1000}
  mask salary : pay
  mask salary, phone : owner or {id <> 7}
  cascade from app.users (owner_id)
";

/// Rows of the view as each user should see them, worked out in the test.
async fn expected(town: &Town, user: i64) -> BTreeSet<Vec<String>> {
    let people = "SELECT id::text, owner_id::text, boss_id::text, salary::text, phone FROM app.people";
    let friends: BTreeSet<Vec<String>> =
        town.texts("SELECT person_id::text, user_id::text FROM app.friends").await.into_iter().collect();
    let mut out = BTreeSet::new();
    for row in town.texts(people).await {
        let me = user.to_string();
        let [id, owner, boss, salary, phone] = <[String; 5]>::try_from(row).unwrap();
        let friend = friends.contains(&vec![id.clone(), me.clone()]);
        if !(owner == me || boss == me || friend) {
            continue;
        }
        let second = owner == me || id != "7";
        let salary = if (owner == me || boss == me) && second { salary } else { String::new() };
        let phone = if second { phone } else { String::new() };
        out.insert(vec![id, salary, phone]);
    }
    out
}

const SHOWN: &str = "SELECT id::text, salary::text, phone FROM app.\"People shown\"";

async fn agrees(town: &Town) {
    for user in 1..=4 {
        let seen: BTreeSet<Vec<String>> = town.seen(Some(&user.to_string()), SHOWN).await.into_iter().collect();
        assert_eq!(seen, expected(town, user).await, "as {user}");
    }
    assert!(town.seen(None, SHOWN).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_masked_view_shows_what_the_rules_say() {
    let town = Town::bare(SCHEMA).await;
    town.apply(POLICY).await.unwrap();
    assert!(town.apply(POLICY).await.unwrap().unchanged, "a second apply changes nothing");
    agrees(&town).await;
    // The masked columns are nowhere else to be read; the others are, under the select rule.
    for sql in
        ["SELECT salary FROM app.people", "SELECT * FROM app.people", "SELECT id FROM app.people WHERE phone = 'x'"]
    {
        town.refused(Some("1"), sql, "42501").await;
    }
    let returning = "UPDATE app.people SET name = 'x' WHERE id = 1 RETURNING salary";
    town.refused(Some("1"), returning, "42501").await;
    assert!(!town.seen(Some("1"), "SELECT id::text, name FROM app.people").await.is_empty());
    // Nobody writes through the view, which runs as its owner.
    town.refused(Some("1"), "UPDATE app.\"People shown\" SET name = 'x'", "42501").await;
    town.refused(Some("1"), "DELETE FROM app.\"People shown\"", "42501").await;
    // A leaky function in a query meets no row and no value that the view hides.
    town.run("CREATE FUNCTION app.spy(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS 'BEGIN RAISE NOTICE ''%'', $1; RETURN $1 IS NULL; END'")
        .await;
    let shown = town.seen(Some("2"), "SELECT id::text FROM app.\"People shown\" WHERE app.spy(salary::text)").await;
    let hidden = expected(&town, 2).await.into_iter().filter(|row| row[1].is_empty()).count();
    assert_eq!(shown.len(), hidden);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_masked_view_follows_the_table_and_is_replaced_in_place() {
    let town = Town::bare(SCHEMA).await;
    town.apply(POLICY).await.unwrap();
    town.run("CREATE VIEW app.report AS SELECT id, salary FROM app.\"People shown\"").await;
    town.run("ALTER TABLE app.people ADD COLUMN note text DEFAULT 'n'").await;
    town.refused(Some("1"), "SELECT note FROM app.people", "42501").await;
    assert!(!town.plan(POLICY).await.unchanged);
    town.apply(POLICY).await.unwrap();
    assert!(town.plan(POLICY).await.unchanged);
    let notes = town.seen(Some("1"), "SELECT note FROM app.\"People shown\" LIMIT 1").await;
    assert_eq!(notes, [["n"]]);
    assert!(!town.seen(Some("1"), "SELECT note FROM app.people").await.is_empty());
    // Other masks, the same columns: what is built on the view stays.
    let other = POLICY.replace("mask salary : pay", "mask salary : owner");
    town.apply(&other).await.unwrap();
    assert_eq!(town.texts("SELECT to_regclass('app.report')::text").await, [["app.report"]]);
    // A column that goes cannot go in place.
    town.run("ALTER TABLE app.people DROP COLUMN note CASCADE").await;
    town.run("CREATE OR REPLACE VIEW app.report AS SELECT id, salary FROM app.people").await;
    town.apply(&other).await.unwrap();
    agrees_without_pay(&town).await;
    town.run("CREATE OR REPLACE VIEW app.report AS SELECT id, salary FROM app.\"People shown\"").await;
    let gone = POLICY.replace(" view app.\"People shown\"", "").replace("  mask salary : pay\n", "");
    let gone = gone.replace("  mask salary, phone : owner or {id <> 7}\n", "");
    let error = town.apply(&gone).await.unwrap_err().to_string();
    assert!(error.contains("AZ617") && error.contains("app.report"), "{error}");
    town.run("DROP VIEW app.report").await;
    town.apply(&gone).await.unwrap();
    assert_eq!(town.texts("SELECT to_regclass('app.\"People shown\"')::text").await, [[""]]);
    assert!(!town.seen(Some("1"), "SELECT salary::text FROM app.people").await.is_empty());
}

/// The masks of the second policy: only the owner sees a salary.
async fn agrees_without_pay(town: &Town) {
    let seen =
        town.seen(Some("2"), "SELECT id::text FROM app.\"People shown\" WHERE salary IS NOT NULL ORDER BY 1").await;
    let owned = town.texts("SELECT id::text FROM app.people WHERE owner_id = 2 ORDER BY 1").await;
    assert_eq!(seen, owned);
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_that_stay_readable_and_cascades_that_nothing_makes_stand_in_the_way() {
    let town = Town::bare(SCHEMA).await;
    town.run("GRANT SELECT (phone) ON app.people TO PUBLIC; CREATE VIEW app.\"People shown\" AS SELECT 1").await;
    let policy = POLICY.replace("(owner_id)", "(boss_id)") + "  cascade from app.friends\n";
    let found: Vec<String> = town.plan(&policy).await.blockers.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 4, "{found:#?}");
    assert!(found[0].contains("app.\"People shown\" is there already"), "{found:#?}");
    assert!(
        found[1].starts_with("policy.authz:17:")
            && found[1].contains("phone stays readable")
            && found[1].contains("AZ611")
    );
    assert!(found[2].starts_with("policy.authz:18:") && found[2].contains("(boss_id)") && found[2].contains("AZ625"));
    assert!(found[3].starts_with("policy.authz:19:") && found[3].contains("app.friends"), "{found:#?}");
    town.run("REVOKE SELECT (phone) ON app.people FROM PUBLIC; DROP VIEW app.\"People shown\"").await;
    town.apply(POLICY).await.unwrap();
    // The cascade is PostgreSQL's own and asks no rule.
    town.run("UPDATE app.people SET boss_id = 1; DELETE FROM app.users WHERE id = 3").await;
    assert_eq!(town.texts("SELECT count(*)::text FROM app.people WHERE owner_id = 3").await, [["0"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_columns_are_judged_before_and_after() {
    let town = Town::bare(SCHEMA).await;
    town.apply(POLICY).await.unwrap();
    // Person 5 is owned by 2, whose boss is 3; person 8's boss is 1.
    town.run("UPDATE app.people SET owner_id = 2, boss_id = 3 WHERE id = 5").await;
    let set = |what: &str| format!("UPDATE app.people SET {what} WHERE id = 5");
    town.act(Some("2"), &set("phone = 'new'"), false).await.unwrap();
    town.act(Some("2"), &set("salary = salary_of.s FROM (SELECT 50.00 AS s) salary_of"), false).await.unwrap();
    let refused = town.refused(Some("2"), &set("salary = 60"), "42501").await;
    assert!(refused.contains("AZ709"), "{refused}");
    town.act(Some("3"), &set("salary = 60"), false).await.unwrap();
    town.refused(Some("3"), &set("salary = 1000"), "42501").await;
    town.act(Some("2"), &set("name = 'other'"), false).await.unwrap();
    town.run("UPDATE app.people SET salary = 2000 WHERE id = 5").await;
    town.refused(Some("2"), &set("name = 'other'"), "42501").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_row_the_writer_may_not_read_is_refused_as_postgresql_defines_it() {
    let town = Town::bare(
        "CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO app_user; CREATE TABLE app.users (id bigint PRIMARY KEY);
         INSERT INTO app.users VALUES (1), (2);
         CREATE TABLE app.posts (id bigint PRIMARY KEY, author bigint, published boolean)",
    )
    .await;
    let policy = "
app role app_user
type user = app.users
type post = app.posts
  author : user = author
  can read = {published}
rules app.posts
  select : read
  insert : author
  update : author
";
    town.apply(policy).await.unwrap();
    let insert = |published: bool, more: &str| format!("INSERT INTO app.posts VALUES (1, 1, {published}) {more}");
    town.act(Some("1"), &insert(false, ""), false).await.unwrap();
    town.act(Some("1"), &insert(true, "RETURNING id"), false).await.unwrap();
    for more in ["RETURNING id", "ON CONFLICT (id) DO NOTHING", "ON CONFLICT (id) DO UPDATE SET published = true"] {
        town.refused(Some("1"), &insert(false, more), "42501").await;
    }
    town.act(Some("1"), &insert(true, "ON CONFLICT (id) DO UPDATE SET published = true"), true).await.unwrap();
    // An update that makes the row unreadable for its writer is refused where it reads the row to find it.
    town.refused(Some("1"), "UPDATE app.posts SET published = false WHERE id = 1", "42501").await;
    town.act(Some("1"), "UPDATE app.posts SET published = false", false).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_and_children_are_closed_but_through_the_table_above() {
    let town = Town::bare(
        "CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO app_user; CREATE TABLE app.users (id bigint PRIMARY KEY);
         INSERT INTO app.users VALUES (1), (2);
         CREATE TABLE app.logs (id bigint, owner_id bigint, state text, PRIMARY KEY (id)) PARTITION BY RANGE (id);
         CREATE TABLE app.\"Logs 1\" PARTITION OF app.logs FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (id);
         CREATE TABLE app.logs_1a (state text, extra integer, owner_id bigint, id bigint NOT NULL);
         ALTER TABLE app.logs_1a DROP COLUMN extra;
         ALTER TABLE app.\"Logs 1\" ATTACH PARTITION app.logs_1a FOR VALUES FROM (0) TO (10);
         CREATE TABLE app.notes (id bigint PRIMARY KEY, owner_id bigint, state text);
         CREATE TABLE app.sub_notes (more text) INHERITS (app.notes);
         INSERT INTO app.logs SELECT i, 1 + i % 2, 'open' FROM generate_series(0, 9) i;
         INSERT INTO app.notes VALUES (1, 1, 'open'), (2, 2, 'open'); INSERT INTO app.sub_notes VALUES (3, 1, 'open', 'x');
         GRANT SELECT, UPDATE ON ALL TABLES IN SCHEMA app TO app_user",
    )
    .await;
    let policy = "
app role app_user
type user = app.users
type log = app.logs
  owner : user = owner_id
  can view = owner and {exists (select from app.users u where u.id = this.owner_id)}
type note = app.notes
  owner : user = owner_id
  can view = owner and {exists (select from app.users u where u.id = this.owner_id)}
rules app.logs
  select : view
  update : view
  update state before : owner and {exists (select from app.users u where u.id = this.owner_id and this.state = 'open')}
rules app.notes
  select : view
";
    town.apply(policy).await.unwrap();
    let ids = |table: &str| format!("SELECT id::text FROM app.{table} ORDER BY id");
    assert_eq!(town.seen(Some("1"), &ids("logs")).await.concat(), ["0", "2", "4", "6", "8"]);
    assert_eq!(town.seen(Some("1"), &ids("notes")).await.concat(), ["1", "3"]);
    for table in ["\"Logs 1\"", "logs_1a", "sub_notes"] {
        assert!(town.seen(Some("1"), &ids(table)).await.is_empty(), "{table}");
    }
    town.act(Some("1"), "UPDATE app.logs SET state = 'shut' WHERE id = 2", true).await.unwrap();
    let refused = town.refused(Some("1"), "UPDATE app.logs SET state = 'open' WHERE id = 2", "42501").await;
    assert!(refused.contains("AZ709"), "{refused}");
    // A partition that comes later is open until the next apply, which the plan says.
    assert!(town.plan(policy).await.unchanged);
    town.run(
        "CREATE TABLE app.logs_2 PARTITION OF app.logs FOR VALUES FROM (10) TO (20); GRANT SELECT ON app.logs_2 TO app_user;
         INSERT INTO app.logs VALUES (11, 2, 'open')",
    )
    .await;
    let plan = town.plan(policy).await;
    assert!(
        !plan.unchanged && plan.summary().iter().any(|line| line.contains("partitions and children")),
        "{:?}",
        plan.summary()
    );
    town.apply(policy).await.unwrap();
    assert!(town.seen(Some("2"), &ids("logs_2")).await.is_empty());
    assert_eq!(town.seen(Some("2"), "SELECT id::text FROM app.logs WHERE id > 9").await, [["11"]]);
    assert!(town.plan(policy).await.unchanged);
}
