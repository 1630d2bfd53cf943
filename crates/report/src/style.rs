//! How wide a page may be and whether it has colours. Who decides that, and from what, is not known
//! here.

/// The narrowest page; narrower wishes are treated as this, since a figure cut in two is worse than
/// a line that the terminal folds.
pub const WIDTH_MIN: usize = 40;

/// The look of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns that a line may take; at least [`WIDTH_MIN`] are used.
    pub width: usize,
    /// Whether words are coloured. Colour never carries anything that the words do not.
    pub color: Color,
}

/// Whether a page holds escape sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// Text only: for files, pipes and `NO_COLOR`.
    Plain,
    /// ANSI (ECMA-48) sequences for bold, faint and the eight basic colours.
    Ansi,
}
