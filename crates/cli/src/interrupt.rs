//! Handles Ctrl-C and the other signals that end the program. While a run measures, the first
//! signal requests a clean end. Within a second of it further signals are the same request: GNU
//! timeout signals its child and then the whole group. A later one ends the program at once. Before
//! a run, and once its record is saved, the first one ends it at once.
//!
//! No file is left behind in any case, because the scratch file has no name. A signal that was
//! ignored at the start stays ignored.

use crate::failure::Failure;
use anyhow::Context as _;
use diskproof_device::is_signal_ignored;
use diskproof_engine::RunError;
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ,
};
use signal_hook::iterator::Signals;
use signal_hook::low_level::signal_name;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The signals that end the program. The last three are those of a limit: `alarm 60; exec` of
/// scripts, batch systems before they kill, and a limit on processor time (setrlimit(2)).
const ENDING_SIGNALS: [i32; 7] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGUSR2, SIGXCPU];
/// A shell adds this to the number of the signal that ended a program.
const SIGNAL_CODE: i32 = 128;
/// Signals that come this soon after the first one belong to it.
const SAME_REQUEST: Duration = Duration::from_secs(1);
/// After a signal the program waits so long for others, each: a command of the user, a reader of
/// stdout that does not read, a filesystem to which it saves. So it ends within two seconds, unless
/// several of them hang. Chosen, not measured.
pub(crate) const WAIT_AFTER_SIGNAL: Duration = Duration::from_millis(1500);

/// Catches two signals that would kill the program. With SIGXFSZ caught, a write beyond the limit
/// on file sizes (setrlimit(2)) fails with EFBIG and can be reported. SIGUSR1 asks other tools for
/// their progress.
pub(crate) fn catch_harmless() {
    for harmless in [SIGXFSZ, SIGUSR1] {
        // Without a handler the signal has its usual effect.
        let _ = signal_hook::flag::register(harmless, Arc::default());
    }
}

/// The first signal that came; 0 before it. Signals are sent to the process, so it has one.
static SIGNAL: AtomicU8 = AtomicU8::new(0);

/// True while the first signal ends the program.
static ENDS_AT_ONCE: AtomicBool = AtomicBool::new(true);

/// True once the handlers were installed. They stay until the program ends.
static IS_LISTENING: Mutex<bool> = Mutex::new(false);

/// Catches the signals; each still ends the program at once, with the exit code of a shell.
pub(crate) fn listen() -> anyhow::Result<()> {
    let mut listens = IS_LISTENING.lock().unwrap_or_else(PoisonError::into_inner);
    if !*listens {
        // What was ignored at the start stays so: nohup(1), and `&` in a shell without job control.
        let caught = ENDING_SIGNALS
            .into_iter()
            .filter(|stop| !is_signal_ignored(*stop));
        let mut signals = Signals::new(caught).context("cannot catch signals")?;
        std::thread::Builder::new()
            .name("diskproof-signals".to_owned())
            .spawn(move || follow(&mut signals))
            .map_err(|error| Failure::Run(RunError::Thread(error)))?;
        *listens = true;
    }
    Ok(())
}

/// Notes the first signal, and ends the program where a signal asks for that.
fn follow(signals: &mut Signals) {
    let mut first = None;
    for number in signals.forever() {
        let now = Instant::now();
        let ends_program = match first {
            None => ENDS_AT_ONCE.load(Ordering::SeqCst),
            Some(first) => is_new_request(first, now),
        };
        if ends_program {
            diskproof_device::kill_programs();
            crate::full_screen::close();
            signal_hook::low_level::exit(SIGNAL_CODE + number);
        }
        if first.is_none() {
            note_first(number);
            first = Some(now);
        }
    }
}

/// Ends the run as SIGPIPE would end another tool: nobody reads its output any more. The Rust
/// runtime ignores the signal itself.
pub(crate) fn end_without_reader() {
    note_first(SIGPIPE);
}

/// Keeps a signal as the one that ended the run, unless another one did before.
fn note_first(number: i32) {
    let _ = SIGNAL.compare_exchange(0, number as u8, Ordering::SeqCst, Ordering::SeqCst);
}

/// From now on the first signal asks for a clean end.
pub(crate) fn end_cleanly() {
    ENDS_AT_ONCE.store(false, Ordering::SeqCst);
}

/// From now on the first signal ends the program; after an earlier one, the next that comes a
/// second later, as before.
pub(crate) fn end_at_once() {
    ENDS_AT_ONCE.store(true, Ordering::SeqCst);
}

/// The number of the first signal that came, if one did.
pub(crate) fn signal() -> Option<u8> {
    match SIGNAL.load(Ordering::SeqCst) {
        0 => None,
        number => Some(number),
    }
}

/// Says how the first signal that came ends a run, as a clause; `None` before it.
pub(crate) fn end_text() -> Option<String> {
    Some(end_text_of(signal()?))
}

/// True if the reason of an early end is that of a signal, as [`end_text`] words it.
pub(crate) fn is_end_text(why: &str) -> bool {
    why.contains("interrupted")
}

fn end_text_of(number: u8) -> String {
    let number = i32::from(number);
    match (number, signal_name(number)) {
        (SIGINT, _) => "interrupted by Ctrl-C (SIGINT)".to_owned(),
        (SIGPIPE, _) => "interrupted, because nothing reads its output (SIGPIPE)".to_owned(),
        (_, Some(name)) => format!("interrupted by the signal {name}"),
        (_, None) => format!("interrupted by signal {number}"),
    }
}

/// True if a signal that comes now is another request than the `first` one.
fn is_new_request(first: Instant, now: Instant) -> bool {
    now.duration_since(first) >= SAME_REQUEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_of_a_run_names_its_signal() {
        for (number, name) in [
            (SIGINT, "(SIGINT)"),
            (SIGTERM, "SIGTERM"),
            (SIGHUP, "SIGHUP"),
            (SIGXCPU, "SIGXCPU"),
            (SIGPIPE, "(SIGPIPE)"),
            (60, "signal 60"),
        ] {
            let text = end_text_of(number as u8);
            assert!(text.ends_with(name), "{text}");
        }
    }

    #[test]
    fn signals_within_a_second_of_the_first_are_one_request() {
        let first = Instant::now();
        for (milliseconds, expected) in [
            (0, false),
            (50, false),
            (999, false),
            (1000, true),
            (9000, true),
        ] {
            let now = first + Duration::from_millis(milliseconds);
            assert_eq!(is_new_request(first, now), expected, "{milliseconds}");
        }
    }
}
