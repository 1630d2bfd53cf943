//! One sample of the curve. Each sample is the end of a stream: some
//! requests before it bring the heads there and fill the queue, untimed. From then on the time
//! between two completions belongs to the later one, so that the rate contains neither the seek nor
//! the filling of the queue. Untimed requests behind it keep the queue full until its last request
//! has completed: a disk or a link that works on all requests in flight at once has half of the
//! last ones done when the queue begins to drain, which makes the end of a stream too fast.

use super::queue::{BlockCompletion, RequestQueue, block_at};
use crate::io::clock::Clock;
use crate::io::{Backend, Extent, errno_name};
use crate::measure::sampler::SampleRequest;
use diskproof_model::measurement::OpKind;
use diskproof_model::surface::CurvePoint;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;

/// Requests in flight: enough for the channels of an SSD and the members of an array, and to keep
/// any disk busy.
pub(crate) const STREAM_DEPTH: u32 = 8;
/// The largest request: the kernel splits larger ones for most disks.
pub(crate) const STREAM_REQUEST_MAX: u32 = 1 << 20;
/// Marks requests whose time does not count.
pub(crate) const LEAD: u32 = u32::MAX;

/// How a curve is sampled on one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CurveSizing {
    /// Bytes per request.
    pub request_bytes: u32,
    /// Untimed bytes before a sample: as many as are in flight at once.
    pub lead_bytes: u64,
    /// Untimed bytes behind a sample. None of a write, whose flush waits for everything.
    pub tail_bytes: u64,
    /// Points.
    pub points: u64,
    /// Timed bytes at each point; `None`: everything up to the next point.
    pub sample_bytes: Option<u64>,
}

/// A place of the curve.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SamplePlace {
    /// What is timed.
    pub extent: Extent,
    /// Bytes that the survey had moved when it was last read.
    pub moved_bytes: u64,
}

/// How a curve was measured, for further readings of its points.
#[derive(Debug)]
pub(crate) struct MeasuredCurve {
    /// How it was sampled.
    pub sizing: CurveSizing,
    /// About the rate of the target, in bytes per second.
    pub rate: f64,
    /// The places of the points in the log.
    pub places: Vec<SamplePlace>,
    /// Bytes read elsewhere between readings of a place, so that the disk's cache loses it.
    pub washed_bytes: u64,
}

/// What was timed at a point so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct SampleSum {
    bytes: u64,
    busy_ns: u64,
    latency_max_ns: u64,
    errors: u64,
    late_ns: u64,
    /// The process did not run meanwhile: the figures tell nothing.
    pub interrupted: bool,
    /// Failed requests by errno.
    errnos: BTreeMap<i32, u64>,
    /// Bytes of a part, and what is timed of the part under way.
    part_bytes: u64,
    part: (u64, u64),
    /// Number of parts, and the sums of their times per byte and of the squares.
    parts: (u32, f64, f64),
}

/// Fewer parts of a sample have no meaningful spread.
const PARTS_MIN: u32 = 4;

impl SampleSum {
    /// An empty sum. The bytes in flight at once make a part.
    pub(crate) fn new(sizing: CurveSizing) -> Self {
        Self {
            part_bytes: sizing.lead_bytes,
            ..Self::default()
        }
    }

    /// A failed request counts in neither bytes nor time: a disk may retry for seconds.
    pub(crate) fn add(&mut self, completion: &BlockCompletion) {
        self.interrupted |= completion.interrupted;
        if completion.errno == 0 {
            self.bytes += u64::from(completion.request.len);
            self.busy_ns += completion.share_ns;
            self.part = (
                self.part.0 + u64::from(completion.request.len),
                self.part.1 + completion.share_ns,
            );
            if self.part.0 >= self.part_bytes {
                let ns_per_byte = self.part.1 as f64 / self.part.0 as f64;
                self.parts = (
                    self.parts.0 + 1,
                    self.parts.1 + ns_per_byte,
                    self.parts.2 + ns_per_byte * ns_per_byte,
                );
                self.part = (0, 0);
            }
        } else {
            self.errors += 1;
            *self.errnos.entry(completion.errno).or_default() += 1;
        }
        self.latency_max_ns = self.latency_max_ns.max(completion.latency_ns);
    }

