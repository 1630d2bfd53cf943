//! Work that a filesystem may hold up for ever, on a thread of its own, so that the caller can stop
//! waiting.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Work on a thread of its own that a filesystem may hold up for good.
#[derive(Debug)]
pub struct Deferred<T> {
    result: Receiver<T>,
    started: Instant,
}

/// The work was not done in time. Its thread may still finish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOut;

impl<T: Send + 'static> Deferred<T> {
    /// Starts the work; where no thread can be created, does it at once.
    pub fn start(work: impl FnOnce() -> T + Send + Clone + 'static) -> Self {
        let (sender, result) = channel();
        let (threads_sender, same_work) = (sender.clone(), work.clone());
        let spawned = std::thread::Builder::new()
            .name("diskproof-save".to_owned())
            // After a timeout nothing receives the result.
            .spawn(move || drop(threads_sender.send(work())));
        if spawned.is_err() {
            let _ = sender.send(same_work());
        }
        Self {
            result,
            started: Instant::now(),
        }
    }

    /// Waits until `limit` after the start.
    pub fn wait(self, limit: Duration) -> Result<T, TimedOut> {
        let left = limit.saturating_sub(self.started.elapsed());
        self.result.recv_timeout(left).map_err(|_| TimedOut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn deferred_returns_a_result_and_times_out_on_a_hang() {
        let done = Deferred::start(|| 7).wait(Duration::from_secs(600));
        assert_eq!(done, Ok(7));
        let gate = Arc::new(Mutex::new(()));
        let (closed, other) = (gate.lock().unwrap(), Arc::clone(&gate));
        let hung = Deferred::start(move || drop(other.lock()));
        assert_eq!(hung.wait(Duration::from_millis(50)), Err(TimedOut));
        drop(closed);
    }
}
