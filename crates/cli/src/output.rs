//! Where words go: the result to stdout, everything else to stderr, records to files. Knows the terminal; nobody else does.

use crate::args::{ColorWhen, Measuring};
use crate::failure::Failure;
use anyhow::Context as _;
use diskproof_model::record::Record;
use diskproof_report::style::{Color, Style};
use diskproof_report::{json, terminal};
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

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
            () if io::stderr().is_terminal() => Self::Terminal,
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

/// A line on stderr. A closed stderr is no reason to stop.
pub fn complain(line: &str) {
    let _ = writeln!(io::stderr().lock(), "diskproof: {line}");
}

/// Whether the reader of stdout went away.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|e| e.downcast_ref::<io::Error>()).any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// Width and colours for stdout.
pub fn style(color: ColorWhen) -> Style {
    let stdout = io::stdout();
    let on_terminal = stdout.is_terminal();
    let width = if on_terminal { rustix::termios::tcgetwinsize(&stdout).map_or(80, |size| usize::from(size.ws_col)) } else { 80 };
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let color = match color {
        ColorWhen::Always => Color::Ansi,
        ColorWhen::Auto if on_terminal && !no_color => Color::Ansi,
        ColorWhen::Auto | ColorWhen::Never => Color::Plain,
    };
    Style { width: if width == 0 { 80 } else { width }, color }
}

/// Writes to stdout through one buffer, and reports what went wrong.
pub fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    write(&mut out).and_then(|()| out.flush()).context("stdout: the result could not be written")
}

/// The files that a record will be saved to; made before the run, so that a full disk or a wrong path is known at once and not after it.
#[derive(Debug)]
pub struct Savings {
    files: Vec<Saving>,
}

/// A file under way: its content goes to a neighbour first, so that an older record is never lost to a failed write.
#[derive(Debug)]
struct Saving {
    path: PathBuf,
    unfinished: PathBuf,
    file: File,
}

impl Savings {
    /// Makes a neighbour of each file.
    pub fn prepare(paths: &[PathBuf]) -> Result<Self, Failure> {
        let mut savings = Self { files: Vec::new() };
        for path in paths {
            if path.extension().is_none_or(|extension| extension != "json") {
                return Err(Failure::Usage(format!(
                    "-o {}: the format follows the extension, and this one is unknown; use .json",
                    path.display()
                )));
            }
            if path.is_dir() {
                return Err(Failure::Usage(format!("-o {}: is a directory; name a file", path.display())));
            }
            let unfinished = neighbour(path);
            let file = File::options().write(true).create_new(true).open(&unfinished).map_err(|error| {
                let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
                Failure::Usage(format!(
                    "-o {}: no file can be made in {}: {error}; name a folder that you may write to",
                    path.display(),
                    folder.display()
                ))
            })?;
            savings.files.push(Saving { path: path.clone(), unfinished, file });
        }
        Ok(savings)
    }

    /// Saves the record to all files.
    pub fn save(mut self, record: &Record) -> anyhow::Result<()> {
        for saving in std::mem::take(&mut self.files) {
            let mut out = BufWriter::new(&saving.file);
            let written = json::write_record(record, &mut out).and_then(|()| out.flush()).and_then(|()| saving.file.sync_all());
            drop(out);
            let kept = written.and_then(|()| std::fs::rename(&saving.unfinished, &saving.path));
            if kept.is_err() {
                let _ = std::fs::remove_file(&saving.unfinished);
            }
            kept.with_context(|| format!("-o {}: the record could not be saved", saving.path.display()))?;
        }
        Ok(())
    }
}

impl Drop for Savings {
    fn drop(&mut self) {
        // A run that failed before there was a record leaves nothing behind.
        for saving in &self.files {
            let _ = std::fs::remove_file(&saving.unfinished);
        }
    }
}

fn neighbour(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.unfinished", std::process::id()));
    path.with_file_name(name)
}

/// Prints and saves what came of a run.
pub fn deliver(record: &Record, savings: Savings, measuring: &Measuring) -> anyhow::Result<()> {
    // Saved first: a reader that goes away (`| head`) must not cost the record.
    let saved = savings.save(record);
    let printed = to_stdout(|out| {
        if measuring.json {
            return json::write_record(record, out);
        }
        let style = style(measuring.color);
        terminal::write_record(record, &style, out)?;
        if measuring.commands {
            writeln!(out)?;
            terminal::write_commands(record, &style, out)?;
        }
        Ok(())
    });
    saved.and(printed)
}
