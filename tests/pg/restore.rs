//! A dump restored into an empty database: the rules, the index and what drift compares with are all there.

use std::process::Command;

use rowdeck::bench::generate::Size;
use rowdeck::db::connect::Session;
use rowdeck::db::{drift, lint};

use crate::apply_docs::{Docs, POLICY, ground};
use crate::server::{Database, bin_dir, socket};

/// `pg_dump` and `psql` of the server's own release; other releases' write other files.
fn client_program(name: &str) -> std::path::PathBuf {
    let own = bin_dir().join(name);
    if own.exists() {
        return own;
    }
    // The embedded server brings no client programs.
    let out = Command::new("sh").arg("-c").arg(format!("command -v {name}")).output().unwrap();
    String::from_utf8_lossy(&out.stdout).trim().into()
}

#[tokio::test]
async fn a_restored_database_enforces_the_same() {
    let (admin, session) = ground(Size::Tiny).await;
    Docs::new(POLICY).apply(&session).await.unwrap();
    let name = session.info.database.clone();
    let folder = socket().parent().unwrap().to_owned();
    let dump = Command::new(client_program("pg_dump"))
        .args(["-h", folder.to_str().unwrap(), "-p", "5432", "-U", "postgres", &name])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&dump.stderr).into_owned();
    if said.contains("server version mismatch") {
        eprintln!("not tested: no pg_dump for this server ({said})");
        return;
    }
    assert!(dump.status.success(), "{said}");

    let restored = Database::create().await;
    let file = std::env::temp_dir().join(format!("rowdeck-{}-{}.sql", std::process::id(), restored.name));
    std::fs::write(&file, &dump.stdout).unwrap();
    let out = Command::new(client_program("psql"))
        .args(["-h", folder.to_str().unwrap(), "-p", "5432", "-U", "postgres", "-d", &restored.name])
        .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", file.to_str().unwrap()])
        .output()
        .unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));

    // Nothing of ours may depend on the path of whoever calls.
    admin.batch_execute(&format!("ALTER DATABASE {} SET search_path = ''", restored.name)).await.unwrap();
    let owner = session.info.role.clone();
    let there = Session::open(&restored.target(&owner)).await.unwrap();
    assert_eq!(drift::run(&there.client).await.unwrap(), []);
    let serious: Vec<_> = lint::run(&there.client).await.unwrap().into_iter().filter(|f| f.is_serious()).collect();
    assert_eq!(serious, []);
    let verified = async || -> bool { there.client.query_one("SELECT authz.verify()", &[]).await.unwrap().get(0) };
    assert!(verified().await);

    // A move, with the index kept by the restored triggers.
    let moved = there
        .client
        .execute(
            "UPDATE app.folders SET parent_id = (SELECT min(r.id) FROM app.folders r WHERE r.parent_id IS NULL)
             WHERE id = (SELECT max(f.id) FROM app.folders f WHERE f.parent_id IS NOT NULL)",
            &[],
        )
        .await
        .unwrap();
    assert_eq!(moved, 1);
    assert!(verified().await);
    assert!(Docs::new(POLICY).apply(&there).await.unwrap().unchanged);
    let count = "SELECT count(*) FROM app.files";
    for user in [1, 2, 3] {
        let (here, there) = (
            crate::apply_docs::as_user(&session, user, count).await,
            crate::apply_docs::as_user(&there, user, count).await,
        );
        assert_eq!(here, there, "user {user}");
    }
}
