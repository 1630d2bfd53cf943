//! Fills a terminal with a page that is redrawn in place: no widgets, and so no library for them.
//! The terminal is restored however the program ends, except by SIGKILL: at the end of the view, at
//! a panic of any thread, at a second Ctrl-C, and where the run hangs that drew it.

use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcgetwinsize,
    tcsetattr,
};
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// Enters the alternate screen, hides the cursor, and turns wrapping off.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
/// Undoes [`ENTER`].
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";
/// Moves the cursor to the first line and column.
const HOME: &str = "\x1b[H";
/// Clears a line. It comes before the text: behind a full line the cursor is still on its last
/// column.
const CLEAR_LINE: &str = "\x1b[K";
/// Clears the lines below the page.
const CLEAR_REST: &str = "\x1b[J";
/// The size of a terminal that reports none.
const SIZE_DEFAULT: ScreenSize = ScreenSize {
    columns: 80,
    rows: 24,
};
/// Ctrl-C, where the terminal sends it as a key.
const CTRL_C: u8 = 3;
/// Ctrl-D, which ends input elsewhere.
const CTRL_D: u8 = 4;
/// Keys that end the view.
const QUIT_KEYS: [u8; 4] = [b'q', b'Q', CTRL_C, CTRL_D];
/// Turns off a special key (termios(3)).
const DISABLED: u8 = 0;
/// Lines that wait for the end of the view; more are dropped. Chosen, not measured.
const KEPT_LINES_MAX: usize = 200;

/// The screen that is open, of which there is one, as there is one terminal.
static OPEN: Mutex<Option<OpenScreen>> = Mutex::new(None);

struct OpenScreen {
    stream: ScreenStream,
    /// The settings of the terminal before the view.
    before: Termios,
    /// Lines for stderr that the next page would overwrite.
    kept: Vec<String>,
}

fn open_screen() -> MutexGuard<'static, Option<OpenScreen>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The stream to the terminal that a screen is drawn on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScreenStream {
    /// The result is the view.
    Stdout,
    /// The view is progress; the result goes to stdout.
    Stderr,
}

impl ScreenStream {
    fn write(self, text: &str) -> io::Result<()> {
        match self {
            Self::Stdout => write_all(&mut io::stdout().lock(), text),
            Self::Stderr => write_all(&mut io::stderr().lock(), text),
        }
    }

    fn is_terminal(self) -> bool {
        match self {
            Self::Stdout => io::stdout().is_terminal(),
            Self::Stderr => io::stderr().is_terminal(),
        }
    }

    fn size(self) -> ScreenSize {
        let size = match self {
            Self::Stdout => tcgetwinsize(io::stdout()),
            Self::Stderr => tcgetwinsize(io::stderr()),
        };
        match size {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => ScreenSize {
                columns: usize::from(size.ws_col),
                rows: usize::from(size.ws_row),
            },
            _ => SIZE_DEFAULT,
        }
    }
}

