//! `diskproof show`: a saved run as it was printed then, or a record or comparison from a file as
//! it is printed today. Measures nothing.

use super::compare;
use crate::failure::{Exit, Failure};
use crate::flags::ColorWhen;
use crate::output_files::OutputFiles;
use crate::saved::{Kept, Saved, find};
use crate::stderr::Verbosity;
use crate::stdout::{commands_page, ignore_closed_pipe, record_page, to_stdout, write_page};
use diskproof_history::Stored;
use diskproof_model::comparison::Comparison;
use diskproof_report::json;
use diskproof_report::terminal::MetricDetail;
use std::path::PathBuf;

/// Print a saved run again, exactly as it was printed then, or a record from a file
#[derive(Debug, clap::Args)]
pub struct ShowFlags {
    /// An id or the beginning of one, latest, latest~1, a label, a file (.json, or .html of a
    /// report; also of a comparison), or - for stdin
    #[arg(value_name = "RUN|FILE", default_value = "latest")]
    pub run: String,
    /// Print the record as JSON
    #[arg(long)]
    pub json: bool,
    /// Print the well-known tool's command for each figure after the result
    #[arg(long)]
    pub commands: bool,
    /// Write the record to a file instead; the format follows the extension, as for 'check'
    /// (repeatable)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub outputs: Vec<PathBuf>,
    /// No notes on stderr
    #[arg(long)]
    pub quiet: bool,
    /// Colour the result
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: ColorWhen,
    /// The history.
    #[command(flatten)]
    pub kept: Kept,
}

/// Shows the run.
pub fn run(show: &ShowFlags) -> anyhow::Result<Exit> {
    let Stored { record, page, .. } = match find(&show.run, show.kept.file())? {
        Saved::Run(stored) => *stored,
        Saved::Comparison(comparison) => return show_comparison(show, &comparison),
    };
    let files = OutputFiles::prepare(&show.outputs)?;
    files.save(
        &record,
        if show.quiet {
            Verbosity::Quiet
        } else {
            Verbosity::Lines
        },
    )?;
    if show.json {
        ignore_closed_pipe(to_stdout(|out| json::write_record(&record, out)))?;
    } else if show.outputs.is_empty() || show.commands {
        let mut page = page.unwrap_or_else(|| record_page(&record));
        let commands = commands_page(&record);
        // A run with --commands has them already.
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
            "{}: a comparison has no commands; show one of its runs with --commands",
            show.run
        ))
        .into());
    }
    compare::prepare(&show.outputs)?;
    compare::save(comparison, &show.outputs)?;
    if show.json || show.outputs.is_empty() {
        let form = if show.json {
            compare::Form::Json
        } else {
            compare::Form::Page(MetricDetail::Telling)
        };
        compare::print(comparison, form, show.color)?;
    }
    Ok(Exit::Done)
}
