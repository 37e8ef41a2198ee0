//! The log: a file in the user's state folder, never the terminal.

use tracing_appender::non_blocking::WorkerGuard;
use tracing_appender::rolling::{Builder, Rotation};
use tracing_subscriber::EnvFilter;

/// Starts the log; the guard writes what is left when it is dropped. `ROWDECK_LOG` chooses what is logged (`debug`,
/// `rowdeck::db=trace`). Without a folder to write to there is no log, which stops no work.
pub fn start() -> Option<WorkerGuard> {
    let dirs = directories::ProjectDirs::from("", "", "rowdeck")?;
    let folder = dirs.state_dir().unwrap_or_else(|| dirs.data_local_dir());
    let builder =
        Builder::new().rotation(Rotation::DAILY).filename_prefix("rowdeck").filename_suffix("log").max_log_files(7);
    // The appender complains on stderr about a folder that is missing, and makes it all the same.
    let appender = match std::fs::create_dir_all(folder)
        .map_err(anyhow::Error::from)
        .and_then(|()| builder.build(folder).map_err(anyhow::Error::from))
    {
        Ok(appender) => appender,
        Err(error) => {
            super::output::note(&format!("warning: no log is written, {} cannot be used: {error}", folder.display()));
            return None;
        }
    };
    let (writer, guard) = tracing_appender::non_blocking(appender);
    let filter = EnvFilter::try_from_env("ROWDECK_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_writer(writer).with_ansi(false).with_env_filter(filter).init();
    Some(guard)
}
