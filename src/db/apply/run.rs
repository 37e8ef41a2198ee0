//! One try at an apply: one transaction, from its first statement to its commit.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio_postgres::Client;

use super::{APPLYING, ApplyOptions, Failure, Waits, begin_sql, clear, holders, moved, report, tables, unchanged};
use crate::compiler::emit;
use crate::compiler::ident::QualName;
use crate::compiler::objects::{GraphTables, Lock, LockMode, Object, Phase};
use crate::db::build;
use crate::db::cancel::Stop;
use crate::db::compat;
use crate::db::connect::Session;
use crate::db::drift;
use crate::db::error::DbError;
use crate::db::plan::changes::{exclusive, strongest};
use crate::db::plan::locks::touched_now;
use crate::db::plan::state::{self, Made, Record, State};
use crate::db::plan::way::{self, Way};
use crate::db::plan::{Plan, Policy, draft, names};
use crate::db::progress::{ApplyReport, Progress, Reporter};

/// Everything one try needs.
pub(super) struct Job<'a> {
    pub(super) session: &'a Session,
    pub(super) policy: &'a Policy<'a>,
    pub(super) plan: &'a Plan,
    pub(super) options: &'a ApplyOptions,
    pub(super) reporter: &'a Reporter,
    pub(super) stop: &'a Stop,
    pub(super) started: Instant,
}

