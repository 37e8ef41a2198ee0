//! Mistakes and lints as data: a stable code, a place, words, and what to do.

use super::span::{SourceMap, Span};

mod render;

pub use render::{Finding, printable};

/// A stable code such as `AZ201`, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub u16);

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AZ{:03}", self.0)
    }
}

/// How bad it is. An error stops compilation; the others do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The policy cannot be compiled.
    Error,
    /// It can, and something is likely wrong.
    Warning,
    /// A measurement worth showing.
    Info,
}

impl Severity {
    /// `error`, `warning` or `info`.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its stable code.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// Where.
    pub span: Span,
    /// What was found and what is there instead, in one sentence without a full stop.
    pub message: String,
    /// What to do, when the code's own help does not say it better.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error with this code at `span`.
    pub fn error(code: u16, span: Span, message: impl Into<String>) -> Self {
        Diagnostic { code: Code(code), severity: Severity::Error, span, message: message.into(), help: None }
    }

    /// A warning with this code at `span`.
    pub fn warning(code: u16, span: Span, message: impl Into<String>) -> Self {
        Diagnostic { code: Code(code), severity: Severity::Warning, span, message: message.into(), help: None }
    }

    /// A measurement with this code at `span`.
    pub fn info(code: u16, span: Span, message: impl Into<String>) -> Self {
        Diagnostic { code: Code(code), severity: Severity::Info, span, message: message.into(), help: None }
    }

    /// The same with its own help.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
    /// For a terminal: `FILE:LINE:COLUMN: message [CODE]`, the line, and its span underlined.
    pub fn render(&self, sources: &SourceMap) -> String {
        render::terminal(self, sources)
    }

    /// For programs: everything about it as plain data.
    pub fn finding(&self, sources: &SourceMap) -> Finding {
        Finding::new(self, sources)
    }
}
