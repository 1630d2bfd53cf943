//! Keeps the output of a program in memory: a log on the disk under test would load it.

use crate::disk_errors::failed_line;
use rustix::fs::MemfdFlags;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::process::Stdio;

/// The bytes at the end of a log that are read: the reason of an error is among the last lines.
const BYTES_MAX: u64 = 64 << 10;
/// The most lines of a log that an error quotes: it stays readable on a terminal.
const LINES_MAX: usize = 4;
/// Severities that end a server, as it words them in the locale C.
const CAUSES: [&str; 2] = ["PANIC:", "FATAL:"];

/// The text of a FATAL line that is no cause: a server that starts answers a session with it.
const STARTING: &str = "the database system is starting up";

/// The output of a program.
pub(crate) struct ProgramLog {
    file: File,
}

impl ProgramLog {
    /// Makes an empty log.
    pub(crate) fn new() -> io::Result<Self> {
        let file = File::from(rustix::fs::memfd_create("server-log", MemfdFlags::CLOEXEC)?);
        Ok(Self { file })
    }

    /// Returns the output to which the program prints.
    pub(crate) fn output(&self) -> io::Result<Stdio> {
        Ok(self.file.try_clone()?.into())
    }

    /// Returns the end of the log.
    pub(crate) fn into_text(mut self) -> String {
        let mut text = Vec::new();
        // The program wrote through the same position.
        let length = self.file.stream_position().unwrap_or(0);
        let start = io::SeekFrom::Start(length.saturating_sub(BYTES_MAX));
        let read = self
            .file
            .seek(start)
            .and_then(|_| self.file.take(BYTES_MAX).read_to_end(&mut text));
        match read {
            Ok(_) => String::from_utf8_lossy(&text).into_owned(),
            Err(error) => error.to_string(),
        }
    }

    /// Returns the line about a request that the disk failed; `None` without one.
    pub(crate) fn into_disk_failure(self) -> Option<String> {
        failed_line(&self.into_text()).map(str::to_owned)
    }

    /// Returns the lines with the cause, else the last ones, as the end of a sentence: `: …`.
    /// Empty for an empty log.
    pub(crate) fn into_quote(self) -> String {
        quoted_lines(&self.into_text())
    }
}

/// The lines of a log that an error quotes, as [`ProgramLog::into_quote`] returns them.
fn quoted_lines(text: &str) -> String {
    let mut lines = Vec::new();
    let mut causes = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() {
            continue;
        }
        lines.push(line);
        if CAUSES.iter().any(|word| line.contains(word)) && !line.contains(STARTING) {
            causes.push(line);
        }
    }
    let quoted = if causes.is_empty() { lines } else { causes };
    match &quoted[quoted.len().saturating_sub(LINES_MAX)..] {
        [] => String::new(),
        last => format!(": {}", last.join("; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_quoted_before_what_followed_from_it() {
        let log = "FATAL:  the database system is starting up\nLOG: database system is ready\n\
                   PANIC:  could not write to file \"pg_wal/x\": No space left on device\n\
                   LOG: shutting down\nLOG: a\nLOG: b\nLOG: c\n";
        let cause = ": PANIC:  could not write to file \"pg_wal/x\": No space left on device";
        assert_eq!(quoted_lines(log), cause);
        assert_eq!(quoted_lines("LOG: a\n\nLOG: b\n"), ": LOG: a; LOG: b");
        assert_eq!(quoted_lines(""), "");
    }
}
