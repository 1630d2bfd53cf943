//! A terminal page: lines of limited width, labels with hanging text, colours. The page makes every
//! text safe with [`clean`], so that no printer can forget it.

use crate::style::{Color, Style, WIDTH_MIN};
use crate::text::{clean, columns, glue_units, wrap};
use anstyle::AnsiColor;
use diskproof_model::block::{Span, Tone};
use std::fmt::Arguments;
use std::io::{self, Write};

/// Running text wraps here even on a wider page, because longer lines are hard to read.
const TEXT_COLUMNS_MAX: usize = 100;
/// Columns between a label that is longer than the indent and its text.
const LABEL_GAP: usize = 2;
/// Column at which the text of a fact begins, if its label is short. The page has [`WIDTH_MIN`]
/// columns or more, so that most of a line is left for the text.
pub(crate) const INDENT: usize = 11;

/// The colour of a tone. Single points are magenta: unlike yellow, it is legible on dark and light
/// terminals.
fn ansi_style(tone: Tone) -> anstyle::Style {
    let style = anstyle::Style::new();
    match tone {
        Tone::Plain => style,
        Tone::Bold => style.bold(),
        Tone::Dim => style.dimmed(),
        Tone::Good => style.fg_color(Some(AnsiColor::Green.into())),
        Tone::Error => style.bold().fg_color(Some(AnsiColor::Red.into())),
        Tone::Warning => style.bold().fg_color(Some(AnsiColor::Yellow.into())),
        Tone::Note => style.fg_color(Some(AnsiColor::Cyan.into())),
        Tone::Dot => style.fg_color(Some(AnsiColor::Magenta.into())),
    }
}

/// Adds text to the spans of a line: to the last one if it has this tone, so that a line has no
/// more colour codes than it needs.
pub(crate) fn push_text(spans: &mut Vec<Span<'_>>, tone: Tone, text: &str) {
    match spans.last_mut() {
        Some(last) if last.tone == tone => last.text.to_mut().push_str(text),
        _ => spans.push(tone.span(text.to_owned())),
    }
}

/// A page and its output.
pub(crate) struct Page<'a> {
    width: usize,
    color: Color,
    out: &'a mut dyn Write,
    /// The outcome of all writes so far. After the first error nothing more is written.
    /// [`Page::finish`] returns it, so that no line of a page has to.
    outcome: io::Result<()>,
}

impl<'a> Page<'a> {
    /// An empty page.
    pub(crate) fn new(style: &Style, out: &'a mut dyn Write) -> Self {
        Self {
            width: style.width.max(WIDTH_MIN),
            color: style.color,
            out,
            outcome: Ok(()),
        }
    }

