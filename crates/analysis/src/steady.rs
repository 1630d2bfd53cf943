//! The part of the measured time that the figures of a row cover: all of it, or the steady part
//! after the warm-up. All figures of the row come from the same windows.

use crate::estimate::{self, RateEstimate, Settling};
use crate::slices;
use diskproof_model::histogram::{LatencyHistogram, LatencyPart};
use diskproof_model::measurement::{
    ByteCount, DeviceUse, Measurement, OpKind, OpMeasurement, PerOp, Starvation,
};
use diskproof_model::row::{LatencySummary, PhaseKind, PhaseOp, PhaseRecord};
use diskproof_model::series::TimeSeries;
use diskproof_model::window::{Window, WindowLatency, joined};

/// A measurement with its steady part.
pub(crate) struct SteadyPart<'a> {
    pub(crate) measurement: &'a Measurement,
    pub(crate) settling: Settling,
    /// `None` where the row covers the whole measured time.
    parts: Option<Parts<'a>>,
}

/// The two parts of a measured time.
struct Parts<'a> {
    /// The windows before the steady part; never empty.
    earlier: &'a [Window],
    /// The steady part as one window.
    steady: Window,
}

/// A fall of the rate that is known from more than the measurement itself.
#[derive(Debug, Clone, Copy)]
pub(crate) enum KnownFall {
    /// Several workloads of the run fell at one moment.
    Shared {
        /// The index of the first slice after the fall.
        first_slice: usize,
    },
    /// A limiter allows only its base rate.
    Limiter {
        /// From this measured time on.
        from_ns: u64,
    },
}

/// A window belongs to a burst as long as its rate is at least this share of the burst's. A smaller
/// share would count windows of the fall itself. Chosen, not measured.
const BURST_SHARE: f64 = 0.9;

/// The moment of a fall within a slice is found in steps of this time, in nanoseconds. A longer
/// step would count more of the burst as steady; a shorter one would hold too few operations for a
/// rate. Chosen, not measured.
const FALL_STEP_NS: u64 = 50_000_000;
/// After a change of the rate, one turnover of the queue is skipped, but at most a quarter of the
/// rest: a deep queue of a slow disk must leave something to measure.
const TURNOVER_PARTS: u64 = 4;

impl<'a> SteadyPart<'a> {
    /// The steady part of a measurement: it begins with the first window after the warm-up, or
    /// after the fall that is known.
    pub(crate) fn find(measurement: &'a Measurement, known_fall: Option<KnownFall>) -> Self {
        let settling = match known_fall {
            // Single requests have a pace of their own, and no rate that settles.
            _ if !measurement.requests.is_empty() => Settling::WHOLE,
            Some(KnownFall::Limiter { from_ns }) => Settling::new(from_ns, Some(true)),
            Some(KnownFall::Shared { first_slice }) => settling_after(measurement, first_slice),
            None => common_settling(measurement),
        };
        if settling.settling_ns == 0 {
            return Self::whole(measurement, settling.settled);
        }
        let windows = &measurement.windows;
        let settled_ns = settling.settling_ns + turnover_ns(measurement, settling.settling_ns);
        let after_warmup = windows
            .iter()
            .position(|window| window.start_ns >= settled_ns);
        let first = match after_warmup {
            Some(first) if first > 0 => first,
            // Without windows the latencies of the parts are unknown.
            _ => return Self::unsettled(measurement),
        };
        let (earlier, steady) = windows.split_at(first);
        // A stall is not a warm-up, and stays in the row. After a known fall, each request waits as
        // long as in a stall.
        if known_fall.is_none() && is_stall(&joined(earlier)) {
            return Self::unsettled(measurement);
        }
        Self {
            measurement,
            settling: Settling::new(steady[0].start_ns, settling.settled),
            parts: Some(Parts {
                earlier,
                steady: joined(steady),
            }),
        }
    }

    /// All of a measurement whose rate changed for a reason that is not the disk.
    pub(crate) fn unsettled(measurement: &'a Measurement) -> Self {
        Self::whole(measurement, Some(false))
    }

    fn whole(measurement: &'a Measurement, settled: Option<bool>) -> Self {
        Self {
            measurement,
            settling: Settling::new(0, settled),
            parts: None,
        }
    }

