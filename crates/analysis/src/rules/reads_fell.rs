//! `reads-fell`: reads became slower for good, and no limiter with a burst credit explains it. The
//! record does not show why. See the list of findings in the head of `bursts.rs`.

use super::burst_exhausted::{credits_of_falls, known_credit_diagnosis};
use super::bursts::*;
use super::rule::*;
use super::starved::load_per_cpu;
use crate::mechanics::is_real_disk;
use diskproof_model::digits::figure_text;
use diskproof_model::units::format_duration;

pub(super) const RULE: Rule = Rule {
    code: "reads-fell",
    title: "Reads became slower for good",
    summary: "Reads were fast at first and stayed slower, without the even rate of a limiter. The \
              figures are those of the lower rate; the record does not show its cause.",
    remedy: Remedy::Always(
        "Look at the temperature while it reads (smartctl -a, nvme smart-log): a hot disk slows \
         itself down. diskproof sustain shows whether the rate falls further, and what the disk \
         counts meanwhile.",
    ),
    check: Check::Workloads(check),
    says: Meaning::Limit {
        limit: RateLimit::Unknown,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// With so many processes for each processor, a rate follows what they leave. Only an even rate
/// after a fall shows a cause then, and that is a limiter's. Processes that wait for a disk count
/// as load, too, hence not less. Chosen, not measured: at 9 the slices of a healthy disk of memory
/// varied by a factor of two.
const CROWDED_LOAD: f64 = 4.0;

pub(super) fn check(record: &Record) -> Option<Diagnosis> {
    if known_credit_diagnosis(record).is_some()
        || load_per_cpu(record).is_some_and(|load| load > CROWDED_LOAD)
    {
        return None;
    }
    let hits = unexplained_reads(record);
    let first = hits.first()?;
    let row = first.measured.row;
    let claim = format!(
        "{} ran at {} until {}, then at {} to the end. {}",
        workload_names(record, hits.iter().map(|hit| hit.measured.index)),
        figure_text(first.fall.before, Some(0.01 * first.fall.before), "1/s"),
        format_duration(first.fall.at_ns),
        figure_text(first.fall.after, Some(0.01 * first.fall.after), "1/s"),
        possible_causes(record, row)
    );
    let observations = hits.iter().map(SlowedWorkload::evidence);
    Some(
        Diagnosis::new(Severity::Warning, claim, observations).with_command(&row.figures.reproduce),
    )
}

/// The workloads that only read and fell on targets without a credit.
fn unexplained_reads(record: &Record) -> Vec<SlowedWorkload<'_>> {
    let credits = credits_of_falls(record);
    let mut hits = Vec::new();
    for slowed in slowed_on_each_target(record) {
        for hit in slowed {
            let data = &hit.measured.row.data;
            if is_after_pause(record, hit.measured.row) {
                continue;
            }
            let is_explained = credits
                .iter()
                .any(|fallen| fallen.credit.target == data.target);
            if !is_explained && data.workload.streams.is_only(OpKind::Read) {
                hits.push(hit);
            }
        }
    }
    hits
}

/// A disk of this machine has no burst credit; any other storage may.
fn possible_causes(record: &Record, row: &Row) -> &'static str {
    match record.targets.get(row.data.target) {
        Some(target) if is_real_disk(record, target) => {
            "Heat, the disk's own housekeeping or other content further on may be the cause."
        }
        _ => {
            "A burst credit that ended, the storage below or other content further on may be the \
             cause."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::rules::burst_exhausted;
    use crate::rules::bursts::tests::{burst, uneven_after};
    use diskproof_model::plan::Decide;
    use diskproof_model::sustain::SustainPlan;

    /// Reads that fall to a rate with the noise of a medium, and reads that do not fall.
    pub(super) const EXAMPLES: Examples = Examples::new(|| uneven_after(burst()), fixture::record);

    #[test]
    fn uneven_rate_after_a_fall_of_reads_is_that_of_no_limiter() {
        let uneven = uneven_after(burst());
        let diagnosis = check(&uneven).unwrap();
        assert_eq!(burst_exhausted::check(&uneven), None);
        // The writes of the fixture did not fall.
        assert_eq!(diagnosis.evidence.len(), 1);
        // So many processes leave a rate of their own.
        let mut crowded = uneven.clone();
        crowded.host.load_average = Some(format!("{}", 5 * crowded.host.cpus));
        assert_eq!(check(&crowded), None);
        let mut virtual_disk = uneven;
        virtual_disk.host.hypervisor = Some("kvm".to_owned());
        assert_eq!(burst_exhausted::check(&virtual_disk), None);
        assert_ne!(check(&virtual_disk).unwrap().claim, diagnosis.claim);
    }

    #[test]
    fn rate_of_a_crowded_machine_shows_no_cause() {
        let mut record = uneven_after(burst());
        let cpus = f64::from(record.host.cpus);
        for (load_per_cpu, is_reported) in [(4.0, true), (4.1, false)] {
            record.host.load_average = Some(format!("{:.2} 1.00 1.00", load_per_cpu * cpus));
            assert_eq!(check(&record).is_some(), is_reported, "{load_per_cpu}");
        }
    }

    /// The load after a pause of `sustain` is there to show a burst, which ends.
    #[test]
    fn reads_after_a_pause_do_not_fall() {
        for (name, is_reported) in [("random-read-d32", false), ("random-read-d1", true)] {
            let mut record = uneven_after(burst());
            let workloads = record.plan.workload_task_mut().unwrap();
            let named = workloads.list.iter().find(|workload| workload.name == name);
            let after_pause = named.unwrap().clone();
            workloads.list.truncate(1);
            workloads.list.push(after_pause);
            workloads.decide = Decide::Until(SustainPlan {
                round_ns: 1_000_000_000,
                pauses_ns: vec![1_000_000_000],
                precondition_bytes: None,
                stop_at_drop: None,
                budget_bytes: None,
            });
            assert_eq!(check(&record).is_some(), is_reported, "{name}");
        }
    }
}
