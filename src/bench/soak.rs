//! A long run in windows: prepared once, warmed up once, judged window by window, with events at their times.

use std::fmt::Write;
use std::str::FromStr;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::task::JoinHandle;

use super::error::BenchError;
use super::result::{FORMAT_VERSION, RunResult};
use super::run::{Ended, Plan, Prepared, say};
use super::scenario::Verdict;
use super::{EXAMPLE_POLICY, EXAMPLE_POLICY_NAME};
use crate::compiler::{self, emit};
use crate::db::apply::{self, ApplyOptions};
use crate::db::cancel::Stop;
use crate::db::connect::{self, Session};
use crate::db::embedded::Binaries;
use crate::db::error::DbError;
use crate::db::plan::Policy;
use crate::db::progress::Reporter;
use crate::db::target::{HostPlace, Target};

/// Something that happens during a soak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// `VACUUM (ANALYZE)` of the whole database.
    Vacuum,
    /// `CHECKPOINT`, which the role must be allowed.
    Checkpoint,
    /// `pg_dump` into nothing.
    Dump,
    /// Another policy put in force, and the example's own again.
    Policy,
    /// Every other connection to the database ended by the server.
    Disconnect,
    /// One of the server's processes killed, after which it starts again with recovery. Only where the server runs on
    /// this machine and its processes are ours to kill.
    Crash,
}

impl Event {
    /// All of them.
    pub const ALL: [Event; 6] =
        [Event::Vacuum, Event::Checkpoint, Event::Dump, Event::Policy, Event::Disconnect, Event::Crash];

    /// Its name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Event::Vacuum => "vacuum",
            Event::Checkpoint => "checkpoint",
            Event::Dump => "pg_dump",
            Event::Policy => "policy",
            Event::Disconnect => "disconnect",
            Event::Crash => "crash",
        }
    }
}

impl FromStr for Event {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Event::ALL.into_iter().find(|event| event.word() == text).ok_or_else(|| {
            let all: Vec<&str> = Event::ALL.iter().map(|event| event.word()).collect();
            format!("\"{text}\" is no event; there are {}", all.join(", "))
        })
    }
}

/// What happened when.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Happened {
    /// Which.
    pub event: String,
    /// When it was to begin, in seconds since measuring began.
    pub planned_s: f64,
    /// When it began.
    pub began_s: f64,
    /// Seconds it took.
    pub took_s: f64,
    /// Why it failed.
    pub failure: Option<String>,
}

/// The envelope.
#[derive(Debug, Clone, Serialize)]
pub struct SoakResult {
    /// The program and its version.
    pub tool: String,
    /// Version of the format.
    pub format_version: u32,
    /// Always true: what tells an envelope from a result.
    pub soak: bool,
    /// Which scenario.
    pub scenario: String,
    /// True when every window was measured whole and everything written was taken back.
    pub complete: bool,
    /// Why it is not complete.
    pub failure: Option<String>,
    /// The criterion, applied to each window and to what was left at the end.
    pub criterion: Verdict,
    /// One result for each window.
    pub windows: Vec<RunResult>,
    /// What happened when.
    pub events: Vec<Happened>,
}

impl SoakResult {
    /// As a result's.
    pub fn exit_code(&self) -> u8 {
        match (self.complete, self.criterion.met) {
            (false, _) => 1,
            (true, false) => 3,
            (true, true) => 0,
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = format!("{} · {} windows\n", self.scenario, self.windows.len());
        // Writing to a string cannot fail.
        for (number, window) in self.windows.iter().enumerate() {
            let _ = writeln!(out, "{}", window_line(number + 1, window));
        }
        for event in &self.events {
            let failure = event.failure.as_ref().map_or_else(String::new, |why| format!("; failed: {why}"));
            let _ = writeln!(out, "{} at {:.0} s took {:.1} s{failure}", event.event, event.began_s, event.took_s);
        }
        let verdict = if self.criterion.met { "passes" } else { "FAILS" };
        let _ = writeln!(out, "{verdict}: {}", self.criterion.words);
        for broken in &self.criterion.broken {
            let _ = writeln!(out, "  {broken}");
        }
        if let Some(failure) = &self.failure {
            let _ = writeln!(out, "incomplete: {failure}");
        }
        out
    }
}

fn window_line(number: usize, window: &RunResult) -> String {
    let cell = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.1}"));
    let [p50, p95, p99] = [window.latency_ms.p50, window.latency_ms.p95, window.latency_ms.p99].map(cell);
    let verdict = if window.criterion.met { "passes" } else { "FAILS" };
    format!(
        "window {number:>3}  {:>7.1} s  {:>9.1}/s  p50 {p50} p95 {p95} p99 {p99} ms  {verdict}",
        window.duration_s, window.throughput_per_s
    )
}

