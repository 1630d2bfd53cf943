//! What a survey knows of its target, and what it has measured so far, shared by the thread that
//! surveys and the one that watches: nothing is lost when the user or the disk ends it.

use super::scan_log::ScanLog;
use crate::io::Extent;
use crate::lock::lock;
use crate::measure::usage;
use diskproof_model::measurement::{CpuTime, Hang, Interruption, OpKind};
use diskproof_model::plan::{CachePolicy, EngineKind};
use diskproof_model::surface::{AccessPoint, Burst, CurvePoint};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Alignment of samples and blocks: the unit of most media, and a multiple of every sector.
pub(crate) const UNIT_BYTES: u64 = 4096;
/// Sector size of files, and where the target does not report one.
pub(crate) const SECTOR_BYTES: u32 = 512;

/// What a survey knows of its target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SurveyTarget {
    /// The span.
    pub extent: Extent,
    /// Requests in flight during the curve.
    pub depth: u32,
    /// The I/O engine of curve and burst.
    pub stream: EngineKind,
    /// The I/O engine for one request at a time.
    pub read_one: EngineKind,
    /// What lengths must be multiples of.
    pub alignment_bytes: u64,
    /// The smallest part that can be unreadable alone.
    pub sector_bytes: u64,
    /// Unit of logical block addresses.
    pub lba_bytes: u64,
    /// How the page cache is treated.
    pub cache: CachePolicy,
    /// Read or write.
    pub operation: OpKind,
    /// Seed of every random choice.
    pub seed: u64,
}

impl SurveyTarget {
    /// A length that the target takes: rounded up to its unit, and no longer than the span.
    pub(crate) fn rounded_request_bytes(&self, bytes: u64) -> u64 {
        bytes
            .max(1)
            .next_multiple_of(self.alignment_bytes)
            .min(self.extent.length / self.alignment_bytes * self.alignment_bytes)
    }

    /// The aligned offset at or before `offset`.
    pub(crate) fn aligned(&self, offset: u64) -> u64 {
        let unit = UNIT_BYTES.max(self.alignment_bytes);
        offset / unit * unit
    }
}

/// Results so far.
#[derive(Debug, Default)]
pub(crate) struct SurveyResults {
    /// Name of the step that is under way.
    pub step: &'static str,
    /// Transfer rate by position.
    pub curve: Vec<CurvePoint>,
    /// When the curve began, and the CPU time of the process then.
    pub curve_start: (u64, CpuTime),
    /// Duration of the curve.
    pub curve_ns: u64,
    /// CPU time of this program during the curve.
    pub curve_cpu: CpuTime,
    /// The same bytes repeatedly.
    pub burst: Option<Burst>,
    /// Accesses, in order.
    pub access: Vec<AccessPoint>,
    /// Accesses that failed, by errno name.
    pub access_errors: BTreeMap<String, u64>,
    /// Every block.
    pub scan: Option<ScanLog>,
    /// How long the thread that surveys was ready and got no processor, up to the end of the last
    /// step, in nanoseconds.
    pub starved_ns: u64,
    /// Pauses of the stream; their starts on the clock.
    pub stalls: Vec<Hang>,
    /// When the process did not run; the starts on CLOCK_MONOTONIC.
    pub interruptions: Vec<Interruption>,
}

/// Shared by the thread that surveys and the one that watches.
#[derive(Debug, Default)]
pub(crate) struct SurveyLog {
    seen: Mutex<SurveyResults>,
    stop: AtomicBool,
    bytes: AtomicU64,
    ops: AtomicU64,
    done_ppm: AtomicU64,
}

impl SurveyLog {
    /// The results; locked for a moment, between requests.
    pub(crate) fn seen(&self) -> MutexGuard<'_, SurveyResults> {
        lock(&self.seen)
    }

    /// Begins a step.
    pub(crate) fn begin(&self, step: &'static str) {
        self.seen().step = step;
        self.done(0.0);
    }

    /// The curve begins now.
    pub(crate) fn begin_curve(&self, now_ns: u64) {
        self.seen().curve_start = (now_ns, usage::process());
    }

    /// A point of the curve is finished.
    pub(crate) fn add_curve_point(&self, now_ns: u64, point: CurvePoint, share: f64) {
        self.seen().curve.push(point);
        self.report_curve(now_ns, share);
    }

    /// Reports the progress of the curve.
    pub(crate) fn report_curve(&self, now_ns: u64, share: f64) {
        let mut seen = self.seen();
        let (start_ns, cpu) = seen.curve_start;
        seen.curve_ns = now_ns.saturating_sub(start_ns);
        seen.curve_cpu = usage::process_since(cpu);
        drop(seen);
        self.done(share);
    }

    /// How much of the step is done, 0 to 1.
    pub(crate) fn done(&self, share: f64) {
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

    /// Whether it must end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
