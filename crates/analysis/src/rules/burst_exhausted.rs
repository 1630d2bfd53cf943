//! `burst-exhausted` and `cache-cliff`: the disk was faster at first than it stays. A volume with
//! burst credit limits reads as well; a write cache (SLC flash, a controller's memory) fills by
//! writes alone.

use super::burst_figure::rate_evidence;
use super::disturbed::is_disturbed;
use super::program::is_late;
use super::rate_limited;
use super::rule::*;
use crate::estimate::{LastingFall, lasting_fall};
use crate::limiter::credit_before;
use crate::limiter::words::{amount_text, credit_text, limit_text};
use crate::slices::{WorkloadSlices, machine_fell, shared_fall};
use crate::{estimate, moved, slices};
use diskproof_model::limiter::BurstCredit;
use diskproof_model::row::{PhaseKind, PhaseRecord};
use diskproof_model::series::TimeSeries;

pub(super) const RULES: &[Rule] = &[
    Rule {
        code: "burst-exhausted",
        check: Check::Workloads(burst_exhausted),
        says: Meaning::Limit {
            limit: RateLimit::Cap,
        },
        #[cfg(test)]
        examples: Examples::of(tests::burst, tests::cliff),
    },
    Rule {
        code: "cache-cliff",
        check: Check::Workloads(cache_cliff),
        says: Meaning::Limit {
            limit: RateLimit::Device,
        },
        #[cfg(test)]
        examples: Examples::of(tests::cliff, tests::burst),
    },
];

/// No disk or controller has a smaller write cache. Less is the page cache or chance.
const CLIFF_BYTES_MIN: f64 = 32e6;

/// A workload with this share of the highest rate before the fall was limited by the burst.
const FAST_SHARE: f64 = 0.9;

/// A workload that became slower for good.
struct SlowedWorkload<'a> {
    index: usize,
    m: &'a Row,
    kind: OpKind,
    op: OpRow<'a>,
    fall: LastingFall,
    /// The least fall that is no chance.
    least: f64,
}

fn burst_exhausted(record: &Record) -> Option<Diagnosis> {
    by_credit(record).or_else(|| by_fall(record))
}

