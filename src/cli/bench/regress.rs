//! `rowdeck bench regress`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::own::{data_folder, own_server};
use super::run::stoppable;
use super::{duration, failed};
use crate::bench::scale::regress::{self, Compared, Recorded};
use crate::cli::args::Global;
use crate::cli::output::{Output, note, show_progress};
use crate::cli::{Ended, FINDING, database::finish};

/// Options of `bench regress`.
#[derive(Debug, Clone, Args)]
pub struct RegressArgs {
    /// Keep this run as the baseline: the first time, and after an intended change
    #[arg(long)]
    pub record: bool,
    /// The baseline; a file of this user when left out, as a baseline belongs to the machine that recorded it
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// How long each step lasts
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = duration)]
    pub step: Duration,
    /// Reads a second; 25 for each CPU, up to 400, when left out
    #[arg(long, value_name = "RATE", value_parser = super::rate)]
    pub rate: Option<f64>,
    /// Folders
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(300..=100_000))]
    pub folders: u32,
}

pub(super) async fn run(global: &Global, out: Output, args: &RegressArgs) -> Ended {
    own_server(global, "regress")?;
    let path = match &args.baseline {
        Some(path) => path.clone(),
        None => data_folder()?.join("baseline.json"),
    };
    let baseline = regress::read(&path)?;
    if baseline.is_none() && !args.record {
        note(&format!("rowdeck: there is no baseline in {}; record one with --record", path.display()));
        return Ok(FINDING);
    }
    let mut options = regress::options(args.folders as usize, args.step);
    options.reads = args.rate.unwrap_or(options.reads);
    let (reporter, shown) = show_progress();
    let (ended, _) = stoppable(|stop| {
        let (options, reporter, baseline) = (&options, &reporter, baseline.as_ref().filter(|_| !args.record));
        async move {
            match baseline {
                Some(baseline) => regress::run(options, baseline, &stop, reporter).await,
                None => {
                    let now = regress::record(options, &stop, reporter).await?;
                    Ok(Compared { now, before: None, regressed: Vec::new(), not_judged: Vec::new() })
                }
            }
        }
    })
    .await?;
    drop(reporter);
    finish(shown).await?;
    let compared = match ended {
        Ok(compared) => compared,
        Err(error) => return failed(error),
    };
    if args.record {
        regress::write(&path, &compared.now)?;
        note(&format!("      recorded in {}", path.display()));
    }
    if out.json {
        out.json(&compared)?;
    } else {
        text(out, &compared)?;
    }
    Ok(compared.exit_code())
}

fn text(out: Output, compared: &Compared) -> Result<(), crate::db::error::DbError> {
    let was = |name: &str| compared.before.as_ref().and_then(|before: &Recorded| before.p95_ms.get(name));
    out.line(&format!("{:<30}{:>8}{:>12}{:>12}", "p95 ms", "n", "now", "baseline"))?;
    for (name, (n, p95)) in &compared.now.p95_ms {
        let before = was(name).map_or_else(|| "–".to_owned(), |(_, p95)| format!("{p95:.2}"));
        out.line(&format!("{name:<30}{n:>8}{p95:>12.2}{before:>12}"))?;
    }
    let before = compared.before.as_ref().map_or_else(|| "–".to_owned(), |one| format!("{:.0}", one.big_move_ms));
    out.line(&format!("{:<30}{:>8}{:>12.0}{before:>12}", "the big move, ms", "", compared.now.big_move_ms))?;
    for line in &compared.now.gate {
        out.line(&format!("shown, not judged: {line}"))?;
    }
    for line in &compared.not_judged {
        out.line(&format!("not judged: {line}"))?;
    }
    for line in &compared.regressed {
        out.line(&format!("REGRESSED {line}"))?;
    }
    Ok(())
}
