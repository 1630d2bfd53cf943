//! Positions in a picture, the texts and lines drawn at them, and paths in few bytes, because a
//! page has thousands of points.

use super::colors::{Color, FAINT, GROUND, PLAIN, STRONG, dark_style};
use crate::chart::{AxisSide, Ranges};
use crate::text::{self, clean, columns, wrap};
use maud::{Markup, PreEscaped, html};
use std::io::{self, Write};

/// Width of a picture. At full page width its smallest text has the size of a footnote.
pub(super) const WIDTH: f64 = 960.0;
/// Free space around everything.
pub(super) const EDGE: f64 = 20.0;

/// A whole picture. Sizes are user units, which a browser shows as CSS pixels.
pub(super) struct Picture<'a> {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) title: &'a str,
    pub(super) description: Option<&'a str>,
    pub(super) content: Markup,
}

/// The fonts of a picture, the first one that a viewer has: no font is embedded. The room for each
/// text follows from the width of DejaVu Sans ([`EM_PER_COLUMN`]); in a wider font, labels overlap.
const FONTS: &str = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif";

impl Picture<'_> {
    /// Writes the picture as a file of its own.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (width, height) = (self.width, self.height);
        let picture = html! {
            (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
            svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height)
                viewBox=(format!("0 0 {width} {height}")) role="img"
                font-family=(FONTS)
            {
                title { (allowed(self.title)) }
                @if let Some(text) = self.description { desc { (allowed(text)) } }
                style { (PreEscaped(dark_style())) }
                rect.(GROUND.class) width=(width) height=(height) fill=(GROUND.on_white) {}
                (self.content)
            }
        };
        out.write_all(picture.into_string().as_bytes())?;
        out.write_all(b"\n")
    }
}

/// A position in a picture, from its upper left corner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

impl Point {
    pub(crate) fn new(x: f64, y: f64) -> Self {
        Self { x, y }
    }
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
    /// The horizontal position of a value; values beyond the axis are at its end.
    pub(super) fn x(&self, value: f64) -> f64 {
        let place = self.ranges.x.position(value).clamp(0.0, 1.0);
        self.left + place * (self.right - self.left)
    }

    /// The vertical position of a value of an axis; values beyond the axis are at its end.
    pub(super) fn y(&self, side: AxisSide, value: f64) -> f64 {
        let place = self.ranges.along(side).position(value).clamp(0.0, 1.0);
        self.bottom - place * (self.bottom - self.top)
    }
}

pub(super) fn line(color: Color, from: Point, to: Point) -> Markup {
    html! {
        line.(color.class) x1=(px(from.x)) y1=(px(from.y)) x2=(px(to.x)) y2=(px(to.y))
            stroke=(color.on_white) {}
    }
}

/// The size of letters and the role of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Font {
    pub(super) size: f64,
    pub(super) tone: Tone,
}

impl Font {
    pub(super) const fn new(size: f64, tone: Tone) -> Self {
        Self { size, tone }
    }
}

/// One line of text. The anchor (`start`, `middle` or `end`) names the part of the text that is at
/// the position.
pub(super) fn text(position: Point, anchor: &str, font: Font, content: &str) -> Markup {
    let weight = match font.tone {
        Tone::Strong => Some("600"),
        Tone::Plain | Tone::Faint => None,
    };
    let color = font.tone.color();
    html! {
        text.(color.class) x=(px(position.x)) y=(px(position.y)) text-anchor=(anchor)
            font-size=(font.size) font-weight=[weight] fill=(color.on_white)
        {
            (allowed(content))
        }
    }
}

/// A length as SVG text. A tenth of a unit is finer than any screen shows.
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
    pub(super) fn color(self) -> Color {
        match self {
            Self::Strong => STRONG,
            Self::Plain => PLAIN,
            Self::Faint => FAINT,
        }
    }
}

/// Replaces characters that XML 1.0 forbids even as references (section 2.2): hidden characters are
/// spelled out, noncharacters become U+FFFD.
pub(super) fn allowed(text: &str) -> String {
    clean(text).replace(is_noncharacter, "\u{fffd}")
}

fn is_noncharacter(c: char) -> bool {
    matches!(u32::from(c) & 0xffff, 0xfffe | 0xffff)
}

