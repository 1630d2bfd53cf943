//! The part of the measured time that the figures of a row cover: all of it, or the steady part
//! that is left after an earlier one. Every figure of the row is taken from the same windows.

use crate::estimate::{self, Settling};
use diskproof_model::histogram::{LatencyHistogram, LatencyPart};
use diskproof_model::measurement::{
    ByteCount, CpuTime, DeviceUse, Measurement, OpKind, OpMeasurement, Starvation,
};
use diskproof_model::record::{LatencySummary, OpRecord, PhaseKind, PhaseOp, PhaseRecord};
use diskproof_model::series::TimeSeries;
use diskproof_model::window::{Window, WindowLatency};
use std::collections::BTreeMap;

/// What a row covers.
pub(crate) struct SteadyPart<'a> {
    measurement: &'a Measurement,
    pub(crate) settling: Settling,
    /// The earlier part and the steady one; `None` where the row covers the whole.
    parts: Option<(Window, Window)>,
}

/// The figures of a row that do not belong to one kind of operation.
pub(crate) struct RowFigures {
    pub(crate) cpu: CpuTime,
    pub(crate) asked: ByteCount,
    pub(crate) device: DeviceUse,
    pub(crate) achieved_depth: f64,
    pub(crate) dead_time_ns: Option<f64>,
    pub(crate) starved: Starvation,
}

impl<'a> SteadyPart<'a> {
    /// Of a measurement. The steady part begins with the first window that starts after the rate
    /// has settled.
    pub(crate) fn of(measurement: &'a Measurement) -> Self {
        let found = common_settling(measurement);
        let whole = |settled| Self {
            measurement,
            settling: Settling {
                settling_ns: 0,
                settled,
            },
            parts: None,
        };
        if found.settling_ns == 0 {
            return whole(found.settled);
        }
        let windows = &measurement.windows;
        let first = windows
            .iter()
            .position(|window| window.start_ns >= found.settling_ns);
        match first.map(|first| windows.split_at(first)) {
            Some((earlier, steady)) if !earlier.is_empty() && !steady.is_empty() => Self {
                measurement,
                settling: Settling {
                    settling_ns: steady[0].start_ns,
                    settled: found.settled,
                },
                parts: Some((joined(earlier), joined(steady))),
            },
            // Without windows the latencies of the parts are unknown.
            _ => whole(Some(false)),
        }
    }

    /// The phases, where there is more than one.
    pub(crate) fn phases(&self) -> Vec<PhaseRecord> {
        let Some((earlier, steady)) = &self.parts else {
            return Vec::new();
        };
        let first = self.phase(PhaseKind::Settling, earlier);
        let last = self.phase(PhaseKind::Steady, steady);
        let rate =
            |phase: &PhaseRecord| -> f64 { phase.ops.values().map(|op| op.rate.value).sum() };
        let kind = if rate(&first) > rate(&last) {
            PhaseKind::Burst
        } else {
            PhaseKind::Settling
        };
        vec![
            PhaseRecord {
                name: kind,
                ..first
            },
            last,
        ]
    }

