//! The first request to a target: small, timed, outside of any measurement. Where it is slow, a
//! full queue of large blocks would not be answered before the run ends. Knows no I/O engine.

use crate::io::Extent;
use crate::io::buffers::{ALIGNMENT_BYTES, Buffers};
use crate::io::clock::{Clock as _, MonotonicClock};
use crate::random::Random;
use crate::run::error::{RunError, worker_error};
use crate::run::limits::{extent_of, largest_block};
use crate::run::watchdog::{Sign, StallTimeout, Waited, call_with_timeout};
use diskproof_device::OpenTarget;
use diskproof_model::measurement::SERIES_INTERVAL_NS;
use diskproof_model::plan::{EngineChoice, EngineKind, Layout, Workload};
use diskproof_model::progress::{Control, Phase, Progress, Watch};
use diskproof_model::series::TimeSeries;
use rustix::io::{pread, pwrite};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most that the first request moves.
pub(crate) const FIRST_BYTES: u32 = 64 << 10;
/// A target is slow if two small requests in a row take longer: a seek, half a turn and a short
/// queue of others take less, and a disk that slept is awake for the second one.
const SLOW_NS: u64 = 50_000_000;
/// Waking up takes a disk less than this.
const WAKE_UP_NS: u64 = 15_000_000_000;
/// What is in flight should be answered within this share of the measured time.
const DRAIN_SHARE: u64 = 10;
/// But may take at least, and at most, this long.
const DRAIN_NS: (u64, u64) = (1_000_000_000, 4_000_000_000);

/// How slow a target is, if it is: before a workload with a queue, and before the trials of I/O
/// engines. Costs one small request.
pub(crate) fn find_slow(
    workload: &Workload,
    target: &OpenTarget,
    stall_timeout: StallTimeout,
    watch: &mut dyn Watch,
) -> Result<Option<SlowTarget>, RunError> {
    let is_ring = matches!(
        workload.engine,
        EngineChoice::Fixed(EngineKind::Uring | EngineKind::Aio)
    );
    let Some(mut first) = FirstRequest::new(workload, target).filter(|_| {
        let is_real = workload.engine != EngineChoice::Fixed(EngineKind::Null);
        is_real && (workload.depth > 1 || is_ring)
    }) else {
        return Ok(None);
    };
    let bytes = u64::from(first.bytes);
    let begin_ns = MonotonicClock.now();
    let answered = Arc::new(AtomicBool::new(false));
    let answer = Arc::clone(&answered);
    let work = move |fd: OwnedFd| first.time(&fd, &answer);
    let mut is_unwanted = false;
    let look = |_| {
        let progress = Progress {
            name: &workload.name,
            phase: Phase::Measure,
            elapsed_ns: MonotonicClock.now() - begin_ns,
            done: Some(0.0),
            series: &TimeSeries::new(SERIES_INTERVAL_NS),
            silence: None,
            resume_bytes: None,
        };
        match watch.tick(&progress) {
            Control::Interrupt => {
                is_unwanted = true;
                Sign::Unwanted
            }
            _ if answered.swap(false, Ordering::Relaxed) => Sign::Progress,
            _ => Sign::Silence,
        }
    };
    let waited = call_with_timeout(target.fd(), stall_timeout.ns(), look, work);
    let (path, workload_name) = (&target.identity().path, &workload.name);
    match waited.map_err(|source| worker_error(workload, target, source))? {
        Waited::Done(ns) => {
            let slow = |ns: &u64| *ns > SLOW_NS;
            Ok(ns.filter(slow).map(|ns| SlowTarget { bytes, ns }))
        }
        Waited::TimedOut(lasted) => {
            target.leave_open();
            Err(match is_unwanted {
                false => RunError::Stalled {
                    path: path.clone(),
                    workload: workload_name.clone(),
                    seconds: lasted.as_secs(),
                },
                true => RunError::Interrupted {
                    workload: workload_name.clone(),
                },
            })
        }
        Waited::Lost => Err(RunError::Lost {
            workload: workload_name.clone(),
        }),
    }
}

