//! `io-punted`: io_uring could not submit the I/O of this target without blocking, and handed it to
//! kernel worker threads.

use super::rule::*;

pub(super) const RULE: Rule = Rule {
    code: "io-punted",
    title: "io_uring needed kernel worker threads",
    summary: "io_uring could not submit without blocking on this target, so kernel threads \
              submitted the I/O at a higher cost per operation.",
    remedy: Remedy::Always("Compare with --engine aio, which submits directly."),
    check: Check::Workloads(check),
    says: Meaning::Note,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

fn check(record: &Record) -> Option<Diagnosis> {
    let hits: Vec<Measured<'_>> = real_rows(record)
        .filter(|measured| is_punted(measured.row))
        .collect();
    if hits.is_empty() {
        return None;
    }
    Some(Diagnosis::new(
        Severity::Note,
        format!(
            "io_uring passes this target's I/O to kernel threads in {}. This costs CPU time and \
             some latency and, on a fast disk, IOPS.",
            workload_names(record, indices(&hits))
        ),
        hits.iter()
            .map(|hit| hit.evidence("data/punted", 1.0, 0.0, "punted")),
    ))
}

fn is_punted(row: &Row) -> bool {
    row.data.engine.used == EngineKind::Uring && row.data.punted == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};

    pub(super) const EXAMPLES: Examples = Examples::new(
        || fixture::all_faulty(|measurement| measurement.punted = Some(true)),
        || fixture::all_faulty(|measurement| measurement.punted = None),
    );

    #[test]
    fn only_what_io_uring_carried_is_reported() {
        let finding = RULE.find(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Note, 6)
        );
        assert!(
            !finding.claim.contains("random-read-d1,"),
            "{}",
            finding.claim
        );
        states(&finding.remedy, &["--engine aio"]);
        assert_eq!(check(&fixture::record()), None);
    }
}
