//! The live benchmark without a screen.

use std::time::Duration;

use super::error::BenchError;
use super::live::{self, Command, LiveReport, Options, Phase, Snapshot};

/// What a run without a screen does when.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// How long to measure.
    pub seconds: f64,
    /// When to start big moves, in seconds since measuring began.
    pub big_moves: Vec<f64>,
}

/// Runs for as long as planned, or until `interrupted` is ready: then what was measured is kept and marked incomplete.
/// `tell` is called with each new state.
pub async fn run_headless(
    options: Options,
    plan: &Plan,
    interrupted: impl Future<Output = String>,
    mut tell: impl FnMut(&Snapshot),
) -> Result<LiveReport, BenchError> {
    let handle = live::start(options);
    let mut snapshots = handle.snapshots.clone();
    let mut due = plan.big_moves.clone();
    due.sort_by(f64::total_cmp);
    let mut due = due.into_iter().peekable();
    let mut stopping = false;
    let mut why = None;
    tokio::pin!(interrupted);
    loop {
        let wait = wait(&snapshots.borrow(), plan.seconds, due.peek().copied());
        tokio::select! {
            changed = snapshots.changed() => if changed.is_err() { break },
            () = tokio::time::sleep(wait), if !stopping => {}
            said = &mut interrupted, if why.is_none() => {
                why = Some(said);
                stopping = true;
                order(&handle.commands, Command::Stop).await;
            }
        }
        let snapshot = snapshots.borrow_and_update().clone();
        tell(&snapshot);
        if snapshot.phase != Phase::Running || stopping {
            continue;
        }
        while due.next_if(|at| *at <= snapshot.elapsed).is_some() {
            order(&handle.commands, Command::BigMove).await;
        }
        if snapshot.elapsed >= plan.seconds {
            stopping = true;
            order(&handle.commands, Command::Stop).await;
        }
    }
    let mut report = match handle.done.await {
        Ok(report) => report?,
        Err(error) => return Err(BenchError::Unsuitable(format!("the benchmark ended unexpectedly: {error}"))),
    };
    if let Some(why) = why {
        report.complete = false;
        report.failure.get_or_insert(why);
    }
    Ok(report)
}

/// Until the next thing there is to do: never longer than a state takes to come.
fn wait(snapshot: &Snapshot, end: f64, big_move: Option<f64>) -> Duration {
    let next = big_move.map_or(end, |at| at.min(end));
    Duration::try_from_secs_f64(next - snapshot.elapsed)
        .unwrap_or_default()
        .clamp(Duration::from_millis(20), live::PERIOD)
}

/// A run that ended by itself no longer listens, and needs no order.
async fn order(commands: &tokio::sync::mpsc::Sender<Command>, command: Command) {
    if commands.send(command).await.is_err() {
        tracing::debug!("the benchmark ended before {command:?}");
    }
}
