//! Measures the transfer rate by position: decides how large the samples are and where they lie,
//! and takes each one's rate.
//!
//! Each sample is the end of a stream; see [`super::sample`].

use super::log::SurveyLog;
use super::queue::{BlockCompletion, RequestQueue, add_flush, block_at};
use super::sample::{
    CurveSizing, LEAD, MeasuredCurve, STREAM_DEPTH, STREAM_REQUEST_MAX, Sample, SamplePlace,
    SampleSum,
};
use super::target::{SurveyTarget, UNIT_BYTES};
use crate::io::clock::Clock;
use crate::io::{Backend, Extent};
use crate::measure::sampler::SampleRequest;
use diskproof_model::measurement::OpKind;
use diskproof_model::surface::{Coverage, CurvePlan, CurvePoint};
use std::cell::Cell;
use std::io;

/// The requests in flight take the disk this long: 4 ms for each of eight requests. Longer requests
/// would make the untimed part long; shorter ones could reach an IOPS limit (the smallest cloud
/// volumes allow 300 a second).
const IN_FLIGHT_S: f64 = 0.032;
/// The least in flight at once, in bytes: eight requests of 64 KiB. Smaller ones would show how
/// many requests a disk answers.
const IN_FLIGHT_MIN: u64 = 512 << 10;
/// The most in flight at once, in bytes: eight requests of the largest size.
const IN_FLIGHT_MAX: u64 = 8 << 20;
/// Time of a sample where the disk is large enough. At 7200 rpm that is 24 turns; a wake-up that
/// comes 1 ms late makes half a percent.
const SAMPLE_S: f64 = 0.2;
/// Writes end with a flush, whose rotation (8 ms) must not matter.
const WRITE_SAMPLE_S: f64 = 0.8;
/// Samples, and the parts of a pass over the whole span, are at least this many times the bytes in
/// flight: 128 ms, 15 turns at 7200 rpm, so that a wake-up that comes 1 ms late makes less than a
/// percent. The lead and the tail leave the first and the last part of a pass three times as many:
/// where all requests in flight complete together, one wait is a third of the time and not all of
/// it.
const SAMPLE_BATCHES_MIN: u64 = 4;
/// So many points show the shape of a curve: a small span has room for as many, if they are wanted.
/// Chosen, not measured.
const SHAPE_POINTS: u32 = 12;
/// At most this part of the span is transferred, unless the smallest samples need more. Chosen: a
/// survey stays short, and a written one wears an SSD little.
const SPAN_PARTS: u64 = 50;
/// The rate, in bytes per second, that is assumed where the trial failed altogether: about that of
/// a rotating disk.
const RATE_UNKNOWN: f64 = 100e6;
/// The time to reach a sample, in seconds: a seek and half a turn.
const ACCESS_S: f64 = 0.02;
/// The slowest part of a rotating disk takes up to twice the time of the fastest; the trial
/// measures a rate in between. About the square root of 2.
const SLOWER_ELSEWHERE: f64 = 1.4;
/// A curve has at least so many points, whatever the time allows. Chosen: fewer show no shape.
const POINTS_MIN: u64 = 8;
/// The trial ends at each of its two places after this long. A longer trial takes time from the
/// curve; in a shorter one, a rotation or a late wake-up weighs more.
const TRIAL_NS: u64 = 50_000_000;
/// The trial also ends at a place after so many bytes, which a fast disk reaches before the time.
const TRIAL_BYTES_MAX: u64 = 64 << 20;
/// The first request: small, since even a slow disk answers it soon, and alone.
const FIRST_BYTES: u64 = 64 << 10;
/// Where the first request goes that failed in the middle, in eighths of the span.
const FIRST_ELSEWHERE: [u64; 2] = [2, 6];
/// A disk whose first request takes longer is slow, and gets no more than one at a time in the
/// trial: a seek and half a turn take less, and so do the slowest cloud volumes.
const SLOW_NS: u64 = 100_000_000;
/// The longest that all requests of the trial may take at the rate of the first one, in seconds.
/// Chosen, not measured.
const TRIAL_S_MAX: f64 = 2.0;
/// A target below this rate, in bytes per second, may have fewer bytes in flight than
/// [`IN_FLIGHT_MIN`], which takes a sixteenth of a second at this rate.
const SLOW_RATE: f64 = 8e6;
/// A slow target that has no time for this many points gets none: fewer are no curve.
const SLOW_POINTS_MIN: f64 = 3.0;

