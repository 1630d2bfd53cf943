//! Positions in a picture, the texts and lines drawn at them, and paths in few bytes, because a
//! page has thousands of points.

use crate::chart::{AxisSide, Ranges};
use crate::text::{self, clean, columns, wrap};
use maud::{Markup, PreEscaped, html};
use std::io::{self, Write};

/// Width of a picture. At full page width its smallest text has the size of a footnote.
pub(super) const WIDTH: f64 = 960.0;
/// Room around everything.
pub(super) const EDGE: f64 = 20.0;

/// Colours for a dark background. All others are attributes of the elements, because not every
/// program reads style sheets.
const STYLE: &str = concat!(
    "@media (prefers-color-scheme: dark) {\n",
    ".ground{fill:#14171c}.strong{fill:#f2f4f8}.plain{fill:#d5dae3}.faint{fill:#a3adbd}\n",
    ".grid{stroke:#2c323c}.frame{stroke:#7d8796}.guide{stroke:#a3adbd}.error{stroke:#e8ebf0}\n",
    ".f0{fill:#4ea1ff}.s0{stroke:#4ea1ff}.f1{fill:#ff8f4f}.s1{stroke:#ff8f4f}",
    ".f2{fill:#35c79a}.s2{stroke:#35c79a}.f3{fill:#d98fe0}.s3{stroke:#d98fe0}\n",
    ".f4{fill:#e8b93b}.s4{stroke:#e8b93b}.f5{fill:#6fd3e8}.s5{stroke:#6fd3e8}",
    ".f6{fill:#ff7d8f}.s6{stroke:#ff7d8f}.f7{fill:#b4bccb}.s7{stroke:#b4bccb}\n",
    "}",
);

/// Writes a picture of this width and height, with its title and description.
pub(super) fn write_picture(
    (width, height): (f64, f64),
    (title, description): (&str, Option<&str>),
    content: &Markup,
    out: &mut dyn Write,
) -> io::Result<()> {
    let picture = html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height)
            viewBox=(format!("0 0 {width} {height}")) role="img"
            font-family="system-ui, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
        {
            title { (allowed(title)) }
            @if let Some(text) = description { desc { (allowed(text)) } }
            style { (PreEscaped(STYLE)) }
            rect.ground width=(width) height=(height) fill="#ffffff" {}
            (content)
        }
    };
    out.write_all(picture.into_string().as_bytes())?;
    out.write_all(b"\n")
}

/// The rectangle of the data, in units of the picture, and the values at its ends.
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) ranges: Ranges,
}

impl Frame {
    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + self.ranges.x.place(value).clamp(0.0, 1.0) * (self.right - self.left)
    }

    pub(super) fn y(&self, side: AxisSide, value: f64) -> f64 {
        let place = self.ranges.of(side).place(value).clamp(0.0, 1.0);
        self.bottom - place * (self.bottom - self.top)
    }
}

pub(super) fn line(class: &str, stroke: &str, from: (f64, f64), to: (f64, f64)) -> Markup {
    html! {
        line class=(class) x1=(px(from.0)) y1=(px(from.1)) x2=(px(to.0)) y2=(px(to.1))
            stroke=(stroke) {}
    }
}

pub(super) fn text(x: f64, y: f64, anchor: &str, size: f64, tone: Tone, content: &str) -> Markup {
    let (class, color) = tone.look();
    let weight = (tone == Tone::Strong).then_some("600");
    html! {
        text class=(class) x=(px(x)) y=(px(y)) text-anchor=(anchor) font-size=(size)
            font-weight=[weight] fill=(color)
        {
            (allowed(content))
        }
    }
}

/// A tenth of a unit is finer than any screen shows.
pub(crate) fn px(value: f64) -> String {
    let mut text = format!("{value:.1}");
    text.truncate(text.trim_end_matches(".0").len());
    text
}

/// The role of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// The headline.
    Strong,
    /// Labels and sentences.
    Plain,
    /// The origin of the data.
    Faint,
}

impl Tone {
    /// Its class and its colour.
    pub(super) fn look(self) -> (&'static str, &'static str) {
        match self {
            Self::Strong => ("strong", "#12161c"),
            Self::Plain => ("plain", "#333b47"),
            Self::Faint => ("faint", "#5f6977"),
        }
    }
}

/// The text without characters that XML 1.0 forbids even as references (section 2.2): hidden ones
/// spelled out, noncharacters replaced.
pub(super) fn allowed(text: &str) -> String {
    let is_noncharacter = |c: char| matches!(u32::from(c) & 0xffff, 0xfffe | 0xffff);
    clean(text).replace(is_noncharacter, "\u{fffd}")
}

