//! Which policy and which database a command is about.

use std::path::{Path, PathBuf};

use super::args::Global;
use super::output::note;
use crate::db::config::Config;
use crate::db::connect::Session;
use crate::db::embedded::{self, PidFile};
use crate::db::error::DbError;
use crate::db::target::{Target, process_environment};

/// The nearest rowdeck.toml.
pub(super) fn config() -> Result<Config, DbError> {
    let folder = std::env::current_dir().map_err(|e| DbError::io("the current folder cannot be read", e))?;
    Config::find(&folder)
}

/// The policy's path: as given, or rowdeck.toml's.
pub(super) fn policy_path(given: Option<&Path>) -> Result<PathBuf, DbError> {
    if let Some(path) = given {
        return Ok(path.to_owned());
    }
    config()?.policy_path().ok_or_else(|| {
        DbError::Usage("no policy is given, and no rowdeck.toml here or above names one (policy = \"...\")".to_owned())
    })
}

/// The database.
pub(super) fn target(global: &Global) -> Result<Target, DbError> {
    let config = config()?;
    match global.target.as_deref() {
        Some("demo") if names_the_demo(global, &config) => Ok(running_demo()?.target),
        name => config.target(global.db.as_deref(), name, &process_environment),
    }
}

/// A session on the database.
pub(super) async fn session(global: &Global) -> Result<Session, DbError> {
    Session::open(&target(global)?).await
}

/// A target called `demo` in rowdeck.toml comes before the demo's own server.
fn names_the_demo(global: &Global, config: &Config) -> bool {
    global.target.as_deref() == Some("demo") && !config.targets.contains_key("demo")
}

/// The policy's file in the folder of the demo that the target means; `None` when it means another database.
pub(super) fn demo_policy(global: &Global, config: &Config) -> Result<Option<PathBuf>, DbError> {
    if !names_the_demo(global, config) {
        return Ok(None);
    }
    Ok(Some(running_demo()?.policy).filter(|path| path.exists()))
}

/// A demo whose server runs.
struct Demo {
    target: Target,
    policy: PathBuf,
}

/// The demo's server, when one runs: the one of the size that was started last.
fn running_demo() -> Result<Demo, DbError> {
    let folder = embedded::default_folder()?;
    let mut newest = None;
    for size in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        for data in std::fs::read_dir(size.path()).into_iter().flatten().flatten() {
            let PidFile::Running(server) = embedded::read_pid_file(&data.path()) else { continue };
            let since = std::fs::metadata(data.path().join("postmaster.pid")).and_then(|m| m.modified()).ok();
            if newest.as_ref().is_none_or(|(best, _)| *best < since) {
                newest = Some((since, (server, size.path().join("docs.authz"))));
            }
        }
    }
    let Some((_, (server, policy))) = newest else {
        return Err(DbError::Usage(format!(
            "no demo server runs (looked in {}); start one with: rowdeck demo, or rowdeck demo --headless --keep",
            folder.display()
        )));
    };
    let mut target =
        Target::socket(server.socket_folder, server.port, crate::db::demo::OWNER, crate::db::demo::DATABASE);
    target.name = Some("demo".to_owned());
    Ok(Demo { target, policy })
}

/// Other users of the machine can read our arguments.
pub(super) fn warn_of_visible_password(db: Option<&str>) {
    let Some(db) = db else { return };
    let in_url = db.split_once("://").is_some_and(|(_, rest)| {
        let authority = rest.split(['/', '?']).next().unwrap_or("");
        authority.rsplit_once('@').is_some_and(|(credentials, _)| credentials.contains(':'))
    });
    if in_url || db.contains("password=") {
        note(
            "rowdeck: warning: other users can see the password in --db in the list of processes; use PGPASSWORD, \
             ~/.pgpass, or url = \"env:NAME\" in rowdeck.toml",
        );
    }
}
