//! From policy text to SQL objects: lexer, parser, resolver, model, lints, emitter. No input or output happens here,
//! and nothing here knows a terminal, a runtime or a database driver.

pub mod ast;
pub mod diagnostic;
pub mod emit;
pub mod graph;
pub mod ident;
pub mod include;
pub mod layout;
pub mod lexer;
pub mod model;
pub mod objects;
pub mod parser;
pub mod resolve;
pub mod span;
pub mod sql;
pub mod suggest;

use diagnostic::{Diagnostic, Severity};
use include::{Loader, NoFiles};
use model::Model;
use span::SourceMap;

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
    let (sources, ast, mut diagnostics) = include::parse_all(name, text, loader);
    let (model, mut found) = resolve::resolve(&ast);
    diagnostics.append(&mut found);
    diagnostics.sort_by_key(|d| (d.span.file.0, d.span.start, d.code));
    diagnostics.dedup_by(|a, b| (a.code, a.span, &a.message) == (b.code, b.span, &b.message));
    let right = diagnostics.iter().all(|d| d.severity != Severity::Error);
    Compiled { sources, ast, model: model.filter(|_| right), diagnostics }
}
