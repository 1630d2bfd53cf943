//! The parts of a page. What a page says is written once, as blocks; the terminal, the browser page
//! and Markdown lay them out. Every text is as measured or as given: renderers make it safe.

use std::borrow::Cow;

/// The role of a text, which decides how a renderer emphasises it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Ordinary text.
    #[default]
    Plain,
    /// Titles and names.
    Bold,
    /// Conditions and legends.
    Dim,
    /// Something is good.
    Good,
    /// Something is wrong.
    Error,
    /// Something may be wrong.
    Warning,
    /// Worth knowing.
    Note,
    /// Single points of a chart.
    Dot,
}

impl Tone {
    /// A text in this role.
    pub fn of<'a>(self, text: impl Into<Cow<'a, str>>) -> Span<'a> {
        Span {
            tone: self,
            text: text.into(),
        }
    }
}

/// A text and its role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span<'a> {
    /// The role.
    pub tone: Tone,
    /// The text.
    pub text: Cow<'a, str>,
}

/// One part of a page.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// The title of what follows, up to the next heading.
    Heading(String),
    /// A paragraph.
    Text(Tone, String),
    /// A label and what it says.
    Fact(Fact),
    /// A table.
    Table(Table),
    /// A chart of the record, by its id.
    Chart(&'static str),
}

/// A label and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The label; empty where the text continues the fact before.
    pub label: String,
    /// The role of the label.
    pub tone: Tone,
    /// The text.
    pub text: String,
}

/// A table. The first column names the row; a renderer that has too little room writes each row as
/// its name and a list of the other cells, each with the name of its column.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// What the table shows, for pages that have captions.
    pub caption: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// How the cells after the first align.
    pub align: Align,
    /// The rows; each has a cell a column.
    pub rows: Vec<Vec<String>>,
}

/// How a cell aligns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Align {
    /// For words.
    Left,
    /// For numbers.
    #[default]
    Right,
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

    /// A paragraph.
    pub fn text(tone: Tone, text: impl Into<String>) -> Self {
        Self::Text(tone, text.into())
    }

    /// A table of numbers.
    pub fn table<'a>(
        caption: &str,
        columns: impl IntoIterator<Item = &'a str>,
        rows: Vec<Vec<String>>,
    ) -> Self {
        Self::Table(Table {
            caption: caption.to_owned(),
            columns: columns.into_iter().map(str::to_owned).collect(),
            align: Align::Right,
            rows,
        })
    }

    /// Facts with ordinary labels.
    pub fn facts<'a>(
        facts: impl IntoIterator<Item = (&'a str, String)>,
    ) -> impl Iterator<Item = Self> {
        facts
            .into_iter()
            .map(|(label, text)| Self::fact(label, text))
    }
}
