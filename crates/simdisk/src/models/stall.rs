//! A disk that stands still for a while: garbage collection, a reset of the link.

use super::timing::{DiskCompletion, DiskRequest, TimingModel};

/// A time in which the disk answers nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// Time after the arrival of the first request, in which the earlier stalls do not count.
    pub after_ns: u64,
    /// The length of a stall, in nanoseconds.
    pub length_ns: u64,
}

/// A disk whose own clock stops during the stalls: whatever is under way then ends later by their
/// length.
pub struct StallingDisk {
    disk: Box<dyn TimingModel>,
    stalls: Vec<Stall>,
    first_ns: Option<u64>,
}

impl StallingDisk {
    /// A disk as `disk`, with stalls.
    pub fn new(disk: Box<dyn TimingModel>, mut stalls: Vec<Stall>) -> Self {
        stalls.sort_by_key(|s| s.after_ns);
        Self {
            disk,
            stalls,
            first_ns: None,
        }
    }

    /// The time at which the first request arrived. Until then no stall begins: the time is beyond
    /// any test, and half of the range leaves room for sums.
    fn origin_ns(&self) -> u64 {
        self.first_ns.unwrap_or(u64::MAX / 2)
    }

    /// Real time → the disk's own time.
    fn own_ns(&self, real_ns: u64) -> u64 {
        let mut lost_ns = 0;
        for stall in &self.stalls {
            let start_ns = self.origin_ns().saturating_add(stall.after_ns) + lost_ns;
            lost_ns += real_ns.saturating_sub(start_ns).min(stall.length_ns);
        }
        real_ns - lost_ns
    }

    /// The disk's own time → real time; what ends exactly when a stall begins still ends.
    fn real_ns(&self, own_ns: u64) -> u64 {
        let first_ns = self.origin_ns();
        let lost_ns: u64 = self
            .stalls
            .iter()
            .filter(|s| own_ns > first_ns.saturating_add(s.after_ns))
            .map(|s| s.length_ns)
            .sum();
        own_ns + lost_ns
    }
}

impl TimingModel for StallingDisk {
    fn submit(&mut self, mut request: DiskRequest) {
        self.first_ns.get_or_insert(request.arrival_ns);
        let own_ns = self.own_ns(request.arrival_ns);
        // During a stall the own clock stands at its start, where the stall has not yet begun for
        // what ends at once: one ns later it has.
        let during_stall = self.own_ns(request.arrival_ns + 1) == own_ns
            && self.real_ns(own_ns) < request.arrival_ns;
        request.arrival_ns = own_ns + u64::from(during_stall);
        self.disk.submit(request);
    }

    fn take_done(&mut self, now_ns: u64) -> Option<DiskCompletion> {
        let completion = self.disk.take_done(self.own_ns(now_ns))?;
        Some(DiskCompletion {
            at_ns: self.real_ns(completion.at_ns),
            ..completion
        })
    }

    fn next_ns(&self) -> Option<u64> {
        self.disk.next_ns().map(|ns| self.real_ns(ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::drive::{arrival, closed_loop, ends, read};
    use crate::models::flash::Flash;

    /// When stalls begin and how long they last.
    fn stalls(all: &[(u64, u64)]) -> Vec<Stall> {
        let stall = |(after_ns, length_ns): &(u64, u64)| Stall {
            after_ns: *after_ns,
            length_ns: *length_ns,
        };
        all.iter().map(stall).collect()
    }

    fn stalled(all: &[(u64, u64)]) -> StallingDisk {
        let disk = Flash {
            read_latency_ns: 10,
            channels: Some(1),
            ..Flash::default()
        };
        StallingDisk::new(Box::new(disk.start()), stalls(all))
    }

    /// When what has been submitted ends, up to this time.
    fn done_by(disk: &mut StallingDisk, now_ns: u64) -> Vec<u64> {
        let done = std::iter::from_fn(|| disk.take_done(now_ns));
        done.map(|completion| completion.at_ns).collect()
    }

    #[test]
    fn stall_delays_only_the_request_in_flight() {
        let times = closed_loop(&mut stalled(&[(25, 1000)]), 1, &[read(0, 1); 5]);
        let expected = [(0, 10), (10, 20), (20, 1030), (1030, 1040), (1040, 1050)];
        assert_eq!(times, expected);
    }

    #[test]
    fn stall_delays_whole_queue() {
        let ends = ends(&mut stalled(&[(15, 100)]), 3, &[read(0, 1); 3]);
        assert_eq!(ends, [10, 120, 130]);
    }

    #[test]
    fn stalls_start_in_disk_time() {
        let ends = ends(&mut stalled(&[(35, 100), (5, 100)]), 1, &[read(0, 1); 5]);
        assert_eq!(ends, [110, 120, 130, 240, 250]);
    }

    #[test]
    fn stall_delays_instant_disk() {
        let mut disk = StallingDisk::new(Box::new(Flash::default().start()), stalls(&[(40, 100)]));
        disk.submit(arrival(0, 0));
        assert_eq!(disk.take_done(0).map(|c| c.at_ns), Some(0));
        disk.submit(arrival(1, 90));
        assert_eq!(disk.take_done(139), None);
        assert_eq!(disk.next_ns(), Some(141));
        disk.submit(arrival(2, 200));
        assert_eq!(done_by(&mut disk, 200), [141, 200]);
    }

    #[test]
    fn stall_delays_arrivals() {
        let mut disk = stalled(&[(0, 100)]);
        disk.submit(arrival(0, 50));
        disk.submit(arrival(1, 100));
        assert_eq!(done_by(&mut disk, 1000), [160, 170]);
    }
}
