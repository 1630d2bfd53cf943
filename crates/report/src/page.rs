//! A terminal page: lines of limited width, labels with hanging text, colours. Every text passes
//! [`clean`] here, so that no printer can forget it.

use crate::style::{Color, Style, WIDTH_MIN};
use crate::text::{clean, columns, glue_units, wrap};
use anstyle::AnsiColor;
use std::fmt::Arguments;
use std::io::{self, Write};

pub(crate) use diskproof_model::block::{Span as StyledText, Tone as TextStyle};

/// Running text wraps here even on a wider page, because longer lines are hard to read.
const TEXT_COLUMNS_MAX: usize = 100;
/// Columns between a label that is longer than the indent and its text.
const GAP: usize = 2;
/// Column at which the text of a fact begins, if its label is short.
pub(crate) const INDENT: usize = 11;

/// The colour of a role. Single points are magenta: unlike yellow, it is legible on dark and light
/// terminals.
fn ansi(tone: TextStyle) -> anstyle::Style {
    let style = anstyle::Style::new();
    match tone {
        TextStyle::Plain => style,
        TextStyle::Bold => style.bold(),
        TextStyle::Dim => style.dimmed(),
        TextStyle::Good => style.fg_color(Some(AnsiColor::Green.into())),
        TextStyle::Error => style.bold().fg_color(Some(AnsiColor::Red.into())),
        TextStyle::Warning => style.bold().fg_color(Some(AnsiColor::Yellow.into())),
        TextStyle::Note => style.fg_color(Some(AnsiColor::Cyan.into())),
        TextStyle::Dot => style.fg_color(Some(AnsiColor::Magenta.into())),
    }
}

/// Adds to the last piece of a line if the style is the same.
pub(crate) fn push_piece(pieces: &mut Vec<StyledText<'_>>, style: TextStyle, text: &str) {
    match pieces.last_mut() {
        Some(last) if last.tone == style => last.text.to_mut().push_str(text),
        _ => pieces.push(style.of(text.to_owned())),
    }
}

/// A page and its output.
pub(crate) struct Page<'a> {
    width: usize,
    color: Color,
    out: &'a mut dyn Write,
    /// The first error of the output, after which nothing more is written. [`Page::finish`] returns
    /// it, so that no line of a page has to.
    first_error: io::Result<()>,
}

impl<'a> Page<'a> {
    /// An empty page.
    pub(crate) fn new(style: &Style, out: &'a mut dyn Write) -> Self {
        Self {
            width: style.width.max(WIDTH_MIN),
            color: style.color,
            out,
            first_error: Ok(()),
        }
    }

