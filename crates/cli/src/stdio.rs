//! The result on stdout, with its width, its colours and the characters that the locale knows.
//! Messages go to stderr (`messages`).

mod messages;

use anyhow::Result;
use diskproof_model::comparison::Comparison;
use diskproof_model::fleet::FleetRecord;
use diskproof_model::record::Record;
use diskproof_report::style::{Color, Style};
use diskproof_report::terminal::{self, Detail, FleetDetail, MetricDetail};
use rustix::termios::tcgetwinsize;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use messages::{ProgressLine, Verbosity, eprint_line, eprint_text, progress_columns};

/// The width of a page where the terminal reports none.
const COLUMNS_DEFAULT: usize = 80;

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

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

/// Width and colours of stdout.
pub(crate) fn style(color: ColorWhen) -> Style {
    let stdout = io::stdout();
    let width = match tcgetwinsize(&stdout) {
        Ok(size) if stdout.is_terminal() && size.ws_col > 0 => usize::from(size.ws_col),
        _ => COLUMNS_DEFAULT,
    };
    let color = match color {
        ColorWhen::Always => Color::Ansi,
        // NO_COLOR, CLICOLOR, CLICOLOR_FORCE and TERM, as clap's own pages treat them.
        ColorWhen::Auto
            if anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never =>
        {
            Color::Ansi
        }
        ColorWhen::Auto | ColorWhen::Never => Color::Plain,
    };
    Style { width, color }
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

/// A page in the characters that the locale knows.
pub(crate) fn page_in_locale(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    in_locale(&text(write))
}

fn in_locale(page: &str) -> String {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(|name| std::env::var(name).ok());
    if is_ascii_only(locale) {
        diskproof_report::ascii::transliterate(page)
    } else {
        page.to_owned()
    }
}

/// Writes a page in the characters that the locale knows.
pub(crate) fn write_in_locale(
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    out.write_all(page_in_locale(write).as_bytes())
}

/// The first of these variables that is set decides (POSIX, Base Definitions 8.2). Most containers
/// set none; UTF-8 is assumed there.
fn is_ascii_only(locale: [Option<String>; 3]) -> bool {
    for name in locale.into_iter().flatten() {
        if !name.is_empty() {
            return !name.to_lowercase().replace('-', "").contains("utf8");
        }
    }
    false
}

/// The page of a record, with colours, as wide as stdout.
pub(crate) fn record_page(record: &Record, detail: Detail) -> String {
    text(|out| terminal::write_record(record, detail, &colored(), out))
}

/// The page of a comparison, with colours.
pub(crate) fn comparison_page(comparison: &Comparison, detail: MetricDetail) -> String {
    text(|out| terminal::write_comparison(comparison, detail, &colored(), out))
}

/// The page of a fleet, with colours.
pub(crate) fn fleet_page(fleet: &FleetRecord, detail: FleetDetail) -> String {
    text(|out| terminal::write_fleet(fleet, detail, &colored(), out))
}

/// The page of a record's commands, with colours.
pub(crate) fn commands_page(record: &Record) -> String {
    text(|out| terminal::write_commands(record, &colored(), out))
}

fn colored() -> Style {
    Style {
        color: Color::Ansi,
        ..style(ColorWhen::Auto)
    }
}

fn text(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes).expect("a Vec takes everything");
    String::from_utf8(bytes).expect("pages are made of text")
}

/// Prints a finished page, without its colours where stdout has none, in the characters that the
/// locale knows.
pub(crate) fn write_page(page: &str, color: ColorWhen, out: &mut dyn Write) -> io::Result<()> {
    let text = in_locale(page);
    match style(color).color {
        Color::Ansi => out.write_all(text.as_bytes()),
        Color::Plain => write!(out, "{}", anstream::adapter::strip_str(&text)),
    }
}

/// Lines below a page: where the run was saved, and the prompt.
const LINES_AFTER: usize = 2;

/// Prints the finished page of a record. On a terminal that is shorter than the page, the verdict
/// follows once more, because it has scrolled away.
pub(crate) fn write_record_page(
    record: &Record,
    page: &str,
    color: ColorWhen,
    out: &mut dyn Write,
) -> io::Result<()> {
    write_page(page, color, out)?;
    let rows = match tcgetwinsize(io::stdout()) {
        Ok(size) => usize::from(size.ws_row),
        Err(_) => 0,
    };
    if rows > 0 && page.lines().count() + LINES_AFTER >= rows {
        let again = text(|out| terminal::write_verdict_again(record, &colored(), out));
        write_page(&again, color, out)?;
    }
    Ok(())
}

/// A reader that closes the pipe, such as `head`, has what it wanted: the exit code then tells how
/// the run went.
pub(crate) fn ignore_closed_pipe(printed: Result<()>) -> Result<()> {
    match printed {
        Err(error) if is_closed_stdout(&error) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locale_decides_between_utf8_and_ascii() {
        let set =
            |values: [Option<&str>; 3]| is_ascii_only(values.map(|value| value.map(str::to_owned)));
        assert!(set([None, None, Some("C")]));
        assert!(set([Some("POSIX"), None, Some("de_DE.UTF-8")]));
        assert!(set([Some(""), Some("de_DE.ISO-8859-1"), None]));
        assert!(!set([None, None, Some("C.UTF-8")]));
        assert!(!set([None, Some("en_US.utf8"), Some("C")]));
        assert!(!set([None, None, None]));
    }
}
