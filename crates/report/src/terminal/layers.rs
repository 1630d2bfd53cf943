//! The cost of each layer on the result page: a table per workload, and what it means.

use super::facts::fact;
use super::grid::write_grid;
use crate::describe::figures::conditions;
use crate::describe::layers::{COLUMNS, facts, rows};
use crate::page::{Page, TextStyle};
use crate::table::Align;
use diskproof_model::layers::LayersRecord;
use diskproof_model::plan::Workload;
use diskproof_model::record::{MeasurementRecord, Record};
use std::io;

/// Writes the tables and the facts.
pub(super) fn write_layers(
    page: &mut Page<'_>,
    record: &Record,
    layers: &LayersRecord,
) -> io::Result<()> {
    for workload in &record.plan.workloads {
        page.blank()?;
        page.text(TextStyle::Bold.of(heading(record, workload)))?;
        write_costs(page, &rows(record, layers, &workload.name))?;
    }
    page.blank()?;
    for (label, text) in facts(record) {
        fact(page, label, &text)?;
    }
    Ok(())
}

/// The workload as it ran on the highest layer.
fn heading(record: &Record, workload: &Workload) -> String {
    let is_top = |m: &&MeasurementRecord| m.target == 0 && m.workload.name == workload.name;
    let ran = record.measurements.iter().find(is_top);
    let ran = ran.map(|m| format!(": {}", conditions(&m.workload)));
    format!("{}{}", workload.name, ran.unwrap_or_default())
}

/// A row for each layer.
fn write_costs(
    page: &mut Page<'_>,
    layers: &[(String, [String; COLUMNS.len()])],
) -> io::Result<()> {
    if layers.is_empty() {
        return page.text(TextStyle::Error.of("nothing was measured"));
    }
    let heading: Vec<&str> = std::iter::once("layer").chain(COLUMNS).collect();
    let row = |(name, cells): &(String, [String; COLUMNS.len()])| {
        std::iter::once(name.clone()).chain(cells.clone()).collect()
    };
    let rows: Vec<Vec<String>> = layers.iter().map(row).collect();
    write_grid(page, &heading, &rows, Align::Right)
}
