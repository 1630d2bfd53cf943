//! A PostgreSQL server on the terminal page: the tables of its INSERTs and of the settings that it
//! tried, and what they mean.

use super::grid::write_grid;
use crate::describe::inserts::{self, explanations, title};
use crate::describe::trials;
use crate::page::{Page, TextStyle};
use crate::table::Align;
use diskproof_model::postgres::PostgresRecord;
use std::io;

/// Writes the tables under their titles; only the title where nothing was measured.
pub(super) fn write_inserts(page: &mut Page<'_>, postgres: &PostgresRecord) -> io::Result<()> {
    page.blank()?;
    page.text(TextStyle::Bold.of(title(postgres)))?;
    if postgres.loads.is_empty() {
        return page.text(TextStyle::Error.of("nothing was measured"));
    }
    let rows: Vec<Vec<String>> = postgres.loads.iter().map(inserts::cells).collect();
    write_grid(page, &inserts::HEADING, &rows, Align::Right)?;
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
    write_grid(page, &trials::HEADING, &rows, Align::Left)?;
    page.text(TextStyle::Dim.of(trials::LEGEND))
}
