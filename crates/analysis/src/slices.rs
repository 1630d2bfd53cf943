//! Widens the interval of a workload that was measured in slices, which others interrupt, to the
//! variation between its slices (docs/verdict.md and docs/compare.md explain it), and says what
//! else follows from the rates of its slices alone.

use crate::estimate;
use crate::estimate::student::multiple_95;
use crate::estimate::{mean, variance};
use diskproof_model::measurement::{Measurement, OpKind, PerOp};
use diskproof_model::record::Estimate;
use diskproof_model::row::OpFigures;
use diskproof_model::window::{SLICES_MIN, TimeSlice};

/// True if a workload in slices may end before its time, because its rate is known to `goal`, both
/// over its series and over its slices.
pub fn may_end(measurement: &Measurement, goal: f64) -> bool {
    let counted = measurement
        .ops
        .iter()
        .filter(|(kind, _)| **kind != OpKind::Sync)
        .map(|(_, op)| &op.series);
    let Some(series) = estimate::summed(counted) else {
        return false;
    };
    if !estimate::may_end(
        &series,
        measurement.wall_ns,
        measurement.workload.stop.time_ns,
        goal,
    ) {
        return false;
    }
    let rates: Vec<f64> = measurement.slices.iter().map(rate_without_syncs).collect();
    match half_width(&rates) {
        Some(half_width) => half_width <= goal * mean(&rates),
        None => false,
    }
}

/// Operations per second in a slice, without syncs.
fn rate_without_syncs(slice: &TimeSlice) -> f64 {
    slice
        .ops
        .iter()
        .filter(|(kind, _)| **kind != OpKind::Sync)
        .map(|(_, op)| op.iops)
        .sum()
}

/// Operations of these kinds per second in a slice.
pub(crate) fn rate_of_kinds(slice: &TimeSlice, kinds: &[OpKind]) -> f64 {
    kinds
        .iter()
        .flat_map(|kind| slice.ops.get(kind))
        .map(|op| op.iops)
        .sum()
}

/// Widens the intervals of a row to the variation of its slices. Only slices after `settling_ns` of
/// measured time count. Slices that follow each other at once all contain the same slow changes, so
/// for them the parts of the measured time count, too.
pub(crate) fn widen(ops: &mut PerOp<OpFigures>, measurement: &Measurement, settling_ns: u64) {
    let steady = after(&measurement.slices, settling_ns);
    if !are_apart(&measurement.slices) {
        for (kind, op) in ops.iter_mut() {
            let series = &measurement.ops[kind].series;
            if let Some(slow) = estimate::slow_changes(series, measurement.wall_ns, settling_ns) {
                for rate in [&mut op.iops, &mut op.throughput] {
                    rate.widen(slow.relative_half_width * rate.value, slow.parts);
                }
            }
        }
    }
    for (kind, op) in ops {
        let mut iops = Vec::new();
        let mut throughput = Vec::new();
        let mut count = 0;
        for slice in steady {
            match slice.ops.get(kind) {
                Some(part) => {
                    iops.push(part.iops);
                    throughput.push(part.bytes_per_second);
                    count += part.count;
                }
                None => {
                    iops.push(0.0);
                    throughput.push(0.0);
                }
            }
        }
        widen_estimate(&mut op.iops, &iops, count);
        widen_estimate(&mut op.throughput, &throughput, count);
    }
}

/// Widens an estimate to Student's t of the slices' rates, but not below one of the `count`
/// operations: equal rates of short slices are known to one operation only.
pub(crate) fn widen_estimate(estimate: &mut Estimate, rates: &[f64], count: u64) {
    let grain = mean(rates) / count.max(1) as f64;
    if let Some(half_width) = half_width(rates) {
        estimate.widen(half_width.max(grain), rates.len() as u64);
    }
}

/// True if slices lie apart in time: there is at least as much time between them as in them.
pub(crate) fn are_apart(slices: &[TimeSlice]) -> bool {
    let (Some(first), Some(last)) = (slices.first(), slices.last()) else {
        return false;
    };
    let measured_ns: u64 = slices.iter().map(|slice| slice.wall_ns).sum();
    let spanned_ns = (last.start_ns + last.wall_ns).saturating_sub(first.start_ns);
    slices.len() >= SLICES_MIN && spanned_ns >= measured_ns.saturating_mul(2)
}

/// True if a fall of the rate at `at_ns` of the measured time may be a chance difference between
/// two slices.
pub(crate) fn fall_by_chance(slices: &[TimeSlice], at_ns: u64) -> bool {
    are_apart(slices) && estimate::falls_by_chance(at_ns, &ends_ns(slices))
}

/// The end of each slice, in nanoseconds of measured time.
pub(crate) fn ends_ns(slices: &[TimeSlice]) -> Vec<u64> {
    let mut end_ns = 0;
    let mut ends_ns = Vec::new();
    for slice in slices {
        end_ns += slice.wall_ns;
        ends_ns.push(end_ns);
    }
    ends_ns
}

/// The slices that begin after so much measured time.
pub(crate) fn after(slices: &[TimeSlice], settling_ns: u64) -> &[TimeSlice] {
    let mut begin_ns = 0;
    let mut first = 0;
    while first < slices.len() && begin_ns < settling_ns {
        begin_ns += slices[first].wall_ns;
        first += 1;
    }
    &slices[first..]
}

