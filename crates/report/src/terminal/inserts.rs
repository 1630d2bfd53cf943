//! A PostgreSQL server on the terminal page: the tables of its INSERTs and of the settings that it
//! tried, and what they mean.

use crate::describe::inserts::{self, explanations, title};
use crate::describe::trials;
use crate::page::{Page, TextStyle};
use crate::table::{Align, Columns};
use diskproof_model::postgres::PostgresRecord;
use std::io;

/// Column at which the figures of a row begin where the table does not fit.
const INDENT: usize = 4;

/// Writes the tables under their titles; only the title where nothing was measured.
pub(super) fn write_inserts(page: &mut Page<'_>, postgres: &PostgresRecord) -> io::Result<()> {
    page.blank()?;
    page.text(TextStyle::Bold.of(title(postgres)))?;
    if postgres.loads.is_empty() {
        return page.text(TextStyle::Error.of("nothing was measured"));
    }
    let rows: Vec<Vec<String>> = postgres.loads.iter().map(inserts::cells).collect();
    write_table(page, &inserts::HEADING, &rows, Align::Right)?;
    for text in explanations(postgres) {
        page.text(TextStyle::Plain.of(text))?;
    }
    page.text(TextStyle::Dim.of(inserts::LEGEND))?;
    if postgres.trials.is_empty() {
        return Ok(());
    }
    page.blank()?;
    page.text(TextStyle::Bold.of(trials::TITLE))?;
    let tried = postgres.trials.iter();
    let rows: Vec<Vec<String>> = tried.map(|tried| trials::cells(tried).to_vec()).collect();
    write_table(page, &trials::HEADING, &rows, Align::Left)?;
    page.text(TextStyle::Dim.of(trials::LEGEND))
}

/// A table whose first column is a name; a list where it is too wide.
fn write_table(
    page: &mut Page<'_>,
    heading: &[&str],
    rows: &[Vec<String>],
    align: Align,
) -> io::Result<()> {
    let names: Vec<String> = heading.iter().map(|name| (*name).to_owned()).collect();
    let mut aligns = vec![align; heading.len()];
    aligns[0] = Align::Left;
    if let Some(columns) = Columns::fit(&aligns, rows.iter().chain([&names]), page.width()) {
        page.unbroken(TextStyle::Dim.of(columns.line(&names)))?;
        for row in rows {
            page.unbroken(TextStyle::Plain.of(columns.line(row)))?;
        }
        return Ok(());
    }
    for row in rows {
        let figures = heading.iter().zip(row).skip(1);
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
    Ok(())
}