impl<B: Backend, C: Clock> RequestQueue<'_, B, C> {
    /// Measures the curve and puts it into the log. Returns `None` where there is no time for one.
    pub(crate) fn measure_curve(&mut self, plan: &CurvePlan) -> io::Result<Option<MeasuredCurve>> {
        self.log.begin_step("curve");
        let rate = self.estimate_rate()?;
        let Some(sizing) = choose_sizing(plan, &self.target, rate) else {
            return Ok(None);
        };
        self.log.begin_curve(self.sampler.now());
        let places = match sizing.sample_bytes {
            None => self.measure_whole_span(sizing)?,
            Some(sample_bytes) => self.measure_samples(sizing, sample_bytes)?,
        };
        let mut measured = MeasuredCurve {
            sizing,
            rate,
            places,
            elsewhere_bytes: 0,
        };
        self.resample(&mut measured, plan.time_ns)?;
        Ok(Some(measured))
    }

    /// Estimates the rate of a target of unknown speed, in bytes per second. Begins with one small
    /// request at a time: eight large ones would keep a slow disk busy for minutes.
    fn estimate_rate(&mut self) -> io::Result<f64> {
        let Extent { start, length } = self.target.extent;
        let mut offset = self.target.aligned(start + length / 2);
        let mut first = self.request_alone(offset, FIRST_BYTES)?;
        // The time of a request that failed is no rate.
        for eighths in FIRST_ELSEWHERE {
            if !first.has_failed || self.log.is_stopped() {
                break;
            }
            offset = self.target.aligned(start + length / 8 * eighths);
            first = self.request_alone(offset, FIRST_BYTES)?;
        }
        let mut end = offset + first.bytes;
        let mut latency_ns = first.latency_ns;
        if latency_ns > SLOW_NS && !self.log.is_stopped() {
            // The disk may have slept.
            let second = self.request_alone(end, FIRST_BYTES)?;
            end += second.bytes;
            latency_ns = latency_ns.min(second.latency_ns);
        }
        let rate = first.bytes as f64 * 1e9 / latency_ns as f64;
        if latency_ns <= SLOW_NS {
            return Ok(self.measure_trial_rate(rate)?.unwrap_or(RATE_UNKNOWN));
        }
        if self.log.is_stopped() {
            return Ok(rate);
        }
        // A limiter lets the smallest request pass at once.
        let smallest = self.request_alone(end, UNIT_BYTES)?;
        Ok(rate.min(smallest.bytes as f64 * 1e9 / smallest.latency_ns as f64))
    }

    /// Reads or writes about `wanted` bytes while nothing else is in flight.
    fn request_alone(&mut self, offset: u64, wanted: u64) -> io::Result<AloneRequest> {
        let bytes = self
            .target
            .rounded_request_bytes(wanted)
            .min(self.target.extent.length / 4);
        let completion = self.move_one(block_at(offset, bytes))?;
        Ok(AloneRequest {
            bytes,
            latency_ns: completion.latency_ns.max(1),
            has_failed: completion.errno != 0,
        })
    }

    /// Measures a sample at each point, and puts it into the log.
    fn measure_samples(
        &mut self,
        sizing: CurveSizing,
        sample_bytes: u64,
    ) -> io::Result<Vec<SamplePlace>> {
        let starts = sample_starts(self.target.extent, sizing, sample_bytes);
        let mut measured = Vec::with_capacity(starts.len());
        for start in &starts {
            let extent = Extent::new(*start, sample_bytes);
            let point = match self.sample(sizing, extent)? {
                Sample::Done(point) => point,
                // Its bytes may be in the disk's cache now: the curve has one point less.
                Sample::Interrupted => continue,
                Sample::Stopped => break,
            };
            measured.push(SamplePlace {
                extent,
                moved_bytes: self.log.bytes(),
            });
            self.log.add_curve_point(
                self.sampler.now(),
                point,
                measured.len() as f64 / starts.len() as f64,
            );
        }
        Ok(measured)
    }

    /// Measures the rate at two offsets inside the span, and returns the higher one in bytes per
    /// second; `None` where no request could be timed. `rate` is a guess.
    fn measure_trial_rate(&mut self, rate: f64) -> io::Result<Option<f64>> {
        let log = self.log;
        let depth = self.target.depth;
        let Extent { start, length } = self.target.extent;
        let request_max = u64::from(STREAM_REQUEST_MAX) * u64::from(STREAM_DEPTH / depth);
        // Two places, and at each three times as much as is in flight at once.
        let in_time = (rate * TRIAL_S_MAX / f64::from(6 * depth)) as u64;
        let request_bytes = align(
            request_max
                .min(length / 64)
                .min(power_of_two_below(in_time)),
        );
        if request_bytes == 0 {
            return Ok(None);
        }
        let mut best: Option<f64> = None;
        // Away from the points, which the disk's cache must not serve.
        for distance in [(length / 3) + length / 400, (length / 3 * 2) + length / 400] {
            let from = start + distance;
            let place = TrialPlace {
                request_bytes,
                depth,
                end: (from + TRIAL_BYTES_MAX).min(from + length / 4),
                next: Cell::new(align(from)),
                busy_ns: Cell::new(0),
                bytes: Cell::new(0),
                completed: Cell::new(0),
            };
            self.run(
                || place.next_request(log),
                |completion| place.add(completion),
            )?;
            if let Some(place_rate) = place.rate() {
                best = Some(place_rate.max(best.unwrap_or(0.0)));
            }
        }
        Ok(best)
    }

    /// Transfers the whole span in one stream, and puts a point for each part into the log. The
    /// first requests are the lead, the last ones the tail.
    fn measure_whole_span(&mut self, sizing: CurveSizing) -> io::Result<Vec<SamplePlace>> {
        let log = self.log;
        let span = self.target.extent;
        let Extent { start, length } = span;
        let lead_end = align(start + sizing.lead_bytes.min(length / 2));
        let end = align(start + length);
        let tail_start = align(end - sizing.tail_bytes.min(length / 4));
        let timed = Extent::new(lead_end, tail_start - lead_end);
        let cells = timed_cells(span, sizing.points, timed);
        let mut requests = WholeRequests {
            cells: &cells,
            request_bytes: u64::from(sizing.request_bytes),
            next: align(start),
            cell: 0,
            lead_end,
            tail_start,
            end,
        };
        let clock = self.sampler.clock();
        let mut pass = WholePass {
            log,
            cells: &cells,
            sums: vec![CellSum::new(sizing); cells.len()],
            starved_ns: clock.starved_ns(),
            finished: 0,
            places: Vec::with_capacity(cells.len()),
        };
        self.run(
            || requests.next_request(log),
            |completion| pass.add(completion, &clock),
        )?;
        let places = pass.places;
        // The flush ends the stream, so its time belongs to the last point.
        if let Some(flushed) = self.flush()?
            && let Some(last) = log.results().curve.last_mut()
        {
            add_flush(last, &flushed);
        }
        Ok(places)
    }
}

