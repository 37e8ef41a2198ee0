//! The Policy screen: the text, what the compiler says of it, and where in it we are.

use std::path::PathBuf;
use std::sync::Arc;

use tui_textarea::TextArea;

use super::field::Field;
use crate::compiler::diagnostic::Severity;
use crate::compiler::objects::Emitted;
use crate::policy_text::{Kind, Table};

/// One finding, placed in the text (lines and columns from 0, columns in characters).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its code, such as `AZ201`.
    pub code: String,
    /// How bad it is.
    pub severity: Severity,
    /// First line.
    pub line: usize,
    /// First column.
    pub column: usize,
    /// Last line.
    pub end_line: usize,
    /// One past the last column, on the last line.
    pub end_column: usize,
    /// What was found.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
    /// The included file it is in, when it is not the one being edited.
    pub file: Option<String>,
}

impl Finding {
    /// A word and a mark for its severity.
    pub fn mark(&self) -> &'static str {
        match self.severity {
            Severity::Error => "✗",
            Severity::Warning => "!",
            Severity::Info => "·",
        }
    }

    /// Its code, message and help as rows under the text, which has `cells` cells: one row where they fit, at most
    /// three where they do not.
    pub fn rows(&self, cells: usize) -> Vec<String> {
        let help = self.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
        let words = format!("{}: {}{help}", self.code, self.message);
        // Room for the two cells that these rows are set in by.
        let room = cells.saturating_sub(2).max(1);
        let mut rows = crate::text::wrap(&crate::text::line(&words), room);
        if rows.len() > MOST_ROWS {
            let rest = rows.split_off(MOST_ROWS - 1).join(" ");
            rows.push(rest);
        }
        rows.iter().map(|row| crate::text::cut(row, room)).collect()
    }
}

/// Cells left of the text: line number, mark.
pub const GUTTER: usize = 7;
/// Words of a finding take at most so many rows.
const MOST_ROWS: usize = 3;

/// Columns of the panes beside the text on a screen of `columns`.
pub fn side_columns(columns: u16) -> u16 {
    match columns {
        0..=69 => 0,
        70..=99 => 27,
        _ => 36,
    }
}

/// Cells of a row inside the text's frame on a screen of `columns`.
pub fn text_cells(columns: u16) -> usize {
    usize::from(columns.saturating_sub(side_columns(columns)).saturating_sub(2))
}

/// What compiling one revision of the text gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Which revision.
    pub revision: u64,
    /// What was found, in the order of the text.
    pub findings: Vec<Finding>,
    /// What it becomes, when it has no mistakes.
    pub emitted: Option<Arc<Emitted>>,
    /// How long compiling took, in seconds.
    pub seconds: f64,
    /// The compiler itself failed: in its words.
    pub failure: Option<String>,
}

/// A line of the outline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutlineLine {
    /// Where it stands.
    pub line: usize,
    /// 0 for a block, 1 for a line of one.
    pub depth: u8,
    /// What it says.
    pub title: String,
}

/// The Policy screen.
#[derive(Debug)]
pub struct Policy {
    /// The file, when the text has one.
    pub path: Option<PathBuf>,
    /// What the text is called.
    pub name: String,
    /// The text and its cursor.
    pub area: TextArea<'static>,
    /// The editor has the keys.
    pub editing: bool,
    /// Counts changes of the text.
    pub revision: u64,
    /// The revision that is on disk.
    pub saved: u64,
    /// The size and time the file had when it was read or written, to notice a change by someone else.
    pub on_disk: Option<DiskStamp>,
    /// The newest result of the compiler.
    pub outcome: Option<Outcome>,
    /// The newest result without mistakes, and its revision.
    pub last_good: Option<(u64, Arc<Emitted>)>,
    /// First line shown.
    pub top: usize,
    /// The blocks of the text.
    pub outline: Vec<OutlineLine>,
    /// What is being looked for, while it is being typed.
    pub search: Option<Field>,
    /// What the line being typed is for.
    pub search_for: SearchFor,
    /// What was looked for last.
    pub searched: String,
    /// What replaces it, while that is asked one by one.
    pub replacing: Option<Replacing>,
    /// Words that fit where the cursor is, while they are listed.
    pub completion: Option<Completion>,
    /// Places to go back to.
    pub jumps: Vec<(usize, usize)>,
    /// Tables of the database, for completion.
    pub tables: Vec<Table>,
    /// The text as it is on disk, to know it again.
    pub saved_text: Option<String>,
    /// The text that is being written, and its revision.
    pub saving: Option<(u64, String)>,
    /// Leave as soon as the text is saved.
    pub quit_when_saved: bool,
    /// A text found in the recovery file, until it is taken or dropped.
    pub recovered: Option<String>,
    /// The results of the policy's tests.
    pub tests: Option<TestRun>,
}

/// What a typed line on the Policy screen is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchFor {
    /// To find it.
    #[default]
    Find,
    /// To find what is to be replaced.
    Replace,
    /// To replace it with.
    With,
}

