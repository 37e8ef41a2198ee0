//! What a measurement ran on.

use std::collections::BTreeMap;
use std::io::Read;

use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio_postgres::Client;

use super::error::BenchError;

/// The machine, the server and this build.
#[derive(Debug, Clone, Serialize)]
pub struct Environment {
    /// CPUs this program may use. The server often shares them.
    pub cpus: usize,
    /// What they call themselves, where the system says.
    pub cpu_model: Option<String>,
    /// Bytes of memory, where the system says.
    pub memory_bytes: Option<u64>,
    /// How many processes wanted a CPU over the last minute, where the system says. Well above what the run itself
    /// needs, it means that others took part.
    pub load_average: Option<f64>,
    /// Operating system and architecture of this program.
    pub platform: String,
    /// Whether this program was built with optimizations.
    pub optimized: bool,
    /// SHA-256 of this program's file, where it was asked for.
    pub program_sha256: Option<String>,
    /// The server's version in its own words.
    pub server: String,
    /// Its settings that matter most.
    pub settings: BTreeMap<String, String>,
}

const SETTINGS: &[&str] = &[
    "shared_buffers",
    "work_mem",
    "maintenance_work_mem",
    "effective_cache_size",
    "jit",
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "wal_level",
    "max_wal_size",
    "checkpoint_timeout",
    "autovacuum",
    "max_connections",
    "max_parallel_workers_per_gather",
    "random_page_cost",
];

impl Environment {
    /// Nothing asked yet.
    pub(super) fn unknown() -> Environment {
        Environment {
            cpus: 0,
            cpu_model: None,
            memory_bytes: None,
            load_average: None,
            platform: String::new(),
            optimized: !cfg!(debug_assertions),
            program_sha256: None,
            server: String::new(),
            settings: BTreeMap::new(),
        }
    }

    /// This machine's memory in bytes, where the system says.
    pub fn memory() -> Option<u64> {
        let kibibytes: u64 = after_colon("/proc/meminfo", "MemTotal")?.split_whitespace().next()?.parse().ok()?;
        Some(kibibytes * 1024)
    }

    /// Reads it on any connection.
    pub async fn read(client: &Client) -> Result<Environment, BenchError> {
        let doing = || BenchError::database("reading the server's settings");
        let mut settings = BTreeMap::new();
        for name in SETTINGS {
            let row = client.query_one("SELECT current_setting($1)", &[name]).await.map_err(doing())?;
            settings.insert((*name).to_owned(), row.try_get(0).map_err(doing())?);
        }
        let row = client.query_one("SELECT version()", &[]).await.map_err(doing())?;
        Ok(Environment {
            cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            cpu_model: after_colon("/proc/cpuinfo", "model name"),
            memory_bytes: Environment::memory(),
            load_average: load_average(),
            platform: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            optimized: !cfg!(debug_assertions),
            program_sha256: None,
            server: row.try_get(0).map_err(doing())?,
            settings,
        })
    }
}

fn load_average() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

fn after_colon(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim().to_owned())
}

/// SHA-256 of this program's file, so that a result names the very build it came from.
pub fn program_sha256() -> Option<String> {
    let mut file = std::fs::File::open(std::env::current_exe().ok()?).ok()?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            n => hash.update(buffer.get(..n)?),
        }
    }
}