    /// Returns the first error of the output, if there was one.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        std::mem::replace(&mut self.first_error, Ok(()))
    }

    fn write(&mut self, text: Arguments<'_>) {
        if self.first_error.is_ok() {
            self.first_error = self.out.write_fmt(text);
        }
    }

    /// An empty line.
    pub(crate) fn blank(&mut self) {
        self.write(format_args!("\n"));
    }

    /// Wrapped text from the first column on.
    pub(crate) fn text(&mut self, text: StyledText<'_>) {
        self.entry(TextStyle::Plain.of(""), 0, text);
    }

    /// A label and, from column `indent` on, wrapped text that hangs to its right. A longer label
    /// moves the first line of the text to the right; one that fills the line stands alone.
    pub(crate) fn entry(&mut self, label: StyledText<'_>, indent: usize, text: StyledText<'_>) {
        let width = self.width.min(TEXT_COLUMNS_MAX);
        let name = clean(&label.text);
        let mut taken = columns(&name);
        if taken > width - indent {
            for line in wrap(&name, width, width) {
                self.write_styled(label.tone, &line);
                self.blank();
            }
            taken = 0;
        } else {
            self.write_styled(label.tone, &name);
        }
        let start = match taken {
            0 => indent,
            _ => indent.max(taken + GAP),
        };
        let content = glue_units(&clean(&text.text));
        let lines = wrap(&content, width.saturating_sub(start), width - indent);
        for (index, line) in lines.iter().enumerate() {
            let pad = if index == 0 { start - taken } else { indent };
            if !line.is_empty() {
                self.write(format_args!("{:pad$}", ""));
                self.write_styled(text.tone, line);
            }
            self.blank();
        }
    }

    /// A label and its text.
    pub(crate) fn fact(&mut self, label: &str, text: &str) {
        self.entry(TextStyle::Dim.of(label), INDENT, TextStyle::Plain.of(text));
    }

    /// A line that is never broken: a row of a table that fits, or a command that will be pasted.
    pub(crate) fn unbroken(&mut self, line: StyledText<'_>) {
        self.write_styled(line.tone, &clean(&line.text));
        self.blank();
    }

    /// A line of several styles, without blanks at its end; never broken.
    pub(crate) fn pieces(&mut self, pieces: &[StyledText<'_>]) {
        let last = pieces
            .iter()
            .rposition(|piece| !piece.text.trim_end().is_empty());
        if let Some(last) = last {
            for piece in &pieces[..last] {
                self.write_piece(piece.tone, &piece.text);
            }
            self.write_piece(pieces[last].tone, pieces[last].text.trim_end());
        }
        self.blank();
    }

    /// The width of a line in columns.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Writes a piece of a line; blanks have no style.
    fn write_piece(&mut self, tone: TextStyle, text: &str) {
        let style = if text.trim().is_empty() {
            TextStyle::Plain
        } else {
            tone
        };
        self.write_styled(style, &clean(text));
    }

    fn write_styled(&mut self, tone: TextStyle, text: &str) {
        let style = ansi(tone);
        if self.color == Color::Plain || style.is_plain() || text.is_empty() {
            self.write(format_args!("{text}"));
        } else {
            self.write(format_args!("{style}{text}{style:#}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(color: Color, label: StyledText<'_>, width: usize, text: &str) -> String {
        let style = Style { width: 1, color };
        crate::fixture::written(|out| {
            let mut page = Page::new(&style, out);
            page.entry(label, width, TextStyle::Plain.of(text));
            page.finish()
        })
    }

    #[test]
    fn entry_hangs_text_beside_its_label() {
        let long = "word ".repeat(12);
        let text = entry(Color::Plain, TextStyle::Bold.of("disk"), 8, &long);
        let line = ["word"; 6].join(" ");
        assert_eq!(text, format!("disk    {line}\n        {line}\n"));
    }

    #[test]
    fn entry_breaks_a_label_wider_than_the_page() {
        let label = "n".repeat(60);
        let text = entry(Color::Plain, TextStyle::Bold.of(&label), 8, "text");
        let (first, second) = label.split_at(40);
        assert_eq!(text, format!("{first}\n{second}\n        text\n"));
    }

    #[test]
    fn colours_enclose_words_only() {
        let text = entry(Color::Ansi, TextStyle::Error.of("failure"), 9, "\u{1b}[2J");
        assert_eq!(text, "\u{1b}[1m\u{1b}[31mfailure\u{1b}[0m  \\u{1b}[2J\n");
    }

    /// Takes its first write, fails the second, and would take all others.
    struct Hole(Vec<u8>, u32);

    impl Write for Hole {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1 += 1;
            match self.1 {
                2 => Err(io::ErrorKind::StorageFull.into()),
                _ => self.0.write(bytes),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn first_error_of_the_output_is_kept_and_ends_the_page() {
        let mut out = Hole(Vec::new(), 0);
        let page = &mut Page::new(&crate::fixture::plain(80), &mut out);
        for text in ["one", "two", "three"] {
            page.unbroken(TextStyle::Plain.of(text));
        }
        let error = page.finish().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(out.0, b"one");
    }
}
