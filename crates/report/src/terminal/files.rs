//! Operations on many small files on the result page: a table of the steps, and what they mean.

use super::facts::fact;
use crate::describe::files::{COLUMNS, cells, facts};
use crate::page::{Page, TextStyle};
use crate::table::{Align, Columns};
use crate::text::glue;
use diskproof_model::record::{FileStepRecord, FilesRecord, Record};
use std::io;

/// Writes the table and the facts.
pub(super) fn write_files(
    page: &mut Page<'_>,
    record: &Record,
    files: &FilesRecord,
) -> io::Result<()> {
    page.blank()?;
    if files.steps.is_empty() {
        page.text(TextStyle::Error.of("nothing was measured"))?;
    } else {
        write_steps(page, &files.steps)?;
        page.blank()?;
    }
    for (label, text) in facts(record) {
        fact(page, label, &text)?;
    }
    Ok(())
}

/// A table; running text where that is too wide.
fn write_steps(page: &mut Page<'_>, steps: &[FileStepRecord]) -> io::Result<()> {
    let heading = ["step"].into_iter().chain(COLUMNS).map(str::to_owned);
    let rows: Vec<Vec<String>> = std::iter::once(heading.collect())
        .chain(steps.iter().map(row))
        .collect();
    let mut aligns = [Align::Right; COLUMNS.len() + 1];
    aligns[0] = Align::Left;
    let Some(table) = Columns::fit(&aligns, &rows, page.width()) else {
        for row in &rows[1..] {
            let named = row[1..].iter().zip(COLUMNS);
            let parts: Vec<String> = named
                .map(|(cell, name)| glue(&format!("{name} {cell}")))
                .collect();
            fact(page, &row[0], &parts.join(", "))?;
        }
        return Ok(());
    };
    page.unbroken(TextStyle::Dim.of(table.line(&rows[0])))?;
    for row in &rows[1..] {
        page.unbroken(TextStyle::Plain.of(table.line(row)))?;
    }
    Ok(())
}

fn row(of: &FileStepRecord) -> Vec<String> {
    std::iter::once(of.step.name()).chain(cells(of)).collect()
}
