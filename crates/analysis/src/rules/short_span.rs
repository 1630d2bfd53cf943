//! `short-span`: random accesses to a rotating disk covered a small part of it, so the arm moved
//! less than it does across the whole disk.

use super::rule::*;
use crate::mechanics::is_said_to_rotate;

pub(super) const SHORT_SPAN: Rule = Rule {
    code: "short-span",
    check: Check::Workloads(check_short_span),
    says: Meaning::Note,
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Over half of the surface the mean seek is within a few per cent of that over all of it.
const SHARE_MIN: f64 = 0.5;

fn check_short_span(record: &Record) -> Option<Diagnosis> {
    let hits: Vec<(usize, f64, u64, u64)> = real(record)
        .filter_map(|(index, m)| short_span(record, (index, m)))
        .collect();
    let &(_, share, span_bytes, disk_bytes) = smallest_by(&hits, |hit| hit.1)?;
    Some(Diagnosis::new(
        Severity::Note,
        format!(
            "The random accesses of {} cover {}, {} of the rotating disk of {}. Over the whole \
             disk, seeks are longer and the rate is lower.",
            scope(record, hits.iter().map(|hit| hit.0)),
            format_bytes(span_bytes),
            format_percent(share),
            gigabytes(disk_bytes)
        ),
        hits.iter().map(|&(index, _, span_bytes, disk_bytes)| {
            let threshold = SHARE_MIN * disk_bytes as f64;
            let span_bytes = span_bytes as f64;
            evidence(index, "data/span_bytes", span_bytes, threshold, "B")
        }),
    ))
}

/// A random workload in a small part of a rotating disk: its index, share, span and disk.
fn short_span(record: &Record, (index, m): Measured) -> Option<(usize, f64, u64, u64)> {
    let target = record.targets.get(m.data.target)?;
    let disk_bytes = rotating_bytes(record, target)?;
    let is_random = matches!(
        m.data.workload.access,
        Access::Random { .. } | Access::Zoned { .. }
    );
    let share = m.data.span_bytes as f64 / disk_bytes as f64;
    (is_random && target.kind != TargetKind::BlockDevice && share < SHARE_MIN).then_some((
        index,
        share,
        m.data.span_bytes,
        disk_bytes,
    ))
}

/// The size of the one disk below a target, where it really turns.
fn rotating_bytes(record: &Record, target: &TargetIdentity) -> Option<u64> {
    let disks: Vec<&Layer> = target.disks().collect();
    let [disk] = disks[..] else {
        return None;
    };
    is_said_to_rotate(record, disk).then_some(disk.size_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};

    pub(super) const EXAMPLES: Examples = Examples::of(
        || on_disk(true, 2_000_000_000_000),
        || on_disk(false, 2_000_000_000_000),
    );

    fn on_disk(rotational: bool, size_bytes: u64) -> Record {
        fixture::changed(|run| {
            run.0.host.hypervisor = None;
            let mut disk = fixture::layer("sda", LayerKind::Disk, &[]);
            (disk.rotational, disk.size_bytes) = (Some(rotational), size_bytes);
            run.0.targets[0].layers = vec![disk];
        })
    }

    #[test]
    fn random_figures_of_a_scratch_file_state_their_span() {
        let finding = check_short_span(&(EXAMPLES.fires)()).unwrap();
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
        let most = on_disk(true, fixture::SPAN_BYTES * 3 / 2);
        assert_eq!(check_short_span(&most), None);
        let mut record = (EXAMPLES.fires)();
        record.host.hypervisor = Some("kvm".to_owned());
        assert_eq!(check_short_span(&record), None);
    }
}
