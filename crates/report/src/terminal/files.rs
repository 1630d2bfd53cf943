//! Operations on many small files on the result page: a table of the steps, and what they mean.

use super::facts::fact;
use super::grid::write_grid;
use crate::describe::files::{COLUMNS, cells, facts};
use crate::page::{Page, TextStyle};
use crate::table::Align;
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

/// A row for each step.
fn write_steps(page: &mut Page<'_>, steps: &[FileStepRecord]) -> io::Result<()> {
    let heading: Vec<&str> = std::iter::once("step").chain(COLUMNS).collect();
    let rows: Vec<Vec<String>> = steps.iter().map(row).collect();
    write_grid(page, &heading, &rows, Align::Right)
}

fn row(of: &FileStepRecord) -> Vec<String> {
    std::iter::once(of.step.name()).chain(cells(of)).collect()
}