/// Draws a path from point to point: relative, in tenths of a unit, which are finer than any screen
/// shows.
#[derive(Default)]
pub(super) struct Pen {
    path: String,
    /// Where it is, in tenths.
    at: (i64, i64),
    /// Whether numbers alone continue the path as a line.
    is_line: bool,
}

impl Pen {
    /// Goes to a point without drawing.
    pub(super) fn move_to(&mut self, point: (f64, f64)) {
        self.path.push('m');
        self.step(point);
        self.is_line = true;
    }

    /// Draws a line to a point.
    pub(super) fn line_to(&mut self, point: (f64, f64)) {
        let (x, y) = (tenths(point.0) - self.at.0, tenths(point.1) - self.at.1);
        match (x, y) {
            (_, 0) => self.stamp(&format!("h{}", number(x))),
            (0, _) => self.stamp(&format!("v{}", number(y))),
            _ => {
                if !self.is_line {
                    self.path.push('l');
                }
                self.step(point);
                self.is_line = true;
            }
        }
        self.at = (tenths(point.0), tenths(point.1));
    }

    /// Draws a line between two points.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.move_to(from);
        self.line_to(to);
    }

    /// Draws something that ends where it begins.
    pub(super) fn stamp(&mut self, outline: &str) {
        self.path.push_str(outline);
        self.is_line = false;
    }

    /// The path.
    pub(super) fn path(self) -> String {
        self.path
    }

    /// Writes the way to a point.
    fn step(&mut self, (x, y): (f64, f64)) {
        // Rounded positions, so that errors do not add up.
        let to = (tenths(x), tenths(y));
        for by in [to.0 - self.at.0, to.1 - self.at.1] {
            if by >= 0 && self.path.ends_with(|c: char| c.is_ascii_digit()) {
                self.path.push(' ');
            }
            self.path.push_str(&number(by));
        }
        self.at = to;
    }
}

fn tenths(value: f64) -> i64 {
    (value * 10.0).round() as i64
}

fn number(tenths: i64) -> String {
    let sign = if tenths < 0 { "-" } else { "" };
    match (tenths.unsigned_abs() / 10, tenths.unsigned_abs() % 10) {
        (whole, 0) => format!("{sign}{whole}"),
        (0, tenth) => format!("{sign}.{tenth}"),
        (whole, tenth) => format!("{sign}{whole}.{tenth}"),
    }
}

/// Width of a column over the size of its letters, in the widest usual font (DejaVu Sans).
const EM_PER_COLUMN: f64 = 0.585;

/// Longer names are cut; so many of the widest letters fit.
const NAME_COLUMNS_MAX: usize = 84;

/// The width of a text on one line.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    columns(text) as f64 * size * EM_PER_COLUMN
}

/// The text, cut where it is longer than the room.
pub(super) fn shortened(text: &str, room: f64, size: f64) -> String {
    let most = ((room / (size * EM_PER_COLUMN)) as usize).min(NAME_COLUMNS_MAX);
    text::shortened(text, most)
}

/// Lines of text from a corner on, broken so that they fit, and their height. An empty text has no
/// lines.
pub(super) fn text_block(
    content: &str,
    (size, tone): (f64, Tone),
    room: f64,
    (left, top): (f64, f64),
) -> (Markup, f64) {
    let most = (room / (size * EM_PER_COLUMN)) as usize;
    let lines = match content {
        "" => Vec::new(),
        content => wrap(&text::glue_units(&allowed(content)), most, most),
    };
    let line_height = size * 1.4;
    let block = html! {
        @for (index, line) in lines.iter().enumerate() {
            (text(left, top + index as f64 * line_height + size, "start", size, tone, line))
        }
    };
    (block, lines.len() as f64 * line_height)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_errors_do_not_add_up() {
        let mut pen = Pen::default();
        pen.move_to((76.0, 381.24));
        for point in [(92.26, 378.0), (92.28, 378.04), (92.0, 377.14)] {
            pen.line_to(point);
        }
        pen.stamp("h0");
        pen.line_to((0.0, 377.14));
        assert_eq!(pen.path(), "m76 381.2 16.3-3.2h0l-.3-.9h0h-92");
    }

    #[test]
    fn xml_forbidden_characters_are_replaced() {
        assert_eq!(
            allowed("a\u{0}\u{fffe}\u{1ffff}é\n"),
            "a\\u{0}\u{fffd}\u{fffd}é\\n"
        );
    }

    #[test]
    fn long_names_are_cut_to_the_room() {
        assert_eq!(shortened("short", 100.0, 10.0), "short");
        let cut = shortened(&"long name ".repeat(9), 100.0, 10.0);
        assert!(
            cut.ends_with('…') && text_width(&cut, 10.0) <= 100.0,
            "{cut}"
        );
    }
}