    fn phase(&self, name: PhaseKind, window: &Window) -> PhaseRecord {
        let of_kind = |(kind, op): (&OpKind, &OpMeasurement)| {
            let mut series = op.series.clone();
            let cells = window.end_ns.div_ceil(series.interval_ns) as usize;
            series.cells.truncate(cells);
            let total = series.total_between(window.start_ns, window.end_ns);
            let rate = estimate::rate_after(
                &series,
                window.end_ns,
                Settling {
                    settling_ns: window.start_ns,
                    settled: None,
                },
            );
            let phase = PhaseOp {
                count: total.ops,
                bytes: total.bytes,
                rate: rate.ops,
                throughput: rate.bytes,
                latency: LatencySummary::of(&histogram(window, *kind, |op| &op.latency)),
            };
            (total.ops > 0).then_some((*kind, phase))
        };
        PhaseRecord {
            name,
            start_ns: window.start_ns,
            end_ns: window.end_ns,
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
                let intended = op
                    .latency_intended
                    .as_ref()
                    .map(|_| histogram(steady, kind, |op| &op.intended));
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

    /// The other figures of the row.
    pub(crate) fn row_figures(&self) -> RowFigures {
        let m = self.measurement;
        let Some((_, steady)) = &self.parts else {
            return RowFigures {
                cpu: m.cpu,
                asked: m.asked,
                device: m.device.clone(),
                achieved_depth: m.achieved_depth,
                dead_time_ns: m.dead_time_ns,
                starved: m.starved,
            };
        };
        let length_ns = steady.length_ns().max(1) as f64;
        let (asked, device) = device_use(m, steady);
        RowFigures {
            cpu: steady.cpu,
            asked,
            device,
            achieved_depth: steady.depth,
            dead_time_ns: m.dead_time_ns.map(|whole| dead_time_ns(m, steady, whole)),
            starved: Starvation {
                share: (steady.waited_ns as f64 / length_ns / steady.threads.max(1) as f64)
                    .min(1.0),
                mean_wait_ns: steady.waited_ns as f64 / steady.turns.max(1) as f64,
            },
        }
    }
}

/// Time between two requests of a worker with one request in flight; that of the `whole` where
/// nothing completed in the window.
fn dead_time_ns(m: &Measurement, steady: &Window, whole: f64) -> f64 {
    let done = m
        .ops
        .iter()
        .filter(|(kind, _)| **kind != OpKind::Commit)
        .map(|(_, op)| op.series.total_between(steady.start_ns, u64::MAX).ops)
        .sum::<u64>();
    if done == 0 {
        return whole;
    }
    (1.0 - steady.depth).max(0.0) * steady.length_ns() as f64 / done as f64
}

/// What was requested of the disks and what they did in the steady part; over the whole time where
/// the parts are unknown. Other processes are always those of the whole time.
fn device_use(m: &Measurement, steady: &Window) -> (ByteCount, DeviceUse) {
    let Some(disks) = steady.disks.filter(|_| steady.asked.total() > 0) else {
        return (m.asked, m.device.clone());
    };
    let moved = (disks.read_bytes + disks.write_bytes) as f64;
    let queue_depth = |queued_ms: u64| queued_ms as f64 * 1e6 / steady.length_ns().max(1) as f64;
    let device = DeviceUse {
        read_bytes: disks.read_bytes,
        write_bytes: disks.write_bytes,
        read_ops: disks.read_ops,
        write_ops: disks.write_ops,
        flush_ops: disks.flush_ops,
        queue_depth: m.device.queue_depth.and(disks.queued_ms).map(queue_depth),
        accounted: m
            .device
            .accounted
            .map(|_| moved / steady.asked.total() as f64),
        ..m.device.clone()
    };
    (steady.asked, device)
}

fn joined(windows: &[Window]) -> Window {
    let mut all = windows[0].clone();
    windows[1..].iter().for_each(|next| all.append(next));
    all
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

/// Where the workload as a whole settles: reads and writes of a mix share a disk, so they share the
/// cut.
fn common_settling(m: &Measurement) -> Settling {
    headline_series(&m.ops).map_or(
        Settling {
            settling_ns: 0,
            settled: None,
        },
        |series| estimate::settling(&series, m.wall_ns),
    )
}

/// The operations that a reader looks at, over time.
fn headline_series(ops: &BTreeMap<OpKind, OpMeasurement>) -> Option<TimeSeries> {
    let headline = if ops.contains_key(&OpKind::Commit) {
        &[OpKind::Commit][..]
    } else {
        &[OpKind::Read, OpKind::Write]
    };
    let mut all: Option<TimeSeries> = None;
    for op in headline.iter().filter_map(|kind| ops.get(kind)) {
        match &mut all {
            Some(all) => all.merge(&op.series),
            None => all = Some(op.series.clone()),
        }
    }
    all
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
        let record = fixture::faulty("random-read-d32", change);
        let mut all = record.measurements.into_iter();
        all.find(|m| m.workload.name == "random-read-d32").unwrap()
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

    #[test]
    fn earlier_part_becomes_a_phase() {
        let m = judged(burst);
        let [first, last] = &m.phases[..] else {
            panic!("{:?}", m.phases)
        };
        assert_eq!(
            (first.name, last.name),
            (PhaseKind::Burst, PhaseKind::Steady)
        );
        assert_eq!((first.start_ns, first.end_ns), (0, m.settling_ns));
        assert_eq!((last.start_ns, last.end_ns), (m.settling_ns, m.wall_ns));
        let (fast, slow) = (&first.ops[&OpKind::Read], &last.ops[&OpKind::Read]);
        assert!(fast.rate.value > 25_000.0 && fast.latency.p50 < Some(1_000_000));
        assert_eq!(slow.rate, m.ops[&OpKind::Read].iops);
        assert_eq!(slow.latency.hdr, m.ops[&OpKind::Read].latency.hdr);
        assert_eq!(
            m.ops[&OpKind::Read].series.total().ops,
            fast.count + slow.count
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
