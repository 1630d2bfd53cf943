//! `burst-exhausted`: a volume was faster at first than it stays, because its burst credit was used
//! up. Such a credit limits reads as well; what fills by writes alone is `cache-cliff`. See the
//! list of findings in the head of `bursts.rs`.

use super::after_fall::{AfterFall, Fall};
use super::bursts::*;
use super::rule::*;
use crate::limiter::{Unit, credit_before};
use crate::mechanics::is_real_disk;
use diskproof_model::limiter::BurstCredit;

pub(super) const RULE: Rule = Rule {
    code: "burst-exhausted",
    title: "The burst credit of the disk ran out",
    summary: "The rate fell during a workload and stayed low, because a volume with burst credit \
              has used it up. The figures are those of the lower rate.",
    remedy: Remedy::Always(
        "Plan with the lower rate, or provision more IOPS. Bursts help only loads that pause often \
         enough to refill the credit.",
    ),
    check: Check::Workloads(check),
    says: Meaning::Limit {
        limit: RateLimit::Cap,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// A workload with this share of the highest rate before the fall was limited by the burst. Others
/// were limited by their own waits, so their rate says nothing of the limiter. Chosen, not
/// measured.
const BURST_RATE_SHARE_MIN: f64 = 0.9;

pub(super) fn check(record: &Record) -> Option<Diagnosis> {
    known_credit_diagnosis(record).or_else(|| fall_diagnosis(record))
}

/// The credits that the whole run on each target shows.
pub(super) fn known_credit_diagnosis(record: &Record) -> Option<Diagnosis> {
    let mut diagnosis: Option<Diagnosis> = None;
    for credit in disk_credits(record) {
        if may_be_cache(record, credit) {
            continue;
        }
        let other = credit_diagnosis(record, credit);
        match &mut diagnosis {
            Some(joined) => {
                joined.claim = format!("{} {}", joined.claim, other.claim);
                joined.evidence.extend(other.evidence);
            }
            None => diagnosis = Some(other),
        }
    }
    diagnosis
}

/// A fall of single workloads, to a rate that is even or too short to tell.
fn fall_diagnosis(record: &Record) -> Option<Diagnosis> {
    let fallen = credits_of_falls(record).into_iter().next()?;
    let claim = credit_diagnosis(record, &fallen.credit).claim;
    Some(
        Diagnosis::new(Severity::Warning, claim, fallen.observations).with_command(&fallen.command),
    )
}

/// A credit that the lasting falls of single workloads show.
pub(super) struct CreditOfFall {
    pub(super) credit: BurstCredit,
    observations: Vec<Evidence>,
    command: String,
}

/// The credits that the lasting falls of workloads show, at most one for each target. Reads have to
/// fall, or to show after the fall of writes that the same limiter holds them.
pub(super) fn credits_of_falls(record: &Record) -> Vec<CreditOfFall> {
    let mut credits = Vec::new();
    for slowed in slowed_on_each_target(record) {
        let Some(witness) = best_witness(record, &slowed) else {
            continue;
        };
        let Some(unit) = unit_of_fall(record, &slowed, witness) else {
            continue;
        };
        let Some(credit) = credit_of_fall(record, &slowed, witness, unit) else {
            continue;
        };
        credits.push(CreditOfFall {
            credit,
            observations: slowed.iter().map(SlowedWorkload::evidence).collect(),
            command: witness.measured.row.figures.reproduce.clone(),
        });
    }
    credits
}

/// The units in which a burst credit of a target ended during the run.
pub(crate) fn ended_units(record: &Record, target: usize) -> Vec<Unit> {
    ended_credits(record, target)
        .iter()
        .map(Unit::of_credit)
        .collect()
}

/// The burst credits of a target that ended during the run.
pub(super) fn ended_credits(record: &Record, target: usize) -> Vec<BurstCredit> {
    let mut credits: Vec<BurstCredit> = disk_credits(record).into_iter().cloned().collect();
    for fallen in credits_of_falls(record) {
        credits.push(fallen.credit);
    }
    credits.retain(|credit| credit.target == target);
    credits
}

/// True if the credit of a target is known: the whole run shows it, or the fall of a workload.
pub(super) fn is_credit_known(record: &Record, target: usize) -> bool {
    let is_shown_by_run = record
        .burst_credits
        .iter()
        .any(|credit| credit.target == target);
    is_shown_by_run
        || credits_of_falls(record)
            .iter()
            .any(|fallen| fallen.credit.target == target)
}

/// True if a limiter may be what made a workload slower: the rate after the fall is as even as only
/// a limiter's. Where too little was measured to tell, a disk that is attached to this very machine
/// has none.
fn may_have_limiter(record: &Record, slowed: &SlowedWorkload<'_>) -> bool {
    let target = &record.targets[slowed.measured.row.data.target];
    match slowed.is_even_after() {
        Some(is_even) => is_even,
        None => !is_real_disk(record, target),
    }
}

/// The unit in which the credit counts: that in which the limiter explains most workloads, as those
/// of different block sizes agree in it alone. `None` where no limiter need be what fell: a write
/// cache may be, or heat.
fn unit_of_fall(
    record: &Record,
    slowed: &[SlowedWorkload<'_>],
    witness: &SlowedWorkload<'_>,
) -> Option<Unit> {
    let usual = witness.usual_unit();
    if have_reads(slowed) && !may_have_limiter(record, witness) {
        return None;
    }
    // Of units that explain as much, the last one counts.
    let mut units = vec![usual.other(), usual];
    if !have_reads(slowed) {
        units.retain(|unit| {
            witness.fall_in(record, *unit).reads_after(record) == AfterFall::Limited
        });
    }
    units
        .into_iter()
        .max_by_key(|unit| witness.fall_in(record, *unit).limited_count(record))
}

/// The workloads that the burst limited. Commits and single requests wait for more than the
/// limiter.
fn limited_by_burst<'a, 'b>(slowed: &'a [SlowedWorkload<'b>]) -> Vec<&'a SlowedWorkload<'b>> {
    let mut limited: Vec<&SlowedWorkload<'_>> = slowed.iter().collect();
    if let Some(fastest) = largest_by(slowed, |hit| hit.fall.before) {
        limited.retain(|hit| hit.fall.before >= BURST_RATE_SHARE_MIN * fastest.fall.before);
    }
    limited
}

/// The workload that knows best when the burst ended. Each notices it in its next slice, so the
/// latest notice is the most exact.
fn best_witness<'a, 'b>(
    record: &Record,
    slowed: &'a [SlowedWorkload<'b>],
) -> Option<&'a SlowedWorkload<'b>> {
    largest_by(limited_by_burst(slowed), |hit| hit.moment_ns(record))
}

/// The credit that a fall shows: the burst by the workload that noticed its end, and the lower rate
/// by the workload whose rate is known best.
fn credit_of_fall(
    record: &Record,
    slowed: &[SlowedWorkload<'_>],
    witness: &SlowedWorkload<'_>,
    unit: Unit,
) -> Option<BurstCredit> {
    let best_known = smallest_by(limited_by_burst(slowed), |hit| {
        let width = hit.op.figures.iops.relative_half_width();
        width.unwrap_or(f64::MAX)
    })?;
    let burst = witness.in_unit(witness.fall.before, unit);
    let base = best_known.in_unit(best_known.fall.after, unit);
    let fall = Fall {
        base,
        ..witness.fall_in(record, unit)
    };
    let moment_ns = fall.moment_ns;
    let credit = credit_before(record, witness.measured.index, moment_ns, base, unit);
    let mut at_base: Vec<usize> = slowed.iter().map(|hit| hit.measured.index).collect();
    at_base.sort_unstable();
    let mut in_burst = fall.rows_above(record);
    in_burst.retain(|index| !at_base.contains(index));
    Some(BurstCredit {
        target: fall.target,
        unit: unit.per_second().to_owned(),
        base,
        burst,
        credit,
        credit_is_lower_bound: true,
        // Nearly equal rates give an endless time, which 1e18 ns (31 years) stands for.
        burst_ns: (credit / (burst - base) * 1e9).clamp(0.0, 1e18) as u64,
        refill_ns: (credit / base * 1e9).clamp(0.0, 1e18) as u64,
        at_base,
        in_burst,
        has_reads: true,
        has_refilled: false,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fixture::{self, states};
    use crate::rules::bursts::tests::{burst, cliff, credit, fast_until};
    use crate::rules::cache_cliff;
    use crate::rules::reads_fell;
    use diskproof_model::window::{SliceOp, TimeSlice};

    pub(super) const EXAMPLES: Examples = Examples::new(burst, cliff);

    #[test]
    fn credit_is_fitted_from_both_rates() {
        // 60,000/s for 2.5 s, refilled at 10,000/s: 125,000 I/Os.
        let claim = check(&burst()).unwrap().claim;
        states(
            &claim,
            &["10,000/s for ever", "60,000/s for 2.5 s", "requests"],
        );
        // 800 writes/s of 1 MiB for 3 s.
        let claim = cache_cliff::check(&cliff()).unwrap().claim;
        states(&claim, &["839 MB/s", "2.5 GB", "210 MB/s"]);
    }

    /// A volume whose credit ends, beside a disk whose write cache is full.
    #[test]
    fn falls_of_two_disks_have_their_own_causes() {
        let record = fixture::changed(|run| {
            let mut other = run.facts.targets[0].clone();
            other.path.push_str("/other");
            for layer in &mut other.layers {
                layer.device = "99:0".to_owned();
            }
            run.facts.targets.push(other);
            for measurement in &mut run.measurements {
                match measurement.workload.name.as_str() {
                    "random-read-d32" => fast_until(measurement, 2_500_000_000, 6),
                    "sequential-write" => {
                        fast_until(measurement, 2_500_000_000, 4);
                        measurement.target = 1;
                    }
                    _ => {}
                }
            }
        });
        let exhausted = check(&record).unwrap();
        assert_eq!(exhausted.evidence.len(), 1, "{:?}", exhausted.evidence);
        let cliff = cache_cliff::check(&record).unwrap();
        states(&cliff.claim, &["839 MB/s", "210 MB/s"]);
    }

    /// Streams of 1 MiB fill a credit in bytes: more small requests than that pass.
    #[test]
    fn credit_of_streams_is_in_bytes_and_others_above_it_ran_in_a_burst() {
        let record = fixture::faulty("sequential-read", |measurement| {
            fast_until(measurement, 2_500_000_000, 4)
        });
        let diagnosis = check(&record).unwrap();
        states(&diagnosis.claim, &["MB/s for ever", "GB allows"]);
        let [fallen] = &credits_of_falls(&record)[..] else {
            panic!("one target");
        };
        assert_eq!(fallen.credit.unit, "B/s");
        // The writes are slower than that.
        assert!(fallen.credit.in_burst.is_empty());
        let base = fallen.credit.base;
        let mut faster = record.clone();
        let writes = index_of(&record, "sequential-write");
        for op in faster.measurements[writes].figures.ops.values_mut() {
            op.throughput.value = 2.0 * base;
        }
        faster.measurements[writes].data.start_ns = 0;
        faster.measurements[writes].data.slices.clear();
        let [fallen] = &credits_of_falls(&faster)[..] else {
            panic!("one target");
        };
        assert_eq!(fallen.credit.in_burst, [writes]);
    }

    /// Reads of 1 MiB that fall to a rate at which reads of 8 KiB run after it: a limiter of
    /// requests makes both alike, and one of bytes does not.
    #[test]
    fn unit_of_a_fall_is_that_in_which_other_block_sizes_agree() {
        let mut record = fixture::faulty("sequential-read", |measurement| {
            fast_until(measurement, 2_500_000_000, 4)
        });
        let base = {
            let [fallen] = &credits_of_falls(&record)[..] else {
                panic!("one target");
            };
            assert_eq!(fallen.credit.unit, "B/s", "nothing else ran after it");
            fallen.credit.base / f64::from(1 << 20)
        };
        let small = index_of(&record, "random-read-d32");
        let mut slices = Vec::new();
        for (start_ns, iops) in [(0, 4.0 * base), (60_000_000_000, base)] {
            slices.push(reads_at(start_ns, iops * f64::from(1 << 20)));
        }
        for slice in &mut slices {
            for op in slice.ops.values_mut() {
                op.bytes_per_second = op.iops * 8192.0;
            }
        }
        record.measurements[small].data.slices = slices;
        let [fallen] = &credits_of_falls(&record)[..] else {
            panic!("one target");
        };
        assert_eq!(fallen.credit.unit, "1/s");
        assert!(
            (fallen.credit.base / base - 1.0).abs() < 0.01,
            "{}",
            fallen.credit.base
        );
    }

    fn index_of(record: &Record, name: &str) -> usize {
        let mut rows = record.measurements.iter();
        rows.position(|row| row.data.workload.name == name).unwrap()
    }

    /// Reads of so many bytes a second from a moment on, for a second.
    fn reads_at(start_ns: u64, bytes_per_second: f64) -> TimeSlice {
        let op = SliceOp {
            bytes_per_second,
            iops: bytes_per_second / f64::from(1 << 20),
            ..SliceOp::default()
        };
        TimeSlice {
            start_ns,
            wall_ns: 1_000_000_000,
            ops: [(OpKind::Read, op)].into_iter().collect(),
            slot: None,
        }
    }

    /// Writes that fall from 839 MB/s to 210 MB/s, and reads of 839 MB/s before the fall. After it
    /// there are reads at this rate, or none.
    pub(crate) fn reads_around_fall_of_writes(rate_after: Option<f64>) -> Record {
        let mut record = cliff();
        let writes = index_of(&record, "sequential-write");
        let reads = index_of(&record, "sequential-read");
        record.measurements[writes].data.start_ns = 20_000_000_000;
        for slice in &mut record.measurements[writes].data.slices {
            slice.start_ns += 20_000_000_000;
        }
        let mut slices = vec![reads_at(0, 839e6)];
        slices.extend(rate_after.map(|rate| reads_at(60_000_000_000, rate)));
        record.measurements[reads].data.slices = slices;
        record
    }

    #[test]
    fn reads_after_the_fall_of_writes_tell_a_credit_from_a_cache() {
        for (rate_after, is_credit, is_cache) in [
            (Some(210e6), true, false),
            (Some(839e6), false, true),
            (None, false, true),
        ] {
            let record = reads_around_fall_of_writes(rate_after);
            let diagnosis = check(&record);
            assert_eq!(
                diagnosis.is_some(),
                is_credit,
                "{rate_after:?}: {diagnosis:?}"
            );
            let diagnosis = cache_cliff::check(&record);
            assert_eq!(
                diagnosis.is_some(),
                is_cache,
                "{rate_after:?}: {diagnosis:?}"
            );
        }
    }

    #[test]
    fn credits_of_all_targets_are_named() {
        let mut record = burst();
        let credit = BurstCredit {
            at_base: vec![3],
            in_burst: Vec::new(),
            ..credit()
        };
        let other = BurstCredit {
            base: 200.0,
            at_base: vec![2],
            ..credit.clone()
        };
        record.burst_credits = vec![credit, other];
        let diagnosis = check(&record).unwrap();
        states(&diagnosis.claim, &["1500/s for ever", "200/s for ever"]);
        assert!(diagnosis.evidence.len() >= 2);
    }

    /// No more of either finding in these changed records of both.
    fn assert_spared(change: impl Fn(&mut Record)) {
        for mut record in [burst(), cliff()] {
            change(&mut record);
            assert_eq!((check(&record), cache_cliff::check(&record)), (None, None));
        }
    }

    #[test]
    fn fall_of_a_disturbed_or_starved_workload_is_no_burst() {
        let changes: [fn(&mut Row); 2] = [
            |measurement| measurement.data.device.read_bytes += measurement.data.asked.total(),
            |measurement| {
                (
                    measurement.data.starved.share,
                    measurement.data.starved.mean_wait_ns,
                ) = (0.3, 1e9)
            },
        ];
        for change in changes {
            assert_spared(|record| record.measurements.iter_mut().for_each(change));
        }
    }

    /// The limiter passes as many bytes in each cell, whatever the number of requests.
    #[test]
    fn limiter_of_bytes_is_even_where_block_sizes_are_mixed() {
        let mut record = burst();
        for row in &mut record.measurements {
            for op in row.data.ops.values_mut() {
                for (index, cell) in op.series.cells.iter_mut().enumerate() {
                    if index % 2 == 0 {
                        cell.ops = cell.ops * 3 / 2;
                    }
                }
            }
        }
        assert!(check(&record).is_some());
    }

    #[test]
    fn late_fall_is_found_and_a_short_one_is_not() {
        for (at_ns, expected) in [(3_900_000_000, true), (4_700_000_000, false)] {
            let record = fixture::faulty("random-read-d1", |measurement| {
                fast_until(measurement, at_ns, 5)
            });
            assert_eq!(check(&record), None, "its rate is not even");
            assert_eq!(reads_fell::check(&record).is_some(), expected, "{at_ns}");
        }
    }

    #[test]
    fn slower_start_and_open_loops_are_no_burst() {
        let slow = fixture::faulty("random-read-d32", |measurement| {
            for cell in &mut measurement.ops.get_mut(&OpKind::Read).unwrap().series.cells[..100] {
                cell.ops /= 4;
            }
        });
        let paced = fixture::faulty("random-read-d32", |measurement| {
            fast_until(measurement, 2_500_000_000, 6);
            measurement.workload.rate = Some(1e6);
        });
        for record in [slow, paced] {
            assert_eq!((check(&record), cache_cliff::check(&record)), (None, None));
        }
    }

    #[test]
    fn page_cache_that_fills_up_or_is_used_up_is_no_burst() {
        assert_spared(|record| record.targets[0].layers[0].backing_direct = Some(false));
        assert_spared(|record| {
            for measurement in &mut record.measurements {
                measurement.data.cache.used = CachePolicy::Cached;
            }
        });
    }

    #[test]
    fn uncertain_rate_and_few_bytes_accuse_no_disk() {
        let mut uncertain = burst();
        for op in uncertain
            .measurements
            .iter_mut()
            .flat_map(|measurement| measurement.figures.ops.values_mut())
        {
            op.iops.half_width_95 = Some(op.iops.value * 0.4);
        }
        assert_eq!(check(&uncertain), None);
        let mut small = cliff();
        for measurement in &mut small.measurements {
            measurement.data.workload.block_bytes = 1 << 10;
            for cell in measurement
                .data
                .ops
                .values_mut()
                .flat_map(|op| &mut op.series.cells)
            {
                cell.bytes /= 1000;
            }
            for op in measurement
                .figures
                .phases
                .iter_mut()
                .flat_map(|phase| phase.ops.values_mut())
            {
                op.throughput.value /= 1000.0;
            }
        }
        assert_eq!(cache_cliff::check(&small), None);
    }

    /// A workload at nine tenths of the highest rate shows the burst. One below that was limited by
    /// its own waits.
    #[test]
    fn only_workloads_near_the_highest_rate_show_the_burst() {
        for (times, limited) in [(6, 1), (7, 2)] {
            let record = fixture::changed(|run| {
                for measurement in &mut run.measurements {
                    match measurement.workload.name.as_str() {
                        // 60,000/s, and 48,000/s or 56,000/s.
                        "random-read-d32" => fast_until(measurement, 2_500_000_000, 6),
                        "random-write-d32" => fast_until(measurement, 2_500_000_000, times),
                        _ => {}
                    }
                }
            });
            let slowed = slowed_on_each_target(&record).remove(0);
            assert_eq!(slowed.len(), 2);
            assert_eq!(limited_by_burst(&slowed).len(), limited, "{times} times");
        }
    }
}
