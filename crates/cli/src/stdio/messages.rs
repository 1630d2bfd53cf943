//! Writes messages to stderr, and the progress line of a terminal.

use crate::full_screen;
use diskproof_model::errno::with_names;
use diskproof_model::secrets::text_without_secrets;
use diskproof_report::terminal;
use rustix::termios::tcgetwinsize;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// The width of a message where the terminal reports none.
const COLUMNS_DEFAULT: usize = 80;
/// A progress line is redrawn no more often than this.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
/// `^C` and the cursor.
const COLUMNS_FOR_ECHO: usize = 3;

/// How much the program writes to stderr while it works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// Notes, and a progress line that is redrawn in place.
    Terminal,
    /// Notes, and one progress line per step.
    Lines,
    /// Warnings and errors only.
    Quiet,
}

impl Verbosity {
    /// As much as stderr can show.
    pub(crate) fn of_stderr() -> Self {
        let is_dumb = match std::env::var_os("TERM") {
            Some(term) => term == "dumb",
            None => false,
        };
        if io::stderr().is_terminal() && !is_dumb {
            Self::Terminal
        } else {
            Self::Lines
        }
    }

    /// Lines without progress in place; warnings and errors only, if `quiet`.
    pub(crate) fn lines(quiet: bool) -> Self {
        if quiet { Self::Quiet } else { Self::Lines }
    }

    /// Writes a line to stderr, unless quiet.
    pub(crate) fn note(self, line: &str) {
        if self != Self::Quiet {
            eprint_line(line);
        }
    }
}

/// Writes a line to stderr without passwords and with the names of errors, wrapped at word
/// boundaries on a terminal; once a view that fills the terminal has ended. A closed stderr does
/// not end the run.
pub(crate) fn eprint_line(line: &str) {
    let width = if io::stderr().is_terminal() {
        Some(stderr_columns())
    } else {
        None
    };
    let text = format!("diskproof: {}", with_names(&text_without_secrets(line)));
    let message = terminal::message(&text, width);
    if !full_screen::keep_line(&message) {
        let _ = writeln!(io::stderr().lock(), "{message}");
    }
}

/// Writes the text of another tool to stderr as it is, but for passwords.
pub(crate) fn eprint_text(text: &str) {
    let _ = io::stderr()
        .lock()
        .write_all(text_without_secrets(text).as_bytes());
}

/// A progress line that is redrawn in place. The cursor stays at its end: the terminal then echoes
/// Ctrl-C on the same line, and erases it with the line.
#[derive(Debug, Default)]
pub(crate) struct ProgressLine {
    drawn: Option<Instant>,
    is_hidden: bool,
}

impl ProgressLine {
    /// One that is never due, unless stderr is a terminal that can show it.
    pub(crate) fn new(verbosity: Verbosity) -> Self {
        Self {
            drawn: None,
            is_hidden: verbosity != Verbosity::Terminal,
        }
    }

    /// True if it is time to redraw.
    pub(crate) fn is_due(&self) -> bool {
        match self.drawn {
            _ if self.is_hidden => false,
            Some(drawn) => drawn.elapsed() >= REDRAW_INTERVAL,
            None => true,
        }
    }

    /// Shows as many of the figures as fit, which commas separate.
    pub(crate) fn show(&mut self, text: &str) {
        self.drawn = Some(Instant::now());
        self.write(&whole_figures(text, progress_columns()));
    }

    /// Erases the line.
    pub(crate) fn clear(&mut self) {
        if self.drawn.take().is_some() {
            self.write("");
        }
    }

    /// Carriage return, then EL of ECMA-48, which erases the line. A closed stderr does not end the
    /// run.
    fn write(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        if write!(stderr, "\r\x1b[K{text}").is_ok() {
            let _ = stderr.flush();
        }
    }
}

/// Columns of a progress line. Longer lines wrap, and then only their last row is erased.
pub(crate) fn progress_columns() -> usize {
    stderr_columns().saturating_sub(COLUMNS_FOR_ECHO)
}

/// The beginning of a text that fits the columns and ends before a comma: half a figure would be
/// read as another figure.
fn whole_figures(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    // The comma and the space may lie beyond the last column.
    let beginning: String = text.chars().take(columns + 2).collect();
    match beginning.rfind(", ") {
        Some(end) => beginning[..end].to_owned(),
        None => text.chars().take(columns).collect(),
    }
}

/// Columns of the terminal on stderr.
fn stderr_columns() -> usize {
    match tcgetwinsize(io::stderr()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => COLUMNS_DEFAULT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_line_ends_after_a_whole_figure() {
        let line = "1/9 read 12 s left, 12,300/s, 95.2 MB/s";
        assert_eq!(whole_figures(line, 80), line);
        assert_eq!(whole_figures(line, 39), line);
        for columns in 28..39 {
            assert_eq!(whole_figures(line, columns), "1/9 read 12 s left, 12,300/s");
        }
        assert_eq!(whole_figures(line, 27), "1/9 read 12 s left");
        // The comma in a number is followed by no space.
        assert_eq!(whole_figures("read 12,300/s", 9), "read 12,3");
    }
}
