//! Commands about a policy alone.

use std::path::Path;

use serde::Serialize;

use super::args::Global;
use super::output::{Output, note};
use super::{Ended, FINDING, targets};
use crate::compiler::Compiled;
use crate::compiler::codes;
use crate::compiler::diagnostic::{Diagnostic, Severity};
use crate::compiler::emit::emit;
use crate::compiler::model::Model;
use crate::compiler::objects::Emitted;
use crate::compiler::span::SourceMap;
use crate::db::error::DbError;
use crate::db::lint;
use crate::db::plan::{Blocker, Policy};
use crate::policy_file::PolicyFile;

/// The most findings that are shown as text; one mistake may cause many.
const MOST_SHOWN: usize = 50;

/// A finding as `--json` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JsonFinding {
    /// `AZ201`
    pub code: String,
    /// `error`, `warning` or `info`.
    pub severity: &'static str,
    /// The file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Line of the place just past its end.
    pub end_line: usize,
    /// Column of the place just past its end.
    pub end_column: usize,
    /// What was found.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl JsonFinding {
    /// Of something in the way of applying. What no line is to blame for has none: its numbers are 0.
    fn of_blocker(blocker: &Blocker) -> Self {
        let (line, column) = blocker.place.as_ref().map_or((0, 0), |place| (place.line, place.column));
        JsonFinding {
            code: blocker.code.map_or_else(String::new, |code| code.to_string()),
            severity: "error",
            file: blocker.place.as_ref().map_or_else(String::new, |place| place.file.clone()),
            line,
            column,
            end_line: line,
            end_column: column,
            message: blocker.message.clone(),
            help: blocker.help.clone(),
        }
    }

    /// Of a way around the rules in a database, which no line is to blame for.
    fn of_way(finding: &lint::Finding) -> Self {
        JsonFinding {
            code: finding.code.clone(),
            severity: match finding.severity.as_str() {
                "error" => "error",
                "warning" => "warning",
                _ => "info",
            },
            file: String::new(),
            line: 0,
            column: 0,
            end_line: 0,
            end_column: 0,
            message: format!("{}: {}", finding.object, finding.why),
            help: Some(finding.fix.clone()),
        }
    }

    /// Of a diagnostic in these sources.
    pub fn new(diagnostic: &Diagnostic, sources: &SourceMap) -> Self {
        let (start, end) = sources.places(diagnostic.span);
        JsonFinding {
            code: diagnostic.code.to_string(),
            severity: diagnostic.severity.word(),
            file: sources.file(diagnostic.span.file).map_or_else(String::new, |file| file.name.clone()),
            line: start.line,
            column: start.column,
            end_line: end.line,
            end_column: end.column,
            message: diagnostic.message.clone(),
            help: diagnostic.help.clone(),
        }
    }
}

/// `rowdeck check`.
pub fn check(_: &Global, out: Output, policy: Option<&Path>) -> Ended {
    let compiled = PolicyFile::read(&targets::policy_path(policy)?)?.compile();
    show_findings(out, &compiled, &compiled.diagnostics)?;
    if compiled.has_errors() {
        return Ok(FINDING);
    }
    if let (Some(model), false) = (&compiled.model, out.json) {
        let permissions: usize = model.types.iter().map(|ty| ty.permissions.len()).sum();
        let counted = |n: usize, noun| crate::text::counted(u64::try_from(n).unwrap_or(u64::MAX), noun);
        out.line(&format!(
            "no mistakes: {}, {}, {} with rules, {}",
            counted(model.types.len(), "type"),
            counted(permissions, "permission"),
            counted(model.rules.len(), "table"),
            counted(model.tests.len(), "test")
        ))?;
    }
    Ok(0)
}

/// `rowdeck lint`: lints of the text; where a database is named, also what stands in the way of applying there.
pub async fn lint(global: &Global, out: Output, policy: Option<&Path>) -> Ended {
    let file = PolicyFile::read(&targets::policy_path(policy)?)?;
    let Some(ready) = ready(out, &file)? else { return Ok(FINDING) };
    let lints = ready.compiled.lints(Some(&ready.emitted));
    let mut in_the_way = Vec::new();
    let mut around = Vec::new();
    if global.db.is_some() || global.target.is_some() {
        let session = targets::session(global).await?;
        in_the_way = crate::db::plan::plan(&session.client, &ready.policy(&file)).await?.blockers;
        around = match lint::run(&session.client).await {
            // Before the first apply there is nothing to go around.
            Err(DbError::NoPolicy(_)) => Vec::new(),
            other => other?,
        };
    }
    if out.json {
        let text = lints.iter().map(|d| JsonFinding::new(d, &ready.compiled.sources));
        let database = in_the_way.iter().map(JsonFinding::of_blocker);
        out.json(&text.chain(database).chain(around.iter().map(JsonFinding::of_way)).collect::<Vec<_>>())?;
    } else {
        show_findings(out, &ready.compiled, &lints)?;
        for blocker in &in_the_way {
            let help = blocker.help.as_ref().map_or_else(String::new, |help| format!("\n    {help}"));
            out.line(&format!("{blocker}{help}"))?;
        }
        for line in around.iter().flat_map(lint::Finding::lines) {
            out.line(&line)?;
        }
    }
    let serious = lints.iter().any(|d| d.severity != Severity::Info)
        || !in_the_way.is_empty()
        || around.iter().any(lint::Finding::is_serious);
    Ok(if serious { FINDING } else { 0 })
}

