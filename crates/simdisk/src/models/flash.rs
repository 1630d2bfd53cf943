//! A disk without moving parts: latency on parallel channels, limits of rate, an optional cliff and
//! optional credits. First come, first served.

use super::cliff::{Cliff, CliffEdge};
use super::completions::CompletionQueue;
use super::credits::{CreditBucket, Credits};
use super::pacing::Pacing;
use super::timing::{DiskCompletion, DiskRequest, Operation, TimingModel, transfer_ns};

/// The numbers of a flash disk or volume. All zero or `None` means no limit. A request ends when a
/// channel has spent the latency on it *and* the limit of operations has let it pass (both at once,
/// as in a throttled volume), and then its bytes have passed the one pipe.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flash {
    /// Time of one read on its channel.
    pub read_latency_ns: u64,
    /// Time of one write on its channel.
    pub write_latency_ns: u64,
    /// Time of one flush on its channel.
    pub flush_latency_ns: u64,
    /// Requests worked on at once; `None` is any number.
    pub channels: Option<u32>,
    /// Reads and writes per second, one after the other.
    pub iops: Option<u64>,
    /// Reads and writes per second, with a burst.
    pub credits: Option<Credits>,
    /// Bytes read and written per second, with a burst.
    pub byte_credits: Option<Credits>,
    /// Bytes per second read.
    pub read_bytes_per_s: Option<u64>,
    /// Bytes per second written.
    pub write_bytes_per_s: Option<u64>,
    /// The edge behind which writes become slow; `None` without one.
    pub cliff: Option<Cliff>,
}

/// A flash disk at work.
#[derive(Debug, Clone)]
pub struct FlashMachine {
    flash: Flash,
    channel_free_ns: Vec<u64>,
    pacing: Option<Pacing>,
    credits: Option<CreditBucket>,
    byte_credits: Option<CreditBucket>,
    cliff: Option<CliffEdge>,
    pipe_free_ns: u64,
    done: CompletionQueue,
}

impl Flash {
    /// The disk at virtual time 0.
    pub fn start(&self) -> FlashMachine {
        FlashMachine {
            channel_free_ns: vec![0; self.channels.unwrap_or(0) as usize],
            pacing: self.iops.map(Pacing::new),
            credits: self.credits.map(CreditBucket::new),
            byte_credits: self.byte_credits.map(CreditBucket::new),
            cliff: self.cliff.map(CliffEdge::new),
            pipe_free_ns: 0,
            done: CompletionQueue::default(),
            flash: self.clone(),
        }
    }

    fn latency_ns(&self, operation: Operation) -> u64 {
        match operation {
            Operation::Read => self.read_latency_ns,
            Operation::Write | Operation::Trim => self.write_latency_ns,
            Operation::Flush => self.flush_latency_ns,
        }
    }
}

impl FlashMachine {
    fn end_ns(&mut self, request: &DiskRequest) -> u64 {
        let mut end_ns = self.channel_end_ns(request);
        if request.operation == Operation::Flush {
            return end_ns;
        }
        if let Some(pacing) = &mut self.pacing {
            end_ns = end_ns.max(pacing.pass(request.arrival_ns));
        }
        if let Some(credits) = &mut self.credits {
            end_ns = end_ns.max(credits.pass(request.arrival_ns, 1));
        }
        if let Some(credits) = &mut self.byte_credits
            && request.operation != Operation::Trim
        {
            end_ns = end_ns.max(credits.pass(request.arrival_ns, request.length_bytes));
        }
        let pipe_ns = match request.operation {
            Operation::Trim => 0,
            _ => self.pipe_ns(request),
        };
        if pipe_ns == 0 {
            return end_ns;
        }
        self.pipe_free_ns = self.pipe_free_ns.max(end_ns) + pipe_ns;
        self.pipe_free_ns
    }

    fn channel_end_ns(&mut self, request: &DiskRequest) -> u64 {
        let service_ns = self.flash.latency_ns(request.operation) + request.extra_ns;
        match self.channel_free_ns.iter_mut().min() {
            None => request.arrival_ns + service_ns,
            Some(free_ns) => {
                *free_ns = request.arrival_ns.max(*free_ns) + service_ns;
                *free_ns
            }
        }
    }

    fn pipe_ns(&mut self, request: &DiskRequest) -> u64 {
        if request.operation == Operation::Read {
            return self
                .flash
                .read_bytes_per_s
                .map_or(0, |rate| transfer_ns(request.length_bytes, rate));
        }
        let fast = self.flash.write_bytes_per_s;
        match &mut self.cliff {
            Some(edge) => edge.write_ns(request.length_bytes, fast),
            None => fast.map_or(0, |rate| transfer_ns(request.length_bytes, rate)),
        }
    }
}

