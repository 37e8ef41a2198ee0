//! Diagnostics as people and programs read them.

use serde::Serialize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Diagnostic, Severity};
use crate::compiler::codes;
use crate::compiler::span::SourceMap;

/// A diagnostic as `--json` prints it. Columns count characters from 1; the end is just past the last one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// `AZ201`
    pub code: String,
    /// `error`, `warning` or `info`
    pub severity: &'static str,
    /// The file as it was named.
    pub file: String,
    /// First line.
    pub line: usize,
    /// First column.
    pub column: usize,
    /// Last line.
    pub end_line: usize,
    /// Column past the last character.
    pub end_column: usize,
    /// What was found.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl Finding {
    pub(super) fn new(diagnostic: &Diagnostic, sources: &SourceMap) -> Self {
        let (start, end) = sources.places(diagnostic.span);
        let general = || codes::by_number(diagnostic.code.0).map(|info| info.help.to_owned());
        Finding {
            code: diagnostic.code.to_string(),
            severity: diagnostic.severity.word(),
            file: sources.file(diagnostic.span.file).map(|f| f.name.clone()).unwrap_or_default(),
            line: start.line,
            column: start.column,
            end_line: end.line,
            end_column: end.column,
            message: diagnostic.message.clone(),
            help: diagnostic.help.clone().or_else(general),
        }
    }
}

/// How many terminal cells of a long line are shown around the span.
const WINDOW: usize = 100;

pub(super) fn terminal(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let (start, _) = sources.places(diagnostic.span);
    let file = sources.file(diagnostic.span.file).map_or("", |f| f.name.as_str());
    // Errors are what people expect here; only the others say what they are.
    let kind = match diagnostic.severity {
        Severity::Error => String::new(),
        other => format!("{}: ", other.word()),
    };
    let head = format!("{file}:{}:{}: {kind}{} [{}]", start.line, start.column, diagnostic.message, diagnostic.code);
    let mut out = printable(&head);
    if let Some((line, underline)) = excerpt(diagnostic, sources) {
        out.push_str(&format!("\n    {line}\n    {underline}"));
    }
    if let Some(help) = &diagnostic.help {
        out.push_str(&format!("\n    help: {}", printable(help)));
    }
    out
}

/// The first line of the span, cut to what fits around it, and the line that underlines it.
fn excerpt(diagnostic: &Diagnostic, sources: &SourceMap) -> Option<(String, String)> {
    let text = sources.file(diagnostic.span.file)?.text.as_str();
    let (from, to) = (diagnostic.span.start as usize, diagnostic.span.end as usize);
    let before = text.get(..from)?;
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let after = text.get(from..)?;
    let line_end = from + after.find('\n').unwrap_or(after.len());
    let lead = text.get(line_start..from)?;
    let marked = text.get(from..to.clamp(from, line_end))?;
    let tail = text.get(from + marked.len()..line_end)?.trim_end();

    let lead = last_cells(lead, WINDOW / 2);
    let marked = first_cells(marked, WINDOW);
    let tail = first_cells(tail, WINDOW.saturating_sub(lead.width() + marked.width()));
    let underline = format!("{}{}", " ".repeat(lead.width()), "~".repeat(marked.width().max(1)));
    Some((format!("{lead}{marked}{tail}").trim_end().to_owned(), underline))
}

/// The start of `text`, as printed, that fits in so many cells; what is cut leaves an ellipsis.
fn first_cells(text: &str, cells: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars().map(shown) {
        let width = c.width().unwrap_or(0);
        if used + width > cells {
            out.push_str("...");
            break;
        }
        used += width;
        out.push(c);
    }
    out
}

fn last_cells(text: &str, cells: usize) -> String {
    let mut used = 0;
    let mut kept: Vec<char> = Vec::new();
    for c in text.chars().rev().map(shown) {
        used += c.width().unwrap_or(0);
        if used > cells {
            kept.extend(['.'; 3]);
            break;
        }
        kept.push(c);
    }
    kept.into_iter().rev().collect()
}

/// Text that cannot move the cursor, change colours or reorder what stands around it.
pub fn printable(text: &str) -> String {
    text.chars().map(shown).collect()
}

fn shown(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        // Marks that change the direction of what follows.
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c => c,
    }
}
