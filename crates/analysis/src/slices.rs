//! Draws conclusions from the rates of slices, which are parts of a workload that others interrupt.
//!
//! The first half widens the interval of a workload to the variation between its slices
//! (docs/verdict.md and docs/compare.md explain it). The second half finds falls that workloads
//! share: the last slices of a single workload may be slow by chance, but several workloads that
//! fall at one moment to one rate are behind a limiter whose burst credit ended.

use crate::estimate;
use crate::estimate::student::multiple_95;
use crate::estimate::{mean, variance};
use diskproof_model::measurement::{Measurement, OpKind, PerOp};
use diskproof_model::plan::SyncPolicy;
use diskproof_model::record::Estimate;
use diskproof_model::row::{OpFigures, Row};
use diskproof_model::window::{SLICES_MIN, TimeSlice};
use std::collections::{BTreeMap, BTreeSet};

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

// The thresholds of a shared fall were chosen, not measured. The tests at the end of this file
// hold which falls they find.

/// A fall divides the rate of a workload by at least this.
const FALL_MIN: f64 = 1.5;
/// At least this many workloads share a fall.
const WORKLOADS_MIN: usize = 2;
/// They have at least this many slices after it, together.
const SLICES_AFTER_MIN: usize = 3;
/// A rate after the fall equals the limit if it differs by at most this share, or by what counting
/// in short slices explains. At least two in three workloads must have such a rate.
const LIMIT_APART_MAX: f64 = 0.1;
/// For at least this share of the time before the fall, a workload must be above the middle of its
/// two levels.
const HIGH_SHARE: f64 = 0.8;
/// A workload that reached this multiple of the limit before the fall has to fall, too: one that
/// did not contradicts the limit.
const SPARED_MAX: f64 = 2.0;

/// The slices of one workload, and the operations that count in them.
pub(crate) struct WorkloadSlices<'a> {
    target: usize,
    slices: &'a [TimeSlice],
    kinds: Vec<OpKind>,
    /// True if it always has several requests in flight that wait for a limiter, and no syncs.
    is_saturating: bool,
}

/// The levels of a workload before and after a moment, in operations per second.
struct Levels {
    /// The index of the first slice after the fall.
    first_after: usize,
    before: f64,
    after: f64,
    /// True if it fell at the moment, and to a level that lasted.
    has_fallen: bool,
    /// The rate after the fall, without the slice in which it may have happened; `None` where no
    /// other slice follows.
    limited: Option<LimitedRate>,
}

/// A rate that a limiter may allow.
#[derive(Clone, Copy)]
struct LimitedRate {
    rate: f64,
    /// Counting may change it by this: one operation at each end of a slice.
    grain: f64,
}

impl LimitedRate {
    /// The difference from the limit that does not count.
    fn tolerance(&self, limit: f64) -> f64 {
        (LIMIT_APART_MAX * limit).max(self.grain)
    }

    fn is_above(&self, limit: f64) -> bool {
        self.rate - limit - self.tolerance(limit) > 0.0
    }

    /// True if the workload used all of the limit.
    fn reaches(&self, limit: f64) -> bool {
        limit - self.rate - self.tolerance(limit) <= 0.0
    }
}

impl<'a> WorkloadSlices<'a> {
    /// The slices of a measurement that is not judged yet.
    pub(crate) fn from_measurement(measurement: &'a Measurement) -> Self {
        let kinds = if measurement.ops.contains_key(&OpKind::Transaction) {
            vec![OpKind::Transaction]
        } else if measurement.ops.contains_key(&OpKind::Commit) {
            vec![OpKind::Commit]
        } else {
            OpKind::TRANSFERS.to_vec()
        };
        Self::with_kinds(measurement, kinds)
    }

    /// The slices of a row, whose headline operations count.
    pub(crate) fn from_row(row: &'a Row) -> Self {
        let mut kinds = Vec::new();
        for (kind, _) in row.headline_ops() {
            kinds.push(kind);
        }
        Self::with_kinds(&row.data, kinds)
    }

