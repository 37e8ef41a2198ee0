//! Finding a PostgreSQL server among what is installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::db::error::DbError;

/// The majors we work with.
const OLDEST: u32 = 15;
const NEWEST: u32 = 18;

/// A server's programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// The folder of `postgres` and `initdb`.
    pub folder: PathBuf,
    /// `15`
    pub major: u32,
    /// `15.7`
    pub version: String,
}

impl Binaries {
    /// The server to use: `ROWDECK_PG_BIN` alone when it is set, otherwise the newest supported of all that
    /// `pg_config`, `PATH` and the distributions' folders hold. With `major`, only that one.
    pub fn find(major: Option<u32>) -> Result<Binaries, DbError> {
        if let Some(folder) = std::env::var_os("ROWDECK_PG_BIN").filter(|value| !value.is_empty()) {
            return Binaries::at(Path::new(&folder));
        }
        let mut found: Vec<Binaries> = Vec::new();
        let mut unsupported = None;
        for folder in folders() {
            match probe(&folder) {
                Some(server) if !(OLDEST..=NEWEST).contains(&server.major) => unsupported = Some(server),
                Some(server) if major.is_none_or(|major| major == server.major) => found.push(server),
                _ => {}
            }
        }
        // The first of the newest, so that what pg_config and PATH say comes before the folders we guess.
        let mut best: Option<Binaries> = None;
        for server in found {
            if best.as_ref().is_none_or(|best| server.major > best.major) {
                best = Some(server);
            }
        }
        best.ok_or_else(|| DbError::Embedded(missing(major, unsupported.as_ref())))
    }

    /// The server in this folder.
    pub fn at(folder: &Path) -> Result<Binaries, DbError> {
        let server = probe(folder).ok_or_else(|| {
            DbError::Embedded(format!(
                "ROWDECK_PG_BIN is {}, where no PostgreSQL server (postgres and initdb) can be run",
                folder.display()
            ))
        })?;
        if (OLDEST..=NEWEST).contains(&server.major) {
            return Ok(server);
        }
        Err(DbError::Embedded(format!(
            "ROWDECK_PG_BIN holds PostgreSQL {}; rowdeck works with {OLDEST} to {NEWEST}",
            server.version
        )))
    }

    /// The path of one of the server's programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// The server in `folder`, when both programs are there and `postgres` says its version.
fn probe(folder: &Path) -> Option<Binaries> {
    if !folder.join("initdb").is_file() || !folder.join("postgres").is_file() {
        return None;
    }
    let output = Command::new(folder.join("postgres")).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let version = version_of(&text)?;
    let major = version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    Some(Binaries { folder: folder.to_owned(), major, version })
}

/// `15.7` of `postgres (PostgreSQL) 15.7 (Debian 15.7-0+deb12u1)`.
fn version_of(text: &str) -> Option<String> {
    text.split(") ").nth(1)?.split_whitespace().next().map(str::to_owned)
}

fn folders() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if let Ok(output) = Command::new("pg_config").arg("--bindir").output() {
        folders.push(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    }
    if let Some(path) = std::env::var_os("PATH") {
        folders.extend(std::env::split_paths(&path));
    }
    for (parent, prefix, inside) in [
        ("/usr/lib/postgresql", "", "bin"),          // Debian, Ubuntu
        ("/usr", "pgsql-", "bin"),                   // PostgreSQL's own packages for Fedora and its kin
        ("/usr/lib", "postgresql", "bin"),           // openSUSE, Alpine
        ("/usr/libexec", "postgresql", ""),          // Alpine
        ("/opt/homebrew/opt", "postgresql@", "bin"), // Homebrew on Apple silicon
        ("/usr/local/opt", "postgresql@", "bin"),    // Homebrew on Intel
        ("/Applications/Postgres.app/Contents/Versions", "", "bin"),
        ("/usr/local", "pgsql", "bin"), // built from source
    ] {
        let Ok(entries) = std::fs::read_dir(parent) else { continue };
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        names.sort();
        folders.extend(
            names
                .into_iter()
                .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)))
                .map(|path| path.join(inside)),
        );
    }
    folders.retain(|folder| folder.is_absolute());
    folders
}

fn missing(major: Option<u32>, unsupported: Option<&Binaries>) -> String {
    let install = install_hint();
    if let Some(major) = major {
        return format!(
            "the data were made by PostgreSQL {major}, and no such server is installed; install it ({install}), or \
             use another folder with --dir"
        );
    }
    match unsupported {
        Some(server) => format!(
            "the only PostgreSQL server found is {} in {}; rowdeck works with {OLDEST} to {NEWEST}: {install}",
            server.version,
            server.folder.display()
        ),
        None => format!(
            "no PostgreSQL server is installed; install one: {install} (or set ROWDECK_PG_BIN to the folder of \
             postgres and initdb)"
        ),
    }
}

/// The command that installs a server on this system.
fn install_hint() -> &'static str {
    if cfg!(target_os = "macos") {
        return "brew install postgresql@17";
    }
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let ids: Vec<&str> = release
        .lines()
        .filter_map(|line| line.strip_prefix("ID=").or_else(|| line.strip_prefix("ID_LIKE=")))
        .flat_map(|value| value.trim_matches('"').split_whitespace())
        .collect();
    for (id, command) in [
        ("debian", "apt install postgresql"),
        ("ubuntu", "apt install postgresql"),
        ("fedora", "dnf install postgresql-server"),
        ("rhel", "dnf install postgresql-server"),
        ("alpine", "apk add postgresql"),
        ("arch", "pacman -S postgresql"),
        ("suse", "zypper install postgresql-server"),
    ] {
        if ids.contains(&id) {
            return command;
        }
    }
    "your system's package of the PostgreSQL server"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_any_package() {
        assert_eq!(version_of("postgres (PostgreSQL) 15.7 (Debian 15.7-0+deb12u1)\n").as_deref(), Some("15.7"));
        assert_eq!(version_of("postgres (PostgreSQL) 18.1\n").as_deref(), Some("18.1"));
        assert_eq!(version_of("postgres (PostgreSQL) 18beta1\n").as_deref(), Some("18beta1"));
        assert_eq!(version_of("nonsense"), None);
    }
}
