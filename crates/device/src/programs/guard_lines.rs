//! Connects the program with a guard that it starts: a process of ours that outlives the program
//! and undoes what that has done. The guard reports lines on its standard output, and signals that
//! ask either process to end set a flag.

use crate::kernel::syscalls::is_signal_ignored;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};

/// Sends a line to the program that started this process, if it still lives.
pub fn report_line(line: &str) {
    let mut out = io::stdout();
    // An error means that the program has ended.
    if writeln!(out, "{}", line.replace('\n', "; ")).is_ok() {
        let _ = out.flush();
    }
}

/// Receives the lines that a guard reports, until it has ended.
pub fn reported_lines(guard: &mut Child) -> io::Result<Receiver<String>> {
    let (sender, lines) = channel();
    if let Some(output) = guard.stdout.take() {
        std::thread::Builder::new().spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        })?;
    }
    Ok(lines)
}

/// A flag that every signal sets which asks a process to end, unless the process ignores it.
pub fn ending_signals() -> io::Result<Arc<AtomicBool>> {
    let has_to_end = Arc::default();
    for number in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
        if !is_signal_ignored(number) {
            signal_hook::flag::register(number, Arc::clone(&has_to_end))?;
        }
    }
    Ok(has_to_end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn lines_of_a_guard_arrive_in_order_until_it_ends() {
        let mut guard = Command::new("/bin/sh")
            .args(["-c", "echo ready; echo restored"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines: Vec<String> = reported_lines(&mut guard).unwrap().iter().collect();
        assert_eq!(lines, ["ready", "restored"]);
        guard.wait().unwrap();
    }
}
