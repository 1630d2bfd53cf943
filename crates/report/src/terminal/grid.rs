//! A table of blocks on a terminal page: with as many columns as fit; a list where the page is too
//! narrow.

use super::sparkline::sparkline;
use crate::page::{Page, StyledText, TextStyle, push_piece};
use crate::table::{Align, Columns};
use crate::text::{glue, list};
use diskproof_model::block::{Cell, Group, Mark, Narrow, Place, Row, Table, Titles};
use std::io;

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
    cells: Vec<String>,
    tones: Vec<TextStyle>,
    course: &'t [f64],
}

/// A table without what a terminal cannot draw.
struct Grid<'t> {
    names: Vec<String>,
    aligns: Vec<Align>,
    places: Vec<Place>,
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
        let columns = || used.iter().map(|index| &table.columns[*index]);
        let mut grid = Self {
            names: columns().map(|column| column.name.clone()).collect(),
            aligns: columns().map(|column| column.align).collect(),
            places: columns().map(|column| column.place).collect(),
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
            grid.put_titles_beside(name);
        }
        grid
    }

    /// Moves the titles of groups into a column.
    fn put_titles_beside(&mut self, name: &str) {
        self.names.insert(0, name.to_owned());
        self.aligns.insert(0, Align::Left);
        self.places.insert(0, Place::Always);
        for line in &mut self.lines {
            let title = line.group.take().map(|group| group.title.clone());
            line.cells.insert(0, title.unwrap_or_default());
            line.tones.insert(0, line.tones[0]);
        }
    }

    /// The columns that fit; the ones with the highest number give way.
    fn fit(&mut self, width: usize) -> Option<Columns> {
        loop {
            let rows = self.lines.iter().map(|line| &line.cells);
            let fitted = Columns::fit(&self.aligns, rows.chain([&self.names]), width);
            if fitted.is_some() {
                return fitted;
            }
            let rank = |(index, place): (usize, &Place)| match place {
                Place::Roomy(rank) => Some((*rank, index)),
                _ => None,
            };
            let (_, last) = self.places.iter().enumerate().filter_map(rank).max()?;
            self.remove(last);
        }
    }

    fn remove(&mut self, index: usize) {
        self.names.remove(index);
        self.aligns.remove(index);
        self.places.remove(index);
        for line in &mut self.lines {
            line.cells.remove(index);
            line.tones.remove(index);
        }
    }

    /// The first column and a part of the others.
    fn part(&self, columns: std::ops::Range<usize>) -> Self {
        fn kept<T: Clone>(all: &[T], columns: std::ops::Range<usize>) -> Vec<T> {
            [&all[..1], &all[columns]].concat()
        }
        let line = |line: &Line<'t>| Line {
            group: line.group,
            cells: kept(&line.cells, columns.clone()),
            tones: kept(&line.tones, columns.clone()),
            course: line.course,
        };
        Self {
            names: kept(&self.names, columns.clone()),
            aligns: kept(&self.aligns, columns.clone()),
            places: kept(&self.places, columns.clone()),
            lines: self.lines.iter().map(line).collect(),
            graphs: self.graphs,
        }
    }

    fn write(&self, page: &mut Page<'_>, columns: &Columns) -> io::Result<()> {
        let room = page.width().saturating_sub(columns.total() + GRAPH_GAP);
        let has_room = !self.graphs.is_empty() && room >= crate::text::columns(self.graphs);
        let graph = |course: &[f64]| match course.len() {
            VALUES_LEAST.. if has_room => sparkline(course, room.min(GRAPH_COLUMNS_MAX)),
            _ => String::new(),
        };
        let graphs: Vec<String> = self.lines.iter().map(|line| graph(line.course)).collect();
        let caption = if graphs.iter().all(String::is_empty) {
            ""
        } else {
            self.graphs
        };
        let dim = vec![TextStyle::Dim; self.names.len()];
        if self.names.iter().any(|name| !name.is_empty()) {
            write_line(page, columns, &self.names, &dim, caption)?;
        }
        for (line, graph) in self.lines.iter().zip(&graphs) {
            write_title(page, line.group)?;
            write_line(page, columns, &line.cells, &line.tones, graph)?;
        }
        Ok(())
    }

    /// As many columns as fit, then the others.
    fn write_parts(&self, page: &mut Page<'_>) -> io::Result<()> {
        let mut start = 1;
        while start < self.names.len() {
            let mut end = self.names.len();
            let (part, columns) = loop {
                let mut part = self.part(start..end);
                match part.fit(page.width()) {
                    Some(columns) => break (part, columns),
                    None if end == start + 1 => return self.write_stacked(page),
                    None => end -= 1,
                }
            };
            part.write(page, &columns)?;
            start = end;
        }
        Ok(())
    }

    /// Writes two cells of a row as a title, and the others below it.
    fn write_entries(&self, page: &mut Page<'_>) -> io::Result<()> {
        for line in &self.lines {
            let title = TextStyle::Bold.of(format!("  {}", line.cells[0]));
            page.entry(title, INDENT, TextStyle::Bold.of(&line.cells[1]))?;
            for text in &line.cells[2..] {
                page.entry(TextStyle::Plain.of(""), INDENT, TextStyle::Plain.of(text))?;
            }
        }
        Ok(())
    }

    /// Writes `naming` cells of a row as a title, and the others as a list below it.
    fn write_titled(&self, page: &mut Page<'_>, naming: usize) -> io::Result<()> {
        let filled = |cells: &[String], gap: &str| {
            let filled = cells.iter().filter(|cell| !cell.is_empty());
            filled.cloned().collect::<Vec<_>>().join(gap)
        };
        for line in &self.lines {
            let (names, rest) = line.cells.split_at(naming.min(line.cells.len()));
            page.text(TextStyle::Bold.of(filled(names, " ")))?;
            let rest = filled(rest, " · ");
            page.entry(TextStyle::Plain.of(""), INDENT, line.tones[0].of(rest))?;
        }
        Ok(())
    }

    /// Writes each row as its name, and below that each figure with the name of its column.
    fn write_stacked(&self, page: &mut Page<'_>) -> io::Result<()> {
        for line in &self.lines {
            write_title(page, line.group)?;
            let figures = self.names.iter().zip(&line.cells).skip(1);
            let figures: Vec<String> = figures
                .filter(|(_, cell)| !cell.trim().is_empty())
                .map(|(name, cell)| glue(format!("{name} {}", cell.trim()).trim_start()))
                .collect();
            if !line.cells[0].is_empty() {
                page.text(TextStyle::Bold.of(line.cells[0].trim()))?;
            }
            let none = TextStyle::Plain.of("");
            page.entry(none, INDENT, line.tones[0].of(list(figures)))?;
        }
        Ok(())
    }
}

