//! The user's own settings for the console: looks, keys, where exports go. What is unknown or cannot be is named, never
//! passed over.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::keymap::Keymap;
use super::theme::{Depth, Theme};

/// The file's name in the user's configuration folder.
pub const FILE_NAME: &str = "config.toml";

/// What the file says.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// A theme's name.
    pub theme: Option<String>,
    /// How many colours the terminal has: `16`, `256` or `truecolour`; found out when not given.
    pub colours: Option<Depth>,
    /// The folder that exports are written to; the current one when not given.
    pub export: Option<PathBuf>,
    /// Keys by command, in place of the usual ones; none unbinds it.
    #[serde(default)]
    pub keys: BTreeMap<String, Keys>,
}

/// One key or several.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Keys {
    /// One.
    One(String),
    /// Several, or none.
    Several(Vec<String>),
}

impl Settings {
    /// Where the file is, when there is a home to have one in.
    pub fn path() -> Option<PathBuf> {
        let dirs = directories::ProjectDirs::from("", "", "rowdeck")?;
        Some(dirs.config_dir().join(FILE_NAME)).filter(|path| path.is_absolute())
    }

    /// Reads the file; the usual settings when there is none.
    ///
    /// # Errors
    /// Names the line and what is wrong in it.
    pub fn read(path: &Path) -> Result<Settings, String> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Settings::default()),
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        };
        Settings::parse(&text).map_err(|(line, why)| format!("{}:{line}: {why}", path.display()))
    }

    /// Reads a text; an error has its line.
    ///
    /// # Errors
    /// The line and what is wrong in it.
    pub fn parse(text: &str) -> Result<Settings, (usize, String)> {
        toml::from_str(text).map_err(|e| {
            let line = e.span().map_or(1, |span| text.get(..span.start).unwrap_or("").matches('\n').count() + 1);
            (line, crate::text::line(e.message()).into_owned())
        })
    }

    /// The keys in force.
    ///
    /// # Errors
    /// Every command that is unknown, key that is none, and key that would mean two things.
    pub fn keymap(&self) -> Result<Keymap, Vec<String>> {
        let list = |keys: &Keys| match keys {
            Keys::One(key) => vec![key.clone()],
            Keys::Several(keys) => keys.clone(),
        };
        Keymap::with(&self.keys.iter().map(|(name, keys)| (name.clone(), list(keys))).collect())
    }

    /// Everything that is wrong with these settings.
    pub fn problems(&self) -> Vec<String> {
        let mut found = Vec::new();
        if let Some(theme) = &self.theme
            && let Err(why) = Theme::named(theme)
        {
            found.push(why);
        }
        if let Some(folder) = self.export.as_ref().filter(|folder| !folder.is_dir()) {
            found.push(format!("export: {} is no folder", folder.display()));
        }
        found.extend(self.keymap().err().into_iter().flatten());
        found
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    #[test]
    fn what_is_unknown_is_named_with_its_line() {
        let (line, why) = Settings::parse("theme = \"dark\"\nthme = \"x\"\n").unwrap_err();
        assert!(line == 2 && why.contains("thme"), "{line}: {why}");
        let settings = Settings::parse("theme = \"pink\"\n[keys]\n\"apply.ran\" = \"x\"\n\"quit\" = []\n").unwrap();
        let found = settings.problems().join("\n");
        assert!(found.contains("pink") && found.contains("did you mean apply.run"), "{found}");
    }

    #[test]
    fn a_missing_file_is_the_usual_settings() {
        assert_eq!(Settings::read(Path::new("/nothing/here.toml")), Ok(Settings::default()));
    }
}
