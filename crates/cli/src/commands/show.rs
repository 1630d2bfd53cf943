//! `diskproof show`: prints a saved run as it was printed originally, or a record or comparison
//! from a file. Measures nothing.

use super::compare;
use crate::failure::{Exit, Failure};
use crate::flags::{ColorWhen, files, is_stdout, parse_page_name};
use crate::output_files::OutputFiles;
use crate::saved::{HistoryFileFlag, SavedDocument, find};
use crate::stderr::Verbosity;
use crate::stdout::{commands_page, ignore_closed_pipe, record_page, to_stdout, write_page};
use diskproof_history::StoredRun;
use diskproof_model::comparison::Comparison;
use diskproof_report::json;
use diskproof_report::terminal::MetricDetail;
use std::path::PathBuf;

/// Print a saved run again, exactly as it was printed then, or a record from a file
#[derive(Debug, clap::Args)]
pub struct ShowFlags {
    /// An id or its beginning, latest, latest~1, a label, a file (.json, or the .html page of a
    /// report or comparison), or - for stdin
    #[arg(value_name = "RUN|FILE", default_value = "latest")]
    pub run: String,
    /// Print the record as JSON; the same as -o -
    #[arg(long)]
    pub json: bool,
    /// Also print a command of a well-known tool for each figure
    #[arg(long)]
    pub commands: bool,
    /// Write the record to a file instead of printing it; the extension selects the format
    /// (repeatable)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub outputs: Vec<PathBuf>,
    /// Save a page, like -o FILE.html (repeatable)
    #[arg(long, value_name = "FILE.html", value_parser = parse_page_name)]
    pub html: Vec<PathBuf>,
    /// No notes on stderr
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// Colour the result
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: ColorWhen,
    /// The history.
    #[command(flatten)]
    pub history_file: HistoryFileFlag,
}

impl ShowFlags {
    fn prints_json(&self) -> bool {
        self.json || self.outputs.iter().any(|path| is_stdout(path))
    }
}

/// Runs the verb.
pub fn run(show: &ShowFlags) -> anyhow::Result<Exit> {
    let StoredRun { record, page, .. } = match find(&show.run, show.history_file.file())? {
        SavedDocument::Run(stored) => *stored,
        SavedDocument::Comparison(comparison) => return show_comparison(show, &comparison),
    };
    let outputs = files(&[&show.outputs, &show.html]);
    let files = OutputFiles::prepare(&outputs)?;
    files.save(
        &record,
        if show.quiet {
            Verbosity::Quiet
        } else {
            Verbosity::Lines
        },
    )?;
    if show.prints_json() {
        ignore_closed_pipe(to_stdout(|out| json::write_record(&record, out)))?;
    } else if outputs.is_empty() || show.commands {
        let mut page = page.unwrap_or_else(|| record_page(&record));
        let commands = commands_page(&record);
        // The saved page of a run with --commands already ends with them.
        if show.commands && !page.ends_with(&commands) {
            page = format!("{page}\n{commands}");
        }
        ignore_closed_pipe(to_stdout(|out| write_page(&page, show.color, out)))?;
    }
    Ok(Exit::Done)
}

fn show_comparison(show: &ShowFlags, comparison: &Comparison) -> anyhow::Result<Exit> {
    if show.commands {
        return Err(Failure::Usage(format!(
            "{}: a comparison has no commands. Show one of its runs with --commands",
            show.run
        ))
        .into());
    }
    let outputs = files(&[&show.outputs, &show.html]);
    compare::prepare(&outputs)?;
    compare::save(comparison, &outputs)?;
    if show.prints_json() || outputs.is_empty() {
        let form = if show.prints_json() {
            compare::Form::Json
        } else {
            compare::Form::Page(MetricDetail::Independent)
        };
        compare::print(comparison, form, show.color)?;
    }
    Ok(Exit::Done)
}
