//! Writes the result to stdout, and notices readers that close the pipe. `style` decides width and
//! colours, `pages` makes the text of pages, and `messages` writes to stderr.

mod messages;
mod pages;
mod style;

use anyhow::Result;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use messages::{ProgressLine, Verbosity, eprint_line, eprint_text, progress_columns};
pub(crate) use pages::{
    colored_commands_page, colored_fleet_page, colored_style, page_in_locale, write_colored_page,
    write_comparison_page, write_in_locale, write_record_page,
};
pub(crate) use style::{ColorWhen, style};

/// The form in which a result goes to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presentation {
    /// One JSON document, for programs.
    Json,
    /// Text with colours, for people.
    Page,
}

impl Presentation {
    /// The form that a verb's `--json` asks for.
    pub(crate) fn from_json_flag(json: bool) -> Self {
        if json { Self::Json } else { Self::Page }
    }
}

/// The result did not get to stdout.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the result to stdout: {0}")]
pub(crate) struct StdoutError(pub io::Error);

/// True if the reader of stdout has gone. A broken pipe that `-o` names is an error like any other.
pub(crate) fn is_closed_stdout(error: &anyhow::Error) -> bool {
    match error.downcast_ref() {
        Some(StdoutError(error)) => error.kind() == io::ErrorKind::BrokenPipe,
        None => false,
    }
}

/// True once a write to stdout found no reader.
static IS_READER_GONE: AtomicBool = AtomicBool::new(false);

/// Remembers an error of stdout that means that its reader has gone.
pub(crate) fn note_closed_stdout(error: &io::Error) {
    if error.kind() == io::ErrorKind::BrokenPipe {
        IS_READER_GONE.store(true, Ordering::Relaxed);
    }
}

/// True if the reader of stdout has gone, as far as writing has shown that.
pub(crate) fn is_reader_gone() -> bool {
    IS_READER_GONE.load(Ordering::Relaxed)
}

/// Writes to stdout through one buffer, and returns what failed.
pub(crate) fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let written = match write(&mut out) {
        Ok(()) => out.flush(),
        error => error,
    };
    if let Err(error) = written {
        note_closed_stdout(&error);
        return Err(StdoutError(error).into());
    }
    Ok(())
}

/// Prints text as it is. A reader that closes the pipe has what it wanted.
pub(crate) fn print_text(text: &str) -> Result<()> {
    ignore_closed_pipe(to_stdout(|out| out.write_all(text.as_bytes())))
}

/// Prints a document with one of the two writers; a page in the characters that the locale knows. A
/// reader that closes the pipe has what it wanted.
pub(crate) fn print_document(
    presentation: Presentation,
    json: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    page: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    ignore_closed_pipe(to_stdout(|out| match presentation {
        Presentation::Json => json(out),
        Presentation::Page => write_in_locale(out, page),
    }))
}

/// Closes stdout: its reader sees the end now, although the process may last.
pub(crate) fn close_stdout() {
    if let Ok(null) = File::options().write(true).open("/dev/null") {
        // On an error stdout stays open until the process ends.
        let _ = rustix::stdio::dup2_stdout(null);
    }
}

/// A reader that closes the pipe, such as `head`, has what it wanted: the exit code then tells how
/// the run went.
pub(crate) fn ignore_closed_pipe(printed: Result<()>) -> Result<()> {
    match printed {
        Err(error) if is_closed_stdout(&error) => Ok(()),
        other => other,
    }
}
