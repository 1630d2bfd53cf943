//! `burst-figure`: a workload was measured while the burst credit of the disk lasted, and the run
//! shows that the credit ended; see the list of findings in the head of `bursts.rs`.

use super::burst_exhausted::{credits_of_falls, is_credit_known};
use super::bursts::{credit_evidence, is_after_pause, may_accuse_disk};
use super::rule::*;
use crate::limiter::words::{allowed_text, base_text, limit_text};
use crate::limiter::{LateFall, late_fall_of, rate_of, waits_for_disk};
use diskproof_model::limiter::BurstCredit;

pub(super) const RULE: Rule = Rule {
    code: "burst-figure",
    title: "The figure is that of a burst",
    summary: "A workload was measured wholly or partly while the disk's burst credit lasted, and \
              the credit ended during the run, or may have ended in its last second. Sustained \
              load gets the lower rate.",
    remedy: Remedy::ByCase,
    check: Check::Workloads(check),
    says: Meaning::NotTheDisk {
        cause: Cause::Burst,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// A rate above this multiple of that after a late fall may be one of a burst. Smaller differences
/// are those from workload to workload. Chosen, not measured.
const LATE_RATE_RATIO_MIN: f64 = 1.1;

fn check(record: &Record) -> Option<Diagnosis> {
    let Some(mut found) = known_credit_diagnosis(record) else {
        return late_fall_diagnosis(record);
    };
    // Of another target, whose credit is not known.
    if let Some(late) = late_fall_diagnosis(record) {
        found.claim = format!("{} {}", found.claim, late.claim);
        found.remedy = format!("{} {}", found.remedy, late.remedy);
        found.evidence.extend(late.evidence);
    }
    Some(found)
}

fn known_credit_diagnosis(record: &Record) -> Option<Diagnosis> {
    let of_falls = ended_by_falls(record);
    let mut ended: Vec<BurstCredit> = record.burst_credits.clone();
    ended.extend(of_falls);
    for credit in &mut ended {
        credit
            .in_burst
            .retain(|row| !is_after_pause(record, &record.measurements[*row]));
    }
    ended.retain(|credit| !credit.in_burst.is_empty());
    let ended: Vec<&BurstCredit> = ended.iter().collect();
    let first = &record.measurements[ended.first()?.in_burst[0]];
    let mut observations: Vec<Evidence> = Vec::new();
    for credit in &ended {
        for index in &credit.in_burst {
            observations.extend(credit_evidence(record, *index, credit));
        }
    }
    Some(
        Diagnosis::new(Severity::Warning, claim(record, &ended), observations)
            .with_remedy(remedy(record, &ended))
            .with_command(&first.figures.reproduce),
    )
}

/// A fall in the last second of a run, and the rows of its target that were faster.
struct LateBurst<'a> {
    fall: LateFall,
    faster: Vec<Measured<'a>>,
}

/// Falls in the last second of a run: too late to prove a limiter, and too even for chance. What
/// was faster before may be a burst.
fn late_fall_diagnosis(record: &Record) -> Option<Diagnosis> {
    let mut bursts: Vec<LateBurst<'_>> = Vec::new();
    for target in 0..record.targets.len() {
        bursts.extend(late_burst(record, target));
    }
    let first = bursts.first()?.faster.first()?;
    let claims: Vec<String> = bursts
        .iter()
        .map(|burst| late_claim(record, burst))
        .collect();
    let observations: Vec<Evidence> = bursts.iter().flat_map(late_evidence).collect();
    let longer_ns = record.elapsed_ns().saturating_mul(2);
    let remedy = format!(
        "Measure longer (--time), for at least {}, or with 'diskproof sustain'.",
        format_duration(longer_ns)
    );
    Some(
        Diagnosis::new(Severity::Warning, claims.join(" "), observations)
            .with_remedy(remedy)
            .with_command(&first.row.figures.reproduce),
    )
}

/// The late fall of a target without a known credit; `None` without one, and where nothing was
/// faster before.
fn late_burst(record: &Record, target: usize) -> Option<LateBurst<'_>> {
    if is_credit_known(record, target) {
        return None;
    }
    let fall = late_fall_of(record, target)?;
    if !fall.rows.iter().all(|row| may_accuse_disk(record, *row)) {
        return None;
    }
    let mut faster: Vec<Measured<'_>> = Vec::new();
    for measured in real_rows(record) {
        let row = measured.row;
        let is_faster = rate_of(row, fall.unit) > LATE_RATE_RATIO_MIN * fall.after;
        let is_of_load = waits_for_disk(&row.data) && !is_after_pause(record, row);
        if row.data.target == target && is_of_load && is_faster {
            faster.push(measured);
        }
    }
    if faster.is_empty() {
        return None;
    }
    Some(LateBurst { fall, faster })
}