impl Job<'_> {
    pub(super) fn client(&self) -> &Client {
        &self.session.client
    }

    /// The whole transaction. On a failure it is left open (or aborted), for the caller to roll back.
    pub(super) async fn run(&self, waits: &mut Waits) -> Result<ApplyReport, Failure> {
        self.begin().await?;
        let state = state::read(self.client(), self.policy.emitted).await?.again(self.options.again);
        let again = draft(self.client(), self.policy, &state).await?;
        if again.unchanged {
            self.client().batch_execute("ROLLBACK").await?;
            return Ok(unchanged(&again, self.started));
        }
        if again.digest != self.plan.digest {
            return Err(moved(&self.plan.digest, &again.digest).into());
        }
        let way = way::best(self.policy, &state);
        let mut steps = Steps { job: self, number: 0 };
        steps.next().await?;
        let drifted = drift::before(self.client()).await?;
        if way::is_in_force(self.policy, &state) {
            let left = state.in_force.as_ref().map(|v| v.record.left.clone()).unwrap_or_default();
            return self.commit(left, 0, &drifted).await;
        }
        let upgrading = self.lock_early(&way.kept).await?;
        for (name, sql) in emit::runtime() {
            self.statement(&format!("the runtime's part \"{name}\""), sql, &[]).await?;
        }
        tables::prepare(self, &state).await?;
        self.make(Phase::Tables, &way.kept).await?;
        steps.next().await?;
        self.make(Phase::Upkeep, &way.kept).await?;
        let mut rows = 0;
        for graph in self.policy.emitted.graphs.iter().filter(|graph| !state::is_built(&state, graph)) {
            steps.next().await?;
            rows += self.build(graph).await?;
        }
        let mut held = Held { waits, upgrading, built: rows };
        self.switch(&state, &way, &mut held, &mut steps).await?;
        let left = clear::shares(self, &state).await?;
        self.commit(left, rows, &drifted).await
    }

    /// From the old policy to the new one: in place where that can be, else whole.
    async fn switch(
        &self,
        state: &State,
        way: &Way,
        held: &mut Held<'_>,
        steps: &mut Steps<'_>,
    ) -> Result<(), Failure> {
        if way.in_place.is_none() {
            return self.switch_by(state, way, held, steps).await;
        }
        let before = steps.number;
        self.client().batch_execute("SAVEPOINT authz_switch").await?;
        match self.switch_by(state, way, held, steps).await {
            Ok(()) => Ok(self.client().batch_execute("RELEASE SAVEPOINT authz_switch").await?),
            // What cannot be replaced in place: a function with other results, a view with other columns, something
            // that others still depend on.
            Err(Failure::Fatal(DbError::Object { what, refusal }))
                if matches!(refusal.sqlstate.as_str(), "42P13" | "42P16" | "2BP01") =>
            {
                const BACK: &str = "ROLLBACK TO SAVEPOINT authz_switch; RELEASE SAVEPOINT authz_switch";
                self.client().batch_execute(BACK).await?;
                let text = format!("{what} cannot be made in place, so everything generated is made again");
                self.reporter.send(Progress::Note { text }).await;
                steps.number = before;
                self.switch_by(state, &way::whole(self.policy, state), held, steps).await
            }
            Err(other) => Err(other),
        }
    }

    async fn switch_by(
        &self,
        state: &State,
        way: &Way,
        held: &mut Held<'_>,
        steps: &mut Steps<'_>,
    ) -> Result<(), Failure> {
        steps.next().await?;
        self.lock_late(held, way).await?;
        match &way.in_place {
            Some(in_place) => clear::before_in_place(self, in_place).await?,
            None => clear::whole(self, state, &way.kept).await?,
        }
        steps.next().await?;
        self.make(Phase::Functions, &way.kept).await?;
        steps.next().await?;
        self.make(Phase::Rules, &way.kept).await?;
        if way.in_place.is_some() { clear::after_in_place(self).await } else { Ok(()) }
    }

    /// Writes the version and commits. What happens at the commit itself cannot be known from a lost connection.
    async fn commit(&self, left: Vec<Made>, rows: u64, drifted: &Value) -> Result<ApplyReport, Failure> {
        self.check_stop()?;
        let version = self.record(left).await?;
        self.keep_enforced(drifted).await?;
        match self.client().batch_execute("COMMIT").await.map_err(DbError::from) {
            Ok(()) => Ok(report(self.plan, version, rows, self.started)),
            Err(why) if why.is_lost() => Err(Failure::AtCommit { version, why }),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the transaction, with everything in force that would make it end at another's pleasure turned off.
    async fn begin(&self) -> Result<(), Failure> {
        let begin = begin_sql(self.options.lock_timeout, self.session.info.version_num);
        self.client().batch_execute(&begin).await?;
        let sql = "SELECT pg_try_advisory_xact_lock($1, $2)";
        let alone: bool = self.client().query_one(sql, &[&APPLYING.0, &APPLYING.1]).await?.try_get(0)?;
        if alone { Ok(()) } else { Err(holders::other_apply(self.client()).await?.into()) }
    }

    fn check_stop(&self) -> Result<(), DbError> {
        if self.stop.asked() { Err(DbError::Stopped("nothing was changed".to_owned())) } else { Ok(()) }
    }

    /// Locks the tables whose triggers will be made, in the order of their names; `true` when there are any.
    async fn lock_early(&self, kept: &BTreeSet<usize>) -> Result<bool, Failure> {
        let objects = self.policy.emitted.objects.iter().enumerate();
        let locks = objects
            .filter(|(at, o)| matches!(o.phase, Phase::Tables | Phase::Upkeep) && !kept.contains(at))
            .flat_map(|(_, object)| &object.locks)
            .cloned();
        let locks = strongest(locks);
        for Lock { table, mode } in &locks {
            let sql = format!("LOCK TABLE {table} IN {} MODE", mode.sql());
            self.statement(&format!("the lock on {}", table.plain()), &sql, std::slice::from_ref(table)).await?;
        }
        Ok(!locks.is_empty())
    }

    /// Takes the locks that block everybody: all of them or none, so that nobody waits for a table we hold while we
    /// wait for another.
    ///
    /// While we hold what blocks writers, waiting in line for more is a trap for a session that has read a table and
    /// goes on to write it: PostgreSQL ends *its* transaction as a deadlock at once. So then we do not wait in line at
    /// first, but ask again and again without waiting; only when that never succeeds (a table that is read without a
    /// pause) do we stand in line, for a short time each.
    async fn lock_late(&self, held: &mut Held<'_>, way: &Way) -> Result<(), Failure> {
        loop {
            self.check_stop()?;
            let touched = touched_now(self.client()).await?;
            let tables = exclusive(self.policy, &touched, way);
            let polite = held.upgrading && held.waits.is_early();
            let got = if polite { self.ask_for(&tables).await? } else { self.wait_for(&tables, "").await? };
            if got {
                return Ok(());
            }
            let tables: Vec<QualName> = tables.into_iter().collect();
            if holders::any_waits_for_us(self.client(), &tables).await? {
                if held.built > 0 {
                    held.waits.restart()?;
                }
                return Err(Failure::Locked { tables });
            }
            held.waits.again(self.client(), &tables, self.reporter, self.stop).await?;
        }
    }

    /// Asks for all of them many times in the time of one wait.
    async fn ask_for(&self, tables: &BTreeSet<QualName>) -> Result<bool, Failure> {
        let started = Instant::now();
        while started.elapsed() < self.options.lock_timeout {
            if self.wait_for(tables, " NOWAIT").await? {
                return Ok(true);
            }
            self.check_stop()?;
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        Ok(false)
    }

    /// Asks for all of them once, in the order of their names; `false` when somebody holds one.
    async fn wait_for(&self, tables: &BTreeSet<QualName>, how: &str) -> Result<bool, Failure> {
        if tables.is_empty() {
            return Ok(true);
        }
        let names: Vec<String> = tables.iter().map(QualName::to_string).collect();
        let mode = LockMode::AccessExclusive.sql();
        self.client().batch_execute("SAVEPOINT authz_locks").await?;
        let sql = format!("LOCK TABLE {} IN {mode} MODE{how}", names.join(", "));
        let got = match self.statement("the locks of the switch", &sql, &[]).await {
            Ok(()) => true,
            Err(Failure::Locked { .. }) => {
                self.client().batch_execute("ROLLBACK TO SAVEPOINT authz_locks").await?;
                false
            }
            Err(other) => return Err(other),
        };
        self.client().batch_execute("RELEASE SAVEPOINT authz_locks").await?;
        Ok(got)
    }

    /// Makes the objects of one phase.
    async fn make(&self, phase: Phase, kept: &BTreeSet<usize>) -> Result<(), Failure> {
        let objects = self.policy.emitted.objects.iter().enumerate();
        let all: Vec<&Object> =
            objects.filter(|(at, o)| o.phase == phase && !kept.contains(at)).map(|(_, object)| object).collect();
        let mut pace = Pace::new(all.len());
        for object in all {
            let locked: Vec<QualName> = object.locks.iter().map(|lock| lock.table.clone()).collect();
            let what = format!("{} {}", object.kind.word(), object.name);
            self.statement(&what, &tables::replacing(object), &locked).await?;
            pace.step(self.reporter).await;
        }
        pace.end(self.reporter).await;
        Ok(())
    }

    /// Runs one of our own statements. A refusal names what it was for.
    pub(super) async fn statement(&self, what: &str, sql: &str, locked: &[QualName]) -> Result<(), Failure> {
        self.check_stop()?;
        let Err(error) = self.client().batch_execute(sql).await else { return Ok(()) };
        Err(self.failure(what, error.into(), locked))
    }

    /// What a refusal means: a lock that somebody holds is waited for, everything else ends the apply.
    fn failure(&self, what: &str, error: DbError, locked: &[QualName]) -> Failure {
        match error {
            // A lock not had in time, a deadlock (we gave way), an update of a catalog row at the same moment.
            DbError::Server(r) if matches!(r.sqlstate.as_str(), "55P03" | "40P01" | "40001") => {
                let everywhere = || self.plan.steps.iter().flat_map(|step| &step.locks).map(|l| l.table.clone());
                let tables = if locked.is_empty() { everywhere().collect() } else { locked.to_vec() };
                Failure::Locked { tables }
            }
            DbError::Server(mut refusal) => {
                if refusal.sqlstate == "53200" && refusal.message.contains("shared memory") {
                    refusal.hint = Some("raise max_locks_per_transaction and restart the server".to_owned());
                }
                Failure::Fatal(DbError::Object { what: what.to_owned(), refusal })
            }
            DbError::Lost(why) => Failure::Fatal(DbError::Lost(format!("{why}, while making {what}"))),
            other => Failure::Fatal(other),
        }
    }

    async fn build(&self, graph: &GraphTables) -> Result<u64, Failure> {
        self.check_stop()?;
        let what = format!("the index of {}", graph.title);
        let built = build::build(self.client(), graph, self.options.cluster_size, self.reporter)
            .await
            .map_err(|error| self.failure(&what, error, std::slice::from_ref(&graph.table)))?;
        self.refuse_rings(graph, &what).await?;
        self.client()
            .execute(
                "INSERT INTO authz_int.graphs (name, title, built_at) VALUES ($1, $2, clock_timestamp())
                 ON CONFLICT (name) DO UPDATE SET title = excluded.title, built_at = excluded.built_at",
                &[&graph.name, &graph.title],
            )
            .await?;
        Ok(built.nodes + built.clusters)
    }

    /// Rings through link tables are fine; an object that is inside itself through columns alone is refused (AZ713), as
    /// it would be when written. Whatever is in a ring is among its own ancestors, so that few objects are walked.
    async fn refuse_rings(&self, graph: &GraphTables, what: &str) -> Result<(), Failure> {
        let part = |name: &str| QualName::new("authz_int", format!("{}_{name}", graph.name));
        let sql = format!(
            "SELECT {}(array_agg(n.id)) FROM {} AS n JOIN {} AS c ON c.id = n.cluster
             WHERE n.id = ANY (n.local) OR n.id = ANY (c.above) HAVING count(*) > 0",
            part("ring"),
            part("node"),
            part("cluster")
        );
        self.statement(what, &sql, std::slice::from_ref(&graph.table)).await
    }

    /// Writes the version that is in force from the commit on.
    async fn record(&self, left: Vec<Made>) -> Result<i64, Failure> {
        let mut record = Record::of(self.policy);
        record.left = left;
        let objects = serde_json::to_value(&record)
            .map_err(|error| DbError::Unexpected(format!("the record of what was made: {error}")))?;
        let row = self
            .client()
            .query_one(
                "INSERT INTO authz.policy_versions (name, source, digest, program, objects)
                 VALUES ($1, $2, $3, $4, $5) RETURNING version",
                &[&self.policy.name, &self.policy.text(), &self.policy.emitted.digest, &compat::PROGRAM, &objects],
            )
            .await?;
        Ok(row.try_get(0)?)
    }

    /// Keeps what the database enforces from the commit on, as the server writes it, for [`drift`].
    async fn keep_enforced(&self, drifted: &Value) -> Result<(), Failure> {
        let (mut schemas, mut tables, mut policies) = (Vec::new(), Vec::new(), Vec::new());
        for object in &self.policy.emitted.objects {
            if let (Some(policy), Some(lock)) = (names::created(&object.sql, "POLICY"), object.locks.first()) {
                schemas.push(lock.table.schema.as_str());
                tables.push(lock.table.name.as_str());
                policies.push(policy);
            }
        }
        let app = self.policy.model.app_role.as_str();
        self.client().execute(drift::KEEP, &[&schemas, &tables, &policies, &app, drifted]).await?;
        Ok(())
    }

    /// What was in the database when the plan was made.
    pub(super) fn before(state: &State) -> impl Iterator<Item = &Made> {
        state.in_force.iter().flat_map(|v| v.record.all())
    }
}

/// What a try has and has used up when it comes to its last locks.
struct Held<'a> {
    waits: &'a mut Waits,
    /// True when it holds tables already, against writers.
    upgrading: bool,
    /// Rows built, which a start from the beginning would build again.
    built: u64,
}

/// Announces the plan's steps one by one.
struct Steps<'a> {
    job: &'a Job<'a>,
    number: usize,
}