/// The credits that the whole run on each target shows.
fn by_credit(record: &Record) -> Option<Diagnosis> {
    let mut found: Option<Diagnosis> = None;
    for credit in disks_credit(record) {
        if !credit.has_reads && may_be_cache(credit) {
            continue;
        }
        let more = diagnosis(record, credit);
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

/// The credits that are the disk's: neither the page cache nor other programs explain the fall.
/// That the machine was busy does not either: nothing is as even as a limiter by chance.
fn disks_credit(record: &Record) -> impl Iterator<Item = &BurstCredit> {
    record.burst_credits.iter().filter(|credit| {
        let mut rows = credit.at_base.iter();
        rows.all(|index| {
            let m = &record.measurements[*index];
            !is_from_page_cache(record, m) && !is_disturbed(record, (*index, m))
        })
    })
}

/// Whether a write cache may be as large as the credit, which only writes used.
fn may_be_cache(credit: &BurstCredit) -> bool {
    let bytes = match credit.unit.as_str() {
        "B/s" => credit.credit,
        _ => credit.credit * CACHE_REQUEST_BYTES,
    };
    !credit.has_reads && bytes >= CLIFF_BYTES_MIN
}

/// Of requests whose size differs, so much is assumed.
const CACHE_REQUEST_BYTES: f64 = 8192.0;

fn diagnosis(record: &Record, credit: &BurstCredit) -> Diagnosis {
    let first = &record.measurements[credit.at_base[0]];
    Diagnosis {
        severity: Severity::Warning,
        claim: format!(
            "A limiter with a burst credit of about {} allows {}. {} ran at the lower rate, which \
             is that of sustained load.",
            amount_text(credit),
            credit_text(credit),
            scope(record, credit.at_base.iter().copied()),
        ),
        evidence: credit
            .at_base
            .iter()
            .filter_map(|index| rate_evidence(record, *index, credit))
            .collect(),
        remedy: String::new(),
        reproduce: Some(first.figures.reproduce.clone()),
    }
}

/// A fall of single workloads, to a rate that need not be even.
fn by_fall(record: &Record) -> Option<Diagnosis> {
    let hits: Vec<SlowedWorkload> = slowed(record).collect();
    // Where reads fall, too, the writes fall for the same reason.
    hits.iter().find(|hit| hit.kind == OpKind::Read)?;
    // Each workload notices the fall in its next slice, so the latest notice before the fall is
    // the most exact. Commits and single requests wait for more than the limiter.
    let fastest = hits.iter().map(|hit| hit.fall.before).fold(0.0, f64::max);
    let is_fast = |hit: &&SlowedWorkload<'_>| hit.fall.before >= FAST_SHARE * fastest;
    let fast: Vec<&SlowedWorkload<'_>> = hits.iter().filter(is_fast).collect();
    let moment = |hit: &SlowedWorkload<'_>| moved::moment_ns(record, hit.index, hit.fall.at_ns);
    let first = largest_by(&fast, |hit| moment(hit))?;
    let width = |hit: &SlowedWorkload<'_>| {
        hit.op
            .figures
            .iops
            .relative_half_width()
            .unwrap_or(f64::MAX)
    };
    let known = smallest_by(&fast, |hit| width(hit))?;
    let (burst, base) = (first.fall.before, known.fall.after);
    let credit = credit_before(record, first.index, moment(first), base);
    let mut at_base: Vec<usize> = hits.iter().map(|hit| hit.index).collect();
    at_base.sort_unstable();
    let found = BurstCredit {
        target: first.m.data.target,
        unit: "1/s".to_owned(),
        base,
        burst,
        credit,
        burst_ns: (credit / (burst - base) * 1e9).clamp(0.0, 1e18) as u64,
        refill_ns: (credit / base * 1e9).clamp(0.0, 1e18) as u64,
        at_base,
        in_burst: Vec::new(),
        has_reads: true,
    };
    Some(Diagnosis {
        evidence: hits.iter().map(rate_evidence_of).collect(),
        reproduce: Some(first.m.figures.reproduce.clone()),
        ..diagnosis(record, &found)
    })
}

fn cache_cliff(record: &Record) -> Option<Diagnosis> {
    if by_credit(record).is_some() {
        return None;
    }
    let hits: Vec<SlowedWorkload> = slowed(record).collect();
    if hits.iter().any(|hit| hit.kind == OpKind::Read) {
        return None;
    }
    let Some(first) = hits.first() else {
        return cache_or_credit(record);
    };
    let LastingFall {
        before,
        after,
        at_ns,
    } = first.fall;
    let written = moved::before(record, first.index, at_ns, true);
    if written.bytes < CLIFF_BYTES_MIN {
        return None;
    }
    let bytes_each = first.m.data.workload.block_bytes;
    Some(Diagnosis {
        severity: Severity::Warning,
        claim: format!(
            "{} wrote at {} until the run had written {}, then at {} to the end. A write cache in \
             front of the medium was full{}. Larger bulk loads and restores get the lower \
             rate.",
            scope(record, hits.iter().map(|hit| hit.index)),
            format_throughput(before * f64::from(bytes_each)),
            gigabytes(written.bytes as u64),
            format_throughput(after * f64::from(bytes_each)),
            // Only reads tell a full cache from a credit, whose rate is even.
            if rate_limited::is_even(record, first.index) {
                ", or the burst credit of the volume was used up"
            } else {
                ""
            }
        ),
        evidence: hits.iter().map(rate_evidence_of).collect(),
        remedy: String::new(),
        reproduce: Some(first.m.figures.reproduce.clone()),
    })
}

/// Writes that fell to one even rate: a cache was full, or a credit ended.
fn cache_or_credit(record: &Record) -> Option<Diagnosis> {
    let credit = disks_credit(record).find(|credit| may_be_cache(credit))?;
    Some(Diagnosis {
        claim: format!(
            "{} wrote at {}, after {} at first. A write cache in front of the medium was full, or \
             the burst credit of the volume was used up. The disk allows {}. Larger bulk loads and \
             restores get the lower rate.",
            scope(record, credit.at_base.iter().copied()),
            limit_text(credit.base, &credit.unit),
            limit_text(credit.burst, &credit.unit),
            credit_text(credit),
        ),
        ..diagnosis(record, credit)
    })
}

fn rate_evidence_of(hit: &SlowedWorkload<'_>) -> Evidence {
    let place = format!("figures/ops/{}/iops/value", hit.kind.as_str());
    let threshold = hit.fall.before / hit.least;
    evidence(
        hit.index,
        &place,
        hit.op.figures.iops.value,
        threshold,
        "1/s",
    )
}

/// The workloads that became slower because of the disk. One that others disturbed, or that
/// waited for a processor, became slower because of the machine.
fn slowed(record: &Record) -> impl Iterator<Item = SlowedWorkload<'_>> {
    let all: Vec<_> = record
        .measurements
        .iter()
        .map(WorkloadSlices::of_record)
        .collect();
    let shared = shared_fall(&all);
    real(record)
        .filter(|(_, m)| !is_from_page_cache(record, m) && !is_late(record, m))
        .filter(|measured| !is_disturbed(record, *measured))
        .filter_map(move |measured| {
            let is_shared = shared[measured.0].is_some();
            let hit = slowed_one(measured, is_shared)?;
            (is_shared || !machine_fell(&all, hit.index, hit.fall.at_ns)).then_some(hit)
        })
}

