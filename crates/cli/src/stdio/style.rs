//! Decides the width and the colours of stdout.

use diskproof_report::style::{Color, Style};
use rustix::termios::tcgetwinsize;
use std::io::{self, IsTerminal as _};

/// The width of a page where the terminal reports none.
const COLUMNS_DEFAULT: usize = 80;

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set or TERM is dumb.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Width and colours of stdout.
pub(crate) fn style(color: ColorWhen) -> Style {
    let stdout = io::stdout();
    let width = match tcgetwinsize(&stdout) {
        Ok(size) if stdout.is_terminal() && size.ws_col > 0 => usize::from(size.ws_col),
        _ => COLUMNS_DEFAULT,
    };
    let color = match color {
        ColorWhen::Always => Color::Ansi,
        // NO_COLOR, CLICOLOR, CLICOLOR_FORCE and TERM, as clap's own pages treat them.
        ColorWhen::Auto
            if anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never =>
        {
            Color::Ansi
        }
        ColorWhen::Auto | ColorWhen::Never => Color::Plain,
    };
    Style { width, color }
}
