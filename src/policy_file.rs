//! Reading a policy's files. The compiler reads none by itself.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::compiler::diagnostic::Diagnostic;
use crate::compiler::include::{LoadError, Loader};
use crate::compiler::objects::Emitted;
use crate::compiler::{Compiled, compile_with};
use crate::db::error::DbError;

/// The largest policy file that is read. A thousand tables with their rules are a tenth of it.
pub const LARGEST: u64 = 4 * 1024 * 1024;

/// A policy's main file, as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its name without the folders, as versions in the database are called.
    pub name: String,
    /// Its text.
    pub text: String,
}

impl PolicyFile {
    /// Reads it.
    pub fn read(path: &Path) -> Result<PolicyFile, DbError> {
        let shown = crate::text::line(&path.display().to_string()).into_owned();
        let bytes = read_capped(path).map_err(|e| DbError::io(format!("cannot read the policy {shown}"), e))?;
        let Some(bytes) = bytes else {
            return Err(DbError::Unreadable(format!(
                "the policy {shown} is larger than {} MB; a policy is text that people write",
                LARGEST / 1024 / 1024
            )));
        };
        let text = String::from_utf8(bytes).map_err(|e| {
            DbError::Unreadable(format!(
                "the policy {shown} is not UTF-8 text (byte {} is not)",
                e.utf8_error().valid_up_to() + 1
            ))
        })?;
        let name = path.file_name().map_or_else(|| shown.clone(), |name| name.to_string_lossy().into_owned());
        Ok(PolicyFile { path: path.to_owned(), name, text })
    }

    /// Compiles it with the files it includes. Findings call it by `path`, as it was given.
    pub fn compile(&self) -> Compiled {
        compile_file(&self.path, &self.text)
    }
}

impl PolicyFile {
    /// Compiles it with files of tests beside it.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn compile_with_tests(&self, tests: &[PathBuf]) -> Result<Compiled, DbError> {
        let mut read = Vec::with_capacity(tests.len());
        for path in tests {
            read.push((path.display().to_string(), PolicyFile::read(path)?.text));
        }
        let name = self.path.display().to_string();
        Ok(crate::compiler::compile_with_tests(&name, &self.text, &Folder::of(&self.path), &read))
    }
}

/// Compiles a text that is, or will be, in this file.
pub fn compile_file(path: &Path, text: &str) -> Compiled {
    compile_with(&path.display().to_string(), text, &Folder::of(path))
}

/// Everything the compiler says of a policy, with what it becomes: what the console and an editor show while one types.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// The policy, as far as it could be read.
    pub compiled: Compiled,
    /// Mistakes and lints, in the order of the text.
    pub found: Vec<Diagnostic>,
    /// What it becomes, when it has no mistakes.
    pub emitted: Option<Emitted>,
}

impl Analysis {
    /// Emits what was compiled, and lints it.
    pub fn of(compiled: Compiled) -> Analysis {
        let mut found = compiled.diagnostics.clone();
        let emitted = compiled.model.as_ref().and_then(|model| match crate::compiler::emit::emit(model) {
            Ok(emitted) => Some(emitted),
            Err(more) => {
                found.extend(more);
                None
            }
        });
        found.extend(compiled.lints(emitted.as_ref()));
        found.sort_by_key(|d| (d.span.file.0, d.span.start, d.code));
        found.dedup_by(|a, b| (a.code, a.span, &a.message) == (b.code, b.span, &b.message));
        Analysis { compiled, found, emitted }
    }
}

/// The folder of a policy, for its includes.
#[derive(Debug, Clone)]
pub struct Folder(Option<PathBuf>);

impl Folder {
    /// The folder a policy's file is in.
    pub fn of(path: &Path) -> Folder {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Folder(parent.canonicalize().ok())
    }
}

impl Loader for Folder {
    fn load(&self, path: &str) -> Result<String, LoadError> {
        let Some(root) = &self.0 else { return Err(LoadError::NotFound) };
        let unreadable = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::NotFound => LoadError::NotFound,
            _ => LoadError::Unreadable(e.to_string()),
        };
        let real = root.join(path).canonicalize().map_err(unreadable)?;
        if !real.starts_with(root) {
            return Err(LoadError::Outside);
        }
        let bytes = read_capped(&real).map_err(unreadable)?;
        let bytes = bytes.ok_or_else(|| LoadError::Unreadable(format!("it is larger than {LARGEST} bytes")))?;
        String::from_utf8(bytes).map_err(|_| LoadError::Unreadable("it is not UTF-8 text".to_owned()))
    }
}

/// The file's bytes; `None` when there are too many. Reads no more than it must to know, whatever the file is.
fn read_capped(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= LARGEST).then_some(bytes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    fn refusal(bytes: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.authz");
        std::fs::write(&path, bytes).unwrap();
        PolicyFile::read(&path).unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_policy_is_refused_in_a_sentence() {
        assert!(refusal(&[b'a', 0xff, 0]).ends_with("p.authz is not UTF-8 text (byte 2 is not)"));
        assert!(refusal(&vec![b' '; 10_000_000]).contains("larger than 4 MB"));
        assert!(PolicyFile::read(Path::new("/dev/zero")).unwrap_err().to_string().contains("larger than"));
        assert!(
            PolicyFile::read(Path::new("/nothing/here")).unwrap_err().to_string().contains("cannot read the policy")
        );
    }

    #[test]
    fn includes_stay_in_the_folder() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("policy");
        std::fs::create_dir_all(folder.join("sub")).unwrap();
        std::fs::write(outer.path().join("secret.authz"), "s").unwrap();
        std::fs::write(folder.join("sub/a.authz"), "inside").unwrap();
        std::os::unix::fs::symlink(outer.path().join("secret.authz"), folder.join("link.authz")).unwrap();
        let loader = Folder::of(&folder.join("p.authz"));
        assert_eq!(loader.load("sub/a.authz"), Ok("inside".to_owned()));
        assert_eq!(loader.load("link.authz"), Err(LoadError::Outside));
        assert_eq!(loader.load("none.authz"), Err(LoadError::NotFound));
    }
}