    /// The measured time at which a burst ended; `None` where the row does not begin after one.
    pub(crate) fn burst_end_ns(&self) -> Option<u64> {
        let parts = self.parts.as_ref()?;
        let burst = &parts.earlier[..self.burst_windows(parts)];
        burst.last().map(|window| window.end_ns)
    }

    /// The phases of the measurement: first write, burst, warm-up and steady part; empty where
    /// there is only one.
    pub(crate) fn phases(&self) -> Vec<PhaseRecord> {
        let mut phases = Vec::new();
        if let Some(first) = &self.measurement.first_write {
            phases.push(first_write_phase(first));
        }
        let Some(parts) = &self.parts else {
            if !phases.is_empty() {
                phases.push(self.whole_phase());
            }
            return phases;
        };
        let (burst, settling) = parts.earlier.split_at(self.burst_windows(parts));
        if !burst.is_empty() {
            phases.push(self.phase_of_window(PhaseKind::Burst, &joined(burst)));
        }
        if !settling.is_empty() {
            phases.push(self.phase_of_window(PhaseKind::Settling, &joined(settling)));
        }
        // The windows of a target that hung end with its last answer, but the measured time does
        // not.
        let mut steady = parts.steady.clone();
        steady.end_ns = steady.end_ns.max(self.measurement.wall_ns);
        phases.push(self.phase_of_window(PhaseKind::Steady, &steady));
        phases
    }

    /// The number of earlier windows that are a burst. Between it and the steady part the rate
    /// fell.
    fn burst_windows(&self, parts: &Parts<'_>) -> usize {
        let Parts { earlier, steady } = parts;
        let half = &earlier[..earlier.len().div_ceil(2)];
        let rates: f64 = half.iter().map(|window| self.rate_in(window)).sum();
        let level = rates / half.len() as f64;
        let measurement = self.measurement;
        let least = match headline_series(&measurement.ops) {
            Some(series) => estimate::least_fall_to(&series, steady.start_ns, measurement.wall_ns),
            None => f64::INFINITY,
        };
        let steady_rate = self.rate_in(steady);
        if level < least * steady_rate {
            return 0;
        }
        let least_rate = (BURST_SHARE * level).max((level + steady_rate) / 2.0);
        let last = earlier
            .iter()
            .rposition(|window| self.rate_in(window) >= least_rate);
        match last {
            Some(last) => last + 1,
            None => 0,
        }
    }

    /// Operations of all kinds in each nanosecond of a window.
    fn rate_in(&self, window: &Window) -> f64 {
        let operations: u64 = self
            .measurement
            .ops
            .values()
            .map(|op| op.series.total_between(window.start_ns, window.end_ns).ops)
            .sum();
        operations as f64 / window.end_ns.saturating_sub(window.start_ns).max(1) as f64
    }

    /// The whole measured time, as a phase after the first write.
    fn whole_phase(&self) -> PhaseRecord {
        let measurement = self.measurement;
        let mut ops = PerOp::new();
        for (kind, op) in &measurement.ops {
            if op.count > 0 {
                let rate = estimate::rate_after(&op.series, measurement.wall_ns, Settling::WHOLE);
                ops.insert(*kind, phase_op(op.count, op.bytes, rate, &op.latency));
            }
        }
        PhaseRecord {
            name: PhaseKind::Steady,
            start_ns: measurement.start_ns,
            end_ns: measurement.start_ns + measurement.wall_ns,
            ops,
        }
    }

    /// The figures of one window, as a phase.
    fn phase_of_window(&self, name: PhaseKind, window: &Window) -> PhaseRecord {
        let mut ops = PerOp::new();
        for (kind, op) in &self.measurement.ops {
            let total = op.series.total_between(window.start_ns, window.end_ns);
            if total.ops == 0 {
                continue;
            }
            let mut series = op.series.clone();
            let cells = window.end_ns.div_ceil(series.interval_ns) as usize;
            series.cells.truncate(cells);
            let from = Settling::new(window.start_ns, None);
            let rate = estimate::rate_after(&series, window.end_ns, from);
            let latency = histogram(window, *kind, |op| &op.latency);
            ops.insert(*kind, phase_op(total.ops, total.bytes, rate, &latency));
        }
        PhaseRecord {
            name,
            start_ns: self.measurement.start_ns + window.start_ns,
            end_ns: self.measurement.start_ns + window.end_ns,
            ops,
        }
    }

