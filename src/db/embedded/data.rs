//! Where an embedded server's files are: one folder holds a lock, the data (one folder per major), the log, the socket.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::fcntl::{Flock, FlockArg};

use super::account::{self, Account};
use super::binaries::Binaries;
use crate::db::error::DbError;

/// A socket's path must fit into 107 bytes on Linux and 103 on macOS, with `/.s.PGSQL.5432.lock` after the folder.
const LONGEST_SOCKET_FOLDER: usize = 103 - "/.s.PGSQL.5432.lock".len();

/// The folder of one embedded server, locked by us.
#[derive(Debug)]
pub(super) struct Home {
    /// The folder itself.
    pub(super) root: PathBuf,
    /// The user the server runs as.
    pub(super) account: Option<Account>,
    /// Held as long as this value lives.
    _lock: Flock<File>,
}

/// Where `rowdeck demo` keeps its data unless told otherwise: the user's data folder; for root a place that an
/// ordinary user can reach.
pub fn default_folder() -> Result<PathBuf, DbError> {
    if nix::unistd::geteuid().is_root() {
        return Ok(PathBuf::from("/var/lib/rowdeck/demo"));
    }
    directories::ProjectDirs::from("", "", "rowdeck").map(|dirs| dirs.data_dir().join("demo")).ok_or_else(|| {
        DbError::Embedded("there is no home folder to keep the data in; give a folder with --dir".to_owned())
    })
}

impl Home {
    /// Makes the folder where it is missing and locks it. A second console on the same folder is refused.
    pub(super) fn open(root: &Path) -> Result<Home, DbError> {
        let account = Account::choose()?;
        let root = std::path::absolute(root)
            .map_err(|e| DbError::io(format!("cannot use the folder {}", root.display()), e))?;
        refuse_foreign(&root)?;
        if let (Some(account), Some(parent)) = (&account, root.parent()) {
            account.check_reach(parent)?;
        }
        if !root.is_dir() {
            make_folder(&root)?;
            if let Some(account) = &account {
                account.own(&root)?;
            }
        }
        if let Some(account) = &account {
            account.check_reach(&root)?;
        }
        let lock = lock(&root)?;
        Ok(Home { root, account, _lock: lock })
    }

    /// Takes a folder that was just made and is empty.
    pub(super) fn open_fresh(root: &Path) -> Result<Home, DbError> {
        let account = Account::choose()?;
        if let Some(account) = &account {
            account.own(root)?;
        }
        Ok(Home { root: root.to_owned(), account, _lock: lock(root)? })
    }

    /// The data folder of this major.
    pub(super) fn data(&self, major: u32) -> PathBuf {
        self.root.join(format!("pg{major}"))
    }

    /// The server's log.
    pub(super) fn log_path(&self) -> PathBuf {
        self.root.join("server.log")
    }

    /// The log, open for the server to append to; started anew when it has grown beyond 10 MB.
    pub(super) fn open_log(&self) -> Result<File, DbError> {
        let path = self.log_path();
        let fail = |e| disk(e, &format!("cannot write the server's log {}", path.display()));
        let large = std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() > 10_000_000);
        let mut options = OpenOptions::new();
        options.create(true).mode(0o600);
        if large {
            options.write(true).truncate(true)
        } else {
            options.append(true)
        };
        options.open(&path).map_err(fail)
    }

    /// What the log says from byte `from` on, its last 8 KB at most.
    pub(super) fn log_since(&self, from: u64) -> String {
        let mut text = Vec::new();
        if let Ok(mut file) = File::open(self.log_path()) {
            let length = file.metadata().map_or(0, |metadata| metadata.len());
            let start = from.max(length.saturating_sub(8192));
            if file.seek(SeekFrom::Start(start)).is_ok() && file.read_to_end(&mut text).is_err() {
                text.clear();
            }
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// A private folder for the socket: in the home where the path is short enough, else a fresh temporary one.
    pub(super) fn socket_folder(&self) -> Result<PathBuf, DbError> {
        let near = self.root.join("run");
        let folder = if near.as_os_str().len() <= LONGEST_SOCKET_FOLDER {
            if !near.is_dir() {
                make_folder(&near)?;
            }
            near
        } else {
            temporary_folder("rowdeck-")?
        };
        if let Some(account) = &self.account {
            account.own(&folder)?;
        }
        Ok(folder)
    }

    /// `initdb` into a folder beside the final one, which then takes its name: what is interrupted leaves nothing that
    /// looks finished.
    pub(super) fn initialise(&self, binaries: &Binaries, sync: bool) -> Result<(), DbError> {
        let target = self.data(binaries.major);
        let fresh = self.root.join(format!("pg{}.new", binaries.major));
        if fresh.exists() {
            std::fs::remove_dir_all(&fresh)
                .map_err(|e| DbError::io(format!("cannot remove the unfinished {}", fresh.display()), e))?;
        }
        let mut command = account::command(self.account.as_ref(), &binaries.program("initdb"), &self.root);
        command
            .arg("-D")
            .arg(&fresh)
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-instructions"])
            .stdin(Stdio::null());
        if !sync {
            command.arg("--no-sync");
        }
        let output = command.output().map_err(|e| cannot_run(binaries, "initdb", e))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(explain(&said, &self.root, "initdb could not make the database's files"));
        }
        std::fs::rename(&fresh, &target)
            .map_err(|e| disk(e, &format!("cannot rename {} to {}", fresh.display(), target.display())))
    }
}

