//! The parts of a page. What a page says is written once, as blocks; the terminal, the browser page
//! and Markdown lay them out. Every text is as measured or as given: renderers make it safe.

use crate::comparison::Ratio;
use crate::finding::Finding;
use std::borrow::Cow;

/// The role of a text, which decides how a renderer emphasises it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Ordinary text, in the colour of the page.
    #[default]
    Plain,
    /// Titles and names.
    Bold,
    /// Conditions and legends.
    Dim,
    /// Praise: a good grade, a condition that holds.
    Good,
    /// A fault that makes figures useless or a run fail.
    Error,
    /// Something may be wrong.
    Warning,
    /// A remark that is worth knowing and weighs nothing.
    Note,
    /// Single points of a chart.
    Dot,
}

impl Tone {
    /// The text in this role.
    pub fn span<'a>(self, text: impl Into<Cow<'a, str>>) -> Span<'a> {
        Span {
            tone: self,
            text: text.into(),
        }
    }
}

/// A text and its role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span<'a> {
    /// The role, from which each page takes its colour.
    pub tone: Tone,
    /// The words, without line breaks.
    pub text: Cow<'a, str>,
}

/// A part of a page with one purpose.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// The subject, in lower case; also the anchor of links to it.
    pub id: &'static str,
    /// The pages that show it.
    pub shown: Shown,
    /// The content, in the order in which it is shown.
    pub blocks: Vec<Block>,
}

/// The pages that show a section. This alone decides what a short page keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Shown on every page.
    Always,
    /// On whole pages.
    Whole,
    /// On short pages, in place of those of whole ones.
    Short,
    /// Shown on pages that are files, not on the terminal.
    File,
}

/// One block of a page.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// The title of what follows, up to the next heading.
    Heading(String),
    /// A paragraph in one role.
    Text(Tone, String),
    /// A label and what it says.
    Fact(Fact),
    /// A table.
    Table(Table),
    /// A chart of the record, by its id.
    Chart(&'static str),
    /// A finding with its claim and remedy.
    Finding(Finding),
    /// A text for a shell or a file, with what it does.
    Command {
        /// A verb phrase that says what the commands do.
        what: String,
        /// The commands, one a line.
        text: String,
    },
    /// The sum of the single requests of a measurement, by its index in the record.
    Ping(usize),
    /// The map of a scan.
    Scan,
}

/// A label and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The label; empty where the text continues the fact before.
    pub label: String,
    /// The role of the label.
    pub tone: Tone,
    /// The value as words.
    pub text: String,
}

/// A table. The first column names the row, or the group of rows if there are groups.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// The caption, for pages that have captions.
    pub caption: String,
    /// The columns, in the order of the cells of each row.
    pub columns: Vec<Column>,
    /// The rows; each has a cell a column.
    pub rows: Vec<TableRow>,
    /// The place of the titles of groups.
    pub titles: Titles,
    /// The remedy where the width is too small.
    pub narrow: Narrow,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// The alignment of its cells.
    pub align: Align,
    /// The pages that show it.
    pub place: Place,
}

/// The pages and widths that show a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Place {
    /// On every page of any width.
    #[default]
    Always,
    /// Shown where there is room; the highest number gives way first.
    Roomy(u8),
    /// Shown on pages that scroll.
    Page,
    /// Shown where the marks of its cells can be drawn.
    Drawn,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableRow {
    /// The group that begins with this row.
    pub group: Option<Group>,
    /// One for each column.
    pub cells: Vec<Cell>,
    /// The role of the row.
    pub tone: Tone,
}

/// The heading over several rows that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Group {
    /// The words of the heading.
    pub title: String,
    /// Conditions, for pages that scroll.
    pub note: String,
    /// The reason why its rows are in doubt, shown on every page; empty where they are not.
    pub warning: String,
    /// Codes of the findings that concern it.
    pub codes: Vec<String>,
    /// The anchor that links to it name; `None` where nothing links to it.
    pub anchor: Option<String>,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// The words; empty where only the mark is shown.
    pub text: String,
    /// The role of the text, if it differs from that of the row.
    pub tone: Tone,
    /// The drawing beside the words.
    pub mark: Mark,
    /// Further words about it, for pages that can show them on request.
    pub note: String,
}

/// A drawing in a cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Mark {
    /// No drawing.
    #[default]
    None,
    /// A shade, from 0 for the lowest to 1 for the highest value of the table; none for a value
    /// that does not count.
    Heat(Option<f64>),
    /// An interval, by its half-width as a share of the value; infinite where that is unknown.
    Interval(f64),
    /// A ratio with its interval.
    Ratio {
        /// The ratio.
        ratio: Ratio,
        /// The natural logarithm of the ratio at the end of the scale.
        reach: f64,
        /// Differences up to this share are ignored.
        margin: f64,
    },
    /// A line of values over time, evenly spaced.
    Course(Vec<f64>),
}

