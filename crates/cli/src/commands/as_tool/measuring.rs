//! Runs a tool's command line as every verb runs, but with the tool's stderr.

use crate::failure::{Exit, is_refused, report};
use crate::flags::{DestructiveFlags, MeasuringFlags};
use crate::session::{Measured, MeasuringJob, measure};
use crate::stdio::eprint_line;
use anyhow::Result;
use diskproof_compat::DropIn;
use diskproof_model::shell::quoted;
use diskproof_model::target::{TargetIdentity, TargetKind};

/// Measures, and names the command that releases a target where the gate refuses one.
pub(super) fn measure_as_tool(
    tool: &DropIn,
    words: &[String],
    job: MeasuringJob<'_>,
    writes: bool,
) -> Result<Exit> {
    let flags = job.flags;
    let has_file = has_kind(&job.identities, TargetKind::File);
    let released_kind = if has_kind(&job.identities, TargetKind::BlockDevice) {
        Some(TargetKind::BlockDevice)
    } else if has_file {
        Some(TargetKind::File)
    } else {
        None
    };
    // stderr is the tool's.
    let mut quiet_flags = MeasuringFlags {
        quiet: !flags.verbose,
        ..flags.clone()
    };
    // One command line creates the file the first time and overwrites it later. The first time
    // there is no file to release, and the gate would refuse the flag.
    quiet_flags.destructive.overwrite &= has_file;
    let quiet_job = MeasuringJob {
        flags: &quiet_flags,
        ..job
    };
    let error = match measure(quiet_job).and_then(Measured::exit) {
        Ok(exit) => return Ok(exit),
        Err(error) => error,
    };
    match released_kind {
        Some(kind) if is_refused(&error) && writes => {
            report(&error);
            print_release_command(tool, words, kind, &flags.destructive);
            Ok(Exit::Refused)
        }
        _ => Err(error),
    }
}

fn has_kind(identities: &[TargetIdentity], kind: TargetKind) -> bool {
    identities.iter().any(|identity| identity.kind == kind)
}

/// Prints the command that releases the target, where none of its flags was given.
fn print_release_command(
    tool: &DropIn,
    words: &[String],
    kind: TargetKind,
    given: &DestructiveFlags,
) {
    if given.why_only_read(kind).is_none() {
        return;
    }
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let flag = match kind {
        TargetKind::BlockDevice => "--destroy NAME",
        TargetKind::File | TargetKind::Directory => "--overwrite",
    };
    eprint_line(&format!(
        "to release it: diskproof as {flag} {} {}",
        tool.name,
        words.join(" ")
    ));
}
