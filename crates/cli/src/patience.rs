//! Work that a filesystem may hold up for good, done by a thread of its own, so that whoever waits
//! for it can stop waiting.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Work under way.
#[derive(Debug)]
pub struct Pending<T> {
    result: Receiver<T>,
    started: Instant,
}

/// How work ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waited<T> {
    /// It is done.
    Done(T),
    /// It took too long, and may still be done some day.
    InVain,
}

impl<T: Send + 'static> Pending<T> {
    /// Begins; where no thread is to be had, does it at once.
    pub fn start(work: impl FnOnce() -> T + Send + Clone + 'static) -> Self {
        let (sender, result) = channel();
        let (mine, instead) = (sender.clone(), work.clone());
        // Nobody listens any more where it took too long.
        let begun = std::thread::Builder::new()
            .name("diskproof-save".to_owned())
            .spawn(move || drop(mine.send(work())));
        if begun.is_err() {
            let _ = sender.send(instead());
        }
        Self {
            result,
            started: Instant::now(),
        }
    }

    /// Waits until `limit` after its start.
    pub fn wait(self, limit: Duration) -> Waited<T> {
        match self
            .result
            .recv_timeout(limit.saturating_sub(self.started.elapsed()))
        {
            Ok(done) => Waited::Done(done),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Waited::InVain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn what_is_done_is_handed_over_and_what_hangs_is_not_waited_for() {
        assert_eq!(
            Pending::start(|| 7).wait(Duration::from_secs(600)),
            Waited::Done(7)
        );
        let gate = Arc::new(Mutex::new(()));
        let (closed, other) = (gate.lock().unwrap(), Arc::clone(&gate));
        let hung = Pending::start(move || drop(other.lock()));
        assert_eq!(hung.wait(Duration::from_millis(50)), Waited::InVain);
        drop(closed);
    }
}
