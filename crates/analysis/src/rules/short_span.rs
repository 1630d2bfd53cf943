//! `short-span`: random accesses to a rotating disk covered a small part of it, so the arm moved
//! less than it does across the whole disk.

use super::rule::*;
use crate::mechanics::kernel_reports_rotation;

pub(super) const RULE: Rule = Rule {
    code: "short-span",
    title: "Random figures cover part of the disk",
    summary: "Random accesses covered only a part of a rotating disk. A database that is spread \
              over the whole disk has longer seeks.",
    remedy: Remedy::Always(
        "Apply the figures only to a database of that size. To measure the gain of shorter spans, \
         run diskproof curve --short-stroke on the block device as root, which only reads.",
    ),
    check: Check::Workloads(check),
    says: Meaning::Note,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Over so much of the surface the mean access takes 5 % less time than over all of it, by the seek
/// curves and zones of three simulated disks (5400, 7200 and 15,000 rpm, outer zones up to twice as
/// dense as inner ones). Over half of it, it takes 22 to 24 % less.
const SHARE_MIN: f64 = 0.9;

/// A random workload in a part of a rotating disk.
struct ShortSpan<'a> {
    measured: Measured<'a>,
    span_bytes: u64,
    disk_bytes: u64,
}

impl ShortSpan<'_> {
    fn share(&self) -> f64 {
        self.span_bytes as f64 / self.disk_bytes as f64
    }
}

fn check(record: &Record) -> Option<Diagnosis> {
    let mut hits: Vec<ShortSpan<'_>> = Vec::new();
    for measured in real_rows(record) {
        hits.extend(short_span(record, measured));
    }
    let shortest = smallest_by(&hits, |hit| hit.share())?;
    Some(Diagnosis::new(
        Severity::Note,
        format!(
            "The random accesses of {} cover {}, {} of the rotating disk of {}. Over the whole \
             disk, seeks are longer and the rate is lower.",
            workload_names(record, hits.iter().map(|hit| hit.measured.index)),
            format_bytes(shortest.span_bytes),
            format_percent(shortest.share()),
            gigabytes(shortest.disk_bytes)
        ),
        hits.iter().map(|hit| {
            let threshold = SHARE_MIN * hit.disk_bytes as f64;
            hit.measured
                .evidence("data/span_bytes", hit.span_bytes as f64, threshold, "B")
        }),
    ))
}

fn short_span<'a>(record: &Record, measured: Measured<'a>) -> Option<ShortSpan<'a>> {
    let row = measured.row;
    let target = record.targets.get(row.data.target)?;
    let span = ShortSpan {
        measured,
        span_bytes: row.data.span_bytes,
        disk_bytes: rotating_bytes(record, target)?,
    };
    // A part of a device that the user chose is what the user wants to know.
    let is_chosen = target.kind == TargetKind::BlockDevice && span.span_bytes < target.size_bytes;
    if !is_random(row) || is_chosen || span.share() >= SHARE_MIN {
        return None;
    }
    Some(span)
}

/// The size of the one disk below a target, where it really turns.
fn rotating_bytes(record: &Record, target: &TargetIdentity) -> Option<u64> {
    let disks: Vec<&Layer> = target.disks().collect();
    match disks[..] {
        [disk] if kernel_reports_rotation(&record.host, disk) => Some(disk.size_bytes),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};

    pub(super) const EXAMPLES: Examples = Examples::new(
        || on_disk(true, 2_000_000_000_000),
        || on_disk(false, 2_000_000_000_000),
    );

    fn on_disk(rotational: bool, size_bytes: u64) -> Record {
        fixture::changed(|run| {
            run.facts.host.hypervisor = None;
            let mut disk = fixture::layer("sda", LayerKind::Disk, &[]);
            (disk.rotational, disk.size_bytes) = (Some(rotational), size_bytes);
            run.facts.targets[0].layers = vec![disk];
        })
    }

    #[test]
    fn random_figures_of_a_scratch_file_state_their_span() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(finding.severity, Severity::Note);
        states(&finding.claim, &["random-read-d1", "2000 GB"]);
        assert!(
            !finding.claim.contains("sequential-read"),
            "{}",
            finding.claim
        );
    }

    #[test]
    fn most_of_a_disk_and_virtual_disks_are_silent() {
        let most = on_disk(true, fixture::SPAN_BYTES * 20 / 19);
        assert_eq!(check(&most), None);
        let two_thirds = on_disk(true, fixture::SPAN_BYTES * 3 / 2);
        assert!(check(&two_thirds).is_some());
        let mut record = (EXAMPLES.fires)();
        record.host.hypervisor = Some("kvm".to_owned());
        assert_eq!(check(&record), None);
    }
}
