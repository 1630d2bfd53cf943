//! Measures what a tool asks for, and names the command that the gate accepts.

use crate::consent::DestructiveFlags;
use crate::failure::{Exit, Failure, report};
use crate::flags::MeasuringFlags;
use crate::session::{Means, MeasuringJob, ToolRun, measure};
use crate::stderr::eprint_line;
use diskproof_compat::DropIn;
use diskproof_device::OpenError;
use diskproof_model::shell::quoted;
use diskproof_model::target::TargetKind;

/// Measures, and names the command that releases a target where the gate refuses one.
pub(super) fn measure_work(
    tool: &DropIn,
    words: &[String],
    job: MeasuringJob<'_>,
    writes: bool,
    run: ToolRun,
) -> anyhow::Result<Exit> {
    let flags = job.flags;
    // stderr is the tool's.
    let mut own = MeasuringFlags {
        quiet: !flags.verbose,
        ..flags.clone()
    };
    // One command line makes the file the first time, when there is none to release, and overwrites
    // it later.
    let has = |kind: TargetKind| {
        let has_kind = job.identities.iter().any(|one| one.kind == kind);
        has_kind.then_some(kind)
    };
    let released = has(TargetKind::BlockDevice).or(has(TargetKind::File));
    own.destructive.overwrite &= has(TargetKind::File).is_some();
    let job = MeasuringJob { flags: &own, ..job };
    let means = Means {
        tool: Some(run),
        ..Means::default()
    };
    let ended = measure(job, means);
    match (ended, released) {
        (Err(error), Some(kind)) if is_refused(&error) && writes => {
            report(&error);
            name_accepted(tool, words, kind, &flags.destructive);
            Ok(Exit::Refused)
        }
        (ended, _) => ended,
    }
}

fn is_refused(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(Failure::Refused(_) | Failure::Open(OpenError::Refused(_)))
    )
}

/// The command that releases the target, where none of its flags was given.
fn name_accepted(tool: &DropIn, words: &[String], kind: TargetKind, given: &DestructiveFlags) {
    if given.why_only_read(kind).is_none() {
        return;
    }
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let flag = match kind {
        TargetKind::BlockDevice => "--destroy NAME",
        _ => "--overwrite",
    };
    eprint_line(&format!(
        "to release it: diskproof as {flag} {} {}",
        tool.name,
        words.join(" ")
    ));
}

/// Prints what the figures mean, in the name of the tool.
pub(super) fn print_notes<'a>(
    tool: &DropIn,
    flags: &MeasuringFlags,
    notes: impl IntoIterator<Item = &'a String>,
) {
    if !flags.quiet {
        for note in notes {
            eprint_line(&format!("{}: {note}", tool.name));
        }
    }
}
