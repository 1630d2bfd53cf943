//! `unwritten-blocks`: blocks were read that were never written; they cost no access to the medium.

use super::evidence::{Measured, evidence, real, scope};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use diskproof_model::finding::{Evidence, Severity};
use diskproof_model::op::OpKind;
use diskproof_model::record::Record;
use diskproof_model::target::TargetKind;
use diskproof_model::units::{format_bytes, format_percent};

pub(super) const RULES: &[Rule] = &[Rule {
    code: "unwritten-blocks",
    title: "Unwritten blocks were read",
    meaning: "The reads included blocks without content: holes, discarded or never written. Such \
              reads do not reach the medium and look too fast.",
    taints: None,
    check: Check::Workloads(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

/// Share of the span that may be holes: the metadata of a sparse image, not more.
const UNWRITTEN_MAX: f64 = 0.01;
/// From this share on most of the figure is not the medium's.
const UNWRITTEN_FAILURE: f64 = 0.5;
/// Fewer blocks than this are too few to judge their content, unless all agree.
const SAMPLED_MIN: u64 = 20;
/// The fewest blocks that say something when every one of them is empty.
const SAMPLED_ALIKE_MIN: u64 = 5;
/// Share of the blocks that may contain only zeros: databases keep some empty pages.
const ZERO_MAX: f64 = 0.1;

struct EmptyReads {
    index: usize,
    severity: Severity,
    words: String,
    evidence: Evidence,
}

fn check(record: &Record) -> Option<Diagnosis> {
    let hits: Vec<EmptyReads> = real(record)
        .filter(|(_, m)| m.workload.streams.makes(OpKind::Read))
        .filter_map(hit)
        .collect();
    let worst = hits
        .iter()
        .reduce(|a, b| if b.severity > a.severity { b } else { a })?;
    let target = record.measurements[worst.index].target;
    let target = record.targets.get(target);
    let remedy = if target.is_some_and(|target| target.kind == TargetKind::BlockDevice) {
        "Measure a device whose span has been written completely, or a part that contains \
         data."
    } else {
        "Measure a directory, in which diskproof fills its own file, or a file with content \
         instead of holes."
    };
    Some(Diagnosis::new(
        worst.severity,
        format!(
            "Empty blocks were read in {}: {} Such reads need not reach the medium.",
            scope(record, hits.iter().map(|h| h.index)),
            worst.words
        ),
        hits.iter().map(|h| h.evidence.clone()),
        remedy,
    ))
}

fn hit((index, m): Measured) -> Option<EmptyReads> {
    let unwritten = m.unwritten_bytes.unwrap_or(0);
    let (span, zero) = (m.workload.span_bytes, m.zero_blocks);
    let (unwritten_max, zero_max) = (UNWRITTEN_MAX * span as f64, ZERO_MAX * zero.sampled as f64);
    if unwritten as f64 > unwritten_max {
        let share = unwritten as f64 / span.max(1) as f64;
        return Some(EmptyReads {
            index,
            severity: if share >= UNWRITTEN_FAILURE {
                Severity::Failure
            } else {
                Severity::Warning
            },
            words: format!(
                "{} of {} ({}) were never written.",
                format_bytes(unwritten),
                format_bytes(span),
                format_percent(share)
            ),
            evidence: evidence(
                index,
                "unwritten_bytes",
                unwritten as f64,
                unwritten_max,
                "B",
            ),
        });
    }
    let enough = if zero.zero == zero.sampled {
        SAMPLED_ALIKE_MIN
    } else {
        SAMPLED_MIN
    };
    (zero.sampled >= enough && zero.zero as f64 >= zero_max).then(|| EmptyReads {
        index,
        severity: Severity::Warning,
        words: format!(
            "{} of {} sampled blocks contain only zeros: never written, discarded, or actually \
             zero.",
            zero.zero, zero.sampled
        ),
        evidence: evidence(index, "zero_blocks/zero", zero.zero as f64, zero_max, "1"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::measurement::ZeroSample;

    pub(super) fn fires() -> Record {
        let mut run = fixture::run();
        run.1[3].unwritten_bytes = Some(fixture::SPAN_BYTES / 20);
        run.1[2].zero_blocks = ZeroSample {
            sampled: 100,
            zero: 90,
        };
        fixture::judge(run)
    }

    pub(super) fn silent() -> Record {
        fixture::all_faulty(|m| {
            m.zero_blocks = ZeroSample {
                sampled: 1000,
                zero: 99,
            }
        })
    }

    #[test]
    fn holes_and_zeros_are_reported() {
        let finding = check(&fires()).unwrap();
        assert_eq!(
            (finding.severity, finding.evidence.len()),
            (Severity::Warning, 2)
        );
        assert!(
            finding.claim.contains("90 of 100 sampled blocks"),
            "{}",
            finding.claim
        );
        let holes = fixture::faulty("random-read-d1", |m| {
            m.unwritten_bytes = Some(fixture::SPAN_BYTES)
        });
        let finding = check(&holes).unwrap();
        assert_eq!(finding.severity, Severity::Failure);
        assert!(
            finding
                .claim
                .contains("4 GiB of 4 GiB (100 %) were never written"),
            "{}",
            finding.claim
        );
    }

    #[test]
    fn silent_on_writers_few_samples_and_a_few_zeros() {
        let write = fixture::faulty("sequential-write", |m| {
            m.unwritten_bytes = Some(fixture::SPAN_BYTES)
        });
        assert_eq!(check(&write), None);
        for zeros in [
            ZeroSample {
                sampled: 19,
                zero: 18,
            },
            ZeroSample {
                sampled: 4,
                zero: 4,
            },
            ZeroSample {
                sampled: 1000,
                zero: 99,
            },
        ] {
            assert_eq!(check(&fixture::all_faulty(|m| m.zero_blocks = zeros)), None);
        }
    }
}
