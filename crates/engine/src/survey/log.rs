//! Keeps the results of a survey so far, for the thread that surveys and the one that watches:
//! nothing is lost when the user or the disk ends it.

use super::scan_log::ScanLog;
use crate::io::errno_name;
use crate::lock::lock;
use crate::measure::usage;
use diskproof_model::measurement::{CpuTime, Hang, Interruption, ZeroSample};
use diskproof_model::surface::{AccessPoint, Burst, CurvePoint};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Results so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct SurveyResults {
    /// Name of the step that is under way.
    pub step: &'static str,
    /// Transfer rate by position.
    pub curve: Vec<CurvePoint>,
    /// The beginning of the curve.
    pub curve_start: CurveStart,
    /// Duration of the curve.
    pub curve_ns: u64,
    /// CPU time of this program during the curve.
    pub curve_cpu: CpuTime,
    /// The rate of reading the same bytes repeatedly.
    pub burst: Option<Burst>,
    /// Accesses, in the order in which they were made.
    pub access: Vec<AccessPoint>,
    /// Requests that failed, by errno name, those of the points of the curve included. Without
    /// those of which the scan keeps the ranges.
    pub errors: BTreeMap<String, u64>,
    /// The scan of every block.
    pub scan: Option<ScanLog>,
    /// A look at the content of blocks that were read, up to the end of the last step.
    pub zero_blocks: ZeroSample,
    /// The time, in nanoseconds, in which the thread that surveys was ready and got no processor,
    /// up to the end of the last step.
    pub starved_ns: u64,
    /// Pauses of the stream; their starts on the clock.
    pub stalls: Vec<Hang>,
    /// The times in which the process did not run; their starts are on CLOCK_MONOTONIC.
    pub interruptions: Vec<Interruption>,
}

impl SurveyResults {
    /// The errors that are in no point of the curve.
    pub(crate) fn errors_elsewhere(&self) -> BTreeMap<String, u64> {
        let mut errors = self.errors.clone();
        for (errno, count) in self.curve.iter().flat_map(|point| &point.errnos) {
            if let Some(left) = errors.get_mut(errno) {
                *left = left.saturating_sub(*count);
            }
        }
        errors.retain(|_, count| *count > 0);
        errors
    }
}

/// When a curve began, and the CPU time of the process then.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CurveStart {
    pub ns: u64,
    pub cpu: CpuTime,
}

/// Results and progress of a survey under way.
#[derive(Debug, Default)]
pub(crate) struct SurveyLog {
    results: Mutex<SurveyResults>,
    stop: AtomicBool,
    bytes: AtomicU64,
    ops: AtomicU64,
    /// The share of the step that is done, in millionths.
    done_ppm: AtomicU64,
}

impl SurveyLog {
    /// The results; locked for a moment, between requests.
    pub(crate) fn results(&self) -> MutexGuard<'_, SurveyResults> {
        lock(&self.results)
    }

    /// Names the step that begins now.
    pub(crate) fn begin_step(&self, step: &'static str) {
        self.results().step = step;
        self.report_share(0.0);
    }

    /// Keeps the time and the CPU time from which the curve counts.
    pub(crate) fn begin_curve(&self, now_ns: u64) {
        self.results().curve_start = CurveStart {
            ns: now_ns,
            cpu: usage::process(),
        };
    }

    /// Adds a finished point of the curve, of which this share is done.
    pub(crate) fn add_curve_point(&self, now_ns: u64, point: CurvePoint, share: f64) {
        self.results().curve.push(point);
        self.report_curve(now_ns, share);
    }

    /// Reports that this share of the curve is done.
    pub(crate) fn report_curve(&self, now_ns: u64, share: f64) {
        let mut results = self.results();
        let start = results.curve_start;
        results.curve_ns = now_ns.saturating_sub(start.ns);
        results.curve_cpu = usage::process_since(start.cpu);
        drop(results);
        self.report_share(share);
    }

    /// Reports that this share of the step is done, 0 to 1.
    pub(crate) fn report_share(&self, share: f64) {
        self.done_ppm
            .store((share.clamp(0.0, 1.0) * 1e6) as u64, Ordering::Relaxed);
    }

    /// The share that was reported last.
    pub(crate) fn step_share(&self) -> f64 {
        self.done_ppm.load(Ordering::Relaxed) as f64 / 1e6
    }

    /// Counts a request that is done, and the bytes that it moved.
    pub(crate) fn count(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.ops.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that failed.
    pub(crate) fn count_error(&self, errno: i32) {
        let errno = errno_name(errno);
        *self.results().errors.entry(errno).or_default() += 1;
    }

    /// Bytes moved so far, positioning included.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Requests done so far.
    pub(crate) fn ops(&self) -> u64 {
        self.ops.load(Ordering::Relaxed)
    }

    /// Ends the survey after what is in flight.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// True once the survey must end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
