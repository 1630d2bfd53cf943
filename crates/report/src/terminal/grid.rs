//! Tables of a terminal page. Columns are as wide as their widest cell. Where not all fit, those
//! that may give way are dropped; where that is not enough, the table takes a narrower form, which
//! is its [`Narrow`].

use super::sparkline::sparkline;
use crate::page::{Page, push_text};
use crate::text::{clean, columns, glue, list};
use diskproof_model::block::{
    Align, Cell, Column, Group, Mark, Narrow, Place, Span, Table, TableRow, Titles, Tone,
};
use std::borrow::Cow;

/// The figures of a row are indented by this much where the table becomes a list.
const INDENT: usize = 4;
/// The shades of a heat map, from the lowest to the highest value in even steps.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
/// The gap between the table and the graphs next to it, in columns.
const GRAPH_GAP: usize = 3;
/// Graphs are at most this wide: a wider one is hard to compare at a glance.
const GRAPH_COLUMNS_MAX: usize = 100;
/// A graph needs at least this many values: fewer show no course.
const VALUES_MIN: usize = 4;
/// The width of the text of a cell with a shade.
const SHADED_COLUMNS: usize = 7;

/// A row of the grid.
struct Line<'t> {
    /// The group that begins with this row.
    group: Option<&'t Group>,
    cells: Vec<Span<'t>>,
    /// The values of the graph next to the row; empty without one.
    course: &'t [f64],
}

/// A table reduced to what a terminal can draw.
struct Grid<'t> {
    columns: Vec<Column>,
    lines: Vec<Line<'t>>,
    /// The name of the graphs next to the table; empty without graphs.
    graphs_name: &'t str,
}

impl<'t> Grid<'t> {
    fn new(table: &'t Table) -> Self {
        let mut used = Vec::new();
        let mut columns = Vec::new();
        for (index, column) in table.columns.iter().enumerate() {
            if is_text(column) && (index == 0 || has_text(table, index)) {
                used.push(index);
                columns.push(column.clone());
            }
        }
        let mut grid = Self {
            columns,
            lines: table.rows.iter().map(|row| grid_line(row, &used)).collect(),
            graphs_name: "",
        };
        for (index, column) in table.columns.iter().enumerate() {
            if has_courses(table, index) {
                grid.graphs_name = &column.name;
                break;
            }
        }
        if let Titles::Beside(name) = &table.titles {
            grid.insert_titles(name);
        }
        grid
    }

    /// Turns the titles of groups into the first column.
    fn insert_titles(&mut self, name: &str) {
        self.columns.insert(0, Column::new(name, Align::Left));
        for line in &mut self.lines {
            let title = match line.group.take() {
                Some(group) => group.title.as_str(),
                None => "",
            };
            let tone = line.cells[0].tone;
            line.cells.insert(0, tone.span(title));
        }
    }

    /// The headings of these columns.
    fn names(&self, shown: &[usize]) -> Vec<String> {
        shown
            .iter()
            .map(|index| self.columns[*index].name.clone())
            .collect()
    }

    /// Selects the columns that fit; those with the highest rank are dropped first. `None` where
    /// even the others do not fit.
    fn fit(&self, mut shown: Vec<usize>, width: usize) -> Option<Fitted> {
        loop {
            let aligns: Vec<Align> = shown
                .iter()
                .map(|index| self.columns[*index].align)
                .collect();
            let mut rows = vec![self.names(&shown)];
            for line in &self.lines {
                rows.push(shown_texts(line, &shown));
            }
            if let Some(columns) = Columns::fit(&aligns, &rows, width) {
                return Some(Fitted { shown, columns });
            }
            let position = self.first_to_give_way(&shown)?;
            shown.remove(position);
        }
    }

    /// The position of the column to drop first: that with the highest rank, and the last of
    /// several. `None` where none may be dropped.
    fn first_to_give_way(&self, shown: &[usize]) -> Option<usize> {
        let mut first = None;
        let mut highest_rank = 0;
        for (position, index) in shown.iter().enumerate() {
            if let Place::Roomy(rank) = self.columns[*index].place
                && rank >= highest_rank
            {
                first = Some(position);
                highest_rank = rank;
            }
        }
        first
    }

