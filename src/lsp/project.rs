//! Which policy a document belongs to, with the texts of the editor in place of those on disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::compiler::compile_with;
use crate::compiler::include::{LoadError, Loader};
use crate::compiler::span::FileId;
use crate::compiler::symbols::{Occurrence, occurrences};
use crate::db::config::Config;
use crate::policy_file::{Analysis, Folder, LARGEST};

/// The texts the editor has open, by their addresses.
#[derive(Debug, Default)]
pub(super) struct Documents(BTreeMap<String, (PathBuf, String)>);

impl Documents {
    pub(super) fn set(&mut self, uri: &str, text: String) {
        self.0.insert(uri.to_owned(), (path_of(uri), text));
    }

    pub(super) fn close(&mut self, uri: &str) {
        self.0.remove(uri);
    }

    pub(super) fn open(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    pub(super) fn text(&self, uri: &str) -> Option<&str> {
        self.0.get(uri).map(|(_, text)| text.as_str())
    }

    /// The path of a document that is open.
    pub(super) fn path(&self, uri: &str) -> Option<PathBuf> {
        self.0.get(uri).map(|(path, _)| path.clone())
    }

    /// The address of a path: the editor's own where it has it open.
    pub(super) fn uri(&self, path: &Path) -> String {
        let own = self.0.iter().find(|(_, (known, _))| known == path).map(|(uri, _)| uri.clone());
        own.unwrap_or_else(|| uri_of(path))
    }

    fn by_path(&self, path: &Path) -> Option<&str> {
        self.0.values().find(|(known, _)| known == path).map(|(_, text)| text.as_str())
    }
}

/// A policy as an editor sees it.
pub(super) struct Project {
    /// Its main file.
    pub(super) root: PathBuf,
    pub(super) analysis: Analysis,
    pub(super) names: Vec<Occurrence>,
    paths: Vec<PathBuf>,
}

impl Project {
    /// The policy this document is a part of: that of rowdeck.toml when it includes it, else the document alone.
    pub(super) fn of(documents: &Documents, path: &Path) -> Self {
        let configured = path.parent().and_then(|folder| Config::find(folder).ok()?.policy_path());
        let configured = configured.map(|main| main.canonicalize().unwrap_or(main)).filter(|main| main != path);
        if let Some(main) = configured {
            let project = Project::with_root(documents, &main);
            if project.file(path).is_some() {
                return project;
            }
        }
        Project::with_root(documents, path)
    }

    fn with_root(documents: &Documents, root: &Path) -> Self {
        let folder = root.parent().map(Path::to_owned).unwrap_or_default();
        let loader = Open { documents, folder: folder.clone(), disk: Folder::of(root) };
        let text = documents.by_path(root).map(str::to_owned).or_else(|| read(root)).unwrap_or_default();
        let analysis = Analysis::of(compile_with(&root.display().to_string(), &text, &loader));
        let included = analysis.compiled.sources.files().iter().skip(1).map(|file| folder.join(&file.name));
        let paths = std::iter::once(root.to_owned()).chain(included).collect();
        let names = occurrences(&analysis.compiled.ast);
        Project { root: root.to_owned(), analysis, names, paths }
    }

    /// Which of its files this is.
    pub(super) fn file(&self, path: &Path) -> Option<FileId> {
        self.files().find(|(_, known)| *known == path).map(|(file, _)| file)
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (FileId, &Path)> {
        (0u16..).map(FileId).zip(self.paths.iter().map(PathBuf::as_path))
    }

    /// The address of one of its files.
    pub(super) fn uri(&self, file: FileId) -> Option<lsp_types::Uri> {
        uri_of(self.paths.get(usize::from(file.0))?).parse().ok()
    }
}

fn read(path: &Path) -> Option<String> {
    let small = std::fs::metadata(path).is_ok_and(|known| known.is_file() && known.len() <= LARGEST);
    small.then(|| std::fs::read_to_string(path).ok()).flatten()
}

/// Includes: what the editor has open, else what is on disk.
struct Open<'d> {
    documents: &'d Documents,
    folder: PathBuf,
    disk: Folder,
}

impl Loader for Open<'_> {
    fn load(&self, path: &str) -> Result<String, LoadError> {
        match self.documents.by_path(&self.folder.join(path)) {
            Some(text) => Ok(text.to_owned()),
            None => self.disk.load(path),
        }
    }
}

/// The path a `file:` address names; any other address is a name of its own.
fn path_of(uri: &str) -> PathBuf {
    let Some(rest) = uri.strip_prefix("file://") else { return PathBuf::from(uri) };
    // Between the slashes may stand a host, which for files is this one.
    let path = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or(rest);
    let mut bytes = Vec::with_capacity(path.len());
    let mut left = path.as_bytes();
    while let Some((first, rest)) = left.split_first() {
        let digits = rest.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match digits.filter(|_| *first == b'%').and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                left = rest.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                left = rest;
            }
        }
    }
    let path = PathBuf::from(String::from_utf8_lossy(&bytes).into_owned());
    path.canonicalize().unwrap_or(path)
}

fn uri_of(path: &Path) -> String {
    let mut uri = String::from("file://");
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => uri.push(char::from(byte)),
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    #[test]
    fn addresses_are_paths_and_back() {
        for path in ["/nowhere/a b/č.authz", "/nowhere/100%.authz", "/nowhere/p.authz"] {
            assert_eq!(path_of(&uri_of(Path::new(path))), Path::new(path));
            assert!(uri_of(Path::new(path)).parse::<lsp_types::Uri>().is_ok());
        }
        assert_eq!(path_of("file://localhost/nowhere/p.authz"), Path::new("/nowhere/p.authz"));
        assert_eq!(path_of("untitled:1"), Path::new("untitled:1"));
        assert_eq!(path_of("file:///nowhere/%zz%"), Path::new("/nowhere/%zz%"));
    }
}
