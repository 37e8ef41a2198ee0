//! Runs one scenario that the engine drives: refuse, prepare, warm up, measure, judge, take back.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::cleanup::{delete_leftovers, take_back};
use super::cpu::{Clocks, Cpu};
use super::engine::{Engine, Pace, Tally, Window};
use super::environment::{Environment, program_sha256};
use super::error::BenchError;
use super::facts::Facts;
use super::guard;
use super::result::{FORMAT_VERSION, Percentiles, RunResult, TopStatement, WarmUp};
use super::scenario::{How, Scenario, Setting, Verdict, Workload};
use super::statements::Statements;
use super::world::World;
use crate::db::cancel::Stop;
use crate::db::error::DbError;
use crate::db::progress::{Progress, Reporter};
use crate::db::target::Target;

/// What to run, and how.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Which.
    pub scenario: &'static Scenario,
    /// The owner's target.
    pub target: Target,
    /// Connections.
    pub concurrency: usize,
    /// Operations a second; without, a closed loop.
    pub rate: Option<f64>,
    /// How long to warm up at least.
    pub warm_up: Duration,
    /// How long to measure.
    pub measure: Duration,
    /// What random choices follow from.
    pub seed: u64,
    /// Only what a seed made: its prefix, and what it was asked for.
    pub only: Option<(String, serde_json::Value)>,
    /// A statement that runs longer is cut off.
    pub cut_off: Duration,
    /// Separate client processes, where the scenario uses them.
    pub processes: usize,
    /// This program, and the arguments that name the target.
    pub program: (PathBuf, Vec<OsString>),
    /// Whether the result names this program's file by its hash.
    pub hash_program: bool,
    /// How long connections may be gone before the run is given up.
    pub patience: Duration,
    /// Measure on after the time is over, at most so much longer, until this is true of what was counted: for runs whose
    /// point is what happens, not how fast.
    pub until: Option<(Duration, Enough)>,
}

impl Plan {
    /// The defaults: the scenario's own load, 5 s of warm-up, 60 s, seed 1.
    pub fn new(scenario: &'static Scenario, target: Target) -> Plan {
        Plan {
            scenario,
            target,
            concurrency: scenario.load.concurrency.into(),
            rate: None,
            warm_up: Duration::from_secs(5),
            measure: Duration::from_secs(60),
            seed: 1,
            only: None,
            cut_off: Duration::from_secs(scenario.load.cut_off_s.into()),
            processes: 3,
            program: (PathBuf::new(), Vec::new()),
            hash_program: false,
            patience: Duration::from_secs(10),
            until: None,
        }
    }
}

/// Whether what was counted is enough.
pub type Enough = fn(&Scenario, &Tally) -> bool;

/// Runs it. An error means that nothing was measured; what was measured before something went wrong is a result that is
/// not complete.
pub async fn run(plan: &Plan, stop: &Stop, reporter: &Reporter) -> Result<RunResult, BenchError> {
    let mut prepared = Prepared::new(plan, stop, reporter).await?;
    let window = prepared.window(plan, plan.measure, true, stop, reporter).await;
    let mut result = prepared.result(plan, &window).await;
    let ended = prepared.finish(plan).await;
    result.conclude(plan.scenario, &window, ended);
    Ok(result)
}

/// A scenario that is warm and ready to be measured.
pub(super) struct Prepared {
    setting: Setting,
    workload: Arc<dyn Workload>,
    engine: Engine,
    base: RunResult,
    clocks: Clocks,
    statements: Option<Statements>,
}

/// What came out when it ended: what is broken, and what could not be taken back.
pub(super) struct Ended {
    pub broken: Vec<String>,
    pub failure: Option<String>,
}

