//! Runs a command of the user in a shell, and waits for its end. Ctrl-C ends it, and what an error
//! quotes is the text that it printed on stderr.

use crate::interrupt;
use crate::stdio::Verbosity;
use diskproof_device::{ProgramGroup, shell_with_limit_of_user};
use diskproof_engine::watchdog::Heartbeat;
use rustix::fs::MemfdFlags;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

/// The first pause before a command is looked at: most take milliseconds. Each further pause is
/// twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The pauses grow to this length.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// The bytes at the start of stderr from which an error quotes. Chosen, not measured.
const STDERR_BYTES_MAX: u64 = 64 << 10;
/// The lines at the end of them that an error quotes.
const STDERR_LINES_MAX: usize = 5;
/// A command that prints more is ended: its output is kept in memory. An error names the size.
const PRINTED_BYTES_MAX: u64 = 64 << 20;

/// What a signal such as Ctrl-C does to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignalHandling {
    /// Ends it.
    Ends,
    /// Nothing: the signal has ended the run before.
    Ignored,
}

/// The end of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CommandEnd {
    /// With status 0.
    Done,
    /// Ctrl-C came meanwhile.
    Interrupted,
    /// Why it failed, in a sentence.
    Failed(String),
}

/// Runs `command` in a shell to its end; `flag` names it in errors. Its output is discarded but for
/// what an error quotes. The heartbeat beats while the command runs.
pub(super) fn run(
    flag: &str,
    command: &str,
    signals: SignalHandling,
    heartbeat: &Heartbeat,
) -> CommandEnd {
    match carry_out(command, signals, heartbeat) {
        Ok(None) => CommandEnd::Interrupted,
        Ok(Some(ended)) if ended.status.success() => CommandEnd::Done,
        Ok(Some(EndedShell { status, quoted })) => {
            CommandEnd::Failed(format!("{flag} '{command}' failed ({status}){quoted}"))
        }
        Err(error) => CommandEnd::Failed(format!(
            "{flag} '{command}': cannot run it in a shell: {error}"
        )),
    }
}

/// The end of a command, and everything that it printed.
pub(super) struct CommandOutput {
    pub end: CommandEnd,
    /// Both its streams, in the order of its writes.
    pub printed: Vec<u8>,
}

/// Runs `command` as [`run`] does, and keeps its output, also where it failed.
pub(super) fn run_for_output(
    option: &str,
    command: &str,
    signals: SignalHandling,
    heartbeat: &Heartbeat,
) -> CommandOutput {
    match carry_out_for_output(command, signals, heartbeat) {
        Ok(KeptOutput { status, printed }) => {
            let end = match status {
                None => CommandEnd::Interrupted,
                Some(status) if status.success() => CommandEnd::Done,
                Some(status) => {
                    CommandEnd::Failed(format!("{option} '{command}' failed ({status})"))
                }
            };
            CommandOutput { end, printed }
        }
        Err(error) => CommandOutput {
            end: CommandEnd::Failed(format!(
                "{option} '{command}': cannot run it in a shell: {error}"
            )),
            printed: Vec::new(),
        },
    }
}

/// A shell that has ended, with what it printed.
struct KeptOutput {
    /// `None` after Ctrl-C.
    status: Option<ExitStatus>,
    printed: Vec<u8>,
}

fn carry_out_for_output(
    command: &str,
    signals: SignalHandling,
    heartbeat: &Heartbeat,
) -> io::Result<KeptOutput> {
    // Not a pipe: a process that stays behind would hold it open.
    let mut output = File::from(rustix::fs::memfd_create("output", MemfdFlags::CLOEXEC)?);
    let mut shell = shell_with_limit_of_user(command);
    shell
        .stdin(Stdio::null())
        .stdout(Stdio::from(output.try_clone()?))
        .stderr(Stdio::from(output.try_clone()?));
    let program = ProgramGroup::start(&mut shell)?;
    let status = wait_for(program, &output, signals, heartbeat)?;
    output.rewind()?;
    let mut printed = Vec::new();
    output.take(PRINTED_BYTES_MAX).read_to_end(&mut printed)?;
    Ok(KeptOutput { status, printed })
}

/// Runs the command after the last cell, however the run ended: it restores a setting. Only a
/// signal that comes meanwhile ends it. The error says why the setting may not be restored.
pub(super) fn clean_up(command: &str, verbosity: Verbosity) -> Result<(), String> {
    let signals = if interrupt::signal().is_none() {
        SignalHandling::Ends
    } else {
        SignalHandling::Ignored
    };
    match run("--cleanup", command, signals, &Heartbeat::default()) {
        CommandEnd::Done => {
            verbosity.note(&format!("ran --cleanup '{command}'"));
            Ok(())
        }
        CommandEnd::Failed(why) => Err(format!("{why}. The setting may not be restored")),
        CommandEnd::Interrupted => Err(format!(
            "--cleanup '{command}' was interrupted, and may not have restored the setting"
        )),
    }
}

