//! Tables of a terminal page: columns as wide as their widest cell, as far apart as the page
//! allows; of blocks as many columns as fit, and a list where the page is too narrow.

use super::sparkline::sparkline;
use crate::page::{Page, StyledText, TextStyle, push_piece};
use crate::text::{clean, columns, glue, joined, list};
use diskproof_model::block::{
    Align, Cell, Column, Group, Mark, Narrow, Place, Table, TableRow, Titles,
};
use std::borrow::Cow;

/// Column at which the figures of a row begin where the table does not fit.
const INDENT: usize = 4;
/// From the lowest to the highest value, in even steps.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
/// Columns between the table and the graphs next to it.
const GRAPH_GAP: usize = 3;
/// A wider graph is hard to compare at a glance.
const GRAPH_COLUMNS_MAX: usize = 100;
/// Fewer values show no course.
const VALUES_LEAST: usize = 4;

/// The cells of a row, and what they are about.
struct Line<'t> {
    group: Option<&'t Group>,
    cells: Vec<StyledText<'t>>,
    course: &'t [f64],
}

/// A table without what a terminal cannot draw.
struct Grid<'t> {
    columns: Vec<Column>,
    lines: Vec<Line<'t>>,
    /// The name of the graphs next to the table.
    graphs: &'t str,
}

impl<'t> Grid<'t> {
    fn of(table: &'t Table) -> Self {
        let is_used = |index: usize| {
            let column = &table.columns[index];
            let is_text = matches!(column.place, Place::Always | Place::Roomy(_));
            let mut cells = table.rows.iter().map(|row| &row.cells[index]);
            is_text && (index == 0 || cells.any(|cell| !cell.text.trim().is_empty()))
        };
        let used: Vec<usize> = (0..table.columns.len()).filter(|i| is_used(*i)).collect();
        let columns = used.iter().map(|index| table.columns[*index].clone());
        let mut grid = Self {
            columns: columns.collect(),
            lines: table.rows.iter().map(|row| line(row, &used)).collect(),
            graphs: "",
        };
        let courses = |index: &usize| {
            let mut cells = table.rows.iter().map(|row| &row.cells[*index]);
            cells.any(|cell| matches!(cell.mark, Mark::Course(_)))
        };
        if let Some(index) = (0..table.columns.len()).find(courses) {
            grid.graphs = &table.columns[index].name;
        }
        if let Titles::Beside(name) = &table.titles {
            // The titles of groups are a column.
            grid.columns.insert(0, Column::new(name, Align::Left));
            for line in &mut grid.lines {
                let title = line.group.take().map_or("", |group| &group.title);
                line.cells.insert(0, line.cells[0].tone.of(title));
            }
        }
        grid
    }

    /// The names of these columns.
    fn names(&self, shown: &[usize]) -> Vec<String> {
        let columns = shown.iter().map(|index| &self.columns[*index]);
        columns.map(|column| column.name.clone()).collect()
    }

    /// Of these columns those that fit; the ones with the highest number give way.
    fn fit(&self, mut shown: Vec<usize>, width: usize) -> Option<(Vec<usize>, Columns)> {
        loop {
            let aligns = shown.iter().map(|index| self.columns[*index].align);
            let mut rows: Vec<_> = self.lines.iter().map(|line| texts(line, &shown)).collect();
            rows.push(self.names(&shown));
            if let Some(fitted) = Columns::fit(&aligns.collect::<Vec<_>>(), &rows, width) {
                return Some((shown, fitted));
            }
            let rank = |(at, index): (usize, &usize)| match self.columns[*index].place {
                Place::Roomy(rank) => Some((rank, at)),
                _ => None,
            };
            let (_, last) = shown.iter().enumerate().filter_map(rank).max()?;
            shown.remove(last);
        }
    }

