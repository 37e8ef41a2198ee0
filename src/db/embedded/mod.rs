//! A PostgreSQL server of our own, from the system's packages: for `rowdeck demo`, and thrown away again for tests.
//!
//! It listens on a unix socket in a private folder and nowhere else, so it needs no password. It is stopped when the
//! value is dropped, and by a small watcher process when we are killed before we could.

mod account;
mod binaries;
mod data;
mod postmaster;

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

pub use binaries::Binaries;
pub use data::default_folder;
pub use postmaster::{PidFile, Postmaster, alive, read as read_pid_file};

use super::connect;
use super::error::DbError;
use super::progress::{Progress, Reporter};
use super::target::Target;
use data::Home;

/// The port in the socket's name.
const PORT: u16 = 5432;

/// A running server.
#[derive(Debug)]
pub struct Server {
    /// `15.7`
    pub version: String,
    /// Its process.
    pub pid: i32,
    /// Its socket's folder.
    pub socket_folder: PathBuf,
    /// The folder that holds the data, the log and the lock.
    pub folder: PathBuf,
    /// Leave it running when this value goes away.
    pub keep: bool,
    port: u16,
    home: Option<Home>,
    child: Option<Child>,
    watcher: Option<Child>,
    throwaway: bool,
    stopped: bool,
    /// Where in the log this start begins.
    log_start: u64,
}

/// How a server is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Data that stay.
    Kept,
    /// Data that are removed at the end: no care is taken of crashes.
    Throwaway,
}

/// Settings for both kinds: no network, no JIT (it costs more than it gives on short queries, and each function in a
/// policy is compiled again), memory for a laptop, a log of what matters.
const SETTINGS: &[&str] = &[
    "listen_addresses=",
    "unix_socket_permissions=0700",
    "jit=off",
    "max_connections=100",
    "shared_buffers=256MB",
    "work_mem=16MB",
    "maintenance_work_mem=128MB",
    "random_page_cost=1.1",
    "max_wal_size=2GB",
    "checkpoint_timeout=15min",
    "wal_level=minimal",
    "max_wal_senders=0",
    "lc_messages=C",
    "log_min_messages=warning",
    "log_line_prefix=%m [%p] ",
    "logging_collector=off",
    "log_checkpoints=off",
];

/// What a throwaway server does without.
const CARELESS: &[&str] = &["fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=64MB"];

impl Server {
    /// Starts the server of `folder`, making the folder and its data when they are missing. A server that already runs
    /// there (one left by `--keep`) is used as it is.
    pub async fn start(folder: &Path, reporter: &Reporter) -> Result<Server, DbError> {
        Server::start_with(folder, &[], reporter).await
    }

    /// The same with settings of its own (`shared_buffers=4GB`), which come after the usual ones. A server that already
    /// runs keeps those it has.
    pub async fn start_with(folder: &Path, settings: &[String], reporter: &Reporter) -> Result<Server, DbError> {
        // Looked for before anything is made, so that a missing server leaves no empty folder behind.
        let binaries = Binaries::find(data::existing_major(folder))?;
        let home = Home::open(folder)?;
        start_in(home, binaries, Kind::Kept, settings, reporter).await
    }

    /// A server in a temporary folder that is removed at the end. `bin` is the folder of its programs; without, the
    /// usual search.
    pub async fn start_throwaway(bin: Option<&Path>) -> Result<Server, DbError> {
        let binaries = match bin {
            Some(folder) => Binaries::at(folder)?,
            None => Binaries::find(None)?,
        };
        let folder = data::temporary_folder("rowdeck-test-")?;
        let home = Home::open_fresh(&folder)?;
        start_in(home, binaries, Kind::Throwaway, &[], &Reporter::silent()).await
    }

    /// A target on this server.
    pub fn target(&self, user: &str, database: &str) -> Target {
        Target::socket(&self.socket_folder, self.port, user, database)
    }

    /// The same as a URL, to paste into another program.
    pub fn url(&self, user: &str, database: &str) -> String {
        format!("postgresql:///{database}?host={}&user={user}", self.socket_folder.display())
    }