/// A request while nothing else was in flight.
struct AloneRequest {
    bytes: u64,
    latency_ns: u64,
    has_failed: bool,
}

/// A place where the trial measures the rate. Each field that changes is shared by what makes the
/// requests and what counts them.
struct TrialPlace {
    request_bytes: u64,
    /// Requests in flight; the first ones, as many, are not timed.
    depth: u32,
    /// No request ends behind this byte.
    end: u64,
    /// First byte of the next request.
    next: Cell<u64>,
    /// The time of the timed requests, and their bytes.
    busy_ns: Cell<u64>,
    bytes: Cell<u64>,
    /// The number of completed requests.
    completed: Cell<u32>,
}

impl TrialPlace {
    fn next_request(&self, log: &SurveyLog) -> Option<SampleRequest> {
        let is_enough = self.busy_ns.get() >= TRIAL_NS && self.completed.get() >= 2 * self.depth;
        let offset = self.next.get();
        let request_end = offset + self.request_bytes;
        if is_enough || log.is_stopped() || request_end > self.end {
            return None;
        }
        self.next.set(request_end);
        Some(block_at(offset, self.request_bytes))
    }

    fn add(&self, completion: &BlockCompletion) {
        self.completed.set(self.completed.get() + 1);
        let is_timed = self.completed.get() > self.depth;
        if is_timed && completion.errno == 0 && !completion.interrupted {
            let bytes = u64::from(completion.request.len);
            self.busy_ns.set(self.busy_ns.get() + completion.share_ns);
            self.bytes.set(self.bytes.get() + bytes);
        }
    }

