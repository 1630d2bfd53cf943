//! A load of processors: it touches no disk and leaves no record.

use super::work::print_notes;
use crate::failure::{Exit, Failure};
use crate::flags::MeasuringFlags;
use crate::stdout::print_text;
use anyhow::Context as _;
use diskproof_compat::{DropIn, PrimeRequest};
use diskproof_engine::measure_primes;

/// Runs it, and prints its lines as they come.
pub(super) fn run_primes(
    tool: &DropIn,
    request: &PrimeRequest,
    flags: &MeasuringFlags,
) -> anyhow::Result<Exit> {
    if flags.prints_json() || flags.dry_run || !flags.outputs.is_empty() {
        let text = "--json, --dry-run and --output do not apply: this test uses no disk".to_owned();
        return Err(Failure::Usage(text).into());
    }
    print_notes(tool, flags, &request.notes);
    print_text(&request.printer.begin())?;
    let mut printed = Ok(());
    let measured = measure_primes(&request.load, &mut |interval| {
        if printed.is_ok() {
            printed = print_text(&request.printer.interval(interval));
        }
    });
    let result = measured.context("cannot start a thread")?;
    printed?;
    print_text(&request.printer.end(&result))?;
    Ok(Exit::Done)
}
