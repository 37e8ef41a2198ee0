//! libpq's password file: `~/.pgpass`, or the one `passfile` or `PGPASSFILE` names.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::error::DbError;
use super::secret::Secret;
use super::target::{HostPlace, Target};

/// The password the file holds for `target`, if any. As in libpq a file that others may read is not used; unlike in
/// libpq that is an error when the file was named, since somebody then counts on it.
pub(super) fn find(target: &Target, named: Option<PathBuf>) -> Result<Option<Secret>, DbError> {
    let path = match &named {
        Some(path) => path.clone(),
        None => match directories::BaseDirs::new() {
            Some(dirs) => dirs.home_dir().join(".pgpass"),
            None => return Ok(None),
        },
    };
    let metadata = match std::fs::metadata(&path) {
        Ok(metadata) if metadata.is_file() => metadata,
        _ if named.is_none() => return Ok(None),
        Ok(_) => return Err(DbError::Usage(format!("the password file {} is not a file", path.display()))),
        Err(e) => return Err(DbError::io(format!("cannot read the password file {}", path.display()), e)),
    };
    if metadata.permissions().mode() & 0o077 != 0 {
        let words = format!("the password file {} may be read by others; run: chmod 0600 on it", path.display());
        if named.is_some() {
            return Err(DbError::Usage(words));
        }
        tracing::warn!("{words}");
        return Ok(None);
    }
    let text = std::fs::read_to_string(&path)
        .map_err(|e| DbError::io(format!("cannot read the password file {}", path.display()), e))?;
    Ok(target.hosts.iter().find_map(|host| {
        let place = match &host.place {
            HostPlace::Unix(_) => "localhost",
            HostPlace::Tcp(name) => name,
        };
        search(&text, [place, &host.port.to_string(), &target.database, &target.user])
    }))
}

fn search(text: &str, wanted: [&str; 4]) -> Option<Secret> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let (password, keys) = fields.split_last()?;
        let fits =
            keys.len() == wanted.len() && keys.iter().zip(wanted).all(|(have, want)| have == "*" || have == want);
        fits.then(|| Secret::new(password.clone()))
    })
}

/// The fields of a line, divided by `:`; `\` makes the next character plain.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        let (end, plain) = match c {
            '\\' => (false, chars.next()),
            // The password is the fifth field and the last.
            ':' if fields.len() < 5 => (true, None),
            c => (false, Some(c)),
        };
        if end {
            fields.push(String::new());
        } else if let Some(field) = fields.last_mut() {
            field.extend(plain);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    #[test]
    fn the_first_line_that_fits_is_used() {
        let text = "# c\ndb1:5432:docs:ann:a\\:b\n*:*:*:bo:any:thing\n";
        assert_eq!(search(text, ["db1", "5432", "docs", "ann"]).unwrap().reveal(), "a:b");
        assert_eq!(search(text, ["db2", "1", "x", "bo"]).unwrap().reveal(), "any:thing");
        assert_eq!(search(text, ["db2", "5432", "docs", "ann"]), None);
    }
}
