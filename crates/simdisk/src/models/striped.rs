//! RAID-0: equal disks, a chunk on each in turn. A request ends when its last part does.

use super::completions::CompletionQueue;
use super::timing::{DiskCompletion, DiskRequest, Operation, TimingModel};
use std::collections::HashMap;

/// A striped set at work.
pub struct Striped {
    chunk_bytes: u64,
    members: Vec<Box<dyn TimingModel>>,
    /// The requests of which parts are under way, by ticket.
    under_way: HashMap<u64, SplitRequest>,
    done: CompletionQueue,
}

/// A request whose parts the members serve.
#[derive(Debug, Clone, Copy)]
struct SplitRequest {
    /// The parts that have not ended.
    parts_left: usize,
    /// The latest end of a part so far.
    end_ns: u64,
}

/// The part of a request that a member serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct MemberPart {
    offset_bytes: u64,
    length_bytes: u64,
}

impl Striped {
    /// A set of `members` (at least one).
    pub fn new(chunk_bytes: u64, members: Vec<Box<dyn TimingModel>>) -> Self {
        Self {
            chunk_bytes: chunk_bytes.max(1),
            members,
            under_way: HashMap::new(),
            done: CompletionQueue::default(),
        }
    }

    /// The part of each member, which is always contiguous; a length of 0 is none.
    fn parts(&self, request: &DiskRequest) -> Vec<MemberPart> {
        let count = self.members.len() as u64;
        let mut parts = vec![MemberPart::default(); self.members.len()];
        let span = request.span();
        let mut start = span.start;
        while start < span.end {
            let chunk = start / self.chunk_bytes;
            let end = ((chunk + 1) * self.chunk_bytes).min(span.end);
            let part = &mut parts[(chunk % count) as usize];
            if part.length_bytes == 0 {
                part.offset_bytes = chunk / count * self.chunk_bytes + start % self.chunk_bytes;
            }
            part.length_bytes += end - start;
            start = end;
        }
        parts
    }

    /// Takes the parts that have ended by now, and completes requests with their last part.
    fn collect(&mut self, now_ns: u64) {
        for member in &mut self.members {
            while let Some(part) = member.take_done(now_ns) {
                let request = self
                    .under_way
                    .get_mut(&part.ticket)
                    .expect("a member ends only what was submitted");
                request.parts_left -= 1;
                request.end_ns = part.at_ns.max(request.end_ns);
                if request.parts_left == 0 {
                    self.done.push(DiskCompletion {
                        at_ns: request.end_ns,
                        ticket: part.ticket,
                    });
                    self.under_way.remove(&part.ticket);
                }
            }
        }
    }
}

impl TimingModel for Striped {
    fn submit(&mut self, request: DiskRequest) {
        let everywhere = request.operation == Operation::Flush || request.length_bytes == 0;
        let parts = self.parts(&request);
        let mut parts_left = 0;
        for (member, part) in self.members.iter_mut().zip(parts) {
            if everywhere || part.length_bytes > 0 {
                member.submit(DiskRequest {
                    offset_bytes: part.offset_bytes,
                    length_bytes: part.length_bytes,
                    ..request
                });
                parts_left += 1;
            }
        }
        self.under_way.insert(
            request.ticket,
            SplitRequest {
                parts_left,
                end_ns: request.arrival_ns,
            },
        );
    }

    fn take_done(&mut self, now_ns: u64) -> Option<DiskCompletion> {
        self.collect(now_ns);
        self.done.take(now_ns)
    }

    fn next_ns(&self) -> Option<u64> {
        self.members
            .iter()
            .map(|member| member.next_ns())
            .chain([self.done.next_ns()])
            .flatten()
            .min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::drive::{FLUSH, arrival, read, total_ns};
    use crate::models::flash::Flash;
    use crate::models::timing::transfer_ns;

    fn pair() -> Striped {
        let member = Flash {
            read_latency_ns: 1_000_000,
            flush_latency_ns: 5,
            channels: Some(1),
            read_bytes_per_s: Some(100_000_000),
            ..Flash::default()
        };
        let start = || Box::new(member.start());
        Striped::new(64 << 10, vec![start(), start()])
    }

    #[test]
    fn stripe_splits_only_large_requests() {
        let half_ns = 1_000_000 + transfer_ns(512 << 10, 100_000_000);
        assert_eq!(total_ns(&mut pair(), 1, &[read(0, 1 << 20)]), half_ns);
        let small_ns = 1_000_000 + transfer_ns(4096, 100_000_000);
        assert_eq!(total_ns(&mut pair(), 1, &[read(0, 4096)]), small_ns);
        // Two members at once, and one twice.
        let both = [read(0, 4096), read(64 << 10, 4096)];
        assert_eq!(total_ns(&mut pair(), 2, &both), small_ns);
        let one = [read(0, 4096), read(128 << 10, 4096)];
        assert!(total_ns(&mut pair(), 2, &one) > 2_000_000);
    }

    #[test]
    fn stripe_parts_are_contiguous_on_member() {
        let request = DiskRequest {
            offset_bytes: (64 << 10) + 1000,
            length_bytes: 192 << 10,
            ..arrival(0, 0)
        };
        let first = MemberPart {
            offset_bytes: 64 << 10,
            length_bytes: (64 << 10) + 1000,
        };
        let second = MemberPart {
            offset_bytes: 1000,
            length_bytes: (64 << 10) - 1000 + (64 << 10),
        };
        assert_eq!(pair().parts(&request), [first, second]);
    }

    #[test]
    fn stripe_flush_reaches_every_member() {
        assert_eq!(total_ns(&mut pair(), 1, &[FLUSH]), 5);
    }
}