    /// Bytes per second; `None` where nothing was timed.
    fn rate(&self) -> Option<f64> {
        match self.bytes.get() {
            0 => None,
            bytes => Some(bytes as f64 * 1e9 / self.busy_ns.get().max(1) as f64),
        }
    }
}

/// The requests of a pass over the whole span.
struct WholeRequests<'a> {
    cells: &'a [Extent],
    request_bytes: u64,
    /// First byte of the next request, and its cell.
    next: u64,
    cell: usize,
    lead_end: u64,
    tail_start: u64,
    end: u64,
}

impl WholeRequests<'_> {
    fn next_request(&mut self, log: &SurveyLog) -> Option<SampleRequest> {
        if log.is_stopped() {
            return None;
        }
        let offset = self.next;
        if offset >= self.lead_end
            && let Some(cell) = self.cells.get(self.cell)
            && offset >= cell.end()
        {
            self.cell += 1;
        }
        // No request crosses a border.
        let (border, tag) = if offset < self.lead_end {
            (self.lead_end, LEAD)
        } else if offset >= self.tail_start {
            (self.end, LEAD)
        } else {
            (self.cells.get(self.cell)?.end(), self.cell as u32)
        };
        let bytes = self.request_bytes.min(border - offset);
        let request = SampleRequest {
            tag,
            ..block_at(offset, bytes)
        };
        if request.len == 0 {
            return None;
        }
        self.next += u64::from(request.len);
        Some(request)
    }
}

/// The largest offset that is not larger and a multiple of [`UNIT_BYTES`].
fn align(bytes: u64) -> u64 {
    bytes / UNIT_BYTES * UNIT_BYTES
}

/// The largest power of two that is not larger.
fn power_of_two_below(bytes: u64) -> u64 {
    1 << bytes.max(1).ilog2()
}

/// Chooses the sizes of the requests and samples of a curve on a target of about this rate, in
/// bytes per second. `None` where there is no time for a curve, or its blocks have no room for a
/// lead.
pub(crate) fn choose_sizing(
    plan: &CurvePlan,
    target: &SurveyTarget,
    rate: f64,
) -> Option<CurveSizing> {
    let points = u64::from(plan.points.max(1));
    let in_flight = in_flight_bytes(plan, target, rate);
    // Writes end with a flush instead of a tail.
    let tail_bytes = if target.operation == OpKind::Write {
        0
    } else {
        in_flight
    };
    let whole = CurveSizing {
        request_bytes: (in_flight / u64::from(target.depth)) as u32,
        lead_bytes: in_flight,
        tail_bytes,
        points: points_in(target.extent.length, SAMPLE_BATCHES_MIN * in_flight, points),
        sample_bytes: None,
    };
    match plan.coverage {
        Coverage::Full => Some(whole),
        Coverage::Blocks { block_bytes } => {
            let sample_bytes = block_bytes.saturating_sub(in_flight + tail_bytes);
            if sample_bytes == 0 {
                return None;
            }
            Some(CurveSizing {
                sample_bytes: Some(sample_bytes),
                ..whole
            })
        }
        Coverage::Sampled { sample_bytes } => {
            choose_sample_sizing(plan, target, rate, whole, sample_bytes)
        }
    }
}

