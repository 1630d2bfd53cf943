//! The steps as lines, on a whole terminal, or not at all. The screen shows the lines of the plain
//! view in place: no widgets, and so no library for them. The terminal is restored however the
//! program ends, except by SIGKILL.

use crate::interrupt;
use crate::stdio::{
    ColorWhen, is_closed_stdout, page_in_locale, style, to_stdout, write_in_locale,
};
use diskproof_model::watch::WatchStep;
use diskproof_report::style::Style;
use diskproof_report::terminal::{
    WatchFacts, write_watch_facts, write_watch_heading, write_watch_step,
};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// How often a wait looks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Steps between two headings.
const HEADING_EVERY: u64 = 20;

/// Where the steps go.
pub(super) struct LiveView {
    style: Style,
    shown: u64,
    kind: ViewKind,
}

enum ViewKind {
    Lines,
    Screen(FullScreen),
    Silent,
}

impl LiveView {
    /// Silent, or on a screen where there is one, unless the user wants lines.
    pub(super) fn start(is_silent: bool, is_plain: bool, color: ColorWhen) -> anyhow::Result<Self> {
        let kind = if is_silent {
            ViewKind::Silent
        } else if !is_plain && is_screen() {
            ViewKind::Screen(FullScreen::start()?)
        } else {
            ViewKind::Lines
        };
        Ok(Self {
            style: style(color),
            shown: 0,
            kind,
        })
    }

    /// Waits, and meanwhile calls `work` repeatedly; false where the user ends the view.
    pub(super) fn wait_until(&mut self, due: Instant, mut work: impl FnMut()) -> bool {
        while interrupt::signal().is_none() {
            work();
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(LOOK_EVERY));
            if let ViewKind::Screen(screen) = &self.kind
                && screen.has_quit()
            {
                return false;
            }
        }
        false
    }

    /// Shows a step; false where the reader of stdout has gone.
    pub(super) fn show(
        &mut self,
        step: &WatchStep,
        facts: &WatchFacts,
        named: &[String],
    ) -> anyhow::Result<bool> {
        let style = self.style;
        let shown = self.shown;
        self.shown += 1;
        let written = match &mut self.kind {
            ViewKind::Silent => Ok(()),
            ViewKind::Screen(screen) => screen.draw(step, facts, named, style),
            ViewKind::Lines => to_stdout(|out| {
                write_in_locale(out, |page| {
                    if shown == 0 {
                        write_watch_facts(facts, &style, page)?;
                    }
                    if shown.is_multiple_of(HEADING_EVERY) {
                        write_watch_heading(&style, page)?;
                    }
                    write_watch_step(step, named, &style, page)
                })
            }),
        };
        match written {
            Ok(()) => Ok(true),
            Err(error) if is_closed_stdout(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The alternate screen, no cursor, no wrapping.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H";
/// Before the text of a line: behind a full one the cursor is still on its last column.
const CLEAR_LINE: &str = "\x1b[K";
const REST_OF_SCREEN: &str = "\x1b[J";
const SIZE_DEFAULT: ScreenSize = ScreenSize {
    columns: 80,
    rows: 24,
};
/// Ctrl-C and Ctrl-D, where the terminal sends them as keys.
const QUIT: [u8; 4] = [b'q', b'Q', 3, 4];
/// Turns off a special key (termios(3)).
const DISABLED: u8 = 0;

/// Whether stdout and stdin are one terminal that can move its cursor.
fn is_screen() -> bool {
    let moves_cursor = match std::env::var_os("TERM") {
        Some(term) => term != "dumb" && !term.is_empty(),
        None => false,
    };
    io::stdout().is_terminal() && io::stdin().is_terminal() && moves_cursor
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy)]
struct ScreenSize {
    columns: usize,
    rows: usize,
}

/// A terminal in use.
struct FullScreen {
    before: Termios,
}

impl FullScreen {
    fn start() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut keys = before.clone();
        // Keys arrive at once and are not echoed; Ctrl-C still sends its signal. A stopped program
        // would leave the terminal as it is, so that Ctrl-Z is off.
        keys.local_modes
            .remove(LocalModes::ICANON | LocalModes::ECHO);
        keys.special_codes[SpecialCodeIndex::VSUSP] = DISABLED;
        keys.special_codes[SpecialCodeIndex::VMIN] = 0;
        keys.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Now, &keys)?;
        let screen = Self { before };
        let restored = screen.before.clone();
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore(&restored);
            report(panic);
        }));
        write(ENTER)?;
        Ok(screen)
    }

    /// Whether the user has pressed a key that ends the view.
    fn has_quit(&self) -> bool {
        let mut pressed = [0; 64];
        let count = rustix::io::read(io::stdin(), &mut pressed).unwrap_or(0);
        pressed[..count].iter().any(|key| QUIT.contains(key))
    }

    /// Draws a step. What does not fit is cut at the bottom: the devices come first.
    fn draw(
        &mut self,
        step: &WatchStep,
        facts: &WatchFacts,
        named: &[String],
        style: Style,
    ) -> anyhow::Result<()> {
        let size = screen_size();
        let fitted = Style {
            width: size.columns,
            ..style
        };
        let page = page_in_locale(|page| {
            write_watch_heading(&fitted, page)?;
            write_watch_step(step, named, &fitted, page)?;
            writeln!(page)?;
            write_watch_facts(facts, &fitted, page)
        });
        let screen = frame(&page, size);
        to_stdout(|out| out.write_all(screen.as_bytes()))
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        restore(&self.before);
        // The hook of this screen is of no use any more.
        if !std::thread::panicking() {
            let _ = std::panic::take_hook();
        }
    }
}