    fn with_kinds(measurement: &'a Measurement, kinds: Vec<OpKind>) -> Self {
        let workload = &measurement.workload;
        let is_single = workload.depth <= 1 && workload.workers <= 1;
        Self {
            target: measurement.target,
            slices: &measurement.slices,
            is_saturating: workload.sync == SyncPolicy::None && !is_single,
            kinds,
        }
    }

    fn rate(&self, slice: &TimeSlice) -> f64 {
        rate_of_kinds(slice, &self.kinds)
    }

    /// Operations per second over several slices.
    fn mean_rate(&self, slices: &[TimeSlice]) -> f64 {
        let operations: f64 = slices
            .iter()
            .map(|slice| self.rate(slice) * slice.wall_ns as f64)
            .sum();
        operations / time_ns(slices)
    }

    /// The moment at which the workload had measured for `at_ns`, in nanoseconds after the start of
    /// the run.
    fn moment_ns(&self, at_ns: u64) -> Option<u64> {
        let mut measured_ns = 0;
        for slice in self.slices {
            let offset_ns = at_ns.saturating_sub(measured_ns);
            measured_ns += slice.wall_ns;
            if at_ns <= measured_ns {
                return Some(slice.start_ns + offset_ns);
            }
        }
        None
    }

    /// The rate before a moment of the run divided by that after it.
    fn fall_factor(&self, moment_ns: u64) -> Option<f64> {
        let levels = self.levels(moment_ns)?;
        Some(levels.before / levels.after.max(f64::MIN_POSITIVE))
    }

    /// The levels before and after a moment of the run; `None` where one of them is unknown.
    fn levels(&self, moment_ns: u64) -> Option<Levels> {
        let first_after = self
            .slices
            .partition_point(|slice| slice.start_ns < moment_ns);
        let (earlier, later) = self.slices.split_at(first_after);
        if earlier.is_empty() || later.is_empty() {
            return None;
        }
        let before = self.mean_rate(earlier);
        let after = self.mean_rate(later);
        let middle = (before + after) / 2.0;
        let high_ns: f64 = earlier
            .iter()
            .filter(|slice| self.rate(slice) > middle)
            .map(|slice| slice.wall_ns as f64)
            .sum();
        let has_fallen = after > 0.0
            && before >= FALL_MIN * after
            && high_ns >= HIGH_SHARE * time_ns(earlier)
            && later.iter().all(|slice| self.rate(slice) < middle);
        let lasting = if later[0].start_ns == moment_ns {
            &later[1..]
        } else {
            later
        };
        let limited = if lasting.is_empty() {
            None
        } else {
            Some(LimitedRate {
                rate: self.mean_rate(lasting),
                grain: 2.0 * lasting.len() as f64 * 1e9 / time_ns(lasting),
            })
        };
        Some(Levels {
            first_after,
            before,
            after,
            has_fallen,
            limited,
        })
    }
}

fn time_ns(slices: &[TimeSlice]) -> f64 {
    slices.iter().map(|slice| slice.wall_ns as f64).sum()
}

