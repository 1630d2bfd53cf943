//! Ends the program where targets cannot be found, inspected and opened in time. A thread that
//! waits for a disk in the kernel cannot be ended, so the whole program ends; nothing has been
//! measured.
//!
//! Also gives the time for which a target may be silent during a run, of which that limit is a
//! multiple.

use crate::failure::Failure;
use crate::stdio::{Verbosity, eprint_line};
use diskproof_engine::STALL_NS;
use diskproof_model::units::{format_duration, parse_duration};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A note follows after this time: the inspection of a disk that is not slow takes less.
const NOTE_AFTER: Duration = Duration::from_secs(2);
/// The wait counts steps of this length, so that no time passes while this process does not run.
const STEP: Duration = Duration::from_millis(100);
/// The limit is this many times the longest silence of a target: 3 min 45 s. The longest inspection
/// is that of a device to be written to: 162 s, measured at one read per second.
const SILENCES: u32 = 5;
/// The shortest limit, however short the longest silence is: a busy machine needs some seconds.
const LIMIT_MIN: Duration = Duration::from_secs(10);

/// The running inspection: dropping the sender ends the thread's wait.
static RUNNING: Mutex<Option<Sender<()>>> = Mutex::new(None);
/// The exit code where the limit is reached: that of a run that failed.
static EXIT_CODE: AtomicU8 = AtomicU8::new(4);

/// Sets the exit code where the limit is reached: that of the tool in whose place the program runs.
pub(crate) fn set_exit_code(code: u8) {
    EXIT_CODE.store(code, Ordering::Relaxed);
}

/// Begins the time of the inspection with the first target that is named; the later ones share it.
pub(crate) fn begin(target: &Path, verbosity: Verbosity) {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    if running.is_some() {
        return;
    }
    let (sender, end) = channel();
    let name = target.display().to_string();
    let longest = limit();
    let started = std::thread::Builder::new()
        .name("diskproof-inspection".to_owned())
        .spawn(move || watch(&end, &name, longest, verbosity));
    // Without a thread there is neither note nor limit.
    if started.is_ok() {
        *running = Some(sender);
    }
}

/// The longest that an inspection may take, and that a target may be silent while it is read
/// without an end in time.
pub(crate) fn limit() -> Duration {
    let silence = stall_timeout().unwrap_or(Duration::from_nanos(STALL_NS));
    limit_for(silence)
}

/// The limit where a target may be silent for this long.
fn limit_for(silence: Duration) -> Duration {
    silence.saturating_mul(SILENCES).max(LIMIT_MIN)
}

/// Ends the time of the inspection: from now on the run has limits of its own.
pub(crate) fn end() {
    *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Notes that the inspection takes long, and ends the program at the limit.
fn watch(end: &Receiver<()>, target: &str, limit: Duration, verbosity: Verbosity) {
    let limit_text = format_duration(limit.as_nanos() as u64);
    if !is_running_after(end, NOTE_AFTER) {
        return;
    }
    verbosity.note(&format!(
        "{target}: the target is inspected before the run, to keep existing data safe. This takes \
         longer than usual; it ends after {limit_text}"
    ));
    if is_running_after(end, limit - NOTE_AFTER) {
        diskproof_device::kill_programs();
        eprint_line(&format!(
            "error: {target}: the inspection was not complete after {limit_text}, so nothing was \
             measured and every figure is undecided. The target, or something below it, does not \
             answer, or is too slow; see the kernel log (dmesg). In state D (see ps) the process \
             cannot exit until the kernel finishes the I/O"
        ));
        signal_hook::low_level::exit(EXIT_CODE.load(Ordering::Relaxed).into());
    }
}

/// Waits this long; false if the inspection ends before.
fn is_running_after(end: &Receiver<()>, time: Duration) -> bool {
    let mut lasted = Duration::ZERO;
    while lasted < time {
        match end.recv_timeout(STEP) {
            Err(RecvTimeoutError::Timeout) => lasted += STEP,
            _ => return false,
        }
    }
    true
}

/// The environment variable that sets the longest silence of a target.
const STALL_TIMEOUT_VARIABLE: &str = "DISKPROOF_GIVE_UP_AFTER";

/// The time for which a target may leave requests unanswered before the run ends without it. A
/// multipath device that queues while it has no path needs longer than the default.
pub(crate) fn stall_timeout() -> Result<Duration, Failure> {
    parse_stall_timeout(&std::env::var_os(STALL_TIMEOUT_VARIABLE).unwrap_or_default())
}

/// The time that a value of the variable sets; the default where it is empty.
fn parse_stall_timeout(value: &OsStr) -> Result<Duration, Failure> {
    if value.is_empty() {
        return Ok(Duration::from_nanos(STALL_NS));
    }
    let text = value.to_string_lossy();
    match parse_duration(&text) {
        Ok(ns) => Ok(Duration::from_nanos(ns)),
        Err(error) => Err(Failure::Usage(format!(
            "{STALL_TIMEOUT_VARIABLE}={text}: {error}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_is_five_silences_and_ten_seconds_at_least() {
        assert_eq!(limit_for(Duration::from_nanos(STALL_NS)).as_secs(), 225);
        for (silence_ms, limit_ms) in [(1, 10_000), (2_000, 10_000), (3_000, 15_000)] {
            let limit = limit_for(Duration::from_millis(silence_ms));
            assert_eq!(limit, Duration::from_millis(limit_ms), "{silence_ms}");
        }
        assert_eq!(limit_for(Duration::MAX), Duration::MAX);
    }

    #[test]
    fn stall_timeout_has_a_default_and_a_value_without_a_meaning_is_refused() {
        for (value, expected) in [
            ("", Duration::from_nanos(STALL_NS)),
            ("5s", Duration::from_secs(5)),
            ("10m", Duration::from_secs(600)),
        ] {
            let found = parse_stall_timeout(OsStr::new(value)).unwrap();
            assert_eq!(found, expected, "{value}");
        }
        let Err(Failure::Usage(text)) = parse_stall_timeout(OsStr::new("soon")) else {
            panic!("no time");
        };
        assert!(text.starts_with("DISKPROOF_GIVE_UP_AFTER=soon: "), "{text}");
    }

    #[test]
    fn wait_for_an_inspection_ends_with_it() {
        let (sender, end) = channel();
        assert!(is_running_after(&end, STEP));
        drop(sender);
        // It would take an hour.
        assert!(!is_running_after(&end, Duration::from_secs(3600)));
    }
}