fn write_all(out: &mut dyn io::Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScreenSize {
    /// Characters of a line.
    pub columns: usize,
    /// Lines of the screen.
    pub rows: usize,
}

/// A terminal in use; it is restored when this is dropped.
#[derive(Debug)]
pub(crate) struct FullScreen {
    stream: ScreenStream,
}

impl FullScreen {
    /// True if the stream and stdin are a terminal that can move its cursor, and this process may
    /// change it: one in the background would be stopped (SIGTTOU).
    pub(crate) fn is_possible(stream: ScreenStream) -> bool {
        let moves_cursor = match std::env::var_os("TERM") {
            Some(term) => term != "dumb" && !term.is_empty(),
            None => false,
        };
        let is_terminal = stream.is_terminal() && io::stdin().is_terminal() && moves_cursor;
        is_terminal && matches!(tcgetpgrp(io::stdin()), Ok(group) if group == getpgrp())
    }

    /// Takes the terminal: enters the alternate screen, and reads keys without echo.
    pub(crate) fn start(stream: ScreenStream) -> io::Result<Self> {
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
        *open_screen() = Some(OpenScreen {
            stream,
            before,
            kept: Vec::new(),
        });
        let screen = Self { stream };
        close_at_panic();
        stream.write(ENTER)?;
        Ok(screen)
    }

    /// True if the user has pressed a key that ends the view.
    pub(crate) fn has_quit(&self) -> bool {
        let mut pressed = [0; 64];
        let count = rustix::io::read(io::stdin(), &mut pressed).unwrap_or(0);
        pressed[..count].iter().any(|key| QUIT_KEYS.contains(key))
    }

    /// The size, which the user may have changed.
    pub(crate) fn size(&self) -> ScreenSize {
        self.stream.size()
    }

    /// Draws a page of lines. What does not fit is cut at the bottom, above the last line. Draws
    /// nothing once the screen was closed.
    pub(crate) fn draw(&self, page: &str, last_line: &str) -> io::Result<()> {
        // Before the lock: a panic under it could not close the screen.
        let frame = screen_text(page, self.size(), last_line);
        let open = open_screen();
        if open.is_none() {
            return Ok(());
        }
        self.stream.write(&frame)
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        close();
    }
}

/// Restores the terminal where a screen is open, and prints the lines that were kept.
pub(crate) fn close() {
    let Some(closed) = open_screen().take() else {
        return;
    };
    // A terminal that has gone needs nothing.
    let _ = closed.stream.write(LEAVE);
    let _ = tcsetattr(io::stdin(), OptionalActions::Now, &closed.before);
    for line in closed.kept {
        let _ = writeln!(io::stderr().lock(), "{line}");
    }
}

/// Keeps a line for stderr until the screen closes; false where none is open.
pub(crate) fn keep_line(line: &str) -> bool {
    let Some(open) = &mut *open_screen() else {
        return false;
    };
    if open.kept.len() < KEPT_LINES_MAX {
        open.kept.push(line.to_owned());
    }
    true
}

/// From now on, a panic of any thread closes the screen before it is reported.
fn close_at_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            close();
            report(panic);
        }));
    });
}

/// The page as text for a screen of this size, with what clears the page before it.
fn screen_text(page: &str, size: ScreenSize, last_line: &str) -> String {
    let rows = size.rows;
    let mut frame = HOME.to_owned();
    for line in page.trim_end().lines().take(rows.saturating_sub(1)) {
        let start = cut(line, size.columns);
        frame.push_str(&format!("{CLEAR_LINE}{start}\r\n"));
    }
    let end = cut(last_line, size.columns);
    frame.push_str(&format!("{CLEAR_REST}\x1b[{rows};1H{end}"));
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
        let drawn = screen_text(&format!("{full}\nsecond\nthird\n"), size, "q ends the view");
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

    /// Set where the test below runs itself on a terminal of its own, to panic there.
    const PANICS: &str = "DISKPROOF_TEST_PANICS";

    fn panic_on_a_screen() {
        let _screen = FullScreen::start(ScreenStream::Stdout).unwrap();
        assert!(keep_line("a line that was kept"));
        panic!("on purpose");
    }

    #[test]
    fn terminal_is_given_back_before_a_panic_is_reported() {
        if std::env::var_os(PANICS).is_some() {
            panic_on_a_screen();
        }
        let itself = std::env::current_exe().unwrap();
        let test = "full_screen::tests::terminal_is_given_back_before_a_panic_is_reported";
        let shell = format!("{} --exact {test} --nocapture", itself.display());
        let Ok(ran) = std::process::Command::new("script")
            .args(["-qec", &shell, "/dev/null"])
            .env(PANICS, "1")
            .stdin(std::process::Stdio::null())
            .output()
        else {
            eprintln!("SKIPPED: terminal_is_given_back_before_a_panic_is_reported: script");
            return;
        };
        let text = String::from_utf8_lossy(&ran.stdout);
        let (_, behind) = text.split_once(ENTER).unwrap();
        let (_, after) = behind.split_once(LEAVE).unwrap();
        for part in ["a line that was kept", "on purpose"] {
            assert!(after.contains(part), "{text}");
        }
    }

    #[test]
    fn line_is_kept_only_while_a_screen_is_open() {
        assert!(!keep_line("a warning"));
    }
}
