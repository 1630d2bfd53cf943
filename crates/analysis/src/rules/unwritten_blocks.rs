//! `unwritten-blocks`: blocks were read that were never written, which costs no access to the
//! medium.

use super::rule::*;
use crate::mechanics::surely_rotates;
use diskproof_model::measurement::ZeroSample;
use diskproof_model::plan::Distribution;

pub(super) const RULE: Rule = Rule {
    code: "unwritten-blocks",
    title: "Unwritten blocks were read",
    summary: "The reads included blocks without content: holes, discarded or never written. Such \
              reads do not reach the medium and look too fast.",
    remedy: Remedy::ByCase,
    check: Check::Run(check),
    says: Meaning::NotTheDisk {
        cause: Cause::EmptyBlocks,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// Holes may make a rate too high by this share. It is half of what tells two disks apart in
/// practice, up to which the interval of a figure needs no comment either (`imprecise`).
const RATE_ERROR_MAX: f64 = 0.05;

/// Share of the span that may be holes. Reads of holes cost no time at worst, so that a share h of
/// them makes the rate too high by h / (1 − h).
const UNWRITTEN_SHARE_MAX: f64 = RATE_ERROR_MAX / (1.0 + RATE_ERROR_MAX);

/// The same where some blocks are read more often than others: the holes may be among these.
/// Chosen, not measured: as many as the metadata of a sparse image leave.
const UNWRITTEN_SHARE_MAX_SKEWED: f64 = 0.01;

/// From this share on most of the figure is not the medium's.
const UNWRITTEN_SHARE_FAILURE: f64 = 0.5;

/// Fewer blocks than this are too few to judge their content, unless all are empty. Chosen, not
/// measured.
const SAMPLED_MIN: u64 = 20;

/// The fewest blocks that say something when every one of them is empty.
const SAMPLED_ALIKE_MIN: u64 = 5;

/// Share of the blocks that may contain only zeros: databases keep some empty pages.
const ZERO_SHARE_MAX: f64 = 0.1;

/// A workload, or the survey, that read empty blocks.
struct EmptyReads {
    /// The index of the workload; `None` of the survey.
    index: Option<usize>,
    target: usize,
    severity: Severity,
    claim: String,
    evidence: Evidence,
}

fn check(record: &Record) -> Option<Diagnosis> {
    let mut hits: Vec<EmptyReads> = Vec::new();
    for measured in real_rows(record) {
        if measured.row.data.workload.streams.makes(OpKind::Read) {
            hits.extend(EmptyReads::find(record, ReadBlocks::of_workload(measured)));
        }
    }
    if let Some(surface) = record.surface() {
        hits.extend(EmptyReads::find(record, ReadBlocks::of_survey(surface)));
    }
    let worst = first_of_most_severe(&hits)?;
    let claim = format!(
        "Empty blocks were read in {}: {} Such reads need not reach the medium.",
        places(record, hits.iter().map(|hit| hit.index)),
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
    match record.targets.get(worst.target) {
        Some(target) if target.kind == TargetKind::BlockDevice => {
            "Measure a device whose span has been written completely, or a part that contains data."
        }
        _ => {
            "Measure a directory, in which diskproof fills its own file, or a file with content \
             instead of holes."
        }
    }
}

/// What is known of the blocks that a workload or the survey read.
#[derive(Clone, Copy)]
struct ReadBlocks {
    /// The index of the workload; `None` of the survey.
    index: Option<usize>,
    target: usize,
    span_bytes: u64,
    unwritten_bytes: Option<u64>,
    sample: ZeroSample,
    /// The share of the span that may be holes.
    unwritten_share_max: f64,
}

impl ReadBlocks {
    fn of_workload(measured: Measured<'_>) -> Self {
        let data = &measured.row.data;
        Self {
            index: Some(measured.index),
            target: data.target,
            span_bytes: data.span_bytes,
            unwritten_bytes: data.unwritten_bytes,
            sample: data.zero_blocks,
            unwritten_share_max: if reads_evenly(&data.workload.access) {
                UNWRITTEN_SHARE_MAX
            } else {
                UNWRITTEN_SHARE_MAX_SKEWED
            },
        }
    }

    fn of_survey(surface: &SurfaceRecord) -> Self {
        let data = &surface.data;
        Self {
            index: None,
            target: data.target,
            span_bytes: data.span_bytes,
            unwritten_bytes: data.unwritten_bytes,
            sample: data.zero_blocks,
            // Its points are few, and each shows a place of its own.
            unwritten_share_max: UNWRITTEN_SHARE_MAX_SKEWED,
        }
    }

    fn evidence(self, place: &str, observed: f64, threshold: f64, unit: &str) -> Evidence {
        let path = format!("{}/{place}", data_path(self.index));
        evidence_at(path, observed, threshold, unit)
    }
}

impl EmptyReads {
    fn find(record: &Record, blocks: ReadBlocks) -> Option<Self> {
        match Self::of_holes(blocks) {
            Some(found) => Some(found),
            None => Self::of_zeros(record, blocks),
        }
    }

    /// Reads of a span that has holes.
    fn of_holes(blocks: ReadBlocks) -> Option<Self> {
        let span_bytes = blocks.span_bytes;
        let unwritten_bytes = blocks.unwritten_bytes?;
        let unwritten_bytes_max = blocks.unwritten_share_max * span_bytes as f64;
        let observed = unwritten_bytes as f64;
        if observed <= unwritten_bytes_max {
            return None;
        }
        let share = observed / span_bytes.max(1) as f64;
        Some(Self {
            index: blocks.index,
            target: blocks.target,
            severity: failure_if(share >= UNWRITTEN_SHARE_FAILURE),
            claim: format!(
                "{} of {} ({}) were never written.",
                format_bytes(unwritten_bytes),
                format_bytes(span_bytes),
                format_percent(share)
            ),
            evidence: blocks.evidence("unwritten_bytes", observed, unwritten_bytes_max, "B"),
        })
    }

    /// Reads whose sampled blocks contain only zeros.
    fn of_zeros(record: &Record, blocks: ReadBlocks) -> Option<Self> {
        let sample = blocks.sample;
        let sampled_min = if sample.zero == sample.sampled {
            SAMPLED_ALIKE_MIN
        } else {
            SAMPLED_MIN
        };
        let zero_max = ZERO_SHARE_MAX * sample.sampled as f64;
        let observed = sample.zero as f64;
        let target = &record.targets[blocks.target];
        if sample.sampled < sampled_min
            || observed < zero_max
            || reads_zeros_off_platters(record, target)
        {
            return None;
        }
        Some(Self {
            index: blocks.index,
            target: blocks.target,
            severity: Severity::Warning,
            claim: format!(
                "{} of {} sampled blocks contain only zeros: never written, discarded, or \
                 actually zero.",
                sample.zero, sample.sampled
            ),
            evidence: blocks.evidence("zero_blocks/zero", observed, zero_max, "1"),
        })
    }
}

/// True if an access reads each block of the span about as often as any other.
fn reads_evenly(access: &Access) -> bool {
    match access {
        Access::Sequential | Access::Backward => true,
        Access::Random { distribution } => *distribution == Distribution::Uniform,
        Access::Stride { .. } | Access::Zoned { .. } => false,
    }
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
    use crate::fixture::{self, SPAN_BYTES, states, surveyed};
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

    /// A twentieth of the span makes a rate too high by 5.3 %, 4.7 % of it by less than 5 %. Where
    /// popular blocks are read more often, the holes may be these.
    #[test]
    fn holes_count_from_the_share_on_that_changes_the_rate() {
        let with_holes = |share: f64, distribution: Distribution| {
            let record = fixture::faulty("random-read-d1", |measurement| {
                measurement.workload.access = Access::Random { distribution };
                measurement.unwritten_bytes = Some((share * SPAN_BYTES as f64) as u64);
            });
            check(&record).is_some()
        };
        let zipf = Distribution::Zipf { theta: 1.1 };
        for (share, is_reported, is_reported_of_zipf) in [
            (0.009, false, false),
            (0.012, false, true),
            (0.047, false, true),
            (0.05, true, true),
        ] {
            assert_eq!(
                with_holes(share, Distribution::Uniform),
                is_reported,
                "{share}"
            );
            assert_eq!(with_holes(share, zipf), is_reported_of_zipf, "{share}");
        }
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
    fn survey_of_empty_blocks_is_no_figure_of_the_disk() {
        let of_survey = |zero| {
            let mut run = surveyed::SurveyedDisk::rotating().run(1);
            run.facts.targets[0].kind = TargetKind::BlockDevice;
            run.facts.targets[0].layers[0].discard = Some(true);
            run.surface.zero_blocks = zeros(100, zero);
            check(&surveyed::judge(run))
        };
        let finding = of_survey(90).unwrap();
        assert_eq!(
            (finding.severity, &*finding.evidence[0].path),
            (Severity::Warning, "/results/0/data/zero_blocks/zero")
        );
        assert_eq!(of_survey(9), None);
        let holes = surveyed::faulty(|survey| survey.unwritten_bytes = Some(survey.span_bytes));
        assert_eq!(check(&holes).unwrap().severity, Severity::Failure);
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

    #[test]
    fn zeros_count_from_a_tenth_of_twenty_blocks_on_and_from_five_alike() {
        for (sample, is_reported) in [
            (zeros(100, 9), false),
            (zeros(100, 10), true),
            (zeros(19, 18), false),
            (zeros(20, 2), true),
            (zeros(4, 4), false),
            (zeros(5, 5), true),
        ] {
            let record = fixture::faulty("random-read-d1", |measurement| {
                measurement.zero_blocks = sample;
            });
            assert_eq!(check(&record).is_some(), is_reported, "{sample:?}");
        }
    }

    #[test]
    fn figure_of_half_a_span_of_holes_is_a_failure() {
        for (unwritten_bytes, severity) in [
            (SPAN_BYTES / 2 - 1, Severity::Warning),
            (SPAN_BYTES / 2, Severity::Failure),
        ] {
            let record = fixture::faulty("random-read-d1", |measurement| {
                measurement.unwritten_bytes = Some(unwritten_bytes);
            });
            assert_eq!(check(&record).unwrap().severity, severity);
        }
    }

    /// What reads the span evenly reads its holes as often as the rest.
    #[test]
    fn few_holes_change_only_reads_that_visit_some_places_more_often() {
        for (access, is_reported) in [
            (Access::Sequential, false),
            (Access::Backward, false),
            (Access::Stride { stride_bytes: 8192 }, true),
        ] {
            let record = fixture::faulty("sequential-read", |measurement| {
                measurement.workload.access = access.clone();
                measurement.unwritten_bytes = Some(SPAN_BYTES / 50);
            });
            assert_eq!(check(&record).is_some(), is_reported, "{access:?}");
        }
    }

    #[test]
    fn remedy_is_about_the_kind_of_target() {
        for (kind, remedied) in [
            (TargetKind::BlockDevice, "a device"),
            (TargetKind::Directory, "a directory"),
        ] {
            let mut record = (EXAMPLES.fires)();
            record.targets[0].kind = kind;
            let remedy = check(&record).unwrap().remedy;
            states(&remedy, &[&format!("Measure {remedied}")]);
        }
    }
}
