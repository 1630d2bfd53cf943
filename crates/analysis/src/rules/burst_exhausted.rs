//! `burst-exhausted`: a volume was faster at first than it stays, because its burst credit was used
//! up. Such a credit limits reads as well; what fills by writes alone is `cache-cliff`.

use super::bursts::*;
use super::rule::*;
use crate::limiter::credit_before;
use diskproof_model::limiter::BurstCredit;

pub(super) const RULE: Rule = Rule {
    code: "burst-exhausted",
    title: "The burst credit of the disk ran out",
    meaning: "The rate fell during a workload and stayed low, because a volume with burst credit \
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
/// were limited by their own waits, so their rate says nothing of the limiter.
const FAST_SHARE: f64 = 0.9;

pub(super) fn check(record: &Record) -> Option<Diagnosis> {
    by_credit(record).or_else(|| by_fall(record))
}

/// The credits that the whole run on each target shows.
pub(super) fn by_credit(record: &Record) -> Option<Diagnosis> {
    let mut found: Option<Diagnosis> = None;
    for credit in disk_credits(record) {
        if !credit.has_reads && may_be_cache(record, credit) {
            continue;
        }
        let more = credit_diagnosis(record, credit);
        match &mut found {
            Some(all) => {
                all.claim = format!("{} {}", all.claim, more.claim);
                all.evidence.extend(more.evidence);
            }
            None => found = Some(more),
        }
    }
    found
}

/// A fall of single workloads, to a rate that need not be even.
fn by_fall(record: &Record) -> Option<Diagnosis> {
    let slowed = slowed_on_each_target(record)
        .into_iter()
        .find(|slowed| have_reads(slowed))?;
    let witness = best_witness(record, &slowed)?;
    let credit = credit_of_fall(record, &slowed, witness)?;
    let claim = credit_diagnosis(record, &credit).claim;
    let observations = slowed.iter().map(SlowedWorkload::evidence);
    let command = &witness.measured.row.figures.reproduce;
    Some(Diagnosis::new(Severity::Warning, claim, observations).with_command(command))
}

/// The workloads that the burst limited. Commits and single requests wait for more than the
/// limiter.
fn limited_by_burst<'a, 'b>(slowed: &'a [SlowedWorkload<'b>]) -> Vec<&'a SlowedWorkload<'b>> {
    let mut limited: Vec<&SlowedWorkload<'_>> = slowed.iter().collect();
    if let Some(fastest) = largest_by(slowed, |hit| hit.fall.before) {
        limited.retain(|hit| hit.fall.before >= FAST_SHARE * fastest.fall.before);
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
) -> Option<BurstCredit> {
    let best_known = smallest_by(limited_by_burst(slowed), |hit| {
        let width = hit.op.figures.iops.relative_half_width();
        width.unwrap_or(f64::MAX)
    })?;
    let burst = witness.fall.before;
    let base = best_known.fall.after;
    let moment_ns = witness.moment_ns(record);
    let credit = credit_before(record, witness.measured.index, moment_ns, base);
    let mut at_base: Vec<usize> = slowed.iter().map(|hit| hit.measured.index).collect();
    at_base.sort_unstable();
    Some(BurstCredit {
        target: witness.measured.row.data.target,
        unit: "1/s".to_owned(),
        base,
        burst,
        credit,
        burst_ns: (credit / (burst - base) * 1e9).clamp(0.0, 1e18) as u64,
        refill_ns: (credit / base * 1e9).clamp(0.0, 1e18) as u64,
        at_base,
        in_burst: Vec::new(),
        has_reads: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};
    use crate::rules::bursts::tests::{burst, cliff, credit, fast_until};
    use crate::rules::cache_cliff;

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
        let found = check(&record).unwrap();
        states(&found.claim, &["1500/s for ever", "200/s for ever"]);
        assert!(found.evidence.len() >= 2);
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

    #[test]
    fn late_fall_is_found_and_a_short_one_is_not() {
        for (at_ns, expected) in [(3_900_000_000, true), (4_700_000_000, false)] {
            let record = fixture::faulty("random-read-d1", |measurement| {
                fast_until(measurement, at_ns, 5)
            });
            assert_eq!(check(&record).is_some(), expected, "{at_ns}");
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
}