    fn write(&self, page: &mut Page<'_>, fitted: &Fitted) {
        let Fitted { shown, columns } = fitted;
        let graphs = self.course_graphs(page.width(), columns);
        let mut caption = "";
        if graphs.iter().any(|graph| !graph.is_empty()) {
            caption = self.graphs_name;
        }
        let names = self.names(shown);
        if names.iter().any(|name| !name.is_empty()) {
            let tones = vec![Tone::Dim; shown.len()];
            write_line(page, columns, &names, &tones, caption);
        }
        for (line, graph) in self.lines.iter().zip(&graphs) {
            write_title(page, line.group);
            let mut tones = Vec::new();
            for index in shown {
                tones.push(line.cells[*index].tone);
            }
            write_line(page, columns, &shown_texts(line, shown), &tones, graph);
        }
    }

    /// A graph for each line, next to the columns; empty where there is no space or no course.
    fn course_graphs(&self, width: usize, columns: &Columns) -> Vec<String> {
        let room = width.saturating_sub(columns.total() + GRAPH_GAP);
        let has_room =
            !self.graphs_name.is_empty() && room >= crate::text::columns(self.graphs_name);
        let mut graphs = Vec::new();
        for line in &self.lines {
            if has_room && line.course.len() >= VALUES_MIN {
                graphs.push(sparkline(line.course, room.min(GRAPH_COLUMNS_MAX)));
            } else {
                graphs.push(String::new());
            }
        }
        graphs
    }

    /// Writes as many columns as fit, then the others below, each time with the first column. A
    /// column that does not fit next to the first one makes the whole grid a list.
    fn write_parts(&self, page: &mut Page<'_>) {
        let mut start = 1;
        while start < self.columns.len() {
            let Some(part) = self.longest_part(start, page.width()) else {
                return self.write_stacked(page);
            };
            self.write(page, &part.fitted);
            start = part.end;
        }
    }

    /// The first column and as many of those from `start` on as fit; `None` where not even one
    /// fits.
    fn longest_part(&self, start: usize, width: usize) -> Option<Part> {
        for end in (start + 1..=self.columns.len()).rev() {
            let mut part = vec![0];
            part.extend(start..end);
            if let Some(fitted) = self.fit(part, width) {
                return Some(Part { fitted, end });
            }
        }
        None
    }

    /// Writes two cells of a row as a title, and the others below them. A table of entries has two
    /// columns with text, at least.
    fn write_entries(&self, page: &mut Page<'_>) {
        for line in &self.lines {
            let title = Tone::Bold.span(format!("  {}", line.cells[0].text));
            page.entry(title, INDENT, Tone::Bold.span(&*line.cells[1].text));
            for cell in &line.cells[2..] {
                let text = Tone::Plain.span(&*cell.text);
                page.entry(Tone::Plain.span(""), INDENT, text);
            }
        }
    }

    /// Writes the first `naming` cells of a row as a title, and the others as a list below it.
    fn write_titled(&self, page: &mut Page<'_>, naming: usize) {
        for line in &self.lines {
            let (names, rest) = line.cells.split_at(naming.min(line.cells.len()));
            page.text(Tone::Bold.span(nonempty_texts(names).join(" ")));
            let text = line.cells[0].tone.span(nonempty_texts(rest).join(" · "));
            page.entry(Tone::Plain.span(""), INDENT, text);
        }
    }

    /// Writes the name of each row, and below it each figure with the name of its column.
    fn write_stacked(&self, page: &mut Page<'_>) {
        for line in &self.lines {
            write_title(page, line.group);
            let name = line.cells[0].text.trim();
            if !name.is_empty() {
                page.text(Tone::Bold.span(name));
            }
            let mut figures = Vec::new();
            for (column, cell) in self.columns.iter().zip(&line.cells).skip(1) {
                let text = cell.text.trim();
                if !text.is_empty() {
                    let figure = format!("{} {text}", column.name);
                    figures.push(glue(figure.trim_start()));
                }
            }
            let list_text = line.cells[0].tone.span(list(figures));
            page.entry(Tone::Plain.span(""), INDENT, list_text);
        }
    }
}

/// A part of a grid that is too wide for the page.
struct Part {
    fitted: Fitted,
    /// The index of the first column of the next part. Columns before it that are not in `fitted`
    /// gave way.
    end: usize,
}

/// The columns of a grid that fit the page.
struct Fitted {
    /// Their indices in the grid, ascending.
    shown: Vec<usize>,
    columns: Columns,
}

