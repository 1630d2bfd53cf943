//! What the slices of workloads show. The interval of one workload: how much its rate varies
//! between parts that lie apart in time (docs/verdict.md and docs/compare.md explain it). And one
//! fall that the workloads of a run share: burst credit that is used up while they are measured in
//! turns. The last slices of a single workload may be slow by chance; several workloads that fall
//! at one moment to one rate are behind a limiter. Knows neither disks nor findings.

use crate::estimate;
use crate::estimate::student::multiple_95;
use crate::estimate::{mean, variance};
use diskproof_model::measurement::{Measurement, OpKind, PerOp};
use diskproof_model::plan::SyncPolicy;
use diskproof_model::record::Estimate;
use diskproof_model::row::{OpFigures, Row};
use diskproof_model::window::{SLICES_MIN, SliceOp, TimeSlice};
use std::collections::BTreeSet;

/// Whether a workload in slices may end before its time, because its rate is known to `goal`: as a
/// whole, and by how its slices differ.
pub fn may_end(m: &Measurement, goal: f64) -> bool {
    let counted = m.ops.iter().filter(|(kind, _)| **kind != OpKind::Sync);
    let series = estimate::summed(counted.map(|(_, op)| &op.series));
    let rates = rates(&m.slices, |slice| {
        let counted = slice.ops.iter().filter(|(kind, _)| **kind != OpKind::Sync);
        counted.map(|(_, op)| op.iops).sum()
    });
    let time_ns = m.workload.stop.time_ns;
    series.is_some_and(|series| estimate::may_end(&series, m.wall_ns, time_ns, goal))
        && half_width(&rates).is_some_and(|half_width| half_width <= goal * mean(&rates))
}

/// Widens the intervals of a row to what its slices show. Only those after `settling_ns` of
/// measured time count. Where they follow each other at once, slow changes are in all of them
/// alike, so the parts of the measured time decide as well.
pub(crate) fn widen(ops: &mut PerOp<OpFigures>, m: &Measurement, settling_ns: u64) {
    let steady = after(&m.slices, settling_ns);
    if !are_apart(&m.slices) {
        for (kind, op) in ops.iter_mut() {
            let series = &m.ops[kind].series;
            if let Some(slow) = estimate::slow_changes(series, m.wall_ns, settling_ns) {
                for rate in [&mut op.iops, &mut op.throughput] {
                    rate.widen(slow.relative_half_width * rate.value, slow.parts);
                }
            }
        }
    }
    for (kind, op) in ops {
        let of = |pick: fn(&SliceOp) -> f64| {
            rates(steady, |slice| slice.ops.get(kind).map_or(0.0, pick))
        };
        let counts = steady.iter().filter_map(|slice| slice.ops.get(kind));
        let count: u64 = counts.map(|op| op.count).sum();
        widen_estimate(&mut op.iops, &of(|op| op.iops), count);
        widen_estimate(&mut op.throughput, &of(|op| op.bytes_per_second), count);
    }
}

/// The wider of an estimate's own interval and Student's t of the slices' rates, in which so many
/// operations were counted: equal rates of short slices are still known to one operation only.
pub(crate) fn widen_estimate(estimate: &mut Estimate, rates: &[f64], count: u64) {
    let grain = mean(rates) / count.max(1) as f64;
    if let Some(half_width) = half_width(rates) {
        estimate.widen(half_width.max(grain), rates.len() as u64);
    }
}

/// Whether slices lie apart in time: there is at least as much time between them as in them.
pub(crate) fn are_apart(slices: &[TimeSlice]) -> bool {
    let (Some(first), Some(last)) = (slices.first(), slices.last()) else {
        return false;
    };
    let measured_ns: u64 = slices.iter().map(|slice| slice.wall_ns).sum();
    let spanned_ns = (last.start_ns + last.wall_ns).saturating_sub(first.start_ns);
    slices.len() >= SLICES_MIN && spanned_ns >= measured_ns.saturating_mul(2)
}

