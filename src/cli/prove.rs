//! `prove` and `diff`: what the evaluator says of a policy.

use std::path::Path;

use super::args::Global;
use super::output::{Output, note};
use super::policy::show_findings;
use super::{Ended, FINDING, targets};
use crate::compiler::evaluate::CannotEvaluate;
use crate::compiler::model::Model;
use crate::compiler::prove::{self, Example, Proof};
use crate::db::error::DbError;
use crate::db::facts;
use crate::db::inspect::model_in_force;
use crate::policy_file::PolicyFile;
use crate::text::counted;

/// A policy's model; its mistakes are shown when it has any.
fn model(out: Output, policy: &Path) -> Result<Option<Model>, DbError> {
    let compiled = PolicyFile::read(policy)?.compile();
    if compiled.model.is_none() {
        show_findings(out, &compiled, &compiled.diagnostics)?;
    }
    Ok(compiled.model)
}

/// What the evaluator does not know, with its place where the policy is at hand.
fn cannot(error: &CannotEvaluate, policy: &Path) -> DbError {
    let place = PolicyFile::read(policy).ok().map(|file| {
        let (start, _) = file.compile().sources.places(error.span);
        format!("{}:{}:{}: ", policy.display(), start.line, start.column)
    });
    DbError::Usage(format!("{}{error}", place.unwrap_or_default()))
}

/// `rowdeck prove`.
pub fn prove(out: Output, policy: Option<&Path>, worlds: u64, seed: u64) -> Ended {
    let path = targets::policy_path(policy)?;
    let Some(model) = model(out, &path)? else { return Ok(FINDING) };
    if model.invariants.is_empty() {
        note("the policy has no invariants");
    }
    let proofs = prove::prove(&model, worlds, seed).map_err(|error| cannot(&error, &path))?;
    for proof in &proofs {
        if out.json {
            out.json(proof)?;
        } else {
            lines(proof).iter().try_for_each(|line| out.line(line))?;
        }
    }
    Ok(if proofs.iter().all(|proof| proof.counterexample.is_none()) { 0 } else { FINDING })
}

fn lines(proof: &Proof) -> Vec<String> {
    let title = format!("invariant {} (never {})", proof.invariant, proof.ty);
    let Some(found) = &proof.counterexample else {
        return vec![format!("{title}: none found in {}", counted(proof.worlds, "world"))];
    };
    let mut lines = vec![format!("{title}: it holds for {} on {}, with these rows:", found.principal, found.object)];
    lines.extend(found.rows.iter().chain(&found.shares).map(|row| format!("  {row}")));
    lines
}

/// `rowdeck diff`.
pub async fn diff(global: &Global, out: Output, policy: Option<&Path>, old: Option<&Path>) -> Ended {
    let path = targets::policy_path(policy)?;
    let Some(new) = model(out, &path)? else { return Ok(FINDING) };
    let session = targets::session(global).await?;
    let old_model = match old {
        Some(old) => match model(out, old)? {
            Some(model) => model,
            None => return Ok(FINDING),
        },
        None => model_in_force(&session).await?,
    };
    let snapshots = facts::read_each(&session.client, &[&old_model, &new]).await?;
    let [before, after] = snapshots.as_slice() else {
        return Err(DbError::Unexpected("the facts of one policy are missing".to_owned()));
    };
    let changes = prove::diff((&old_model, &before.facts), (&new, &after.facts), after.now)
        .map_err(|error| cannot(&error, &path))?;
    for change in &changes {
        if out.json {
            out.json(change)?;
            continue;
        }
        let what = format!("{} of {}", change.permission, change.ty);
        let say = |verb: &str, count: usize, example: &Option<Example>| -> Result<(), DbError> {
            let Some(example) = example else { return Ok(()) };
            let objects = counted(u64::try_from(count).unwrap_or(u64::MAX), "object");
            let how = example.how.join("; ");
            out.line(&format!("{} {verb} {what} on {objects}, such as {}: {how}", change.principal, example.object))
        };
        say("gains", change.gained, &change.gains)?;
        say("loses", change.lost, &change.loses)?;
    }
    if changes.is_empty() && !out.json {
        out.line("nobody gains or loses anything on these rows")?;
    }
    Ok(if changes.is_empty() { 0 } else { FINDING })
}
