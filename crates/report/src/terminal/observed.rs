//! An observed load on the result page, and how closely a run matched one.

use super::facts::fact;
use super::grid::write_grid;
use super::server::write_server;
use crate::describe::observed::{COLUMNS, facts, likeness, rows};
use crate::page::{Page, TextStyle};
use crate::table::Align;
use diskproof_model::observed::ObservedRecord;
use diskproof_model::record::Record;
use std::io;

/// Writes the table and the facts.
pub(super) fn write_observed(page: &mut Page<'_>, observed: &ObservedRecord) -> io::Result<()> {
    page.blank()?;
    let row = |(name, cells): (String, [String; COLUMNS.len()])| {
        std::iter::once(name).chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = rows(observed).into_iter().map(row).collect();
    if rows.is_empty() {
        page.text(TextStyle::Plain.of("no requests"))?;
    } else {
        let heading: Vec<&str> = std::iter::once("device").chain(COLUMNS).collect();
        write_grid(page, &heading, &rows, Align::Right)?;
    }
    page.blank()?;
    for (label, text) in facts(observed) {
        fact(page, label, &text)?;
    }
    match &observed.server {
        Some(server) => write_server(page, server),
        None => Ok(()),
    }
}

/// Writes how closely the run matched the load that it repeats.
pub(super) fn write_likeness(page: &mut Page<'_>, record: &Record) -> io::Result<()> {
    let Some((source, rows)) = likeness(record) else {
        return Ok(());
    };
    page.blank()?;
    page.text(TextStyle::Bold.of(format!("compared with {source}")))?;
    let rows: Vec<Vec<String>> = rows.into_iter().map(Vec::from).collect();
    write_grid(page, &["", "observed", "this run"], &rows, Align::Right)
}