/// Whether a fall of the rate at `at_ns` of the measured time may be that from one slice to the
/// next by chance.
pub(crate) fn fall_by_chance(slices: &[TimeSlice], at_ns: u64) -> bool {
    let ends = slices.iter().scan(0, |end_ns, slice| {
        *end_ns += slice.wall_ns;
        Some(*end_ns)
    });
    let ends_ns: Vec<u64> = ends.collect();
    are_apart(slices) && estimate::falls_by_chance(at_ns, &ends_ns)
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

fn rates(slices: &[TimeSlice], of: impl Fn(&TimeSlice) -> f64) -> Vec<f64> {
    slices.iter().map(of).collect()
}

/// t(0.975, m − 1) s/√m; `None` of too few.
fn half_width(rates: &[f64]) -> Option<f64> {
    let m = rates.len() as f64;
    (rates.len() >= SLICES_MIN).then(|| multiple_95(m - 1.0) * (variance(rates) / m).sqrt())
}

/// Least rate of a workload before the fall over that after it.
const FALL_MIN: f64 = 1.5;
/// Fewest workloads that fall, and fewest slices of them after the fall.
const WORKLOADS_MIN: usize = 2;
const SLICES_AFTER_MIN: usize = 3;
/// The rates after the fall are the limit to this share, or to what counting in short slices
/// explains; at least those of two in three workloads.
const ALIKE: f64 = 0.1;
/// Least share of the time before the fall in which a workload is above the middle of its levels.
const HIGH_SHARE: f64 = 0.8;
/// A workload that reached this multiple of the limit before the fall has to fall, too.
const SPARED_MAX: f64 = 2.0;

/// The slices of one workload.
pub(crate) struct WorkloadSlices<'a> {
    target: usize,
    slices: &'a [TimeSlice],
    kinds: Vec<OpKind>,
    /// Whether it always has requests in flight that wait for a limiter: several, without a sync.
    is_saturating: bool,
}

/// The two levels of a workload, in operations per second.
struct Levels {
    /// The first slice after the fall.
    first_after: usize,
    before: f64,
    after: f64,
    has_fallen: bool,
    /// The rate after the fall, without the slice in which it may have happened, and by how much
    /// counting may change it: one operation at each end of a slice. `None` where no other slice
    /// follows.
    limited: Option<(f64, f64)>,
}

impl<'a> WorkloadSlices<'a> {
    /// Of what was measured.
    pub(crate) fn of(m: &'a Measurement) -> Self {
        let kinds = if m.ops.contains_key(&OpKind::Commit) {
            vec![OpKind::Commit]
        } else {
            vec![OpKind::Read, OpKind::Write]
        };
        let w = &m.workload;
        Self {
            target: m.target,
            slices: &m.slices,
            is_saturating: w.sync == SyncPolicy::None && (w.depth > 1 || w.workers > 1),
            kinds,
        }
    }

    /// Of its record.
    pub(crate) fn of_record(m: &'a Row) -> Self {
        let kinds = m.headline_ops().iter().map(|(kind, _)| *kind).collect();
        let w = &m.data.workload;
        Self {
            target: m.data.target,
            slices: &m.data.slices,
            is_saturating: w.sync == SyncPolicy::None && (w.depth > 1 || w.workers > 1),
            kinds,
        }
    }

    fn rate(&self, slice: &TimeSlice) -> f64 {
        let ops = self.kinds.iter().filter_map(|kind| slice.ops.get(kind));
        ops.map(|op| op.iops).sum()
    }

    /// Operations per second in some slices.
    fn rate_of(&self, slices: &[TimeSlice]) -> f64 {
        let ops = slices
            .iter()
            .map(|slice| self.rate(slice) * slice.wall_ns as f64);
        ops.sum::<f64>() / time_of(slices)
    }

    /// The levels before and after a moment of the run; `None` where one of them is unknown.
    fn levels(&self, moment_ns: u64) -> Option<Levels> {
        let first_after = self.slices.partition_point(|s| s.start_ns < moment_ns);
        let (earlier, later) = self.slices.split_at(first_after);
        if earlier.is_empty() || later.is_empty() {
            return None;
        }
        let (before, after) = (self.rate_of(earlier), self.rate_of(later));
        let middle = (before + after) / 2.0;
        let high = earlier.iter().filter(|slice| self.rate(slice) > middle);
        let high_ns: f64 = high.map(|slice| slice.wall_ns as f64).sum();
        let has_fallen = after > 0.0
            && before >= FALL_MIN * after
            && high_ns >= HIGH_SHARE * time_of(earlier)
            && later.iter().all(|slice| self.rate(slice) < middle);
        let lasting = &later[usize::from(later[0].start_ns == moment_ns)..];
        let grain = 2.0 * lasting.len() as f64 * 1e9 / time_of(lasting);
        Some(Levels {
            first_after,
            before,
            after,
            has_fallen,
            limited: (!lasting.is_empty()).then(|| (self.rate_of(lasting), grain)),
        })
    }
}

fn time_of(slices: &[TimeSlice]) -> f64 {
    slices.iter().map(|slice| slice.wall_ns as f64).sum()
}

