//! What a process of ours and the program that started it as a guard say to each other: lines on
//! its standard output. Such a process outlives the program and undoes what that has done.

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};

/// A line for the program, if it still lives.
pub fn report_line(line: &str) {
    let line = line.replace('\n', "; ");
    let mut out = io::stdout();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// What a process reports, until it has ended.
pub fn reported_lines(process: &mut Child) -> io::Result<Receiver<String>> {
    let (sender, lines) = channel();
    if let Some(output) = process.stdout.take() {
        std::thread::Builder::new().spawn(move || {
            let mut lines = BufReader::new(output).lines().map_while(Result::ok);
            lines.all(|line| sender.send(line).is_ok());
        })?;
    }
    Ok(lines)
}

/// Is set by every signal that asks a process to end.
pub fn ending_signals() -> io::Result<Arc<AtomicBool>> {
    let due = Arc::default();
    for number in [SIGTERM, SIGINT, SIGHUP, SIGQUIT] {
        signal_hook::flag::register(number, Arc::clone(&due))?;
    }
    Ok(due)
}
