//! A table of the result page whose first column is a name; a list where the page is too narrow.

use crate::page::{Page, TextStyle};
use crate::table::{Align, Columns};
use crate::text::glue;
use diskproof_model::block::Table;
use std::io;

/// Column at which the figures of a row begin where the table does not fit.
const INDENT: usize = 4;

/// Writes the rows under the names of their columns.
pub(super) fn write_grid(page: &mut Page<'_>, table: &Table) -> io::Result<()> {
    let mut aligns = vec![table.align; table.columns.len()];
    aligns[0] = Align::Left;
    let rows = table.rows.iter().chain([&table.columns]);
    let Some(columns) = Columns::fit(&aligns, rows, page.width()) else {
        return table
            .rows
            .iter()
            .try_for_each(|row| write_entry(page, &table.columns, row));
    };
    page.unbroken(TextStyle::Dim.of(columns.line(&table.columns)))?;
    for row in &table.rows {
        page.unbroken(TextStyle::Plain.of(columns.line(row)))?;
    }
    Ok(())
}

/// Writes one row: its name, and below that each figure with the name of its column.
fn write_entry(page: &mut Page<'_>, columns: &[String], row: &[String]) -> io::Result<()> {
    let figures = columns.iter().zip(row).skip(1);
    let figures: Vec<String> = figures
        .filter(|(_, cell)| !cell.is_empty())
        .map(|(name, cell)| glue(format!("{name} {cell}").trim_start()))
        .collect();
    page.text(TextStyle::Bold.of(row[0].clone()))?;
    page.entry(
        TextStyle::Plain.of(""),
        INDENT,
        TextStyle::Plain.of(figures.join(", ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::{Color, Style, WIDTH_MIN};

    fn grid(width: usize) -> String {
        let style = Style {
            width,
            color: Color::Plain,
        };
        let rows = [["loop0p1", "12,345", ""], ["vda", "812", "4 µs slower"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let mut bytes = Vec::new();
        let mut page = Page::new(&style, &mut bytes);
        let heading = ["device", "operations per second", "beside the layer below"];
        let table = Table {
            columns: heading.map(str::to_owned).to_vec(),
            rows: rows.to_vec(),
            ..Table::default()
        };
        write_grid(&mut page, &table).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_grid_is_a_table_where_it_fits_and_else_a_list_without_empty_figures() {
        let table = grid(80);
        assert_eq!(table.lines().count(), 3);
        assert!(table.starts_with("device   operations per second  beside the layer below\n"));
        let list = grid(WIDTH_MIN);
        assert!(list.starts_with("loop0p1\n    operations per second 12,345\nvda\n"));
        let words: Vec<&str> = list.split_whitespace().collect();
        assert!(
            words
                .join(" ")
                .ends_with("beside the layer below 4 µs slower")
        );
    }
}
