//! `rowdeck bench seed` and `rowdeck bench clean`.

use std::path::PathBuf;

use clap::Args;

use super::{failed, refuse_out};
use crate::bench::seed::{self, Spec};
use crate::cli::args::Global;
use crate::cli::output::{Output, show_progress};
use crate::cli::{Ended, database::finish, interruptible, targets};

/// Options of `bench seed`. The same numbers make the same rows.
#[derive(Debug, Clone, Args)]
pub struct SeedArgs {
    /// Users
    #[arg(long, value_name = "N", default_value_t = Spec::default().users)]
    pub users: u32,
    /// Small organisations, each with an admin
    #[arg(long, value_name = "N", default_value_t = Spec::default().orgs)]
    pub orgs: u32,
    /// Members of the one large team
    #[arg(long, value_name = "N", default_value_t = Spec::default().large)]
    pub large: u32,
    /// Members of the group
    #[arg(long, value_name = "N", default_value_t = Spec::default().group)]
    pub group: u32,
    /// Teams, in chains three deep
    #[arg(long, value_name = "N", default_value_t = Spec::default().teams)]
    pub teams: u32,
    /// Folders
    #[arg(long, value_name = "N", default_value_t = Spec::default().folders)]
    pub folders: u32,
    /// Files
    #[arg(long, value_name = "N", default_value_t = Spec::default().files)]
    pub files: u32,
    /// Users that stand for services
    #[arg(long, value_name = "N", default_value_t = Spec::default().services)]
    pub services: u32,
    /// What all choices follow from, and the prefix of all names
    #[arg(long, value_name = "N", default_value_t = Spec::default().seed)]
    pub seed: u32,
    /// Where to write what was made: a file for its owner's eyes, which must not be there yet
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

/// Options of `bench clean`.
#[derive(Debug, Clone, Args)]
pub struct CleanArgs {
    /// The seed whose rows are removed
    #[arg(long, value_name = "N")]
    pub seed: u32,
}

pub(super) async fn seed(global: &Global, out: Output, args: &SeedArgs) -> Ended {
    refuse_out(Some(&args.out))?;
    let target = targets::target(global)?;
    let spec = Spec {
        users: args.users,
        orgs: args.orgs,
        large: args.large,
        group: args.group,
        teams: args.teams,
        folders: args.folders,
        files: args.files,
        services: args.services,
        seed: args.seed,
    };
    let (reporter, shown) = show_progress();
    let making = async {
        let made = match seed::seed(&target, &spec, &reporter).await {
            Ok(made) => made,
            Err(error) => return failed(error),
        };
        seed::write_file(&args.out, &made)?;
        if out.json {
            out.json(&made)?;
        } else {
            let words = format!("names begin with {}, made in {:.1} s; written to", made.prefix, made.seconds);
            out.line(&format!("{words} {}", args.out.display()))?;
        }
        Ok(0)
    };
    let ended = interruptible(making).await;
    drop(reporter);
    finish(shown).await?;
    ended
}

pub(super) async fn clean(global: &Global, out: Output, args: &CleanArgs) -> Ended {
    let removed = match seed::clean(&targets::target(global)?, args.seed).await {
        Ok(removed) => removed,
        Err(error) => return failed(error),
    };
    if out.json {
        let json: serde_json::Map<_, _> =
            removed.iter().map(|(table, rows)| ((*table).to_owned(), (*rows).into())).collect();
        out.json(&json)?;
        return Ok(0);
    }
    let words: Vec<String> = removed.iter().map(|(table, rows)| format!("{rows} {table}")).collect();
    out.line(&format!("removed {}", words.join(", ")))?;
    Ok(0)
}
