//! Takes one sample of the curve. Each sample is the end of a stream: some requests before it bring
//! the heads there and fill the queue, untimed. From then on the time between two completions
//! belongs to the later one, so that the rate contains neither the seek nor the filling of the
//! queue. Untimed requests behind it keep the queue full until its last request has completed: a
//! disk or a link that works on all requests in flight at once has half of the last ones done when
//! the queue begins to drain, which makes the end of a stream too fast.

use super::queue::{BlockCompletion, FlushCompletion, RequestQueue, add_flush, block_at};
use crate::io::clock::Clock;
use crate::io::{Backend, Extent, errno_name};
use crate::measure::sampler::SampleRequest;
use diskproof_model::measurement::OpKind;
use diskproof_model::surface::CurvePoint;
use std::cell::Cell;
use std::io;

/// Requests in flight: enough for the channels of an SSD and the members of an array, and to keep
/// any disk busy.
pub(crate) const STREAM_DEPTH: u32 = 8;
/// The largest request: the kernel splits larger ones for most disks.
pub(crate) const STREAM_REQUEST_MAX: u32 = 1 << 20;
/// Marks requests whose time does not count.
pub(crate) const LEAD: u32 = u32::MAX;

/// The sizes of the requests and samples of a curve on one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CurveSizing {
    /// Bytes per request.
    pub request_bytes: u32,
    /// Untimed bytes before a sample: as many as are in flight at once.
    pub lead_bytes: u64,
    /// Untimed bytes behind a sample. None of a write, whose flush waits for everything.
    pub tail_bytes: u64,
    /// The number of points of the curve.
    pub points: u64,
    /// Timed bytes at each point; `None`: everything up to the next point.
    pub sample_bytes: Option<u64>,
}

/// A place of the curve.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SamplePlace {
    /// The timed part of the target.
    pub extent: Extent,
    /// Bytes that the survey had moved when it was last read.
    pub moved_bytes: u64,
}

/// A measured curve, for further readings of its points.
#[derive(Debug)]
pub(crate) struct MeasuredCurve {
    /// The sizes of its requests and samples.
    pub sizing: CurveSizing,
    /// About the rate of the target, in bytes per second.
    pub rate: f64,
    /// The places of the points in the log.
    pub places: Vec<SamplePlace>,
    /// Bytes read elsewhere between readings of a place, so that the disk's cache loses it.
    pub elsewhere_bytes: u64,
}

/// The timed requests at a point so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct SampleSum {
    /// The sums, as a point of the curve; place, rate and error follow at the end.
    so_far: CurvePoint,
    /// True if the process did not run meanwhile, so that the figures are meaningless.
    pub interrupted: bool,
    /// Bytes of a part.
    part_bytes: u64,
    /// The part under way.
    part: TimedPart,
    /// The times per byte of the parts that are complete.
    parts: PartTimes,
}

/// Bytes, and the time that they took.
#[derive(Debug, Clone, Copy, Default)]
struct TimedPart {
    bytes: u64,
    ns: u64,
}

/// The number of parts, and the sums of their times per byte and of the squares.
#[derive(Debug, Clone, Copy, Default)]
struct PartTimes {
    count: u32,
    sum: f64,
    squares: f64,
}

impl PartTimes {
    fn add(&mut self, part: TimedPart) {
        let ns_per_byte = part.ns as f64 / part.bytes as f64;
        self.count += 1;
        self.sum += ns_per_byte;
        self.squares += ns_per_byte * ns_per_byte;
    }

    /// The standard error of the mean time per byte, as a share; to first order that of the rate.
    fn standard_error(self) -> Option<f64> {
        if self.count < PARTS_MIN || self.sum <= 0.0 {
            return None;
        }
        let count = f64::from(self.count);
        let mean = self.sum / count;
        let variance = ((self.squares - self.sum * self.sum / count) / (count - 1.0)).max(0.0);
        let error = (variance / count).sqrt() / mean;
        Some((error * ERROR_STEPS).round() / ERROR_STEPS)
    }
}

/// A sample of fewer parts has no standard error: their spread would be meaningless. Chosen, not
/// measured.
const PARTS_MIN: u32 = 4;

/// A standard error has six decimal places: they are plenty, and a record holds many points.
const ERROR_STEPS: f64 = 1e6;

impl SampleSum {
    /// An empty sum. The bytes in flight at once make a part.
    pub(crate) fn new(sizing: CurveSizing) -> Self {
        Self {
            part_bytes: sizing.lead_bytes,
            ..Self::default()
        }
    }

