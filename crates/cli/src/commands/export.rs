//! `diskproof export`: a saved run into files of any format. Measures nothing.

use crate::failure::Exit;
use crate::output::{Savings, Voice};
use crate::saved::{Kept, load};
use std::path::PathBuf;

/// `diskproof export`
#[derive(Debug, clap::Args)]
pub struct Export {
    /// An id or the beginning of one, latest, latest~1, a label, or a file (.json, or .html of a report)
    #[arg(value_name = "RUN|FILE")]
    pub run: String,
    /// Files to write; the format follows the extension, as for 'check -o'
    #[arg(value_name = "OUTPUT", required = true)]
    pub outputs: Vec<PathBuf>,
    /// The history.
    #[command(flatten)]
    pub kept: Kept,
}

/// Writes the files.
pub fn export(export: &Export) -> anyhow::Result<Exit> {
    let record = load(&export.run, export.kept.file())?;
    Savings::prepare(&export.outputs)?.save(&record, Voice::Lines)?;
    Ok(Exit::Done)
}
