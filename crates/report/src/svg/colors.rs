//! The colours of pictures, each with its class. An element has the colour on white as an
//! attribute, since not every program reads style sheets; the style sheet of the picture replaces
//! it by class in viewers with a dark background ([`dark_style`]).
//!
//! The page draws its charts with the same colours of series, from variables of its own style
//! sheet (`--s0` to `--s7` in `html/style/colours.css` and `print.css`); a test compares them.

/// A colour of one kind of element.
#[derive(Debug, Clone, Copy)]
pub(super) struct Color {
    /// The class of the elements.
    pub(super) class: &'static str,
    pub(super) on_white: &'static str,
    on_dark: &'static str,
}

impl Color {
    const fn new(class: &'static str, on_white: &'static str, on_dark: &'static str) -> Self {
        Self {
            class,
            on_white,
            on_dark,
        }
    }
}

/// The background.
pub(super) const GROUND: Color = Color::new("ground", "#ffffff", "#14171c");
/// The headline.
pub(super) const STRONG: Color = Color::new("strong", "#12161c", "#f2f4f8");
/// Labels and sentences.
pub(super) const PLAIN: Color = Color::new("plain", "#333b47", "#d5dae3");
/// The origin of the data.
pub(super) const FAINT: Color = Color::new("faint", "#5f6977", "#a3adbd");
/// The thin lines at the labels of the axes.
pub(super) const GRID: Color = Color::new("grid", "#e4e7ec", "#2c323c");
/// The line of equal figures in a comparison: a line of the grid that is easier to see.
pub(super) const EQUALITY: Color = Color {
    on_white: "#c5ccd6",
    ..GRID
};
/// The frame around the data, and the short lines of a second axis.
pub(super) const FRAME: Color = Color::new("frame", "#8a93a1", "#7d8796");
/// The dashed lines at figures of the record.
pub(super) const GUIDE: Color = Color::new("guide", GUIDE_ON_WHITE, "#a3adbd");
/// gnuplot draws the same lines in it.
pub(crate) const GUIDE_ON_WHITE: &str = "#5a6472";
/// Error bars.
pub(super) const ERROR_BAR: Color = Color::new("error", "#12161c", "#e8ebf0");

/// A metric of a comparison that is better; the same on white and on dark.
pub(super) const BETTER: &str = "#1a7f4b";
/// A metric that is worse; the same on white and on dark.
pub(super) const WORSE: &str = "#c4314b";
/// A metric that is neither; the same on white and on dark.
pub(super) const NEITHER: &str = FAINT.on_white;

/// The colours of series by their index: colour-blind readers can distinguish them, after Okabe and
/// Ito and darkened for white paper.
pub(crate) const SERIES: [&str; 8] = [
    "#0a64c8", "#d1490c", "#00835f", "#a63fb0", "#9a6a00", "#0b7f99", "#c2185b", "#4a5260",
];
/// The same on a dark background.
const SERIES_ON_DARK: [&str; SERIES.len()] = [
    "#4ea1ff", "#ff8f4f", "#35c79a", "#d98fe0", "#e8b93b", "#6fd3e8", "#ff7d8f", "#b4bccb",
];
/// Series whose colours stand on one line of the style sheet.
const SERIES_A_LINE: usize = 4;

/// The class of filled marks of the series with this index in [`SERIES`].
pub(super) fn fill_class(index: usize) -> String {
    format!("f{index}")
}

/// The class of lines of the series with this index in [`SERIES`].
pub(super) fn stroke_class(index: usize) -> String {
    format!("s{index}")
}

/// The style sheet of a picture: its colours on a dark background.
pub(super) fn dark_style() -> String {
    let mut style = "@media (prefers-color-scheme: dark) {\n".to_owned();
    for color in [GROUND, STRONG, PLAIN, FAINT] {
        style.push_str(&rule(color.class, "fill", color.on_dark));
    }
    style.push('\n');
    for color in [GRID, FRAME, GUIDE, ERROR_BAR] {
        style.push_str(&rule(color.class, "stroke", color.on_dark));
    }
    style.push('\n');
    for (index, color) in SERIES_ON_DARK.iter().enumerate() {
        style.push_str(&rule(&fill_class(index), "fill", color));
        style.push_str(&rule(&stroke_class(index), "stroke", color));
        if (index + 1) % SERIES_A_LINE == 0 {
            style.push('\n');
        }
    }
    style.push('}');
    style
}

fn rule(class: &str, property: &str, color: &str) -> String {
    format!(".{class}{{{property}:{color}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The colours of series in a style sheet of the page, block by block.
    fn series_of_page(style: &str) -> Vec<String> {
        let mut colors = Vec::new();
        for declaration in style.split(';') {
            if let Some((name, color)) = declaration.split_once(':')
                && let Some(index) = name.trim().strip_prefix("--s")
                && index.parse::<usize>().is_ok()
            {
                colors.push(color.trim().to_owned());
            }
        }
        colors
    }

    #[test]
    fn page_and_pictures_draw_series_in_the_same_colors() {
        let screen = include_str!("../html/style/colours.css");
        // White, dark by the system, dark by the button.
        let expected = [SERIES, SERIES_ON_DARK, SERIES_ON_DARK].concat();
        assert_eq!(series_of_page(screen), expected);
        let print = include_str!("../html/style/print.css");
        assert_eq!(series_of_page(print), SERIES);
    }

    #[test]
    fn dark_style_has_each_class_once() {
        let style = dark_style();
        for color in [GROUND, STRONG, PLAIN, FAINT, GRID, FRAME, GUIDE, ERROR_BAR] {
            let class = format!(".{}{{", color.class);
            assert_eq!(style.matches(&class).count(), 1, "{class}");
        }
        assert!(style.ends_with(".f7{fill:#b4bccb}.s7{stroke:#b4bccb}\n}"));
    }
}
