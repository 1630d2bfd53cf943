//! `diskproof export`: a saved run or comparison into files of any format. Measures nothing.

use super::compare;
use crate::failure::Exit;
use crate::output_files::OutputFiles;
use crate::saved::{Kept, Saved, find};
use crate::stderr::Verbosity;
use std::path::PathBuf;

/// Write a saved run to files
#[derive(Debug, clap::Args)]
pub struct ExportFlags {
    /// An id or the beginning of one, latest, latest~1, a label, or a file (.json, or .html of a
    /// report; also of a comparison)
    #[arg(value_name = "RUN|FILE")]
    pub run: String,
    /// Files to write; the format follows the extension: .json, .html, .csv, .svg, .gnuplot,
    /// .hlog, .prom, .fio.json (see docs/formats.md); of a comparison .json, .html
    #[arg(value_name = "OUTPUT", required_unless_present = "named")]
    pub outputs: Vec<PathBuf>,
    /// The same, as other verbs have it (repeatable)
    #[arg(short = 'o', long = "output", value_name = "OUTPUT")]
    pub named: Vec<PathBuf>,
    /// No notes on stderr
    #[arg(long)]
    pub quiet: bool,
    /// The history.
    #[command(flatten)]
    pub kept: Kept,
}

/// Writes the files.
pub fn run(export: &ExportFlags) -> anyhow::Result<Exit> {
    let outputs = [&export.outputs[..], &export.named[..]].concat();
    match find(&export.run, export.kept.file())? {
        Saved::Run(stored) => {
            let verbosity = if export.quiet {
                Verbosity::Quiet
            } else {
                Verbosity::Lines
            };
            OutputFiles::prepare(&outputs)?.save(&stored.record, verbosity)?;
        }
        Saved::Comparison(comparison) => {
            compare::prepare(&outputs)?;
            compare::save(&comparison, &outputs)?;
        }
    }
    Ok(Exit::Done)
}
