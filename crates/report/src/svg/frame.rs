//! Positions in a picture, and the texts and lines drawn at them.

use crate::chart::Range;
use crate::text::clean;
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

/// The rectangle of the data, in units of the picture.
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Frame {
    pub(super) fn x(&self, range: &Range, value: f64) -> f64 {
        self.left + range.place(value).clamp(0.0, 1.0) * (self.right - self.left)
    }

    pub(super) fn y(&self, range: &Range, value: f64) -> f64 {
        self.bottom - range.place(value).clamp(0.0, 1.0) * (self.bottom - self.top)
    }
}

/// From values to positions in the picture.
pub(super) struct Projection<'a> {
    pub(super) frame: &'a Frame,
    pub(super) x: &'a Range,
    pub(super) y: &'a Range,
}

impl Projection<'_> {
    pub(super) fn of(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.frame.x(self.x, x), self.frame.y(self.y, y))
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