/// The number of points: as many as wanted, or as parts of this size fit into the span.
fn points_in(span: u64, part_bytes: u64, wanted: u64) -> u64 {
    wanted.min(span / part_bytes).max(1)
}

/// Chooses the bytes in flight at once, by the rate and the room for samples.
fn in_flight_bytes(plan: &CurvePlan, target: &SurveyTarget, rate: f64) -> u64 {
    let span = target.extent.length;
    let smallest = UNIT_BYTES * u64::from(target.depth);
    // Small requests end in time. Without a limit they would show how many requests a disk answers.
    let in_flight_min = if rate < SLOW_RATE && plan.time_ns.is_some() {
        smallest
    } else {
        IN_FLIGHT_MIN
    };
    let wanted =
        power_of_two_below((rate * IN_FLIGHT_S) as u64).clamp(in_flight_min, IN_FLIGHT_MAX);
    // In a small span or block the lead must not use everything. A small sample is no reason for
    // small requests: these would show how many of them a disk answers.
    let sample_max = match plan.coverage {
        Coverage::Blocks { block_bytes } => block_bytes.min(span / 8),
        Coverage::Sampled { .. } | Coverage::Full if plan.points < SHAPE_POINTS => span / 8,
        Coverage::Sampled { .. } | Coverage::Full => span / 16,
    };
    let room = power_of_two_below(sample_max / SAMPLE_BATCHES_MIN);
    wanted.min(room).max(smallest)
}

/// The time, in seconds, of so many bytes where the disk is [slower](SLOWER_ELSEWHERE) than `rate`.
fn slow_seconds(bytes: u64, rate: f64) -> f64 {
    bytes as f64 / rate * SLOWER_ELSEWHERE
}

/// Chooses a sizing with samples instead of `whole`. Their size is `fixed_bytes`, where the plan
/// sets one, but at least [`SAMPLE_BATCHES_MIN`] times what is in flight. Returns `whole` where the
/// samples would cover the span and time allows a whole pass, and `None` where a slow target has no
/// time for a few points.
fn choose_sample_sizing(
    plan: &CurvePlan,
    target: &SurveyTarget,
    rate: f64,
    whole: CurveSizing,
    fixed_bytes: Option<u64>,
) -> Option<CurveSizing> {
    let span = target.extent.length;
    let in_flight = whole.lead_bytes;
    let untimed_bytes = whole.lead_bytes + whole.tail_bytes;
    let sample_min = in_flight * SAMPLE_BATCHES_MIN;
    let time_s = match plan.time_ns {
        Some(time_ns) => time_ns as f64 / 1e9,
        None => f64::INFINITY,
    };
    let least_bytes = untimed_bytes + fixed_bytes.unwrap_or(0).max(sample_min);
    let cost_s = ACCESS_S + slow_seconds(least_bytes, rate);
    if time_s < SLOW_POINTS_MIN * cost_s && rate < SLOW_RATE {
        return None;
    }
    let wanted = u64::from(plan.points.max(1));
    let points = wanted
        .min((time_s / cost_s) as u64)
        .max(wanted.min(POINTS_MIN));
    let sample_bytes = match fixed_bytes {
        Some(bytes) => {
            let request_bytes = u64::from(whole.request_bytes);
            bytes.max(sample_min) / request_bytes * request_bytes
        }
        None => {
            let nominal_s = if target.operation == OpKind::Write {
                WRITE_SAMPLE_S
            } else {
                SAMPLE_S
            };
            let nominal = rate * nominal_s;
            let in_time = (time_s / points as f64 - ACCESS_S) * rate / SLOWER_ELSEWHERE
                - untimed_bytes as f64;
            let point_max = (span / SPAN_PARTS / points).saturating_sub(untimed_bytes);
            let bytes = (nominal.min(in_time.max(0.0)) as u64)
                .min(point_max)
                .max(sample_min);
            bytes / in_flight * in_flight
        }
    };
    let point_bytes = untimed_bytes + sample_bytes;
    let covers_span = point_bytes.saturating_mul(points) >= span;
    if covers_span && slow_seconds(span, rate) <= time_s {
        // One stream reads the same bytes better.
        return Some(CurveSizing {
            points: points.min(whole.points),
            ..whole
        });
    }
    Some(CurveSizing {
        points: points_in(span, point_bytes, points),
        sample_bytes: Some(sample_bytes),
        ..whole
    })
}

