//! Makes pages as text. A finished page has colours, because it is made before its output is known:
//! it may be printed, saved, or both. It loses them when it is written where none are wanted.

use super::style::{ColorWhen, style};
use diskproof_model::comparison::Comparison;
use diskproof_model::fleet::FleetRecord;
use diskproof_model::record::Record;
use diskproof_report::style::{Color, Style};
use diskproof_report::terminal::{self, FleetDetail, MetricDetail};
use rustix::termios::tcgetwinsize;
use std::io::{self, Write};

/// The page of a comparison, with colours, as wide as stdout.
fn colored_comparison_page(comparison: &Comparison, detail: MetricDetail) -> String {
    collect_text(|out| terminal::write_comparison(comparison, detail, &colored_style(), out))
}

/// The page of a fleet, with colours, as wide as stdout.
pub(crate) fn colored_fleet_page(fleet: &FleetRecord, detail: FleetDetail) -> String {
    collect_text(|out| terminal::write_fleet(fleet, detail, &colored_style(), out))
}

/// The page of a record's commands, with colours, as wide as stdout.
pub(crate) fn colored_commands_page(record: &Record) -> String {
    collect_text(|out| terminal::write_commands(record, &colored_style(), out))
}

/// The style of stdout, with colours whether or not it has some.
pub(crate) fn colored_style() -> Style {
    Style {
        color: Color::Ansi,
        ..style(ColorWhen::Auto)
    }
}

/// The text that `write` writes.
fn collect_text(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes).expect("a Vec takes everything");
    String::from_utf8(bytes).expect("pages are made of text")
}

/// Writes a page with colours to `out`, which leads to stdout: without the colours where stdout
/// shows none, in the characters that the locale knows.
pub(crate) fn write_colored_page(
    page: &str,
    color: ColorWhen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let page = replace_unknown_characters(page);
    match style(color).color {
        Color::Ansi => out.write_all(page.as_bytes()),
        Color::Plain => write!(out, "{}", anstream::adapter::strip_str(&page)),
    }
}

/// Lines below a page: where the run was saved, and the prompt.
const LINES_AFTER: usize = 2;

/// As [`write_colored_page`], for the page of `record`. On a terminal that is shorter than the
/// page, the verdict follows once more, because it has scrolled away.
pub(crate) fn write_record_page(
    record: &Record,
    page: &str,
    color: ColorWhen,
    out: &mut dyn Write,
) -> io::Result<()> {
    write_colored_page(page, color, out)?;
    if is_longer_than_screen(page) {
        let verdict =
            collect_text(|out| terminal::write_verdict_again(record, &colored_style(), out));
        write_colored_page(&verdict, color, out)?;
    }
    Ok(())
}

/// Writes the page of a comparison to `out`, which leads to stdout. On a terminal that is shorter
/// than the page, the answers follow once more.
pub(crate) fn write_comparison_page(
    comparison: &Comparison,
    detail: MetricDetail,
    color: ColorWhen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let page = colored_comparison_page(comparison, detail);
    write_colored_page(&page, color, out)?;
    if is_longer_than_screen(&page) {
        let answers =
            collect_text(|out| terminal::write_answers_again(comparison, &colored_style(), out));
        write_colored_page(&answers, color, out)?;
    }
    Ok(())
}

/// True if stdout is a terminal from which the first lines of a page scroll away.
fn is_longer_than_screen(page: &str) -> bool {
    let rows = match tcgetwinsize(io::stdout()) {
        Ok(size) => usize::from(size.ws_row),
        Err(_) => 0,
    };
    rows > 0 && page.lines().count() + LINES_AFTER >= rows
}

/// The text that `write` writes, in the characters that the locale knows.
pub(crate) fn page_in_locale(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    replace_unknown_characters(&collect_text(write))
}

/// Passes what `write` writes on to `out`, in the characters that the locale knows.
pub(crate) fn write_in_locale(
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    out.write_all(page_in_locale(write).as_bytes())
}

/// Replaces the characters that the locale does not know by ASCII ones.
fn replace_unknown_characters(page: &str) -> String {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(|name| std::env::var(name).ok());
    if is_ascii_only(locale) {
        diskproof_report::ascii::transliterate(page)
    } else {
        page.to_owned()
    }
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
