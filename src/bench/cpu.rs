//! CPU time: this program's, and the server's where it runs on this machine.

use serde::Serialize;
use tokio_postgres::Client;

use crate::db::target::{HostPlace, Target};

/// CPU seconds. `None` where the system does not say, or where the server is elsewhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Cpu {
    /// This program and its client processes that ended.
    pub client_s: Option<f64>,
    /// All processes of the server.
    pub server_s: Option<f64>,
}

/// Clock ticks a second: Linux tells programs in hundredths whatever its own clock.
const TICKS: f64 = 100.0;

/// Reads both clocks now.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clocks {
    postmaster: Option<i32>,
    at: Cpu,
}

impl Clocks {
    /// Starts counting.
    pub async fn start(owner: &Client, target: &Target) -> Clocks {
        let mut clocks = Clocks { postmaster: postmaster(owner, target).await, at: Cpu::default() };
        clocks.at = clocks.now();
        clocks
    }

    fn now(&self) -> Cpu {
        Cpu { client_s: of_process("self").map(|one| one.seconds), server_s: self.postmaster.and_then(of_server) }
    }

    /// Seconds since the start.
    pub fn since(&self) -> Cpu {
        let now = self.now();
        let less = |now: Option<f64>, then: Option<f64>| Some((now? - then?).max(0.0));
        Cpu { client_s: less(now.client_s, self.at.client_s), server_s: less(now.server_s, self.at.server_s) }
    }
}

/// The server's first process, when it is on this machine: the parent of our own backend.
async fn postmaster(owner: &Client, target: &Target) -> Option<i32> {
    let backend = local_backend(owner, target).await?;
    of_process(&backend.to_string()).map(|process| process.parent)
}

/// The process of our own connection, when it is on this machine.
pub(crate) async fn local_backend(owner: &Client, target: &Target) -> Option<i32> {
    if !target.hosts.iter().all(|host| matches!(host.place, HostPlace::Unix(_))) {
        return None;
    }
    let backend: i32 = owner.query_one("SELECT pg_backend_pid()", &[]).await.ok()?.try_get(0).ok()?;
    of_process(&backend.to_string()).filter(|process| process.name.starts_with("postgres")).map(|_| backend)
}

struct Process {
    name: String,
    parent: i32,
    seconds: f64,
}

/// A process with its children that ended.
fn of_process(pid: &str) -> Option<Process> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything.
    let (before, after) = text.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = after.split_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
    let ticks = number(11)? + number(12)? + number(13)? + number(14)?;
    Some(Process { name, parent: fields.get(1)?.parse().ok()?, seconds: ticks / TICKS })
}

fn of_server(postmaster: i32) -> Option<f64> {
    let mut seconds = of_process(&postmaster.to_string())?.seconds;
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let pid = entry.file_name();
        let Some(pid) = pid.to_str().filter(|pid| pid.bytes().all(|byte| byte.is_ascii_digit())) else { continue };
        if let Some(process) = of_process(pid).filter(|process| process.parent == postmaster) {
            seconds += process.seconds;
        }
    }
    Some(seconds)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]
    use super::*;

    #[test]
    fn our_own_clock_goes_forward() {
        if !cfg!(target_os = "linux") {
            return;
        }
        let before = of_process("self").unwrap();
        assert!(before.parent > 0);
        let begun = std::time::Instant::now();
        let mut x = 1_u64;
        while begun.elapsed() < std::time::Duration::from_millis(60) {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        let after = of_process("self").unwrap();
        assert!(after.seconds > before.seconds, "{} {}", before.seconds, after.seconds);
    }
}