fn late_claim(record: &Record, burst: &LateBurst<'_>) -> String {
    let LateBurst { fall, faster } = burst;
    let unit = fall.unit.per_second();
    let evenness = match fall.limit {
        None => "as evenly as a limiter does it".to_owned(),
        Some(limit) => format!(
            "after an even rate of {}, as a limiter sets it",
            limit_text(limit, unit)
        ),
    };
    format!(
        "{} fell to {} in the last {} of the run, {evenness}. Before that, {} ran at a higher \
         rate, perhaps on a burst credit or in a cache that ended then. The run is too short to \
         tell.",
        workload_names(record, fall.rows.iter().copied()),
        limit_text(fall.after, unit),
        format_duration(fall.lasted_ns as u64),
        workload_names(record, faster.iter().map(|measured| measured.index)),
    )
}

fn late_evidence(burst: &LateBurst<'_>) -> Vec<Evidence> {
    let LateBurst { fall, faster } = burst;
    let mut observations = Vec::new();
    for measured in faster {
        if let Some((kind, op)) = measured.row.headline_ops().first() {
            let rate = RateFigure::new(*op, fall.unit);
            let place = format!("figures/ops/{}/{}/value", kind.as_str(), rate.name);
            let unit = fall.unit.per_second();
            observations.push(measured.evidence(&place, rate.value, fall.after, unit));
        }
    }
    observations
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
fn remedy(record: &Record, ended: &[&BurstCredit]) -> String {
    let mut lasting_rates: Vec<String> = Vec::new();
    let mut longest_ns = 0;
    for credit in ended {
        let rate = base_text(record, credit);
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
    use crate::rules::bursts::tests::{credit, fast_until};
    use diskproof_model::sustain::SustainPlan;
    use diskproof_model::task::Decide;

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
        let diagnosis = check(&figure_of_a_burst()).unwrap();
        assert_eq!(
            diagnosis.evidence[0].path,
            "/measurements/3/figures/ops/read/iops/value"
        );
        states(
            &diagnosis.claim,
            &["1500/s for ever", "3000/s for 13 s after a pause"],
        );
        assert_eq!(check(&sustained()), None);
    }

    /// The rows after a pause show the burst; the load is judged by itself.
    #[test]
    fn load_after_a_pause_of_sustain_is_no_figure_of_a_burst() {
        let mut record = figure_of_a_burst();
        let burst = record.burst_credits[0].in_burst.clone();
        assert_eq!(burst.len(), 1);
        let workloads = record.plan.workload_task_mut().unwrap();
        workloads.decide = Decide::Until(SustainPlan {
            round_ns: 1_000_000_000,
            pauses_ns: vec![1_000_000_000],
            precondition_bytes: None,
            stop_at_drop: None,
            budget_bytes: None,
        });
        for (after, is_found) in [("other", true), ("random-read-d32", false)] {
            let workloads = record.plan.workload_task_mut().unwrap();
            workloads.list[1].name = after.to_owned();
            let name = record.measurements[burst[0]].data.workload.name.clone();
            assert_eq!(name, "random-read-d32");
            assert_eq!(check(&record).is_some(), is_found, "{after}");
        }
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
        let diagnosis = check(&record).unwrap();
        for index in [2, 3] {
            let place = format!("/measurements/{index}/");
            assert!(
                diagnosis
                    .evidence
                    .iter()
                    .any(|evidence| evidence.path.starts_with(&place))
            );
        }
        states(
            &diagnosis.claim,
            &["/data allows 1500/s", "/other allows 200/s"],
        );
        states(&diagnosis.remedy, &["1500/s and 200/s"]);
    }

    /// Reads that fall to 10,000/s in the last part of a second, after rows of other rates.
    fn late_fall() -> Record {
        fixture::changed(|run| {
            run.measurements.truncate(5);
            run.measurements.drain(..2);
            let [single, reads, writes] = &mut run.measurements[..] else {
                panic!("three rows");
            };
            for (measurement, per_cell) in [(single, 150), (writes, 105)] {
                for op in measurement.ops.values_mut() {
                    for cell in &mut op.series.cells {
                        (cell.ops, cell.bytes) = (per_cell, per_cell * 8192);
                    }
                    let total = op.series.total();
                    (op.count, op.bytes) = (total.ops, total.bytes);
                }
            }
            fast_until(reads, 4_600_000_000, 3);
            reads.start_ns = 10_000_000_000;
        })
    }

    /// The rows that were faster than the rate after a late fall.
    fn faster_rows(record: &Record) -> Vec<&str> {
        let Some(burst) = late_burst(record, 0) else {
            return Vec::new();
        };
        let mut names = Vec::new();
        for measured in burst.faster {
            names.push(measured.row.data.workload.name.as_str());
        }
        names
    }

    /// 15,000/s may be a burst where 10,000/s last. 10,500/s are as good as that.
    #[test]
    fn rows_clearly_above_the_rate_after_a_late_fall_may_be_of_a_burst() {
        let record = late_fall();
        assert_eq!(faster_rows(&record), ["random-read-d1", "random-read-d32"]);
    }

    #[test]
    fn late_fall_of_a_starved_workload_is_no_sign_of_a_burst() {
        let mut record = late_fall();
        let reads = fixture::measured(&mut record, "random-read-d32");
        reads.data.starved.share = 0.3;
        reads.data.starved.mean_wait_ns = 1e9;
        assert!(faster_rows(&record).is_empty());
    }
}