    /// The measurement as records keep it. Counts, latencies, CPU time and counters are those of
    /// the steady part, and the windows keep what came before. Errors, short transfers and series
    /// are those of the whole time.
    pub(crate) fn as_recorded(&self) -> Measurement {
        let mut kept = self.measurement.clone();
        kept.windows = Vec::new();
        if let Some(Parts { earlier, steady }) = &self.parts {
            kept.windows = earlier.to_vec();
            if let Some(first) = kept.windows.first_mut() {
                first.asked += asked_in_warmup(self.measurement, earlier, steady);
            }
            narrow_to_steady(&mut kept, steady);
            kept.windows.push(without_latencies(steady));
        }
        for op in kept.ops.values_mut() {
            op.keep_longest_latencies();
        }
        if let Some(first) = &mut kept.first_write {
            first.windows = Vec::new();
            first.slices = Vec::new();
            for op in first.ops.values_mut() {
                op.keep_longest_latencies();
            }
        }
        kept
    }
}

/// Restores a measurement that [`SteadyPart::as_recorded`] made: the windows before the steady part
/// are counted again.
pub(crate) fn with_warmup(kept: &Measurement) -> Measurement {
    let mut whole = kept.clone();
    let Some((steady, earlier)) = whole.windows.split_last_mut() else {
        return whole;
    };
    for (kind, op) in &mut whole.ops {
        if let Some(latencies) = steady.ops.get_mut(kind) {
            latencies.latency = op.latency.to_part();
            if let Some(intended) = &op.latency_intended {
                latencies.intended = intended.to_part();
            }
        }
        let before = op.series.total_between(0, steady.start_ns);
        // Records also come from files, which may contain any number.
        op.count = op.count.saturating_add(before.ops);
        op.bytes = op.bytes.saturating_add(before.bytes);
        for window in earlier.iter() {
            let Some(latencies) = window.ops.get(kind) else {
                continue;
            };
            op.latency.add_part(&latencies.latency);
            if let Some(intended) = &mut op.latency_intended {
                intended.add_part(&latencies.intended);
            }
        }
    }
    let mut asked = steady.asked;
    for window in earlier.iter() {
        whole.cpu += window.cpu;
        asked += window.asked;
    }
    // Where the parts are unknown, the record has the whole.
    whole.asked = ByteCount {
        read_bytes: asked.read_bytes.max(kept.asked.read_bytes),
        write_bytes: asked.write_bytes.max(kept.asked.write_bytes),
        trim_bytes: asked.trim_bytes.max(kept.asked.trim_bytes),
    };
    whole
}

/// The bytes that were requested before the first window. The record keeps them with that window,
/// because nothing else shows how much the whole run moved.
fn asked_in_warmup(measurement: &Measurement, earlier: &[Window], steady: &Window) -> ByteCount {
    let mut measured = steady.asked;
    for window in earlier {
        measured += window.asked;
    }
    ByteCount {
        read_bytes: measurement
            .asked
            .read_bytes
            .saturating_sub(measured.read_bytes),
        write_bytes: measurement
            .asked
            .write_bytes
            .saturating_sub(measured.write_bytes),
        trim_bytes: measurement
            .asked
            .trim_bytes
            .saturating_sub(measured.trim_bytes),
    }
}

