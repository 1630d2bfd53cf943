//! `cpu-stolen`: while this virtual machine measured, its hypervisor gave its processors to others.
//! Neither the load average nor the waits of threads show that: the machine itself stood still.

use super::evidence::{evidence_at, warning_if};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use diskproof_model::record::Record;
use diskproof_model::units::format_percent;

pub(super) const RULES: &[Rule] = &[Rule {
    code: "cpu-stolen",
    title: "The hypervisor took processors away",
    meaning: "The hypervisor ran other virtual machines on this machine's processors. Requests \
              were sent late and answers noticed late, so rates are lower and latencies longer \
              than the disk's own.",
    taints: None,
    check: Check::Run(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

/// Share of the CPU time from which on it shows in the high percentiles.
const SHARE_MIN: f64 = 0.02;
/// From this share on rates vary by it, too.
const SHARE_WARNING: f64 = 0.05;

/// The share, where it is so large that rates vary by it.
pub(super) fn large_share(record: &Record) -> Option<f64> {
    let stolen = record.host.stolen_share;
    stolen.filter(|share| *share >= SHARE_WARNING)
}

fn check(record: &Record) -> Option<Diagnosis> {
    let stolen = record.host.stolen_share;
    let share = stolen.filter(|share| *share >= SHARE_MIN)?;
    Some(Diagnosis::new(
        warning_if(share >= SHARE_WARNING),
        format!(
            "During the measurement the hypervisor gave {} of this machine's CPU time to other \
             machines. This delays requests and answers; a database on this machine loses the same \
             time.",
            format_percent(share)
        ),
        vec![evidence_at(
            "/host/stolen_share",
            share,
            SHARE_MIN,
            "of the CPU time",
        )],
        "Measure again when column st of 'vmstat 1' is near 0. If it stays high, ask the \
         provider for dedicated CPUs.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::finding::Severity;

    fn stolen(share: f64) -> Record {
        let mut run = fixture::run();
        run.0.host.stolen_share = Some(share);
        fixture::judge(run)
    }

    pub(super) fn fires() -> Record {
        stolen(0.28)
    }

    pub(super) fn silent() -> Record {
        stolen(0.01)
    }

    #[test]
    fn share_decides_how_severe_it_is() {
        let finding = check(&fires()).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert!(
            finding.claim.contains("gave 28 % of this machine's CPU"),
            "{}",
            finding.claim
        );
        assert_eq!(check(&stolen(0.03)).unwrap().severity, Severity::Note);
        assert_eq!(check(&stolen(0.019)), None);
        assert_eq!(check(&fixture::record()), None);
    }
}