/// Whether the page cache can be what was fast at first.
fn is_from_page_cache(record: &Record, m: &Row) -> bool {
    let target = record.targets.get(m.data.target);
    let takes = match m.data.cache.used {
        CachePolicy::Direct => false,
        CachePolicy::Buffered => m.data.ops.contains_key(&OpKind::Write),
        CachePolicy::Cached => true,
    };
    takes || target.is_some_and(TargetIdentity::has_buffered_loop)
}

/// The fall from a burst to the steady phase.
fn fall_after(m: &Row, burst: &PhaseRecord) -> LastingFall {
    let headline = m.headline_ops();
    let before = headline.iter().filter_map(|(kind, _)| burst.ops.get(kind));
    LastingFall {
        at_ns: burst.end_ns.saturating_sub(m.data.start_ns),
        before: before.map(|op| op.rate.value).sum(),
        after: headline.iter().map(|(_, op)| op.figures.iops.value).sum(),
    }
}

/// A workload with a burst among its phases, or one that fell too late to have phases. Only closed
/// loops: an open one offers what it offers. A fall that other workloads share is no chance.
fn slowed_one((index, m): Measured<'_>, is_shared: bool) -> Option<SlowedWorkload<'_>> {
    let burst = m.figures.phases.iter().find(|p| p.name == PhaseKind::Burst);
    if m.data.workload.rate.is_some() || !(burst.is_some() || m.figures.settled == Some(false)) {
        return None;
    }
    let (kind, op) = m.headline_ops().first().copied()?;
    let series = headline_series(m)?;
    let fall = match burst {
        Some(burst) => fall_after(m, burst),
        None => lasting_fall(&series, m.data.wall_ns)?,
    };
    // The figures of a workload with a burst are those after it.
    let width = op.figures.iops.relative_half_width();
    let is_known =
        burst.is_none() || is_shared || width.is_some_and(|width| width <= HALF_WIDTH_MAX);
    if !is_shared && slices::fall_by_chance(&m.data.slices, fall.at_ns) {
        return None;
    }
    let least = estimate::least_fall_to(
        &series,
        m.figures.settling_ns.max(fall.at_ns),
        m.data.wall_ns,
    );
    if !is_known || fall.after <= 0.0 || fall.before < least * fall.after {
        return None;
    }
    Some(SlowedWorkload {
        index,
        m,
        kind,
        op,
        fall: refined(fall, &series),
        least,
    })
}

/// The fall to a part of the cell in which it happened.
fn refined(fall: LastingFall, series: &TimeSeries) -> LastingFall {
    let cell_ns = series.interval_ns.max(1);
    let number = fall.at_ns.saturating_sub(series.start_ns) / cell_ns;
    let Some(cell) = series.cells.get(number as usize) else {
        return fall;
    };
    let seconds = cell_ns as f64 / 1e9;
    let more = cell.ops as f64 - fall.after * seconds;
    let share = (more / ((fall.before - fall.after) * seconds)).clamp(0.0, 1.0);
    let begin_ns = series.start_ns + number * cell_ns;
    LastingFall {
        at_ns: begin_ns + (share * cell_ns as f64) as u64,
        ..fall
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};
    use diskproof_model::measurement::{Measurement, SERIES_INTERVAL_NS};

    /// So many times as fast until the given time.
    fn fast_until(m: &mut Measurement, until_ns: u64, times: u64) {
        for op in m.ops.values_mut() {
            let cells = (until_ns / SERIES_INTERVAL_NS) as usize;
            for cell in &mut op.series.cells[..cells] {
                (cell.ops, cell.bytes) = (cell.ops * times, cell.bytes * times);
            }
            let total = op.series.total();
            (op.count, op.bytes) = (total.ops, total.bytes);
        }
    }

    pub(super) fn burst() -> Record {
        fixture::faulty("random-read-d32", |m| fast_until(m, 2_500_000_000, 6))
    }

    pub(super) fn cliff() -> Record {
        fixture::faulty("sequential-write", |m| fast_until(m, 2_500_000_000, 4))
    }

    #[test]
    fn credit_is_fitted_from_both_rates() {
        // 60,000/s for 2.5 s, refilled at 10,000/s: 125,000 I/Os.
        let claim = burst_exhausted(&burst()).unwrap().claim;
        states(
            &claim,
            &["10,000/s for ever", "60,000/s for 2.5 s", "requests"],
        );
        // 800 writes/s of 1 MiB for 3 s.
        let claim = cache_cliff(&cliff()).unwrap().claim;
        states(&claim, &["839 MB/s", "2.5 GB", "210 MB/s"]);
    }

    #[test]
    fn credits_of_all_targets_are_named() {
        let mut record = burst();
        let credit = BurstCredit {
            target: 0,
            unit: "1/s".to_owned(),
            base: 1500.0,
            burst: 3000.0,
            credit: 20_000.0,
            burst_ns: 13_333_333_333,
            refill_ns: 13_333_333_333,
            at_base: vec![3],
            in_burst: Vec::new(),
            has_reads: true,
        };
        let other = BurstCredit {
            base: 200.0,
            at_base: vec![2],
            ..credit.clone()
        };
        record.burst_credits = vec![credit, other];
        let found = burst_exhausted(&record).unwrap();
        states(&found.claim, &["1500/s for ever", "200/s for ever"]);
        assert!(found.evidence.len() >= 2);
    }

    /// No more of either finding in these changed records of both.
    fn assert_spared(change: impl Fn(&mut Record)) {
        for mut record in [burst(), cliff()] {
            change(&mut record);
            assert_eq!(
                (burst_exhausted(&record), cache_cliff(&record)),
                (None, None)
            );
        }
    }

    #[test]
    fn fall_of_a_disturbed_or_starved_workload_is_no_burst() {
        let changes: [fn(&mut Row); 2] = [
            |m| m.data.device.read_bytes += m.data.asked.total(),
            |m| (m.data.starved.share, m.data.starved.mean_wait_ns) = (0.3, 1e9),
        ];
        for change in changes {
            assert_spared(|record| record.measurements.iter_mut().for_each(change));
        }
    }

    #[test]
    fn late_fall_is_found_and_a_short_one_is_not() {
        for (at_ns, expected) in [(3_900_000_000, true), (4_700_000_000, false)] {
            let record = fixture::faulty("random-read-d1", |m| fast_until(m, at_ns, 5));
            assert_eq!(burst_exhausted(&record).is_some(), expected, "{at_ns}");
        }
    }

    #[test]
    fn slower_start_and_open_loops_are_no_burst() {
        let slow = fixture::faulty("random-read-d32", |m| {
            for cell in &mut m.ops.get_mut(&OpKind::Read).unwrap().series.cells[..100] {
                cell.ops /= 4;
            }
        });
        let paced = fixture::faulty("random-read-d32", |m| {
            fast_until(m, 2_500_000_000, 6);
            m.workload.rate = Some(1e6);
        });
        for record in [slow, paced] {
            assert_eq!(
                (burst_exhausted(&record), cache_cliff(&record)),
                (None, None)
            );
        }
    }

    #[test]
    fn page_cache_that_fills_up_or_is_used_up_is_no_burst() {
        assert_spared(|record| record.targets[0].layers[0].backing_direct = Some(false));
        assert_spared(|record| {
            for m in &mut record.measurements {
                m.data.cache.used = CachePolicy::Cached;
            }
        });
    }

    #[test]
    fn uncertain_rate_and_few_bytes_accuse_no_disk() {
        let mut uncertain = burst();
        for op in uncertain
            .measurements
            .iter_mut()
            .flat_map(|m| m.figures.ops.values_mut())
        {
            op.iops.half_width_95 = Some(op.iops.value * 0.4);
        }
        assert_eq!(burst_exhausted(&uncertain), None);
        let mut small = cliff();
        for m in &mut small.measurements {
            m.data.workload.block_bytes = 1 << 10;
            for cell in m.data.ops.values_mut().flat_map(|op| &mut op.series.cells) {
                cell.bytes /= 1000;
            }
            for op in m
                .figures
                .phases
                .iter_mut()
                .flat_map(|phase| phase.ops.values_mut())
            {
                op.throughput.value /= 1000.0;
            }
        }
        assert_eq!(cache_cliff(&small), None);
    }
}
