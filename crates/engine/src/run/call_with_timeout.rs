//! A call that may never return, made by a thread of its own: whoever waits for it can stop
//! waiting. Knows nothing of what is called.

use crate::io::clock::{Clock as _, MonotonicClock};
use crate::run::spawn::own_descriptor;
use crate::run::workers::TICK;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::mpsc::{RecvTimeoutError, channel};

/// What there is to see of a call that has not returned yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// Something of it was done since somebody looked last.
    Progress,
    /// Nothing.
    Silence,
}

/// How a call ended.
#[derive(Debug)]
pub enum Outcome<T> {
    /// It returned.
    Returned(T),
    /// It had shown no sign for too long and was left alone; it was made so many nanoseconds ago.
    Abandoned(u64),
}

/// Calls `work` with a descriptor of its own of the file that `fd` is, which stays open with it.
/// `look` is asked every 50 ms how it goes, and told for how long it has gone nowhere; after
/// `stall_ns` of that the thread is left alone.
pub fn aside<T: Send + 'static>(
    fd: BorrowedFd<'_>,
    stall_ns: u64,
    mut look: impl FnMut(u64) -> Sign,
    work: impl FnOnce(OwnedFd) -> T + Send + 'static,
) -> io::Result<Outcome<T>> {
    let (fd, (owned, is_owned), (sender, result)) = (fd.as_raw_fd(), channel(), channel());
    let call = move || {
        let fd = own_descriptor(fd);
        // Nobody listens any more where the call was left alone.
        let _ = owned.send(());
        let _ = sender.send(fd.map(work));
    };
    std::thread::Builder::new()
        .name("diskproof-aside".to_owned())
        .spawn(call)?;
    let gone = |_| io::Error::other("a thread ended without a word");
    // Until then it needs the caller's descriptor.
    is_owned.recv().map_err(gone)?;
    let start_ns = MonotonicClock.now();
    let mut seen_ns = start_ns;
    loop {
        match result.recv_timeout(TICK) {
            Ok(done) => return done.map(Outcome::Returned),
            Err(error @ RecvTimeoutError::Disconnected) => return Err(io::Error::other(error)),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = MonotonicClock.now();
        if look(now - seen_ns) == Sign::Progress {
            seen_ns = now;
        }
        if now - seen_ns > stall_ns {
            return Ok(Outcome::Abandoned(now - start_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;
    use std::time::Duration;

    fn nothing() -> std::fs::File {
        std::fs::File::open("/dev/null").unwrap()
    }

    #[test]
    fn what_returns_is_handed_over_however_long_it_takes_as_long_as_it_shows_something() {
        let slow = |_| {
            std::thread::sleep(Duration::from_millis(400));
            7
        };
        let outcome = aside(nothing().as_fd(), 1, |_| Sign::Progress, slow).unwrap();
        assert!(matches!(outcome, Outcome::Returned(7)), "{outcome:?}");
    }

    #[test]
    fn what_shows_nothing_is_left_alone() {
        let (release, held) = channel::<()>();
        let mut silence_ns = Vec::new();
        let look = |silent_ns| {
            silence_ns.push(silent_ns);
            Sign::Silence
        };
        let outcome = aside(nothing().as_fd(), 200_000_000, look, move |_| {
            held.recv().is_err()
        })
        .unwrap();
        assert!(
            matches!(outcome, Outcome::Abandoned(200_000_000..)),
            "{outcome:?}"
        );
        assert!(
            !silence_ns.is_empty() && silence_ns.is_sorted(),
            "{silence_ns:?}"
        );
        drop(release);
    }
}
