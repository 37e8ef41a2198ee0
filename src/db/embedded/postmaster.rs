//! The server's own pid file, and whether the process it names is that server.

use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// What `postmaster.pid` says of a server that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Postmaster {
    /// Its process.
    pub pid: i32,
    /// Its port.
    pub port: u16,
    /// Its socket's folder.
    pub socket_folder: PathBuf,
}

/// What stands in a data folder's `postmaster.pid`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PidFile {
    /// No server, and no file.
    None,
    /// A file left behind by a server that was killed.
    Stale,
    /// A server runs.
    Running(Postmaster),
}

/// Reads the pid file of a data folder.
pub fn read(data: &Path) -> PidFile {
    let Ok(text) = std::fs::read_to_string(data.join("postmaster.pid")) else { return PidFile::None };
    let mut lines = text.lines();
    let pid = lines.next().and_then(|line| line.trim().parse::<i32>().ok());
    match pid {
        Some(pid) if is_server(pid) => PidFile::Running(Postmaster {
            pid,
            port: lines.nth(2).and_then(|line| line.trim().parse().ok()).unwrap_or(5432),
            socket_folder: lines.next().unwrap_or("").trim().into(),
        }),
        _ => PidFile::Stale,
    }
}

/// True while the process exists (a process of another user counts; one that ended and was not collected does not).
pub fn alive(pid: i32) -> bool {
    let zombie = std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')));
    !zombie && !matches!(kill(Pid::from_raw(pid), None), Err(nix::errno::Errno::ESRCH))
}

/// True when the process exists and is a PostgreSQL server: pids are used again, and a pid file may outlive a crash of
/// the machine.
fn is_server(pid: i32) -> bool {
    if pid <= 1 || !alive(pid) {
        return false;
    }
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok().filter(|bytes| !bytes.is_empty()).or_else(|| {
        let output = std::process::Command::new("ps").args(["-o", "command=", "-p", &pid.to_string()]).output().ok()?;
        Some(output.stdout)
    });
    command.is_some_and(|bytes| String::from_utf8_lossy(&bytes).contains("postgres"))
}

/// Sends a signal; a process that is gone is no error.
pub(super) fn signal(pid: i32, signal: Signal) -> std::io::Result<()> {
    match kill(Pid::from_raw(pid), signal) {
        Ok(()) | Err(nix::errno::Errno::ESRCH) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    #[test]
    fn a_pid_that_is_not_a_server_is_stale() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()), PidFile::None);
        let ours = std::process::id();
        for pid in [ours.to_string(), "1".to_owned(), "999999999".to_owned(), "rubbish".to_owned()] {
            std::fs::write(folder.path().join("postmaster.pid"), format!("{pid}\n/d\n1\n5432\n/s\n")).unwrap();
            assert_eq!(read(folder.path()), PidFile::Stale, "{pid}");
        }
    }
}