    /// Adds a timed request. A failed one counts in neither bytes nor time: a disk may retry for
    /// seconds.
    pub(crate) fn add(&mut self, completion: &BlockCompletion) {
        self.interrupted |= completion.interrupted;
        let so_far = &mut self.so_far;
        let bytes = u64::from(completion.request.len);
        so_far.latency_max_ns = so_far.latency_max_ns.max(completion.latency_ns);
        if completion.errno != 0 {
            so_far.errors += 1;
            let errno = errno_name(completion.errno);
            *so_far.errnos.entry(errno).or_default() += 1;
            return;
        }
        so_far.bytes += bytes;
        so_far.busy_ns += completion.share_ns;
        self.part.bytes += bytes;
        self.part.ns += completion.share_ns;
        if self.part.bytes >= self.part_bytes {
            self.parts.add(self.part);
            self.part = TimedPart::default();
        }
    }

    /// Adds the flush that ends the sample.
    fn add_flush(&mut self, flushed: &FlushCompletion) {
        self.interrupted |= flushed.interrupted;
        add_flush(&mut self.so_far, flushed);
    }

    /// The finished point.
    pub(crate) fn point(self, offset_bytes: u64) -> CurvePoint {
        let standard_error = self.parts.standard_error();
        let CurvePoint { bytes, busy_ns, .. } = self.so_far;
        let timed = CurvePoint::read_once(offset_bytes, bytes, busy_ns);
        CurvePoint {
            offset_bytes,
            bytes_per_second: timed.bytes_per_second,
            standard_error,
            ..self.so_far
        }
    }
}

/// The end of a sample.
pub(crate) enum Sample {
    /// The sample is complete: its point.
    Done(CurvePoint),
    /// The process did not run meanwhile.
    Interrupted,
    /// The survey was stopped before it was done.
    Stopped,
}

impl<B: Backend, C: Clock> RequestQueue<'_, B, C> {
    /// Takes a sample of this place.
    pub(crate) fn sample(&mut self, sizing: CurveSizing, place: Extent) -> io::Result<Sample> {
        let (target, log) = (self.target, self.log);
        self.drop_if_buffered();
        let mut sum = SampleSum::new(sizing);
        let starved_ns = self.sampler.starved_ns();
        let (start, until) = (place.start, place.end());
        let from = start
            .saturating_sub(sizing.lead_bytes)
            .max(target.extent.start);
        if target.operation == OpKind::Write {
            // From one flushed state to the next. Otherwise this would measure the disk's write
            // cache.
            let lead = Extent::new(from, start - from);
            self.stream(sizing, lead, Extent::new(start, 0), &mut sum)?;
            if let Some(flushed) = self.flush()? {
                sum.interrupted |= flushed.interrupted;
            }
            self.stream(sizing, place, place, &mut sum)?;
            if let Some(flushed) = self.flush()? {
                sum.add_flush(&flushed);
            }
        } else {
            let tail_until = (until + sizing.tail_bytes).min(target.extent.end());
            let moved = Extent::new(from, tail_until - from);
            self.stream(sizing, moved, place, &mut sum)?;
        }
        sum.so_far.late_ns = self.sampler.starved_ns().saturating_sub(starved_ns);
        Ok(if log.is_stopped() {
            Sample::Stopped
        } else if sum.interrupted {
            Sample::Interrupted
        } else {
            Sample::Done(sum.point(start))
        })
    }

    /// Moves all of `moved`, and times the part `timed` of it.
    fn stream(
        &mut self,
        sizing: CurveSizing,
        moved: Extent,
        timed: Extent,
        sum: &mut SampleSum,
    ) -> io::Result<()> {
        let log = self.log;
        let (timed_from, until) = (timed.start, timed.end());
        let tail_until = moved.end();
        let mut next = moved.start;
        // Once all timed requests have completed, the tail has done its work.
        let left_bytes = Cell::new(timed.length);
        self.run(
            || {
                let is_wanted = next < until || (next < tail_until && left_bytes.get() > 0);
                if !is_wanted || log.is_stopped() {
                    return None;
                }
                // No request crosses a border of the sample.
                let (border, tag) = if next < timed_from {
                    (timed_from, LEAD)
                } else if next < until {
                    (until, 0)
                } else {
                    (tail_until, LEAD)
                };
                let bytes = u64::from(sizing.request_bytes).min(border - next);
                let request = SampleRequest {
                    tag,
                    ..block_at(next, bytes)
                };
                next += u64::from(request.len);
                Some(request)
            },
            |completion| {
                if completion.request.tag != LEAD {
                    left_bytes.set(left_bytes.get() - u64::from(completion.request.len));
                    sum.add(completion);
                }
            },
        )
    }
}
