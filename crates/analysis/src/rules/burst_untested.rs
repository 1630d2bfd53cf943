//! `burst-untested`: a limiter sets the figures, and the run was too short to show whether it has a
//! burst credit. If it has one, the figures do not last.

use super::after_fall::AfterFall;
use super::bursts::{SlowedWorkload, have_reads, slowed_on_each_target};
use super::rate_limited::{is_even, plateau_without_known_credit};
use super::rule::*;
use crate::limiter::held_by_rows;
use crate::limiter::words::{CreditTest, limit_text};

pub(super) const RULE: Rule = Rule {
    code: "burst-untested",
    title: "The rate may be that of a burst",
    meaning: "A limiter sets the rate, and no workload ran at it for long enough without a pause \
              to show whether the limiter has a burst credit. Each pause and each slower workload \
              refills such a credit.",
    remedy: Remedy::ByCase,
    check: Check::Workloads(check),
    says: Meaning::Doubtful,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

fn check(record: &Record) -> Option<Diagnosis> {
    by_plateau(record).or_else(|| by_fall_of_writes(record))
}

/// Rates above that to which writes fell, where nothing after the fall shows whether reads fall,
/// too: a full write cache and a used-up credit look alike then.
fn by_fall_of_writes(record: &Record) -> Option<Diagnosis> {
    for slowed in slowed_on_each_target(record) {
        let Some(first) = slowed.first() else {
            continue;
        };
        let fall = first.fall_in(record, first.usual_unit());
        if have_reads(&slowed)
            || !is_even(record, first.measured.index)
            || fall.reads_after(record) != AfterFall::Unknown
        {
            continue;
        }
        let mut above = fall.rows_above(record);
        above.retain(|index| {
            let streams = &record.measurements[*index].data.workload.streams;
            streams.is_only(OpKind::Read)
        });
        if above.is_empty() {
            continue;
        }
        let claim = format!(
            "The writes of {} fell for good, to {}, and nothing was read after that: a full write \
             cache explains it, and so does a burst credit, which reads use, too. {} ran at a \
             higher rate before.",
            workload_name(record, first.measured.row),
            limit_text(fall.base, fall.unit.per_second()),
            scope(record, above.iter().copied()),
        );
        let path = target_argument(record, fall.target);
        let remedy = format!(
            "Measure whether reads keep their rate: 'diskproof sustain {path} --rw randread'."
        );
        let evidence = slowed.iter().map(SlowedWorkload::evidence);
        return Some(Diagnosis::new(Severity::Warning, claim, evidence).with_remedy(remedy));
    }
    None
}

fn by_plateau(record: &Record) -> Option<Diagnosis> {
    let plateau = plateau_without_known_credit(record)?;
    let is_known = record
        .burst_credits
        .iter()
        .any(|credit| credit.target == plateau.target);
    if is_known {
        return None;
    }
    let held = held_by_rows(record, plateau.target, plateau.unit)?;
    let test = CreditTest::new(record, plateau.target, plateau.unit, plateau.rate);
    if held.ns >= test.ns as f64 {
        return None;
    }
    let claim = format!(
        "A limiter sets the rate of {}, {}, and this run does not show whether it is one that \
         lasts: at most {} passed at it without a pause. A volume with burst credit allows less \
         for ever.",
        scope(record, plateau.rows.iter().copied()),
        limit_text(plateau.rate, plateau.unit.per_second()),
        format_duration(held.ns as u64),
    );
    let remedy = format!(
        "Look up whether the volume has burst credit, or measure without a pause for {}: '{}'.",
        format_duration(test.ns),
        test.command
    );
    Some(Diagnosis::new(Severity::Warning, claim, plateau.evidence).with_remedy(remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::states;
    use crate::rules::burst_figure::tests::sustained;
    use crate::rules::bursts::tests::credit;
    use crate::rules::rate_limited;

    pub(super) const EXAMPLES: Examples = Examples::new(untested, sustained);

    fn untested() -> Record {
        rate_limited::tests::capped(|_| 0)
    }

    #[test]
    fn untested_credit_names_the_command_and_its_time() {
        let found = check(&untested()).unwrap();
        states(&found.claim, &["3000/s", "5.0 s"]);
        states(&found.remedy, &["diskproof run /data", "--time 40m"]);
        let mut known = untested();
        known.burst_credits = vec![credit()];
        assert_eq!(check(&known), None);
    }
}
