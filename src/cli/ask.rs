//! Commands that ask who can do what.

use serde::Serialize;

use super::args::{As, Global};
use super::output::{Output, note};
use super::{Ended, FINDING, targets};
use crate::db::as_role::Principal;
use crate::db::error::DbError;
use crate::db::inspect::{Inspector, Page, model_in_force};

/// Rows are asked for in pages of this many, so that a long list neither fills memory nor holds a snapshot.
const PAGE: u32 = 1000;

/// `rowdeck can`.
pub async fn can(global: &Global, out: Output, who: &As, ty: &str, id: &str, permission: &str) -> Ended {
    let principal = Principal::parse(&who.principal)?;
    let session = targets::session(global).await?;
    let model = model_in_force(&session).await?;
    let yes = Inspector::new(&session.client, &model).can(&principal, ty, id, permission).await?;
    if out.json {
        #[derive(Serialize)]
        struct Answer {
            can: bool,
        }
        out.json(&Answer { can: yes })?;
    } else {
        out.line(if yes { "yes" } else { "no" })?;
    }
    Ok(if yes { 0 } else { FINDING })
}

/// `rowdeck who`.
pub async fn who(global: &Global, out: Output, ty: &str, id: &str, permission: &str, limit: u32) -> Ended {
    let session = targets::session(global).await?;
    let model = model_in_force(&session).await?;
    let inspector = Inspector::new(&session.client, &model);
    let page = inspector.who(ty, id, permission, limit).await?;
    if page.rows.is_empty() && inspector.is_missing(ty, id).await? {
        note_missing(ty, id);
    }
    for row in &page.rows {
        if out.json {
            out.json(row)?;
        } else {
            out.line(&named(&format!("{} {}", row.ty, row.id), row.label.as_deref()))?;
        }
    }
    if page.after.is_some() {
        note(&format!("the first {} of more", crate::text::count(limit.into())));
    }
    Ok(if page.rows.is_empty() { FINDING } else { 0 })
}

/// `rowdeck why`.
pub async fn why(global: &Global, out: Output, who: &As, ty: &str, id: &str, permission: &str) -> Ended {
    let principal = Principal::parse(&who.principal)?;
    let session = targets::session(global).await?;
    let model = model_in_force(&session).await?;
    let inspector = Inspector::new(&session.client, &model);
    let why = inspector.why(&principal, ty, id, permission).await?;
    if let Principal::Of { ty, id } = &principal
        && inspector.is_missing(ty, id).await?
    {
        note_missing(ty, id);
        // What everybody may do is still so; what a made-up id lacks is of no use.
        if !why.allowed && !out.json {
            return Ok(FINDING);
        }
    }
    if out.json {
        out.json(&why)?;
    } else {
        for line in why.lines() {
            out.line(&line)?;
        }
    }
    Ok(if why.allowed { 0 } else { FINDING })
}

/// Says that what was asked about does not exist.
fn note_missing(ty: &str, id: &str) {
    note(&format!("there is no {} {}", crate::text::line(ty), crate::text::line(id)));
}

/// A thing and, set apart by a tab, its name.
fn named(what: &str, label: Option<&str>) -> String {
    let label = label.map_or_else(String::new, |label| format!("\t{}", crate::text::line(label)));
    // A tab is ours to write; within names it was taken out.
    format!("{}{label}", crate::text::line(what.trim_end()))
}

/// `rowdeck perms`.
pub async fn perms(global: &Global, out: Output, who: &As, ty: &str, id: &str) -> Ended {
    let principal = Principal::parse(&who.principal)?;
    let session = targets::session(global).await?;
    let model = model_in_force(&session).await?;
    let held = Inspector::new(&session.client, &model).perms(&principal, ty, id).await?;
    if out.json {
        out.json(&held)?;
    } else {
        for permission in &held {
            out.line(permission)?;
        }
    }
    Ok(if held.is_empty() { FINDING } else { 0 })
}

/// `rowdeck list`.
pub async fn list(
    global: &Global,
    out: Output,
    who: &As,
    ty: &str,
    permission: &str,
    after: Option<String>,
    limit: u32,
) -> Ended {
    let principal = Principal::parse(&who.principal)?;
    let session = targets::session(global).await?;
    let model = model_in_force(&session).await?;
    let inspector = Inspector::new(&session.client, &model);
    pages(out, after, limit, async |after, size| {
        inspector.list(&principal, ty, permission, after.as_deref(), size).await
    })
    .await
}

/// `rowdeck sees`.
pub async fn sees(global: &Global, out: Output, who: &As, ty: &str, after: Option<String>, limit: u32) -> Ended {
    let principal = Principal::parse(&who.principal)?;
    let session = targets::session(global).await?;
    let model = model_in_force(&session).await?;
    let inspector = Inspector::new(&session.client, &model);
    pages(out, after, limit, async |after, size| inspector.sees(&principal, ty, after.as_deref(), size).await).await
}

/// Prints pages until the limit or the end. As JSON each row is a line of its own, so that nothing is kept in memory.
/// A list that was cut says so, and where to go on.
async fn pages(
    out: Output,
    mut after: Option<String>,
    limit: u32,
    ask: impl AsyncFn(Option<String>, u32) -> Result<Page, DbError>,
) -> Ended {
    let mut left = limit;
    loop {
        let page = ask(after, left.min(PAGE)).await?;
        for row in &page.rows {
            if out.json {
                out.json(row)?;
            } else {
                out.line(&named(&row.id, row.label.as_deref()))?;
            }
        }
        left = left.saturating_sub(u32::try_from(page.rows.len()).unwrap_or(u32::MAX));
        match page.after {
            None => return Ok(0),
            Some(next) if left == 0 => {
                let shown = crate::text::count(limit.into());
                note(&format!("the first {shown} of more; go on with: --after '{}'", crate::text::line(&next)));
                return Ok(0);
            }
            Some(next) => after = Some(next),
        }
    }
}
