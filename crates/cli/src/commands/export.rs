//! `diskproof export`: writes a saved run or comparison to files of any format. Measures nothing.

use super::compare;
use crate::failure::Exit;
use crate::flags::output_help;
use crate::output_files::OutputFiles;
use crate::saved::{HistoryFileFlag, SavedDocument, find};
use crate::stderr::Verbosity;
use std::path::PathBuf;

/// Write a saved run to files
#[derive(Debug, clap::Args)]
pub struct ExportFlags {
    /// An id or its beginning, latest, latest~1, a label, or a file (.json, or the .html page of a
    /// report or comparison)
    #[arg(value_name = "RUN|FILE")]
    pub run: String,
    /// Files to write.
    #[arg(value_name = "OUTPUT", required_unless_present = "named", help = output_help(|_| true))]
    pub outputs: Vec<PathBuf>,
    /// The same as OUTPUT, as in other verbs (repeatable)
    #[arg(short = 'o', long = "output", value_name = "OUTPUT")]
    pub named: Vec<PathBuf>,
    /// No notes on stderr
    #[arg(long)]
    pub quiet: bool,
    /// The history.
    #[command(flatten)]
    pub history_file: HistoryFileFlag,
}

/// Runs the verb.
pub fn run(export: &ExportFlags) -> anyhow::Result<Exit> {
    let outputs = [&export.outputs[..], &export.named[..]].concat();
    match find(&export.run, export.history_file.file())? {
        SavedDocument::Run(stored) => {
            let verbosity = if export.quiet {
                Verbosity::Quiet
            } else {
                Verbosity::Lines
            };
            OutputFiles::prepare(&outputs)?.save(&stored.record, verbosity)?;
        }
        SavedDocument::Comparison(comparison) => {
            compare::prepare(&outputs)?;
            compare::save(&comparison, &outputs)?;
        }
    }
    Ok(Exit::Done)
}