/// Replacing, one by one: the cursor is on the one that is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replacing {
    /// What is put in.
    pub with: String,
    /// How many were replaced.
    pub count: usize,
    /// Where the first was, so that a round through the text ends.
    pub began: (usize, usize),
    /// The end of the text was passed.
    pub wrapped: bool,
}

/// Words that fit where the cursor is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Completion {
    /// Them, and what they are.
    pub words: Vec<(String, Kind)>,
    /// The marked one.
    pub at: usize,
    /// The column where the word begins that they complete.
    pub start: usize,
}

/// Identifies a file's content cheaply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskStamp {
    /// Bytes.
    pub bytes: u64,
    /// Modified, in nanoseconds since 1970.
    pub modified: u128,
}

/// How the policy's tests went.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TestRun {
    /// How many passed.
    pub passed: usize,
    /// What failed, in words.
    pub failed: Vec<String>,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            path: None,
            name: "unnamed.authz".into(),
            area: new_area(&[""]),
            editing: false,
            revision: 0,
            saved: 0,
            on_disk: None,
            outcome: None,
            last_good: None,
            top: 0,
            outline: Vec::new(),
            search: None,
            search_for: SearchFor::Find,
            searched: String::new(),
            replacing: None,
            completion: None,
            jumps: Vec::new(),
            tables: Vec::new(),
            saved_text: None,
            saving: None,
            quit_when_saved: false,
            recovered: None,
            tests: None,
        }
    }
}

fn new_area(lines: &[&str]) -> TextArea<'static> {
    let mut area = TextArea::new(lines.iter().map(|line| (*line).to_owned()).collect());
    area.set_max_histories(usize::MAX);
    area.set_tab_length(2);
    area
}

impl Policy {
    /// Replaces the text as if it had just been read.
    pub fn set_text(&mut self, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        self.area = new_area(if lines.is_empty() { &[""] } else { &lines });
        self.revision += 1;
        self.top = 0;
        self.outline = outline(self.area.lines());
    }

    /// The whole text, ending in a line end.
    pub fn text(&self) -> String {
        let mut text = self.area.lines().join("\n");
        if !text.is_empty() {
            text.push('\n');
        }
        text
    }

    /// Cursor's line and column (in characters).
    pub fn cursor(&self) -> (usize, usize) {
        let at = self.area.cursor();
        (at.0, at.1)
    }

    /// The text differs from the file.
    pub fn unsaved(&self) -> bool {
        self.revision != self.saved
    }

    /// The newest result is not of this text.
    pub fn stale(&self) -> bool {
        self.outcome.as_ref().is_none_or(|o| o.revision != self.revision)
    }

    /// The findings of the newest result, those of this file.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.outcome.iter().flat_map(|o| o.findings.iter())
    }

    /// The first finding on the cursor's line, the nearest column first.
    pub fn finding_here(&self) -> Option<&Finding> {
        let (line, column) = self.cursor();
        self.findings()
            .filter(|f| f.file.is_none() && f.line <= line && line <= f.end_line.max(f.line))
            .min_by_key(|f| f.column.abs_diff(column))
    }

    /// How many mistakes and lints there are.
    pub fn counts(&self) -> (usize, usize) {
        let mistakes = self.findings().filter(|f| f.severity == Severity::Error).count();
        (mistakes, self.findings().filter(|f| f.severity != Severity::Error).count())
    }

    /// Rows a line takes on the screen: itself, and for each finding on it the underline and the words.
    pub fn rows_of(&self, line: usize, cells: usize) -> usize {
        let mut rows = 1;
        for finding in self.findings().filter(|f| f.file.is_none() && f.line == line) {
            rows += if finding.severity == Severity::Info { 0 } else { 1 + finding.rows(cells).len() };
        }
        rows
    }

    /// The first line to show so that the cursor's line is among `height` rows of `cells` cells, moving as little as possible.
    pub fn top_for(&self, height: usize, cells: usize) -> usize {
        let line = self.cursor().0;
        if line < self.top {
            return line;
        }
        let mut top = self.top;
        let mut rows: usize = (top..=line).map(|l| self.rows_of(l, cells)).sum();
        while rows > height.max(1) && top < line {
            rows -= self.rows_of(top, cells);
            top += 1;
        }
        top
    }
}

/// The blocks and permissions of a text, by the look of its lines alone, so that it also works while the text does not
/// compile.
pub fn outline(lines: &[String]) -> Vec<OutlineLine> {
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let title = line.trim();
        let depth = u8::from(line.starts_with([' ', '\t']));
        let kept = match depth {
            0 => ["type ", "rules ", "test", "scope ", "caveat ", "app role ", "invariants", "include "]
                .iter()
                .any(|start| title.starts_with(start)),
            _ => title.starts_with("can "),
        };
        if kept {
            let cut = title.split([':', '=', '{']).next().unwrap_or(title).trim_end();
            found.push(OutlineLine { line: number, depth, title: crate::text::line(cut).into_owned() });
        }
    }
    found
}
