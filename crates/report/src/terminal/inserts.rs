//! INSERTs of a PostgreSQL server on the terminal page: a table, and what it means.

use crate::describe::inserts::{HEADING, LEGEND, cells, explanations, title};
use crate::page::{Page, TextStyle};
use crate::table::{Align, Columns};
use diskproof_model::postgres::PostgresRecord;
use std::io;

/// Column at which the figures of a load begin where the table does not fit.
const INDENT: usize = 4;

/// Writes the table under its title; only the title where nothing was measured.
pub(super) fn write_inserts(page: &mut Page<'_>, postgres: &PostgresRecord) -> io::Result<()> {
    page.blank()?;
    page.text(TextStyle::Bold.of(title(postgres)))?;
    if postgres.loads.is_empty() {
        return page.text(TextStyle::Error.of("nothing was measured"));
    }
    let heading = HEADING.map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = postgres.loads.iter().map(cells).collect();
    let mut aligns = [Align::Right; HEADING.len()];
    aligns[0] = Align::Left;
    if let Some(columns) = Columns::fit(&aligns, rows.iter().chain([&heading]), page.width()) {
        page.unbroken(TextStyle::Dim.of(columns.line(&heading)))?;
        for row in &rows {
            page.unbroken(TextStyle::Plain.of(columns.line(row)))?;
        }
    } else {
        for row in &rows {
            let figures = HEADING.iter().zip(row).skip(1);
            let figures: Vec<String> = figures
                .map(|(name, cell)| format!("{name} {cell}"))
                .collect();
            page.text(TextStyle::Bold.of(row[0].clone()))?;
            page.entry(
                TextStyle::Plain.of(""),
                INDENT,
                TextStyle::Plain.of(figures.join(", ")),
            )?;
        }
    }
    for text in explanations(postgres) {
        page.text(TextStyle::Plain.of(text))?;
    }
    page.text(TextStyle::Dim.of(LEGEND))
}