fn line<'t>(row: &'t Row, used: &[usize]) -> Line<'t> {
    let cells = || used.iter().map(|index| &row.cells[*index]);
    let tone = |cell: &Cell| match cell.tone {
        TextStyle::Plain => row.tone,
        tone => tone,
    };
    let course = row.cells.iter().find_map(|cell| match &cell.mark {
        Mark::Course(values) => Some(values.as_slice()),
        _ => None,
    });
    Line {
        group: row.group.as_ref(),
        cells: cells().map(shaded).collect(),
        tones: cells().map(tone).collect(),
        course: course.unwrap_or_default(),
    }
}

/// The text of a cell behind its shade.
fn shaded(cell: &Cell) -> String {
    let Mark::Heat(share) = cell.mark else {
        return cell.text.clone();
    };
    let step = (share.unwrap_or(0.0) * SHADES.len() as f64) as usize;
    format!("{}{:>7}", SHADES[step.min(SHADES.len() - 1)], cell.text)
}

fn write_title(page: &mut Page<'_>, group: Option<&Group>) -> io::Result<()> {
    let Some(group) = group else {
        return Ok(());
    };
    page.text(TextStyle::Bold.of(&group.title))?;
    match group.warning.as_str() {
        "" => Ok(()),
        warning => page.entry(TextStyle::Plain.of(""), 2, TextStyle::Warning.of(warning)),
    }
}

fn write_line(
    page: &mut Page<'_>,
    columns: &Columns,
    cells: &[String],
    tones: &[TextStyle],
    graph: &str,
) -> io::Result<()> {
    let mut pieces: Vec<StyledText<'_>> = Vec::new();
    for (text, tone) in columns.cells(cells).iter().zip(tones) {
        push_piece(&mut pieces, *tone, text);
    }
    let gap = " ".repeat(GRAPH_GAP.saturating_sub(columns.gap()));
    pieces.push(tones[0].of(format!("{gap}{graph}")));
    page.pieces(&pieces)
}

/// Writes the table.
pub(super) fn write_grid(page: &mut Page<'_>, table: &Table) -> io::Result<()> {
    let mut grid = Grid::of(table);
    if grid.lines.is_empty() {
        return Ok(());
    }
    let whole = grid.part(1..grid.names.len());
    match grid.fit(page.width()) {
        _ if table.narrow == Narrow::Entries => whole.write_entries(page),
        Some(columns) => grid.write(page, &columns),
        None => match table.narrow {
            Narrow::Split => whole.write_parts(page),
            Narrow::Titled(naming) => whole.write_titled(page, naming),
            Narrow::Stack | Narrow::Entries => whole.write_stacked(page),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::{Color, Style, WIDTH_MIN};
    use diskproof_model::block::{Block, Column};

    fn grid(table: &Table, width: usize) -> String {
        let style = Style {
            width,
            color: Color::Plain,
        };
        let mut bytes = Vec::new();
        write_grid(&mut Page::new(&style, &mut bytes), table).unwrap();
        String::from_utf8(bytes).unwrap()
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
                .ends_with("beside the layer below 4 µs slower")
        );
    }

    #[test]
    fn columns_give_way_by_rank_and_wide_ones_follow_below() {
        let cell = "x".repeat(18);
        let mut wide = table(&["a", "b", "c", "d"], &[&["1", &cell, &cell, &cell]]);
        wide.columns[1].place = Place::Roomy(1);
        wide.columns[2].place = Place::Roomy(2);
        assert_eq!(
            grid(&wide, 41).lines().next().unwrap().trim(),
            "a                   b                   d"
        );
        wide.columns
            .iter_mut()
            .for_each(|c| *c = Column::new(&c.name, Align::Right));
        wide.narrow = Narrow::Split;
        assert_eq!(grid(&wide, 41).lines().count(), 4, "{}", grid(&wide, 41));
    }
}