/// Draws a path from point to point in relative steps, in tenths of a unit.
#[derive(Default)]
pub(super) struct Pen {
    path: String,
    /// The current position, in tenths. Positions are rounded and not distances, so that errors do
    /// not add up.
    x: i64,
    y: i64,
    /// A number without a letter before it continues the path as a line.
    is_line: bool,
}

impl Pen {
    /// Goes to a point without drawing.
    pub(super) fn move_to(&mut self, point: Point) {
        self.path.push('m');
        self.step(point);
        self.is_line = true;
    }

    /// Draws a line to a point.
    pub(super) fn line_to(&mut self, point: Point) {
        let right = tenths(point.x) - self.x;
        let down = tenths(point.y) - self.y;
        if down == 0 {
            self.stamp(&format!("h{}", number(right)));
        } else if right == 0 {
            self.stamp(&format!("v{}", number(down)));
        } else {
            if !self.is_line {
                self.path.push('l');
            }
            self.step(point);
            self.is_line = true;
        }
        self.stand_at(point);
    }

    /// Draws a line between two points.
    pub(super) fn line(&mut self, from: Point, to: Point) {
        self.move_to(from);
        self.line_to(to);
    }

    /// Appends an outline that ends where it begins, such as a dot.
    pub(super) fn stamp(&mut self, outline: &str) {
        self.path.push_str(outline);
        self.is_line = false;
    }

    /// The finished path, for the attribute `d`.
    pub(super) fn path(self) -> String {
        self.path
    }

    /// Writes the relative step to a point.
    fn step(&mut self, point: Point) {
        self.push_number(tenths(point.x) - self.x);
        self.push_number(tenths(point.y) - self.y);
        self.stand_at(point);
    }

    fn push_number(&mut self, tenths: i64) {
        if tenths >= 0 && self.path.ends_with(|c: char| c.is_ascii_digit()) {
            self.path.push(' ');
        }
        self.path.push_str(&number(tenths));
    }

    fn stand_at(&mut self, point: Point) {
        self.x = tenths(point.x);
        self.y = tenths(point.y);
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

/// The width of a column as a share of the font size, in the widest usual font (DejaVu Sans).
const EM_PER_COLUMN: f64 = 0.585;
/// The distance between baselines as a multiple of the font size.
const LINE_HEIGHT: f64 = 1.4;

/// Longer names are cut: this many of the widest letters fit the picture.
const NAME_COLUMNS_MAX: usize = 84;

/// The estimated width of a text on one line.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    columns(text) as f64 * size * EM_PER_COLUMN
}

/// The text, cut with an ellipsis where it is wider than the room.
pub(super) fn shortened(text: &str, room: f64, size: f64) -> String {
    let columns_max = ((room / (size * EM_PER_COLUMN)) as usize).min(NAME_COLUMNS_MAX);
    text::shortened(text, columns_max)
}

/// A part of a picture and the height that it takes.
pub(super) struct Drawn {
    pub(super) markup: Markup,
    pub(super) height: f64,
}

/// Lines of text from a corner on, broken so that they fit the width. An empty text has no lines.
pub(super) fn text_block(content: &str, font: Font, width: f64, corner: Point) -> Drawn {
    let columns = (width / (font.size * EM_PER_COLUMN)) as usize;
    let lines = if content.is_empty() {
        Vec::new()
    } else {
        wrap(&text::glue_units(&allowed(content)), columns, columns)
    };
    let line_height = font.size * LINE_HEIGHT;
    let markup = html! {
        @for (index, line) in lines.iter().enumerate() {
            @let baseline = corner.y + index as f64 * line_height + font.size;
            (text(Point::new(corner.x, baseline), "start", font, line))
        }
    };
    Drawn {
        markup,
        height: lines.len() as f64 * line_height,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_errors_do_not_add_up() {
        let mut pen = Pen::default();
        pen.move_to(Point::new(76.0, 381.24));
        for (x, y) in [(92.26, 378.0), (92.28, 378.04), (92.0, 377.14)] {
            pen.line_to(Point::new(x, y));
        }
        pen.stamp("h0");
        pen.line_to(Point::new(0.0, 377.14));
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
