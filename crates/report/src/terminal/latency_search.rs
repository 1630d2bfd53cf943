//! The search for the greatest depth that meets a latency limit, on the result page.

use super::grid::write_grid;
use crate::describe::latency_search::{COLUMNS, heading, rows};
use crate::page::{Page, TextStyle};
use crate::table::Align;
use diskproof_model::latency_search::LatencySearch;
use diskproof_model::record::Record;
use std::io;

/// Writes a row for each depth that was measured.
pub(super) fn write_latency_search(
    page: &mut Page<'_>,
    record: &Record,
    search: &LatencySearch,
) -> io::Result<()> {
    page.blank()?;
    page.text(TextStyle::Bold.of(heading(search)))?;
    let names: Vec<&str> = std::iter::once("depth").chain(COLUMNS).collect();
    let rows: Vec<Vec<String>> = rows(record, search)
        .into_iter()
        .map(|(depth, cells)| std::iter::once(depth).chain(cells).collect())
        .collect();
    write_grid(page, &names, &rows, Align::Right)
}