impl Steps<'_> {
    async fn next(&mut self) -> Result<(), Failure> {
        self.job.check_stop()?;
        let Some(step) = self.job.plan.steps.get(self.number) else {
            return Err(DbError::Unexpected("an apply has more steps than its plan".to_owned()).into());
        };
        self.number += 1;
        let (title, locks) = (step.title.clone(), step.locks_text());
        let of = self.job.plan.steps.len();
        self.job.reporter.send(Progress::Phase { number: self.number, of, title, locks }).await;
        Ok(())
    }
}

/// Progress over many small statements, said a few times a second.
struct Pace {
    started: Instant,
    said: Instant,
    done: u64,
    of: u64,
    batch: u64,
}

impl Pace {
    fn new(of: usize) -> Pace {
        let now = Instant::now();
        Pace { started: now, said: now, done: 0, of: u64::try_from(of).unwrap_or(u64::MAX), batch: 0 }
    }

    async fn step(&mut self, reporter: &Reporter) {
        self.done += 1;
        if self.said.elapsed() >= Duration::from_millis(100) && self.done < self.of {
            self.say(reporter).await;
        }
    }

    async fn end(&mut self, reporter: &Reporter) {
        if self.of > 0 {
            self.say(reporter).await;
        }
    }

    async fn say(&mut self, reporter: &Reporter) {
        self.said = Instant::now();
        self.batch += 1;
        // Counts of objects; a float holds them exactly.
        let rate = self.done as f64 / self.started.elapsed().as_secs_f64().max(1e-6);
        let left = (self.of - self.done.min(self.of)) as f64 / rate.max(1e-6);
        let (rows, rows_of) = (self.done, Some(self.of));
        reporter.send(Progress::Batch { batch: self.batch, of: None, rows, rows_of, rate, left: Some(left) }).await;
    }
}
