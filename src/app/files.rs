//! The policy's file: read whole, written whole or not at all, and unsaved text kept where a crash cannot reach it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};

use super::message::SaveProblem;
use super::model::policy::DiskStamp;

/// Larger files are no policies.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// Reads a policy; a file that is not there yet is an empty one.
///
/// # Errors
/// In one sentence.
pub fn load(path: &Path) -> Result<(String, Option<DiskStamp>), String> {
    let missing = fs::metadata(path).is_err_and(|e| e.kind() == io::ErrorKind::NotFound);
    if missing && path.parent().is_none_or(|folder| folder.as_os_str().is_empty() || folder.is_dir()) {
        return Ok((String::new(), None));
    }
    read(path).map(|(text, stamp)| (text, Some(stamp)))
}

fn read(path: &Path) -> Result<(String, DiskStamp), String> {
    let shown = path.display();
    let stamp = stamp(path).map_err(|e| format!("cannot read {shown}: {e}"))?;
    if stamp.bytes > MOST_BYTES {
        return Err(format!("{shown} has {} bytes; a policy has {MOST_BYTES} at most", stamp.bytes));
    }
    let bytes = fs::read(path).map_err(|e| format!("cannot read {shown}: {e}"))?;
    let text = String::from_utf8(bytes)
        .map_err(|e| format!("{shown} is not UTF-8 text (byte {})", e.utf8_error().valid_up_to()))?;
    Ok((text, stamp))
}

fn stamp(path: &Path) -> io::Result<DiskStamp> {
    let meta = fs::metadata(path)?;
    let modified = meta.modified()?.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
    Ok(DiskStamp { bytes: meta.len(), modified })
}

/// Writes `text` to `path`: to a file beside it, then renamed over it. A link is followed, the file's mode is kept.
///
/// # Errors
/// When the file is not what `expect` says any more, or cannot be written; it is then as it was.
pub fn save(path: &Path, text: &str, expect: Option<DiskStamp>) -> Result<DiskStamp, SaveProblem> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if let Some(expected) = expect
        && stamp(&path).is_ok_and(|now| now != expected)
    {
        return Err(SaveProblem::ChangedOnDisk);
    }
    let other = |e: io::Error| SaveProblem::Other(format!("cannot write {}: {e}", path.display()));
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let beside = folder.join(format!(".{name}.{}.tmp", std::process::id()));
    let written = write_new(&beside, text, fs::metadata(&path).ok().map(|m| m.permissions()))
        .and_then(|()| fs::rename(&beside, &path));
    if let Err(error) = written {
        // What was begun is of no use to anybody; the error that matters is the first one.
        let _ = fs::remove_file(&beside);
        return Err(other(error));
    }
    // The rename itself reaches the disk with the folder.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    stamp(&path).map_err(other)
}

fn write_new(path: &Path, text: &str, permissions: Option<fs::Permissions>) -> io::Result<()> {
    let mut file = private(path)?;
    file.write_all(text.as_bytes())?;
    if let Some(permissions) = permissions {
        file.set_permissions(permissions)?;
    } else {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            file.set_permissions(fs::Permissions::from_mode(0o644))?;
        }
    }
    file.sync_all()
}

/// Writes a file that is not there yet; only its owner can read it, since it may hold anything.
///
/// # Errors
/// In one sentence, also when there is such a file.
pub fn write_new_file(path: &Path, text: &str) -> Result<(), String> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => format!("{} is there already; nothing is overwritten", path.display()),
        _ => format!("{}: {error}", path.display()),
    })
}

/// A new file only its owner can read.
fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options.open(path)
}

/// Where unsaved text of one file is kept by one process.
#[derive(Debug, Clone)]
pub struct Kept {
    own: PathBuf,
    found: Option<PathBuf>,
}

impl Kept {
    /// The place for this policy's file, and the text a console left there that has ended since.
    pub fn open(folder: &Path, policy: &Path) -> (Self, Option<String>) {
        let whole = fs::canonicalize(policy).unwrap_or_else(|_| policy.to_owned());
        let hash = Sha256::digest(whole.to_string_lossy().as_bytes());
        let name: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let own = folder.join(format!("{name}-{}.authz", std::process::id()));
        let found = left_behind(folder, &name);
        let text = found.as_ref().and_then(|path| fs::read_to_string(path).ok());
        (Kept { own, found }, text)
    }

    /// Keeps `text`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self, text: &str) -> io::Result<()> {
        if let Some(folder) = self.own.parent() {
            fs::create_dir_all(folder)?;
        }
        private(&self.own)?.write_all(text.as_bytes())
    }

    /// Throws our own kept text away.
    pub fn drop_own(&self) {
        // It may never have been written.
        let _ = fs::remove_file(&self.own);
    }

    /// Makes the text found at the start ours, in one step.
    pub fn adopt_found(&mut self) {
        if let Some(path) = self.found.take() {
            // Where it cannot be renamed it stays where it was and is offered again.
            let _ = fs::rename(path, &self.own);
        }
    }

    /// Throws the text found at the start away.
    pub fn drop_found(&mut self) {
        if let Some(path) = self.found.take() {
            let _ = fs::remove_file(path);
        }
    }
}

/// The newest text kept for this policy by a process that is no more.
fn left_behind(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut found: Vec<(std::time::SystemTime, PathBuf)> = fs::read_dir(folder)
        .ok()?
        .filter_map(Result::ok)
        .filter(|entry| {
            let file = entry.file_name().to_string_lossy().into_owned();
            let pid =
                file.strip_prefix(name).and_then(|rest| rest.strip_prefix('-')?.strip_suffix(".authz")?.parse().ok());
            pid.is_some_and(|pid: i32| !alive(pid))
        })
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    found.sort();
    found.pop().map(|(_, path)| path)
}

#[cfg(unix)]
fn alive(pid: i32) -> bool {
    use nix::errno::Errno;
    !matches!(nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None), Err(Errno::ESRCH))
}

#[cfg(not(unix))]
fn alive(_pid: i32) -> bool {
    false
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    #[test]
    fn a_file_that_changed_on_disk_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.authz");
        fs::write(&path, "one\n").unwrap();
        let (text, stamp) = load(&path).unwrap();
        assert_eq!(text, "one\n");
        let stamp = save(&path, "two\n", stamp).unwrap();
        fs::write(&path, "three, by someone else\n").unwrap();
        assert_eq!(save(&path, "four\n", Some(stamp)), Err(SaveProblem::ChangedOnDisk));
        assert_eq!(fs::read_to_string(&path).unwrap(), "three, by someone else\n");
        save(&path, "four\n", None).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "four\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn text_kept_by_a_dead_process_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("p.authz");
        let state = folder.path().join("state");
        let (kept, found) = Kept::open(&state, &policy);
        assert_eq!(found, None);
        kept.keep("unsaved").unwrap();
        // Our own process lives, so it is not offered to a second console on the same file.
        assert_eq!(Kept::open(&state, &policy).1, None);
        let name =
            kept.own.file_name().unwrap().to_string_lossy().replace(&std::process::id().to_string(), "999999999");
        fs::rename(&kept.own, state.join(name)).unwrap();
        let (mut kept, found) = Kept::open(&state, &policy);
        assert_eq!(found.as_deref(), Some("unsaved"));
        kept.drop_found();
        assert_eq!(Kept::open(&state, &policy).1, None);
    }
}
