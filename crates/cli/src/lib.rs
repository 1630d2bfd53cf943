//! The program as a library: parses the command line, runs one verb, and turns errors into messages
//! and exit codes. A library only so that tests can reach the plans; other programs should use the
//! crates below it.
#![forbid(unsafe_code)]

pub mod commands;
mod consent;
mod data_sheet;
mod deferred;
mod failure;
mod flag_hints;
mod flags;
mod health;
mod interrupt;
pub mod job_file;
mod live;
mod output_files;
pub mod plan_file;
mod provenance;
mod resume;
mod saved;
mod session;
mod stderr;
mod stdout;
mod workload;

use clap::Parser as _;
use std::process::ExitCode;

/// Runs the program.
pub fn main() -> ExitCode {
    match commands::Args::try_parse() {
        Err(error) => flag_hints::report(error),
        Ok(args) => match args.verb.run() {
            Ok(exit) => exit.into(),
            Err(error) => failure::report(&error),
        },
    }
}