    /// Returns the first error of the output, if there was one. The page may go on after it.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        std::mem::replace(&mut self.outcome, Ok(()))
    }

    fn write(&mut self, text: Arguments<'_>) {
        if self.outcome.is_ok() {
            self.outcome = self.out.write_fmt(text);
        }
    }

    /// An empty line.
    pub(crate) fn blank(&mut self) {
        self.write(format_args!("\n"));
    }

    /// Wrapped text from the first column on.
    pub(crate) fn text(&mut self, text: Span<'_>) {
        self.entry(Tone::Plain.span(""), 0, text);
    }

    /// A label and, from column `indent` on, wrapped text that hangs to its right. A longer label
    /// moves the first line of the text to the right; one that fills the line stands alone.
    /// `indent` is less than [`WIDTH_MIN`].
    pub(crate) fn entry(&mut self, label: Span<'_>, indent: usize, text: Span<'_>) {
        let width = self.width.min(TEXT_COLUMNS_MAX);
        let label_text = clean(&label.text);
        let mut label_columns = columns(&label_text);
        if label_columns > width - indent {
            for line in wrap(&label_text, width, width) {
                self.write_styled(label.tone, &line);
                self.blank();
            }
            // The text then starts on a line of its own.
            label_columns = 0;
        } else {
            self.write_styled(label.tone, &label_text);
        }
        let text_start = match label_columns {
            0 => indent,
            _ => indent.max(label_columns + LABEL_GAP),
        };
        let content = glue_units(&clean(&text.text));
        let lines = wrap(&content, width.saturating_sub(text_start), width - indent);
        for (index, line) in lines.iter().enumerate() {
            let pad = match index {
                0 => text_start - label_columns,
                _ => indent,
            };
            if !line.is_empty() {
                self.write(format_args!("{:pad$}", ""));
                self.write_styled(text.tone, line);
            }
            self.blank();
        }
    }

    /// A label and its text.
    pub(crate) fn fact(&mut self, label: &str, text: &str) {
        self.entry(Tone::Dim.span(label), INDENT, Tone::Plain.span(text));
    }

    /// A line that is never broken: a row of a table that fits, or a command that will be pasted.
    pub(crate) fn unbroken(&mut self, line: Span<'_>) {
        self.write_styled(line.tone, &clean(&line.text));
        self.blank();
    }

    /// A line of several tones, without blanks at its end; never broken.
    pub(crate) fn spans(&mut self, spans: &[Span<'_>]) {
        let last_visible = spans
            .iter()
            .rposition(|span| !span.text.trim_end().is_empty());
        if let Some(last) = last_visible {
            for span in &spans[..last] {
                self.write_span(span.tone, &span.text);
            }
            self.write_span(spans[last].tone, spans[last].text.trim_end());
        }
        self.blank();
    }

    /// The width of a line in columns, at least [`WIDTH_MIN`].
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Writes a part of a line. Blanks get no colour codes.
    fn write_span(&mut self, tone: Tone, text: &str) {
        let visible_tone = if text.trim().is_empty() {
            Tone::Plain
        } else {
            tone
        };
        self.write_styled(visible_tone, &clean(text));
    }

    /// Writes text, which [`clean`] has made safe, with the colour codes of its tone.
    fn write_styled(&mut self, tone: Tone, text: &str) {
        let style = ansi_style(tone);
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

    fn entry(color: Color, label: Span<'_>, indent: usize, text: &str) -> String {
        let style = Style { width: 1, color };
        crate::fixture::written(|out| {
            let mut page = Page::new(&style, out);
            page.entry(label, indent, Tone::Plain.span(text));
            page.finish()
        })
    }

    #[test]
    fn entry_hangs_text_beside_its_label() {
        let long = "word ".repeat(12);
        let text = entry(Color::Plain, Tone::Bold.span("disk"), 8, &long);
        let line = ["word"; 6].join(" ");
        assert_eq!(text, format!("disk    {line}\n        {line}\n"));
    }

    #[test]
    fn label_longer_than_the_indent_keeps_its_distance() {
        let seven = entry(Color::Plain, Tone::Plain.span("0123456"), 8, "text");
        assert_eq!(seven, "0123456  text\n");
        let six = entry(Color::Plain, Tone::Plain.span("012345"), 8, "text");
        assert_eq!(six, "012345  text\n");
        let ten = entry(Color::Plain, Tone::Plain.span("0123456789"), 8, "text");
        assert_eq!(ten, "0123456789  text\n");
    }

    #[test]
    fn coloured_line_ends_without_blanks() {
        let style = Style {
            width: 80,
            color: Color::Ansi,
        };
        let line = [Tone::Bold.span("a "), Tone::Dim.span("  ")];
        let text = crate::fixture::written(|out| {
            let mut page = Page::new(&style, out);
            page.spans(&line);
            page.finish()
        });
        assert_eq!(text, "\u{1b}[1ma\u{1b}[0m\n");
    }

    #[test]
    fn entry_breaks_a_label_wider_than_the_page() {
        let label = "n".repeat(60);
        let text = entry(Color::Plain, Tone::Bold.span(&label), 8, "text");
        let (first, second) = label.split_at(40);
        assert_eq!(text, format!("{first}\n{second}\n        text\n"));
    }

    #[test]
    fn colours_enclose_words_only() {
        let text = entry(Color::Ansi, Tone::Error.span("failure"), 9, "\u{1b}[2J");
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
            page.unbroken(Tone::Plain.span(text));
        }
        let error = page.finish().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(out.0, b"one");
    }
}