/// True if the whole machine became slower when this workload did, after `at_ns` of its measured
/// time: every other workload that ran in turns with it fell by at least the root of its factor.
/// Without a common limit such a fall is not a burst credit of the disk. The caller must pass a
/// workload that shares no fall ([`shared_fall`]).
pub(crate) fn machine_fell(workloads: &[WorkloadSlices<'_>], index: usize, at_ns: u64) -> bool {
    let own = &workloads[index];
    let Some(moment_ns) = own.moment_ns(at_ns) else {
        return false;
    };
    let least = match own.fall_factor(moment_ns) {
        Some(factor) if factor > 1.0 => factor.sqrt(),
        _ => return false,
    };
    let mut fallen = 0;
    for (other, workload) in workloads.iter().enumerate() {
        if other == index || workload.target != own.target {
            continue;
        }
        match workload.fall_factor(moment_ns) {
            Some(factor) if factor >= least => fallen += 1,
            Some(_) => return false,
            None => {}
        }
    }
    fallen >= WORKLOADS_MIN
}

/// For each workload, the first slice after the fall that the workloads share, to the rate with
/// which the run ended. `None` for a workload that did not fall, or was not measured on both sides
/// of it.
pub(crate) fn shared_fall(workloads: &[WorkloadSlices<'_>]) -> Vec<Option<usize>> {
    // Each target has a limiter of its own.
    let mut moments: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
    for workload in workloads {
        let own = moments.entry(workload.target).or_default();
        own.extend(workload.slices.iter().map(|slice| slice.start_ns));
    }
    let mut firsts = vec![None; workloads.len()];
    for (target, moments_ns) in moments {
        for moment_ns in moments_ns {
            if let Some(fallen) = fall_at(workloads, moment_ns, target) {
                for member in fallen {
                    firsts[member.index] = Some(member.levels.first_after);
                }
                break;
            }
        }
    }
    firsts
}

/// A workload with its levels around a moment.
struct WorkloadLevels<'a> {
    index: usize,
    workload: &'a WorkloadSlices<'a>,
    levels: Levels,
}

impl WorkloadLevels<'_> {
    fn slices_after(&self) -> usize {
        self.workload.slices.len() - self.levels.first_after
    }

    /// True if a limiter would have slowed it down, but did not.
    fn contradicts(&self, limit: f64) -> bool {
        !self.levels.has_fallen
            && self.workload.is_saturating
            && self.levels.before >= SPARED_MAX * limit
    }
}

/// The workloads of a target that fall at a moment to one limit; `None` where they do not.
fn fall_at<'a>(
    workloads: &'a [WorkloadSlices<'a>],
    moment_ns: u64,
    target: usize,
) -> Option<Vec<WorkloadLevels<'a>>> {
    let mut known = Vec::new();
    for (index, workload) in workloads.iter().enumerate() {
        if workload.target == target
            && let Some(levels) = workload.levels(moment_ns)
        {
            known.push(WorkloadLevels {
                index,
                workload,
                levels,
            });
        }
    }
    let mut fallen = 0;
    let mut slices_after = 0;
    let mut limited = Vec::new();
    for member in &known {
        if member.levels.has_fallen {
            fallen += 1;
            slices_after += member.slices_after();
            if member.workload.is_saturating {
                limited.extend(member.levels.limited);
            }
        }
    }
    if fallen < WORKLOADS_MIN || slices_after < SLICES_AFTER_MIN {
        return None;
    }
    limited.sort_by(|one, other| one.rate.total_cmp(&other.rate));
    let limit = limited.get(limited.len() / 2)?.rate;
    // A busy machine may use less than the limit, but nothing gets more.
    let reaching = limited
        .iter()
        .filter(|member| member.reaches(limit))
        .count();
    let is_one_limit = reaching >= WORKLOADS_MIN.max((limited.len() * 2).div_ceil(3))
        && !limited.iter().any(|member| member.is_above(limit));
    if !is_one_limit || known.iter().any(|member| member.contradicts(limit)) {
        return None;
    }
    known.retain(|member| member.levels.has_fallen);
    Some(known)
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

#[cfg(test)]
mod shared_fall_tests {
    use super::*;
    use diskproof_model::window::SliceOp;
    use std::collections::BTreeMap;

