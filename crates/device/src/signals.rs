//! Blocks signals in the calling thread for a moment.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// While it lives, no signal (but SIGKILL and SIGSTOP, which cannot be blocked) is delivered to
/// this thread.
pub(crate) struct SignalsHeld {
    before: libc::sigset_t,
    // The mask belongs to the thread that set it: not Send.
    _thread: PhantomData<*const ()>,
}

impl SignalsHeld {
    pub(crate) fn begin() -> Self {
        let mut all = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: sigfillset initialises the set it is given; pthread_sigmask reads that set and
        // fills `before`. With a valid `how` neither can fail (pthread_sigmask(3)).
        let before = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
            before.assume_init()
        };
        Self {
            before,
            _thread: PhantomData,
        }
    }
}

impl Drop for SignalsHeld {
    fn drop(&mut self) {
        // SAFETY: `before` was filled by pthread_sigmask in this same thread; a null old set is
        // allowed.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}