/// Reduces counts, latencies, CPU time and counters to the steady part.
fn narrow_to_steady(measurement: &mut Measurement, steady: &Window) {
    let length_ns = steady.length_ns().max(1) as f64;
    let waited_share = steady.waited_ns as f64 / length_ns / steady.threads.max(1) as f64;
    let steady_dead_time_ns = measurement
        .dead_time_ns
        .map(|whole_ns| dead_time_ns(measurement, steady, whole_ns));
    let (steady_asked, steady_device) = device_use(measurement, steady);
    // Every field by name, so that it is decided of each that is new.
    let Measurement {
        cpu,
        ops,
        asked,
        device,
        achieved_depth,
        dead_time_ns: own_dead_time_ns,
        starved,
        // Of the whole time.
        target: _,
        workload: _,
        span_start_bytes: _,
        span_bytes: _,
        engine: _,
        cache: _,
        start_ns: _,
        wall_ns: _,
        ceiling_iops: _,
        zero_blocks: _,
        unwritten_bytes: _,
        missed_starts: _,
        dispatch_p99_ns: _,
        dispatch_late: _,
        punted: _,
        verify: _,
        hang: _,
        silence_before_ns: _,
        silence_around_ns: _,
        first_answer_ns: _,
        interruptions: _,
        first_write: _,
        laid_out: _,
        windows: _,
        slices: _,
        began_ns: _,
        overrun_ns: _,
        shortened_from_ns: _,
        requests: _,
        request_log: _,
        steady: _,
        stopped: _,
    } = measurement;
    *cpu = steady.cpu;
    *own_dead_time_ns = steady_dead_time_ns;
    (*asked, *device) = (steady_asked, steady_device);
    *achieved_depth = steady.depth();
    *starved = Starvation {
        share: waited_share.min(1.0),
        mean_wait_ns: steady.waited_ns as f64 / steady.turns.max(1) as f64,
    };
    narrow_ops(ops, steady);
}

/// Reduces the counts and latencies of operations to the steady part.
fn narrow_ops(ops: &mut PerOp<OpMeasurement>, steady: &Window) {
    for (kind, op) in ops {
        let before = op.series.total_between(0, steady.start_ns);
        op.count = op.count.saturating_sub(before.ops);
        op.bytes = op.bytes.saturating_sub(before.bytes);
        op.latency = histogram(steady, *kind, |op| &op.latency);
        if op.latency_intended.is_some() {
            op.latency_intended = Some(histogram(steady, *kind, |op| &op.intended));
        }
    }
}

/// The window without its latencies, which are those of the row.
fn without_latencies(window: &Window) -> Window {
    let mut stripped = window.clone();
    for latencies in stripped.ops.values_mut() {
        *latencies = WindowLatency::default();
    }
    stripped
}

fn phase_op(count: u64, bytes: u64, rate: RateEstimate, latency: &LatencyHistogram) -> PhaseOp {
    PhaseOp {
        count,
        bytes,
        rate: rate.ops,
        throughput: rate.bytes,
        latency: LatencySummary::from_histogram(latency),
    }
}

/// The first write of a file, as a phase of the workload that overwrites it.
fn first_write_phase(measurement: &Measurement) -> PhaseRecord {
    let mut ops = PerOp::new();
    if let Some(op) = measurement.ops.get(&OpKind::Write) {
        let rate = estimate::rate(&op.series, measurement.wall_ns);
        let phase = phase_op(op.count, op.bytes, rate, &op.latency);
        ops.insert(OpKind::Write, phase);
    }
    PhaseRecord {
        name: PhaseKind::FirstWrite,
        start_ns: measurement.start_ns,
        end_ns: measurement.start_ns + measurement.wall_ns,
        ops,
    }
}

/// The time between two requests of a worker with one request in flight; `whole_ns`, that of the
/// whole time, where nothing completed in the window.
fn dead_time_ns(measurement: &Measurement, steady: &Window, whole_ns: f64) -> f64 {
    let mut completed = 0;
    for (kind, op) in &measurement.ops {
        if !kind.is_made_of_others() {
            completed += op.series.total_between(steady.start_ns, u64::MAX).ops;
        }
    }
    if completed == 0 {
        return whole_ns;
    }
    (1.0 - steady.depth()).max(0.0) * steady.length_ns() as f64 / completed as f64
}

/// The requests to the disks and their counters in the steady part, or over the whole time where
/// the parts are unknown. Counters of other processes are always those of the whole time.
fn device_use(measurement: &Measurement, steady: &Window) -> (ByteCount, DeviceUse) {
    let disks = match steady.disks {
        Some(disks) if steady.asked.moved_or_trimmed() > 0 => disks,
        _ => return (measurement.asked, measurement.device.clone()),
    };
    let queue_depth = match (measurement.device.queue_depth, disks.queued_ms) {
        (Some(_), Some(queued_ms)) => {
            Some(queued_ms as f64 * 1e6 / steady.length_ns().max(1) as f64)
        }
        _ => None,
    };
    let mut device = DeviceUse {
        read_bytes: disks.read_bytes,
        write_bytes: disks.write_bytes,
        read_ops: disks.read_ops,
        write_ops: disks.write_ops,
        flush_ops: disks.flush_ops,
        queue_depth,
        times: None,
        trim_bytes: disks.trim_bytes,
        ..measurement.device.clone()
    };
    if device.accounted.is_some() {
        device.accounted = device.share_of(steady.asked);
    }
    (steady.asked, device)
}

