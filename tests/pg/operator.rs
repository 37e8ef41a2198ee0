//! What an operator on call asks: one statement as somebody, who waits for whom, what is not as it should be.

use std::time::{Duration, Instant};

use rowdeck::bench::generate::Size;
use rowdeck::compiler::Compiled;
use rowdeck::db::as_role::Principal;
use rowdeck::db::connect::Session;
use rowdeck::db::error::DbError;
use rowdeck::db::inspect::Inspector;
use rowdeck::db::overview::{self, Weight};
use rowdeck::db::sessions::{self, End};
use rowdeck::db::try_it::{self, Apart, Caps, Tried};
use tokio_postgres::Client;

use crate::apply_docs::{Docs, POLICY, ground};

struct World {
    admin: Client,
    session: Session,
    policy: Compiled,
}

async fn world() -> World {
    let (admin, session) = ground(Size::Tiny).await;
    Docs::new(POLICY).apply(&session).await.unwrap();
    let session = Session::open(&session.target).await.unwrap();
    let policy = try_it::policy_in_force(&session).await.unwrap();
    World { admin, session, policy }
}

fn user(id: &str) -> Principal {
    Principal::Of { ty: "user".into(), id: id.into() }
}

impl World {
    async fn run(&self, who: &Principal, sql: &str) -> Result<Tried, DbError> {
        try_it::run(&self.session, &self.policy, who, sql, true, Caps::SCREEN).await
    }

    /// A user, a file they may edit, one they may only view, and one they do not see.
    async fn cast(&self) -> (Principal, [String; 3]) {
        let model = self.policy.model.as_ref().unwrap();
        let inspector = Inspector::new(&self.session.client, model);
        let all: Vec<String> =
            inspector.browse("file", None, 10_000).await.unwrap().rows.into_iter().map(|r| r.id).collect();
        for n in 1..60 {
            let who = user(&n.to_string());
            let held = async |permission: &str| -> Vec<String> {
                let page = inspector.list(&who, "file", permission, None, 10_000).await.unwrap();
                page.rows.into_iter().map(|r| r.id).collect()
            };
            let (views, edits) = (held("view").await, held("edit").await);
            let only = views.iter().find(|id| !edits.contains(id));
            let hidden = all.iter().find(|id| !views.contains(id));
            if let (Some(edit), Some(only), Some(hidden)) = (edits.first(), only, hidden) {
                return (who, [edit.clone(), only.clone(), hidden.clone()]);
            }
        }
        panic!("nobody has all three");
    }

