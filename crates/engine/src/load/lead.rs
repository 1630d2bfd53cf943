//! The lead with which a worker wakes up before a start. A sleeping thread wakes up late, on a
//! virtual machine by some hundred microseconds, and a start that is late is this program's delay,
//! not the disk's.

/// The lead of a worker with one slot: a thread of which there may be hundreds, so that it must not
/// spin for long.
const ONE_EACH_NS: u64 = 80_000;
/// The least that a worker with a queue spins before a start.
const LEAST_NS: u64 = 50_000;
/// The most that a worker with a queue spins before a start.
const MOST_NS: u64 = 500_000;
/// A wake-up that is later than expected moves the lead this much beyond it.
const BEYOND_PERCENT: u64 = 125;
/// The share of the lead that a punctual wake-up takes back: of a hundred, about one may be late.
const BACK_PARTS: u64 = 4096;

/// The time between waking up and a start, learnt from how late the thread woke up before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lead {
    ns: u64,
    most_ns: u64,
}

impl Default for Lead {
    fn default() -> Self {
        Self {
            ns: LEAST_NS,
            most_ns: LEAST_NS,
        }
    }
}

impl Lead {
    /// For a worker with so many slots, on a machine with so many processors. Where there is only
    /// one, a spinning thread delays the disk's own work.
    pub(crate) fn for_worker(slots: u32, processors: usize) -> Self {
        let (ns, most_ns) = match (slots, processors) {
            (1, _) => (ONE_EACH_NS, ONE_EACH_NS),
            (_, 1) => (LEAST_NS, LEAST_NS),
            _ => (LEAST_NS, MOST_NS),
        };
        Self { ns, most_ns }
    }

    /// The lead, in nanoseconds.
    pub(crate) fn ns(&self) -> u64 {
        self.ns
    }

    /// The thread wanted to wake up at `wanted_ns`, and did at `woke_ns`.
    pub(crate) fn note(&mut self, wanted_ns: u64, woke_ns: u64) {
        let late_ns = woke_ns.saturating_sub(wanted_ns);
        if late_ns > self.ns {
            self.ns = late_ns.saturating_mul(BEYOND_PERCENT) / 100;
        } else {
            self.ns -= self.ns / BACK_PARTS;
        }
        self.ns = self.ns.clamp(LEAST_NS.min(self.most_ns), self.most_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lead_follows_late_wake_ups_and_comes_back() {
        let mut lead = Lead::for_worker(100, 2);
        lead.note(1000, 1000);
        assert_eq!(lead.ns(), LEAST_NS);
        lead.note(0, 200_000);
        assert_eq!(lead.ns(), 250_000);
        lead.note(0, 5_000_000);
        assert_eq!(lead.ns(), MOST_NS);
        for _ in 0..20_000 {
            lead.note(5000, 4000);
        }
        assert_eq!(lead.ns(), LEAST_NS);
    }

    #[test]
    fn threads_with_one_request_and_single_processors_spin_little() {
        for (slots, processors, most_ns) in [(1, 64, ONE_EACH_NS), (100, 1, LEAST_NS)] {
            let mut lead = Lead::for_worker(slots, processors);
            lead.note(0, 5_000_000);
            assert_eq!(lead.ns(), most_ns);
        }
    }
}
