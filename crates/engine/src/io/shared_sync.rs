//! Group commit: one sync serves every thread whose write ended before the sync started. The first
//! thread that finds none under way makes it, the others wait; as the server processes of a
//! database do with its log.

use crate::lock::lock;
use std::ops::RangeInclusive;
use std::sync::{Condvar, Mutex, PoisonError};

/// The sync that threads share.
#[derive(Debug, Default)]
pub(crate) struct SharedSync {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Writes that ended, which is also the number of the last one.
    written: u64,
    /// The last write that a sync has served.
    served: u64,
    is_syncing: bool,
    /// Failed syncs: the writes that each served, and its result.
    failures: Vec<(RangeInclusive<u64>, i32)>,
}

impl State {
    /// The result of the sync that served this write.
    fn result_of(&self, write: u64) -> i32 {
        let failed = self
            .failures
            .iter()
            .find(|(served, _)| served.contains(&write));
        failed.map_or(0, |(_, result)| *result)
    }
}

impl SharedSync {
    /// Returns once the caller's write, which has ended, is durable: by `sync`, which returns 0 or
    /// a negative errno, or by that of another thread.
    pub(crate) fn sync(&self, sync: impl FnOnce() -> i32) -> i32 {
        let mut state = lock(&self.state);
        state.written += 1;
        let write = state.written;
        while state.is_syncing && state.served < write {
            let waited = self.ended.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        if state.served >= write {
            return state.result_of(write);
        }
        let serves = state.written;
        state.is_syncing = true;
        drop(state);
        let result = sync();
        let mut state = lock(&self.state);
        if result != 0 {
            let served = state.served + 1..=serves;
            state.failures.push((served, result));
        }
        (state.is_syncing, state.served) = (false, serves);
        self.ended.notify_all();
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;
    use std::time::Duration;

    /// Waits until `threads` writes have ended.
    fn await_written(shared: &SharedSync, threads: u64) {
        while shared.state.lock().unwrap().written < threads {
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn one_sync_serves_all_writes_that_ended_before_it() {
        let (shared, syncs) = (Arc::new(SharedSync::default()), Arc::new(AtomicU32::new(0)));
        let first = shared.sync(|| {
            // Seven more writes end while the first sync is under way: the next serves them all.
            let waiting: Vec<_> = (0..7)
                .map(|_| {
                    let (shared, syncs) = (Arc::clone(&shared), Arc::clone(&syncs));
                    thread::spawn(move || {
                        shared.sync(|| {
                            syncs.fetch_add(1, Ordering::Relaxed);
                            0
                        })
                    })
                })
                .collect();
            await_written(&shared, 8);
            assert_eq!(syncs.load(Ordering::Relaxed), 0, "one sync at a time");
            thread::spawn(move || waiting.into_iter().map(|t| t.join().unwrap()).max());
            0
        });
        assert_eq!(first, 0);
        while shared.state.lock().unwrap().served < 8 {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(syncs.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn failed_sync_fails_every_write_it_served_and_no_other() {
        let shared = SharedSync::default();
        assert_eq!(shared.sync(|| 0), 0);
        assert_eq!(shared.sync(|| -libc::EIO), -libc::EIO);
        assert_eq!(shared.sync(|| 0), 0);
        let state = shared.state.lock().unwrap();
        let results: Vec<i32> = (1..=3).map(|write| state.result_of(write)).collect();
        assert_eq!(results, [0, -libc::EIO, 0]);
    }
}
