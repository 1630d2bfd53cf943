//! Waits for the signals of Ctrl-C, `kill`, a closed terminal and Ctrl-\. Each would leave a dead
//! mount behind if it ended the program at once.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;

/// The signals that end the program, blocked in this thread and the threads it starts.
pub(crate) struct EndSignals(libc::sigset_t);

impl EndSignals {
    /// Blocks the signals, so that they wait for `wait`.
    pub(crate) fn block() -> io::Result<Self> {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigemptyset initialises the set it is given; the others read or change that
        // initialised set.
        let (set, result) = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            let mut set = set.assume_init();
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
                libc::sigaddset(&mut set, signal);
            }
            (
                set,
                libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()),
            )
        };
        if result == 0 {
            Ok(Self(set))
        } else {
            Err(io::Error::from_raw_os_error(result))
        }
    }

    /// Waits for one of them.
    pub(crate) fn wait(&self) -> io::Result<()> {
        let mut signal = 0;
        // SAFETY: both pointers are to live values of the right types.
        let result = unsafe { libc::sigwait(&self.0, &mut signal) };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::from_raw_os_error(result))
        }
    }
}
