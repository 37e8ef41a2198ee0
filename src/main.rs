//! The `rowdeck` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    rowdeck::cli::main()
}
