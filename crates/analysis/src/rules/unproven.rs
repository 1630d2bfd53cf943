//! `unproven`: no disk could be found or counted below the target, or what it counted is that of
//! other programs, so nothing confirms that the figures come from it.

use super::rule::*;
use super::traffic::Traffic;

pub(super) const RULE: Rule = Rule {
    code: "unproven",
    title: "No disk counter confirms the figures",
    summary: "No counter of a disk shows whether requests and syncs reached one: a network or FUSE \
              filesystem, a disk that the kernel does not count, one that is a part of another \
              target of the run, or a loop device that reads its file through the page cache \
              while other programs read more from the disk below. A cache may have answered, so \
              the figures are not graded.",
    remedy: Remedy::ByCase,
    check: Check::Run(check),
    says: Meaning::NotTheDisk {
        cause: Cause::Unconfirmed,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// The remedy where nothing counts what reaches a disk.
const ATTACHED_REMEDY: &str = "Measure where the disk is attached. For commits, run a power-cut \
                               test (diskproof powercut).";
/// The remedy where a page cache above the counted disk may have answered.
const BUFFERED_REMEDY: &str = "Turn on direct I/O where the file of the device is opened: losetup \
                               --direct-io=on DEVICE, qemu-nbd --cache=none. Or measure while no \
                               other program reads from the disk.";

/// A workload or survey that no counter confirms.
struct UncountedFigures<'a> {
    /// The index of the workload; `None` for the survey.
    index: Option<usize>,
    why: &'a str,
    remedy: &'static str,
    evidence: Evidence,
}

impl<'a> UncountedFigures<'a> {
    fn without_counters(index: Option<usize>, why: &'a str) -> Self {
        let path = data_path(index) + "/device/accounted";
        Self {
            index,
            why,
            remedy: ATTACHED_REMEDY,
            evidence: evidence_at(path, 0.0, 1.0, "of the bytes"),
        }
    }
}

/// Reads of a loop device whose file is read through the page cache, where other programs read more
/// from the disk below: the reads may all have been answered from memory.
fn hidden_by_others<'a>(record: &Record, measured: Measured<'_>) -> Option<UncountedFigures<'a>> {
    let row = measured.row;
    let asked_bytes = row.data.asked.read_bytes;
    let target = record.targets.get(row.data.target)?;
    if asked_bytes == 0 || !target.has_buffered_loop() {
        return None;
    }
    let excess = Traffic::from_workload(record, measured)?.excess()?;
    if excess.foreign.reads < asked_bytes {
        return None;
    }
    let read_bytes = row.data.device.read_bytes as f64;
    Some(UncountedFigures {
        index: Some(measured.index),
        why: "other programs read more from the disk than this run, and the loop device uses the \
              page cache",
        remedy: BUFFERED_REMEDY,
        evidence: measured.evidence(
            "data/device/read_bytes",
            read_bytes,
            2.0 * asked_bytes as f64,
            "B",
        ),
    })
}

fn check(record: &Record) -> Option<Diagnosis> {
    let mut hits = Vec::new();
    for measured in real_rows(record) {
        match &measured.row.data.device.unresolved {
            Some(why) => {
                let index = Some(measured.index);
                hits.push(UncountedFigures::without_counters(index, why));
            }
            None => hits.extend(hidden_by_others(record, measured)),
        }
    }
    if let Some(surface) = record.surface()
        && let Some(why) = &surface.data.device.unresolved
    {
        hits.push(UncountedFigures::without_counters(None, why));
    }
    let first = hits.first()?;
    let claim = format!(
        "No counter confirms that a disk moved the bytes of {} ({}). A cache may have answered, \
         and syncs may not have reached a medium.",
        places(record, hits.iter().map(|hit| hit.index)),
        first.why
    );
    let mut remedies: Vec<&str> = Vec::new();
    for hit in &hits {
        if !remedies.contains(&hit.remedy) {
            remedies.push(hit.remedy);
        }
    }
    let remedy = remedies.join(" ");
    let observations = hits.into_iter().map(|hit| hit.evidence);
    Some(Diagnosis::new(Severity::Warning, claim, observations).with_remedy(remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, process, states};
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

    /// Reads at depth 1 of a loop device, while another program reads so much from the disk below.
    fn beside_reads_of_others(direct: bool, bytes: u64) -> Option<Diagnosis> {
        check(&fixture::changed(|run| {
            for layer in &mut run.facts.targets[0].layers {
                layer.backing_direct = Some(direct);
            }
            for measurement in &mut run.measurements {
                if measurement.workload.name == "random-read-d1" {
                    measurement.device.read_bytes += bytes;
                    measurement.device.others = vec![process("pg_dump", bytes, 0)];
                }
            }
        }))
    }

    #[test]
    fn counters_of_a_shared_disk_do_not_confirm_reads_through_the_page_cache() {
        let found = beside_reads_of_others(false, 2 << 30).unwrap();
        states(&found.claim, &["random-read-d1", "loop device"]);
        assert_eq!(found.evidence.len(), 1);
        assert_eq!(found.remedy, BUFFERED_REMEDY);
        let uncounted = check(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(uncounted.remedy, ATTACHED_REMEDY);
        // Past the page cache every read is one of the disk, whoever else reads.
        assert_eq!(beside_reads_of_others(true, 2 << 30), None);
        // What this run moved is most of what the disk counted.
        assert_eq!(beside_reads_of_others(false, 1 << 20), None);
    }
}