/// The page on a screen of this size.
fn frame(page: &str, size: ScreenSize) -> String {
    let rows = size.rows;
    let mut frame = HOME.to_owned();
    for line in page.trim_end().lines().take(rows.saturating_sub(1)) {
        let start = cut(line, size.columns);
        frame.push_str(&format!("{CLEAR_LINE}{start}\r\n"));
    }
    frame.push_str(&format!("{REST_OF_SCREEN}\x1b[{rows};1Hq ends the view"));
    frame
}

/// The start of a line: without wrapping, a terminal writes all that is too long into its last
/// column. Sequences that set the style take no column and are kept to the end.
fn cut(line: &str, columns: usize) -> String {
    let mut start = String::new();
    let mut shown = 0;
    let mut in_style = false;
    for letter in line.chars() {
        if letter == '\x1b' {
            in_style = true;
        }
        if in_style {
            in_style = letter != 'm';
            start.push(letter);
            continue;
        }
        shown += 1;
        if shown <= columns {
            start.push(letter);
        }
    }
    start
}

fn screen_size() -> ScreenSize {
    match tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => ScreenSize {
            columns: usize::from(size.ws_col),
            rows: usize::from(size.ws_row),
        },
        _ => SIZE_DEFAULT,
    }
}

fn restore(before: &Termios) {
    // A terminal that has gone needs nothing.
    let _ = write(LEAVE);
    let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_line_keeps_its_last_column() {
        let full = "x".repeat(80);
        let size = ScreenSize {
            columns: 80,
            rows: 3,
        };
        let drawn = frame(&format!("{full}\nsecond\nthird\n"), size);
        // Clearing behind the text would erase the last character.
        let lines = format!("\x1b[H\x1b[K{full}\r\n\x1b[Ksecond\r\n");
        assert_eq!(drawn, format!("{lines}\x1b[J\x1b[3;1Hq ends the view"));
    }

    #[test]
    fn line_that_is_too_long_ends_at_the_edge_with_its_style() {
        assert_eq!(cut("read/s  load", 7), "read/s ");
        assert_eq!(cut("\x1b[1mread/s\x1b[0m load", 4), "\x1b[1mread\x1b[0m");
        assert_eq!(cut("±95 %", 5), "±95 %");
    }
}
