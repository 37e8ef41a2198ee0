//! PostgreSQL refuses to run as root; when we do, the server runs as an ordinary user.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::unistd::{Gid, Uid, User};

use crate::db::error::DbError;

/// The user the server runs as, when it is not ourselves.
#[derive(Debug, Clone)]
pub(super) struct Account {
    name: String,
    uid: Uid,
    gid: Gid,
}

impl Account {
    /// `None` when we are an ordinary user; as root, `postgres` where there is one, else `nobody`.
    pub(super) fn choose() -> Result<Option<Account>, DbError> {
        if !nix::unistd::geteuid().is_root() {
            return Ok(None);
        }
        for name in ["postgres", "_postgres", "nobody"] {
            if let Ok(Some(user)) = User::from_name(name) {
                return Ok(Some(Account { name: user.name, uid: user.uid, gid: user.gid }));
            }
        }
        Err(DbError::Embedded(
            "PostgreSQL does not run as root, and there is no user postgres or nobody to run it as".to_owned(),
        ))
    }

    /// Gives a file or folder of ours to the user.
    pub(super) fn own(&self, path: &Path) -> Result<(), DbError> {
        nix::unistd::chown(path, Some(self.uid), Some(self.gid))
            .map_err(|e| DbError::io(format!("cannot give {} to the user {}", path.display(), self.name), e.into()))
    }

    /// Fails with a sentence when the user cannot get into `folder`: the server would only say "permission denied".
    pub(super) fn check_reach(&self, folder: &Path) -> Result<(), DbError> {
        for ancestor in folder.ancestors() {
            let Ok(metadata) = std::fs::metadata(ancestor) else { continue };
            let bit = if metadata.uid() == self.uid.as_raw() {
                0o100
            } else if metadata.gid() == self.gid.as_raw() {
                0o010
            } else {
                0o001
            };
            if metadata.permissions().mode() & bit == 0 {
                return Err(DbError::Embedded(format!(
                    "the server runs as the user {} (PostgreSQL does not run as root), who may not enter {}; choose \
                     another folder with --dir",
                    self.name,
                    ancestor.display()
                )));
            }
        }
        Ok(())
    }
}

/// A command that runs as the account, in a process group of its own (Ctrl-C in the terminal is for us, not for it),
/// with English messages and none of our PostgreSQL variables.
pub(super) fn command(account: Option<&Account>, program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C").env("LANG", "C").env("TZ", "UTC").current_dir(folder).process_group(0);
    if let Some(account) = account {
        command.uid(account.uid.as_raw()).gid(account.gid.as_raw()).env("HOME", folder).env("USER", &account.name);
    }
    command
}