/// Whether the whole machine became slower when this workload did, after so much of its measured
/// time: every other workload that ran in turns with it fell by at least the root of its factor.
/// Without a common limit that is no credit of the disk.
pub(crate) fn machine_fell(all: &[WorkloadSlices<'_>], index: usize, at_ns: u64) -> bool {
    let own = &all[index];
    let mut measured_ns = 0;
    let part = own.slices.iter().find_map(|slice| {
        let offset_ns = at_ns.saturating_sub(measured_ns);
        measured_ns += slice.wall_ns;
        (at_ns <= measured_ns).then_some(slice.start_ns + offset_ns)
    });
    let Some(moment_ns) = part else {
        return false;
    };
    let factor = |one: &WorkloadSlices<'_>| {
        let levels = one.levels(moment_ns)?;
        Some(levels.before / levels.after.max(f64::MIN_POSITIVE))
    };
    let least = factor(own).unwrap_or(0.0).sqrt();
    let others = all.iter().enumerate();
    let others = others.filter(|(other, one)| *other != index && one.target == own.target);
    let factors: Vec<f64> = others.filter_map(|(_, one)| factor(one)).collect();
    least > 1.0 && factors.len() >= WORKLOADS_MIN && factors.iter().all(|one| *one >= least)
}

/// The first slice of each workload after the fall that they share, to the rate that the run
/// ended with. `None` of a workload that did not fall, or was not measured on both
/// sides of it.
pub(crate) fn shared_fall(all: &[WorkloadSlices<'_>]) -> Vec<Option<usize>> {
    let of_one = |one: &WorkloadSlices<'_>| -> Vec<(u64, usize)> {
        let starts = one.slices.iter().map(|slice| slice.start_ns);
        starts.map(|start_ns| (start_ns, one.target)).collect()
    };
    let mut moments: Vec<(u64, usize)> = all.iter().flat_map(of_one).collect();
    moments.sort_unstable();
    let mut firsts = vec![None; all.len()];
    // Each target has a limiter of its own.
    let targets: BTreeSet<usize> = all.iter().map(|one| one.target).collect();
    for target in targets {
        let own = moments.iter().filter(|(_, of)| *of == target);
        let found = own.map(|(moment_ns, _)| fall_at(all, *moment_ns, target));
        if let Some(found) = found.flatten().next() {
            for (index, first) in found {
                firsts[index] = Some(first);
            }
        }
    }
    firsts
}

/// The workloads that fall at a moment, with their first slices after it.
fn fall_at(
    all: &[WorkloadSlices<'_>],
    moment_ns: u64,
    target: usize,
) -> Option<Vec<(usize, usize)>> {
    let levels: Vec<(usize, Levels)> = all
        .iter()
        .enumerate()
        .filter(|(_, one)| one.target == target)
        .filter_map(|(index, one)| Some((index, one.levels(moment_ns)?)))
        .collect();
    let fallen: Vec<&(usize, Levels)> = levels.iter().filter(|(_, l)| l.has_fallen).collect();
    let slices_after = |(index, l): &&(usize, Levels)| all[*index].slices.len() - l.first_after;
    if fallen.len() < WORKLOADS_MIN
        || fallen.iter().map(slices_after).sum::<usize>() < SLICES_AFTER_MIN
    {
        return None;
    }
    let saturating = fallen.iter().filter(|(index, _)| all[*index].is_saturating);
    let mut limited: Vec<(f64, f64)> = saturating.filter_map(|(_, l)| l.limited).collect();
    limited.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (limit, _) = *limited.get(limited.len() / 2)?;
    let above = |(rate, grain): &(f64, f64)| rate - limit - (ALIKE * limit).max(*grain);
    let below = |(rate, grain): &(f64, f64)| limit - rate - (ALIKE * limit).max(*grain);
    let alike = limited.iter().filter(|one| below(one) <= 0.0).count();
    // A busy machine may use less than the limit; nothing gets more.
    let is_one_limit = alike >= WORKLOADS_MIN.max((limited.len() * 2).div_ceil(3))
        && limited.iter().all(|one| above(one) <= 0.0);
    let is_spared = |(index, l): &(usize, Levels)| {
        l.has_fallen || !all[*index].is_saturating || l.before < SPARED_MAX * limit
    };
    let found = fallen.iter().map(|(index, l)| (*index, l.first_after));
    (is_one_limit && levels.iter().all(is_spared)).then(|| found.collect())
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
        let mut m = fixture::run().1.remove(1);
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
            let op = SliceOp::of(iops as u64, 8192 * iops as u64, SECOND);
            TimeSlice {
                start_ns: (round * rates.len() + index) as u64 * SECOND,
                wall_ns: SECOND,
                ops: BTreeMap::from([(OpKind::Read, op)]),
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
