//! The measuring steps.

use std::time::{Duration, Instant};

use super::Options;
use crate::bench::error::BenchError;
use crate::bench::headless::{self, Plan};
use crate::bench::live::{self, LiveReport};
use crate::bench::result::RunResult;
use crate::bench::run::{self, say};
use crate::bench::scenarios::lists::{LIST, LIST_PAGES};
use crate::bench::scenarios::writes::TREE_WRITES;
use crate::db::cancel::Stop;
use crate::db::connect;
use crate::db::progress::Reporter;
use crate::db::target::Target;

/// What the steps measured; those that a stop kept from running are not there.
#[derive(Debug, Default)]
pub struct Steps {
    /// Reads alone.
    pub reads: Option<LiveReport>,
    /// Tree writes by so many clients.
    pub clients: Vec<(usize, RunResult)>,
    /// The gate: both beside each other.
    pub gate: Option<LiveReport>,
    /// A big move there and back during steady writes.
    pub big_move: Option<LiveReport>,
    /// Everything somebody may view, whole, and in pages.
    pub lists: Vec<RunResult>,
    /// What `authz.verify()` said after the writes.
    pub verified: Option<bool>,
    /// Seconds that took.
    pub verify_seconds: f64,
    /// Why not all of it ran.
    pub failure: Option<String>,
}

/// Runs the steps on a database with the example in it.
pub async fn measure(
    target: &Target,
    options: &Options,
    stop: &Stop,
    reporter: &Reporter,
) -> Result<Steps, BenchError> {
    let mut steps = Steps::default();
    let step = Step { target, options, stop, reporter };
    match step.all(&mut steps).await {
        Ok(()) => {}
        // With nothing measured there is no result.
        Err(error) if steps.reads.is_none() => return Err(error),
        Err(error) => steps.failure = Some(error.to_string()),
    }
    if stop.asked() {
        steps.failure = Some("stopped".to_owned());
    }
    Ok(steps)
}

struct Step<'a> {
    target: &'a Target,
    options: &'a Options,
    stop: &'a Stop,
    reporter: &'a Reporter,
}

impl Step<'_> {
    async fn all(&self, steps: &mut Steps) -> Result<(), BenchError> {
        let (reads, writes) = (self.options.reads, self.options.writes);
        let length = self.options.step.as_secs_f64();
        // Warm: what is read first comes from the disk, and plans are made.
        self.live("warming up", reads, 0.0, length / 4.0, &[]).await?;
        steps.reads = Some(self.live("reads alone", reads, 0.0, length, &[]).await?);
        for clients in &self.options.clients {
            if self.stop.asked() {
                return Ok(());
            }
            say(self.reporter, format!("tree writes by {clients}")).await;
            let plan = run::Plan {
                concurrency: *clients,
                warm_up: Duration::from_millis(500),
                measure: self.options.step / 2,
                seed: self.options.seed,
                ..run::Plan::new(&TREE_WRITES, self.target.clone())
            };
            steps.clients.push((*clients, run::run(&plan, self.stop, self.reporter).await?));
        }
        if self.stop.asked() {
            return Ok(());
        }
        steps.gate = Some(self.live("the gate", reads, writes, length, &[]).await?);
        let moves = [length / 6.0, length / 2.0];
        if self.stop.asked() {
            return Ok(());
        }
        steps.big_move = Some(self.live("a big move", 0.0, writes, length * 2.0 / 3.0, &moves).await?);
        if self.options.lists {
            for scenario in [&LIST, &LIST_PAGES] {
                if self.stop.asked() {
                    return Ok(());
                }
                say(self.reporter, scenario.measures.to_owned()).await;
                let plan = run::Plan {
                    concurrency: 1,
                    warm_up: Duration::from_millis(500),
                    measure: self.options.step / 2,
                    seed: self.options.seed,
                    cut_off: Duration::from_secs(60),
                    ..run::Plan::new(scenario, self.target.clone())
                };
                steps.lists.push(run::run(&plan, self.stop, self.reporter).await?);
            }
        }
        if self.stop.asked() {
            return Ok(());
        }
        say(self.reporter, "authz.verify()".to_owned()).await;
        let began = Instant::now();
        let owner = connect::client(self.target).await?;
        let doing = || BenchError::database("authz.verify()");
        steps.verified =
            owner.query_one("SELECT authz.verify()", &[]).await.and_then(|row| row.try_get(0)).map_err(doing())?;
        steps.verify_seconds = began.elapsed().as_secs_f64();
        Ok(())
    }

    async fn live(
        &self,
        words: &str,
        reads: f64,
        writes: f64,
        seconds: f64,
        moves: &[f64],
    ) -> Result<LiveReport, BenchError> {
        say(self.reporter, format!("{words}: {reads:.0} reads/s, {writes:.0} tree writes/s, {seconds:.0} s")).await;
        let options =
            live::Options { reads, writes, seed: self.options.seed, ..live::Options::new(self.target.clone()) };
        let plan = Plan { seconds, big_moves: moves.to_vec() };
        let interrupted = async {
            self.stop.wait().await;
            "stopped".to_owned()
        };
        headless::run_headless(options, &plan, interrupted, |_| {}).await
    }
}
