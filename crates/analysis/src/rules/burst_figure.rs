//! `burst-figure`: figures are those of a burst, whose end the run saw, although nothing disturbed
//! them.

use super::burst_exhausted::credits_of_falls;
use super::bursts::credit_evidence;
use super::rule::*;
use crate::limiter::words::{allowed_text, limit_text};
use diskproof_model::limiter::BurstCredit;

pub(super) const RULE: Rule = Rule {
    code: "burst-figure",
    title: "The figure is that of a burst",
    summary: "A workload was measured wholly or partly while the disk's burst credit lasted, and \
              the credit ended during the run. Sustained load gets the lower rate.",
    remedy: Remedy::ByCase,
    check: Check::Workloads(check),
    says: Meaning::NotTheDisk {
        cause: Cause::Burst,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

fn check(record: &Record) -> Option<Diagnosis> {
    let of_falls = ended_by_falls(record);
    let mut ended: Vec<&BurstCredit> = record.burst_credits.iter().chain(&of_falls).collect();
    ended.retain(|credit| !credit.in_burst.is_empty());
    let first = &record.measurements[ended.first()?.in_burst[0]];
    let mut observations: Vec<Evidence> = Vec::new();
    for credit in &ended {
        for index in &credit.in_burst {
            observations.extend(credit_evidence(record, *index, credit));
        }
    }
    Some(
        Diagnosis::new(Severity::Warning, claim(record, &ended), observations)
            .with_remedy(remedy(&ended))
            .with_command(&first.figures.reproduce),
    )
}

/// The credits that only the fall of a workload shows, on targets without one that is known better.
fn ended_by_falls(record: &Record) -> Vec<BurstCredit> {
    let mut ended = Vec::new();
    for fallen in credits_of_falls(record) {
        let target = fallen.credit.target;
        let is_known = record
            .burst_credits
            .iter()
            .any(|credit| credit.target == target);
        if !is_known {
            ended.push(fallen.credit);
        }
    }
    ended
}

fn claim(record: &Record, ended: &[&BurstCredit]) -> String {
    let mut in_burst: Vec<usize> = Vec::new();
    for credit in ended {
        in_burst.extend(&credit.in_burst);
    }
    in_burst.sort_unstable();
    in_burst.dedup();
    format!(
        "{} ran wholly or partly on the burst credit of the disk, which ended during this run. {} \
         Sustained load gets the lower rate.",
        workload_names(record, in_burst),
        allowed_text(record, ended),
    )
}

/// The rates that last, each once, and the longest time that a burst takes.
fn remedy(ended: &[&BurstCredit]) -> String {
    let mut lasting_rates: Vec<String> = Vec::new();
    let mut longest_ns = 0;
    for credit in ended {
        let rate = limit_text(credit.base, &credit.unit);
        if !lasting_rates.contains(&rate) {
            lasting_rates.push(rate);
        }
        longest_ns = longest_ns.max(credit.burst_ns);
    }
    format!(
        "Plan with {}. To measure one of these workloads without the burst, run it alone for much \
         longer than {} (--time).",
        lasting_rates.join(" and "),
        format_duration(longest_ns)
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::fixture::{self, states};
    use crate::rules::bursts::tests::credit;

    pub(super) const EXAMPLES: Examples = Examples::new(figure_of_a_burst, sustained);

    fn figure_of_a_burst() -> Record {
        let mut record = fixture::record();
        record.burst_credits = vec![credit()];
        record
    }

    pub(in crate::rules) fn sustained() -> Record {
        let mut record = fixture::record();
        record.burst_credits = vec![BurstCredit {
            in_burst: Vec::new(),
            ..credit()
        }];
        record
    }

    #[test]
    fn figure_of_a_burst_names_what_lasts() {
        let found = check(&figure_of_a_burst()).unwrap();
        assert_eq!(
            found.evidence[0].path,
            "/measurements/3/figures/ops/read/iops/value"
        );
        states(
            &found.claim,
            &["1500/s for ever", "3000/s for 13 s after a pause"],
        );
        assert_eq!(check(&sustained()), None);
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
        let found = check(&record).unwrap();
        for index in [2, 3] {
            let place = format!("/measurements/{index}/");
            assert!(
                found
                    .evidence
                    .iter()
                    .any(|evidence| evidence.path.starts_with(&place))
            );
        }
        states(
            &found.claim,
            &["/data allows 1500/s", "/other allows 200/s"],
        );
        states(&found.remedy, &["1500/s and 200/s"]);
    }
}
