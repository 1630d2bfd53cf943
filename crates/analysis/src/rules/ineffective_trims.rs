//! `ineffective-trims`: the device had little to do for some trims.

use super::evidence::{evidence, real, scope};
#[cfg(test)]
use super::rule::Examples;
use super::rule::{Check, Diagnosis, Rule};
use diskproof_model::finding::{Evidence, Severity};
use diskproof_model::measurement::OpKind;
use diskproof_model::record::{MeasurementRecord, Record};
use diskproof_model::units::{format_bytes, format_percent};

pub(super) const RULES: &[Rule] = &[Rule {
    code: "ineffective-trims",
    title: "Some trims freed nothing",
    meaning: "Trims were smaller than the device's discard granularity, did not reach the device, \
              or met blocks that were trimmed before. Such trims cost little and look too fast.",
    taints: None,
    check: Check::Workloads(check),
    #[cfg(test)]
    examples: Examples {
        fires: tests::fires,
        silent: tests::silent,
    },
}];

/// A device that discards less than this share of the requested bytes ignores trims. The counters
/// of a short part of the measured time are scaled, so that little is no evidence.
const DISCARDED_MIN: f64 = 0.5;
/// More trims than this share of the span meet blocks that were trimmed before. The warm-up and the
/// last pass of several workers may exceed the span by little.
const PASSES_MAX: f64 = 1.1;

fn check(record: &Record) -> Option<Diagnosis> {
    let hits = real(record).filter_map(|(index, m)| {
        let op = m.ops.get(&OpKind::Trim).filter(|op| op.count > 0)?;
        hit(record, index, m, op.bytes)
    });
    let hits: Vec<(usize, String, Evidence)> = hits.collect();
    let (_, words, _) = hits.first()?;
    Some(Diagnosis::new(
        Severity::Warning,
        format!(
            "Some trims freed nothing in {}: {words} Their rate is not the rate at which the \
             device frees blocks.",
            scope(record, hits.iter().map(|hit| hit.0)),
        ),
        hits.iter().map(|(.., evidence)| evidence.clone()),
        "Write the span first, trim each block once, and use blocks of at least the \
         discard granularity (--rw write, then --rw trim --bs 1M).",
    ))
}

fn hit(
    record: &Record,
    index: usize,
    m: &MeasurementRecord,
    trimmed_bytes: u64,
) -> Option<(usize, String, Evidence)> {
    let target = record.targets.get(m.target)?;
    let seen = |words: String, place: &str, observed: u64, threshold: f64| {
        let evidence = evidence(index, place, observed as f64, threshold, "B");
        Some((index, words, evidence))
    };
    let top = target.layers.first();
    let granularity = top
        .filter(|_| target.accepts_discards() == Some(true))
        .and_then(|layer| layer.discard_granularity_bytes);
    let block_bytes = u64::from(m.workload.block_bytes);
    if let Some(unit_bytes) = granularity.filter(|unit_bytes| block_bytes < *unit_bytes) {
        let words = format!(
            "the blocks have {}, and the device may ignore discards of less than {}.",
            format_bytes(block_bytes),
            format_bytes(unit_bytes)
        );
        return seen(
            words,
            "workload/block_bytes",
            block_bytes,
            unit_bytes as f64,
        );
    }
    let asked = m.asked.trim_bytes as f64;
    if let Some(bytes) = m.device.trim_bytes
        && (bytes as f64) < DISCARDED_MIN * asked
    {
        let share = format_percent(bytes as f64 / asked);
        let words = format!("the device discarded {share} of the requested bytes.");
        return seen(words, "device/trim_bytes", bytes, DISCARDED_MIN * asked);
    }
    let writes_again = m.workload.streams.after(OpKind::Trim) == Some(OpKind::Write);
    let most = PASSES_MAX * m.workload.span_bytes as f64;
    if trimmed_bytes as f64 <= most || writes_again {
        return None;
    }
    let words = format!(
        "{} were trimmed within {}, so blocks were trimmed again.",
        format_bytes(trimmed_bytes),
        format_bytes(m.workload.span_bytes)
    );
    seen(words, "ops/trim/bytes", trimmed_bytes, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::stream::Streams;

    /// Trims in place of all writes, once over their span, which the device discarded.
    fn trimmed(change: impl Fn(&mut diskproof_model::measurement::Measurement)) -> Record {
        fixture::all_faulty(|m| {
            if let Some(op) = m.ops.remove(&OpKind::Write) {
                let op_bytes = op.bytes;
                m.ops.remove(&OpKind::Sync);
                m.ops.remove(&OpKind::Commit);
                m.ops.insert(OpKind::Trim, op);
                m.workload.streams = Streams::doing(&[OpKind::Trim]);
                m.span_bytes = op_bytes;
                m.asked.trim_bytes = op_bytes;
                m.device.trim_bytes = Some(op_bytes);
                change(m);
            }
        })
    }

    pub(super) fn fires() -> Record {
        trimmed(|m| m.span_bytes = m.ops[&OpKind::Trim].bytes / 2)
    }

    pub(super) fn silent() -> Record {
        trimmed(|_| {})
    }

    #[test]
    fn trims_that_do_not_reach_the_device_are_reported() {
        let record = trimmed(|m| m.device.trim_bytes = m.device.trim_bytes.map(|bytes| bytes / 4));
        let finding = check(&record).unwrap();
        assert!(
            finding.claim.contains("discarded 25 %"),
            "{}",
            finding.claim
        );
    }

    #[test]
    fn trims_below_the_granularity_are_reported() {
        let mut record = silent();
        let target = &mut record.targets[0];
        target.kind = diskproof_model::target::TargetKind::BlockDevice;
        target.layers[0].discard = Some(true);
        target.layers[0].discard_granularity_bytes = Some(64 << 20);
        let finding = check(&record).unwrap();
        assert!(
            finding.claim.contains("less than 64 MiB"),
            "{}",
            finding.claim
        );
    }

    #[test]
    fn blocks_that_are_written_again_may_be_trimmed_again() {
        let record = trimmed(|m| {
            m.span_bytes /= 2;
            m.workload.streams = Streams::doing(&[OpKind::Trim, OpKind::Write]);
        });
        assert!(check(&record).is_none());
    }
}
