//! Finds the falls of the rate that workloads share: the last slices of a single workload may be
//! slow by chance, but several workloads that fall at one moment to one rate are behind a limiter
//! whose burst credit ended.

use crate::estimate::{mean, variance};
use crate::slices::rate_of_kinds;
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::plan::SyncPolicy;
use diskproof_model::row::Row;
use diskproof_model::window::TimeSlice;
use std::collections::{BTreeMap, BTreeSet};

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
/// The rates of a workload's slices after the fall vary by at most this share (standard deviation
/// over mean): they are a level, as a limiter makes one. On a busy machine a healthy disk of memory
/// varied by 16 to 29 % from slice to slice.
const LEVEL_SCATTER_MAX: f64 = 0.15;
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
    /// True if the slices agree, as far as there are several.
    is_level: bool,
}

impl LimitedRate {
    /// The difference from the limit that does not count.
    fn tolerance(&self, limit: f64) -> f64 {
        (LIMIT_APART_MAX * limit).max(self.grain)
    }

    /// True if the rate exceeds a limit by more than counts.
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

    /// The slices of a measurement, whose rate is that of these kinds of operation.
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

    /// Operations per second in one slice.
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

    /// True if the rates of these slices are one level. Counting one operation more or less at each
    /// end of a slice does not count.
    fn is_level(&self, slices: &[TimeSlice]) -> bool {
        if slices.len() < 2 {
            return true;
        }
        let mut rates = Vec::new();
        let mut grain: f64 = 0.0;
        for slice in slices {
            rates.push(self.rate(slice));
            grain = grain.max(2e9 / slice.wall_ns.max(1) as f64);
        }
        variance(&rates).sqrt() <= (LEVEL_SCATTER_MAX * mean(&rates)).max(grain)
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
                is_level: self.is_level(lasting),
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

/// The measured time of all these slices.
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
    /// The number of slices at the lower level.
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
    // Rates that wander meet one rate by chance.
    if limited.iter().filter(|member| member.is_level).count() * 2 < limited.len() {
        return None;
    }
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

    const SECOND_NS: u64 = 1_000_000_000;

    /// Workloads in turns: one slice of a second each a round, with these rates.
    fn slices(rates: &[&[f64]]) -> Vec<Vec<TimeSlice>> {
        let slice = |index: usize, round: usize, iops: f64| {
            let op = SliceOp::from_counts(iops as u64, 8192 * iops as u64, SECOND_NS);
            TimeSlice {
                start_ns: (round * rates.len() + index) as u64 * SECOND_NS,
                wall_ns: SECOND_NS,
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

    /// The slices of a healthy disk of memory on a machine with a load of 18 on two processors: the
    /// first slice of each workload was fast, and the means of the others agree by chance.
    #[test]
    fn rates_that_wander_after_a_fast_slice_are_no_limit() {
        let single: &[f64] = &[17852.0, 11425.0, 7425.0, 13458.0, 8692.0, 9888.0, 9454.0];
        let deep: &[f64] = &[24696.0, 11642.0, 12729.0, 8883.0, 13621.0, 16658.0, 12124.0];
        let mixed: &[f64] = &[25100.0, 9212.0, 12032.0, 12764.0, 9684.0, 13908.0, 12775.0];
        let writes: &[f64] = &[24696.0, 5668.0, 9636.0, 9840.0, 15120.0, 11100.0, 12251.0];
        assert_eq!(found(&[single, deep, mixed, writes]), [None; 4]);
        // A limiter at about the same rate.
        let level: &[f64] = &[
            24696.0, 24700.0, 11520.0, 11490.0, 11510.0, 11500.0, 11500.0,
        ];
        assert_eq!(found(&[level, level, level]), [Some(2); 3]);
    }

    #[test]
    fn fall_of_all_workloads_without_a_limit_is_the_machines() {
        let fell = |rates: &[&[f64]]| {
            let slices = slices(rates);
            let of_one = |own| saturating_reads(0, own);
            let all: Vec<_> = slices.iter().map(|own| of_one(own)).collect();
            machine_fell(&all, 0, 2 * SECOND_NS)
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