/// A shell that has ended on its own.
struct EndedShell {
    status: ExitStatus,
    /// What it printed on stderr, as the end of a sentence.
    quoted: String,
}

/// Runs the command in a shell. `None` after Ctrl-C.
fn carry_out(
    command: &str,
    signals: SignalHandling,
    heartbeat: &Heartbeat,
) -> io::Result<Option<EndedShell>> {
    // Not a pipe: a process that stays behind would hold it open.
    let mut stderr = File::from(rustix::fs::memfd_create("stderr", MemfdFlags::CLOEXEC)?);
    let mut shell = shell_with_limit_of_user(command);
    shell
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::from(stderr.try_clone()?));
    let program = ProgramGroup::start(&mut shell)?;
    let Some(status) = wait_for(program, &stderr, signals, heartbeat)? else {
        return Ok(None);
    };
    stderr.rewind()?;
    let mut text = Vec::new();
    stderr.take(STDERR_BYTES_MAX).read_to_end(&mut text)?;
    let quoted = quoted(&String::from_utf8_lossy(&text));
    Ok(Some(EndedShell { status, quoted }))
}

/// Waits for the end of a program that prints to `printed`, `None` after Ctrl-C. After that and an
/// error nothing that it started is left.
fn wait_for(
    mut program: ProgramGroup,
    printed: &File,
    signals: SignalHandling,
    heartbeat: &Heartbeat,
) -> io::Result<Option<ExitStatus>> {
    let mut pause = FIRST_PAUSE;
    loop {
        heartbeat.beat();
        if signals == SignalHandling::Ends && interrupt::signal().is_some() {
            program.end(interrupt::WAIT_AFTER_SIGNAL);
            return Ok(None);
        }
        let ended = program.try_wait()?;
        if printed.metadata()?.len() > PRINTED_BYTES_MAX {
            program.end(interrupt::WAIT_AFTER_SIGNAL);
            let why = "it printed more than 64 MiB; write its output to a file";
            return Err(io::Error::other(why));
        }
        if ended.is_some() {
            return Ok(ended);
        }
        if program.is_stopped() {
            let why = "it was stopped; it cannot read from the terminal (use sudo -n)";
            return Err(io::Error::other(why));
        }
        std::thread::sleep(pause);
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

/// The last lines that a command printed, as the end of a sentence.
fn quoted(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    if lines.is_empty() {
        return " and printed nothing on stderr".to_owned();
    }
    let last = &lines[lines.len().saturating_sub(STDERR_LINES_MAX)..];
    format!(": {}", last.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn end_of(command: &str) -> CommandEnd {
        let signals = SignalHandling::Ignored;
        run("--prepare", command, signals, &Heartbeat::default())
    }

    #[test]
    fn failed_command_is_quoted_with_status_and_stderr() {
        assert_eq!(end_of("true; echo unseen"), CommandEnd::Done);
        for (command, status, said) in [
            ("echo odd >&2; exit 3", "(exit status: 3)", ": odd"),
            ("exit 1", "(exit status: 1)", "stderr"),
            ("kill -9 $$", "(signal: 9", ""),
        ] {
            let CommandEnd::Failed(why) = end_of(command) else {
                panic!("{command} has failed");
            };
            let start = format!("--prepare '{command}' failed {status}");
            assert!(why.starts_with(&start) && why.ends_with(said), "{why}");
        }
    }

    #[test]
    fn output_of_both_streams_is_kept_where_a_command_fails_too() {
        let text = "echo out; echo err >&2; exit 3";
        let signals = SignalHandling::Ignored;
        let output = run_for_output("exec_prerun", text, signals, &Heartbeat::default());
        assert_eq!(output.printed, b"out\nerr\n");
        let CommandEnd::Failed(why) = output.end else {
            panic!("{text} has failed");
        };
        assert!(why.contains("(exit status: 3)"), "{why}");
    }

    /// It would fill the memory.
    #[test]
    fn command_that_prints_without_end_is_ended() {
        let signals = SignalHandling::Ignored;
        let output = run_for_output("exec_prerun", "yes", signals, &Heartbeat::default());
        assert!(
            matches!(output.end, CommandEnd::Failed(_)),
            "{:?}",
            output.end
        );
        assert!(output.printed.is_empty());
    }

    #[test]
    fn command_that_leaves_a_process_behind_does_not_hold_up_the_run() {
        let begun = Instant::now();
        assert_eq!(end_of("sleep 5 & exit 0"), CommandEnd::Done);
        assert!(begun.elapsed() < Duration::from_secs(4));
    }

    #[test]
    fn only_the_last_lines_are_quoted() {
        let text: String = (1..=9).map(|line| format!("line {line}\n\n")).collect();
        assert_eq!(quoted(&text), ": line 5; line 6; line 7; line 8; line 9");
    }
}