/// Returns `true` if a request waited for longer than half of the window: then the window is that
/// wait, not the way of the rate to a lower level.
fn is_stall(window: &Window) -> bool {
    window.ops.keys().any(|kind| {
        let latencies = histogram(window, *kind, |op| &op.latency);
        latencies.max_ns() > window.length_ns() / 2
    })
}

/// The latencies of a window that `pick` chooses, as a histogram; empty where the kind is absent.
fn histogram(
    window: &Window,
    kind: OpKind,
    pick: impl Fn(&WindowLatency) -> &LatencyPart,
) -> LatencyHistogram {
    let mut histogram = LatencyHistogram::new();
    if let Some(op) = window.ops.get(&kind) {
        histogram.add_part(pick(op));
    }
    histogram
}

/// The time in which all requests in flight complete at the rate from `from_ns` on. Requests that
/// were sent earlier waited at another rate, so that Little's law does not hold for them.
fn turnover_ns(measurement: &Measurement, from_ns: u64) -> u64 {
    let left_ns = measurement.wall_ns.saturating_sub(from_ns);
    let ops = match headline_series(&measurement.ops) {
        Some(series) => series.total_between(from_ns, measurement.wall_ns).ops,
        None => 0,
    };
    let in_flight = measurement.workload.total_depth();
    let turnover_ns = in_flight as f64 * left_ns as f64 / ops.max(1) as f64;
    (turnover_ns as u64).min(left_ns / TURNOVER_PARTS)
}

/// The warm-up of the workload as a whole: reads and writes of a mix share a disk, so they share
/// the cut.
fn common_settling(measurement: &Measurement) -> Settling {
    let Some(series) = headline_series(&measurement.ops) else {
        return Settling::WHOLE;
    };
    if slices::are_apart(&measurement.slices) {
        let rates = slice_rates(measurement);
        let ends_ns = slices::ends_ns(&measurement.slices);
        estimate::settling_of_slices(&series, measurement.wall_ns, &rates, &ends_ns)
    } else {
        estimate::settling(&series, measurement.wall_ns)
    }
}

/// The warm-up that ends in this slice, with the first cells below the middle of both levels. The
/// slice must exist and follow another one.
fn settling_after(measurement: &Measurement, first_slice: usize) -> Settling {
    debug_assert!((1..measurement.slices.len()).contains(&first_slice));
    let begin_ns: u64 = measurement.slices[..first_slice]
        .iter()
        .map(|slice| slice.wall_ns)
        .sum();
    let Some(series) = headline_series(&measurement.ops) else {
        return Settling::new(begin_ns, Some(true));
    };
    let before = rate_between(&series, 0, begin_ns);
    let after = rate_between(&series, begin_ns, measurement.wall_ns);
    let middle = (before + after) / 2.0;
    let end_ns = begin_ns + measurement.slices[first_slice].wall_ns;
    let mut settling_ns = end_ns;
    for from_ns in (begin_ns..end_ns).step_by(FALL_STEP_NS as usize) {
        if rate_between(&series, from_ns, from_ns + FALL_STEP_NS) < middle {
            settling_ns = from_ns;
            break;
        }
    }
    Settling::new(settling_ns, Some(true))
}

/// Operations in each nanosecond of a part of the measured time.
fn rate_between(series: &TimeSeries, from_ns: u64, to_ns: u64) -> f64 {
    let ops = series.total_between(from_ns, to_ns).ops;
    ops as f64 / to_ns.saturating_sub(from_ns).max(1) as f64
}

/// The rate of all headline operations in each slice.
fn slice_rates(measurement: &Measurement) -> Vec<f64> {
    let kinds: Vec<OpKind> = OpKind::headline(&measurement.ops)
        .map(|(kind, _)| kind)
        .collect();
    measurement
        .slices
        .iter()
        .map(|slice| slices::rate_of_kinds(slice, &kinds))
        .collect()
}

