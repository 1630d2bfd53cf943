//! A link between disk and host that is slower than the disk may be: the curve's flat top.

use super::completions::CompletionQueue;
use super::timing::{DiskCompletion, DiskRequest, Operation, TimingModel, transfer_ns};
use std::collections::HashMap;

/// The time that the buffers at both ends bridge: a host that pauses for less between two requests
/// loses nothing of the link's rate. Chosen: longer than a program takes for its next request.
const BUFFERED_NS: u64 = 1_000_000;

/// A disk behind a link. The link passes bytes on while the disk still delivers (cut-through), one
/// request at a time.
pub struct Linked {
    disk: Box<dyn TimingModel>,
    bytes_per_s: u64,
    under_way: HashMap<u64, DiskRequest>,
    free_ns: u64,
    done: CompletionQueue,
}

impl Linked {
    /// `disk` behind a link of `bytes_per_s`.
    pub fn new(disk: Box<dyn TimingModel>, bytes_per_s: u64) -> Self {
        Self {
            disk,
            bytes_per_s,
            under_way: HashMap::new(),
            free_ns: 0,
            done: CompletionQueue::default(),
        }
    }

    fn pass(&mut self, completion: DiskCompletion) {
        let request = self
            .under_way
            .remove(&completion.ticket)
            .expect("the disk ends only what was submitted");
        let mut at_ns = completion.at_ns;
        if matches!(request.operation, Operation::Read | Operation::Write) {
            let link_ns = self
                .free_ns
                .max(request.arrival_ns.saturating_sub(BUFFERED_NS))
                + transfer_ns(request.length_bytes, self.bytes_per_s);
            at_ns = at_ns.max(link_ns);
            self.free_ns = at_ns;
        }
        self.done.push(DiskCompletion {
            at_ns,
            ticket: request.ticket,
        });
    }
}

impl TimingModel for Linked {
    fn submit(&mut self, request: DiskRequest) {
        self.under_way.insert(request.ticket, request);
        self.disk.submit(request);
    }

    fn take_done(&mut self, now_ns: u64) -> Option<DiskCompletion> {
        while let Some(completion) = self.disk.take_done(now_ns) {
            self.pass(completion);
        }
        self.done.take(now_ns)
    }

    fn next_ns(&self) -> Option<u64> {
        [self.disk.next_ns(), self.done.next_ns()]
            .into_iter()
            .flatten()
            .min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::drive::{arrival, read, total_ns};
    use crate::models::flash::Flash;

    fn linked(disk_bytes_per_s: u64) -> Linked {
        let disk = Flash {
            read_bytes_per_s: Some(disk_bytes_per_s),
            ..Flash::default()
        };
        Linked::new(Box::new(disk.start()), 100_000_000)
    }

    #[test]
    fn link_limits_to_slower_of_disk_and_link() {
        for depth in [1, 4] {
            let fast = total_ns(&mut linked(400_000_000), depth, &[read(0, 1_000_000); 100]);
            assert_eq!(fast, 1_000_000_000, "depth {depth}");
            let slow = total_ns(&mut linked(50_000_000), depth, &[read(0, 1_000_000); 50]);
            assert_eq!(slow, 1_000_000_000, "depth {depth}");
        }
    }

    #[test]
    fn link_buffers_only_short_host_pauses() {
        let ends_ns = |pause_ns: u64| {
            let mut linked = linked(1_000_000_000);
            (0..100).fold(0, |now_ns, ticket| {
                let request = DiskRequest {
                    length_bytes: 1_000_000,
                    ..arrival(ticket, now_ns + pause_ns)
                };
                linked.submit(request);
                // The disk behind has ended by then; the link ends later.
                assert_eq!(linked.take_done(now_ns + pause_ns), None);
                linked.take_done(u64::MAX).map_or(0, |c| c.at_ns)
            })
        };
        assert_eq!(ends_ns(500_000), 1_000_000_000);
        let each_ns = 5_000_000 - BUFFERED_NS + 10_000_000;
        assert_eq!(ends_ns(5_000_000), 100 * each_ns);
    }

    #[test]
    fn link_does_not_delay_small_requests() {
        let disk = Flash {
            read_latency_ns: 1_000_000,
            ..Flash::default()
        };
        let mut linked = Linked::new(Box::new(disk.start()), 100_000_000);
        assert_eq!(total_ns(&mut linked, 1, &[read(0, 4096); 10]), 10_000_000);
    }
}