/// A target where a request of `bytes` takes `ns`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlowTarget {
    bytes: u64,
    ns: u64,
}

impl SlowTarget {
    /// Requests that each worker of a workload keeps in flight; `None` where its depth is right. A
    /// workload without a limit of time may take as long as its queue does, but for a layout.
    pub(crate) fn depth_of(self, workload: &Workload) -> Option<u32> {
        let blocks = u64::from(largest_block(workload)).div_ceil(self.bytes);
        let all_ns = self.ns * blocks * u64::from(workload.workers);
        let (least_ns, most_ns) = DRAIN_NS;
        let time_ns = match workload.layout {
            Layout::Provides => Some(workload.stop.time_ns.unwrap_or(0)),
            _ => workload.stop.time_ns,
        };
        let drain_ns = (time_ns? / DRAIN_SHARE).clamp(least_ns, most_ns);
        let depth = drain_ns / all_ns;
        (depth < u64::from(workload.depth)).then_some(depth.max(1) as u32)
    }
}

/// A small request outside of any measurement.
struct FirstRequest {
    bytes: u32,
    /// What it reads from; empty where a new scratch file has nothing to read.
    extent: Extent,
    random: Random,
}

impl FirstRequest {
    fn new(workload: &Workload, target: &OpenTarget) -> Option<Self> {
        let bytes = largest_block(workload).min(FIRST_BYTES.max(target.alignment_bytes()));
        let mut extent = extent_of(workload, target.usable_bytes());
        if extent.length < u64::from(bytes) {
            // The layout writes this place again.
            extent = Extent {
                start: target.usable_bytes() / ALIGNMENT_BYTES as u64 * ALIGNMENT_BYTES as u64,
                length: 0,
            };
        }
        (extent.length > 0 || target.is_scratch()).then_some(Self {
            bytes,
            extent,
            random: Random::new(MonotonicClock.now(), 0),
        })
    }

    /// How long one takes; `None` where it fails. The first may wake the disk up: then a second
    /// decides.
    fn time(&mut self, fd: &OwnedFd, answered: &AtomicBool) -> Option<u64> {
        let mut buffers = Buffers::new(1, self.bytes as usize).ok()?;
        buffers.fill_random(&mut self.random);
        let memory = buffers.bytes_mut(0, self.bytes as usize);
        let ns = self.send(fd, memory)?;
        answered.store(true, Ordering::Relaxed);
        match ns {
            SLOW_NS..WAKE_UP_NS => self.send(fd, memory).map(|second| ns.min(second)),
            _ => Some(ns),
        }
    }

    /// A cache would answer the same place twice.
    fn send(&mut self, fd: &OwnedFd, memory: &mut [u8]) -> Option<u64> {
        let (bytes, Extent { start, length }) = (u64::from(self.bytes), self.extent);
        let start_ns = MonotonicClock.now();
        let moved = match length {
            0 => pwrite(fd, memory, start),
            _ => pread(
                fd,
                memory,
                start + self.random.below(length / bytes) * bytes,
            ),
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
        let depth = |block_bytes, time_s: Option<u64>, bytes, ms: u64| {
            let workload = Workload {
                block_bytes,
                depth: 32,
                stop: Stop {
                    time_ns: time_s.map(|time_s| time_s * 1_000_000_000),
                    ..Stop::default()
                },
                ..Workload::named("reads")
            };
            let ns = ms * 1_000_000;
            SlowTarget { bytes, ns }.depth_of(&workload)
        };
        let (short, long) = (Some(5), Some(600));
        // 300 kB/s: large blocks, and pages, 32 of which take less than a second.
        assert_eq!(depth(1 << 20, short, 65_536, 218), Some(1));
        assert_eq!(depth(8192, short, 8192, 27), None);
        // One operation a second; a long run; one without end.
        assert_eq!(depth(8192, short, 8192, 1000), Some(1));
        assert_eq!(depth(8192, long, 8192, 1000), Some(4));
        assert_eq!(depth(8192, long, 8192, 100), None);
        assert_eq!(depth(8192, None, 8192, 1000), None);
        assert_eq!(depth(4096, short, 4096, 20_000), Some(1));
    }
}