impl Prepared {
    pub async fn new(plan: &Plan, stop: &Stop, reporter: &Reporter) -> Result<Prepared, BenchError> {
        let How::Workload(make) = plan.scenario.how else {
            let why = format!("{} has a course of its own and is not driven this way", plan.scenario.name);
            return Err(BenchError::Db(DbError::Usage(why)));
        };
        let owner = guard::open(&plan.target).await?;
        delete_leftovers(&owner).await?;
        say(reporter, format!("{}: preparing", plan.scenario.name)).await;
        let hash = plan.hash_program.then(|| tokio::task::spawn_blocking(program_sha256));
        let prefix = plan.only.as_ref().map_or("", |(prefix, _)| prefix.as_str());
        let world = Arc::new(World::read_seed(&owner, &guard::token(), prefix).await?);
        let facts = Arc::new(Facts::read(&owner, prefix).await?);
        let setting = Setting {
            target: plan.target.clone(),
            owner,
            world,
            facts,
            seed: plan.seed,
            concurrency: plan.concurrency.max(1),
            processes: plan.processes,
            program: plan.program.clone(),
        };
        let mut base = base(plan, &setting).await?;
        if let Some(hash) = hash {
            base.environment.program_sha256 = hash.await.ok().flatten();
        }
        let started = async {
            let workload: Arc<dyn Workload> = make(&setting).await?.into();
            let pace = Pace {
                concurrency: setting.concurrency,
                rate: plan.rate,
                warm_up: plan.warm_up,
                cut_off: plan.cut_off,
                patience: plan.patience,
            };
            say(reporter, format!("{}: warming up", plan.scenario.name)).await;
            let mut engine = Engine::start(Arc::clone(&workload), &setting, &pace).await?;
            if let Err(why) = engine.warm_up(stop).await {
                engine.end().await;
                workload.finish(&setting).await?;
                return Err(BenchError::Unsuitable(format!("{why} before measuring began; there is no result")));
            }
            Ok((workload, engine))
        };
        let (workload, engine) = match started.await {
            Ok(both) => both,
            Err(error) => {
                take_back(&setting.owner, &setting.target, &setting.world).await?;
                return Err(error);
            }
        };
        base.warm_up = WarmUp { seconds: engine.warmed_up, settled: engine.settled };
        base.started_at = guard::utc_now(&setting.owner).await?;
        let clocks = Clocks::start(&setting.owner, &setting.target).await;
        let statements = Statements::start(&setting.owner).await;
        Ok(Prepared { setting, workload, engine, base, clocks, statements })
    }

    pub async fn window(
        &mut self,
        plan: &Plan,
        length: Duration,
        last: bool,
        stop: &Stop,
        reporter: &Reporter,
    ) -> Window {
        let mut before = 0;
        let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel::<String>();
        let tell = |elapsed: f64, tally: &Tally| {
            let operations = tally.operations();
            let p95 = tally.latency.percentile(95.0).map_or_else(|| "–".to_owned(), |value| format!("{value:.1}"));
            let line = format!("{elapsed:>6.0} s {:>8}/s   p95 {p95} ms", operations.saturating_sub(before));
            before = operations;
            // Nobody listens any more once the window is over.
            let _ = sender.send(line);
        };
        let until = plan.until.map(|(longer, enough)| (longer, move |tally: &Tally| enough(plan.scenario, tally)));
        let measuring = self.engine.window(length, last, until, stop, tell);
        tokio::pin!(measuring);
        loop {
            tokio::select! {
                window = &mut measuring => return window,
                Some(line) = lines.recv() => say(reporter, line).await,
            }
        }
    }

    /// Connects the owner again after the server went away: it takes its turn anew.
    async fn revive(&mut self) {
        if self.setting.owner.is_closed() {
            match guard::open(&self.setting.target).await {
                Ok(owner) => self.setting.owner = owner,
                Err(error) => tracing::warn!("the owner's connection: {error}"),
            }
        }
    }

    /// The result of a window, not yet judged.
    pub async fn result(&mut self, plan: &Plan, window: &Window) -> RunResult {
        self.revive().await;
        let mut result = self.base.clone();
        result.count(&window.tally, window.seconds);
        result.cpu = self.clocks.since();
        result.notes.extend(self.workload.notes());
        if plan.rate.is_none() {
            result.service_ms = Percentiles::default();
        }
        result.table_bytes = table_bytes(&self.setting).await;
        if let Some(statements) = &self.statements {
            result.top_statements = statements.top(&self.setting.owner).await;
        }
        self.clocks = Clocks::start(&self.setting.owner, &self.setting.target).await;
        result
    }

    /// Starts the clock of the next window.
    pub async fn begin(&mut self) {
        if let Ok(now) = guard::utc_now(&self.setting.owner).await {
            self.base.started_at = now;
        }
    }

