//! An observed load on the result page, and how closely a run matched one.

use super::facts::fact;
use crate::describe::observed::{COLUMNS, facts, likeness, rows};
use crate::page::{Page, TextStyle};
use crate::table::{Align, Columns};
use crate::text::glue;
use diskproof_model::observed::ObservedRecord;
use diskproof_model::record::Record;
use std::io;

/// Writes the table and the facts.
pub(super) fn write_observed(page: &mut Page<'_>, observed: &ObservedRecord) -> io::Result<()> {
    page.blank()?;
    let mut lines = vec![heading()];
    lines.extend(
        rows(observed)
            .into_iter()
            .map(|(name, cells)| std::iter::once(name).chain(cells).collect::<Vec<String>>()),
    );
    if lines.len() == 1 {
        page.text(TextStyle::Plain.of("no requests"))?;
    } else {
        write_table(page, &lines)?;
    }
    page.blank()?;
    for (label, text) in facts(observed) {
        fact(page, label, &text)?;
    }
    Ok(())
}

fn heading() -> Vec<String> {
    ["device"]
        .into_iter()
        .chain(COLUMNS)
        .map(str::to_owned)
        .collect()
}

/// A table; running text where that is too wide.
fn write_table(page: &mut Page<'_>, lines: &[Vec<String>]) -> io::Result<()> {
    let mut aligns = [Align::Right; COLUMNS.len() + 1];
    (aligns[0], aligns[1]) = (Align::Left, Align::Left);
    let Some(table) = Columns::fit(&aligns, lines, page.width()) else {
        for line in &lines[1..] {
            let named = line[1..].iter().zip(COLUMNS);
            let parts: Vec<String> = named
                .map(|(cell, name)| glue(format!("{name} {cell}").trim_start()))
                .collect();
            fact(page, &line[0], &parts.join(", "))?;
        }
        return Ok(());
    };
    page.unbroken(TextStyle::Dim.of(table.line(&lines[0])))?;
    for line in &lines[1..] {
        page.unbroken(TextStyle::Plain.of(table.line(line)))?;
    }
    Ok(())
}

/// Writes how closely the run matched the load that it repeats.
pub(super) fn write_likeness(page: &mut Page<'_>, record: &Record) -> io::Result<()> {
    let Some((source, rows)) = likeness(record) else {
        return Ok(());
    };
    page.blank()?;
    page.text(TextStyle::Bold.of(format!("compared with {source}")))?;
    let heading = ["", "observed", "this run"].map(str::to_owned).to_vec();
    let lines: Vec<Vec<String>> = std::iter::once(heading)
        .chain(rows.into_iter().map(Vec::from))
        .collect();
    let aligns = [Align::Left, Align::Right, Align::Right];
    let Some(table) = Columns::fit(&aligns, &lines, page.width()) else {
        return Ok(());
    };
    for line in &lines {
        page.unbroken(TextStyle::Plain.of(table.line(line)))?;
    }
    Ok(())
}
