//! From policy text to SQL objects: lexer, parser, resolver, model, lints, emitter. No input or output happens here,
//! and nothing here knows a terminal, a runtime or a database driver.

pub mod ast;
pub mod cluster;
pub mod codes;
pub mod diagnostic;
pub mod draft;
pub mod emit;
pub mod evaluate;
pub mod format;
pub mod graph;
pub mod ident;
pub mod include;
pub mod layout;
pub mod lexer;
pub mod lint;
pub mod model;
pub mod objects;
pub mod outline;
pub mod parser;
pub mod prove;
pub mod resolve;
pub mod span;
pub mod sql;
pub mod suggest;
pub mod symbols;

use diagnostic::{Diagnostic, Severity};
use include::{Loader, NoFiles};
use model::Model;
use span::{FileId, SourceMap, Span};

/// What compiling a policy gives.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// Its files; every span points into them.
    pub sources: SourceMap,
    /// What was written, as far as it could be read.
    pub ast: ast::Policy,
    /// What it means; `None` when anything is wrong.
    pub model: Option<Model>,
    /// Everything found, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

impl Compiled {
    /// Whether any finding keeps the policy from being used.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|d| d.severity == Severity::Error)
    }
}

/// Compiles a policy of one file. `name` is how its findings call it.
pub fn compile(name: &str, text: &str) -> Compiled {
    compile_with(name, text, &NoFiles)
}

/// Compiles a policy and the files it includes.
pub fn compile_with(name: &str, text: &str, loader: &dyn Loader) -> Compiled {
    compile_after(Vec::new(), name, text, loader, &[])
}

/// Compiles a policy and files of tests that go with it, each a name and a text. Such a file holds tests alone.
pub fn compile_with_tests(name: &str, text: &str, loader: &dyn Loader, tests: &[(String, String)]) -> Compiled {
    compile_after(Vec::new(), name, text, loader, tests)
}

/// Compiles a policy as it was read, which may not be UTF-8: that is a mistake like any other, reported in its place.
pub fn compile_bytes(name: &str, bytes: &[u8], loader: &dyn Loader) -> Compiled {
    match std::str::from_utf8(bytes) {
        Ok(text) => compile_with(name, text, loader),
        Err(error) => {
            // The text before the first wrong byte is the same in both, so that byte's place is right.
            let at = error.valid_up_to();
            let span = Span::new(FileId::default(), at, at + char::REPLACEMENT_CHARACTER.len_utf8());
            let byte = bytes.get(at).copied().unwrap_or_default();
            let message = format!("the byte {byte:#04x} is not UTF-8 text");
            let wrong = Diagnostic::error(101, span, message);
            compile_after(vec![wrong], name, &String::from_utf8_lossy(bytes), loader, &[])
        }
    }
}

fn compile_after(
    mut diagnostics: Vec<Diagnostic>,
    name: &str,
    text: &str,
    loader: &dyn Loader,
    tests: &[(String, String)],
) -> Compiled {
    let (mut sources, mut ast, mut found) = include::parse_all(name, text, loader);
    diagnostics.append(&mut found);
    for (name, text) in tests {
        include::add_tests(name, text, &mut sources, &mut ast, &mut diagnostics);
    }
    let complete = diagnostics.is_empty();
    let (model, mut found) = resolve::resolve(&ast, complete);
    diagnostics.append(&mut found);
    diagnostics.sort_by_key(|d| (d.span.file.0, d.span.start, d.code));
    diagnostics.dedup_by(|a, b| (a.code, a.span, &a.message) == (b.code, b.span, &b.message));
    let right = diagnostics.iter().all(|d| d.severity != Severity::Error);
    shorten(&mut diagnostics);
    Compiled { sources, ast, model: model.filter(|_| right), diagnostics }
}

/// Nobody reads more than the first thousand findings, and a large text that is no policy would have millions.
fn shorten(diagnostics: &mut Vec<Diagnostic>) {
    const MOST: usize = 1000;
    let Some(next) = diagnostics.get(MOST).map(|d| d.span) else { return };
    let message = format!("{} more findings from here on are not listed", diagnostics.len() - MOST);
    // As bad as the worst of them, so that a policy with warnings alone still compiles.
    let severity = diagnostics.iter().map(|d| d.severity).min().unwrap_or(Severity::Info);
    diagnostics.truncate(MOST);
    diagnostics.push(Diagnostic { severity, ..Diagnostic::error(101, next, message) });
}
