//! Ctrl-C and its relatives: the first asks for a clean end, the second ends at once. Nothing is
//! ever left behind either way, because the scratch file has no name.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Remembers the signal that asked for the end.
#[derive(Debug, Clone)]
pub struct Interrupt {
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Listens from now on.
    pub fn listen() -> io::Result<Self> {
        let (signal, again) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        for number in [SIGINT, SIGTERM, SIGHUP] {
            // The order matters: the shutdown looks at the flag before this signal sets it.
            signal_hook::flag::register_conditional_shutdown(
                number,
                128 + number,
                Arc::clone(&again),
            )?;
            signal_hook::flag::register(number, Arc::clone(&again))?;
            signal_hook::flag::register_usize(number, Arc::clone(&signal), number as usize)?;
        }
        // Caught, a write beyond the limit on file sizes (setrlimit(2)) is an error that can be
        // told, EFBIG; else it would kill.
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
        Ok(Self { signal })
    }

    /// The signal that came, if one did.
    pub fn signal(&self) -> Option<u8> {
        u8::try_from(self.signal.load(Ordering::Relaxed))
            .ok()
            .filter(|number| *number > 0)
    }
}
