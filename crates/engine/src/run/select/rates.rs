//! Compares the rates of io_uring and Linux AIO by short runs, on a target where either may be the
//! faster one.

use crate::io::aio::AioBackend;
use crate::io::buffers::Buffers;
use crate::io::uring::UringBackend;
use crate::io::{Backend, Extent, SubmitPolicy};
use crate::run::calibrate::run_shortly;
use crate::run::first_request::EarlyErrors;
use diskproof_model::plan::{CachePolicy, Workload};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Linux AIO must be this much faster to replace io_uring. Chosen, not measured: runs this short
/// differ by some percent.
const AIO_GAIN_MIN: f64 = 1.1;
/// Number of short runs of each engine, in turn; the best counts. Other load on the machine only
/// slows a run down. Chosen, not measured.
const ROUNDS: u32 = 3;

/// Handing a request to a worker thread takes a few microseconds. On a disk with a lower rate than
/// this, saving them gains nothing, and each run waits for a whole queue of slow requests.
const COMPARED_RATE_MIN: f64 = 20_000.0;

/// The rates of both I/O engines, in requests per second.
#[derive(Debug, Clone, Copy, PartialEq)]
struct EngineRates {
    uring: f64,
    aio: f64,
}

/// An engine that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compared {
    Uring,
    Aio,
}

/// The best rates of both I/O engines, which are tried in turn, io_uring first; `None` where one
/// fails, or where the disk is so slow that they do not differ.
fn best_rates(mut rate_of: impl FnMut(Compared) -> Option<f64>) -> Option<EngineRates> {
    let mut best = EngineRates {
        uring: 0.0,
        aio: 0.0,
    };
    for _ in 0..ROUNDS {
        best.uring = best.uring.max(rate_of(Compared::Uring)?);
        if best.uring < COMPARED_RATE_MIN {
            return None;
        }
        best.aio = best.aio.max(rate_of(Compared::Aio)?);
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
    /// where it wins. Errors of the disk are added to `errors`.
    pub(super) fn reason_for_aio(&self, errors: &mut EarlyErrors) -> Option<String> {
        let EngineRates { uring, aio } = best_rates(|engine| self.rate_of(engine, errors))?;
        if aio <= uring * AIO_GAIN_MIN {
            return None;
        }
        Some(format!(
            "io_uring passes every request to a worker thread here (no RWF_NOWAIT): {uring:.0} \
             reads/s in a trial, {aio:.0} with Linux AIO"
        ))
    }

    /// The requests per second with an engine; `None` where it fails.
    fn rate_of(&self, engine: Compared, errors: &mut EarlyErrors) -> Option<f64> {
        let fd = self.fd.try_clone_to_owned().ok()?;
        let buffers = self.buffers()?;
        let batched = SubmitPolicy::Batched;
        match engine {
            Compared::Uring => {
                let uring = UringBackend::new(fd, buffers, self.depth, self.cache, batched);
                self.rate_on(uring.ok()?, errors)
            }
            Compared::Aio => {
                let submission = batched.in_aio(self.cache);
                let aio = AioBackend::new(fd, buffers, self.depth, submission);
                self.rate_on(aio.ok()?, errors)
            }
        }
    }

    fn rate_on(&self, backend: impl Backend, errors: &mut EarlyErrors) -> Option<f64> {
        let run = run_shortly(backend, &self.reads, Extent::new(0, self.usable_bytes));
        self.answered.store(true, Ordering::Relaxed);
        let run = run?;
        errors.add_reads(&run.errors);
        Some(run.rate)
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
        let slow = best_rates(|engine| {
            runs.push(engine);
            Some(150.0)
        });
        assert_eq!((slow, runs), (None, vec![Compared::Uring]));
        let mut uring = [5e5, 7e5, 6e5].into_iter();
        let mut aio = [9e5, 1e5, 8e5].into_iter();
        let best = best_rates(|engine| match engine {
            Compared::Uring => uring.next(),
            Compared::Aio => aio.next(),
        });
        let rates = EngineRates {
            uring: 7e5,
            aio: 9e5,
        };
        assert_eq!(best, Some(rates));
        let failed = best_rates(|engine| match engine {
            Compared::Uring => Some(1e6),
            Compared::Aio => None,
        });
        assert_eq!(failed, None);
    }
}
