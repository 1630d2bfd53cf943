//! One fall that the workloads of a run share: burst credit that is used up while they are measured
//! in turns. The last slices of a single workload may be slow by chance; several workloads that
//! fall at one moment to one rate are behind a limiter. Works on slices; knows neither disks nor
//! findings.

use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::plan::SyncPolicy;
use diskproof_model::record::MeasurementRecord;
use diskproof_model::slice::TimeSlice;
use std::collections::BTreeSet;

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
    pub(crate) fn of_record(m: &'a MeasurementRecord) -> Self {
        let kinds = m.headline_ops().iter().map(|(kind, _)| *kind).collect();
        let w = &m.workload;
        Self {
            target: m.target,
            slices: &m.slices,
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
    use diskproof_model::slice::SliceOp;
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
        let slice = |index: usize, round: usize, iops: f64| TimeSlice {
            start_ns: (round * rates.len() + index) as u64 * SECOND,
            wall_ns: SECOND,
            ops: BTreeMap::from([(
                OpKind::Read,
                SliceOp {
                    count: iops as u64,
                    bytes: 8192 * iops as u64,
                    iops,
                    bytes_per_second: 8192.0 * iops,
                    latency: None,
                    late: None,
                },
            )]),
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
        let of_one = |(target, own)| saturating_reads(target, own);
        let all: Vec<WorkloadSlices<'_>> = slices
            .iter()
            .enumerate()
            .map(|(target, own)| of_one((target, own.as_slice())))
            .collect();
        assert_eq!(shared_fall(&all), [None, None]);
    }
}