/// True if a terminal can show the column as text.
fn is_text(column: &Column) -> bool {
    matches!(column.place, Place::Always | Place::Roomy(_))
}

fn has_text(table: &Table, index: usize) -> bool {
    table
        .rows
        .iter()
        .any(|row| !row.cells[index].text.trim().is_empty())
}

fn has_courses(table: &Table, index: usize) -> bool {
    table
        .rows
        .iter()
        .any(|row| matches!(row.cells[index].mark, Mark::Course(_)))
}

/// The texts of cells that are not empty.
fn nonempty_texts<'t>(cells: &'t [Span<'_>]) -> Vec<&'t str> {
    cells
        .iter()
        .map(|cell| &*cell.text)
        .filter(|text| !text.is_empty())
        .collect()
}

fn grid_line<'t>(row: &'t TableRow, used: &[usize]) -> Line<'t> {
    let cells = used
        .iter()
        .map(|index| styled_text(&row.cells[*index], row.tone))
        .collect();
    let mut course: &[f64] = &[];
    for cell in &row.cells {
        if let Mark::Course(values) = &cell.mark {
            course = values;
            break;
        }
    }
    Line {
        group: row.group.as_ref(),
        cells,
        course,
    }
}

/// The text of a cell in its own style, or in that of its row.
fn styled_text(cell: &Cell, row_tone: Tone) -> Span<'_> {
    match cell.tone {
        Tone::Plain => row_tone.span(shaded_text(cell)),
        tone => tone.span(shaded_text(cell)),
    }
}

fn shown_texts(line: &Line<'_>, shown: &[usize]) -> Vec<String> {
    shown
        .iter()
        .map(|index| line.cells[*index].text.to_string())
        .collect()
}

/// The text of a cell after its shade.
fn shaded_text(cell: &Cell) -> Cow<'_, str> {
    let Mark::Heat(share) = cell.mark else {
        return Cow::from(&cell.text);
    };
    let step = (share.unwrap_or(0.0) * SHADES.len() as f64) as usize;
    let shade = SHADES[step.min(SHADES.len() - 1)];
    format!("{shade}{:>SHADED_COLUMNS$}", cell.text).into()
}

fn write_title(page: &mut Page<'_>, group: Option<&Group>) {
    let Some(group) = group else { return };
    page.text(Tone::Bold.span(&group.title));
    if !group.warning.is_empty() {
        let warning = Tone::Warning.span(&group.warning);
        page.entry(Tone::Plain.span(""), 2, warning);
    }
}

fn write_line(
    page: &mut Page<'_>,
    columns: &Columns,
    cells: &[String],
    tones: &[Tone],
    graph: &str,
) {
    let mut pieces: Vec<Span<'_>> = Vec::new();
    for (text, tone) in columns.cells(cells).iter().zip(tones) {
        push_text(&mut pieces, *tone, text);
    }
    let gap = " ".repeat(GRAPH_GAP.saturating_sub(columns.gap()));
    pieces.push(tones[0].span(format!("{gap}{graph}")));
    page.spans(&pieces);
}

/// Writes a table in the widest form that fits the page.
pub(super) fn write_grid(page: &mut Page<'_>, table: &Table) {
    let grid = Grid::new(table);
    if grid.lines.is_empty() {
        return;
    }
    if table.narrow == Narrow::Entries {
        return grid.write_entries(page);
    }
    let every_column = (0..grid.columns.len()).collect();
    if let Some(fitted) = grid.fit(every_column, page.width()) {
        return grid.write(page, &fitted);
    }
    match table.narrow {
        Narrow::Split => grid.write_parts(page),
        Narrow::Titled(naming) => grid.write_titled(page, naming),
        Narrow::Stack | Narrow::Entries => grid.write_stacked(page),
    }
}

/// The gaps between two columns of a table that are tried, in this order.
const GAPS: [usize; 2] = [2, 1];

/// The columns of a table that fits its page.
pub(super) struct Columns {
    aligns: Vec<Align>,
    widths: Vec<usize>,
    gap: usize,
}

