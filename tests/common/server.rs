//! A throw-away server for tests: found, made, started and stopped by the tests themselves.
//!
//! One server serves a whole test binary; each test gets its own database. A watchdog process holds the other end of a
//! pipe of ours: when this process ends, however it ends, the watchdog stops the server by its pid and removes its
//! folder.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rowdeck::db::target::Target;
use tokio_postgres::{Client, Config, NoTls};

/// A running server.
pub struct Server {
    dir: PathBuf,
    _watchdog: Child,
}

static SERVER: OnceLock<Server> = OnceLock::new();
static NEXT: AtomicU32 = AtomicU32::new(0);

/// The server of this test binary.
pub fn server() -> &'static Server {
    SERVER.get_or_init(Server::start)
}

/// The server's unix socket.
#[allow(dead_code)]
pub fn socket() -> PathBuf {
    server().dir.join(".s.PGSQL.5432")
}

/// A fresh database on the server.
pub struct Database {
    /// Its name.
    pub name: String,
}

impl Database {
    /// Makes one.
    pub async fn create() -> Database {
        let name = format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let admin = connect("postgres", "postgres").await;
        admin.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        Database { name }
    }

    /// Removes it; nobody may be connected any more, save for sessions that are just ending.
    #[allow(dead_code, reason = "only some of the test binaries make so many that they must go")]
    pub async fn remove(self) {
        let admin = connect("postgres", "postgres").await;
        admin.batch_execute(&format!("DROP DATABASE {} WITH (FORCE)", self.name)).await.unwrap();
    }

    /// Where it is, for code that connects by itself.
    pub fn target(&self, user: &str) -> Target {
        Target::socket(&server().dir, 5432, user, &self.name)
    }

    /// A session in it.
    pub async fn connect(&self) -> Client {
        connect(&self.name, "postgres").await
    }

    /// A session in it of another role.
    pub async fn connect_as(&self, role: &str) -> Client {
        connect(&self.name, role).await
    }
}

async fn connect(database: &str, role: &str) -> Client {
    let mut config = Config::new();
    config.host_path(&server().dir).user(role).dbname(database);
    let (client, connection) = config.connect(NoTls).await.expect("connect to the test server");
    tokio::spawn(async move {
        if let Err(e) = connection.await {
            eprintln!("connection: {e}");
        }
    });
    client
}

/// `ROWDECK_PG_BIN`, else `pg_config --bindir`, else the newest of the distributions' folders.
pub fn bin_dir() -> PathBuf {
    if let Some(dir) = std::env::var_os("ROWDECK_PG_BIN") {
        return dir.into();
    }
    if let Ok(out) = Command::new("pg_config").arg("--bindir").output() {
        let dir = PathBuf::from(String::from_utf8_lossy(&out.stdout).trim());
        if dir.join("initdb").exists() {
            return dir;
        }
    }
    let mut found: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|e| Some((e.file_name().to_str()?.parse().ok()?, e.path().join("bin"))))
        .collect();
    found.sort();
    found.pop().expect("a PostgreSQL server: set ROWDECK_PG_BIN").1
}

/// A command that runs as an ordinary user: servers refuse root.
fn command(program: &Path) -> Command {
    if nix::unistd::Uid::effective().is_root() {
        let mut c = Command::new("runuser");
        c.args(["-u", "postgres", "--"]).arg(program);
        c
    } else {
        Command::new(program)
    }
}