/// The windows of a run: all of one length but the last.
pub fn windows(total: Duration, window: Duration) -> Vec<Duration> {
    let mut left = total;
    let mut windows = Vec::new();
    while !left.is_zero() {
        let next = left.min(window.max(Duration::from_millis(1)));
        windows.push(next);
        left -= next;
    }
    windows
}

/// Runs it. An error means that nothing was measured.
pub async fn run(
    plan: &Plan,
    total: Duration,
    window: Duration,
    events: &[(Event, Duration)],
    stop: &Stop,
    reporter: &Reporter,
) -> Result<SoakResult, BenchError> {
    let mut prepared = Prepared::new(plan, stop, reporter).await?;
    let began = Instant::now();
    let happening: Vec<JoinHandle<Happened>> =
        events.iter().map(|(event, at)| tokio::spawn(happen(*event, *at, began, plan.target.clone()))).collect();
    let lengths = windows(total, window);
    let mut results = Vec::new();
    let mut failure = None;
    for (number, length) in lengths.iter().enumerate() {
        let last = number + 1 == lengths.len();
        prepared.begin().await;
        let measured = prepared.window(plan, *length, last, stop, &Reporter::silent()).await;
        let mut result = prepared.result(plan, &measured).await;
        result.conclude(plan.scenario, &measured, Ended { broken: Vec::new(), failure: None });
        say(reporter, window_line(number + 1, &result)).await;
        failure.clone_from(&result.failure);
        results.push(result);
        if failure.is_some() {
            break;
        }
    }
    let mut events = Vec::new();
    for one in happening {
        // What was to come after the end does not happen any more.
        if failure.is_some() && !one.is_finished() {
            one.abort();
        }
        events.extend(one.await.ok());
    }
    let ended = prepared.finish(plan).await;
    let mut broken = ended.broken;
    for (number, one) in results.iter().enumerate() {
        broken.extend(one.criterion.broken.iter().map(|line| format!("window {}: {line}", number + 1)));
    }
    broken
        .extend(events.iter().filter_map(|one| one.failure.as_ref().map(|why| format!("{} failed: {why}", one.event))));
    let failure = failure.or(ended.failure);
    Ok(SoakResult {
        tool: format!("rowdeck {}", env!("CARGO_PKG_VERSION")),
        format_version: FORMAT_VERSION,
        soak: true,
        scenario: plan.scenario.name.to_owned(),
        complete: failure.is_none(),
        failure,
        criterion: Verdict { words: plan.scenario.criterion.words.to_owned(), met: broken.is_empty(), broken },
        windows: results,
        events,
    })
}

async fn happen(event: Event, at: Duration, began: Instant, target: Target) -> Happened {
    tokio::time::sleep_until((began + at).into()).await;
    let began_s = began.elapsed().as_secs_f64();
    let started = Instant::now();
    let failure = carry_out(event, &target).await.err().map(|error| error.to_string());
    let took_s = started.elapsed().as_secs_f64();
    Happened { event: event.word().to_owned(), planned_s: at.as_secs_f64(), began_s, took_s, failure }
}

