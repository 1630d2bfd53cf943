//! The program as a library: parses the command line, runs one verb, and turns errors into messages
//! and exit codes. A library only so that tests can reach the plans; other programs should use the
//! crates below it.
#![forbid(unsafe_code)]

mod agreement;
pub mod commands;
mod data_sheet;
mod document_files;
mod failure;
mod fitness;
mod flag_hints;
mod flags;
mod full_screen;
mod input_files;
mod inspection;
mod interrupt;
pub mod job_file;
mod launchers;
mod load_screen;
mod observed_load;
mod output_files;
mod output_sink;
mod pieces;
pub mod plan_file;
mod plugin;
mod postgres;
mod profiles;
mod progress_display;
mod provenance;
mod resume;
mod saved;
mod scratch_sizes;
mod session;
mod standard_workloads;
mod stdio;
mod targets;
mod tool_lines;
mod workload;
mod write_cache;

use clap::Parser as _;
use diskproof_engine::RunError;
use failure::Failure;
use std::process::ExitCode;

/// The exit code of a panic, which is that of a run that failed.
const FAILED: i32 = 4;

/// Lets a panic end the program with a message that asks for a report, where it cannot be caught.
pub fn explain_panics() {
    if cfg!(panic = "abort") {
        std::panic::set_hook(Box::new(|panic| {
            stdio::eprint_line(&format!(
                "error: {panic}. This is a bug in diskproof; please report it"
            ));
            std::process::exit(FAILED);
        }));
    }
}

/// Reports that the thread of the program cannot be started, and returns the exit code.
pub fn report_no_thread(error: std::io::Error) -> ExitCode {
    failure::report(&Failure::Run(RunError::Thread(error)).into())
}

/// Runs a guard, a tool that a link names, or the verb of the command line. Returns the exit code.
pub fn run() -> ExitCode {
    interrupt::catch_harmless();
    // Not verbs of the user: this process guards what another one has to leave as it was.
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match arguments.split_first() {
        Some((verb, rest)) if verb == diskproof_postgres::GUARD_VERB => {
            return diskproof_postgres::guard(rest);
        }
        Some((verb, _)) if verb == diskproof_device::FILES_REMOVER_VERB => {
            return diskproof_device::remove_files();
        }
        Some((verb, rest)) if verb == diskproof_device::WRITE_CACHE_GUARD_VERB => {
            return diskproof_device::write_cache_guard(rest);
        }
        _ => {}
    }
    if let Some(exit) = commands::as_tool::run_as_link().or_else(plugin::run_as_link) {
        return exit.into();
    }
    match commands::Args::try_parse_from(flag_hints::with_pasted_fio(std::env::args_os())) {
        Err(error) => flag_hints::report(error),
        Ok(args) => match args.verb.run() {
            Ok(exit) => exit.into(),
            Err(error) => failure::report(&error),
        },
    }
}
