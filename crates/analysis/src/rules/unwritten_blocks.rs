//! `unwritten-blocks`: blocks were read that were never written, which costs no access to the
//! medium.

use super::rule::*;
use crate::mechanics::surely_rotates;

pub(super) const RULE: Rule = Rule {
    code: "unwritten-blocks",
    title: "Unwritten blocks were read",
    summary: "The reads included blocks without content: holes, discarded or never written. Such \
              reads do not reach the medium and look too fast.",
    remedy: Remedy::ByCase,
    check: Check::Workloads(check),
    says: Meaning::NotTheDisk {
        cause: Cause::EmptyBlocks,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Share of the span that may be holes: the metadata of a sparse image, not more.
const UNWRITTEN_SHARE_MAX: f64 = 0.01;

/// From this share on most of the figure is not the medium's.
const UNWRITTEN_SHARE_FAILURE: f64 = 0.5;

/// Fewer blocks than this are too few to judge their content, unless all agree.
const SAMPLED_MIN: u64 = 20;

/// The fewest blocks that say something when every one of them is empty.
const SAMPLED_ALIKE_MIN: u64 = 5;

/// Share of the blocks that may contain only zeros: databases keep some empty pages.
const ZERO_SHARE_MAX: f64 = 0.1;

/// A workload that read empty blocks.
struct EmptyReads {
    index: usize,
    severity: Severity,
    claim: String,
    evidence: Evidence,
}

fn check(record: &Record) -> Option<Diagnosis> {
    let mut hits: Vec<EmptyReads> = Vec::new();
    for measured in real_rows(record) {
        if measured.row.data.workload.streams.makes(OpKind::Read) {
            hits.extend(unwritten_reads(measured).or_else(|| zero_reads(record, measured)));
        }
    }
    let worst = first_of_most_severe(&hits)?;
    let claim = format!(
        "Empty blocks were read in {}: {} Such reads need not reach the medium.",
        workload_names(record, hits.iter().map(|hit| hit.index)),
        worst.claim
    );
    let observations = hits.iter().map(|hit| hit.evidence.clone());
    let remedy = remedy(record, worst);
    Some(Diagnosis::new(worst.severity, claim, observations).with_remedy(remedy))
}

fn first_of_most_severe(hits: &[EmptyReads]) -> Option<&EmptyReads> {
    let mut worst = hits.first()?;
    for hit in hits {
        if hit.severity > worst.severity {
            worst = hit;
        }
    }
    Some(worst)
}

fn remedy(record: &Record, worst: &EmptyReads) -> &'static str {
    let target = record.measurements[worst.index].data.target;
    match record.targets.get(target) {
        Some(target) if target.kind == TargetKind::BlockDevice => {
            "Measure a device whose span has been written completely, or a part that contains data."
        }
        _ => {
            "Measure a directory, in which diskproof fills its own file, or a file with content \
             instead of holes."
        }
    }
}

/// Reads of a span that has holes.
fn unwritten_reads(measured: Measured<'_>) -> Option<EmptyReads> {
    let span_bytes = measured.row.data.span_bytes;
    let unwritten_bytes = measured.row.data.unwritten_bytes?;
    let unwritten_max = UNWRITTEN_SHARE_MAX * span_bytes as f64;
    let observed = unwritten_bytes as f64;
    if observed <= unwritten_max {
        return None;
    }
    let share = observed / span_bytes.max(1) as f64;
    Some(EmptyReads {
        index: measured.index,
        severity: failure_if(share >= UNWRITTEN_SHARE_FAILURE),
        claim: format!(
            "{} of {} ({}) were never written.",
            format_bytes(unwritten_bytes),
            format_bytes(span_bytes),
            format_percent(share)
        ),
        evidence: measured.evidence("data/unwritten_bytes", observed, unwritten_max, "B"),
    })
}

/// Reads whose sampled blocks contain only zeros.
fn zero_reads(record: &Record, measured: Measured<'_>) -> Option<EmptyReads> {
    let sample = measured.row.data.zero_blocks;
    let sampled_min = if sample.zero == sample.sampled {
        SAMPLED_ALIKE_MIN
    } else {
        SAMPLED_MIN
    };
    let zeros_max = ZERO_SHARE_MAX * sample.sampled as f64;
    let observed = sample.zero as f64;
    let target = &record.targets[measured.row.data.target];
    if sample.sampled < sampled_min
        || observed < zeros_max
        || reads_zeros_off_platters(record, target)
    {
        return None;
    }
    Some(EmptyReads {
        index: measured.index,
        severity: Severity::Warning,
        claim: format!(
            "{} of {} sampled blocks contain only zeros: never written, discarded, or actually \
             zero.",
            sample.zero, sample.sampled
        ),
        evidence: measured.evidence("data/zero_blocks/zero", observed, zeros_max, "1"),
    })
}

/// True if zeros cost as much as any other content: disks that turn and take no discards have no
/// map of empty blocks. Devices between may have one.
fn reads_zeros_off_platters(record: &Record, target: &TargetIdentity) -> bool {
    for layer in &target.layers {
        let is_plain = match layer.kind {
            LayerKind::Partition => true,
            LayerKind::Disk => layer.discard == Some(false) && surely_rotates(record, layer),
            LayerKind::DeviceMapper
            | LayerKind::Md
            | LayerKind::Loop
            | LayerKind::Zram
            | LayerKind::RamDisk
            | LayerKind::Network => false,
        };
        if !is_plain {
            return false;
        }
    }
    // A filesystem may have a map of its own.
    target.kind == TargetKind::BlockDevice && target.disks().next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, SPAN_BYTES, states};
    use diskproof_model::measurement::ZeroSample;
    use diskproof_model::target::Link;

    pub(super) const EXAMPLES: Examples = Examples::new(
        || {
            fixture::changed(|run| {
                run.measurements[3].unwritten_bytes = Some(SPAN_BYTES / 20);
                run.measurements[2].zero_blocks = zeros(100, 90);
            })
        },
        || fixture::all_faulty(|measurement| measurement.zero_blocks = zeros(1000, 99)),
    );

    fn zeros(sampled: u64, zero: u64) -> ZeroSample {
        ZeroSample { sampled, zero }
    }

    #[test]
    fn holes_and_zeros_are_reported() {
        let finding = check(&(EXAMPLES.fires)()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Warning, 2)
        );
        states(&finding.claim, &["90 of 100"]);
        let holes = fixture::faulty("random-read-d1", |measurement| {
            measurement.unwritten_bytes = Some(SPAN_BYTES)
        });
        let finding = check(&holes).unwrap();
        assert_eq!(finding.severity, Severity::Failure);
        states(&finding.claim, &["4 GiB of 4 GiB (100 %)"]);
    }

    #[test]
    fn silent_on_writers_few_samples_and_a_few_zeros() {
        let write = fixture::faulty("sequential-write", |measurement| {
            measurement.unwritten_bytes = Some(SPAN_BYTES)
        });
        assert_eq!(check(&write), None);
        for sample in [zeros(19, 18), zeros(4, 4)] {
            let record = fixture::all_faulty(|measurement| measurement.zero_blocks = sample);
            assert_eq!(check(&record), None, "{sample:?}");
        }
    }

    #[test]
    fn zeros_of_a_new_rotating_disk_are_read_off_its_platters() {
        for (bus, rotational, discard, expected) in [
            ("SATA", true, false, false),
            ("SATA", true, true, true),
            ("SATA", false, false, true),
            // The kernel takes each stick for a disk that turns.
            ("USB", true, false, true),
        ] {
            let record = fixture::changed(|run| {
                run.facts.host.hypervisor = None;
                run.facts.targets[0].kind = TargetKind::BlockDevice;
                run.facts.targets[0].layers = vec![Layer {
                    rotational: Some(rotational),
                    discard: Some(discard),
                    link: Some(Link {
                        bus: bus.to_owned(),
                        ..Link::default()
                    }),
                    ..fixture::layer("sda", LayerKind::Disk, &[])
                }];
                run.measurements[2].zero_blocks = zeros(100, 90);
            });
            assert_eq!(
                check(&record).is_some(),
                expected,
                "{bus} {rotational} {discard}"
            );
        }
    }
}
