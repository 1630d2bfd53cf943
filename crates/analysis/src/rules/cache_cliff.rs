//! `cache-cliff`: writes were faster at first than they stay, because a write cache (SLC flash, a
//! controller's memory) was full. It fills by writes alone. See the list of findings in the head of
//! `bursts.rs`.

use super::after_fall::AfterFall;
use super::burst_exhausted::{credits_of_falls, known_credit_diagnosis};
use super::bursts::*;
use super::rate_limited::is_even;
use super::rule::*;
use crate::limiter::Unit;
use crate::limiter::words::{base_text, credit_text, limit_text};
use crate::moved::{self, CountedKinds};

pub(super) const RULE: Rule = Rule {
    code: "cache-cliff",
    title: "Writes became slower for good",
    summary: "Writes were fast at first and became permanently slower, because a cache in front of \
              the medium was full or, where reads do not exclude it, because a burst credit was \
              used up. The figures are those of the lower rate.",
    remedy: Remedy::Always(
        "Plan bulk loads and restores with the lower rate. To measure the recovery, repeat the run \
         after some minutes without load.",
    ),
    check: Check::Workloads(check),
    says: Meaning::Limit {
        limit: RateLimit::Device,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

pub(super) fn check(record: &Record) -> Option<Diagnosis> {
    if known_credit_diagnosis(record).is_some() {
        return None;
    }
    let slowed = slowed_on_each_target(record);
    if slowed.is_empty() {
        return undecided_credit(record);
    }
    let credits = credits_of_falls(record);
    for mut hits in slowed {
        // Reads that fell without a limiter have a reason of their own.
        let target = hits[0].measured.row.data.target;
        if !credits.iter().any(|fallen| fallen.credit.target == target) {
            hits.retain(|hit| !hit.measured.row.data.workload.streams.is_only(OpKind::Read));
        }
        if hits.is_empty() {
            continue;
        }
        let may_be_cache_alone = !have_reads(&hits) && !are_reads_limited(record, &hits);
        if may_be_cache_alone && let Some(diagnosis) = fall_diagnosis(record, &hits) {
            return Some(diagnosis);
        }
    }
    None
}

/// True if reads show that a limiter explains the fall of writes: they fell with them.
fn are_reads_limited(record: &Record, slowed: &[SlowedWorkload<'_>]) -> bool {
    slowed.iter().any(|hit| {
        Unit::ALL
            .into_iter()
            .any(|unit| hit.fall_in(record, unit).reads_after(record) == AfterFall::Limited)
    })
}

/// Writes of a target that became slower for good; `None` where they had written less than any
/// cache holds.
fn fall_diagnosis(record: &Record, slowed: &[SlowedWorkload<'_>]) -> Option<Diagnosis> {
    let first = slowed.first()?;
    let row = first.measured.row;
    let written = moved::before(
        record,
        first.measured.index,
        first.fall.at_ns,
        CountedKinds::Writes,
    );
    if written.bytes < CLIFF_BYTES_MIN {
        return None;
    }
    let each_bytes = written_bytes_of_operation(row);
    let claim = format!(
        "{} wrote at {} until the run had written {}, then at {} to the end. A write cache in \
         front of the medium was full{}. Larger bulk loads and restores get the lower rate.",
        workload_names(record, slowed.iter().map(|hit| hit.measured.index)),
        format_throughput(first.fall.before * each_bytes),
        gigabytes(written.bytes as u64),
        format_throughput(first.fall.after * each_bytes),
        credit_clause(record, first)
    );
    let observations = slowed.iter().map(SlowedWorkload::evidence);
    Some(
        Diagnosis::new(Severity::Warning, claim, observations).with_command(&row.figures.reproduce),
    )
}

/// The bytes that an operation of a row writes on average: those that read write none.
fn written_bytes_of_operation(row: &Row) -> f64 {
    let (mut written_bytes, mut count) = (0, 0);
    for (kind, op) in row.headline_ops() {
        count += op.data.count;
        if kind == OpKind::Write {
            written_bytes += op.data.bytes;
        }
    }
    if written_bytes == 0 {
        // A commit counts what it writes.
        return mean_request_bytes(row);
    }
    written_bytes as f64 / count as f64
}

/// A clause on the other cause of a fall to an even rate: only reads tell a full cache from a
/// credit, whose rate is even.
fn credit_clause(record: &Record, first: &SlowedWorkload<'_>) -> &'static str {
    let fall = first.fall_in(record, first.usual_unit());
    if is_even(record, first.measured.index) && fall.reads_after(record) != AfterFall::Free {
        ", or the burst credit of the volume was used up"
    } else {
        ""
    }
}

/// The first credit that may as well be a full write cache: only writes used it, down to one even
/// rate.
fn undecided_credit(record: &Record) -> Option<Diagnosis> {
    let credits = disk_credits(record);
    let credit = credits
        .into_iter()
        .find(|credit| may_be_cache(record, credit))?;
    let claim = format!(
        "{} wrote at {}, after {} at first. A write cache in front of the medium was full, or the \
         burst credit of the volume was used up. The disk allows {}. Larger bulk loads and \
         restores get the lower rate.",
        workload_names(record, credit.at_base.iter().copied()),
        base_text(record, credit),
        limit_text(credit.burst, &credit.unit),
        credit_text(record, credit),
    );
    Some(Diagnosis {
        claim,
        ..credit_diagnosis(record, credit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::rules::bursts::tests::{burst, cliff, credit, fast_until};
    use diskproof_model::limiter::BurstCredit;

    pub(super) const EXAMPLES: Examples = Examples::new(cliff, burst);

    /// Writes alone used a credit, which a cache explains as well if it is as large as one.
    #[test]
    fn credit_of_writes_is_a_full_cache_or_a_credit() {
        let mut record = fixture::record();
        let writes = record
            .measurements
            .iter()
            .position(|row| row.data.workload.name == "sequential-write")
            .unwrap();
        let of_writes = BurstCredit {
            has_reads: false,
            unit: Unit::Bytes.per_second().to_owned(),
            base: 100e6,
            burst: 200e6,
            at_base: vec![writes],
            ..credit()
        };
        for (credit_bytes, has_refilled, is_undecided) in [
            (2.5e9, false, true),
            (31e6, false, false),
            (2.5e9, true, false),
        ] {
            record.burst_credits = vec![BurstCredit {
                credit: credit_bytes,
                has_refilled,
                ..of_writes.clone()
            }];
            let claim = check(&record).map(|diagnosis| diagnosis.claim);
            assert_eq!(claim.is_some(), is_undecided, "{credit_bytes} {claim:?}");
            let exhausted = crate::rules::burst_exhausted::check(&record);
            assert_eq!(exhausted.is_some(), !is_undecided, "{credit_bytes}");
        }
    }

    /// Of a mix of 70 % reads the cache takes the writes alone.
    #[test]
    fn reads_of_a_mix_are_not_written() {
        let record = fixture::faulty("mixed-random", |measurement| {
            fast_until(measurement, 2_500_000_000, 6);
        });
        let row = record
            .measurements
            .iter()
            .find(|row| row.data.workload.name == "mixed-random")
            .unwrap();
        let of_kind = |kind: OpKind| row.data.ops[&kind].clone();
        let (reads, writes) = (of_kind(OpKind::Read), of_kind(OpKind::Write));
        let each = writes.bytes as f64 / (reads.count + writes.count) as f64;
        assert_eq!(written_bytes_of_operation(row), each);
        assert!(each < mean_request_bytes(row));
    }
}
