//! `rowdeck.toml`: the policy's file and the servers by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::error::DbError;
use super::target::{Environment, Target, environment_names_a_server};

/// The file's name.
pub const FILE_NAME: &str = "rowdeck.toml";

/// What rowdeck.toml says.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The policy, relative to the file's folder.
    pub policy: Option<PathBuf>,
    /// Files of tests that go with the policy, relative to the file's folder.
    #[serde(default)]
    pub tests: Vec<PathBuf>,
    /// Servers by name.
    #[serde(default)]
    pub targets: BTreeMap<String, TargetEntry>,
    /// Where the file was found.
    #[serde(skip)]
    pub path: Option<PathBuf>,
}

/// One server in rowdeck.toml.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetEntry {
    /// A connection string, or `env:NAME` for one in an environment variable.
    pub url: String,
    /// The console asks more before it changes anything.
    #[serde(default)]
    pub production: bool,
    /// Nothing is changed.
    #[serde(default)]
    pub read_only: bool,
}

impl Config {
    /// Reads the rowdeck.toml of `folder` or of the nearest folder above; an empty one when there is none.
    pub fn find(folder: &Path) -> Result<Config, DbError> {
        match folder.ancestors().map(|folder| folder.join(FILE_NAME)).find(|path| path.is_file()) {
            Some(path) => Config::read(&path),
            None => Ok(Config::default()),
        }
    }

    /// Reads this file.
    pub fn read(path: &Path) -> Result<Config, DbError> {
        let text =
            std::fs::read_to_string(path).map_err(|e| DbError::io(format!("cannot read {}", path.display()), e))?;
        let mut config: Config = toml::from_str(&text).map_err(|e| {
            // The library's message spans lines with a picture; its own words and the line are enough.
            let line = e.span().map_or(1, |span| text.get(..span.start).unwrap_or("").matches('\n').count() + 1);
            DbError::Usage(format!("{}:{line}: {}", path.display(), crate::text::line(e.message())))
        })?;
        config.path = Some(path.to_owned());
        Ok(config)
    }

    /// The policy's file, when the configuration names one.
    pub fn policy_path(&self) -> Option<PathBuf> {
        let policy = self.policy.as_ref()?;
        Some(self.path.as_ref().and_then(|p| p.parent()).map_or_else(|| policy.clone(), |folder| folder.join(policy)))
    }

    /// The files of tests, from where the program stands.
    pub fn test_paths(&self) -> Vec<PathBuf> {
        let folder = self.path.as_ref().and_then(|path| path.parent());
        let from_here = |path: &PathBuf| folder.map_or_else(|| path.clone(), |folder| folder.join(path));
        self.tests.iter().map(from_here).collect()
    }

    /// The server to use: `db` (a connection string) before everything, then the target called `name`, then libpq's
    /// variables where they name a server, then the only target of the file.
    pub fn target(&self, db: Option<&str>, name: Option<&str>, environment: Environment) -> Result<Target, DbError> {
        if let Some(text) = db {
            return Target::parse(text, environment);
        }
        if let Some(name) = name {
            return self.named(name, environment);
        }
        if environment_names_a_server(environment) {
            return Target::from_environment(environment);
        }
        let mut names = self.targets.keys();
        match (names.next(), names.next()) {
            (Some(only), None) => self.named(only, environment),
            (Some(_), Some(_)) => Err(DbError::Usage(format!(
                "{} names several targets; choose one with --target: {}",
                self.shown(),
                self.names()
            ))),
            (None, _) => Err(DbError::Usage(
                "no database is given: use --db postgresql://user@host/database, --target NAME from rowdeck.toml, or \
                 PGHOST and its kin; `rowdeck demo` brings one along"
                    .to_owned(),
            )),
        }
    }

    fn named(&self, name: &str, environment: Environment) -> Result<Target, DbError> {
        let Some(entry) = self.targets.get(name) else {
            let known = if self.targets.is_empty() { "none".to_owned() } else { self.names() };
            return Err(DbError::Usage(format!(
                "there is no target \"{}\" in {}; it has: {known}",
                crate::text::line(name),
                self.shown()
            )));
        };
        let url = match entry.url.strip_prefix("env:") {
            None => entry.url.clone(),
            Some(variable) => environment(variable).ok_or_else(|| {
                DbError::Usage(format!("target \"{name}\" takes its URL from {variable}, which is not set"))
            })?,
        };
        let mut target = Target::parse(&url, environment)?;
        target.name = Some(name.to_owned());
        target.production = entry.production;
        target.read_only = entry.read_only;
        Ok(target)
    }

    fn names(&self) -> String {
        self.targets.keys().map(|name| crate::text::line(name).into_owned()).collect::<Vec<_>>().join(", ")
    }

    fn shown(&self) -> String {
        self.path.as_ref().map_or_else(|| FILE_NAME.to_owned(), |path| path.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    fn config(text: &str) -> Result<Config, DbError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE_NAME), text).unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        Config::find(&folder.path().join("a/b"))
    }

    fn env(name: &str) -> Option<String> {
        (name == "DOCS_URL").then(|| "postgresql://bo@db7/docs".to_owned())
    }

    const GOOD: &str = "policy = \"docs.authz\"\n[targets.dev]\nurl = \"host=a user=b\"\n[targets.prod]\n\
                        url = \"env:DOCS_URL\"\nproduction = true\nread_only = true\n";

    #[test]
    fn it_is_found_in_a_folder_above_and_names_targets() {
        let c = config(GOOD).unwrap();
        assert!(c.policy_path().unwrap().ends_with("docs.authz"));
        let t = c.target(None, Some("prod"), &env).unwrap();
        assert_eq!((t.describe().as_str(), t.production, t.read_only), ("bo@db7:5432/docs", true, true));
        let several = c.target(None, None, &env).unwrap_err().to_string();
        assert!(several.contains("--target: dev, prod"), "{several}");
        assert!(c.target(None, Some("x"), &env).unwrap_err().to_string().contains("dev, prod"));
        assert_eq!(c.target(Some("host=z user=q"), None, &env).unwrap().describe(), "q@z:5432/q");
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let words = config("policy = \"x\"\npolcy = \"y\"\n").unwrap_err().to_string();
        assert!(words.contains("rowdeck.toml:2:") && words.contains("polcy"), "{words}");
    }

    #[test]
    fn without_any_database_it_says_how_to_give_one() {
        assert!(Config::default().target(None, None, &env).unwrap_err().to_string().contains("--db"));
    }
}