    /// Checks what must hold, and takes back what was written.
    pub async fn finish(mut self, plan: &Plan) -> Ended {
        self.engine.end().await;
        self.revive().await;
        let mut ended = Ended { broken: Vec::new(), failure: None };
        match self.workload.finish(&self.setting).await {
            Ok(broken) => ended.broken = broken,
            Err(error) => ended.failure = Some(format!("what the scenario left could not be checked: {error}")),
        }
        if plan.scenario.criterion.verify && ended.failure.is_none() {
            match self.setting.owner.query_one("SELECT authz.verify()", &[]).await.and_then(|row| row.try_get(0)) {
                Ok(true) => {}
                Ok(false) => ended.broken.push("authz.verify() is false".to_owned()),
                Err(error) => ended.failure = Some(format!("authz.verify(): {}", DbError::from(error))),
            }
        }
        if let Err(error) = take_back(&self.setting.owner, &self.setting.target, &self.setting.world).await {
            ended.failure = Some(format!("not everything written was removed: {error}"));
        }
        ended
    }
}

impl RunResult {
    /// Judges it.
    pub(super) fn conclude(&mut self, scenario: &Scenario, window: &Window, ended: Ended) {
        let outcomes = window.tally.outcomes.iter();
        let outcomes = outcomes.map(|(label, one)| (label.as_str(), one.count, one.words.as_deref()));
        self.criterion = scenario.criterion.judge(outcomes, ended.broken);
        self.failure = window.failure.clone().or(ended.failure);
        self.complete = self.failure.is_none();
    }
}

async fn base(plan: &Plan, setting: &Setting) -> Result<RunResult, BenchError> {
    let (folders, files, users) = setting.world.counts();
    let spec = plan.only.as_ref().map(|(_, spec)| spec.clone());
    let latency_is = if plan.rate.is_some() { "from the intended start" } else { "service time" };
    Ok(RunResult {
        environment: Environment::read(&setting.owner).await?,
        target: setting.target.describe(),
        rate: plan.rate,
        concurrency: setting.concurrency,
        processes: 1,
        seed: plan.seed,
        data: json!({ "folders": folders, "files_chosen_from": files, "active_users": users, "seed_file": spec }),
        pace: if plan.rate.is_some() { "open" } else { "closed" }.to_owned(),
        latency_is: latency_is.to_owned(),
        ..RunResult::empty(plan.scenario.name, Environment::unknown())
    })
}

impl RunResult {
    /// Nothing measured yet.
    pub(super) fn empty(scenario: &str, environment: Environment) -> RunResult {
        RunResult {
            tool: format!("rowdeck {}", env!("CARGO_PKG_VERSION")),
            format_version: FORMAT_VERSION,
            scenario: scenario.to_owned(),
            complete: false,
            failure: None,
            criterion: Verdict { words: String::new(), met: false, broken: Vec::new() },
            target: String::new(),
            started_at: String::new(),
            duration_s: 0.0,
            warm_up: WarmUp::default(),
            pace: "closed".to_owned(),
            latency_is: "service time".to_owned(),
            rate: None,
            concurrency: 0,
            processes: 1,
            seed: 1,
            data: serde_json::Value::Null,
            operations: 0,
            outcomes: BTreeMap::new(),
            throughput_per_s: 0.0,
            latency_ms: Percentiles::default(),
            histogram: Vec::new(),
            service_ms: Percentiles::default(),
            cold_ms: Percentiles::default(),
            missed_starts: 0,
            unstarted: 0,
            unfinished: 0,
            targets: BTreeMap::new(),
            cpu: Cpu::default(),
            table_bytes: BTreeMap::new(),
            top_statements: Vec::<TopStatement>::new(),
            environment,
            notes: Vec::new(),
            details: serde_json::Value::Null,
        }
    }
}

async fn table_bytes(setting: &Setting) -> BTreeMap<String, i64> {
    let sizes = "SELECT format('%I.%I', n.nspname, c.relname), pg_total_relation_size(c.oid)
           FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE n.nspname IN ('app', 'authz_int') AND c.relkind = 'r' ORDER BY 2 DESC LIMIT 12";
    let mut bytes = BTreeMap::new();
    // A server that went away has no sizes; the result says why elsewhere.
    for row in setting.owner.query(sizes, &[]).await.unwrap_or_default() {
        if let (Ok(name), Ok(size)) = (row.try_get(0), row.try_get(1)) {
            bytes.insert(name, size);
        }
    }
    bytes
}

pub(super) async fn say(reporter: &Reporter, text: String) {
    reporter.send(Progress::Note { text }).await;
}
