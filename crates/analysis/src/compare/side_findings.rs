//! Collects what the runs of a side found wrong with their disks. Verdicts do not contain it,
//! because the figures are right: a disk that reports its failure may be as fast as another.

use super::sides::{RunGroup, named_runs};
use diskproof_model::comparison::SideFinding;

/// The failures and warnings of a side's runs about their disks, failures first.
pub(super) fn side_findings(group: &RunGroup<'_>, side_letter: &str) -> Vec<SideFinding> {
    let mut findings = Vec::new();
    for named in named_runs(group, side_letter) {
        for finding in &named.run.record.findings {
            if finding.is_trouble_of_disk() {
                findings.push(SideFinding {
                    run: named.name.clone(),
                    code: finding.code.clone(),
                    severity: finding.severity,
                    title: finding.heading().to_owned(),
                    claim: finding.claim.clone(),
                });
            }
        }
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Run;
    use crate::fixture;
    use diskproof_model::finding::{Finding, Meaning, Severity};
    use diskproof_model::record::Record;

    fn with_findings(says: &[(Meaning, Severity)]) -> Record {
        let mut record = fixture::record();
        record.findings.clear();
        for (says, severity) in says {
            record.findings.push(Finding {
                says: *says,
                ..fixture::finding("code", *severity, "/health/0/passed")
            });
        }
        record
    }

    fn severities(record: &Record) -> Vec<Severity> {
        let group = RunGroup {
            label: "side".to_owned(),
            runs: vec![Run::without_name(record)],
        };
        side_findings(&group, "B")
            .iter()
            .map(|finding| finding.severity)
            .collect()
    }

    #[test]
    fn failures_of_the_disk_come_first_and_doubts_about_figures_do_not_count() {
        let record = with_findings(&[
            (Meaning::Disk, Severity::Warning),
            (Meaning::Doubtful, Severity::Warning),
            (Meaning::Disk, Severity::Note),
            (Meaning::Health, Severity::Failure),
        ]);
        assert_eq!(severities(&record), [Severity::Failure, Severity::Warning]);
    }
}
