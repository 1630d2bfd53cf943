//! `diskproof info`: who the disk is, and how it says it fares. Opens nothing; smartctl does the
//! asking.

use crate::args::Info;
use crate::failure::{Exit, Failure};
use crate::formats::{Document, Format};
use crate::health::ask_health;
use crate::measure::keep_target;
use crate::output::{save_document, style, to_stdout, try_out, write_in_locale};
use anyhow::Context as _;
use diskproof_analysis::rules::health_findings;
use diskproof_device::{host_facts, probe};
use diskproof_report::{Examined, json, terminal};
use std::path::PathBuf;

/// Shows the identity and the health.
pub fn info(info: &Info) -> anyhow::Result<Exit> {
    prepare(&info.outputs)?;
    let identity = probe(&info.target).map_err(Failure::Probe)?;
    info.outputs
        .iter()
        .try_for_each(|output| keep_target(output, std::slice::from_ref(&identity)))?;
    let health = ask_health(std::slice::from_ref(&identity), &info.health);
    let findings = health_findings(&health);
    let examined = Examined {
        host: &host_facts(),
        identity: &identity,
        health: &health,
        findings: &findings,
    };
    for path in &info.outputs {
        let document = Document {
            path: path.clone(),
            write: Box::new(|out| json::write_identity(&examined, out)),
        };
        save_document(&document)
            .with_context(|| format!("-o {}: it could not be saved", path.display()))?;
    }
    to_stdout(|out| match info.json {
        true => json::write_identity(&examined, out),
        false => write_in_locale(out, |page| {
            terminal::write_identity(&examined, &style(info.color), page)
        }),
    })?;
    Ok(Exit::Done)
}

/// What is known of a disk without measuring has neither figures nor charts: the other formats
/// would be empty.
fn prepare(outputs: &[PathBuf]) -> Result<(), Failure> {
    for path in outputs {
        if Format::of(path) != Some(Format::Json) {
            return Err(Failure::Usage(format!(
                "-o {}: info is written as .json; name such a file",
                path.display()
            )));
        }
        try_out(path)?;
    }
    Ok(())
}
