//! Messages on stderr: notes, warnings, and the progress line of a terminal.

use diskproof_report::terminal;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// Assumed for terminals that report no width, or less than this.
const COLUMNS_MIN: usize = 40;
const REDRAW_EVERY: Duration = Duration::from_millis(100);
/// `^C` and the cursor.
const COLUMNS_FOR_ECHO: usize = 3;

/// How much the program writes to stderr while it works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    /// Notes, and a progress line that is redrawn in place.
    Terminal,
    /// Notes, and one progress line per step.
    Lines,
    /// Warnings and errors only.
    Quiet,
}

impl Verbosity {
    /// What stderr can show.
    pub fn of_stderr() -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
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
    pub fn note(self, line: &str) {
        if self != Self::Quiet {
            eprint_line(line);
        }
    }
}

/// Writes a line to stderr, wrapped at word boundaries on a terminal. A closed stderr does not end
/// the run.
pub(crate) fn eprint_line(line: &str) {
    let width = io::stderr().is_terminal().then(stderr_columns);
    let _ = writeln!(
        io::stderr().lock(),
        "{}",
        terminal::message(&format!("diskproof: {line}"), width)
    );
}

/// Writes the text of another tool to stderr as it is.
pub(crate) fn eprint_text(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// A progress line that is redrawn in place. The cursor stays at its end: the terminal then echoes
/// Ctrl-C on the same line, and erases it with the line.
#[derive(Debug, Default)]
pub(crate) struct ProgressLine {
    drawn: Option<Instant>,
}

impl ProgressLine {
    /// Whether it is time to redraw.
    pub(crate) fn is_due(&self) -> bool {
        self.drawn
            .is_none_or(|drawn| drawn.elapsed() >= REDRAW_EVERY)
    }

    /// Shows as much of the text as fits.
    pub(crate) fn show(&mut self, text: &str) {
        self.drawn = Some(Instant::now());
        let columns = stderr_columns() - COLUMNS_FOR_ECHO;
        let text: String = text.chars().take(columns).collect();
        self.write(&text);
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
        let _ = write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush());
    }
}

/// Width of the terminal on stderr.
pub(crate) fn stderr_columns() -> usize {
    rustix::termios::tcgetwinsize(io::stderr())
        .map_or(0, |size| usize::from(size.ws_col))
        .max(COLUMNS_MIN)
}