    fn write(&self, page: &mut Page<'_>, shown: &[usize], columns: &Columns) {
        let room = page.width().saturating_sub(columns.total() + GRAPH_GAP);
        let has_room = !self.graphs.is_empty() && room >= crate::text::columns(self.graphs);
        let graph = |course: &[f64]| match course.len() {
            VALUES_LEAST.. if has_room => sparkline(course, room.min(GRAPH_COLUMNS_MAX)),
            _ => String::new(),
        };
        let graphs: Vec<String> = self.lines.iter().map(|line| graph(line.course)).collect();
        let is_drawn = graphs.iter().any(|graph| !graph.is_empty());
        let caption = if is_drawn { self.graphs } else { "" };
        let (names, dim) = (self.names(shown), vec![TextStyle::Dim; shown.len()]);
        if names.iter().any(|name| !name.is_empty()) {
            write_line(page, columns, &names, &dim, caption);
        }
        for (line, graph) in self.lines.iter().zip(&graphs) {
            write_title(page, line.group);
            let tones: Vec<TextStyle> = shown.iter().map(|index| line.cells[*index].tone).collect();
            write_line(page, columns, &texts(line, shown), &tones, graph);
        }
    }

    /// As many columns as fit, then the others.
    fn write_parts(&self, page: &mut Page<'_>) {
        let mut start = 1;
        while start < self.columns.len() {
            let mut end = self.columns.len();
            let (shown, columns) = loop {
                match self.fit([0].into_iter().chain(start..end).collect(), page.width()) {
                    Some(fitted) => break fitted,
                    None if end == start + 1 => return self.write_stacked(page),
                    None => end -= 1,
                }
            };
            self.write(page, &shown, &columns);
            start = end;
        }
    }

    /// Writes two cells of a row as a title, and the others below it.
    fn write_entries(&self, page: &mut Page<'_>) {
        for line in &self.lines {
            let title = TextStyle::Bold.of(format!("  {}", line.cells[0].text));
            page.entry(title, INDENT, TextStyle::Bold.of(&*line.cells[1].text));
            for cell in &line.cells[2..] {
                let text = TextStyle::Plain.of(&*cell.text);
                page.entry(TextStyle::Plain.of(""), INDENT, text);
            }
        }
    }

    /// Writes `naming` cells of a row as a title, and the others as a list below it.
    fn write_titled(&self, page: &mut Page<'_>, naming: usize) {
        let filled = |cells: &[StyledText<'_>], gap: &str| {
            let texts = cells.iter().map(|cell| cell.text.to_string());
            joined(texts.filter(|text| !text.is_empty()), gap).unwrap_or_default()
        };
        for line in &self.lines {
            let (names, rest) = line.cells.split_at(naming.min(line.cells.len()));
            page.text(TextStyle::Bold.of(filled(names, " ")));
            let rest = filled(rest, " · ");
            page.entry(TextStyle::Plain.of(""), INDENT, line.cells[0].tone.of(rest));
        }
    }

    /// Writes each row as its name, and below that each figure with the name of its column.
    fn write_stacked(&self, page: &mut Page<'_>) {
        for line in &self.lines {
            write_title(page, line.group);
            let figures = self.columns.iter().zip(&line.cells).skip(1);
            let figures = figures.filter(|(_, cell)| !cell.text.trim().is_empty());
            let figures = figures.map(|(Column { name, .. }, cell)| {
                let figure = format!("{name} {}", cell.text.trim());
                glue(figure.trim_start())
            });
            let name = line.cells[0].text.trim();
            if !name.is_empty() {
                page.text(TextStyle::Bold.of(name));
            }
            let none = TextStyle::Plain.of("");
            page.entry(none, INDENT, line.cells[0].tone.of(list(figures)));
        }
    }
}

fn line<'t>(row: &'t TableRow, used: &[usize]) -> Line<'t> {
    let cells = used.iter().map(|index| &row.cells[*index]);
    let styled = |cell: &'t Cell| match cell.tone {
        TextStyle::Plain => row.tone.of(shaded(cell)),
        tone => tone.of(shaded(cell)),
    };
    let course = row.cells.iter().find_map(|cell| match &cell.mark {
        Mark::Course(values) => Some(values.as_slice()),
        _ => None,
    });
    Line {
        group: row.group.as_ref(),
        cells: cells.map(styled).collect(),
        course: course.unwrap_or_default(),
    }
}

