//! Policies of several files. The compiler reads no files: whoever calls it brings a [`Loader`].

use std::collections::{BTreeMap, HashMap, HashSet};

use super::ast::{Block, Name, Policy};
use super::diagnostic::Diagnostic;
use super::parser::parse;
use super::span::{FileId, SourceMap, Span};

/// How many files a policy may have.
const MOST_FILES: usize = 1000;

/// Reads the files a policy includes.
pub trait Loader {
    /// The text of a file, by its path from the policy's folder, with `/` between its parts. The path never leaves
    /// that folder by its text; a loader that reads a real folder must also refuse links that lead out of it.
    fn load(&self, path: &str) -> Result<String, LoadError>;
}

/// Why an included file cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadError {
    /// There is no such file.
    NotFound,
    /// It is a link out of the policy's folder.
    Outside,
    /// It is there and cannot be read, for this reason.
    Unreadable(String),
}

/// A loader without files, for a policy that stands alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

impl Loader for NoFiles {
    fn load(&self, _: &str) -> Result<String, LoadError> {
        Err(LoadError::NotFound)
    }
}

impl Loader for BTreeMap<String, String> {
    fn load(&self, path: &str) -> Result<String, LoadError> {
        self.get(path).cloned().ok_or(LoadError::NotFound)
    }
}

/// Parses a policy with everything it includes.
pub fn parse_all(name: &str, text: &str, loader: &dyn Loader) -> (SourceMap, Policy, Vec<Diagnostic>) {
    let mut files = Files {
        loader,
        sources: SourceMap::single(name, text),
        paths: HashMap::new(),
        seen: HashSet::from([normal(name.rsplit('/').next().unwrap_or(name))]),
        diagnostics: Vec::new(),
    };
    let mut whole = Policy::default();
    // Files still to be walked, the innermost last, each with its blocks in reverse.
    let mut open = vec![files.open(FileId(0), text, &mut whole)];
    while let Some(blocks) = open.last_mut() {
        match blocks.pop() {
            None => drop(open.pop()),
            Some(Block::Include(path)) => {
                let included = files.include(&path, &mut whole);
                whole.blocks.push(Block::Include(path));
                open.extend(included);
            }
            Some(block) => whole.blocks.push(block),
        }
    }
    (files.sources, whole, files.diagnostics)
}

/// Adds a file of tests. Anything else in it is a mistake: what a policy means must not depend on which tests are run.
pub fn add_tests(
    name: &str,
    text: &str,
    sources: &mut SourceMap,
    whole: &mut Policy,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let file = sources.add(name, text);
    let (policy, mut found) = parse(file, text);
    diagnostics.append(&mut found);
    for block in policy.blocks {
        match block {
            Block::Test(_) => whole.blocks.push(block),
            other => {
                diagnostics.push(Diagnostic::error(101, block_span(&other), "a file of tests holds nothing but tests"))
            }
        }
    }
}

fn block_span(block: &Block) -> Span {
    match block {
        Block::AppRole(role) => role.span,
        Block::Include(file) => file.span,
        Block::Type(ty) => ty.name.span,
        Block::Caveat(caveat) => caveat.name.span,
        Block::Scope(scope) => scope.name.span,
        Block::Rules(rules) => rules.table.span,
        Block::Invariants(span, _) => *span,
        Block::Test(test) => test.span,
    }
}

struct Files<'l> {
    loader: &'l dyn Loader,
    sources: SourceMap,
    /// The path of each included file, from the policy's folder.
    paths: HashMap<FileId, String>,
    seen: HashSet<Option<String>>,
    diagnostics: Vec<Diagnostic>,
}

impl Files<'_> {
    fn open(&mut self, file: FileId, text: &str, whole: &mut Policy) -> Vec<Block> {
        let (mut policy, mut diagnostics) = parse(file, text);
        self.diagnostics.append(&mut diagnostics);
        whole.allows.append(&mut policy.allows);
        policy.blocks.reverse();
        policy.blocks
    }

    fn include(&mut self, written: &Name, whole: &mut Policy) -> Option<Vec<Block>> {
        match self.read(written) {
            Ok((path, text)) => {
                let file = self.sources.add(path.clone(), text.clone());
                self.paths.insert(file, path);
                Some(self.open(file, &text, whole))
            }
            Err(why) => {
                self.diagnostics.push(Diagnostic::error(108, written.span, format!("\"{}\" {why}", written.value)));
                None
            }
        }
    }

    fn read(&mut self, written: &Name) -> Result<(String, String), String> {
        let folder = self.paths.get(&written.span.file).and_then(|path| path.rsplit_once('/')).map_or("", |(f, _)| f);
        let absolute = written.value.starts_with(['/', '\\']) || written.value.contains(':');
        let Some(path) = normal(&format!("{folder}/{}", written.value)).filter(|_| !absolute) else {
            return Err("is outside the policy's folder".to_owned());
        };
        if !self.seen.insert(Some(path.clone())) {
            return Err("is included already".to_owned());
        }
        if self.sources.files().len() >= MOST_FILES {
            return Err(format!("is one file too many; a policy has at most {MOST_FILES}"));
        }
        match self.loader.load(&path) {
            Ok(text) => Ok((path, text)),
            Err(LoadError::NotFound) => Err("is not there".to_owned()),
            Err(LoadError::Outside) => Err("is a link out of the policy's folder".to_owned()),
            Err(LoadError::Unreadable(why)) => Err(format!("cannot be read: {why}")),
        }
    }
}

/// A path without `.` and `..`; `None` when it leaves the folder.
fn normal(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split(['/', '\\']).filter(|part| !matches!(*part, "" | ".")) {
        match part {
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}
