//! Where words go: the result to stdout, everything else to stderr, records to files. Knows the
//! terminal; nobody else does.

use crate::args::{ColorWhen, Measuring};
use crate::failure::Failure;
use crate::formats::{Document, Format};
use crate::patience::{Pending, Waited};
use crate::saved::{self, Remark};
use anyhow::Context as _;
use diskproof_model::plan::Plan;
use diskproof_model::record::Record;
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::format_duration;
use diskproof_report::style::{Color, Style};
use diskproof_report::{ascii, json, terminal};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Terminals that tell no width, or a silly one, are taken for at least this wide.
const COLUMNS_LEAST: usize = 40;

const MOVES_EVERY: Duration = Duration::from_millis(100);
/// `^C` and the cursor.
const COLUMNS_FOR_ECHO: usize = 3;

/// How the program speaks while it works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// A moving line on a terminal.
    Terminal,
    /// A plain line per step.
    Lines,
    /// Not at all.
    Silent,
}

impl Voice {
    /// As the flags and stderr would have it.
    pub fn of(measuring: &Measuring) -> Self {
        match () {
            () if measuring.quiet => Self::Silent,
            () if io::stderr().is_terminal()
                && std::env::var_os("TERM").is_none_or(|term| term != "dumb") =>
            {
                Self::Terminal
            }
            () => Self::Lines,
        }
    }

    /// Says a line on stderr, unless silent.
    pub fn say(self, line: &str) {
        if self != Self::Silent {
            complain(line);
        }
    }
}

/// A line on stderr, broken between words on a terminal. A closed stderr is no reason to stop.
pub fn complain(line: &str) {
    let width = io::stderr().is_terminal().then(stderr_columns);
    let _ = writeln!(
        io::stderr().lock(),
        "{}",
        terminal::message(&format!("diskproof: {line}"), width)
    );
}

/// A line on the terminal that is written over and over. The cursor stays right behind it: what the
/// terminal echoes for Ctrl-C then stands on the same line, and goes away with it.
#[derive(Debug, Default)]
pub struct MovingLine {
    shown: Option<Instant>,
}

impl MovingLine {
    /// Whether the eye could follow another one.
    pub fn is_due(&self) -> bool {
        self.shown
            .is_none_or(|shown| shown.elapsed() >= MOVES_EVERY)
    }

    /// Shows as much of the text as fits.
    pub fn show(&mut self, text: &str) {
        self.shown = Some(Instant::now());
        let text: String = text
            .chars()
            .take(stderr_columns() - COLUMNS_FOR_ECHO)
            .collect();
        self.write(&text);
    }

    /// Leaves an empty line, and the cursor at its start.
    pub fn clear(&mut self) {
        if self.shown.take().is_some() {
            self.write("");
        }
    }

    /// Carriage return, then EL of ECMA-48: what stood there is erased. A closed stderr is no
    /// reason to stop.
    fn write(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        let _ = write!(stderr, "\r\x1b[K{text}").and_then(|()| stderr.flush());
    }
}

/// Width of the terminal that stderr is.
pub fn stderr_columns() -> usize {
    rustix::termios::tcgetwinsize(io::stderr())
        .map_or(0, |size| usize::from(size.ws_col))
        .max(COLUMNS_LEAST)
}

/// Whether the reader of stdout went away.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|e| e.downcast_ref::<io::Error>())
        .any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// Width and colours for stdout.
pub fn style(color: ColorWhen) -> Style {
    let stdout = io::stdout();
    let width = if stdout.is_terminal() {
        rustix::termios::tcgetwinsize(&stdout).map_or(80, |size| usize::from(size.ws_col))
    } else {
        80
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
    Style {
        width: if width == 0 { 80 } else { width },
        color,
    }
}

/// Writes to stdout through one buffer, and reports what went wrong.
pub fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    write(&mut out)
        .and_then(|()| out.flush())
        .context("stdout: the result could not be written")
}

/// Lets go of stdout, so that whoever reads it sees its end now, although the process may last.
pub fn leave_stdout() {
    if let Ok(nowhere) = File::options().write(true).open("/dev/null") {
        // It stays as it is otherwise.
        let _ = rustix::stdio::dup2_stdout(nowhere);
    }
}

/// The page in the characters that the locale knows.
fn in_locale(page: &str) -> String {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(|name| std::env::var(name).ok());
    if is_ascii_only(locale) {
        ascii::transliterate(page)
    } else {
        page.to_owned()
    }
}

/// Writes a page in the characters that the locale knows.
pub fn write_in_locale(
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    out.write_all(in_locale(&text(write)).as_bytes())
}

