//! `diskproof info`: identity and health of a disk. Opens nothing itself; smartctl reads the
//! health.

use crate::failure::{Exit, Failure};
use crate::flags::{HealthFlags, output_files};
use crate::output_files::{Output, note_written, open_documents};
use crate::stdio::{ColorWhen, Presentation, Verbosity, print_document, style};
use crate::targets::{identify, note_write_caches, read_health, resolve_target};
use anyhow::Context as _;
use diskproof_report::format::OutputFile;
use diskproof_report::formats::format_of;
use diskproof_report::{Examined, json, terminal};
use std::path::PathBuf;

/// Show identity, layers, queue settings, link, write cache and health; no measurement
#[derive(Debug, clap::Args)]
pub struct InfoFlags {
    /// Directory, regular file or block device
    #[arg(default_value = ".")]
    pub target: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    /// Also save the result; the format follows the extension: .json (repeatable)
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub outputs: Vec<PathBuf>,
    /// Whether SMART health is read.
    #[command(flatten)]
    pub health: HealthFlags,
    /// Colour the result
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub color: ColorWhen,
}

/// Shows the identity and the health, and saves them to the files.
pub fn run(info: &InfoFlags) -> anyhow::Result<Exit> {
    let target = resolve_target(&info.target, Verbosity::Lines);
    let mut identity = identify(&target, Verbosity::Lines).map_err(Failure::Probe)?;
    note_write_caches(&mut identity);
    let paths = output_files(&[&info.outputs]);
    // Without a measurement there are neither figures nor charts: other formats would be empty.
    let outputs = open_documents("info", |format| format.identity.is_some(), &paths, None)?;
    let health = if info.health.no_health {
        Vec::new()
    } else {
        read_health(std::slice::from_ref(&identity))
    };
    let findings = diskproof_analysis::rules::health_findings(&health);
    let examined = Examined {
        host: &diskproof_device::host_facts(),
        identity: &identity,
        health: &health,
        findings: &findings,
    };
    save(&examined, &outputs)?;
    print_document(
        // An output that is no file is stdout.
        Presentation::from_json_flag(info.json || outputs.len() < info.outputs.len()),
        |out| json::write_identity(&examined, out),
        |page| terminal::write_identity(&examined, &style(info.color), page),
    )?;
    Ok(Exit::Done)
}

/// Saves the result to the files, whose formats all have one for it.
fn save(examined: &Examined<'_>, outputs: &[Output]) -> anyhow::Result<()> {
    for output in outputs {
        let path = output.path();
        let Some(write) = format_of(path).and_then(|format| format.identity) else {
            continue;
        };
        let bytes = output
            .save(&OutputFile::new(path, |out| write(examined, out)))
            .with_context(|| format!("-o {}: cannot save it", path.display()))?;
        note_written(path, bytes, Verbosity::Lines);
    }
    Ok(())
}
