//! The width of a page and whether it has colours.

/// The narrowest page. A narrower terminal folds its lines, which is better than cut figures.
pub const WIDTH_MIN: usize = 40;

/// The look of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns that a line may take; at least [`WIDTH_MIN`] are used.
    pub width: usize,
    /// Whether words are coloured. Every colour stands with a word or a sign that says the same.
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
