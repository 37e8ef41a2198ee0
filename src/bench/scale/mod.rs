//! The scale benchmark: a server of its own, the docs example at the size asked for, five measuring steps, a gate.

pub mod regress;
mod report;
mod steps;

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio_postgres::Client;

pub use report::{ScaleReport, gate_targets};
pub use steps::{Steps, measure};

use super::environment::{Environment, program_sha256};
use super::error::BenchError;
use super::generate::{Dataset, Shape};
use super::load::{load_dataset, load_dataset_shares};
use super::run::say;
use super::{EXAMPLE_POLICY, EXAMPLE_POLICY_NAME, EXAMPLE_SCHEMA};
use crate::compiler::{self, emit};
use crate::db::apply::{self, ApplyOptions};
use crate::db::cancel::Stop;
use crate::db::connect::{self, Session};
use crate::db::demo;
use crate::db::embedded::Server;
use crate::db::error::DbError;
use crate::db::plan::Policy;
use crate::db::progress::Reporter;
use crate::db::target::Target;

/// How much data. A user and a team hold 25 folders at every size, so a read costs the same but for the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaleSize {
    /// 20 thousand folders, 400 thousand files.
    Dev,
    /// 50 thousand folders, a million files.
    Large,
    /// 250 thousand folders, 5 million files.
    Medium,
    /// A million folders, 20 million files.
    Full,
    /// So many folders, 20 files each: to try things out.
    Folders(usize),
}

impl ScaleSize {
    /// Folders.
    pub fn folders(self) -> usize {
        match self {
            ScaleSize::Dev => 20_000,
            ScaleSize::Large => 50_000,
            ScaleSize::Medium => 250_000,
            ScaleSize::Full => 1_000_000,
            ScaleSize::Folders(folders) => folders,
        }
    }

    /// Its name.
    pub fn word(self) -> String {
        match self {
            ScaleSize::Dev => "dev".to_owned(),
            ScaleSize::Large => "large".to_owned(),
            ScaleSize::Medium => "medium".to_owned(),
            ScaleSize::Full => "full".to_owned(),
            ScaleSize::Folders(folders) => format!("{folders} folders"),
        }
    }

    /// The memory the server is given to keep pages in, in megabytes.
    fn shared_buffers(self) -> u64 {
        match self {
            ScaleSize::Full => 8192,
            ScaleSize::Folders(folders) if folders < 15_000 => 256,
            _ => 4096,
        }
    }

    fn shape(self) -> Shape {
        match self {
            // A small tree has room for fewer levels and organisations.
            ScaleSize::Folders(folders) if folders < 5_000 => {
                Shape { folders, levels: 9, files_per_folder: 5, held: 12, orgs: 4 }
            }
            size => Shape::of_folders(size.folders()),
        }
    }
}

impl FromStr for ScaleSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "dev" => Ok(ScaleSize::Dev),
            "large" => Ok(ScaleSize::Large),
            "medium" => Ok(ScaleSize::Medium),
            "full" => Ok(ScaleSize::Full),
            number => match number.parse() {
                Ok(folders) if (300..=2_000_000).contains(&folders) => Ok(ScaleSize::Folders(folders)),
                _ => {
                    Err(format!("\"{number}\" is no size; there are dev, large, medium, full, or a number of folders"))
                }
            },
        }
    }
}

/// How to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// How much data.
    pub size: ScaleSize,
    /// What the data and the random choices follow from.
    pub seed: u64,
    /// Reads a second, 400 for the gate as it is meant.
    pub reads: f64,
    /// Tree writes a second beside them.
    pub writes: f64,
    /// How long each step lasts.
    pub step: Duration,
    /// Connections of the step of tree writes.
    pub clients: Vec<usize>,
    /// Whether to list everything, whole and in pages.
    pub lists: bool,
    /// Where the server's data are, when they are kept or are there already; else a temporary folder.
    pub folder: Option<PathBuf>,
    /// Measure on what is there.
    pub again: bool,
    /// Leave the server running.
    pub keep: bool,
}

impl Options {
    /// The gate: 400 reads and 20 tree writes a second, half a minute a step.
    pub fn new(size: ScaleSize) -> Options {
        Options {
            size,
            seed: 1,
            reads: 400.0,
            writes: 20.0,
            step: Duration::from_secs(30),
            clients: vec![1, 10, 50],
            lists: true,
            folder: None,
            again: false,
            keep: false,
        }
    }
}

/// What making the database took; kept in the folder for `--again`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Made {
    /// The size.
    pub size: String,
    /// The seed.
    pub seed: u64,
    /// Files.
    pub files: u64,
    /// Seconds to load the rows.
    pub load_seconds: f64,
    /// Seconds to apply the policy with the backfill.
    pub apply_seconds: f64,
    /// Shares made.
    pub shares: u64,
}

