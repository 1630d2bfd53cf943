//! `reads-fell`: reads became slower for good on a disk that nobody limits. The record does not
//! show why.

use super::burst_exhausted::may_have_limiter;
use super::bursts::*;
use super::rule::*;
use diskproof_model::digits::figure_text;
use diskproof_model::units::format_duration;

pub(super) const RULE: Rule = Rule {
    code: "reads-fell",
    title: "Reads became slower for good",
    summary: "Reads were fast at first and stayed slower, on a disk of this machine and without \
              the even rate of a limiter. The figures are those of the lower rate; the record does \
              not show its cause.",
    remedy: Remedy::Always(
        "Look at the temperature while it reads (smartctl -a, nvme smart-log): a hot disk slows \
         itself down. diskproof sustain shows whether the rate falls further, and what the disk \
         counts meanwhile.",
    ),
    check: Check::Workloads(check),
    says: Meaning::Limit {
        limit: RateLimit::Device,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

pub(super) fn check(record: &Record) -> Option<Diagnosis> {
    let mut hits = Vec::new();
    for slowed in slowed_on_each_target(record) {
        if !have_reads(&slowed) {
            continue;
        }
        for hit in slowed {
            if !may_have_limiter(record, &hit) {
                hits.push(hit);
            }
        }
    }
    let first = hits.first()?;
    let row = first.measured.row;
    let claim = format!(
        "{} ran at {} until {}, then at {} to the end. Heat, the disk's own housekeeping or other \
         content further on may be the cause.",
        workload_names(record, hits.iter().map(|hit| hit.measured.index)),
        figure_text(first.fall.before, Some(0.01 * first.fall.before), "1/s"),
        format_duration(first.fall.at_ns),
        figure_text(first.fall.after, Some(0.01 * first.fall.after), "1/s"),
    );
    let observations = hits.iter().map(SlowedWorkload::evidence);
    Some(
        Diagnosis::new(Severity::Warning, claim, observations).with_command(&row.figures.reproduce),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::rules::burst_exhausted;
    use crate::rules::bursts::tests::{burst, uneven_after};

    /// Reads that fall to a rate with the noise of a medium, and reads that do not fall.
    pub(super) const EXAMPLES: Examples =
        Examples::new(|| real(uneven_after(burst())), fixture::record);

    /// The same on a disk of this machine.
    fn real(mut record: Record) -> Record {
        record.host.hypervisor = None;
        for layer in &mut record.targets[0].layers {
            layer.link = Some(diskproof_model::target::Link {
                bus: "PCIe".to_owned(),
                ..diskproof_model::target::Link::default()
            });
        }
        record
    }

    #[test]
    fn only_an_even_rate_or_a_virtual_disk_has_a_credit() {
        let uneven = uneven_after(burst());
        assert!(check(&real(uneven.clone())).is_some());
        assert_eq!(burst_exhausted::check(&real(uneven.clone())), None);
        let mut virtual_disk = uneven;
        virtual_disk.host.hypervisor = Some("kvm".to_owned());
        assert_eq!(check(&virtual_disk), None);
        assert!(burst_exhausted::check(&virtual_disk).is_some());
    }
}