    /// Standard error of the mean time per byte, as a share; to first order that of the rate.
    fn standard_error(&self) -> Option<f64> {
        let (parts, sum, squares) = self.parts;
        let n = f64::from(parts);
        let variance = ((squares - sum * sum / n) / (n - 1.0)).max(0.0);
        // Six digits are plenty, and a record holds many points.
        (parts >= PARTS_MIN && sum > 0.0)
            .then(|| ((variance / n).sqrt() / (sum / n) * 1e6).round() / 1e6)
    }

    /// The finished point.
    pub(crate) fn point(self, offset_bytes: u64) -> CurvePoint {
        let standard_error = self.standard_error();
        let Self {
            bytes,
            busy_ns,
            latency_max_ns,
            errors,
            late_ns,
            errnos,
            ..
        } = self;
        CurvePoint {
            latency_max_ns,
            errors,
            errnos: errnos
                .into_iter()
                .map(|(errno, count)| (errno_name(errno), count))
                .collect(),
            standard_error,
            late_ns,
            ..CurvePoint::read_once(offset_bytes, bytes, busy_ns)
        }
    }
}

/// A part of the target; its second part is timed.
#[derive(Debug, Clone, Copy)]
struct StreamRange {
    from: u64,
    timed_from: u64,
    until: u64,
    /// End of the untimed requests behind.
    tail_until: u64,
}

/// How a sample ended.
pub(crate) enum Sample {
    /// Here is its point.
    Done(CurvePoint),
    /// The process did not run meanwhile.
    Interrupted,
    /// The survey was stopped before it was done.
    Stopped,
}

impl<B: Backend, C: Clock> RequestQueue<'_, B, C> {
    /// One sample.
    pub(crate) fn sample(&mut self, sizing: CurveSizing, place: Extent) -> io::Result<Sample> {
        let (target, log) = (self.target, self.log);
        self.drop_if_buffered();
        let (mut sum, starved_ns) = (SampleSum::new(sizing), self.sampler.starved_ns());
        let (from, start, until) = (
            place
                .start
                .saturating_sub(sizing.lead_bytes)
                .max(target.extent.start),
            place.start,
            place.end(),
        );
        let range = StreamRange {
            from,
            timed_from: start,
            until,
            tail_until: (until + sizing.tail_bytes).min(target.extent.end()),
        };
        if target.operation == OpKind::Write {
            // From one flushed state to the next. Otherwise this would measure the disk's write
            // cache.
            let lead = StreamRange {
                until: start,
                tail_until: start,
                ..range
            };
            self.stream(sizing, lead, &mut sum)?;
            self.flush()?;
            let timed = StreamRange {
                from: start,
                tail_until: until,
                ..range
            };
            self.stream(sizing, timed, &mut sum)?;
            sum.busy_ns += self.flush()?;
        } else {
            self.stream(sizing, range, &mut sum)?;
        }
        sum.late_ns = self.sampler.starved_ns().saturating_sub(starved_ns);
        Ok(if log.is_stopped() {
            Sample::Stopped
        } else if sum.interrupted {
            Sample::Interrupted
        } else {
            Sample::Done(sum.point(start))
        })
    }

    fn stream(
        &mut self,
        sizing: CurveSizing,
        range: StreamRange,
        sum: &mut SampleSum,
    ) -> io::Result<()> {
        let log = self.log;
        let StreamRange {
            from,
            timed_from,
            until,
            tail_until,
        } = range;
        let mut at = from;
        // Once all timed requests have completed, the tail has done its work.
        let left_bytes = Cell::new(until - timed_from);
        let next = || {
            let wanted = at < until || (at < tail_until && left_bytes.get() > 0);
            (wanted && !log.is_stopped()).then(|| {
                // No request crosses a border of the sample.
                let (edge, tag) = match at {
                    _ if at < timed_from => (timed_from, LEAD),
                    _ if at < until => (until, 0),
                    _ => (tail_until, LEAD),
                };
                let bytes = u64::from(sizing.request_bytes).min(edge - at);
                let request = SampleRequest {
                    tag,
                    ..block_at(at, bytes)
                };
                at += u64::from(request.len);
                request
            })
        };
        self.run(next, |completion| {
            if completion.request.tag != LEAD {
                left_bytes.set(left_bytes.get() - u64::from(completion.request.len));
                sum.add(completion);
            }
        })
    }
}
