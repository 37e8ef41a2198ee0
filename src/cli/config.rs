//! Configuration, shell completions and the man page.

use std::io::Write as _;

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::args::Cli;
use super::output::Output;
use super::{Ended, FINDING, targets};
use crate::app::settings::Settings;
use crate::db::error::DbError;
use crate::db::target::process_environment;

/// `rowdeck config check`: reads every file of ours and every target, and says what is wrong with each.
pub fn check(out: Output) -> Ended {
    let mut wrong = 0;
    let mut say = |place: &str, problems: Vec<String>| -> Result<(), DbError> {
        wrong += problems.len();
        if problems.is_empty() {
            return out.line(&format!("{place}: fine"));
        }
        problems.iter().try_for_each(|problem| out.line(&format!("{place}: {problem}")))
    };
    match targets::config() {
        Ok(config) => {
            let place = config.path.as_ref().map(|path| crate::text::line(&path.display().to_string()).into_owned());
            match place {
                None => say("rowdeck.toml", Vec::new())?,
                Some(place) => {
                    let mut problems = Vec::new();
                    if let Some(policy) = config.policy_path().filter(|path| !path.is_file()) {
                        problems.push(format!("policy: there is no file {}", policy.display()));
                    }
                    for name in config.targets.keys() {
                        if let Err(error) = config.target(None, Some(name), &process_environment) {
                            problems.push(format!("target {name}: {error}"));
                        }
                    }
                    say(&place, problems)?;
                }
            }
        }
        Err(error) => say("rowdeck.toml", vec![error.to_string()])?,
    }
    if let Some(path) = Settings::path() {
        let place = crate::text::line(&path.display().to_string()).into_owned();
        let problems = match Settings::read(&path) {
            Ok(settings) => settings.problems(),
            Err(why) => vec![why],
        };
        say(&place, problems)?;
    }
    Ok(if wrong == 0 { 0 } else { FINDING })
}

/// `rowdeck completions`.
pub fn completions(out: Output, shell: Shell) -> Ended {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "rowdeck", &mut text);
    out.raw(&String::from_utf8_lossy(&text))?;
    Ok(0)
}

/// `rowdeck man`: the program's page, and one for each command after it.
pub fn man(out: Output) -> Ended {
    let mut text = Vec::new();
    let io = |e| DbError::io("cannot write the man page", e);
    let command = Cli::command();
    clap_mangen::Man::new(command.clone()).render(&mut text).map_err(io)?;
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let name = format!("rowdeck {}", sub.get_name());
        writeln!(text).map_err(io)?;
        clap_mangen::Man::new(sub.clone().bin_name(&name)).render_synopsis_section(&mut text).map_err(io)?;
        clap_mangen::Man::new(sub.clone().bin_name(&name)).render_description_section(&mut text).map_err(io)?;
        clap_mangen::Man::new(sub.clone().bin_name(name)).render_options_section(&mut text).map_err(io)?;
    }
    out.raw(&String::from_utf8_lossy(&text))?;
    Ok(0)
}
