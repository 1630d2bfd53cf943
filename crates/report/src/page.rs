//! A page that is being written: lines of limited width, labels with hanging text, aligned columns,
//! colours. Every text passes [`clean`] here, so that no printer can forget it. Knows nothing of
//! records.

use crate::style::{Color, Style, WIDTH_MIN};
use crate::text::{clean, columns, glue_units, wrap};
use anstyle::AnsiColor;
use std::io::{self, Write};

/// Running text is wrapped at this width even where the page is wider: longer lines are hard to
/// read, and pasted pages look alike.
const TEXT_COLUMNS_MAX: usize = 100;
/// Columns between two columns of a table.
const GAP: usize = 2;

/// What a piece of text is, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    /// Ordinary text.
    Plain,
    /// Titles and names.
    Strong,
    /// Conditions and footnotes.
    Faint,
    /// Something is wrong.
    Alarm,
    /// Something may be wrong.
    Caution,
    /// Good to know.
    Hint,
    /// Single points of a chart. Magenta is read on dark and on light terminals alike; yellow is
    /// not.
    Dot,
}

impl Ink {
    fn style(self) -> anstyle::Style {
        let style = anstyle::Style::new();
        match self {
            Self::Plain => style,
            Self::Strong => style.bold(),
            Self::Faint => style.dimmed(),
            Self::Alarm => style.bold().fg_color(Some(AnsiColor::Red.into())),
            Self::Caution => style.bold().fg_color(Some(AnsiColor::Yellow.into())),
            Self::Hint => style.fg_color(Some(AnsiColor::Cyan.into())),
            Self::Dot => style.fg_color(Some(AnsiColor::Magenta.into())),
        }
    }
}

/// A page under the pen.
pub(crate) struct Page<'a> {
    width: usize,
    color: Color,
    out: &'a mut dyn Write,
}

impl<'a> Page<'a> {
    /// An empty page.
    pub(crate) fn new(style: &Style, out: &'a mut dyn Write) -> Self {
        Self {
            width: style.width.max(WIDTH_MIN),
            color: style.color,
            out,
        }
    }

    /// An empty line.
    pub(crate) fn blank(&mut self) -> io::Result<()> {
        writeln!(self.out)
    }

    /// Text from the first column on.
    pub(crate) fn text(&mut self, ink: Ink, text: &str) -> io::Result<()> {
        self.entry((Ink::Plain, ""), 0, (ink, text))
    }

    /// A label and, from column `indent` on, text that hangs beside it. A longer label pushes the
    /// first line of the text to the right, and one that fills the line stands alone.
    pub(crate) fn entry(
        &mut self,
        label: (Ink, &str),
        indent: usize,
        text: (Ink, &str),
    ) -> io::Result<()> {
        let width = self.width.min(TEXT_COLUMNS_MAX);
        let name = clean(label.1);
        let mut taken = columns(&name);
        if taken > width - indent {
            for line in wrap(&name, width, width) {
                self.inked(label.0, &line)?;
                self.blank()?;
            }
            taken = 0;
        } else {
            self.inked(label.0, &name)?;
        }
        let start = if taken == 0 {
            indent
        } else {
            indent.max(taken + GAP)
        };
        for (index, line) in wrap(&glue_units(&clean(text.1)), width - start, width - indent)
            .iter()
            .enumerate()
        {
            let pad = if index == 0 { start - taken } else { indent };
            if !line.is_empty() {
                write!(self.out, "{:pad$}", "")?;
                self.inked(text.0, line)?;
            }
            self.blank()?;
        }
        Ok(())
    }

    /// A line that is never broken: a row of a table that is known to fit, or a command that will
    /// be pasted.
    pub(crate) fn unbroken(&mut self, ink: Ink, line: &str) -> io::Result<()> {
        self.inked(ink, &clean(line))?;
        self.blank()
    }

