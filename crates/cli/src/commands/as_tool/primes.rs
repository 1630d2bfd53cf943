//! Runs a load of another tool that only computes, and uses no disk.

use super::output::{UNREAD, print_notes};
use crate::failure::{Exit, Failure};
use crate::flags::MeasuringFlags;
use crate::stdio::{is_reader_gone, print_text};
use anyhow::{Context as _, Result};
use diskproof_compat::{DropIn, PrimeRequest};

/// Runs the computing load, and prints the tool's lines as they come.
pub(super) fn run(tool: &DropIn, request: &PrimeRequest, flags: &MeasuringFlags) -> Result<Exit> {
    if flags.prints_record() || flags.dry_run || !flags.files().is_empty() {
        let text = "--json, --dry-run, --output and --html do not apply: this test uses no disk";
        return Err(Failure::Usage(text.to_owned()).into());
    }
    print_notes(tool, flags, &request.notes);
    print_text(&request.printer.begin())?;
    let mut printed = Ok(());
    let measured = diskproof_engine::measure_primes(&request.load, &mut |interval| {
        if printed.is_ok() {
            printed = print_text(&request.printer.interval(interval));
        }
        if is_reader_gone() {
            // The load only computes: nothing is to be undone.
            std::process::exit(UNREAD.into());
        }
    });
    let result = measured.context("cannot start a thread")?;
    printed?;
    print_text(&request.printer.end(&result))?;
    Ok(Exit::Done)
}
