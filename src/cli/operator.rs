//! What an operator on call asks first, and one statement as somebody.

use std::io::Read as _;

use super::args::{As, Global};
use super::output::{Output, duration, note};
use super::{Ended, FINDING, targets};
use crate::db::as_role::Principal;
use crate::db::error::DbError;
use crate::db::overview::Weight;
use crate::db::try_it::{self, Caps};
use crate::db::{overview, sessions};

/// The longest statement that is read from stdin.
const LONGEST: u64 = 1 << 20;

/// `rowdeck sql-as`.
pub async fn sql_as(global: &Global, out: Output, who: &As, statement: &str, read_only: bool, limit: u32) -> Ended {
    let principal = Principal::parse(&who.principal)?;
    let statement = if statement == "-" { from_stdin()? } else { statement.to_owned() };
    let session = targets::session(global).await?;
    let policy = try_it::policy_in_force(&session).await?;
    let writes = !read_only && !session.target.read_only;
    let caps = Caps { rows: limit as usize, bytes: 64 << 20, cell: 1 << 20 };
    let tried = try_it::run(&session, &policy, &principal, &statement, writes, caps).await?;
    if out.json {
        out.json(&tried)?;
    } else {
        let cell = |cell: &Option<String>| {
            cell.as_ref().map_or_else(|| "NULL".to_owned(), |c| crate::text::line(c).into_owned())
        };
        if !tried.columns.is_empty() && tried.refused.is_none() {
            out.line(&tried.columns.join("\t"))?;
        }
        for row in &tried.rows {
            out.line(&row.iter().map(cell).collect::<Vec<_>>().join("\t"))?;
        }
        if let Some(refused) = &tried.refused {
            out.line(&format!("refused: {refused}"))?;
        }
        for line in tried.apart.iter().flat_map(try_it::Apart::lines) {
            out.line(&line)?;
        }
        let cut = tried.cut.as_ref().map_or_else(String::new, |cut| format!("{cut} of more, "));
        let rows = crate::text::counted(tried.touched, "row");
        note(&format!("{cut}{rows}, {}, rolled back", duration(tried.seconds)));
    }
    Ok(if tried.touched == 0 || tried.refused.is_some() { FINDING } else { 0 })
}

fn from_stdin() -> Result<String, DbError> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(LONGEST).read_to_string(&mut text);
    read.map_err(|e| DbError::io("cannot read the statement from stdin", e))?;
    Ok(text)
}

/// `rowdeck overview`.
pub async fn overview(global: &Global, out: Output) -> Ended {
    let session = targets::session(global).await?;
    let role = match &session.info.policy {
        Some(_) => try_it::policy_in_force(&session).await?.model.map(|model| model.app_role.as_str().to_owned()),
        None => None,
    };
    let read = overview::read(&session.client, role.as_deref()).await?;
    if out.json {
        out.json(&read)?;
    } else {
        match &session.info.policy {
            Some(policy) => {
                let applied = format!("applied {} by {}", policy.applied_at, policy.applied_by);
                out.line(&format!("in force   {} version {}, {applied}", policy.name, policy.version))?;
            }
            None => out.line("in force   nothing this role may read")?,
        }
        let count = crate::text::count;
        let index = &read.index;
        out.line(&format!(
            "index      {} bytes, {} objects, {} clusters, about",
            count(index.bytes),
            count(index.objects),
            count(index.clusters)
        ))?;
        for wait in &read.waits {
            let held = wait.holders.join(", ");
            out.line(&format!("waits      pid {} for {}, held by {held}", wait.pid, wait.waits_for))?;
        }
        for found in &read.attention {
            let word = if found.weight == Weight::Wrong { "wrong      " } else { "look       " };
            out.line(&format!("{word}{}; {}", found.words, found.help))?;
        }
        if read.attention.is_empty() && read.waits.is_empty() {
            out.line("needs you  nothing")?;
        }
    }
    Ok(if read.attention.iter().any(|found| found.weight == Weight::Wrong) { FINDING } else { 0 })
}

/// `rowdeck activity`.
pub async fn activity(global: &Global, out: Output) -> Ended {
    let session = targets::session(global).await?;
    let read = sessions::read(&session.client).await?;
    if out.json {
        out.json(&read)?;
        return Ok(0);
    }
    for row in &read.rows {
        let waits = if row.blocked_by.is_empty() {
            String::new()
        } else {
            let pids: Vec<String> = row.blocked_by.iter().map(ToString::to_string).collect();
            format!("waits for {} of {}", row.waits_for.as_deref().unwrap_or("a lock"), pids.join(", "))
        };
        let query = if row.hidden { "(hidden)" } else { row.query.trim() };
        let fields =
            [&row.pid.to_string(), &row.role, &row.state, &waits, query].map(|f| crate::text::line(f).into_owned());
        out.line(&fields.join("\t"))?;
    }
    if read.cut {
        note(&format!("the first {} of more", sessions::MOST));
    }
    Ok(0)
}
