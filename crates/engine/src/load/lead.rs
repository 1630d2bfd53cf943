//! Decides how long before a start a worker wakes up. A sleeping thread wakes up late, on a virtual
//! machine by some hundred microseconds, and a start that is late is this program's delay, not the
//! disk's.

/// The lead of a worker with one slot: a thread of which there may be hundreds, so that it must not
/// spin for long. An idle virtual machine of two processors woke half of them within 0.1 ms.
const SPIN_SINGLE_NS: u64 = 80_000;
/// The least that a worker with a queue spins before a start: a timer of the kernel is late by as
/// much even on idle machines (PR_SET_TIMERSLACK is 50 µs).
const SPIN_MIN_NS: u64 = 50_000;
/// The most that a worker with a queue spins before a start. Wake-ups of that virtual machine were
/// late by 0.2 to 0.4 ms at p99 (docs/performance.md); a longer spin takes a processor from the
/// server beside it.
const SPIN_MAX_NS: u64 = 500_000;
/// A wake-up that is later than expected moves the lead this much beyond it. Chosen, not measured.
const RISE_PERCENT: u64 = 125;
/// A punctual wake-up takes back this part of the lead. Rising by a quarter is undone after some
/// 900 of them (ln 1.25 × 4096), so a thread that is often late has about one late start in a
/// thousand.
const DECAY_PARTS: u64 = 4096;

/// The time between waking up and a start, learnt from how late the thread woke up before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lead {
    ns: u64,
    max_ns: u64,
}

impl Default for Lead {
    fn default() -> Self {
        Self {
            ns: SPIN_MIN_NS,
            max_ns: SPIN_MIN_NS,
        }
    }
}

impl Lead {
    /// For a worker with so many slots, on a machine with so many processors. Where there is only
    /// one, a spinning thread delays the disk's own work.
    pub(crate) fn for_worker(slots: u32, processors: usize) -> Self {
        let (ns, max_ns) = match (slots, processors) {
            (1, _) => (SPIN_SINGLE_NS, SPIN_SINGLE_NS),
            (_, 1) => (SPIN_MIN_NS, SPIN_MIN_NS),
            _ => (SPIN_MIN_NS, SPIN_MAX_NS),
        };
        Self { ns, max_ns }
    }

    /// The lead, in nanoseconds.
    pub(crate) fn ns(&self) -> u64 {
        self.ns
    }

    /// Notes that the thread wanted to wake up at `wanted_ns`, and did at `woke_ns`.
    pub(crate) fn note_wake_up(&mut self, wanted_ns: u64, woke_ns: u64) {
        let late_ns = woke_ns.saturating_sub(wanted_ns);
        if late_ns > self.ns {
            self.ns = late_ns.saturating_mul(RISE_PERCENT) / 100;
        } else {
            self.ns -= self.ns / DECAY_PARTS;
        }
        self.ns = self.ns.clamp(SPIN_MIN_NS, self.max_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lead_follows_late_wake_ups_and_comes_back() {
        let mut lead = Lead::for_worker(100, 2);
        lead.note_wake_up(1000, 1000);
        assert_eq!(lead.ns(), SPIN_MIN_NS);
        lead.note_wake_up(0, 200_000);
        assert_eq!(lead.ns(), 250_000);
        lead.note_wake_up(0, 5_000_000);
        assert_eq!(lead.ns(), SPIN_MAX_NS);
        for _ in 0..20_000 {
            lead.note_wake_up(5000, 4000);
        }
        assert_eq!(lead.ns(), SPIN_MIN_NS);
    }

    #[test]
    fn threads_with_one_request_and_single_processors_spin_little() {
        for (slots, processors, max_ns) in [(1, 64, SPIN_SINGLE_NS), (100, 1, SPIN_MIN_NS)] {
            let mut lead = Lead::for_worker(slots, processors);
            lead.note_wake_up(0, 5_000_000);
            assert_eq!(lead.ns(), max_ns);
        }
    }
}
