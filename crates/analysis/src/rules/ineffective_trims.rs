//! `ineffective-trims`: some trims freed nothing, so their rate is not that of freeing blocks.

use super::rule::*;

pub(super) const RULE: Rule = Rule {
    code: "ineffective-trims",
    title: "Some trims freed nothing",
    summary: "Trims were smaller than the device's discard granularity, did not reach the device, \
              or met blocks that were trimmed before. Such trims cost little and look too fast.",
    remedy: Remedy::Always(
        "Write the span first, trim each block once, and use blocks of at least the discard \
         granularity (--rw write, then --rw trim --bs 1M).",
    ),
    check: Check::Workloads(check),
    says: Meaning::NotTheDisk {
        cause: Cause::EmptyBlocks,
    },
    #[cfg(test)]
    examples: tests::EXAMPLES,
};

/// A device that discards less than this share of the requested bytes ignores trims. The counters
/// of a short part of the measured time are scaled, so that a small difference proves nothing.
/// Chosen, not measured.
const DISCARDED_SHARE_MIN: f64 = 0.5;

/// More trims than this share of the span meet blocks that were trimmed before. The warm-up and the
/// last pass of several workers may exceed the span by little. Chosen, not measured.
const PASSES_MAX: f64 = 1.1;

/// A workload whose trims freed little.
struct IneffectiveTrims {
    index: usize,
    claim: String,
    evidence: Evidence,
}

fn check(record: &Record) -> Option<Diagnosis> {
    let mut hits: Vec<IneffectiveTrims> = Vec::new();
    for measured in real_rows(record) {
        hits.extend(ineffective_trims(record, measured));
    }
    let first = hits.first()?;
    Some(Diagnosis::new(
        Severity::Warning,
        format!(
            "Some trims freed nothing in {}: {} Their rate is not the rate at which the device \
             frees blocks.",
            workload_names(record, hits.iter().map(|hit| hit.index)),
            first.claim
        ),
        hits.iter().map(|hit| hit.evidence.clone()),
    ))
}

fn ineffective_trims(record: &Record, measured: Measured<'_>) -> Option<IneffectiveTrims> {
    let trims = measured.row.op(OpKind::Trim)?.data;
    let target = record.targets.get(measured.row.data.target)?;
    if trims.count == 0 {
        return None;
    }
    trims_below_granularity(target, measured)
        .or_else(|| not_discarded(measured))
        .or_else(|| trimmed_again(measured, trims.bytes))
}

/// Trims that are smaller than what the device discards.
fn trims_below_granularity(
    target: &TargetIdentity,
    measured: Measured<'_>,
) -> Option<IneffectiveTrims> {
    let granularity_bytes = target.layers.first()?.discard_granularity_bytes?;
    let block_bytes = u64::from(measured.row.data.workload.block_bytes);
    if target.accepts_discards() != Some(true) || block_bytes >= granularity_bytes {
        return None;
    }
    Some(IneffectiveTrims {
        index: measured.index,
        claim: format!(
            "the blocks have {}, and the device may ignore discards of less than {}.",
            format_bytes(block_bytes),
            format_bytes(granularity_bytes)
        ),
        evidence: measured.evidence(
            "data/workload/block_bytes",
            block_bytes as f64,
            granularity_bytes as f64,
            "B",
        ),
    })
}

/// Trims of which the device counted only a part.
fn not_discarded(measured: Measured<'_>) -> Option<IneffectiveTrims> {
    let asked = measured.row.data.asked.trim_bytes as f64;
    let discarded = measured.row.data.device.trim_bytes? as f64;
    let discarded_min = DISCARDED_SHARE_MIN * asked;
    if discarded >= discarded_min {
        return None;
    }
    let share = format_percent(discarded / asked);
    Some(IneffectiveTrims {
        index: measured.index,
        claim: format!("the device discarded {share} of the requested bytes."),
        evidence: measured.evidence("data/device/trim_bytes", discarded, discarded_min, "B"),
    })
}

/// Trims of blocks that were trimmed before, and not written since.
fn trimmed_again(measured: Measured<'_>, trimmed_bytes: u64) -> Option<IneffectiveTrims> {
    let data = &measured.row.data;
    let writes_again = data.workload.streams.following_kind(OpKind::Trim) == Some(OpKind::Write);
    let passes_bytes_max = PASSES_MAX * data.span_bytes as f64;
    if trimmed_bytes as f64 <= passes_bytes_max || writes_again {
        return None;
    }
    Some(IneffectiveTrims {
        index: measured.index,
        claim: format!(
            "{} were trimmed within {}, so blocks were trimmed again.",
            format_bytes(trimmed_bytes),
            format_bytes(data.span_bytes)
        ),
        evidence: measured.evidence(
            "data/ops/trim/bytes",
            trimmed_bytes as f64,
            passes_bytes_max,
            "B",
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, states};
    use diskproof_model::measurement::Measurement;
    use diskproof_model::stream::Streams;

    pub(super) const EXAMPLES: Examples = Examples::new(
        || trimmed(|measurement| measurement.span_bytes = measurement.ops[&OpKind::Trim].bytes / 2),
        || trimmed(|_| {}),
    );

    /// Trims in place of all writes, once over their span, which the device discarded.
    fn trimmed(change: impl Fn(&mut Measurement)) -> Record {
        fixture::all_faulty(|measurement| {
            if let Some(op) = measurement.ops.remove(&OpKind::Write) {
                let op_bytes = op.bytes;
                measurement.ops.remove(&OpKind::Sync);
                measurement.ops.remove(&OpKind::Commit);
                measurement.ops.insert(OpKind::Trim, op);
                measurement.workload.streams = Streams::doing(&[OpKind::Trim]);
                measurement.span_bytes = op_bytes;
                measurement.asked.trim_bytes = op_bytes;
                measurement.device.trim_bytes = Some(op_bytes);
                change(measurement);
            }
        })
    }

    #[test]
    fn trims_that_do_not_reach_the_device_are_reported() {
        let record = trimmed(|measurement| {
            measurement.device.trim_bytes = measurement.device.trim_bytes.map(|bytes| bytes / 4)
        });
        states(&check(&record).unwrap().claim, &["25 %"]);
    }

    #[test]
    fn trims_below_the_granularity_are_reported() {
        let mut record = trimmed(|_| {});
        let target = &mut record.targets[0];
        target.kind = TargetKind::BlockDevice;
        target.layers[0].discard = Some(true);
        target.layers[0].discard_granularity_bytes = Some(64 << 20);
        states(&check(&record).unwrap().claim, &["64 MiB"]);
    }

    #[test]
    fn blocks_that_are_written_again_may_be_trimmed_again() {
        let record = trimmed(|measurement| {
            measurement.span_bytes /= 2;
            measurement.workload.streams = Streams::doing(&[OpKind::Trim, OpKind::Write]);
        });
        assert_eq!(check(&record), None);
    }
}