    /// A line in several inks, blanks at its end left out. Only text of the program's own, or text
    /// that was cleaned.
    pub(crate) fn pieces(&mut self, pieces: &[(Ink, String)]) -> io::Result<()> {
        let end = pieces
            .iter()
            .rposition(|(_, text)| !text.trim_end().is_empty())
            .map_or(0, |last| last + 1);
        for (index, (ink, text)) in pieces[..end].iter().enumerate() {
            let text = clean(if index + 1 == end {
                text.trim_end()
            } else {
                text
            });
            self.inked(
                if text.trim().is_empty() {
                    Ink::Plain
                } else {
                    *ink
                },
                &text,
            )?;
        }
        self.blank()
    }

    /// Columns that a line may take.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Whether a table may take `total` columns.
    pub(crate) fn has_room_for(&self, total: usize) -> bool {
        total <= self.width
    }

    fn inked(&mut self, ink: Ink, text: &str) -> io::Result<()> {
        let style = ink.style();
        if self.color == Color::Plain || style.is_plain() || text.is_empty() {
            return self.out.write_all(text.as_bytes());
        }
        write!(self.out, "{style}{text}{style:#}")
    }
}

/// To which side of its column a cell leans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lean {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// The columns of a table, each as wide as its widest cell.
pub(crate) struct Columns {
    leans: Vec<Lean>,
    widths: Vec<usize>,
}

impl Columns {
    /// Columns for these rows, the heading among them. Every row has a cell per column.
    pub(crate) fn fit<'a>(leans: &[Lean], rows: impl IntoIterator<Item = &'a Vec<String>>) -> Self {
        let mut widths = vec![0; leans.len()];
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = columns(&clean(cell)).max(*width);
            }
        }
        Self {
            leans: leans.to_vec(),
            widths,
        }
    }

    /// Columns that a row takes.
    pub(crate) fn total(&self) -> usize {
        self.widths.iter().sum::<usize>() + GAP * self.widths.len().saturating_sub(1)
    }

    /// One row as a line.
    pub(crate) fn line(&self, row: &[String]) -> String {
        let mut line = String::new();
        for ((cell, width), lean) in row.iter().zip(&self.widths).zip(&self.leans) {
            let cell = clean(cell);
            let pad = " ".repeat(width.saturating_sub(columns(&cell)));
            match lean {
                Lean::Left => line.extend([cell.as_str(), &pad]),
                Lean::Right => line.extend([pad.as_str(), &cell]),
            }
            line.push_str(&" ".repeat(GAP));
        }
        line.truncate(line.trim_end().len());
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(color: Color, write: impl Fn(&mut Page<'_>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut Page::new(&Style { width: 1, color }, &mut out)).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_hangs_beside_its_label() {
        let long = "word ".repeat(20);
        let text = page(Color::Plain, |p| {
            p.entry((Ink::Strong, "disk"), 8, (Ink::Plain, &long))
        });
        assert_eq!(
            text,
            format!(
                "disk    {}\n        {}\n",
                ["word"; 10].join(" "),
                ["word"; 10].join(" ")
            )
        );
    }

    #[test]
    fn a_label_wider_than_the_page_is_broken_too() {
        let label = "n".repeat(100);
        let text = page(Color::Plain, |p| {
            p.entry((Ink::Strong, &label), 8, (Ink::Plain, "text"))
        });
        assert_eq!(
            text,
            format!("{}\n{}\n        text\n", "n".repeat(60), "n".repeat(40))
        );
    }

    #[test]
    fn colours_enclose_words_only() {
        let text = page(Color::Ansi, |p| {
            p.entry((Ink::Alarm, "failure"), 9, (Ink::Plain, "\u{1b}[2J"))
        });
        assert_eq!(text, "\u{1b}[1m\u{1b}[31mfailure\u{1b}[0m  \\u{1b}[2J\n");
    }

    #[test]
    fn columns_align_by_what_is_seen() {
        let rows = [
            vec!["硬盘".to_owned(), "1".to_owned()],
            vec!["a".to_owned(), "1234".to_owned()],
        ];
        let table = Columns::fit(&[Lean::Left, Lean::Right], &rows);
        assert_eq!(
            (table.line(&rows[0]), table.line(&rows[1])),
            ("硬盘     1".to_owned(), "a     1234".to_owned())
        );
        assert_eq!(table.total(), 10);
    }
}
