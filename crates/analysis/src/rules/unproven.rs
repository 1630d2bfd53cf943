//! `unproven`: no disk could be found or counted below the target, so nothing confirms that the
//! figures come from one.

use super::evidence::{evidence_at, part_path, places, real};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use diskproof_model::finding::Severity;
use diskproof_model::record::Record;

pub(super) const RULES: &[Rule] = &[Rule {
    code: "unproven",
    title: "No disk counter confirms the figures",
    meaning: "No counter of a disk shows whether requests and syncs reached one: a network or FUSE \
              filesystem, or a disk that the kernel does not count. A cache may have answered, so \
              the figures are not graded.",
    taints: None,
    check: Check::Run(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

fn check(record: &Record) -> Option<Diagnosis> {
    let measured = real(record).map(|(index, m)| (Some(index), &m.device));
    let surveyed = record.surface.iter().map(|s| (None, &s.device));
    let hits: Vec<(Option<usize>, &str)> = measured
        .chain(surveyed)
        .filter_map(|(index, device)| Some((index, device.unresolved.as_deref()?)))
        .collect();
    let &(_, why) = hits.first()?;
    let evidence = |&(index, _): &(Option<usize>, &str)| {
        let path = part_path(index) + "/device/accounted";
        evidence_at(path, 0.0, 1.0, "of the bytes")
    };
    Some(Diagnosis::new(
        Severity::Warning,
        format!(
            "No counter confirms that a disk moved the bytes of {} ({why}). A cache may have \
             answered, and syncs may not have reached a medium.",
            places(record, hits.iter().map(|(index, _)| *index)),
        ),
        hits.iter().map(evidence),
        "Measure where the disk is attached. For commits, run a power-cut test (diskproof \
         powercut).",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::verdict::{Grade, TrustLevel};

    pub(super) fn fires() -> Record {
        fixture::all_faulty(|m| {
            m.device.unresolved = Some("fuse has no block device".to_owned());
            m.device.accounted = None;
        })
    }

    pub(super) fn silent() -> Record {
        fixture::record()
    }

    #[test]
    fn unproven_figures_are_never_good_and_named_in_the_trust_line() {
        let verdict = fires().verdict.unwrap();
        let grades: Vec<Option<Grade>> = verdict.grades.iter().map(|use_| use_.grade).collect();
        assert_eq!(grades, [None; 4]);
        assert_eq!(verdict.trust.level, TrustLevel::Doubtful);
        assert_eq!(verdict.worst.unwrap().code, "unproven");
        let proven = silent().verdict.unwrap();
        assert!(proven.grades.iter().all(|use_| use_.grade.is_some()));
    }
}
