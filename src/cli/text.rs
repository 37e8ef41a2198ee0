//! Commands that write policies, and the one that helps to write them.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::args::{Global, InitOptions};
use super::output::{Output, note};
use super::policy::JsonFinding;
use super::{Ended, FINDING, policy, targets};
use crate::compiler::draft::{self, Options};
use crate::compiler::format::format;
use crate::compiler::ident::{Ident, QualName};
use crate::compiler::span::SourceMap;
use crate::db::error::DbError;
use crate::policy_file::PolicyFile;

/// How a file stood, as `--json` shows it.
#[derive(Debug, Serialize)]
struct Formatted {
    file: String,
    /// It was not set as it should be.
    changed: bool,
    /// Its mistakes, for which it was left alone.
    mistakes: Vec<JsonFinding>,
}

/// `rowdeck fmt`.
pub fn fmt(out: Output, given: &[PathBuf], check: bool) -> Ended {
    let paths = if given.is_empty() { vec![targets::policy_path(None)?] } else { given.to_vec() };
    let mut all = Vec::new();
    for path in &paths {
        all.push(fmt_file(out, path, check)?);
    }
    if out.json {
        out.json(&all)?;
    }
    let bad = |one: &Formatted| !one.mistakes.is_empty() || (check && one.changed);
    Ok(if all.iter().any(bad) { FINDING } else { 0 })
}

fn fmt_file(out: Output, path: &Path, check: bool) -> Result<Formatted, DbError> {
    let file = PolicyFile::read(path)?;
    let shown = crate::text::line(&path.display().to_string()).into_owned();
    let mut done = Formatted { file: path.display().to_string(), changed: false, mistakes: Vec::new() };
    match format(&file.text) {
        Err(mistakes) => {
            let sources = SourceMap::single(done.file.clone(), file.text.clone());
            done.mistakes = mistakes.iter().map(|found| JsonFinding::new(found, &sources)).collect();
            if !out.json {
                mistakes.iter().try_for_each(|found| out.line(&policy::finding_text(found, &sources)))?;
                note(&format!("{shown} is left as it is"));
            }
        }
        Ok(text) => {
            done.changed = text != file.text;
            if done.changed && !check {
                write(path, &text)?;
            }
            if done.changed && !out.json {
                out.line(&if check { format!("{shown} is not formatted") } else { format!("{shown} is formatted") })?;
            }
        }
    }
    Ok(done)
}

/// Writes a file whole or not at all.
fn write(path: &Path, text: &str) -> Result<(), DbError> {
    crate::app::files::save(path, text, None).map(|_| ()).map_err(|problem| {
        let why = match problem {
            crate::app::message::SaveProblem::Other(why) => why,
            crate::app::message::SaveProblem::ChangedOnDisk => "it was changed meanwhile".to_owned(),
        };
        DbError::Stopped(format!("cannot write {}: {why}", crate::text::line(&path.display().to_string())))
    })
}

/// `rowdeck init`.
pub async fn init(global: &Global, out: Output, options: &InitOptions) -> Ended {
    if let Some(path) = options.policy.as_ref().filter(|path| path.exists()) {
        let shown = crate::text::line(&path.display().to_string()).into_owned();
        return Err(DbError::Usage(format!("{shown} is there already; a draft writes over nothing")));
    }
    let users = options.users.as_deref().map(table_name).transpose()?;
    let session = targets::session(global).await?;
    let tables = crate::db::tables::read(&session.client, &options.schema).await?;
    let asked = Options { app_role: options.app_role.clone().map(Ident::new), users };
    let text = draft::draft(&tables, &asked).map_err(|why| DbError::Usage(why.to_string()))?;
    let compiled = crate::compiler::compile("draft", &text);
    if compiled.has_errors() {
        // It is still the better part of the work; what is wrong is said beside it.
        for found in &compiled.diagnostics {
            note(&policy::finding_text(found, &compiled.sources));
        }
    }
    match &options.policy {
        None => out.raw(&text)?,
        Some(path) => {
            let failed = |e| DbError::io(format!("cannot write {}", crate::text::line(&path.display().to_string())), e);
            // A file that came to be meanwhile is not written over either.
            let mut file = std::fs::File::create_new(path).map_err(failed)?;
            file.write_all(text.as_bytes()).map_err(failed)?;
            let shown = crate::text::line(&path.display().to_string()).into_owned();
            let looks = text.lines().filter(|line| line.contains("LOOK")).count();
            let looks = crate::text::counted(u64::try_from(looks).unwrap_or(u64::MAX), "line");
            note(&format!("{shown}: drafted from {} tables; read the {looks} marked LOOK", tables.len()));
        }
    }
    Ok(if compiled.has_errors() { FINDING } else { 0 })
}

/// `schema.table`, as the catalog spells it.
fn table_name(text: &str) -> Result<QualName, DbError> {
    match text.split_once('.') {
        Some((schema, name)) if !schema.is_empty() && !name.is_empty() => Ok(QualName::new(schema, name)),
        _ => Err(DbError::Usage(format!("\"{}\" names no table; write schema.table", crate::text::line(text)))),
    }
}

/// `rowdeck lsp`.
pub fn lsp() -> Ended {
    crate::lsp::serve().map_err(DbError::Stopped)
}