/// The newest major that a home has data of.
pub(super) fn existing_major(root: &Path) -> Option<u32> {
    let entries = std::fs::read_dir(root).ok()?;
    entries
        .flatten()
        .filter(|entry| entry.path().join("PG_VERSION").is_file())
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("pg")?.parse().ok())
        .max()
}

/// A folder that holds other things is not ours to fill.
fn refuse_foreign(root: &Path) -> Result<(), DbError> {
    if root.is_file() {
        return Err(DbError::Usage(format!("{} is a file, not a folder", root.display())));
    }
    let Ok(mut entries) = std::fs::read_dir(root) else { return Ok(()) };
    if entries.next().is_some() && !root.join("lock").is_file() {
        return Err(DbError::Usage(format!(
            "{} holds files that rowdeck did not make; choose an empty folder with --dir",
            root.display()
        )));
    }
    Ok(())
}

fn lock(root: &Path) -> Result<Flock<File>, DbError> {
    let path = root.join("lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(|e| disk(e, &format!("cannot write {}", path.display())))?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(mut locked) => {
            let pid = std::process::id().to_string();
            let write = |file: &mut File| -> std::io::Result<()> {
                file.set_len(0)?;
                file.seek(SeekFrom::Start(0))?;
                file.write_all(pid.as_bytes())
            };
            write(&mut locked).map_err(|e| disk(e, &format!("cannot write {}", path.display())))?;
            Ok(locked)
        }
        Err((mut file, nix::errno::Errno::EWOULDBLOCK)) => {
            let mut pid = String::new();
            let known = file.read_to_string(&mut pid).is_ok() && pid.parse::<u32>().is_ok();
            let who = if known { format!("another rowdeck (pid {pid})") } else { "another rowdeck".to_owned() };
            Err(DbError::Embedded(format!(
                "{who} is using {}; quit it first, or give this one a folder of its own with --dir",
                root.display()
            )))
        }
        Err((_, errno)) => Err(DbError::io(format!("cannot lock {}", path.display()), errno.into())),
    }
}

fn make_folder(path: &Path) -> Result<(), DbError> {
    let fail = |e| disk(e, &format!("cannot make the folder {}", path.display()));
    if let Some(parent) = path.parent() {
        // The folders above are ordinary ones; only the last is private.
        std::fs::create_dir_all(parent).map_err(fail)?;
    }
    std::fs::DirBuilder::new().mode(0o700).create(path).map_err(fail)
}

/// A fresh folder that only we can enter, below the shortest temporary folder there is.
pub(super) fn temporary_folder(prefix: &str) -> Result<PathBuf, DbError> {
    // As root, XDG_RUNTIME_DIR is root's own and the server's user could not enter it.
    let private = std::env::var_os("XDG_RUNTIME_DIR").filter(|_| !nix::unistd::geteuid().is_root());
    let mut candidates: Vec<PathBuf> = private.map(PathBuf::from).into_iter().collect();
    candidates.extend([std::env::temp_dir(), PathBuf::from("/tmp")]);
    let fits = |folder: &&PathBuf| folder.is_dir() && folder.as_os_str().len() + prefix.len() + 40 < 103;
    let Some(parent) = candidates.iter().find(fits) else {
        return Err(DbError::Embedded("there is no temporary folder with a short enough path for a socket".to_owned()));
    };
    nix::unistd::mkdtemp(&parent.join(format!("{prefix}XXXXXX")))
        .map_err(|e| disk(e.into(), &format!("cannot make a folder in {}", parent.display())))
}

/// An input or output error in a sentence that says so when the disk is full.
pub(super) fn disk(error: std::io::Error, what: &str) -> DbError {
    if error.kind() == std::io::ErrorKind::StorageFull {
        return DbError::Embedded(format!("the disk is full: {what}; nothing was lost, free some space and try again"));
    }
    DbError::io(what, error)
}

pub(super) fn cannot_run(binaries: &Binaries, program: &str, error: std::io::Error) -> DbError {
    DbError::io(format!("cannot run {}", binaries.program(program).display()), error)
}

/// True when a server program complained of a full disk.
pub(super) fn says_full(said: &str) -> bool {
    said.contains("No space left on device")
}

/// What a server program said before it gave up, as one sentence.
pub(super) fn explain(said: &str, root: &Path, what: &str) -> DbError {
    if says_full(said) {
        return DbError::Embedded(format!(
            "the disk that holds {} is full: {what}; nothing was lost, free some space and try again",
            root.display()
        ));
    }
    let severities = ["FATAL:", "PANIC:", "error:", "ERROR:"];
    let line = said
        .lines()
        .filter_map(|line| severities.iter().find_map(|word| line.split_once(word)).map(|(_, rest)| rest.trim()))
        .next()
        .or_else(|| said.lines().rfind(|line| !line.trim().is_empty()));
    let words = line.unwrap_or("it said nothing");
    DbError::Embedded(format!("{what}: {}", crate::text::line(words)))
}