/// The series of the headline operations, added up.
fn headline_series(ops: &PerOp<OpMeasurement>) -> Option<TimeSeries> {
    estimate::summed(OpKind::headline(ops).map(|(_, op)| &op.series))
}

#[cfg(test)]
mod tests {
    use super::{KnownFall, SteadyPart};
    use crate::estimate;
    use crate::fixture;
    use diskproof_model::histogram::LatencyHistogram;
    use diskproof_model::measurement::{Measurement, OpKind};
    use diskproof_model::row::{PhaseKind, Row};
    use diskproof_model::window::DiskCounts;

    const BURST_WINDOWS: usize = 12;

    /// Four times as fast for the first 1.2 s: 40,000 instead of 10,000 reads/s, of 0.8 ms instead
    /// of 3.2 ms.
    fn burst(m: &mut Measurement) {
        let op = m.ops.get_mut(&OpKind::Read).unwrap();
        let mut seen = LatencyHistogram::new();
        op.latency = LatencyHistogram::new();
        for (number, window) in m.windows.iter_mut().enumerate() {
            let is_burst = number < BURST_WINDOWS;
            for cell in &mut op.series.cells[number * 10..(number + 1) * 10] {
                if is_burst {
                    (cell.ops, cell.bytes) = (cell.ops * 4, cell.bytes * 4);
                }
                let latency_ns = if is_burst { 800_000 } else { 3_200_000 };
                op.latency.record_many(latency_ns, cell.ops);
            }
            let part = seen.take_since(&op.latency);
            window.ops.entry(OpKind::Read).or_default().latency = part;
            window.cpu.user_ns = if is_burst { 40_000_000 } else { 10_000_000 };
            let bytes = op
                .series
                .total_between(window.start_ns, window.end_ns)
                .bytes;
            window.asked.read_bytes = bytes;
            window.disks = Some(DiskCounts {
                read_bytes: bytes,
                ..DiskCounts::default()
            });
        }
        let total = op.series.total();
        (op.count, op.bytes) = (total.ops, total.bytes);
        m.asked.read_bytes = total.bytes;
        m.device.read_bytes = total.bytes;
    }

    fn judged(change: impl Fn(&mut Measurement)) -> Row {
        let mut record = fixture::faulty("random-read-d32", change);
        fixture::measured(&mut record, "random-read-d32").clone()
    }

    #[test]
    fn figures_of_a_row_cover_the_steady_window() {
        let m = judged(burst);
        let read = m.op(OpKind::Read).unwrap();
        assert!(m.figures.settling_ns >= 1_200_000_000 && m.figures.settled == Some(true));
        assert_eq!(
            m.figures.settling_ns % 100_000_000,
            0,
            "it ends with a window"
        );
        let seconds = m.steady_ns() as f64 / 1e9;
        assert!(
            (read.figures.iops.value - 10_000.0).abs() < 1.0,
            "{:?}",
            read.figures.iops
        );
        assert_eq!(read.data.count as f64, seconds * 10_000.0);
        assert_eq!(
            (read.figures.latency.mean, read.figures.latency.min),
            (3_200_000.0, 3_198_976)
        );
        assert_eq!(m.data.asked.read_bytes, read.data.bytes);
        assert_eq!(
            (m.data.device.read_bytes, m.data.device.accounted),
            (read.data.bytes, Some(1.0))
        );
        assert!((m.cpu_share() - 0.1).abs() < 1e-9, "{}", m.cpu_share());
        assert_eq!(m.data.achieved_depth, 32.0);
        // Little's law holds in the window.
        assert!(
            (read.figures.iops.value * read.figures.latency.mean / 1e9 - m.data.achieved_depth)
                .abs()
                < 0.01
        );
    }

    #[test]
    fn whole_measurement_has_what_its_warm_up_requested() {
        let row = judged(|m| {
            burst(m);
            m.asked.read_bytes += 7 << 20;
        });
        let measured = row.data.ops[&OpKind::Read].series.total().bytes;
        assert!(row.data.asked.read_bytes < measured);
        let again = super::with_warmup(&row.data);
        assert_eq!(again.asked.read_bytes, measured + (7 << 20));
    }

