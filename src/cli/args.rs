//! The arguments.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::bench::BenchCommand;

/// Authorization inside PostgreSQL: compile a policy into row-level security, apply it, verify it, ask it.
#[derive(Debug, Parser)]
#[command(name = "rowdeck", version, disable_help_subcommand = true)]
#[command(
    after_help = "Exit codes: 0 fine; 1 a finding (a mistake, a failing test, a wrong index, an answer of \"no\") \
                        or work that did not complete; 2 wrong usage."
)]
pub struct Cli {
    /// Options of all commands.
    #[command(flatten)]
    pub global: Global,
    /// The console as lines of text, for screen readers and logs
    #[arg(long)]
    pub plain: bool,
    /// The policy the console opens; rowdeck.toml's when left out
    pub policy: Option<PathBuf>,
    /// What to do; the console when left out.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Options of all commands.
#[derive(Debug, Clone, Default, Args)]
pub struct Global {
    /// The database: postgresql://user@host/database, or host=... dbname=...
    #[arg(long, global = true, value_name = "URL")]
    pub db: Option<String>,
    /// A target of rowdeck.toml, or `demo` for the demo's server
    #[arg(long, global = true, value_name = "NAME", conflicts_with = "db")]
    pub target: Option<String>,
    /// Print JSON on stdout and draw nothing
    #[arg(long, global = true)]
    pub json: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// A PostgreSQL server with the docs example in it, and the console on it
    Demo(DemoOptions),
    /// All the others, which never open the console.
    #[command(flatten)]
    Act(Act),
}

/// Commands that never open the console.
#[derive(Debug, Subcommand)]
pub enum Act {
    /// Find the mistakes of a policy; needs no database
    Check {
        /// The policy; rowdeck.toml's when left out
        policy: Option<PathBuf>,
    },
    /// Say what is likely wrong in a policy and what its reads cost; with a database also what is in its way there
    Lint {
        /// The policy; rowdeck.toml's when left out
        policy: Option<PathBuf>,
    },
    /// Explain a code such as AZ304, with a policy that makes it and the same one mended
    Help {
        /// The code; all of them when left out
        code: Option<String>,
    },
    /// Set a policy's text the one way; only space changes. One with mistakes is left alone
    Fmt {
        /// The policy and other files of it; rowdeck.toml's policy when left out
        policies: Vec<PathBuf>,
        /// Change nothing; exit code 1 when a file is not set so
        #[arg(long)]
        check: bool,
    },
    /// Draft a first policy from the tables and foreign keys of the database
    Init(InitOptions),
    /// Answer an editor: a language server on stdin and stdout
    Lsp,
    /// Print the SQL a policy becomes, in the order it is run; needs no database
    Sql {
        /// The policy; rowdeck.toml's when left out
        policy: Option<PathBuf>,
    },
    /// Say what applying a policy would change, lock and build; changes nothing
    Plan {
        /// The policy; rowdeck.toml's when left out
        policy: Option<PathBuf>,
    },
    /// Put a policy in force, all of it or nothing
    Apply {
        /// The policy; rowdeck.toml's when left out
        policy: Option<PathBuf>,
        /// Do not ask
        #[arg(long)]
        yes: bool,
        /// Apply only if this is still the plan: the digest that `rowdeck plan` shows, or its first 8 digits or more
        #[arg(long, value_name = "DIGEST")]
        plan: Option<String>,
    },
    /// Put the policy in force again, from the text the database keeps
    Reapply {
        /// Build the inheritance indexes again as well
        #[arg(long)]
        force: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Compare what the database enforces with what the last apply left; exit code 1 when something differs
    Drift {
        /// Also say whether this policy is the one in force
        policy: Option<PathBuf>,
    },
    /// Take the policy and everything of rowdeck's out of the database; governed tables stay closed
    Remove {
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Try each invariant of a policy in many small made-up worlds; needs no database. Exit code 1 when one does not hold
    Prove {
        /// The policy; rowdeck.toml's when left out
        policy: Option<PathBuf>,
        /// Worlds to try for each
        #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
        worlds: u64,
        /// Where chance starts from
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
    },
    /// Who would gain and lose what if a policy took the place of the one in force, on the database's rows. Exit code 1
    /// when anybody would
    Diff {
        /// The new policy; rowdeck.toml's when left out
        policy: Option<PathBuf>,
        /// Compare with this policy instead of the one in force
        #[arg(long, value_name = "POLICY")]
        old: Option<PathBuf>,
    },
    /// Check the stored inheritance index, in batches that block nobody
    Verify(VerifyOptions),
    /// Run the policy's tests on the database
    Test {
        /// The policy; rowdeck.toml's when left out
        policy: Option<PathBuf>,
        /// Files of more tests, besides those that rowdeck.toml names
        tests: Vec<PathBuf>,
        /// Say which branches of permissions and rules no passing check made true
        #[arg(long)]
        coverage: bool,
    },
    /// May somebody do something? Exit code 0 for yes, 1 for no
    Can {
        /// The object's type
        #[arg(value_name = "TYPE")]
        ty: String,
        /// The object's id
        id: String,
        /// The permission
        permission: String,
        /// Who asks
        #[command(flatten)]
        who: As,
    },
    /// Who holds a permission on an object
    Who {
        /// The object's type
        #[arg(value_name = "TYPE")]
        ty: String,
        /// The object's id
        id: String,
        /// The permission
        permission: String,
        /// Print at most so many
        #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        limit: u32,
    },
    /// Why somebody holds a permission on an object, or what is missing. Exit code as for `can`
    Why {
        /// The object's type
        #[arg(value_name = "TYPE")]
        ty: String,
        /// The object's id
        id: String,
        /// The permission
        permission: String,
        /// Who asks
        #[command(flatten)]
        who: As,
    },
    /// The permissions somebody holds on an object
    Perms {
        /// The object's type
        #[arg(value_name = "TYPE")]
        ty: String,
        /// The object's id
        id: String,
        /// Who asks
        #[command(flatten)]
        who: As,
    },
    /// The objects somebody holds a permission on, in key order
    List {
        /// The objects' type
        #[arg(value_name = "TYPE")]
        ty: String,
        /// The permission
        permission: String,
        /// Who asks
        #[command(flatten)]
        who: As,
        /// Go on after this id
        #[arg(long, value_name = "ID")]
        after: Option<String>,
        /// Print at most so many
        #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
        limit: u32,
    },
    /// The rows of a type somebody sees, as row-level security gives them
    Sees {
        /// The rows' type
        #[arg(value_name = "TYPE")]
        ty: String,
        /// Who looks
        #[command(flatten)]
        who: As,
        /// Go on after this id
        #[arg(long, value_name = "ID")]
        after: Option<String>,
        /// Print at most so many
        #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
        limit: u32,
    },
    /// Run one statement as somebody and roll it back; says why when it touches no row. Exit code 1 when it does not
    SqlAs {
        /// The statement; `-` reads it from stdin
        statement: String,
        /// Whom to be
        #[command(flatten)]
        who: As,
        /// In a read-only transaction
        #[arg(long)]
        read_only: bool,
        /// Print at most so many rows
        #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        limit: u32,
    },
    /// What an operator on call asks first: the policy in force, the index, who waits, what is not as it should be
    Overview,
    /// The sessions of the database, and who waits for whom
    Activity,
    /// Look at the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page (roff)
    Man,
    /// Measure
    #[command(subcommand)]
    Bench(BenchCommand),
}

/// What to do with the configuration.
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum ConfigCommand {
    /// Read rowdeck.toml and the user's settings, and name everything that is wrong in them
    Check,
}

/// Who asks.
#[derive(Debug, Clone, Args)]
pub struct As {
    /// Who asks: user:42, or nobody
    #[arg(long = "as", value_name = "TYPE:ID")]
    pub principal: String,
}

/// Options of `rowdeck init`.
#[derive(Debug, Clone, Args)]
pub struct InitOptions {
    /// Write the draft to this new file instead of printing it
    pub policy: Option<PathBuf>,
    /// The schemas to draft from; all but the server's own and ours when left out
    #[arg(long, value_name = "SCHEMA")]
    pub schema: Vec<String>,
    /// The table of those who sign in, schema.table; guessed by name when left out
    #[arg(long, value_name = "TABLE")]
    pub users: Option<String>,
    /// The role the app connects as
    #[arg(long, value_name = "ROLE")]
    pub app_role: Option<String>,
}

/// Options of `rowdeck verify`.
#[derive(Debug, Clone, Args)]
pub struct VerifyOptions {
    /// Objects in a batch
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub batch: u32,
    /// Go on from this cursor
    #[arg(long, value_name = "CURSOR")]
    pub from: Option<String>,
    /// Mend what is wrong
    #[arg(long)]
    pub repair: bool,
}

/// Options of `rowdeck demo`.
#[derive(Debug, Clone, Args)]
pub struct DemoOptions {
    /// How much data: tens of rows, 420,000, or 1,050,000
    #[arg(long, value_enum, default_value_t = DemoSize::Dev)]
    pub size: DemoSize,
    /// Keep the data in this folder
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
    /// Leave the server running at the end
    #[arg(long)]
    pub keep: bool,
    /// Without the console: apply, verify, run the tests, print what was done
    #[arg(long)]
    pub headless: bool,
}

/// How much data the demo has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DemoSize {
    /// Tens of rows
    Tiny,
    /// 20,000 folders and 400,000 files
    Dev,
    /// 50,000 folders and a million files
    Large,
}
