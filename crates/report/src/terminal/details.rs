//! The end of the result page: machine, disk, filesystem, engine, conditions, and the proof of the
//! figures.

use super::facts::fact;
use crate::describe::figures::{conditions, limited_by_text};
use crate::describe::health::health_text;
use crate::describe::proof::{engines_text, proof_text};
use crate::describe::target::{host_text, summary};
use crate::page::{Page, TextStyle};
use crate::text::glue;
use diskproof_model::latency_search::LatencySearch;
use diskproof_model::limited_by::LimitedBy;
use diskproof_model::record::{MeasurementRecord, Record};
use diskproof_model::target::TargetIdentity;
use diskproof_model::units::format_percent;
use std::io;

/// Column at which conditions begin: two columns behind the longest workload name of `check`.
const CONDITIONS_INDENT: usize = 18;

/// Writes the details of the machine and of each target.
pub(super) fn write_details(page: &mut Page<'_>, record: &Record) -> io::Result<()> {
    page.blank()?;
    page.text(TextStyle::Bold.of("details"))?;
    fact(page, "host", &host_text(&record.host))?;
    // The targets of a run on layers are those of the first one's stack.
    let shown = match record.plan.layers {
        Some(_) => 1,
        None => record.targets.len(),
    };
    for (index, target) in record.targets.iter().enumerate().take(shown) {
        write_target(page, record, target, index)?;
    }
    // Of a sweep the matrix says block sizes and depths, and the span is that of the target. The
    // tables of layers have their conditions in the heading.
    let listed = match (&record.sweep, &record.layers) {
        (None, None) => record.measurements.as_slice(),
        _ => &[],
    };
    let found = record
        .latency_search
        .as_ref()
        .and_then(LatencySearch::found);
    let is_result =
        |m: &&MeasurementRecord| found.is_none_or(|found| found.workload == m.workload.name);
    for m in listed.iter().filter(is_result) {
        let cpu = glue(&format!("CPU {}", format_percent(m.cpu_share())));
        let limit = m.limited_by.as_ref().map(limit_text).unwrap_or_default();
        let text = format!("{}; {cpu}{limit}", conditions(&m.workload));
        page.entry(
            TextStyle::Plain.of(&m.workload.name),
            CONDITIONS_INDENT,
            TextStyle::Dim.of(text),
        )?;
    }
    Ok(())
}

fn limit_text(limited: &LimitedBy) -> String {
    format!("; {}", limited_by_text(limited))
}

fn write_target(
    page: &mut Page<'_>,
    record: &Record,
    target: &TargetIdentity,
    index: usize,
) -> io::Result<()> {
    for (label, value) in summary(target, &record.plan) {
        if let Some(value) = value {
            fact(page, label, &value)?;
        }
    }
    for health in &record.health {
        if target.disks().any(|disk| disk.name == health.disk) {
            fact(page, "health", &health_text(health))?;
        }
    }
    let measurements: Vec<&MeasurementRecord> = record
        .measurements
        .iter()
        .filter(|m| m.target == index)
        .collect();
    if let Some(engines) = engines_text(&measurements) {
        fact(page, "engine", &engines)?;
    }
    if let Some(proof) = proof_text(record, index) {
        fact(page, "proof", &proof)?;
    }
    Ok(())
}
