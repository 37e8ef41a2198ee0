//! The load of the Bench screen.

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Context;
use crate::app::message::{BenchNews, Message};
use crate::app::model::bench::Rates;
use crate::bench::live::{Command, Handle, Options, start};

/// The load, while it runs.
#[derive(Debug, Default)]
pub struct Load {
    commands: Option<mpsc::Sender<Command>>,
    task: Option<JoinHandle<()>>,
}

impl Load {
    /// Starts it at these rates.
    pub fn start(&mut self, context: Context, rates: Rates) {
        let mut options = Options::new(context.writable());
        (options.reads, options.writes) = (f64::from(rates.reads), f64::from(rates.writes));
        let handle = start(options);
        self.commands = Some(handle.commands.clone());
        self.task = Some(tokio::spawn(follow(context, handle)));
    }

    /// Goes on at other rates.
    pub fn set_rates(&self, rates: Rates) {
        self.tell(Command::SetRates { reads: f64::from(rates.reads), writes: f64::from(rates.writes) });
    }

    /// Moves a big subtree now.
    pub fn big_move(&self) {
        self.tell(Command::BigMove);
    }

    /// Stops measuring and takes back what was written.
    pub fn stop(&self) {
        self.tell(Command::Stop);
    }

    fn tell(&self, command: Command) {
        if let Some(commands) = &self.commands
            && let Err(error) = commands.try_send(command)
        {
            // A load that has just ended takes no commands, and says so itself.
            tracing::debug!("the load takes no command now: {error}");
        }
    }

    /// Stops it and waits until what it wrote is taken back.
    pub async fn end(&mut self) {
        self.stop();
        self.commands = None;
        if let Some(task) = self.task.take()
            && let Err(error) = task.await
        {
            tracing::error!("the load's task failed: {error}");
        }
    }
}

/// Passes on what is measured until the load has ended.
async fn follow(context: Context, mut handle: Handle) {
    while handle.snapshots.changed().await.is_ok() {
        let snapshot = handle.snapshots.borrow_and_update().clone();
        context.tell(Message::Bench(BenchNews::Snapshot(Box::new(snapshot)))).await;
    }
    let ended = match handle.done.await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(format!("the load's task failed: {error}")),
    };
    context.tell(Message::Bench(BenchNews::Ended(ended))).await;
}
