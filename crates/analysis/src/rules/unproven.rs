//! `unproven`: no disk could be found or counted below the target, so nothing confirms that the
//! figures come from one.

use super::rule::*;

pub(super) const RULE: Rule = Rule {
    code: "unproven",
    title: "No disk counter confirms the figures",
    summary: "No counter of a disk shows whether requests and syncs reached one: a network or FUSE \
              filesystem, a disk that the kernel does not count, or one that is a part of another \
              target of the run. A cache may have answered, so the figures are not graded.",
    remedy: Remedy::Always(
        "Measure where the disk is attached. For commits, run a power-cut test (diskproof \
         powercut).",
    ),
    check: Check::Run(check),
    says: Meaning::NotTheDisk {
        cause: Cause::Unconfirmed,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// A workload or survey without counters.
struct UncountedFigures<'a> {
    /// The index of the workload; `None` for the survey.
    index: Option<usize>,
    why: &'a str,
}

fn check(record: &Record) -> Option<Diagnosis> {
    let mut hits = Vec::new();
    for measured in real_rows(record) {
        if let Some(why) = &measured.row.data.device.unresolved {
            let index = Some(measured.index);
            hits.push(UncountedFigures { index, why });
        }
    }
    if let Some(surface) = record.surface()
        && let Some(why) = &surface.data.device.unresolved
    {
        hits.push(UncountedFigures { index: None, why });
    }
    let first = hits.first()?;
    Some(Diagnosis::new(
        Severity::Warning,
        format!(
            "No counter confirms that a disk moved the bytes of {} ({}). A cache may have \
             answered, and syncs may not have reached a medium.",
            places(record, hits.iter().map(|hit| hit.index)),
            first.why
        ),
        hits.iter().map(|hit| {
            let path = data_path(hit.index) + "/device/accounted";
            evidence_at(path, 0.0, 1.0, "of the bytes")
        }),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::verdict::{Grade, TrustLevel};

    pub(super) const EXAMPLES: Examples = Examples::new(
        || {
            fixture::all_faulty(|measurement| {
                measurement.device.unresolved = Some("fuse has no block device".to_owned());
                measurement.device.accounted = None;
            })
        },
        fixture::record,
    );

    #[test]
    fn unproven_figures_are_never_good_and_named_in_the_trust_line() {
        let verdict = (EXAMPLES.fires)().verdict.unwrap();
        let grades: Vec<Option<Grade>> = verdict.grades.iter().map(|use_| use_.grade).collect();
        assert_eq!(grades, [None; 4]);
        assert_eq!(verdict.trust.level, TrustLevel::Doubtful);
        assert_eq!(verdict.worst.unwrap().code, "unproven");
        let proven = fixture::record().verdict.unwrap();
        assert!(proven.grades.iter().all(|use_| use_.grade.is_some()));
    }
}