/// Makes a server, or takes up a kept one, measures, and removes it again unless it is to be kept.
pub async fn run(options: &Options, stop: &Stop, reporter: &Reporter) -> Result<ScaleReport, BenchError> {
    let (folder, _temporary) = match &options.folder {
        Some(folder) => (folder.clone(), None),
        None => {
            let folder = std::env::temp_dir().join(format!("rowdeck-scale-{}", std::process::id()));
            (folder.clone(), Some(Temporary(folder)))
        }
    };
    let note = folder.join("scale.json");
    if options.again && !note.is_file() {
        let why = format!("{} holds no kept scale database; make one with --keep first", folder.display());
        return Err(BenchError::Db(DbError::Usage(why)));
    }
    if !options.again && options.folder.is_some() && note.is_file() {
        let why = format!("{} holds a kept scale database already; measure on it with --again", folder.display());
        return Err(BenchError::Db(DbError::Usage(why)));
    }
    let (buffers, words) = shared_buffers(options.size);
    let settings = [format!("shared_buffers={buffers}MB"), "jit=off".to_owned(), "max_connections=120".to_owned()];
    let mut server = Server::start_with(&folder, &settings, reporter).await?;
    server.keep = options.keep || options.again;
    let ended = on_server(&server, options, &note, stop, reporter).await;
    if ended.is_err() && !options.again {
        server.keep = false;
    }
    server.stop().await?;
    let mut report = ended?;
    report.notes.extend(words);
    if server.keep {
        report.notes.push(format!("kept: {}", server.url(demo::OWNER, demo::DATABASE)));
    }
    Ok(report)
}

/// A quarter of the memory at most.
fn shared_buffers(size: ScaleSize) -> (u64, Option<String>) {
    let wanted = size.shared_buffers();
    let quarter = Environment::memory().map_or(wanted, |bytes| bytes / 4 / (1 << 20));
    if quarter >= wanted {
        return (wanted, None);
    }
    let words = format!("shared_buffers is {quarter} MB, a quarter of this machine's memory, instead of {wanted} MB");
    (quarter, Some(words))
}

/// The server's folder, removed whatever happens.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!("{} is left: {error}", self.0.display());
        }
    }
}

async fn on_server(
    server: &Server,
    options: &Options,
    note: &Path,
    stop: &Stop,
    reporter: &Reporter,
) -> Result<ScaleReport, BenchError> {
    let began = Instant::now();
    let target = server.target(demo::OWNER, demo::DATABASE);
    let made = if options.again {
        read_note(note)?
    } else {
        let making = make(server, &target, options, reporter);
        let made = tokio::select! {
            made = making => made?,
            () = stop.wait() => {
                let why = "stopped before measuring began; there is no result";
                return Err(BenchError::Unsuitable(why.to_owned()));
            }
        };
        write_note(note, &made)?;
        made
    };
    let owner = connect::client(&target).await?;
    let mut environment = Environment::read(&owner).await?;
    environment.program_sha256 = tokio::task::spawn_blocking(program_sha256).await.ok().flatten();
    let started = super::guard::utc_now(&owner).await?;
    let steps = measure(&target, options, stop, reporter).await?;
    let bytes = database_bytes(&owner).await?;
    let seconds = began.elapsed().as_secs_f64();
    Ok(ScaleReport { made, environment, started, steps, bytes, seconds, reads: options.reads, notes: Vec::new() })
}

async fn make(server: &Server, target: &Target, options: &Options, reporter: &Reporter) -> Result<Made, BenchError> {
    demo::prepare(server, &format!("scale {}", options.size.word())).await?;
    let data = Dataset::grown(options.size.shape(), options.seed);
    let session = Session::open(target).await?;
    session.client.batch_execute(EXAMPLE_SCHEMA).await.map_err(BenchError::database("making the tables"))?;
    let loaded = load_dataset(&session.client, &data, reporter).await?;
    say(reporter, "applying the policy, with the backfill".to_owned()).await;
    let apply_seconds = apply_policy(&session, reporter).await?;
    let shared = load_dataset_shares(&session.client, &data, reporter).await?;
    demo::mark_development(&session.client).await?;
    session.client.batch_execute("VACUUM ANALYZE").await.map_err(BenchError::database("VACUUM ANALYZE"))?;
    let admin = connect::client(&server.target("postgres", demo::DATABASE)).await?;
    admin.batch_execute("CHECKPOINT").await.map_err(BenchError::database("CHECKPOINT"))?;
    Ok(Made {
        size: options.size.word(),
        seed: options.seed,
        files: data.file_count() as u64,
        load_seconds: loaded.seconds,
        apply_seconds,
        shares: shared.shares,
    })
}

/// Puts the example's policy in force. Says how many seconds it took.
pub(crate) async fn apply_policy(session: &Session, reporter: &Reporter) -> Result<f64, BenchError> {
    let compiled = compiler::compile(EXAMPLE_POLICY_NAME, EXAMPLE_POLICY);
    let model = compiled.model.as_ref().ok_or_else(|| DbError::Policy(compiled.diagnostics.clone()))?;
    let emitted = emit::emit(model).map_err(DbError::Policy)?;
    let policy = Policy { name: EXAMPLE_POLICY_NAME, sources: &compiled.sources, model, emitted: &emitted };
    Ok(apply::apply(session, &policy, &ApplyOptions::default(), reporter, &Stop::never()).await?.seconds)
}

async fn database_bytes(owner: &Client) -> Result<i64, BenchError> {
    let doing = || BenchError::database("measuring the database");
    let row = owner.query_one("SELECT pg_database_size(current_database())", &[]).await.map_err(doing())?;
    row.try_get(0).map_err(doing())
}

fn read_note(path: &Path) -> Result<Made, BenchError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| DbError::io(format!("cannot read {}", path.display()), error))?;
    Ok(serde_json::from_str(&text).map_err(|error| DbError::Unreadable(format!("{}: {error}", path.display())))?)
}

fn write_note(path: &Path, made: &Made) -> Result<(), BenchError> {
    let json = serde_json::to_string(made).map_err(|error| DbError::Unexpected(error.to_string()))?;
    std::fs::write(path, json).map_err(|error| DbError::io(format!("cannot write {}", path.display()), error))?;
    Ok(())
}
