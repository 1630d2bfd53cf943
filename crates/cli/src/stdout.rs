//! The result on stdout: its width, its colours and the characters that the locale knows.

use crate::failure::{StdoutError, is_closed_stdout};
use crate::flags::{ColorWhen, MeasuringFlags};
use diskproof_model::comparison::Comparison;
use diskproof_model::plan::Plan;
use diskproof_model::record::Record;
use diskproof_model::target::TargetIdentity;
use diskproof_report::style::{Color, Style};
use diskproof_report::terminal::{Detail, MetricDetail};
use diskproof_report::{ascii, json, terminal};
use rustix::termios::tcgetwinsize;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};

const COLUMNS_DEFAULT: usize = 80;

/// Width and colours of stdout.
pub(crate) fn style(color: ColorWhen) -> Style {
    let stdout = io::stdout();
    let size = stdout.is_terminal().then(|| tcgetwinsize(&stdout));
    let width = size
        .and_then(Result::ok)
        .map(|size| usize::from(size.ws_col));
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
    Style {
        width: width.filter(|width| *width > 0).unwrap_or(COLUMNS_DEFAULT),
        color,
    }
}

/// Writes to stdout through one buffer, and returns what failed.
pub(crate) fn to_stdout(
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    write(&mut out)
        .and_then(|()| out.flush())
        .map_err(|error| StdoutError(error).into())
}

/// Prints text as it is. A reader that closes the pipe has what it wanted.
pub(crate) fn print_text(text: &str) -> anyhow::Result<()> {
    ignore_closed_pipe(to_stdout(|out| out.write_all(text.as_bytes())))
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
        ascii::transliterate(page)
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
    let mut set = locale.into_iter().flatten();
    let locale = set.find(|locale| !locale.is_empty());
    locale.is_some_and(|locale| !locale.to_lowercase().replace('-', "").contains("utf8"))
}

/// Prints a plan that is not run.
pub(crate) fn print_plan(
    plan: &Plan,
    targets: &[TargetIdentity],
    flags: &MeasuringFlags,
) -> anyhow::Result<()> {
    ignore_closed_pipe(to_stdout(|out| {
        if flags.prints_json() {
            return json::write_plan(plan, targets, out);
        }
        write_in_locale(out, |page| {
            terminal::write_plan(plan, targets, &style(flags.color), page)
        })
    }))
}

/// The page of a record, with colours, as wide as stdout.
pub(crate) fn record_page(record: &Record, detail: Detail) -> String {
    text(|out| terminal::write_record(record, detail, &colored(), out))
}

/// The page of a comparison, with colours.
pub(crate) fn comparison_page(comparison: &Comparison, detail: MetricDetail) -> String {
    text(|out| terminal::write_comparison(comparison, detail, &colored(), out))
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
    let page = in_locale(page);
    match style(color).color {
        Color::Ansi => out.write_all(page.as_bytes()),
        Color::Plain => write!(out, "{}", anstream::adapter::strip_str(&page)),
    }
}

/// Prints the finished page of a record. On a terminal that is shorter than the page, the verdict
/// follows once more, because it has scrolled away.
pub(crate) fn write_record_page(
    record: &Record,
    page: &str,
    color: ColorWhen,
    out: &mut dyn Write,
) -> io::Result<()> {
    write_page(page, color, out)?;
    let rows = tcgetwinsize(io::stdout()).map_or(0, |size| usize::from(size.ws_row));
    if rows > 0 && page.lines().count() >= rows {
        let again = text(|out| terminal::write_verdict_again(record, &colored(), out));
        write_page(&again, color, out)?;
    }
    Ok(())
}

/// A reader that closes the pipe, such as `head`, has what it wanted: the exit code then tells how
/// the run went.
pub(crate) fn ignore_closed_pipe(printed: anyhow::Result<()>) -> anyhow::Result<()> {
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