/// `rowdeck help`.
pub fn help(out: Output, code: Option<&str>) -> Ended {
    let Some(code) = code else {
        for info in codes::codes() {
            out.line(&format!("{}  {}", info.name(), info.title))?;
        }
        note("rowdeck help CODE explains one; rowdeck --help names the commands");
        return Ok(0);
    };
    let Some(info) = codes::explain(code) else {
        let shown = crate::text::line(code);
        return Err(DbError::Usage(format!("there is no code \"{shown}\"; rowdeck help lists them")));
    };
    out.line(info.page().trim_end())?;
    Ok(0)
}

/// `rowdeck sql`.
pub fn sql(_: &Global, out: Output, policy: Option<&Path>) -> Ended {
    let file = PolicyFile::read(&targets::policy_path(policy)?)?;
    let Some(ready) = ready(out, &file)? else { return Ok(FINDING) };
    if out.json {
        let list: Vec<JsonObject<'_>> = ready
            .emitted
            .objects
            .iter()
            .map(|object| JsonObject { kind: object.kind.word(), name: &object.name, sql: &object.sql })
            .collect();
        out.json(&list)?;
        return Ok(0);
    }
    for object in &ready.emitted.objects {
        out.raw(&format!("-- {} {}\n{};\n\n", object.kind.word(), object.name, object.sql))?;
    }
    Ok(0)
}

#[derive(Serialize)]
struct JsonObject<'a> {
    kind: &'static str,
    name: &'a str,
    sql: &'a str,
}

/// A policy that compiles, with what it becomes.
pub(super) struct Ready {
    /// Its sources and findings.
    pub(super) compiled: Compiled,
    /// What it means.
    pub(super) model: Model,
    /// What it becomes.
    pub(super) emitted: Emitted,
}

impl Ready {
    /// The same as planning and applying take it.
    pub(super) fn policy<'a>(&'a self, file: &'a PolicyFile) -> Policy<'a> {
        Policy { name: &file.name, sources: &self.compiled.sources, model: &self.model, emitted: &self.emitted }
    }
}

/// Compiles a policy; shows the mistakes and gives `None` when it has any.
pub(super) fn ready(out: Output, file: &PolicyFile) -> Result<Option<Ready>, DbError> {
    let compiled = file.compile();
    let Some(model) = compiled.model.clone() else {
        show_findings(out, &compiled, &compiled.diagnostics)?;
        return Ok(None);
    };
    match emit(&model) {
        Ok(emitted) => Ok(Some(Ready { compiled, model, emitted })),
        Err(diagnostics) => {
            show_findings(out, &compiled, &diagnostics)?;
            Ok(None)
        }
    }
}

/// Shows findings: as JSON a list on one line, as text each with its line of the policy.
pub(super) fn show_findings(out: Output, compiled: &Compiled, findings: &[Diagnostic]) -> Result<(), DbError> {
    if out.json {
        let list: Vec<JsonFinding> = findings.iter().map(|d| JsonFinding::new(d, &compiled.sources)).collect();
        return out.json(&list);
    }
    for diagnostic in findings.iter().take(MOST_SHOWN) {
        out.line(&finding_text(diagnostic, &compiled.sources))?;
    }
    if findings.len() > MOST_SHOWN {
        out.line(&format!("and {} more", findings.len() - MOST_SHOWN))?;
    }
    Ok(())
}

/// `docs.authz:14:19: unknown type "person"; did you mean "user"? [AZ201]`, the line, and its part underlined.
pub(super) fn finding_text(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    use unicode_width::UnicodeWidthStr;
    let (start, end) = sources.places(diagnostic.span);
    let file = sources.file(diagnostic.span.file);
    let name = file.map_or("", |file| file.name.as_str());
    let severity = match diagnostic.severity {
        Severity::Error => String::new(),
        other => format!("{}: ", other.word()),
    };
    let mut text = format!(
        "{}:{}:{}: {severity}{} [{}]",
        crate::text::line(name),
        start.line,
        start.column,
        crate::text::line(&diagnostic.message),
        diagnostic.code
    );
    let line = file.and_then(|file| file.text.lines().nth(start.line - 1)).unwrap_or("");
    // A very long line says nothing at a glance.
    if !line.is_empty() && line.chars().count() <= 400 {
        let before: String = line.chars().take(start.column - 1).collect();
        let length = if end.line == start.line { end.column.saturating_sub(start.column) } else { usize::MAX };
        let under: String = line.chars().skip(start.column - 1).take(length).collect();
        let tabs = |part: &str| crate::text::line(&part.replace('\t', "    ")).into_owned();
        let width = tabs(&under).width().max(1);
        text.push_str(&format!("\n    {}\n    {}{}", tabs(line), " ".repeat(tabs(&before).width()), "~".repeat(width)));
    }
    if let Some(help) = &diagnostic.help {
        text.push_str(&format!("\n    {}", crate::text::line(help)));
    }
    text
}