/// By the first of these variables that is set (POSIX, Base Definitions 8.2). Where none is, as in
/// most containers, the terminal is one of today.
fn is_ascii_only(locale: [Option<String>; 3]) -> bool {
    let locale = locale
        .into_iter()
        .flatten()
        .find(|locale| !locale.is_empty());
    locale.is_some_and(|locale| !locale.to_lowercase().replace('-', "").contains("utf8"))
}

/// The files that a record will be saved to; tried out before the run, so that a wrong path is
/// known at once and not after it.
#[derive(Debug)]
pub struct Savings<'a> {
    paths: &'a [PathBuf],
}

impl<'a> Savings<'a> {
    /// Tries each out: a run that is killed leaves nothing.
    pub fn prepare(paths: &'a [PathBuf]) -> Result<Self, Failure> {
        for path in paths {
            let name = path.display();
            if Format::of(path).is_none() {
                let known = Format::known();
                return Err(Failure::Usage(format!(
                    "-o {name}: the format follows the extension, and this one is unknown; use \
                     {known}"
                )));
            }
            try_out(path)?;
        }
        Ok(Self { paths })
    }

    /// Saves the record to all files, and says which ones where they have other names. One that
    /// fails does not keep the others from being saved.
    pub fn save(&self, record: &Record, voice: Voice) -> anyhow::Result<()> {
        self.paths
            .iter()
            .map(|path| save_to(record, path, voice))
            .fold(Ok(()), anyhow::Result::and)
    }

    /// Begins to save the record to all files; each by itself, so that one that fails or hangs does
    /// not keep the others from being saved.
    fn start(
        &self,
        record: &Arc<Record>,
        voice: Voice,
    ) -> Vec<(&'a Path, Pending<anyhow::Result<()>>)> {
        let start = |path: &'a PathBuf| {
            let (record, own) = (Arc::clone(record), path.clone());
            (
                path.as_path(),
                Pending::start(move || save_to(&record, &own, voice)),
            )
        };
        self.paths.iter().map(start).collect()
    }
}

/// What there is to say about a file on a filesystem that does not answer.
fn stuck(path: &Path, limit: Duration) -> anyhow::Error {
    let waited = format_duration(limit.as_nanos() as u64);
    let (name, left) = (path.display(), neighbour_of(path));
    anyhow::anyhow!(
        "-o {name}: its filesystem did not answer for {waited}, so the record is not saved there; \
         {} may be left behind",
        left.display()
    )
}

fn save_to(record: &Record, path: &Path, voice: Voice) -> anyhow::Result<()> {
    save(record, path, voice)
        .with_context(|| format!("-o {}: the record could not be saved", path.display()))
}

fn save(record: &Record, path: &Path, voice: Voice) -> anyhow::Result<()> {
    let format =
        Format::of(path).context("the format follows the extension, and this one is unknown")?;
    let documents = format.documents(record, path);
    anyhow::ensure!(!documents.is_empty(), format.why_none());
    for document in &documents {
        let saved = save_document(document);
        if document.path == path {
            saved?
        } else {
            saved.with_context(|| document.path.display().to_string())?
        }
    }
    if documents.iter().any(|document| document.path != path) {
        let names: Vec<String> = documents
            .iter()
            .map(|document| document.path.display().to_string())
            .collect();
        voice.say(&format!("wrote {}", names.join(", ")));
    }
    Ok(())
}

/// Makes a file beside the one that will be written, and takes it away again.
pub fn try_out(path: &Path) -> Result<(), Failure> {
    let name = path.display();
    if path.is_dir() {
        return Err(Failure::Usage(format!(
            "-o {name}: is a directory; name a file"
        )));
    }
    let tried = create_neighbour(path).and_then(|(neighbour, _)| std::fs::remove_file(neighbour));
    tried.map_err(|error| {
        let folder = path
            .parent()
            .filter(|p| !p.as_os_str().is_empty())
            .unwrap_or(Path::new("."))
            .display();
        Failure::Usage(format!(
            "-o {name}: no file can be made in {folder}: {error}; name a folder that you may \
             write to"
        ))
    })
}

/// Under another name first, so that a file of this name is whole at every moment.
pub fn save_document(document: &Document<'_>) -> io::Result<()> {
    let path = &document.path;
    let (neighbour, file) = create_neighbour(path)?;
    let mut out = BufWriter::new(&file);
    let written = (document.write)(&mut out)
        .and_then(|()| out.flush())
        .and_then(|()| file.sync_all());
    let kept = written.and_then(|()| std::fs::rename(&neighbour, path));
    if kept.is_err() {
        let _ = std::fs::remove_file(&neighbour);
    }
    kept
}

