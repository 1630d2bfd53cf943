//! Commands of the user that change a setting between two slices.

use crate::interrupt;
use crate::stdio::{Verbosity, eprint_line};
use diskproof_device::ProgramGroup;
use diskproof_engine::watchdog::Heartbeat;
use rustix::fs::MemfdFlags;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

const SHELL: &str = "/bin/sh";
/// The first pause before a command is looked at. Each further pause is twice as long, up to the
/// longest: most commands take milliseconds.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// After Ctrl-C a command gets SIGTERM, and has this long to end.
const AFTER_INTERRUPT: Duration = Duration::from_millis(1500);
/// Most of what a command prints on stderr that an error quotes.
const STDERR_BYTES_MAX: u64 = 64 << 10;
const STDERR_LINES_MAX: usize = 5;

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
/// what an error quotes. It heeds no signal where Ctrl-C has ended the run before; the heartbeat
/// beats while the command runs.
pub(super) fn run(
    flag: &str,
    command: &str,
    heeds_signal: bool,
    heartbeat: &Heartbeat,
) -> CommandEnd {
    match carry_out(command, heeds_signal, heartbeat) {
        Ok((None, _)) => CommandEnd::Interrupted,
        Ok((Some(status), _)) if status.success() => CommandEnd::Done,
        Ok((Some(status), said)) => {
            CommandEnd::Failed(format!("{flag} '{command}' failed ({status}){said}"))
        }
        Err(error) => CommandEnd::Failed(format!(
            "{flag} '{command}': cannot run it with {SHELL}: {error}"
        )),
    }
}

/// Runs the command after the last cell, however the run ended: it restores a setting. Only a
/// signal that comes meanwhile ends it.
pub(super) fn clean_up(command: &str, verbosity: Verbosity) {
    let heeds_signal = interrupt::signal().is_none();
    match run("--cleanup", command, heeds_signal, &Heartbeat::default()) {
        CommandEnd::Done => verbosity.note(&format!("ran --cleanup '{command}'")),
        CommandEnd::Failed(why) => eprint_line(&format!("warning: {why}")),
        CommandEnd::Interrupted => eprint_line(&format!(
            "warning: --cleanup '{command}' was interrupted, and may not have restored the setting"
        )),
    }
}

/// The status, `None` after Ctrl-C, and what it printed on stderr.
fn carry_out(
    command: &str,
    heeds_signal: bool,
    heartbeat: &Heartbeat,
) -> io::Result<(Option<ExitStatus>, String)> {
    // Not a pipe: a process that stays behind would hold it open.
    let mut stderr = File::from(rustix::fs::memfd_create("stderr", MemfdFlags::CLOEXEC)?);
    let mut shell = Command::new(SHELL);
    shell
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::from(stderr.try_clone()?));
    let status = wait_for(ProgramGroup::start(&mut shell)?, heeds_signal, heartbeat)?;
    stderr.rewind()?;
    let mut text = Vec::new();
    stderr.take(STDERR_BYTES_MAX).read_to_end(&mut text)?;
    Ok((status, quoted(&String::from_utf8_lossy(&text))))
}

/// Waits for its end. After Ctrl-C and an error nothing that it started is left.
fn wait_for(
    mut program: ProgramGroup,
    heeds_signal: bool,
    heartbeat: &Heartbeat,
) -> io::Result<Option<ExitStatus>> {
    let mut pause = FIRST_PAUSE;
    loop {
        heartbeat.beat();
        if heeds_signal && interrupt::signal().is_some() {
            program.end(AFTER_INTERRUPT);
            return Ok(None);
        }
        let ended = program.try_wait()?;
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
        run("--prepare", command, false, &Heartbeat::default())
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
