//! Text in a picture: estimates its width for any font, breaks it into lines, and replaces
//! characters that XML forbids.

use super::frame::{Tone, allowed, text as text_at};
use crate::text::{self, columns, wrap};
use maud::{Markup, html};

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

/// Lines of text, one below the other.
pub(super) struct TextBlock {
    lines: Vec<String>,
    size: f64,
}

impl TextBlock {
    /// Broken so that it fits; an empty text has no lines.
    pub(super) fn new(text: &str, size: f64, room: f64) -> Self {
        let most = (room / (size * EM_PER_COLUMN)) as usize;
        let lines = match text {
            "" => Vec::new(),
            text => wrap(&text::glue_units(&allowed(text)), most, most),
        };
        Self { lines, size }
    }

    /// Room that it takes.
    pub(super) fn height(&self) -> f64 {
        self.lines.len() as f64 * self.line_height()
    }

    fn line_height(&self) -> f64 {
        self.size * 1.4
    }

    /// Drawn from a corner on.
    pub(super) fn at(&self, left: f64, top: f64, tone: Tone) -> Markup {
        html! {
            @for (index, line) in self.lines.iter().enumerate() {
                @let baseline = top + index as f64 * self.line_height() + self.size;
                (text_at(left, baseline, "start", self.size, tone, line))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
