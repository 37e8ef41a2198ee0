//! `rowdeck verify`.

use tokio::sync::watch;

use super::args::{Global, VerifyOptions};
use super::output::{self, Output, note};
use super::signals::{Caught, Signals};
use super::{Ended, FINDING, database, targets};
use crate::db::connect::Session;
use crate::db::error::DbError;
use crate::db::progress::{Reporter, VerifyReport, Wrong};
use crate::db::verify::{self, Control, Options};

/// Checks the index, and with `--repair` mends what is wrong and checks again.
pub async fn verify(global: &Global, out: Output, options: &VerifyOptions) -> Ended {
    let session = targets::session(global).await?;
    session.info.require_policy()?;
    let (reporter, shown) = output::show_progress();
    let result = checked(&session, options, &reporter).await;
    drop(reporter);
    database::finish(shown).await?;
    let (report, caught) = result?;
    if out.json {
        out.json(&report)?
    } else {
        show(out, &report)?
    }
    if let Some(caught) = caught {
        note(&format!("rowdeck: stopped by {}; what was checked until then is above", caught.name));
        return Ok(caught.exit_code);
    }
    Ok(if report.ok { 0 } else { FINDING })
}

async fn checked(
    session: &Session,
    options: &VerifyOptions,
    reporter: &Reporter,
) -> Result<(VerifyReport, Option<Caught>), DbError> {
    let found = until_signal(session, options, reporter).await?;
    if !options.repair || found.0.wrong.is_empty() || found.1.is_some() {
        return Ok(found);
    }
    for wrong in &found.0.wrong {
        note(&words(wrong));
    }
    let repaired = verify::repair(&session.client, &found.0.wrong).await?;
    note(&format!("repaired {}; verifying again", crate::text::counted(repaired, "object")));
    until_signal(session, options, reporter).await
}

/// A first signal ends it after the batch that runs, so that the report says where to go on.
async fn until_signal(
    session: &Session,
    options: &VerifyOptions,
    reporter: &Reporter,
) -> Result<(VerifyReport, Option<Caught>), DbError> {
    let mut signals = Signals::new()?;
    let (wish, control) = watch::channel(Control::Run);
    let how =
        Options { batch: options.batch, from: options.from.clone(), control: Some(control), ..Options::default() };
    let work = verify::run(&session.client, how, reporter);
    tokio::pin!(work);
    let mut caught = None;
    loop {
        tokio::select! {
            report = &mut work => return Ok((report?, caught)),
            signal = signals.next() => {
                caught = Some(signal);
                wish.send_replace(Control::Stop);
            }
        }
    }
}

/// Shows how a verify ended and every object that is wrong.
pub(super) fn show(out: Output, report: &VerifyReport) -> Result<(), DbError> {
    for wrong in &report.wrong {
        out.line(&words(wrong))?;
    }
    let batches = if report.batches == 1 { "batch" } else { "batches" };
    let on = report.cursor.as_ref().map_or_else(String::new, |cursor| format!("; go on with: --from '{cursor}'"));
    out.line(&format!(
        "verify {}: {} checked, {} wrong, {} {batches}, in {}{on}",
        report.ok,
        crate::text::count(report.checked),
        report.wrong.len(),
        crate::text::count(report.batches),
        output::duration(report.seconds)
    ))
}

fn words(wrong: &Wrong) -> String {
    let ancestors = |list: &Option<Vec<String>>| match list {
        Some(ids) => format!("[{}]", ids.join(", ")),
        None => "not in the index".to_owned(),
    };
    format!(
        "wrong: {} {}: {}; stored {}, should be {} ({})",
        wrong.ty,
        wrong.id,
        wrong.what,
        ancestors(&wrong.stored),
        ancestors(&wrong.expected),
        wrong.graph
    )
}