impl Columns {
    /// Columns for these rows, heading included, within `width`; `None` if they do not fit.
    /// Every row has a cell per column.
    pub(super) fn fit<'a>(
        aligns: &[Align],
        rows: impl IntoIterator<Item = &'a Vec<String>>,
        width: usize,
    ) -> Option<Self> {
        let mut widths = vec![0; aligns.len()];
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = columns(&clean(cell)).max(*width);
            }
        }
        let mut fitted = Self {
            aligns: aligns.to_vec(),
            widths,
            gap: 0,
        };
        for gap in GAPS {
            fitted.gap = gap;
            if fitted.total() <= width {
                return Some(fitted);
            }
        }
        None
    }

    /// The width of a row, gaps included.
    pub(super) fn total(&self) -> usize {
        self.widths.iter().sum::<usize>() + self.gap * self.widths.len().saturating_sub(1)
    }

    /// The gap between two columns.
    pub(super) fn gap(&self) -> usize {
        self.gap
    }

    /// The cells of a row, each padded to the width of its column and the gap after it.
    pub(super) fn cells(&self, row: &[String]) -> Vec<String> {
        let mut padded = Vec::new();
        for (index, text) in row.iter().enumerate() {
            let cell = clean(text);
            let pad = " ".repeat(self.widths[index].saturating_sub(columns(&cell)));
            let gap = " ".repeat(self.gap);
            padded.push(match self.aligns[index] {
                Align::Left => format!("{cell}{pad}{gap}"),
                Align::Right => format!("{pad}{cell}{gap}"),
            });
        }
        padded
    }

    /// A row as one line, without spaces at its end.
    pub(super) fn padded_line(&self, row: &[String]) -> String {
        let mut line = self.cells(row).concat();
        line.truncate(line.trim_end().len());
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{plain, written};
    use crate::style::WIDTH_MIN;
    use diskproof_model::block::Block;

    fn grid(table: &Table, width: usize) -> String {
        written(|out| {
            let mut page = Page::new(&plain(width), out);
            write_grid(&mut page, table);
            page.finish()
        })
    }

    fn table(heading: &[&'static str], rows: &[&[&str]]) -> Table {
        let mut owned_rows = Vec::new();
        for row in rows {
            owned_rows.push(row.iter().map(|cell| (*cell).to_owned()).collect());
        }
        match Block::table("", heading.iter().copied(), owned_rows) {
            Block::Table(table) => table,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_grid_is_a_table_where_it_fits_and_else_a_list_without_empty_figures() {
        let heading = ["device", "operations per second", "beside the layer below"];
        let rows: [&[&str]; 2] = [&["loop0p1", "12,345", ""], &["vda", "812", "4 µs slower"]];
        let table = table(&heading, &rows);
        let wide = grid(&table, 80);
        assert_eq!(wide.lines().count(), 3);
        assert!(wide.starts_with("device   operations per second  beside the layer below\n"));
        let list = grid(&table, WIDTH_MIN);
        assert!(list.starts_with("loop0p1\n    operations per second 12,345\nvda\n"));
        let words: Vec<&str> = list.split_whitespace().collect();
        assert!(
            words
                .join(" ")
                .ends_with(&format!("{} {}", heading[2], rows[1][2])),
            "{list}"
        );
    }

    #[test]
    fn columns_give_way_by_rank_and_wide_ones_follow_below() {
        let cell = "x".repeat(18);
        let mut wide = table(&["a", "b", "c", "d"], &[&["1", &cell, &cell, &cell]]);
        wide.columns[1].place = Place::Roomy(1);
        wide.columns[2].place = Place::Roomy(2);
        let names = grid(&wide, 41).lines().next().unwrap().trim().to_owned();
        assert_eq!(names, "a                   b                   d");
        for column in &mut wide.columns {
            *column = Column::new(&column.name, Align::Right);
        }
        wide.narrow = Narrow::Split;
        assert_eq!(grid(&wide, 41).lines().count(), 4, "{}", grid(&wide, 41));
    }

    #[test]
    fn columns_align_by_visible_width() {
        let rows = [["硬盘", "1"], ["a", "1234"]].map(|row| row.map(str::to_owned).to_vec());
        for (width, expected) in [
            (10, Some(["硬盘     1", "a     1234"])),
            (9, Some(["硬盘    1", "a    1234"])),
            (8, None),
        ] {
            let table = Columns::fit(&[Align::Left, Align::Right], &rows, width);
            let lines =
                table.map(|table| [table.padded_line(&rows[0]), table.padded_line(&rows[1])]);
            assert_eq!(lines, expected.map(|lines| lines.map(str::to_owned)));
        }
    }
}
