//! The depth at which a workload may run: on a target whose first small request is slow, a full
//! queue of large blocks would not be answered before the run ends. Knows no I/O engine.

use crate::io::Extent;
use crate::io::buffers::Buffers;
use crate::io::clock::{Clock as _, MonotonicClock};
use crate::random::Random;
use crate::run::limits::largest_block;
use crate::run::prepare::extent_of;
use crate::run::session::LAYOUT_UNIT_BYTES;
use diskproof_device::OpenTarget;
use diskproof_model::plan::Workload;
use rustix::io::{pread, pwrite};

/// The most that the first request moves.
pub(crate) const FIRST_BYTES: u32 = 64 << 10;
/// A target is slow if two small requests in a row take longer: a seek, half a turn and a short
/// queue of others take less, and a disk that slept is awake for the second one.
const SLOW_NS: u64 = 50_000_000;
/// What is in flight should be answered within this share of the measured time.
const DRAIN_SHARE: u64 = 10;
/// But may take at least, and at most, this long.
const DRAIN_NS: (u64, u64) = (1_000_000_000, 4_000_000_000);

/// Requests that each worker keeps in flight on a slow target; `None` where the depth of the
/// workload is right. Costs one small request.
pub(crate) fn depth_if_slow(workload: &Workload, target: &OpenTarget) -> Option<u32> {
    if workload.depth == 1 {
        return None;
    }
    let mut first = FirstRequest::new(workload, target)?;
    let ns = first.send().filter(|ns| *ns > SLOW_NS)?;
    let ns = first.send().map_or(ns, |second| ns.min(second));
    reduced_depth(workload, u64::from(first.bytes), ns)
}

/// The depth of a workload on a target where a request of `bytes` takes `ns`.
fn reduced_depth(workload: &Workload, bytes: u64, ns: u64) -> Option<u32> {
    if ns <= SLOW_NS {
        return None;
    }
    let block_ns = ns.saturating_mul(u64::from(largest_block(workload)).div_ceil(bytes));
    let time_ns = workload.stop.time_ns.unwrap_or(u64::MAX);
    let drain_ns = (time_ns / DRAIN_SHARE).clamp(DRAIN_NS.0, DRAIN_NS.1);
    let most = drain_ns / block_ns.saturating_mul(u64::from(workload.workers));
    (most < u64::from(workload.depth)).then_some(most.max(1) as u32)
}

/// A small request outside of any measurement.
struct FirstRequest<'a> {
    target: &'a OpenTarget,
    buffers: Buffers,
    bytes: u32,
    /// What it reads from; `None` where a new scratch file has nothing to read.
    extent: Option<Extent>,
    random: Random,
}

impl<'a> FirstRequest<'a> {
    fn new(workload: &Workload, target: &'a OpenTarget) -> Option<Self> {
        let bytes = largest_block(workload).min(FIRST_BYTES.max(target.alignment_bytes()));
        let extent = extent_of(workload, target.usable_bytes());
        let is_readable = extent.length >= u64::from(bytes);
        if !is_readable && !target.is_scratch() {
            return None;
        }
        let mut random = Random::new(MonotonicClock.now(), 0);
        let mut buffers = Buffers::new(1, bytes as usize).ok()?;
        buffers.fill_random(&mut random);
        Some(Self {
            target,
            buffers,
            bytes,
            extent: is_readable.then_some(extent),
            random,
        })
    }

    /// How long it takes; `None` where it fails. A cache would answer the same place twice.
    fn send(&mut self) -> Option<u64> {
        let (bytes, fd) = (u64::from(self.bytes), self.target.fd());
        let memory = self.buffers.bytes_mut(0, self.bytes as usize);
        let start_ns = MonotonicClock.now();
        let moved = match self.extent {
            Some(Extent { start, length }) => {
                let place = self.random.below(length / bytes) * bytes;
                pread(fd, memory, start + place)
            }
            // The layout writes the same place again.
            None => {
                let end = self.target.usable_bytes() / LAYOUT_UNIT_BYTES * LAYOUT_UNIT_BYTES;
                pwrite(fd, memory, end)
            }
        };
        moved.ok().map(|_| MonotonicClock.now() - start_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::plan::Stop;

    #[test]
    fn depth_is_reduced_only_where_queue_would_outlast_run() {
        let depth = |block_bytes, time_s: u64, bytes, ms: u64| {
            let workload = Workload {
                block_bytes,
                depth: 32,
                stop: Stop {
                    time_ns: Some(time_s * 1_000_000_000),
                    ..Stop::default()
                },
                ..Workload::named("reads")
            };
            reduced_depth(&workload, bytes, ms * 1_000_000)
        };
        // A rotating disk; a volume of 100 IOPS.
        assert_eq!(depth(1 << 20, 5, 65_536, 20), None);
        // 300 kB/s: large blocks, and pages, 32 of which take less than a second.
        assert_eq!(depth(1 << 20, 5, 65_536, 218), Some(1));
        assert_eq!(depth(8192, 5, 8192, 27), None);
        // One operation a second; a long run.
        assert_eq!(depth(8192, 5, 8192, 1000), Some(1));
        assert_eq!(depth(8192, 600, 8192, 1000), Some(4));
        assert_eq!(depth(8192, 600, 8192, 100), None);
        assert_eq!(depth(4096, 5, 4096, 20_000), Some(1));
    }
}
