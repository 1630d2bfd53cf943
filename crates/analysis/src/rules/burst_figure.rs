//! Figures that may not last, although nothing disturbed them. `burst-figure`: they are those of a
//! burst, whose end the run saw. `burst-untested`: a limiter sets them, and nothing shows whether
//! it has a credit.

use super::rate_limited;
use super::rule::*;
use crate::limiter::words::{CreditTest, allowed_text, limit_text};
use crate::limiter::{Unit, held_by_rows};
use diskproof_model::limiter::BurstCredit;

pub(super) const RULES: &[Rule] = &[
    Rule {
        code: "burst-figure",
        check: Check::Workloads(burst_figure),
        says: Meaning::NotTheDisk {
            cause: Cause::Burst,
        },
        #[cfg(test)]
        examples: Examples::of(tests::figure_of_a_burst, tests::sustained),
    },
    Rule {
        code: "burst-untested",
        check: Check::Workloads(burst_untested),
        says: Meaning::Doubtful,
        #[cfg(test)]
        examples: Examples::of(tests::untested, tests::sustained),
    },
];

fn burst_figure(record: &Record) -> Option<Diagnosis> {
    let mut ended: Vec<&BurstCredit> = record.burst_credits.iter().collect();
    ended.retain(|credit| !credit.in_burst.is_empty());
    let first = &record.measurements[ended.first()?.in_burst[0]];
    let mut rows: Vec<usize> = Vec::new();
    let mut all_evidence: Vec<Evidence> = Vec::new();
    let mut rates: Vec<String> = Vec::new();
    let mut longest_ns = 0;
    for credit in &ended {
        rows.extend(&credit.in_burst);
        for index in &credit.in_burst {
            all_evidence.extend(rate_evidence(record, *index, credit));
        }
        let rate = limit_text(credit.base, &credit.unit);
        if !rates.contains(&rate) {
            rates.push(rate);
        }
        longest_ns = longest_ns.max(credit.burst_ns);
    }
    rows.sort_unstable();
    rows.dedup();
    let claim = format!(
        "{} ran wholly or partly on the burst credit of the disk, which ended during this run. {} \
         Sustained load gets the lower rate.",
        scope(record, rows),
        allowed_text(record, &ended),
    );
    let remedy = format!(
        "Plan with {}. To measure one of these workloads without the burst, run it alone for much \
         longer than {} (--time).",
        rates.join(" and "),
        format_duration(longest_ns)
    );
    let found = Diagnosis::with_remedy(Severity::Warning, claim, all_evidence, remedy);
    Some(Diagnosis {
        reproduce: Some(first.figures.reproduce.clone()),
        ..found
    })
}

/// The rate of a row beside that of the limiter.
pub(super) fn rate_evidence(
    record: &Record,
    index: usize,
    credit: &BurstCredit,
) -> Option<Evidence> {
    let (kind, op) = record.measurements[index]
        .headline_ops()
        .into_iter()
        .next()?;
    let (figure, observed) = match credit.unit.as_str() {
        "B/s" => ("throughput", op.figures.throughput.value),
        _ => ("iops", op.figures.iops.value),
    };
    let place = format!("figures/ops/{}/{figure}/value", kind.as_str());
    Some(evidence(index, &place, observed, credit.base, &credit.unit))
}

fn burst_untested(record: &Record) -> Option<Diagnosis> {
    let plateau = rate_limited::plateau_without_known_credit(record)?;
    let unit = match plateau.unit {
        "B/s" => Unit::Bytes,
        _ => Unit::Requests,
    };
    let is_known = record
        .burst_credits
        .iter()
        .any(|credit| credit.target == plateau.target);
    let held = held_by_rows(record, plateau.target, unit)?;
    let test = CreditTest::of(record, plateau.target, unit, plateau.rate);
    if is_known || held.ns >= test.ns as f64 {
        return None;
    }
    Some(Diagnosis::with_remedy(
        Severity::Warning,
        format!(
            "A limiter sets the rate of {}, {}, and this run does not show whether it is one that \
             lasts: at most {} passed at it without a pause. A volume with burst credit allows \
             less for ever.",
            scope(record, plateau.rows.iter().copied()),
            limit_text(plateau.rate, plateau.unit),
            format_duration(held.ns as u64),
        ),
        plateau.evidence,
        format!(
            "Look up whether the volume has burst credit, or measure without a pause for {}: '{}'.",
            format_duration(test.ns),
            test.command
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};

    /// The fixture does not follow from it: rules read what the detector found.
    fn credit() -> BurstCredit {
        BurstCredit {
            target: 0,
            unit: "1/s".to_owned(),
            base: 1500.0,
            burst: 3000.0,
            credit: 20_000.0,
            burst_ns: 13_333_333_333,
            refill_ns: 13_333_333_333,
            at_base: vec![4],
            in_burst: vec![3],
            has_reads: true,
        }
    }

    pub(super) fn figure_of_a_burst() -> Record {
        let mut record = fixture::record();
        record.burst_credits = vec![credit()];
        record
    }

    pub(super) fn sustained() -> Record {
        let mut record = fixture::record();
        record.burst_credits = vec![BurstCredit {
            in_burst: Vec::new(),
            ..credit()
        }];
        record
    }

    pub(super) fn untested() -> Record {
        rate_limited::tests::capped(|_| 0)
    }

    #[test]
    fn figure_of_a_burst_names_what_lasts() {
        let found = burst_figure(&figure_of_a_burst()).unwrap();
        assert_eq!(
            found.evidence[0].path,
            "/measurements/3/figures/ops/read/iops/value"
        );
        states(
            &found.claim,
            &["1500/s for ever", "3000/s for 13 s after a pause"],
        );
        assert_eq!(burst_figure(&sustained()), None);
    }

    #[test]
    fn figures_of_bursts_on_all_targets_are_objected_to() {
        let mut record = figure_of_a_burst();
        record.targets.push(record.targets[0].clone());
        record.targets[1].path = "/other".to_owned();
        record.measurements[2].data.target = 1;
        record.burst_credits.push(BurstCredit {
            target: 1,
            base: 200.0,
            in_burst: vec![2],
            ..credit()
        });
        let found = burst_figure(&record).unwrap();
        for index in [2, 3] {
            let place = format!("/measurements/{index}/");
            assert!(
                found
                    .evidence
                    .iter()
                    .any(|one| one.path.starts_with(&place))
            );
        }
        states(
            &found.claim,
            &["/data allows 1500/s", "/other allows 200/s"],
        );
        states(&found.remedy, &["1500/s and 200/s"]);
    }

    #[test]
    fn untested_credit_names_the_command_and_its_time() {
        let found = burst_untested(&untested()).unwrap();
        states(&found.claim, &["3000/s", "5.0 s"]);
        states(&found.remedy, &["diskproof run /data", "--time 40m"]);
        let mut known = untested();
        known.burst_credits = vec![credit()];
        assert_eq!(burst_untested(&known), None);
    }
}
