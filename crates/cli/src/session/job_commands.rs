//! Commands that the jobs of a tool run before and after their requests. The user has typed them,
//! or the name of the file that has them. They are no part of a plan: a record repeats none.

use super::prepare_command::{self, CommandEnd, CommandOutput, SignalHandling};
use super::sink::{EarlyEnd, Sink};
use crate::interrupt;
use crate::stdio::eprint_line;
use diskproof_compat::{CommandTime, JobCommand};
use diskproof_model::group::Group;
use std::collections::BTreeSet;

/// Runs the commands that the jobs of a group have before their requests, one after another. Their
/// time does not count. One that fails ends the run: what it was to prepare is missing. What the
/// jobs whose commands had begun undo behind their requests is then undone.
pub(super) fn run_commands_before(
    group: Group<'_>,
    all: &[JobCommand],
    sink: &mut Sink,
) -> Result<(), EarlyEnd> {
    let mut begun = BTreeSet::new();
    let prepared = prepare(group, all, &mut begun, sink);
    if prepared.is_err() {
        for command in commands(CommandTime::AfterJob, group, all) {
            if begun.contains(&command.job) {
                undo(command, sink)?;
            }
        }
    }
    prepared
}

/// Runs the commands before the requests of a group, and notes their jobs in `begun`.
fn prepare(
    group: Group<'_>,
    all: &[JobCommand],
    begun: &mut BTreeSet<String>,
    sink: &mut Sink,
) -> Result<(), EarlyEnd> {
    for command in commands(CommandTime::BeforeJob, group, all) {
        for _ in 0..command.copies {
            if interrupt::signal().is_some() {
                return Err(EarlyEnd::interrupted());
            }
            begun.insert(command.job.clone());
            match run_one(command, SignalHandling::Ends, sink)? {
                CommandEnd::Done => {}
                CommandEnd::Interrupted => return Err(EarlyEnd::interrupted()),
                CommandEnd::Failed(why) => return Err(why.into()),
            }
        }
    }
    Ok(())
}

/// Runs the commands that the jobs of a group have behind their requests, one after another, also
/// after an early end. One that fails is a warning.
pub(super) fn run_commands_after(
    group: Group<'_>,
    all: &[JobCommand],
    sink: &mut Sink,
) -> Result<(), EarlyEnd> {
    for command in commands(CommandTime::AfterJob, group, all) {
        undo(command, sink)?;
    }
    Ok(())
}

/// Runs a command behind the requests of its job. Where the run has been interrupted before, only
/// the command's own end ends it.
fn undo(command: &JobCommand, sink: &mut Sink) -> Result<(), EarlyEnd> {
    for _ in 0..command.copies {
        let signals = if interrupt::signal().is_some() {
            SignalHandling::Ignored
        } else {
            SignalHandling::Ends
        };
        match run_one(command, signals, sink)? {
            CommandEnd::Done => {}
            CommandEnd::Interrupted => return Err(EarlyEnd::interrupted()),
            CommandEnd::Failed(why) => eprint_line(&format!("warning: {why}")),
        }
    }
    Ok(())
}

/// Those of the commands that the jobs in a group have for this time.
fn commands<'b>(
    time: CommandTime,
    group: Group<'_>,
    all: &'b [JobCommand],
) -> impl Iterator<Item = &'b JobCommand> {
    all.iter()
        .filter(move |command| command.time == time && carries_out(group, command))
}

/// True if workloads of the group are those of the command's job.
fn carries_out(group: Group<'_>, command: &JobCommand) -> bool {
    group
        .workloads
        .iter()
        .any(|workload| command.workloads.contains(&workload.name))
}

/// Runs a command once, and saves what it printed.
fn run_one(
    command: &JobCommand,
    signals: SignalHandling,
    sink: &mut Sink,
) -> Result<CommandEnd, EarlyEnd> {
    if let Some(tool) = &sink.progress.tool {
        tool.runs_command(command);
    }
    let heartbeat = sink.progress.heartbeat();
    let paused = sink.progress.pause_deadline();
    let CommandOutput { end, printed } =
        prepare_command::run_for_output(command.option, &command.command, signals, &heartbeat);
    sink.progress.resume_deadline(paused);
    if let Some(tool) = &sink.progress.tool {
        let saved = tool.printer.save_bytes(&command.output, &printed);
        saved.map_err(|error| format!("{error:#}"))?;
    }
    Ok(end)
}