async fn carry_out(event: Event, target: &Target) -> Result<(), BenchError> {
    let sql = match event {
        Event::Vacuum => "VACUUM (ANALYZE)",
        Event::Checkpoint => "CHECKPOINT",
        Event::Disconnect => {
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
              WHERE datname = current_database() AND application_name = 'rowdeck bench' AND pid <> pg_backend_pid()"
        }
        Event::Dump => return dump(target).await,
        Event::Policy => return switch_policy(target).await,
        Event::Crash => return crash(target).await,
    };
    let client = connect::client(target).await?;
    client.batch_execute(sql).await.map_err(BenchError::database(event.word()))
}

/// `pg_dump`, which finds the server by the libpq variables: a password never stands in its arguments.
async fn dump(target: &Target) -> Result<(), BenchError> {
    let Some(host) = target.hosts.first() else { return Ok(()) };
    let program = Binaries::find(None)
        .map(|found| found.program("pg_dump"))
        .ok()
        .filter(|path| path.is_file())
        .unwrap_or_else(|| "pg_dump".into());
    let mut command = tokio::process::Command::new(program);
    match &host.place {
        HostPlace::Unix(folder) => command.env("PGHOST", folder),
        HostPlace::Tcp(name) => command.env("PGHOST", name),
    };
    command.env("PGPORT", host.port.to_string()).env("PGUSER", &target.user).env("PGDATABASE", &target.database);
    if let Some(password) = &target.password {
        command.env("PGPASSWORD", password.reveal());
    }
    command.args(["-Fc", "--no-password", "--schema=app"]).stdout(std::process::Stdio::null()).kill_on_drop(true);
    command.stderr(std::process::Stdio::piped());
    let failed = |error| DbError::io("cannot run pg_dump", error);
    let output = command.spawn().map_err(failed)?.wait_with_output().await.map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().next().unwrap_or("it said nothing");
    Err(BenchError::Unsuitable(format!("pg_dump: {}", crate::text::line(line))))
}

/// Kills our own backend, which takes the whole server down, and waits until it is back.
async fn crash(target: &Target) -> Result<(), BenchError> {
    let client = connect::client(target).await?;
    let Some(pid) = super::cpu::local_backend(&client, target).await else {
        return Err(BenchError::Unsuitable("the server does not run on this machine".to_owned()));
    };
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL)
        .map_err(|error| DbError::io("cannot kill a process of the server", error.into()))?;
    let began = Instant::now();
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        match connect::client(target).await {
            Ok(_) => return Ok(()),
            Err(error) if began.elapsed() > Duration::from_secs(60) => return Err(error.into()),
            Err(_) => {}
        }
    }
}

/// The example's policy with one permission more.
fn another_policy() -> String {
    let view = "  can view  = edit or viewer or (folder.view and {not confidential})";
    EXAMPLE_POLICY.replacen(view, &format!("{view}\n  can preview = view"), 1)
}

/// Puts another policy in force, and the example's own again.
async fn switch_policy(target: &Target) -> Result<(), BenchError> {
    let more = another_policy();
    let session = Session::open(target).await?;
    for text in [more.as_str(), EXAMPLE_POLICY] {
        let compiled = compiler::compile(EXAMPLE_POLICY_NAME, text);
        let model = compiled.model.as_ref().ok_or_else(|| DbError::Policy(compiled.diagnostics.clone()))?;
        let emitted = emit::emit(model).map_err(DbError::Policy)?;
        let policy = Policy { name: EXAMPLE_POLICY_NAME, sources: &compiled.sources, model, emitted: &emitted };
        apply::apply(&session, &policy, &ApplyOptions::default(), &Reporter::silent(), &Stop::never()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    #[test]
    fn the_last_window_is_shortened() {
        let s = Duration::from_secs;
        assert_eq!(windows(s(90), s(60)), [s(60), s(30)]);
        assert_eq!(windows(s(120), s(60)), [s(60), s(60)]);
        assert_eq!(windows(s(10), s(60)), [s(10)]);
        assert!(windows(s(0), s(60)).is_empty());
    }

    #[test]
    fn the_other_policy_compiles_and_is_another_one() {
        let more = another_policy();
        assert_ne!(more, EXAMPLE_POLICY);
        assert!(compiler::compile(EXAMPLE_POLICY_NAME, &more).model.is_some());
    }
}
