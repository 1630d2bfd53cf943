//! Compares the rates of io_uring and Linux AIO by short runs, on a target where either may be the
//! faster one.

use crate::io::aio::AioBackend;
use crate::io::buffers::Buffers;
use crate::io::uring::UringBackend;
use crate::io::{Backend, Extent, SubmitPolicy};
use crate::run::calibrate::measure_rate;
use diskproof_model::plan::{CachePolicy, Workload};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Linux AIO must be this much faster to replace io_uring.
const AIO_GAIN_MIN: f64 = 1.1;
/// Number of short runs of each engine, in turn; the best counts. Other load on the machine only
/// slows a run down.
const ROUNDS: u32 = 3;

/// Handing a request to a worker thread takes a few microseconds. On a disk with a lower rate than
/// this, saving them gains nothing, and each run waits for a whole queue of slow requests.
const COMPARED_RATE_MIN: f64 = 20_000.0;

/// Rates of two I/O engines, in requests per second.
#[derive(Debug, Clone, Copy, PartialEq)]
struct EngineRates {
    first: f64,
    second: f64,
}

/// The best rates of two I/O engines tried in turn; `None` where one fails, or where the disk is
/// too slow to tell them apart.
fn best_of_each(
    mut first: impl FnMut() -> Option<f64>,
    mut second: impl FnMut() -> Option<f64>,
) -> Option<EngineRates> {
    let mut best = EngineRates {
        first: 0.0,
        second: 0.0,
    };
    for _ in 0..ROUNDS {
        best.first = best.first.max(first()?);
        if best.first < COMPARED_RATE_MIN {
            return None;
        }
        best.second = best.second.max(second()?);
    }
    Some(best)
}

/// The random reads by which the I/O engines are compared, for a few milliseconds each time.
pub(super) struct RateComparison<'a> {
    pub reads: Workload,
    pub depth: u32,
    pub block_bytes: u32,
    pub cache: CachePolicy,
    pub usable_bytes: u64,
    pub fd: BorrowedFd<'a>,
    /// Set after each short run.
    pub answered: &'a AtomicBool,
}

impl RateComparison<'_> {
    /// Compares both interfaces where io_uring hands every request to a worker thread: Linux AIO
    /// may be faster (a device that completes in the submission) or far slower (a filesystem that
    /// blocks in it). Both run a few milliseconds of random reads. Returns the reason to use AIO
    /// where it wins.
    pub(super) fn reason_for_aio(&self) -> Option<String> {
        let EngineRates {
            first: uring,
            second: aio,
        } = best_of_each(|| self.uring_rate(), || self.aio_rate())?;
        if aio <= uring * AIO_GAIN_MIN {
            return None;
        }
        Some(format!(
            "io_uring passes every request to a worker thread here (no RWF_NOWAIT): {uring:.0} \
             reads/s in a trial, {aio:.0} with Linux AIO"
        ))
    }

    /// The requests per second with io_uring; `None` where it fails.
    fn uring_rate(&self) -> Option<f64> {
        let batched = SubmitPolicy::Batched;
        let fd = self.fd.try_clone_to_owned().ok()?;
        let buffers = self.buffers()?;
        let backend = UringBackend::new(fd, buffers, self.depth, self.cache, batched).ok()?;
        self.rate(backend)
    }

    /// The requests per second with Linux AIO; `None` where it fails.
    fn aio_rate(&self) -> Option<f64> {
        let fd = self.fd.try_clone_to_owned().ok()?;
        let buffers = self.buffers()?;
        let backend = AioBackend::new(fd, buffers, self.depth, SubmitPolicy::Batched).ok()?;
        self.rate(backend)
    }

    fn rate(&self, backend: impl Backend) -> Option<f64> {
        let rate = measure_rate(backend, &self.reads, Extent::new(0, self.usable_bytes));
        self.answered.store(true, Ordering::Relaxed);
        rate
    }

    fn buffers(&self) -> Option<Buffers> {
        Buffers::new(self.depth as usize, self.block_bytes as usize).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_slow_disk_are_measured_once_and_of_fast_disk_in_turn() {
        let mut runs = Vec::new();
        let mut uring = || {
            runs.push('u');
            Some(150.0)
        };
        let slow = best_of_each(&mut uring, || unreachable!("the disk is slow"));
        assert_eq!((slow, runs.len()), (None, 1));
        let (mut uring, mut aio) = ([5e5, 7e5, 6e5].into_iter(), [9e5, 1e5, 8e5].into_iter());
        let best = best_of_each(|| uring.next(), || aio.next());
        let rates = EngineRates {
            first: 7e5,
            second: 9e5,
        };
        assert_eq!(best, Some(rates));
        assert_eq!(best_of_each(|| Some(1e6), || None), None);
    }
}
