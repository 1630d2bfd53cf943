//! Commands that the jobs of a tool run before and after their requests. The user has typed them,
//! or the name of the file that has them. They are no part of a plan: a record repeats none.

use super::bench::Bench;
use super::prepare_command::{self, CommandEnd, CommandOutput, SignalHandling};
use super::sink::{EarlyEnd, Sink};
use crate::interrupt;
use crate::stdio::eprint_line;
use diskproof_compat::{CommandTime, JobCommand};
use diskproof_model::group::Group;

/// Runs the commands that the jobs of a group have for this time, one after another. Their time
/// does not count. A command that fails before its job ends the run: what it was to prepare is
/// missing.
pub(super) fn run_job_commands(
    time: CommandTime,
    group: Group<'_>,
    bench: &Bench,
    sink: &mut Sink,
) -> Result<(), EarlyEnd> {
    let is_early_end = interrupt::signal().is_some();
    for command in &bench.job_commands {
        if command.time != time || !carries_out(group, command) {
            continue;
        }
        for _ in 0..command.copies {
            match (run_one(command, is_early_end, sink)?, time) {
                (CommandEnd::Done, _) => {}
                (CommandEnd::Interrupted, _) => return Err(EarlyEnd::interrupted()),
                (CommandEnd::Failed(why), CommandTime::BeforeJob) => return Err(why.into()),
                (CommandEnd::Failed(why), CommandTime::AfterJob) => {
                    eprint_line(&format!("warning: {why}"));
                }
            }
        }
    }
    Ok(())
}

/// True if workloads of the group are those of the command's job.
fn carries_out(group: Group<'_>, command: &JobCommand) -> bool {
    group
        .workloads
        .iter()
        .any(|workload| command.workloads.contains(&workload.name))
}

/// Runs a command once, and saves what it printed. Where the run has been interrupted before, only
/// the command's own end ends it.
fn run_one(
    command: &JobCommand,
    is_early_end: bool,
    sink: &mut Sink,
) -> Result<CommandEnd, EarlyEnd> {
    let signals = if is_early_end {
        SignalHandling::Ignored
    } else {
        SignalHandling::Ends
    };
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