    /// Stops the server (with `keep`, leaves it running) and waits until it has ended.
    pub async fn stop(&mut self) -> Result<(), DbError> {
        if self.stopped {
            return Ok(());
        }
        self.end_watcher();
        if self.keep {
            self.stopped = true;
            return Ok(());
        }
        self.ask_to_stop(if self.throwaway { Signal::SIGQUIT } else { Signal::SIGINT })?;
        let begun = Instant::now();
        while self.is_running() {
            if begun.elapsed() > Duration::from_secs(120) {
                return Err(DbError::Embedded(format!(
                    "the server (pid {}) has not stopped after two minutes; its log is {}",
                    self.pid,
                    self.folder.join("server.log").display()
                )));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.cleaned();
        Ok(())
    }

    /// Why the server is gone or useless, by its log: for when a connection was lost. After a full disk it may still be
    /// trying to recover.
    pub fn trouble(&mut self) -> Option<DbError> {
        let running = self.is_running();
        let home = self.home.as_ref().filter(|_| !self.stopped)?;
        let said = home.log_since(self.log_start);
        if running && !data::says_full(&said) {
            return None;
        }
        let what = format!("the server ended (its log is {})", home.log_path().display());
        Some(data::explain(&said, &home.root, &what))
    }

    fn ask_to_stop(&self, signal: Signal) -> Result<(), DbError> {
        postmaster::signal(self.pid, signal)
            .map_err(|e| DbError::io(format!("cannot stop the server (pid {})", self.pid), e))
    }

    fn is_running(&mut self) -> bool {
        match &mut self.child {
            // Also collects the exit status, so that no zombie is left.
            Some(child) => matches!(child.try_wait(), Ok(None)),
            None => postmaster::alive(self.pid),
        }
    }

    fn end_watcher(&mut self) {
        if let Some(mut watcher) = self.watcher.take() {
            // Killed before its pipe closes, so it does not act; both calls fail only when it has already ended.
            let _ = watcher.kill();
            let _ = watcher.wait();
        }
    }

    fn cleaned(&mut self) {
        self.stopped = true;
        let result = if self.throwaway {
            std::fs::remove_dir_all(&self.folder)
        } else if self.socket_folder.starts_with(&self.folder) {
            Ok(())
        } else {
            std::fs::remove_dir(&self.socket_folder)
        };
        if let Err(error) = result {
            tracing::warn!("cannot remove the folder of a stopped server: {error}");
        }
        self.home = None;
    }
}

impl Drop for Server {
    /// Stops the server when nobody did: after an error, a panic, a test.
    fn drop(&mut self) {
        self.end_watcher();
        if self.stopped || self.keep {
            return;
        }
        if let Err(error) = self.ask_to_stop(if self.throwaway { Signal::SIGQUIT } else { Signal::SIGINT }) {
            tracing::error!("{error}");
            return;
        }
        let begun = Instant::now();
        while self.is_running() && begun.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.cleaned();
    }
}

async fn start_in(
    home: Home,
    binaries: Binaries,
    kind: Kind,
    settings: &[String],
    reporter: &Reporter,
) -> Result<Server, DbError> {
    let data = home.data(binaries.major);
    if !data.join("PG_VERSION").is_file() {
        note(reporter, &format!("making a database with PostgreSQL {} in {}", binaries.version, data.display())).await;
        home.initialise(&binaries, kind == Kind::Kept)?;
    }
    loop {
        match postmaster::read(&data) {
            PidFile::Running(running) => match attach(&running).await? {
                true => return attached(home, binaries, running, reporter).await,
                // It was on its way down.
                false => continue,
            },
            PidFile::Stale => {
                note(reporter, "the server did not end cleanly last time; it recovers what it had written").await;
                remove_stale(&data)?;
            }
            PidFile::None => {}
        }
        return launch(home, binaries, &data, (kind, settings), reporter).await;
    }
}

async fn note(reporter: &Reporter, text: &str) {
    reporter.send(Progress::Note { text: text.to_owned() }).await;
}

/// The pid in the file is no server's, and the folder's lock is ours: the file is only in the way.
fn remove_stale(data: &Path) -> Result<(), DbError> {
    let path = data.join("postmaster.pid");
    std::fs::remove_file(&path).map_err(|e| DbError::io(format!("cannot remove the stale {}", path.display()), e))
}

/// Waits until a server that already runs can be used (true) or has ended (false).
async fn attach(running: &Postmaster) -> Result<bool, DbError> {
    let target = Target::socket(&running.socket_folder, running.port, "postgres", "postgres");
    let begun = Instant::now();
    loop {
        match connect::client(&target).await {
            Ok(_) => return Ok(true),
            Err(_) if !postmaster::alive(running.pid) => return Ok(false),
            Err(error) if begun.elapsed() > Duration::from_secs(60) => {
                return Err(DbError::Embedded(format!(
                    "a server (pid {}) already runs on these data and cannot be used: {error}",
                    running.pid
                )));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn attached(home: Home, binaries: Binaries, running: Postmaster, reporter: &Reporter) -> Result<Server, DbError> {
    note(reporter, &format!("using the server that already runs there (pid {})", running.pid)).await;
    let watcher = watch(&home, running.pid, Kind::Kept)?;
    let log_start = std::fs::metadata(home.log_path()).map_or(0, |metadata| metadata.len());
    Ok(Server {
        version: binaries.version,
        pid: running.pid,
        socket_folder: running.socket_folder,
        folder: home.root.clone(),
        keep: false,
        port: running.port,
        home: Some(home),
        child: None,
        watcher: Some(watcher),
        throwaway: false,
        stopped: false,
        log_start,
    })
}

async fn launch(
    home: Home,
    bin: Binaries,
    data: &Path,
    (kind, settings): (Kind, &[String]),
    reporter: &Reporter,
) -> Result<Server, DbError> {
    let socket_folder = home.socket_folder()?;
    let log = home.open_log()?;
    let log_start = log.metadata().map_or(0, |metadata| metadata.len());
    let log_twin = log.try_clone().map_err(|e| DbError::io("cannot open the server's log twice", e))?;
    let mut command = account::command(home.account.as_ref(), &bin.program("postgres"), &home.root);
    command.arg("-D").arg(data).arg("-k").arg(&socket_folder).arg("-p").arg(PORT.to_string());
    let careless = if kind == Kind::Throwaway { CARELESS } else { &[] };
    for setting in SETTINGS.iter().chain(careless).copied().chain(settings.iter().map(String::as_str)) {
        command.args(["-c", setting]);
    }
    command.stdin(Stdio::null()).stdout(log_twin).stderr(log);
    let child = command.spawn().map_err(|e| data::cannot_run(&bin, "postgres", e))?;
    let pid = i32::try_from(child.id()).map_err(|_| DbError::Embedded("the server's pid is too large".to_owned()))?;
    let mut server = Server {
        version: bin.version,
        pid,
        socket_folder,
        folder: home.root.clone(),
        keep: false,
        port: PORT,
        home: None,
        child: Some(child),
        watcher: Some(watch(&home, pid, kind)?),
        throwaway: kind == Kind::Throwaway,
        stopped: false,
        log_start,
    };
    wait_ready(&mut server, &home, log_start, reporter).await?;
    server.home = Some(home);
    Ok(server)
}

async fn wait_ready(server: &mut Server, home: &Home, log_start: u64, reporter: &Reporter) -> Result<(), DbError> {
    let target = server.target("postgres", "postgres");
    let mut told = Instant::now();
    loop {
        if !server.is_running() {
            let said = home.log_since(log_start);
            let what = format!("the server ended while it started (its log is {})", home.log_path().display());
            return Err(data::explain(&said, &home.root, &what));
        }
        if connect::client(&target).await.is_ok() {
            return Ok(());
        }
        if told.elapsed() > Duration::from_secs(5) {
            told = Instant::now();
            note(reporter, "the server is still starting (after a crash it first recovers what was written)").await;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

/// A process that stops the server when we are gone without having done it: it reads a pipe that only we hold open.
fn watch(home: &Home, pid: i32, kind: Kind) -> Result<Child, DbError> {
    const KEPT: &str = r#"trap "" INT HUP TERM; while read -r _; do :; done; kill -INT "$1""#;
    const THROWAWAY: &str = r#"trap "" INT HUP TERM; while read -r _; do :; done; kill -QUIT "$1"
        while kill -0 "$1" 2>/dev/null; do sleep 0.1; done; rm -rf -- "$2""#;
    let script = if kind == Kind::Throwaway { THROWAWAY } else { KEPT };
    let mut command = account::command(home.account.as_ref(), Path::new("/bin/sh"), Path::new("/"));
    command
        .args(["-c", script, "rowdeck-watcher"])
        .env("PATH", "/usr/bin:/bin")
        .arg(pid.to_string())
        .arg(&home.root)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().map_err(|e| DbError::io("cannot run /bin/sh to watch over the server", e))
}
