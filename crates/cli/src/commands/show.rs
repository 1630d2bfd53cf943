//! `diskproof show`: a saved run as it was printed then, or a record from a file as it is printed today. Measures nothing.

use crate::args::ColorWhen;
use crate::failure::Exit;
use crate::output::{Savings, Voice, commands_page, record_page, to_stdout, unless_unread, write_page};
use crate::saved::{Kept, find};
use diskproof_history::Stored;
use diskproof_report::json;
use std::path::PathBuf;

/// `diskproof show`
#[derive(Debug, clap::Args)]
pub struct Show {
    /// An id or the beginning of one, latest, latest~1, a label, a file (.json, or .html of a report), or - for stdin
    #[arg(value_name = "RUN|FILE", default_value = "latest")]
    pub run: String,
    /// Print the record as JSON
    #[arg(long)]
    pub json: bool,
    /// Print the well-known tool's command for each figure after the result
    #[arg(long)]
    pub commands: bool,
    /// Write the record to a file instead; the format follows the extension, as for 'check' (repeatable)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub outputs: Vec<PathBuf>,
    /// Colour the result
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: ColorWhen,
    /// The history.
    #[command(flatten)]
    pub kept: Kept,
}

/// Shows the run.
pub fn show(show: &Show) -> anyhow::Result<Exit> {
    let Stored { record, page, .. } = find(&show.run, show.kept.file())?;
    let savings = Savings::prepare(&show.outputs)?;
    savings.save(&record, Voice::Lines)?;
    if show.json {
        unless_unread(to_stdout(|out| json::write_record(&record, out)))?;
    } else if show.outputs.is_empty() || show.commands {
        let mut page = page.unwrap_or_else(|| record_page(&record));
        let commands = commands_page(&record);
        // A run with --commands has them already.
        if show.commands && !page.ends_with(&commands) {
            page = format!("{page}\n{commands}");
        }
        unless_unread(to_stdout(|out| write_page(&page, show.color, out)))?;
    }
    Ok(Exit::Done)
}
