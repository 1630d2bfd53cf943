//! The part of the measured time that the figures of a row cover: all of it, or the steady part
//! that is left after an earlier one. Every figure of the row is taken from the same windows.

use crate::estimate::{self, RateEstimate, Settling};
use crate::slices;
use diskproof_model::histogram::{LatencyHistogram, LatencyPart};
use diskproof_model::measurement::{
    ByteCount, DeviceUse, Measurement, OpKind, OpMeasurement, PerOp, Starvation,
};
use diskproof_model::record::{
    LatencySummary, MeasurementRecord, OpRecord, PhaseKind, PhaseOp, PhaseRecord,
};
use diskproof_model::series::TimeSeries;
use diskproof_model::window::{TimeSlice, Window, WindowLatency, joined};

/// What a row covers.
pub(crate) struct SteadyPart<'a> {
    measurement: &'a Measurement,
    pub(crate) settling: Settling,
    /// The windows before the steady part, and that part; `None` where the row covers the whole.
    parts: Option<(&'a [Window], Window)>,
}

/// A window belongs to a burst as long as its rate is at least this share of the burst's.
const BURST_SHARE: f64 = 0.9;

/// A fall within a slice is found to this time.
const FALL_STEP_NS: u64 = 50_000_000;
/// After a change of its rate a queue is given one turnover, but not more than one part in this
/// many of what is left.
const TURNOVER_PARTS_MIN: u64 = 4;