/// The place of the titles of groups on a narrow page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Titles {
    /// The title stands on a line above the rows.
    #[default]
    Above,
    /// The titles stand in a column before the others, of this name.
    Beside(String),
}

/// The remedy for a table that is too wide for its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Narrow {
    /// Write each row as its name and a list of the other cells with the names of their columns.
    #[default]
    Stack,
    /// Write as many columns as fit, and the others below with the first column again.
    Split,
    /// Write two cells as a title, and the others below it.
    Entries,
    /// Write so many cells as a title, and the others in a list below it.
    Titled(usize),
}

/// The alignment of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Align {
    /// Aligned to the left, as words stand.
    Left,
    /// Aligned to the right, as numbers stand.
    #[default]
    Right,
}

impl Section {
    /// A section with these blocks.
    pub fn new(id: &'static str, shown: Shown, blocks: Vec<Block>) -> Self {
        Self { id, shown, blocks }
    }
}

impl Block {
    /// A fact with an ordinary label.
    pub fn fact(label: &str, text: impl Into<String>) -> Self {
        Self::toned_fact(Tone::Dim, label, text)
    }

    /// A fact whose label has a role.
    pub fn toned_fact(tone: Tone, label: &str, text: impl Into<String>) -> Self {
        Self::Fact(Fact {
            label: label.to_owned(),
            tone,
            text: text.into(),
        })
    }

    /// A paragraph in one role.
    pub fn text(tone: Tone, text: impl Into<String>) -> Self {
        Self::Text(tone, text.into())
    }

    /// A table of numbers.
    pub fn table<'a>(
        caption: &str,
        columns: impl IntoIterator<Item = &'a str>,
        rows: Vec<Vec<String>>,
    ) -> Self {
        let table_rows = rows.into_iter().map(TableRow::from).collect();
        Self::Table(Table::new(caption, Column::numbers(columns), table_rows))
    }

    /// A table of words.
    pub fn words<'a>(
        caption: &str,
        columns: impl IntoIterator<Item = &'a str>,
        rows: Vec<TableRow>,
    ) -> Self {
        Self::Table(Table::new(caption, Column::words(columns), rows))
    }

    /// Facts with ordinary labels; none for a text that is unknown.
    pub fn facts<'a, T: Into<Option<String>>>(
        facts: impl IntoIterator<Item = (&'a str, T)>,
    ) -> impl Iterator<Item = Self> {
        facts
            .into_iter()
            .filter_map(|(label, text)| Some(Self::fact(label, text.into()?)))
    }

    /// Blocks under a heading; nothing without blocks.
    pub fn headed(title: &str, blocks: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut all = vec![Self::Heading(title.to_owned())];
        all.extend(blocks);
        if all.len() > 1 { all } else { Vec::new() }
    }
}

impl Table {
    /// A table without titles, whose columns have the names of figures where it is too wide.
    pub fn new(caption: &str, columns: Vec<Column>, rows: Vec<TableRow>) -> Self {
        Self {
            caption: caption.to_owned(),
            columns,
            rows,
            ..Self::default()
        }
    }
}

impl Column {
    /// A column that is always shown.
    pub fn new(name: &str, align: Align) -> Self {
        Self {
            name: name.to_owned(),
            align,
            place: Place::Always,
        }
    }

    /// A column of numbers.
    pub fn number(name: &str, place: Place) -> Self {
        Self {
            place,
            ..Self::new(name, Align::Right)
        }
    }

    /// Columns for words, aligned to the left and shown everywhere.
    pub fn words<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Self> {
        names
            .into_iter()
            .map(|name| Self::new(name, Align::Left))
            .collect()
    }

    /// A column of words, then columns of numbers.
    pub fn numbers<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Self> {
        let mut columns = Vec::new();
        for name in names {
            let align = if columns.is_empty() {
                Align::Left
            } else {
                Align::Right
            };
            columns.push(Self::new(name, align));
        }
        columns
    }
}

impl<T: Into<Cell>> From<Vec<T>> for TableRow {
    fn from(cells: Vec<T>) -> Self {
        Self {
            cells: cells.into_iter().map(T::into).collect(),
            ..Self::default()
        }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

impl Cell {
    /// The text in this role.
    pub fn toned(tone: Tone, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            tone,
            ..Self::default()
        }
    }

    /// A drawing without a text.
    pub fn drawn(mark: Mark) -> Self {
        Self {
            mark,
            ..Self::default()
        }
    }
}