    /// 32 requests in flight at 10,000/s turn over in 3.2 ms; 3200 of them in 320 ms, which is less
    /// than a quarter of what is left.
    #[test]
    fn steady_part_begins_a_turnover_after_the_fall() {
        let settling_ns = |depth: u32| {
            let m = judged(|m| {
                burst(m);
                m.workload.depth = depth;
            });
            m.figures.settling_ns
        };
        let shallow = settling_ns(32);
        assert_eq!(settling_ns(3200) - shallow, 300_000_000);
        assert_eq!(settling_ns(3900) - shallow, 400_000_000);
        assert!(settling_ns(1_000_000) - shallow <= 1_000_000_000);
    }

    #[test]
    fn earlier_part_becomes_a_phase() {
        let m = judged(burst);
        let names: Vec<PhaseKind> = m.figures.phases.iter().map(|phase| phase.name).collect();
        assert_eq!(
            names,
            [PhaseKind::Burst, PhaseKind::Settling, PhaseKind::Steady]
        );
        let [first, between, last] = &m.figures.phases[..] else {
            panic!("{:?}", m.figures.phases)
        };
        let cut_ns = m.figures.settling_ns;
        assert_eq!((first.start_ns, first.end_ns), (0, 1_200_000_000));
        assert_eq!((between.start_ns, between.end_ns), (1_200_000_000, cut_ns));
        assert_eq!((last.start_ns, last.end_ns), (cut_ns, m.data.wall_ns));
        let (fast, slow) = (&first.ops[&OpKind::Read], &last.ops[&OpKind::Read]);
        assert_eq!(fast.rate.value, 40_000.0);
        assert!(fast.latency.p50 < Some(1_000_000));
        assert_eq!(slow.rate, m.figures.ops[&OpKind::Read].iops);
        assert_eq!(slow.latency.p50, m.figures.ops[&OpKind::Read].latency.p50);
        let all = m
            .figures
            .phases
            .iter()
            .map(|phase| phase.ops[&OpKind::Read].count);
        assert_eq!(
            m.data.ops[&OpKind::Read].series.total().ops,
            all.sum::<u64>()
        );
    }

    /// Nothing answers in the last fifth, of which there are no windows.
    #[test]
    fn last_phase_has_the_time_without_an_answer() {
        let mut m = fixture::run()
            .measurements
            .into_iter()
            .find(|m| m.workload.name == "random-read-d32")
            .unwrap();
        burst(&mut m);
        let end_ns = m.wall_ns / 5 * 4;
        m.windows.retain(|window| window.end_ns <= end_ns);
        let op = m.ops.get_mut(&OpKind::Read).unwrap();
        let cells = (end_ns / op.series.interval_ns) as usize;
        op.series.cells.truncate(cells);
        let fall = KnownFall::Limiter {
            from_ns: 1_200_000_000,
        };
        let part = SteadyPart::find(&m, Some(fall));
        let last = part.phases().pop().unwrap();
        assert_eq!(last.end_ns, m.start_ns + m.wall_ns);
        let rate = estimate::rate_after(&m.ops[&OpKind::Read].series, m.wall_ns, part.settling);
        assert_eq!(last.ops[&OpKind::Read].rate, rate.ops);
    }

    #[test]
    fn first_write_of_a_file_is_a_phase_before_the_measured_time() {
        let m = judged(|m| {
            let first = fixture::run().measurements.remove(0);
            m.start_ns = 20_000_000_000;
            m.first_write = Some(Box::new(first));
        });
        let names: Vec<PhaseKind> = m.figures.phases.iter().map(|phase| phase.name).collect();
        assert_eq!(names, [PhaseKind::FirstWrite, PhaseKind::Steady]);
        assert_eq!(m.figures.phases[0].ops[&OpKind::Write].rate.value, 200.0);
        assert_eq!(
            (m.figures.phases[0].start_ns, m.figures.phases[0].end_ns),
            (0, 5_000_000_000)
        );
        assert_eq!(
            (m.figures.phases[1].start_ns, m.steady_from_ns()),
            (20_000_000_000, 0)
        );
    }

    #[test]
    fn row_covers_the_whole_where_windows_are_unknown() {
        let m = judged(|m| {
            burst(m);
            m.windows.clear();
        });
        assert_eq!((m.figures.settling_ns, m.figures.settled), (0, Some(false)));
        assert!(m.figures.phases.is_empty());
        assert_eq!(m.data.ops[&OpKind::Read].count, 86_000);
    }
}
