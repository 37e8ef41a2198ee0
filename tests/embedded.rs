//! The embedded server: what it survives and what it refuses.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rowdeck::db::connect::Session;
use rowdeck::db::embedded::Server;
use rowdeck::db::progress::{Progress, Reporter};

/// A folder that the server's user can reach when the tests run as root.
fn home() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let home = folder.path().join("demo");
    (folder, home)
}

async fn start(home: &Path) -> Server {
    Server::start(home, &Reporter::silent()).await.unwrap()
}

async fn wait_gone(pid: i32) {
    for _ in 0..400 {
        if !rowdeck::db::embedded::alive(pid) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    panic!("process {pid} is still there");
}

#[tokio::test]
async fn a_throwaway_server_works_and_leaves_nothing() {
    let mut server = Server::start_throwaway(None).await.unwrap();
    let session = Session::open(&server.target("postgres", "postgres")).await.unwrap();
    assert!(session.info.version_num >= 150_000);
    assert_eq!(session.info.role, "postgres");
    assert!(session.info.flags.superuser && session.info.policy.is_none() && !session.info.development);
    let row = session.client.query_one("SHOW listen_addresses", &[]).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), "");
    drop(session);
    let folder = server.folder.clone();
    let pid = server.pid;
    assert!(folder.is_dir());
    server.stop().await.unwrap();
    assert!(!folder.exists());
    wait_gone(pid).await;
}

#[tokio::test]
async fn data_outlive_a_stop_a_crash_and_a_pid_file_of_somebody_else() {
    let (_folder, home) = home();
    let mut server = start(&home).await;
    assert_eq!(std::fs::metadata(&server.socket_folder).unwrap().permissions().mode() & 0o777, 0o700);
    let session = Session::open(&server.target("postgres", "postgres")).await.unwrap();
    session.client.batch_execute("CREATE TABLE kept (a int); INSERT INTO kept VALUES (7)").await.unwrap();
    drop(session);
    server.stop().await.unwrap();

    // The second time nothing is made anew; then the server dies without warning, leaving its pid file.
    let server = start(&home).await;
    let session = Session::open(&server.target("postgres", "postgres")).await.unwrap();
    session.client.batch_execute("INSERT INTO kept VALUES (8)").await.unwrap();
    let mut closed = session.closed.clone();
    kill(Pid::from_raw(server.pid), Signal::SIGKILL).unwrap();
    closed.changed().await.unwrap();
    assert!(session.lost().is_some());
    drop(session);
    drop(server);

    let (reporter, mut news) = Reporter::channel();
    let mut server = Server::start(&home, &reporter).await.unwrap();
    drop(reporter);
    let mut notes = Vec::new();
    while let Some(Progress::Note { text }) = news.recv().await {
        notes.push(text);
    }
    assert!(notes.iter().any(|text| text.contains("did not end cleanly")), "{notes:?}");
    let session = Session::open(&server.target("postgres", "postgres")).await.unwrap();
    let row = session.client.query_one("SELECT sum(a) FROM kept", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 15);
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_second_console_on_the_same_data_is_refused_with_the_pid() {
    let (_folder, home) = home();
    let mut server = start(&home).await;
    let words = Server::start(&home, &Reporter::silent()).await.unwrap_err().to_string();
    assert!(words.contains(&format!("(pid {})", std::process::id())) && words.contains("--dir"), "{words}");
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_kept_server_is_found_again() {
    let (_folder, home) = home();
    let mut server = start(&home).await;
    server.keep = true;
    let pid = server.pid;
    server.stop().await.unwrap();
    drop(server);
    let mut again = start(&home).await;
    assert_eq!(again.pid, pid);
    Session::open(&again.target("postgres", "postgres")).await.unwrap();
    again.stop().await.unwrap();
    wait_gone(pid).await;
}

#[tokio::test]
async fn a_folder_with_other_files_is_left_alone() {
    let (folder, _) = home();
    std::fs::write(folder.path().join("thesis.tex"), "x").unwrap();
    let words = Server::start(folder.path(), &Reporter::silent()).await.unwrap_err().to_string();
    assert!(words.contains("did not make"), "{words}");
}

#[tokio::test]
async fn connecting_fails_with_one_sentence() {
    let mut server = Server::start_throwaway(None).await.unwrap();
    let words = |target| async move { Session::open(&target).await.unwrap_err().to_string() };
    let missing = words(server.target("postgres", "nothing")).await;
    assert!(missing.starts_with("there is no database \"nothing\" at "), "{missing}");
    let nobody = words(server.target("nobody_here", "postgres")).await;
    assert!(nobody.contains("does not let role \"nobody_here\" in"), "{nobody}");
    let target = server.target("postgres", "postgres");
    server.stop().await.unwrap();
    let gone = words(target).await;
    assert!(gone.starts_with("no server listens at "), "{gone}");
    let refused = rowdeck::db::target::Target::parse("postgresql://a@127.0.0.1:1/b", &|_| None).unwrap();
    let refused = words(refused).await;
    assert_eq!(refused, "no server answers at 127.0.0.1:1 (connection refused)");
}

#[tokio::test]
async fn a_statement_is_cancelled_from_outside() {
    let mut server = Server::start_throwaway(None).await.unwrap();
    let session = Session::open(&server.target("postgres", "postgres")).await.unwrap();
    let cancel = session.cancel.clone();
    let sleep = session.client.batch_execute("SELECT pg_sleep(30)");
    let later = async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        cancel.cancel().await.unwrap();
    };
    let (slept, ()) = tokio::join!(sleep, later);
    assert_eq!(slept.unwrap_err().code().unwrap().code(), "57014");
    drop(session);
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_wrong_or_missing_password_is_said_and_not_shown() {
    let mut server = Server::start_throwaway(None).await.unwrap();
    let admin = Session::open(&server.target("postgres", "postgres")).await.unwrap();
    let hba: String = admin.client.query_one("SHOW hba_file", &[]).await.unwrap().get(0);
    let rules = std::fs::read_to_string(&hba).unwrap();
    std::fs::write(&hba, format!("local all ann scram-sha-256\n{rules}")).unwrap();
    admin.client.batch_execute("CREATE ROLE ann LOGIN PASSWORD 'right'; SELECT pg_reload_conf()").await.unwrap();
    let mut target = server.target("ann", "postgres");
    // The reload reaches the server's children a moment later.
    let missing = loop {
        match Session::open(&target).await {
            Err(error) => break error.to_string(),
            Ok(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
        }
    };
    assert!(missing.starts_with("role \"ann\" needs a password"), "{missing}");
    target.password = Some(rowdeck::db::secret::Secret::new("wr0ng"));
    let wrong = Session::open(&target).await.unwrap_err().to_string();
    assert!(wrong.starts_with("wrong password for role \"ann\"") && !wrong.contains("wr0ng"), "{wrong}");
    target.password = Some(rowdeck::db::secret::Secret::new("right"));
    assert_eq!(Session::open(&target).await.unwrap().info.role, "ann");
    drop(admin);
    server.stop().await.unwrap();
}