    fn saturating_reads(target: usize, slices: &[TimeSlice]) -> WorkloadSlices<'_> {
        WorkloadSlices {
            target,
            slices,
            kinds: vec![OpKind::Read],
            is_saturating: true,
        }
    }

    const SECOND: u64 = 1_000_000_000;

    /// Workloads in turns: one slice of a second each a round, with these rates.
    fn slices(rates: &[&[f64]]) -> Vec<Vec<TimeSlice>> {
        let slice = |index: usize, round: usize, iops: f64| {
            let op = SliceOp::from_counts(iops as u64, 8192 * iops as u64, SECOND);
            TimeSlice {
                start_ns: (round * rates.len() + index) as u64 * SECOND,
                wall_ns: SECOND,
                ops: BTreeMap::from([(OpKind::Read, op)]),
                slot: None,
            }
        };
        let of_one = |(index, own): (usize, &&[f64])| {
            let own = own.iter().enumerate();
            own.map(|(round, iops)| slice(index, round, *iops))
                .collect()
        };
        rates.iter().enumerate().map(of_one).collect()
    }

    fn found(rates: &[&[f64]]) -> Vec<Option<usize>> {
        let slices = slices(rates);
        let of_one = |own| saturating_reads(0, own);
        shared_fall(&slices.iter().map(|own| of_one(own)).collect::<Vec<_>>())
    }

    const FAST: &[f64] = &[3000.0, 2960.0, 3000.0, 200.0, 200.0];
    const SLOW: &[f64] = &[900.0, 1200.0, 1000.0, 198.0, 203.0];

    #[test]
    fn workloads_that_fall_to_one_rate_share_the_fall() {
        assert_eq!(found(&[FAST, SLOW]), [Some(3), Some(3)]);
        // The second falls in its third slice, which precedes the fourth of the first.
        let early: &[f64] = &[900.0, 1200.0, 204.0, 198.0, 203.0];
        assert_eq!(found(&[FAST, early]), [Some(3), Some(2)]);
        // One that the limit allows is spared.
        let below: &[f64] = &[114.0; 5];
        assert_eq!(found(&[below, FAST, SLOW]), [None, Some(3), Some(3)]);
        // A busy machine may leave one of them less.
        let starved: &[f64] = &[900.0, 1200.0, 1000.0, 100.0, 60.0];
        let all = found(&[FAST, SLOW, starved, FAST]);
        assert_eq!(all, [Some(3); 4]);
        // The slice in which it falls counts as after it, where most of it is.
        let within: &[f64] = &[3000.0, 3000.0, 380.0, 200.0, 200.0];
        assert_eq!(found(&[FAST, within]), [Some(3), Some(2)]);
    }

    #[test]
    fn falls_of_other_kinds_are_not_shared() {
        let none = |rates: &[&[f64]]| {
            let found = found(rates);
            assert!(found.iter().all(Option::is_none), "{rates:?}: {found:?}");
        };
        // Alone, or without a later slice of another.
        none(&[FAST]);
        none(&[&[3000.0, 3000.0, 200.0], &[900.0, 1000.0, 200.0]]);
        // To different rates: what disturbs them takes a share.
        none(&[FAST, &[900.0, 1200.0, 1000.0, 150.0, 100.0]]);
        // One that needs as much goes on as before.
        none(&[FAST, SLOW, &[2500.0; 5]]);
        // It recovers.
        none(&[
            &[3000.0, 3000.0, 200.0, 200.0, 3000.0],
            &[900.0, 1200.0, 200.0, 200.0, 1000.0],
        ]);
        none(&[&[3000.0; 5], &[1000.0; 5]]);
        none(&[&[0.0; 5], &[0.0; 5]]);
        none(&[]);
    }

    #[test]
    fn fall_of_all_workloads_without_a_limit_is_the_machines() {
        let fell = |rates: &[&[f64]]| {
            let slices = slices(rates);
            let of_one = |own| saturating_reads(0, own);
            let all: Vec<_> = slices.iter().map(|own| of_one(own)).collect();
            machine_fell(&all, 0, 2 * SECOND)
        };
        let own: &[f64] = &[3000.0, 2960.0, 1500.0, 1500.0, 1500.0];
        let other: &[f64] = &[900.0, 940.0, 500.0, 430.0, 450.0];
        assert!(fell(&[own, other, other]));
        assert!(
            !fell(&[own, other, &[900.0; 5]]),
            "one of them did not fall"
        );
        assert!(!fell(&[own, other]), "one other may fall by chance");
        assert!(!fell(&[&[1000.0; 5], other, other]));
    }

    #[test]
    fn each_target_has_a_limiter_of_its_own() {
        let slices = slices(&[FAST, SLOW]);
        let all = [0, 1].map(|target| saturating_reads(target, &slices[target]));
        assert_eq!(shared_fall(&all), [None, None]);
    }
}