impl<'a> SteadyPart<'a> {
    /// Of a measurement. The steady part begins with the first window that starts after the rate
    /// has settled. `fall` is the first slice after a fall that the workloads of the run share.
    /// From `sustained_from_ns` of the measured time on a limiter allows its base rate.
    pub(crate) fn of(
        measurement: &'a Measurement,
        fall: Option<usize>,
        sustained_from_ns: Option<u64>,
    ) -> Self {
        // Single requests at a pace of their own have no rate that settles.
        let found = match (measurement.requests.is_empty(), sustained_from_ns, fall) {
            (true, Some(from_ns), _) => Settling::new(from_ns, Some(true)),
            (true, None, Some(fall)) => settling_after(measurement, fall),
            (true, None, None) => common_settling(measurement),
            (false, _, _) => Settling::WHOLE,
        };
        let is_known_fall = fall.is_some() || sustained_from_ns.is_some();
        if found.settling_ns == 0 {
            return Self::whole(measurement, found.settled);
        }
        let windows = &measurement.windows;
        let settled_ns = found.settling_ns + turnover_ns(measurement, found.settling_ns);
        let mut all = windows.iter();
        let first = all.position(|window| window.start_ns >= settled_ns);
        match first.map(|first| windows.split_at(first)) {
            Some((earlier, steady))
                if !earlier.is_empty()
                    && !steady.is_empty()
                    && (is_known_fall || !is_stall(&joined(earlier))) =>
            {
                Self {
                    measurement,
                    settling: Settling::new(steady[0].start_ns, found.settled),
                    parts: Some((earlier, joined(steady))),
                }
            }
            // Without windows the latencies of the parts are unknown. A stall is no warm-up: it
            // stays in the row. After a shared fall each request waits as long as in one.
            _ => Self::whole(measurement, Some(false)),
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

    /// The measured time at which a burst ended, where the row begins after one.
    pub(crate) fn burst_end_ns(&self) -> Option<u64> {
        let (earlier, steady) = self.parts.as_ref()?;
        let burst = &earlier[..self.burst_windows(earlier, steady)];
        burst.last().map(|window| window.end_ns)
    }

    /// The phases, where there is more than one.
    pub(crate) fn phases(&self) -> Vec<PhaseRecord> {
        let m = self.measurement;
        let mut phases: Vec<PhaseRecord> = m.first_write.iter().map(|m| first_write(m)).collect();
        match &self.parts {
            Some((earlier, steady)) => {
                let burst = self.burst_windows(earlier, steady);
                let (burst, settling) = earlier.split_at(burst);
                let named = [(PhaseKind::Burst, burst), (PhaseKind::Settling, settling)];
                for (name, windows) in named.into_iter().filter(|(_, w)| !w.is_empty()) {
                    phases.push(self.phase(name, &joined(windows)));
                }
                phases.push(self.phase(PhaseKind::Steady, steady));
            }
            None if !phases.is_empty() && !m.windows.is_empty() => {
                phases.push(self.phase(PhaseKind::Steady, &joined(&m.windows)));
            }
            None => phases.clear(),
        }
        phases
    }

    /// How many of the earlier windows are a burst. Between it and the steady part the rate fell.
    fn burst_windows(&self, earlier: &[Window], steady: &Window) -> usize {
        let rate = |start_ns: u64, end_ns: u64| {
            let ops = self.measurement.ops.values();
            let done = ops.map(|op| op.series.total_between(start_ns, end_ns).ops);
            done.sum::<u64>() as f64 / end_ns.saturating_sub(start_ns).max(1) as f64
        };
        let of = |window: &Window| rate(window.start_ns, window.end_ns);
        let half = &earlier[..earlier.len().div_ceil(2)];
        let level = half.iter().map(of).sum::<f64>() / half.len() as f64;
        let m = self.measurement;
        let least = headline_series(&m.ops).map_or(f64::INFINITY, |series| {
            estimate::least_fall_to(&series, steady.start_ns, m.wall_ns)
        });
        if level < least * of(steady) {
            return 0;
        }
        let least_rate = (BURST_SHARE * level).max((level + of(steady)) / 2.0);
        let is_burst = |window: &Window| of(window) >= least_rate;
        let last = earlier.iter().rposition(is_burst);
        last.map_or(0, |last| last + 1)
    }

    fn phase(&self, name: PhaseKind, window: &Window) -> PhaseRecord {
        let of_kind = |(kind, op): (&OpKind, &OpMeasurement)| {
            let mut series = op.series.clone();
            let cells = window.end_ns.div_ceil(series.interval_ns) as usize;
            series.cells.truncate(cells);
            let total = series.total_between(window.start_ns, window.end_ns);
            let from = Settling::new(window.start_ns, None);
            let rate = estimate::rate_after(&series, window.end_ns, from);
            let latency = histogram(window, *kind, |op| &op.latency);
            let phase = phase_op((total.ops, total.bytes), rate, &latency);
            (total.ops > 0).then_some((*kind, phase))
        };
        PhaseRecord {
            name,
            start_ns: self.measurement.start_ns + window.start_ns,
            end_ns: self.measurement.start_ns + window.end_ns,
            ops: self.measurement.ops.iter().filter_map(of_kind).collect(),
        }
    }

    /// One kind of operation in the row. Errors and short transfers count over the whole time.
    pub(crate) fn op_record(
        &self,
        kind: OpKind,
        op: &OpMeasurement,
        series: TimeSeries,
    ) -> OpRecord {
        let rate = estimate::rate_after(&op.series, self.measurement.wall_ns, self.settling);
        let (mut count, mut bytes) = (op.count, op.bytes);
        let (latency, latency_intended) = match &self.parts {
            None => (
                LatencySummary::of(&op.latency),
                op.latency_intended.as_ref().map(LatencySummary::of),
            ),
            Some((_, steady)) => {
                let total = op.series.total_between(steady.start_ns, u64::MAX);
                (count, bytes) = (total.ops, total.bytes);
                let intended = op.latency_intended.is_some();
                let intended = intended.then(|| histogram(steady, kind, |op| &op.intended));
                (
                    LatencySummary::of(&histogram(steady, kind, |op| &op.latency)),
                    intended.as_ref().map(LatencySummary::of),
                )
            }
        };
        OpRecord {
            count,
            bytes,
            errors: op.errors.clone(),
            short: op.short,
            iops: rate.ops,
            throughput: rate.bytes,
            latency,
            latency_intended,
            series,
        }
    }

    /// The figures of a row that do not belong to one kind of operation, those of the whole so far:
    /// where the row covers a part, they become those of the part.
    pub(crate) fn narrow(&self, row: &mut MeasurementRecord) {
        let (m, Some((_, steady))) = (self.measurement, &self.parts) else {
            return;
        };
        let length_ns = steady.length_ns().max(1) as f64;
        let share = steady.waited_ns as f64 / length_ns / steady.threads.max(1) as f64;
        row.cpu = steady.cpu;
        (row.asked, row.device) = device_use(m, steady);
        row.achieved_depth = steady.depth();
        row.dead_time_ns = m.dead_time_ns.map(|whole| dead_time_ns(m, steady, whole));
        row.starved = Starvation {
            share: share.min(1.0),
            mean_wait_ns: steady.waited_ns as f64 / steady.turns.max(1) as f64,
        };
    }
}

fn phase_op((count, bytes): (u64, u64), rate: RateEstimate, latency: &LatencyHistogram) -> PhaseOp {
    PhaseOp {
        count,
        bytes,
        rate: rate.ops,
        throughput: rate.bytes,
        latency: LatencySummary::short(latency),
    }
}

/// The first write of a file, as a phase of the workload that overwrites it.
fn first_write(m: &Measurement) -> PhaseRecord {
    let of_kind = |(kind, op): (&OpKind, &OpMeasurement)| {
        let rate = estimate::rate(&op.series, m.wall_ns);
        let phase = phase_op((op.count, op.bytes), rate, &op.latency);
        (*kind == OpKind::Write).then_some((*kind, phase))
    };
    PhaseRecord {
        name: PhaseKind::FirstWrite,
        start_ns: m.start_ns,
        end_ns: m.start_ns + m.wall_ns,
        ops: m.ops.iter().filter_map(of_kind).collect(),
    }
}

/// Time between two requests of a worker with one request in flight; that of the `whole` where
/// nothing completed in the window.
fn dead_time_ns(m: &Measurement, steady: &Window, whole: f64) -> f64 {
    let counted = m.ops.iter().filter(|(kind, _)| **kind != OpKind::Commit);
    let done = counted.map(|(_, op)| op.series.total_between(steady.start_ns, u64::MAX).ops);
    let done: u64 = done.sum();
    if done == 0 {
        return whole;
    }
    (1.0 - steady.depth()).max(0.0) * steady.length_ns() as f64 / done as f64
}

/// What was requested of the disks and what they did in the steady part; over the whole time where
/// the parts are unknown. Other processes are always those of the whole time.
fn device_use(m: &Measurement, steady: &Window) -> (ByteCount, DeviceUse) {
    let Some(disks) = steady.disks.filter(|_| steady.asked.with_trims() > 0) else {
        return (m.asked, m.device.clone());
    };
    let queue_depth = |queued_ms: u64| queued_ms as f64 * 1e6 / steady.length_ns().max(1) as f64;
    let device = DeviceUse {
        read_bytes: disks.read_bytes,
        write_bytes: disks.write_bytes,
        read_ops: disks.read_ops,
        write_ops: disks.write_ops,
        flush_ops: disks.flush_ops,
        queue_depth: m.device.queue_depth.and(disks.queued_ms).map(queue_depth),
        times: None,
        trim_bytes: disks.trim_bytes,
        ..m.device.clone()
    };
    let accounted = m.device.accounted;
    let accounted = accounted.and_then(|_| device.share_of(steady.asked));
    let device = DeviceUse {
        accounted,
        ..device
    };
    (steady.asked, device)
}

/// Whether a request waited for longer than half of the window.
fn is_stall(window: &Window) -> bool {
    window.ops.keys().any(|kind| {
        let latencies = histogram(window, *kind, |op| &op.latency);
        latencies.max_ns() > window.length_ns() / 2
    })
}

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

/// The time in which all requests in flight complete at the rate from `from_ns` on. Those that
/// were sent before waited at another rate: Little's law does not hold for them.
fn turnover_ns(m: &Measurement, from_ns: u64) -> u64 {
    let left_ns = m.wall_ns.saturating_sub(from_ns);
    let of = |series: TimeSeries| series.total_between(from_ns, m.wall_ns).ops;
    let ops = headline_series(&m.ops).map_or(0, of);
    let in_flight = u64::from(m.workload.depth) * u64::from(m.workload.workers);
    let turnover_ns = in_flight as f64 * left_ns as f64 / ops.max(1) as f64;
    (turnover_ns as u64).min(left_ns / TURNOVER_PARTS_MIN)
}

/// Where the workload as a whole settles: reads and writes of a mix share a disk, so they share the
/// cut.
fn common_settling(m: &Measurement) -> Settling {
    headline_series(&m.ops).map_or(Settling::WHOLE, |series| {
        if slices::are_apart(&m.slices) {
            let (rates, ends_ns) = slice_rates(m);
            estimate::settling_of_slices(&series, m.wall_ns, (&rates, &ends_ns))
        } else {
            estimate::settling(&series, m.wall_ns)
        }
    })
}

/// The steady part begins in this slice, with the first cells below the middle of the two levels.
fn settling_after(m: &Measurement, fall: usize) -> Settling {
    let begin_ns: u64 = m.slices[..fall].iter().map(|slice| slice.wall_ns).sum();
    let settling_ns = headline_series(&m.ops).map_or(begin_ns, |series| {
        let rate = |from_ns: u64, to_ns: u64| {
            let ops = series.total_between(from_ns, to_ns).ops;
            ops as f64 / to_ns.saturating_sub(from_ns).max(1) as f64
        };
        let middle = (rate(0, begin_ns) + rate(begin_ns, m.wall_ns)) / 2.0;
        let end_ns = begin_ns + m.slices[fall].wall_ns;
        let steps = (begin_ns..end_ns).step_by(FALL_STEP_NS as usize);
        let low = |from_ns: &u64| rate(*from_ns, from_ns + FALL_STEP_NS) < middle;
        steps.into_iter().find(low).unwrap_or(end_ns)
    });
    Settling::new(settling_ns, Some(true))
}

/// The rate of all headline operations in each slice, and when it ends.
fn slice_rates(m: &Measurement) -> (Vec<f64>, Vec<u64>) {
    let mut end_ns = 0;
    let of_slice = |slice: &TimeSlice| {
        end_ns += slice.wall_ns;
        let ops = OpKind::headline(&m.ops).filter_map(|(kind, _)| slice.ops.get(&kind));
        (ops.map(|op| op.iops).sum::<f64>(), end_ns)
    };
    m.slices.iter().map(of_slice).unzip()
}

/// The operations that a reader looks at, over time.
fn headline_series(ops: &PerOp<OpMeasurement>) -> Option<TimeSeries> {
    estimate::summed(OpKind::headline(ops).map(|(_, op)| &op.series))
}

#[cfg(test)]
mod tests {
    use crate::fixture;
    use diskproof_model::histogram::LatencyHistogram;
    use diskproof_model::measurement::{Measurement, OpKind};
    use diskproof_model::record::{MeasurementRecord, PhaseKind};
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

    fn judged(change: impl Fn(&mut Measurement)) -> MeasurementRecord {
        let mut record = fixture::faulty("random-read-d32", change);
        fixture::measured(&mut record, "random-read-d32").clone()
    }

    #[test]
    fn figures_of_a_row_cover_the_steady_window() {
        let m = judged(burst);
        let read = &m.ops[&OpKind::Read];
        assert!(m.settling_ns >= 1_200_000_000 && m.settled == Some(true));
        assert_eq!(m.settling_ns % 100_000_000, 0, "it ends with a window");
        let seconds = m.steady_ns() as f64 / 1e9;
        assert!((read.iops.value - 10_000.0).abs() < 1.0, "{:?}", read.iops);
        assert_eq!(read.count as f64, seconds * 10_000.0);
        assert_eq!(
            (read.latency.mean, read.latency.min),
            (3_200_000.0, 3_198_976)
        );
        assert_eq!(m.asked.read_bytes, read.bytes);
        assert_eq!(
            (m.device.read_bytes, m.device.accounted),
            (read.bytes, Some(1.0))
        );
        assert!((m.cpu_share() - 0.1).abs() < 1e-9, "{}", m.cpu_share());
        assert_eq!(m.achieved_depth, 32.0);
        // Little's law holds in the window.
        assert!((read.iops.value * read.latency.mean / 1e9 - m.achieved_depth).abs() < 0.01);
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
            m.settling_ns
        };
        let shallow = settling_ns(32);
        assert_eq!(settling_ns(3200) - shallow, 300_000_000);
        assert_eq!(settling_ns(3900) - shallow, 400_000_000);
        assert!(settling_ns(1_000_000) - shallow <= 1_000_000_000);
    }

    #[test]
    fn earlier_part_becomes_a_phase() {
        let m = judged(burst);
        let names: Vec<PhaseKind> = m.phases.iter().map(|phase| phase.name).collect();
        assert_eq!(
            names,
            [PhaseKind::Burst, PhaseKind::Settling, PhaseKind::Steady]
        );
        let [first, between, last] = &m.phases[..] else {
            panic!("{:?}", m.phases)
        };
        let cut_ns = m.settling_ns;
        assert_eq!((first.start_ns, first.end_ns), (0, 1_200_000_000));
        assert_eq!((between.start_ns, between.end_ns), (1_200_000_000, cut_ns));
        assert_eq!((last.start_ns, last.end_ns), (cut_ns, m.wall_ns));
        let (fast, slow) = (&first.ops[&OpKind::Read], &last.ops[&OpKind::Read]);
        assert_eq!(fast.rate.value, 40_000.0);
        assert!(fast.latency.p50 < Some(1_000_000));
        assert_eq!(slow.rate, m.ops[&OpKind::Read].iops);
        assert_eq!(slow.latency.p50, m.ops[&OpKind::Read].latency.p50);
        let all = m.phases.iter().map(|phase| phase.ops[&OpKind::Read].count);
        assert_eq!(m.ops[&OpKind::Read].series.total().ops, all.sum::<u64>());
    }

    #[test]
    fn first_write_of_a_file_is_a_phase_before_the_measured_time() {
        let m = judged(|m| {
            let first = fixture::run().1.remove(0);
            m.start_ns = 20_000_000_000;
            m.first_write = Some(Box::new(first));
        });
        let names: Vec<PhaseKind> = m.phases.iter().map(|phase| phase.name).collect();
        assert_eq!(names, [PhaseKind::FirstWrite, PhaseKind::Steady]);
        assert_eq!(m.phases[0].ops[&OpKind::Write].rate.value, 200.0);
        assert_eq!(
            (m.phases[0].start_ns, m.phases[0].end_ns),
            (0, 5_000_000_000)
        );
        assert_eq!(
            (m.phases[1].start_ns, m.steady_from_ns()),
            (20_000_000_000, 0)
        );
    }

    #[test]
    fn row_covers_the_whole_where_windows_are_unknown() {
        let m = judged(|m| {
            burst(m);
            m.windows.clear();
        });
        assert_eq!((m.settling_ns, m.settled), (0, Some(false)));
        assert!(m.phases.is_empty());
        assert_eq!(m.ops[&OpKind::Read].count, 86_000);
    }
}
