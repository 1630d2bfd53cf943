//! SIGTERM and SIGINT as something to wait for. Must not know what ends then.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;

/// The signals that end the program, blocked for this thread and all it starts.
pub struct Ends(libc::sigset_t);

impl Ends {
    /// Blocks the signals, so that they wait for `wait`.
    pub fn block() -> io::Result<Self> {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigemptyset initialises the set it is given; the others read or change that initialised set.
        let (set, result) = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            let mut set = set.assume_init();
            libc::sigaddset(&mut set, libc::SIGTERM);
            libc::sigaddset(&mut set, libc::SIGINT);
            (set, libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()))
        };
        if result == 0 { Ok(Self(set)) } else { Err(io::Error::from_raw_os_error(result)) }
    }

    /// Waits for one of them.
    pub fn wait(&self) -> io::Result<()> {
        let mut signal = 0;
        // SAFETY: both pointers are to live values of the right types.
        let result = unsafe { libc::sigwait(&self.0, &mut signal) };
        if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
    }
}
