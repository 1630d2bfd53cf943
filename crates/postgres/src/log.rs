//! What a program of the server prints, kept in memory: a log on the disk under test would load it.

use rustix::fs::MemfdFlags;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::process::Stdio;

/// The end of a log is enough to explain an error.
const BYTES_MAX: u64 = 64 << 10;
const LINES_MAX: usize = 4;
/// Severities that end a server, as it words them in the locale C.
const CAUSES: [&str; 2] = ["PANIC:", "FATAL:"];

/// What a server answers while it starts: it says nothing about its end.
const STARTING: &str = "the database system is starting up";

/// An output of a program.
pub(crate) struct ProgramLog {
    file: File,
}

impl ProgramLog {
    /// An empty one.
    pub(crate) fn new() -> io::Result<Self> {
        let file = File::from(rustix::fs::memfd_create("server-log", MemfdFlags::CLOEXEC)?);
        Ok(Self { file })
    }

    /// Where the program prints.
    pub(crate) fn output(&self) -> io::Result<Stdio> {
        Ok(self.file.try_clone()?.into())
    }

    /// Its end.
    pub(crate) fn text(mut self) -> String {
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

    /// The lines that tell why, else the last ones, as the end of a sentence: `: …`.
    pub(crate) fn quoted(self) -> String {
        telling_lines(&self.text())
    }
}

fn telling_lines(text: &str) -> String {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let causes: Vec<&str> = lines()
        .filter(|line| CAUSES.iter().any(|word| line.contains(word)) && !line.contains(STARTING))
        .collect();
    let lines = if causes.is_empty() {
        lines().collect()
    } else {
        causes
    };
    match &lines[lines.len().saturating_sub(LINES_MAX)..] {
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
        assert_eq!(
            telling_lines(log),
            ": PANIC:  could not write to file \"pg_wal/x\": No space left on device"
        );
        assert_eq!(telling_lines("LOG: a\n\nLOG: b\n"), ": LOG: a; LOG: b");
        assert_eq!(telling_lines(""), "");
    }
}