fn neighbour_of(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.unfinished", std::process::id()));
    path.with_file_name(name)
}

fn create_neighbour(path: &Path) -> io::Result<(PathBuf, File)> {
    let neighbour = neighbour_of(path);
    let file = File::options()
        .write(true)
        .create_new(true)
        .open(&neighbour)?;
    Ok((neighbour, file))
}

/// Prints a plan that is not carried out.
pub fn show_plan(
    plan: &Plan,
    targets: &[TargetIdentity],
    measuring: &Measuring,
) -> anyhow::Result<()> {
    unless_unread(to_stdout(|out| match measuring.json {
        true => json::write_plan(plan, targets, out),
        false => write_in_locale(out, |page| {
            terminal::write_plan(plan, targets, &style(measuring.color), page)
        }),
    }))
}

/// What came of printing and saving.
pub struct Delivery {
    /// What went wrong.
    pub outcome: anyhow::Result<()>,
    /// Files whose filesystems did not answer.
    pub hung: Vec<String>,
}

/// Prints and saves what came of a run; what does not answer is waited for up to `limit`.
pub fn deliver(
    record: &Arc<Record>,
    savings: &Savings<'_>,
    measuring: &Measuring,
    limit: Duration,
) -> Delivery {
    // Saved first: a reader that goes away (`| head`) must not cost the record.
    let voice = Voice::of(measuring);
    let page = page(record, measuring);
    let files = savings.start(record, voice);
    let kept = {
        let (record, page, keeping) = (Arc::clone(record), page.clone(), measuring.keeping.clone());
        Pending::start(move || saved::keep(&record, &page, &keeping))
    };
    let (mut outcome, mut hung) = (Ok(()), Vec::new());
    for (path, pending) in files {
        outcome = outcome.and(match pending.wait(limit) {
            Waited::Done(saved) => saved,
            Waited::InVain => {
                hung.push(path.display().to_string());
                Err(stuck(path, limit))
            }
        });
    }
    let remarks = match kept.wait(limit) {
        Waited::Done(remarks) => remarks,
        Waited::InVain => {
            hung.push("the history".to_owned());
            vec![Remark::Warning(format!(
                "the run was not saved: the history did not answer for {}",
                format_duration(limit.as_nanos() as u64)
            ))]
        }
    };
    let printed = to_stdout(|out| match measuring.json {
        true => json::write_record(record, out),
        false => write_page(&page, measuring.color, out),
    });
    remark(&remarks, voice);
    Delivery {
        outcome: outcome.and(unless_unread(printed)),
        hung,
    }
}

/// What a run prints: its page, and the commands where they are asked for.
fn page(record: &Record, measuring: &Measuring) -> String {
    let page = record_page(record);
    if measuring.commands {
        format!("{page}\n{}", commands_page(record))
    } else {
        page
    }
}

/// The page of a record, with colours, as wide as stdout is.
pub fn record_page(record: &Record) -> String {
    text(|out| {
        terminal::write_record(
            record,
            &Style {
                color: Color::Ansi,
                ..style(ColorWhen::Auto)
            },
            out,
        )
    })
}

/// The page of its commands, with colours.
pub fn commands_page(record: &Record) -> String {
    text(|out| {
        terminal::write_commands(
            record,
            &Style {
                color: Color::Ansi,
                ..style(ColorWhen::Auto)
            },
            out,
        )
    })
}

fn text(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes).expect("a Vec takes everything");
    String::from_utf8(bytes).expect("pages are made of text")
}

/// Prints a page that was made before, without its colours where stdout has none, and in the
/// characters that it knows.
pub fn write_page(page: &str, color: ColorWhen, out: &mut dyn Write) -> io::Result<()> {
    let page = in_locale(page);
    match style(color).color {
        Color::Ansi => out.write_all(page.as_bytes()),
        Color::Plain => write!(out, "{}", anstream::adapter::strip_str(&page)),
    }
}

/// Says what there is to say on stderr; warnings also where notes are not wanted.
pub fn remark(remarks: &[Remark], voice: Voice) {
    for remark in remarks {
        match remark {
            Remark::Note(text) => voice.say(text),
            Remark::Warning(text) => complain(&format!("warning: {text}")),
        }
    }
}

/// A reader that goes away (`| head`) has seen enough: how the run went still decides the exit
/// code.
pub fn unless_unread(printed: anyhow::Result<()>) -> anyhow::Result<()> {
    printed.or_else(|error| {
        if is_broken_pipe(&error) {
            Ok(())
        } else {
            Err(error)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_decides_between_utf8_and_ascii() {
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
