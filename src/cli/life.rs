//! Commands about a policy's life in a database: `drift`, `reapply`, `remove`.

use std::path::Path;

use super::args::Global;
use super::database::{Asked, agreed, apply_it, stoppable};
use super::output::{Output, note};
use super::{Ended, FINDING, policy, targets};
use crate::compiler::emit::emit;
use crate::db::apply::{self, ApplyOptions, RemoveReport};
use crate::db::compat::{self, Release};
use crate::db::drift::{self, Drift};
use crate::db::error::DbError;
use crate::db::kept;
use crate::db::plan::{Again, Policy, plan};
use crate::policy_file::PolicyFile;

/// `rowdeck drift`.
pub async fn drift(global: &Global, out: Output, given: Option<&Path>) -> Ended {
    let session = targets::session(global).await?;
    let mut found = drift::run(&session.client).await?;
    if let Some(path) = given {
        let file = PolicyFile::read(path)?;
        let Some(ready) = policy::ready(out, &file)? else { return Ok(FINDING) };
        if !plan(&session.client, &ready.policy(&file)).await?.unchanged {
            found.insert(0, other_policy(&file.name));
        }
    }
    if out.json {
        out.json(&found)?;
    } else {
        for line in found.iter().flat_map(Drift::lines) {
            out.line(&line)?;
        }
        if found.is_empty() {
            out.line("no drift: the database enforces what the last apply left")?;
        }
    }
    Ok(if found.is_empty() { 0 } else { FINDING })
}

fn other_policy(name: &str) -> Drift {
    Drift {
        what: "changed".to_owned(),
        kind: "policy in force".to_owned(),
        object: name.to_owned(),
        expected: None,
        found: None,
        mend: Some("rowdeck plan shows what differs, rowdeck apply puts it in force".to_owned()),
    }
}

/// `rowdeck reapply`.
pub async fn reapply(global: &Global, out: Output, force: bool, yes: bool) -> Ended {
    let session = targets::session(global).await?;
    if let Release::Newer(program) = compat::read(&session.client).await? {
        return Err(DbError::Usage(compat::newer(&program)));
    }
    let (name, text) = kept::text(&session).await?;
    let compiled = kept::compile(&name, &text);
    let Some(model) = compiled.model.as_ref() else {
        // A later release may refuse what an earlier one took.
        policy::show_findings(out, &compiled, &compiled.diagnostics)?;
        return Ok(FINDING);
    };
    let emitted = emit(model).map_err(DbError::Policy)?;
    let policy = Policy { name: &name, sources: &compiled.sources, model, emitted: &emitted };
    let again = if force { Again::Everything } else { Again::Rules };
    let options = ApplyOptions { again, ..ApplyOptions::default() };
    apply_it(out, &session, &policy, options, Asked { yes, reviewed: None }).await
}

/// `rowdeck remove`.
pub async fn remove(global: &Global, out: Output, yes: bool) -> Ended {
    let session = targets::session(global).await?;
    let removal = apply::removal(&session).await?;
    if !yes {
        note(&format!(
            "removes version {}, its index, {} and the record of every version; row-level security stays on for {}, \
             which only the owner then reads",
            removal.version,
            crate::text::counted(u64::try_from(removal.shares).unwrap_or(0), "share"),
            if removal.tables.is_empty() { "no table".to_owned() } else { removal.tables.join(", ") }
        ));
        if !agreed(&session, "remove rowdeck from", &session.info.database)? {
            note("nothing was removed");
            return Ok(FINDING);
        }
    }
    let options = ApplyOptions::default();
    stoppable(out, removed_words, async |reporter, stop| apply::remove(&session, &options, reporter, stop).await).await
}

fn removed_words(report: &RemoveReport) -> String {
    let mut out =
        format!("version {} is removed, in {}", report.removal.version, super::output::duration(report.seconds));
    if !report.to_open.is_empty() {
        out.push_str("; row-level security is still on: only its owner reads a table until you run\n");
        out.push_str(&report.to_open.iter().map(|sql| format!("  {sql};")).collect::<Vec<_>>().join("\n"));
    }
    out
}