    async fn count(&self, sql: &str) -> i64 {
        self.admin.query_one(sql, &[]).await.unwrap().get(0)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_is_run_as_somebody_and_leaves_nothing_behind() {
    let world = world().await;
    let (who, [edit, only, hidden]) = world.cast().await;
    let before = world.count("SELECT count(*) FROM app.files WHERE name = 'tried'").await;
    let changed = world
        .run(&who, &format!("UPDATE app.files SET name = 'tried' WHERE id = {edit} RETURNING id, name, NULL"))
        .await
        .unwrap();
    assert_eq!(changed.columns, ["id", "name", "?column?"]);
    assert_eq!(changed.rows, [[Some(edit.clone()), Some("tried".into()), None]]);
    assert_eq!((changed.touched, &changed.apart), (1, &None));
    assert_eq!(world.count("SELECT count(*) FROM app.files WHERE name = 'tried'").await, before);
    let seen = world
        .run(&who, &format!("SELECT count(*) FROM app.files WHERE id IN ({edit}, {only}, {hidden})"))
        .await
        .unwrap();
    assert_eq!(seen.rows, [[Some("2".to_owned())]]);
    let nobody = world.run(&Principal::Nobody, "SELECT * FROM app.files").await.unwrap();
    assert_eq!(nobody.touched, 0);
    assert!(matches!(nobody.apart, Some(Apart::NotVisible { .. })), "{nobody:?}");
    // The session is as it was.
    let role: String = world.session.client.query_one("SELECT current_user::text", &[]).await.unwrap().get(0);
    assert_eq!(role, world.session.info.role);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_row_is_told_apart() {
    let world = world().await;
    let (who, [edit, only, hidden]) = world.cast().await;
    let apart = async |sql: &str| {
        let tried = world.run(&who, sql).await.unwrap();
        assert_eq!((tried.touched, &tried.refused), (0, &None), "{sql}: {tried:?}");
        tried.apart.unwrap_or_else(|| panic!("{sql}: nothing is said"))
    };
    for sql in [
        "SELECT * FROM app.files WHERE id = -1",
        "UPDATE app.files f SET name = 'x' WHERE f.id = -1",
        "DELETE FROM app.files WHERE id = -1 AND name = 'a;b'",
    ] {
        assert_eq!(apart(sql).await, Apart::NoSuchRow, "{sql}");
    }
    for sql in [
        format!("SELECT * FROM app.files WHERE id = {hidden} ORDER BY id"),
        format!("UPDATE app.files SET name = 'x' WHERE id = {hidden}"),
        format!("DELETE FROM ONLY app.files AS f WHERE f.id = {hidden} RETURNING id"),
    ] {
        let Apart::NotVisible { rows, rules } = apart(&sql).await else { panic!("{sql}") };
        assert_eq!(
            (rows, rules),
            (vec![hidden.clone()], vec!["\"select : view\" of rules app.files".to_owned()]),
            "{sql}"
        );
    }
    let Apart::NotAllowed { rows, rules } = apart(&format!("UPDATE app.files SET name = 'x' WHERE id = {only}")).await
    else {
        panic!()
    };
    assert_eq!(rows, std::slice::from_ref(&only));
    assert_eq!(rules[0], "\"update : edit\" of rules app.files");
    let Apart::NotAllowed { rules, .. } = apart(&format!("DELETE FROM app.files WHERE id = {only}")).await else {
        panic!()
    };
    assert_eq!(rules, ["\"delete : share\" of rules app.files"]);
    let joined = format!("SELECT f.* FROM app.files f JOIN app.folders d ON d.id = f.folder_id WHERE f.id = {hidden}");
    assert!(matches!(apart(&joined).await, Apart::Unknown { .. }));
    let called = format!("DELETE FROM app.files WHERE id = {hidden} AND pg_sleep(0) IS NULL");
    assert!(matches!(apart(&called).await, Apart::Unknown { .. }));
    // A row that would end where they may not put it is refused, with the rules.
    let refused = world.run(&who, &format!("INSERT INTO app.files (folder_id, owner_id, name) SELECT folder_id, owner_id, 'x' FROM app.files WHERE id = {only}")).await.unwrap();
    assert!(refused.refused.is_some(), "{refused:?}");
    assert!(world.run(&who, &format!("UPDATE app.files SET name = 'y' WHERE id = {edit}")).await.unwrap().touched == 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_but_one_statement_is_ever_run() {
    let world = world().await;
    let (who, _) = world.cast().await;
    for sql in [
        "COMMIT",
        "ROLLBACK",
        "SELECT 1; COMMIT",
        "DELETE FROM app.files; COMMIT; SELECT 1",
        "SET ROLE postgres",
        "RESET ROLE",
        "BEGIN",
        "SAVEPOINT a",
        "CREATE TABLE public.x ()",
        "DO $$ BEGIN COMMIT; END $$",
        "COPY (SELECT 1) TO '/tmp/rowdeck-never'",
    ] {
        let tried = world.run(&who, sql).await.unwrap();
        let refused = tried.refused.unwrap_or_else(|| panic!("{sql} ran"));
        assert!(refused.contains("only one"), "{sql}: {refused}");
    }
    assert!(matches!(world.run(&who, " ; ").await, Err(DbError::Usage(_))));
    assert!(matches!(
        world.run(&Principal::Of { ty: "file".into(), id: "1".into() }, "SELECT 1").await,
        Err(DbError::Usage(_))
    ));
    // A statement that makes itself somebody else gives no answer.
    let owner = &world.session.info.role;
    let other = world.run(&who, &format!("SELECT set_config('role', '{owner}', true)")).await;
    assert!(matches!(other, Err(DbError::Unbound(_))), "{other:?}");
    let read_only =
        try_it::run(&world.session, &world.policy, &who, "UPDATE app.files SET name = 'x'", false, Caps::SCREEN)
            .await
            .unwrap();
    assert!(read_only.refused.as_ref().is_some_and(|words| words.contains("25006")), "{read_only:?}");
    assert_eq!(world.count("SELECT count(*) FROM app.files WHERE name = 'x'").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_result_is_cut_and_the_server_stops() {
    let world = world().await;
    let (who, _) = world.cast().await;
    let began = Instant::now();
    let tried = world.run(&who, "SELECT generate_series(1, 50000000), repeat('x', 2000)").await.unwrap();
    assert!(tried.cut.is_some() && tried.rows.len() <= Caps::SCREEN.rows, "{:?}", tried.cut);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(tried.rows[0][1].as_ref().unwrap().ends_with("… (2,000 bytes)"));
    let runs = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%rowdeck_try%' AND state = 'active' AND pid <> pg_backend_pid()";
    assert_eq!(world.count(runs).await, 0);
    assert_eq!(world.run(&who, "VALUES (1), (2)").await.unwrap().touched, 2, "the session is of use");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_whom_is_read_and_only_that_session_is_ended() {
    let world = world().await;
    let holder = Session::open(&world.session.target).await.unwrap();
    holder.client.batch_execute("BEGIN; LOCK TABLE app.folders IN SHARE ROW EXCLUSIVE MODE").await.unwrap();
    let waiter = Session::open(&world.session.target).await.unwrap();
    let waiting =
        tokio::spawn(
            async move { waiter.client.batch_execute("UPDATE app.folders SET name = name WHERE id = 1").await },
        );
    let began = Instant::now();
    let read = loop {
        let read = sessions::read(&world.session.client).await.unwrap();
        if read.rows.first().is_some_and(|row| !row.blocked_by.is_empty()) {
            break read;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{read:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let held_by = holder.info.backend_pid;
    assert_eq!(read.rows[0].blocked_by, [held_by]);
    assert!(read.rows[0].waits_for.as_ref().unwrap().contains("app.folders"), "{read:?}");
    let seen = overview::read(&world.session.client, Some("app_user")).await.unwrap();
    assert_eq!(seen.waits.len(), 1, "{seen:?}");
    assert!(seen.waits[0].holders[0].contains("idle in transaction"), "{seen:?}");
    let row = read.rows.iter().find(|row| row.pid == held_by).unwrap();
    let other = sessions::end(&world.session.client, held_by, row.started - 1.0, End::Terminate).await;
    assert!(matches!(other, Err(DbError::Usage(_))), "another session that got the pid is left alone: {other:?}");
    assert!(sessions::end(&world.session.client, held_by, row.started, End::Terminate).await.unwrap());
    waiting.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_opens_a_way_around_the_rules_is_told() {
    let world = world().await;
    let words = async || -> Vec<(Weight, String)> {
        let read = overview::read(&world.session.client, Some("app_user")).await.unwrap();
        read.attention.into_iter().map(|found| (found.weight, found.words)).collect()
    };
    assert_eq!(words().await, []);
    let read = overview::read(&world.session.client, Some("app_user")).await.unwrap();
    assert!(read.governed == 2 && read.index.bytes > 0, "{read:?}");
    for (harm, mend, said) in [
        (
            "ALTER TABLE app.files DISABLE ROW LEVEL SECURITY",
            "ALTER TABLE app.files ENABLE ROW LEVEL SECURITY",
            "row-level security is off on app.files",
        ),
        (
            "ALTER TABLE app.folders DISABLE TRIGGER USER",
            "ALTER TABLE app.folders ENABLE TRIGGER USER",
            "on app.folders is off",
        ),
        (
            "CREATE POLICY mine ON app.files USING (true)",
            "DROP POLICY mine ON app.files",
            "policy mine on app.files is not ours",
        ),
    ] {
        world.admin.batch_execute(harm).await.unwrap();
        let found = words().await;
        assert!(
            found.iter().any(|(weight, words)| *weight == Weight::Wrong && words.contains(said)),
            "{harm}: {found:?}"
        );
        world.admin.batch_execute(mend).await.unwrap();
        assert_eq!(words().await, [], "{mend}");
    }
}