impl Server {
    // The server outlives every handle on purpose: the watchdog ends it.
    #[allow(clippy::zombie_processes)]
    fn start() -> Server {
        let bin = bin_dir();
        // Short: a unix socket's path has room for about a hundred bytes.
        let dir = PathBuf::from(format!("/tmp/rdt{}", std::process::id()));
        let made = command(Path::new("mkdir")).arg("-m").arg("755").arg(&dir).status().expect("mkdir");
        assert!(made.success(), "mkdir {}", dir.display());
        let data = dir.join("data");
        make_data(&bin, &data);
        let log = std::fs::File::create(dir.join("log")).expect("log");
        let mut settings = vec!["fsync=off", "listen_addresses=", "max_connections=60", "shared_buffers=256MB"];
        settings.extend(["deadlock_timeout=200ms", "log_min_messages=warning", "autovacuum_naptime=5s"]);
        // Compiling the plan of one read takes it seconds, and the product tells operators to turn it off for the app.
        settings.push("jit=off");
        let mut postgres = command(&bin.join("postgres"));
        postgres.arg("-D").arg(&data).arg("-k").arg(&dir);
        for s in settings {
            postgres.arg("-c").arg(s);
        }
        postgres.stdin(Stdio::null()).stdout(log.try_clone().expect("log")).stderr(log).spawn().expect("postgres");
        let pid_file = data.join("postmaster.pid");
        let pid = wait_for(|| {
            let text = std::fs::read_to_string(&pid_file).ok()?;
            text.contains("ready").then(|| text.lines().next().map(str::to_owned)).flatten()
        });
        let mut watchdog = Command::new("sh")
            .arg("-c")
            .arg("read line; kill -QUIT \"$1\"; i=0; while kill -0 \"$1\" 2>/dev/null && [ $i -lt 100 ]; do sleep 0.1; i=$((i+1)); done; rm -rf \"$2\"")
            .args(["watchdog", &pid])
            .arg(&dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("watchdog");
        watchdog.stdin.as_mut().expect("pipe").flush().expect("pipe");
        Server { dir, _watchdog: watchdog }
    }
}

/// A data folder as `initdb` makes it. Every test is a process of its own under nextest, and `initdb` takes seconds where a
/// copy takes a tenth of one, so the first to make it leaves a copy for the others of the same day.
fn make_data(bin: &Path, data: &Path) {
    let version = Command::new(bin.join("postgres")).arg("--version").output().expect("postgres --version").stdout;
    let version: String =
        String::from_utf8_lossy(&version).chars().filter(|c| c.is_ascii_alphanumeric() || *c == '.').collect();
    let template = PathBuf::from(format!("/tmp/rdt-{}-{version}", nix::unistd::Uid::effective()));
    let run = |program: &str, args: &[&std::ffi::OsStr]| {
        let out = command(Path::new(program)).args(args).output();
        out.is_ok_and(|out| out.status.success())
    };
    let old = |at: &Path| at.metadata().ok().and_then(|m| m.created().ok()?.elapsed().ok()) > Some(DAY);
    if old(&template) {
        let aside = template.with_extension(format!("old{}", std::process::id()));
        if run("mv", &["-T".as_ref(), template.as_ref(), aside.as_ref()]) {
            run("rm", &["-rf".as_ref(), aside.as_ref()]);
        }
    }
    if run("cp", &["-a".as_ref(), template.as_ref(), data.as_ref()]) {
        return;
    }
    run("rm", &["-rf".as_ref(), data.as_ref()]);
    let out = command(&bin.join("initdb"))
        .arg("-D")
        .arg(data)
        .args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"])
        .output()
        .expect("initdb");
    assert!(out.status.success(), "initdb: {}", String::from_utf8_lossy(&out.stderr));
    // A rename is whole or not at all, and fails when another test was first.
    let mine = template.with_extension(format!("new{}", std::process::id()));
    if run("cp", &["-a".as_ref(), data.as_ref(), mine.as_ref()])
        && !run("mv", &["-T".as_ref(), mine.as_ref(), template.as_ref()])
    {
        run("rm", &["-rf".as_ref(), mine.as_ref()]);
    }
}

/// How long a data folder is copied before it is made anew: less than anything that tidies up leaves it half there.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn wait_for<T>(mut ready: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "the test server did not start");
        std::thread::sleep(Duration::from_millis(50));
    }
}
