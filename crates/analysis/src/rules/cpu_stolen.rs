//! `cpu-stolen`: while this virtual machine measured, its hypervisor gave its processors to others.
//! Neither the load average nor the waits of threads show that: the machine itself stood still.

use super::rule::*;

pub(super) const RULE: Rule = Rule {
    code: "cpu-stolen",
    title: "The hypervisor took processors away",
    summary: "The hypervisor ran other virtual machines on this machine's processors. Requests \
              were sent late and answers noticed late, so rates are lower and latencies longer \
              than the disk's own.",
    remedy: Remedy::Always(
        "Measure again when column st of 'vmstat 1' is near 0. If it stays high, ask the provider \
         for dedicated CPUs.",
    ),
    check: Check::Run(check),
    says: Meaning::OtherLoad {
        used: SharedResource::Processors,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Share of the CPU time from which on it shows in the high percentiles. Chosen, not measured.
const SHARE_MIN: f64 = 0.02;
/// From this share on rates vary by it, too. Chosen, not measured.
const SHARE_WARNING: f64 = 0.05;

/// The share of the CPU time that the hypervisor took; `None` where rates do not vary by it.
pub(super) fn large_share(record: &Record) -> Option<f64> {
    let share = record.host.stolen_share?;
    if share < SHARE_WARNING {
        return None;
    }
    Some(share)
}

fn check(record: &Record) -> Option<Diagnosis> {
    let share = record.host.stolen_share?;
    if share < SHARE_MIN {
        return None;
    }
    let evidence = evidence_at("/host/stolen_share", share, SHARE_MIN, "of the CPU time");
    Some(Diagnosis::new(
        warning_if(share >= SHARE_WARNING),
        format!(
            "During the measurement the hypervisor gave {} of this machine's CPU time to other \
             machines. This delays requests and answers; a database on this machine loses the same \
             time.",
            format_percent(share)
        ),
        [evidence],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    pub(super) const EXAMPLES: Examples = Examples::new(|| stolen(0.28), || stolen(0.01));

    fn stolen(share: f64) -> Record {
        fixture::changed(|run| run.facts.host.stolen_share = Some(share))
    }

    #[test]
    fn share_decides_how_severe_it_is() {
        for (share, severity) in [
            (0.28, Some(Severity::Warning)),
            (0.03, Some(Severity::Note)),
            (0.019, None),
        ] {
            let diagnosis = check(&stolen(share));
            assert_eq!(
                diagnosis.map(|finding| finding.severity),
                severity,
                "{share}"
            );
        }
        assert_eq!(check(&fixture::record()), None);
    }
}
