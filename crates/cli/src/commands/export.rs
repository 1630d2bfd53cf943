//! `diskproof export`: writes a saved run or comparison to files of any format. Measures nothing.

use super::{compare, merge};
use crate::failure::{Exit, Failure};
use crate::flags::{is_stdout, output_files, output_help};
use crate::output_files::{Trial, open_outputs, save_records};
use crate::saved::{HistoryFileFlag, SavedDocument, anonymize, find};
use crate::stdio::{ColorWhen, Presentation, Verbosity, ignore_closed_pipe, to_stdout};
use diskproof_model::comparison::Comparison;
use diskproof_model::fleet::FleetRecord;
use diskproof_model::record::Record;
use diskproof_report::json;
use diskproof_report::terminal::{FleetDetail, MetricDetail};
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
    /// Leave out what identifies the machine: host, paths, serial numbers, processes, users
    #[arg(long)]
    pub anonymous: bool,
    /// No notes on stderr
    #[arg(short = 'q', long)]
    pub quiet: bool,
    /// The history.
    #[command(flatten)]
    pub history_file: HistoryFileFlag,
}

/// Writes the run, comparison or fleet to each of the files, or as JSON to stdout for `-`.
pub fn run(export: &ExportFlags) -> anyhow::Result<Exit> {
    match find(&export.run, export.history_file.file())? {
        SavedDocument::Run(stored) => export_record(export, stored.record),
        SavedDocument::Comparison(comparison) => export_comparison(export, &comparison),
        SavedDocument::Fleet(fleet) => export_fleet(export, &fleet),
    }
}

impl ExportFlags {
    fn files(&self) -> Vec<PathBuf> {
        output_files(&[&self.outputs, &self.named])
    }

    fn prints_json(&self) -> bool {
        let mut outputs = self.outputs.iter().chain(&self.named);
        outputs.any(|path| is_stdout(path))
    }

    fn verbosity(&self) -> Verbosity {
        Verbosity::lines(self.quiet)
    }
}

fn export_record(export: &ExportFlags, mut record: Record) -> anyhow::Result<Exit> {
    let mut notes = Vec::new();
    if export.anonymous {
        let reduced = anonymize(&record)?;
        record = reduced.record;
        notes.push(format!("left out: {}", reduced.left_out));
        notes.push(format!("kept: {}", reduced.kept));
    }
    let history = export.history_file.file();
    let outputs = open_outputs(&export.files(), history, Trial::Create)?;
    save_records(&record, &outputs, export.verbosity())?;
    if export.prints_json() {
        ignore_closed_pipe(to_stdout(|out| json::write_record(&record, out)))?;
    }
    for note in notes {
        export.verbosity().note(&note);
    }
    Ok(Exit::Done)
}

fn export_fleet(export: &ExportFlags, fleet: &FleetRecord) -> anyhow::Result<Exit> {
    if export.anonymous {
        let text = "--anonymous: a fleet names its hosts; export its runs instead";
        return Err(Failure::Usage(text.to_owned()).into());
    }
    let outputs = merge::open_outputs(&export.files(), export.history_file.file())?;
    merge::save(fleet, &outputs, export.verbosity())?;
    if export.prints_json() {
        merge::print(
            fleet,
            Presentation::Json,
            FleetDetail::All,
            ColorWhen::Never,
        )?;
    }
    Ok(Exit::Done)
}

fn export_comparison(export: &ExportFlags, comparison: &Comparison) -> anyhow::Result<Exit> {
    if export.anonymous {
        let text = "--anonymous: a comparison names its targets; export its runs instead";
        return Err(Failure::Usage(text.to_owned()).into());
    }
    let outputs = compare::open_outputs(&export.files(), export.history_file.file())?;
    compare::save_comparison(comparison, &outputs, export.verbosity())?;
    if export.prints_json() {
        compare::print_comparison(
            comparison,
            Presentation::Json,
            MetricDetail::All,
            ColorWhen::Never,
        )?;
    }
    Ok(Exit::Done)
}
