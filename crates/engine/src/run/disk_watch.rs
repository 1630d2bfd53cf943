//! Watches the disks of a target while another process uses it, such as a server: how long requests
//! waited while the disks completed none.

use crate::io::clock::ActiveClock;
use crate::run::watched_call::usual_flush_ns;
use diskproof_device::Pulse;
use diskproof_model::measurement::SILENCE_NS_MIN;
use diskproof_model::target::TargetIdentity;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time between two looks at the counters. Chosen, not measured: a tenth of the shortest
/// silence that is kept.
const LOOK_EVERY: Duration = Duration::from_nanos(SILENCE_NS_MIN / 10);

/// The disks of a target while they are watched, until [`Self::end`].
#[derive(Debug)]
pub struct DiskWatch {
    is_over: Arc<AtomicBool>,
    /// `None` where no thread could be started.
    thread: Option<JoinHandle<u64>>,
}

impl DiskWatch {
    /// Watches the disks of this target from now on, in a thread. Without counters of disks, as on
    /// a network filesystem, nothing is seen.
    pub fn start(identity: &TargetIdentity) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let pulse = Pulse::start(identity);
        let usual_ns = usual_flush_ns(identity);
        let thread = std::thread::Builder::new().name("diskproof-disks".to_owned());
        let started = thread.spawn(move || watch(pulse, usual_ns, &ends));
        Self {
            is_over,
            thread: started.ok(),
        }
    }

    /// The longest silence since the start, in nanoseconds: requests waited, and the disks
    /// completed none. 0 below what is usual for these disks.
    pub fn end(mut self) -> u64 {
        match self.order_end() {
            Some(thread) => thread.join().unwrap_or(0),
            None => 0,
        }
    }

    fn order_end(&mut self) -> Option<JoinHandle<u64>> {
        self.is_over.store(true, Ordering::Relaxed);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        Some(thread)
    }
}

impl Drop for DiskWatch {
    fn drop(&mut self) {
        drop(self.order_end());
    }
}

/// Looks at the disks until the end.
fn watch(mut pulse: Pulse, usual_ns: u64, is_over: &AtomicBool) -> u64 {
    let clock = ActiveClock::new();
    let mut silence = DiskSilence::default();
    while !is_over.load(Ordering::Relaxed) {
        let has_beat = pulse.beats();
        silence.look(DiskLook {
            now_ns: clock.now(),
            has_beat,
            is_waiting: pulse.has_waiting_requests(),
        });
        std::thread::park_timeout(LOOK_EVERY);
    }
    if silence.longest_ns >= usual_ns.max(pulse.usual_silence_ns()) {
        silence.longest_ns
    } else {
        0
    }
}

/// What the counters of the disks show at a time.
#[derive(Debug, Clone, Copy)]
struct DiskLook {
    now_ns: u64,
    /// The disks have completed something since the last look.
    has_beat: bool,
    /// Requests are in flight.
    is_waiting: bool,
}

/// The silences of disks.
#[derive(Debug, Default)]
struct DiskSilence {
    /// When requests were seen first that still wait.
    since_ns: Option<u64>,
    longest_ns: u64,
}

impl DiskSilence {
    /// Disks without a request in flight are idle, and not silent: their user waits for a
    /// processor.
    fn look(&mut self, seen: DiskLook) {
        if seen.has_beat || !seen.is_waiting {
            self.since_ns = None;
        }
        if seen.is_waiting {
            let since_ns = *self.since_ns.get_or_insert(seen.now_ns);
            self.longest_ns = self.longest_ns.max(seen.now_ns - since_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::target::TargetKind;

    const MS: u64 = 1_000_000;

    /// The longest silence, in milliseconds, of disks that show this at each look.
    fn longest_ms(seen: impl Fn(u64) -> (bool, bool)) -> u64 {
        let mut silence = DiskSilence::default();
        for now_ms in (0..10_000).step_by(50) {
            let (has_beat, is_waiting) = seen(now_ms);
            silence.look(DiskLook {
                now_ns: now_ms * MS,
                has_beat,
                is_waiting,
            });
        }
        silence.longest_ns / MS
    }

    #[test]
    fn disks_are_silent_while_requests_wait_and_none_is_completed() {
        let silent = |from_ms: u64, until_ms: u64| {
            longest_ms(move |now_ms| (!(from_ms..until_ms).contains(&now_ms), true))
        };
        assert_eq!(silent(2000, 7000), 5000);
        assert_eq!(silent(0, 0), 0);
    }

    /// A server that calculates, or waits for a processor, has no request in flight.
    #[test]
    fn disks_without_requests_are_idle_and_not_silent() {
        assert_eq!(longest_ms(|_| (false, false)), 0);
        assert_eq!(longest_ms(|now_ms| (now_ms % 1000 == 0, false)), 0);
        // One that sends something now and then is answered in less than a second each time.
        let rarely = |now_ms| (now_ms % 1000 == 0, now_ms % 1000 < 200);
        assert_eq!(longest_ms(rarely), 150);
    }

    #[test]
    fn target_without_disks_is_never_silent() {
        let identity = TargetIdentity {
            path: "/nfs".into(),
            kind: TargetKind::Directory,
            size_bytes: 0,
            free_bytes: None,
            device: "0:9".into(),
            inode: 2,
            filesystem: None,
            layers: Vec::new(),
            unresolved: Some("on a server".into()),
        };
        assert_eq!(DiskWatch::start(&identity).end(), 0);
    }
}
