//! What the thread that pings a target and its supervisor share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Whether the pinger must end, and what it waits for.
#[derive(Debug, Default)]
pub(crate) struct PingSignals {
    stop: AtomicBool,
    /// When the request in flight was sent, on the pinger's clock; 0 without one.
    since_ns: AtomicU64,
}

impl PingSignals {
    /// A request is about to be sent.
    pub(crate) fn begin(&self, now: u64) {
        self.since_ns.store(now.max(1), Ordering::Relaxed);
    }

    /// It has ended.
    pub(crate) fn end(&self) {
        self.since_ns.store(0, Ordering::Relaxed);
    }

    /// Tells the pinger to end.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether it must end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// When the request in flight was sent.
    pub(crate) fn in_flight_since(&self) -> Option<u64> {
        Some(self.since_ns.load(Ordering::Relaxed)).filter(|since_ns| *since_ns > 0)
    }
}
