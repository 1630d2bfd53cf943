//! `diskproof export`: a saved run or comparison into files of any format. Measures nothing.

use super::compare;
use crate::failure::Exit;
use crate::output::{Savings, Voice};
use crate::saved::{Kept, Saved, find};
use std::path::PathBuf;

/// `diskproof export`
#[derive(Debug, clap::Args)]
pub struct Export {
    /// An id or the beginning of one, latest, latest~1, a label, or a file (.json, or .html of a report; also of a comparison)
    #[arg(value_name = "RUN|FILE")]
    pub run: String,
    /// Files to write; the format follows the extension, as for 'check -o'
    #[arg(value_name = "OUTPUT", required = true)]
    pub outputs: Vec<PathBuf>,
    /// No notes on stderr
    #[arg(long)]
    pub quiet: bool,
    /// The history.
    #[command(flatten)]
    pub kept: Kept,
}

/// Writes the files.
pub fn export(export: &Export) -> anyhow::Result<Exit> {
    match find(&export.run, export.kept.file())? {
        Saved::Run(stored) => {
            let voice = if export.quiet { Voice::Silent } else { Voice::Lines };
            Savings::prepare(&export.outputs)?.save(&stored.record, voice)?;
        }
        Saved::Comparison(comparison) => {
            compare::prepare(&export.outputs)?;
            compare::save(&comparison, &export.outputs)?;
        }
    }
    Ok(Exit::Done)
}
