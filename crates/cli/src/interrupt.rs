//! Ctrl-C and its relatives. While a run measures, the first signal asks for a clean end and the
//! second one ends the program at once. Before and after that the first one ends it at once: there
//! is nothing to print or save. No file is left behind in any case, because the scratch file has no
//! name.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The signals that end the program.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt {
    signal: Arc<AtomicUsize>,
    ends_at_once: Arc<AtomicBool>,
}

impl Interrupt {
    /// Catches the signals; each still ends the program at once, with the exit code of a shell.
    pub(crate) fn listen() -> io::Result<Self> {
        let signal = Arc::new(AtomicUsize::new(0));
        let ends_at_once = Arc::new(AtomicBool::new(true));
        for number in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: the first handler reads the flag before the second one sets it.
            signal_hook::flag::register_conditional_shutdown(
                number,
                128 + number,
                Arc::clone(&ends_at_once),
            )?;
            signal_hook::flag::register(number, Arc::clone(&ends_at_once))?;
            signal_hook::flag::register_usize(number, Arc::clone(&signal), number as usize)?;
        }
        // When it is caught, a write beyond the limit on file sizes (setrlimit(2)) fails with
        // EFBIG and can be reported; otherwise the signal would kill the program.
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
        Ok(Self {
            signal,
            ends_at_once,
        })
    }

    /// From now on the first signal asks for a clean end.
    pub(crate) fn end_cleanly(&self) {
        self.ends_at_once.store(false, Ordering::SeqCst);
    }

    /// From now on the next signal ends the program.
    pub(crate) fn end_at_once(&self) {
        self.ends_at_once.store(true, Ordering::SeqCst);
    }

    /// The signal that came, if one did.
    pub(crate) fn signal(&self) -> Option<u8> {
        u8::try_from(self.signal.load(Ordering::Relaxed))
            .ok()
            .filter(|number| *number > 0)
    }
}
