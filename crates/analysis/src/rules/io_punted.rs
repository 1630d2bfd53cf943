//! `io-punted`: io_uring handed the I/O of this target to kernel worker threads.

use super::evidence::{Measured, evidence, real, scope};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use diskproof_model::finding::Severity;
use diskproof_model::plan::EngineKind;
use diskproof_model::record::Record;

pub(super) const RULES: &[Rule] = &[Rule {
    code: "io-punted",
    title: "io_uring needed kernel worker threads",
    meaning: "io_uring could not submit without blocking on this target, so kernel threads \
              submitted the I/O at a higher cost per operation.",
    taints: None,
    check: Check::Workloads(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

fn check(record: &Record) -> Option<Diagnosis> {
    let hits: Vec<Measured> = real(record)
        .filter(|(_, m)| m.workload.engine == EngineKind::Uring && m.punted == Some(true))
        .collect();
    hits.first()?;
    Some(Diagnosis::new(
        Severity::Note,
        format!(
            "io_uring passes this target's I/O to kernel threads in {}. This costs CPU time and \
             some latency and, on a fast disk, IOPS.",
            scope(record, hits.iter().map(|h| h.0))
        ),
        hits.iter()
            .map(|(index, _)| evidence(*index, "punted", 1.0, 0.0, "punted")),
        "Compare with --engine aio, which submits directly.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    pub(super) fn fires() -> Record {
        fixture::all_faulty(|m| m.punted = Some(true))
    }

    pub(super) fn silent() -> Record {
        fixture::all_faulty(|m| m.punted = None)
    }

    #[test]
    fn only_what_io_uring_carried_is_reported() {
        let finding = check(&fires()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Note, 6)
        );
        assert!(
            !finding.claim.contains("random-read-d1,") && finding.remedy.contains("--engine aio"),
            "{finding:?}"
        );
    }

    #[test]
    fn inline_and_unknown_are_no_finding() {
        assert_eq!(check(&fixture::all_faulty(|m| m.punted = None)), None);
        assert_eq!(check(&fixture::record()), None);
    }
}