fn texts(line: &Line<'_>, shown: &[usize]) -> Vec<String> {
    let cells = shown.iter().map(|index| &line.cells[*index]);
    cells.map(|cell| cell.text.to_string()).collect()
}

/// The text of a cell behind its shade.
fn shaded(cell: &Cell) -> Cow<'_, str> {
    let Mark::Heat(share) = cell.mark else {
        return Cow::from(&cell.text);
    };
    let step = (share.unwrap_or(0.0) * SHADES.len() as f64) as usize;
    format!("{}{:>7}", SHADES[step.min(SHADES.len() - 1)], cell.text).into()
}

fn write_title(page: &mut Page<'_>, group: Option<&Group>) {
    let Some(group) = group else { return };
    page.text(TextStyle::Bold.of(&group.title));
    if !group.warning.is_empty() {
        let warning = TextStyle::Warning.of(&group.warning);
        page.entry(TextStyle::Plain.of(""), 2, warning);
    }
}

fn write_line(
    page: &mut Page<'_>,
    columns: &Columns,
    cells: &[String],
    tones: &[TextStyle],
    graph: &str,
) {
    let mut pieces: Vec<StyledText<'_>> = Vec::new();
    for (text, tone) in columns.cells(cells).iter().zip(tones) {
        push_piece(&mut pieces, *tone, text);
    }
    let gap = " ".repeat(GRAPH_GAP.saturating_sub(columns.gap()));
    pieces.push(tones[0].of(format!("{gap}{graph}")));
    page.pieces(&pieces);
}

/// Writes the table.
pub(super) fn write_grid(page: &mut Page<'_>, table: &Table) {
    let grid = Grid::of(table);
    if grid.lines.is_empty() {
        return;
    }
    match grid.fit((0..grid.columns.len()).collect(), page.width()) {
        _ if table.narrow == Narrow::Entries => grid.write_entries(page),
        Some((shown, columns)) => grid.write(page, &shown, &columns),
        None => match table.narrow {
            Narrow::Split => grid.write_parts(page),
            Narrow::Titled(naming) => grid.write_titled(page, naming),
            Narrow::Stack | Narrow::Entries => grid.write_stacked(page),
        },
    }
}

/// The largest and the smallest gap between two columns of a table.
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

    /// The width of a row.
    pub(super) fn total(&self) -> usize {
        self.widths.iter().sum::<usize>() + self.gap * self.widths.len().saturating_sub(1)
    }

    /// The columns between two of them.
    pub(super) fn gap(&self) -> usize {
        self.gap
    }

    /// The cells of a row, each as wide as its column and the gap behind it.
    pub(super) fn cells(&self, row: &[String]) -> Vec<String> {
        let cells = row.iter().zip(&self.widths).zip(&self.aligns);
        let padded = cells.map(|((cell, width), align)| {
            let cell = clean(cell);
            let pad = " ".repeat(width.saturating_sub(columns(&cell)));
            let gap = " ".repeat(self.gap);
            match align {
                Align::Left => [cell, pad, gap].concat(),
                Align::Right => [pad, cell, gap].concat(),
            }
        });
        padded.collect()
    }

    /// One row as a line.
    pub(super) fn line(&self, row: &[String]) -> String {
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
        let cells = |row: &&[&str]| row.iter().map(|&cell| cell.to_owned()).collect();
        let rows = rows.iter().map(cells).collect();
        match Block::table("", heading.iter().copied(), rows) {
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
            let lines = table.map(|table| [table.line(&rows[0]), table.line(&rows[1])]);
            assert_eq!(lines, expected.map(|lines| lines.map(str::to_owned)));
        }
    }
}