/// The first byte of each sample: evenly spaced, the first right behind its lead at the start of
/// the span, the last right before its tail at the end.
fn sample_starts(extent: Extent, sizing: CurveSizing, sample_bytes: u64) -> Vec<u64> {
    let points = sizing.points;
    let first = extent.start + sizing.lead_bytes;
    let last = extent
        .end()
        .saturating_sub(sample_bytes + sizing.tail_bytes)
        .max(first);
    let mut starts = Vec::new();
    for index in 0..points {
        let distance = proportion(last - first, index, (points - 1).max(1));
        starts.push(align(first + distance));
    }
    starts
}

/// The length of the first `index` of `parts` equal parts.
fn proportion(length: u64, index: u64, parts: u64) -> u64 {
    (u128::from(length) * u128::from(index) / u128::from(parts)) as u64
}

/// The timed parts of the span, one for each point.
fn timed_cells(span: Extent, points: u64, timed: Extent) -> Vec<Extent> {
    let mut cells = Vec::new();
    for index in 0..points {
        let start = align(span.start + proportion(span.length, index, points));
        let end = align(span.start + proportion(span.length, index + 1, points));
        let from = start.max(timed.start);
        let until = end.min(timed.end());
        if from < until {
            cells.push(Extent::new(from, until - from));
        }
    }
    cells
}

/// The requests of a cell that have completed.
#[derive(Clone, Default)]
struct CellSum {
    /// The part that was timed.
    timed: SampleSum,
    /// Bytes of all of them.
    completed_bytes: u64,
}

impl CellSum {
    fn new(sizing: CurveSizing) -> Self {
        Self {
            timed: SampleSum::new(sizing),
            completed_bytes: 0,
        }
    }
}

/// A pass over the whole span.
struct WholePass<'a> {
    log: &'a SurveyLog,
    cells: &'a [Extent],
    /// One for each cell.
    sums: Vec<CellSum>,
    /// [`Clock::starved_ns`] at the end of the last finished cell.
    starved_ns: u64,
    /// The number of finished cells.
    finished: usize,
    /// The finished cells that have a point.
    places: Vec<SamplePlace>,
}

impl WholePass<'_> {
    /// Adds a completed request to its cell, and a point to the log for each cell that it finishes.
    fn add(&mut self, completion: &BlockCompletion, clock: &impl Clock) {
        let Some(cell_sum) = self.sums.get_mut(completion.request.tag as usize) else {
            return;
        };
        cell_sum.timed.add(completion);
        cell_sum.completed_bytes += u64::from(completion.request.len);
        while let Some(extent) = self.cells.get(self.finished).copied() {
            if self.sums[self.finished].completed_bytes != extent.length {
                return;
            }
            let sum = std::mem::take(&mut self.sums[self.finished]).timed;
            self.finished += 1;
            let late_ns = clock.starved_ns().saturating_sub(self.starved_ns);
            self.starved_ns += late_ns;
            if sum.interrupted {
                continue;
            }
            self.places.push(SamplePlace {
                extent,
                moved_bytes: self.log.bytes(),
            });
            let point = CurvePoint {
                late_ns,
                ..sum.point(extent.start)
            };
            let done = self.finished as f64 / self.cells.len() as f64;
            self.log.add_curve_point(completion.at_ns, point, done);
        }
    }
}