impl TimingModel for FlashMachine {
    fn submit(&mut self, request: DiskRequest) {
        let at_ns = self.end_ns(&request);
        self.done.push(DiskCompletion {
            at_ns,
            ticket: request.ticket,
        });
    }

    fn take_done(&mut self, now_ns: u64) -> Option<DiskCompletion> {
        self.done.take(now_ns)
    }

    fn next_ns(&self) -> Option<u64> {
        self.done.next_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::drive::{FLUSH, arrival, closed_loop, read, total_ns, write};

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn flash_iops_are_exact_at_any_depth() {
        for depth in [1, 8, 32] {
            let mut disk = Flash {
                iops: Some(2000),
                ..Flash::default()
            }
            .start();
            let taken_ns = total_ns(&mut disk, depth, &[read(0, 4096); 2000]);
            assert_eq!(taken_ns, SECOND_NS, "depth {depth}");
        }
    }

    #[test]
    fn flash_latency_limits_channels() {
        let four = Some(4);
        for (channels, depth, count) in [(four, 16, 8000), (four, 1, 2000), (None, 16, 32_000)] {
            let disk = Flash {
                read_latency_ns: 500_000,
                channels,
                ..Flash::default()
            };
            let taken_ns = total_ns(&mut disk.start(), depth, &vec![read(0, 4096); count]);
            assert_eq!(taken_ns, SECOND_NS, "{depth} {count}");
        }
    }

    #[test]
    fn flash_latency_depends_on_operation() {
        let mut disk = Flash {
            read_latency_ns: 1,
            write_latency_ns: 20,
            flush_latency_ns: 300,
            ..Flash::default()
        }
        .start();
        let times = closed_loop(&mut disk, 1, &[read(0, 512), write(0, 512), FLUSH]);
        assert_eq!(times, vec![(0, 1), (1, 21), (21, 321)]);
    }

    #[test]
    fn flash_bandwidth_is_exact_and_shared() {
        let disk = Flash {
            read_bytes_per_s: Some(100_000_000),
            write_bytes_per_s: Some(50_000_000),
            ..Flash::default()
        };
        for depth in [1, 8] {
            let reads_ns = total_ns(&mut disk.start(), depth, &[read(0, 1_000_000); 100]);
            let writes_ns = total_ns(&mut disk.start(), depth, &[write(0, 1_000_000); 50]);
            assert_eq!([reads_ns, writes_ns], [SECOND_NS; 2]);
        }
        let both = [read(0, 1_000_000), write(0, 1_000_000)];
        assert_eq!(total_ns(&mut disk.start(), 2, &both), 30_000_000);
    }

    #[test]
    fn flash_latency_and_bandwidth_overlap_at_depth() {
        let disk = Flash {
            read_latency_ns: 1_000_000,
            channels: Some(8),
            read_bytes_per_s: Some(100_000_000),
            ..Flash::default()
        };
        let alone_ns = total_ns(&mut disk.start(), 1, &[read(0, 100_000); 10]);
        assert_eq!(alone_ns, 20_000_000);
        let deep_ns = total_ns(&mut disk.start(), 8, &[read(0, 100_000); 1000]);
        assert_eq!(deep_ns, 1_000_000 + SECOND_NS);
    }

    #[test]
    fn flash_longer_latency_hides_iops_limit() {
        let mut disk = Flash {
            read_latency_ns: 500_000,
            iops: Some(3000),
            ..Flash::default()
        }
        .start();
        assert_eq!(total_ns(&mut disk, 1, &[read(0, 4096); 2000]), SECOND_NS);
    }

    #[test]
    fn flash_flushes_bypass_iops_limit() {
        let mut disk = Flash {
            flush_latency_ns: 10,
            iops: Some(1),
            ..Flash::default()
        }
        .start();
        assert_eq!(total_ns(&mut disk, 1, &[FLUSH; 5]), 50);
    }

    #[test]
    fn flash_extra_time_occupies_channel() {
        let mut disk = Flash {
            channels: Some(1),
            ..Flash::default()
        }
        .start();
        for ticket in 0..2 {
            disk.submit(DiskRequest {
                extra_ns: 7,
                ..arrival(ticket, 0)
            });
        }
        for (at_ns, ticket) in [(7, 0), (14, 1)] {
            let done = Some(DiskCompletion { at_ns, ticket });
            assert_eq!(disk.take_done(14), done);
        }
    }
}