/// Half-width of the 95 % interval of the mean of these rates, t(0.975, n − 1) s/√n of n slices;
/// `None` of fewer than [`SLICES_MIN`].
fn half_width(rates: &[f64]) -> Option<f64> {
    if rates.len() < SLICES_MIN {
        return None;
    }
    let count = rates.len() as f64;
    Some(multiple_95(count - 1.0) * (variance(rates) / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::fixture::test_rng::TestRng;
    use diskproof_model::series::Cell;

    fn estimate(half_width_95: Option<f64>) -> Estimate {
        Estimate {
            n: 20,
            value: 100.0,
            half_width_95,
            unit: "1/s".to_owned(),
        }
    }

    /// 98, 100 and 102: s = 2, t(0.975, 2) = 4.302653 (scipy): 4.302653 × 2/√3 = 4.968276.
    #[test]
    fn interval_is_never_narrower_than_student_of_the_slices() {
        let rates = [98.0, 100.0, 102.0];
        let widened = |own: Option<f64>, rates: &[f64]| {
            let mut known = estimate(own);
            widen_estimate(&mut known, rates, 1000);
            (known.n, known.half_width_95)
        };
        let (n, half_width) = widened(Some(1.0), &rates);
        assert_eq!(n, 3);
        assert!((half_width.unwrap() - 4.968_275_7).abs() < 1e-6);
        assert_eq!(widened(Some(5.0), &rates), (20, Some(5.0)));
        assert_eq!(widened(None, &rates), (n, half_width));
        assert_eq!(widened(Some(1.0), &rates[..2]), (20, Some(1.0)));
        // Equal rates in which 1000 operations were counted.
        assert_eq!(widened(None, &[100.0; 3]), (3, Some(0.1)));
        assert_eq!(widened(Some(0.2), &[100.0; 3]), (20, Some(0.2)));
    }

    /// A slice of an even disk of this many operations per second.
    fn slice(rate: u64, start_ns: u64, wall_ns: u64) -> Measurement {
        let mut m = fixture::run().measurements.remove(1);
        (m.start_ns, m.wall_ns, m.slices) = (start_ns, wall_ns, Vec::new());
        for op in m.ops.values_mut() {
            let cells = wall_ns / op.series.interval_ns;
            let ops = rate / 100;
            let cell = Cell {
                ops,
                bytes: ops * 8192,
                ..Cell::default()
            };
            op.series.cells = vec![cell; cells as usize];
            (op.count, op.bytes) = (ops * cells, ops * cells * 8192);
        }
        m
    }

    fn joined(rates: &[u64]) -> Measurement {
        let second = 1_000_000_000;
        let mut all = slice(rates[0], 0, second);
        for (index, rate) in rates.iter().enumerate().skip(1) {
            all.append(slice(*rate, 3 * second * index as u64, second));
        }
        all
    }

    #[test]
    fn slices_join_to_one_measurement() {
        let one = slice(10_000, 0, 1_000_000_000);
        let all = joined(&[10_000, 12_000, 11_000]);
        assert_eq!((all.wall_ns, all.slices.len()), (3_000_000_000, 3));
        assert_eq!(all.cpu.user_ns, 3 * one.cpu.user_ns);
        assert_eq!(all.device.read_bytes, 3 * one.device.read_bytes);
        let op = all.ops.values().next().unwrap();
        assert_eq!((op.count, op.series.total().ops), (33_000, 33_000));
        assert_eq!(op.series.cells.len(), 300);
        assert_eq!(op.series.cells[100].ops, 120);
        assert_eq!(all.slices[2].start_ns, 6_000_000_000);
        let rate = all.slices[1].ops.values().next().unwrap();
        assert_eq!((rate.count, rate.iops), (12_000, 12_000.0));
    }

    #[test]
    fn slices_before_the_settling_time_do_not_count() {
        let slices = joined(&[10_000, 12_000, 11_000]).slices;
        assert_eq!(after(&slices, 0).len(), 3);
        assert_eq!(after(&slices, 1).len(), 2);
        assert_eq!(after(&slices, 1_000_000_000).len(), 2);
        assert_eq!(after(&slices, 5_000_000_000).len(), 0);
    }

    /// The same with the noise of a medium: a more even rate may be that of a limiter.
    fn noisy(rates: &[u64]) -> Measurement {
        let mut all = joined(rates);
        let mut rng = TestRng(7);
        for op in all.ops.values_mut() {
            for cell in &mut op.series.cells {
                cell.ops = (cell.ops as f64 * (1.0 + 0.05 * rng.normal())) as u64;
            }
        }
        all
    }

    #[test]
    fn workload_ends_early_only_where_its_slices_agree() {
        let ends = |rates: &[u64]| may_end(&noisy(rates), 0.02);
        assert!(ends(&[10_000; 5]));
        assert!(!ends(&[10_000, 11_000, 10_000, 11_000, 10_500]));
        assert!(!ends(&[10_000, 10_000]), "two are too few");
    }

    /// Runs of five slices whose pace varies by 3 % from slice to slice, and by 0.5 % from run to
    /// run. The batches of a run alone take it for known to 0.1 %.
    #[test]
    fn next_run_lies_in_the_interval_as_often_as_intervals_of_means_allow() {
        let mut rng = TestRng(3);
        let mut run = || {
            let pace = 1.0 + 0.005 * rng.normal();
            let rates: Vec<f64> = (0..5)
                .map(|_| 10_000.0 * (pace + 0.03 * rng.normal()))
                .collect();
            let mut known = Estimate {
                value: mean(&rates),
                ..estimate(Some(10.0))
            };
            widen_estimate(&mut known, &rates, 1000);
            known
        };
        let pairs: Vec<(Estimate, Estimate)> = (0..400).map(|_| (run(), run())).collect();
        let inside = |(known, next): &&(Estimate, Estimate)| {
            (known.value - next.value).abs() <= known.half_width_95.unwrap()
        };
        let covered = pairs.iter().filter(inside).count();
        println!("the next run lies inside in {covered} of 400");
        assert!(covered >= 320, "{covered}");
    }
}
