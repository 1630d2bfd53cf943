//! Remarks on the figures of a measurement: failed operations, the page cache, a rate that did not
//! settle, the result of a verification.

use crate::text::{grouped, list};
use diskproof_model::block::{Block, Tone};
use diskproof_model::measurement::{Measurement, OpKind, StopReason, VerifyResult};
use diskproof_model::plan::CachePolicy;
use diskproof_model::row::{PhaseKind, PhaseRecord, Row};
use diskproof_model::units::{counted, format_duration, format_latency};

/// The kinds of remarks, in the order in which they are shown; the kind also decides the emphasis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RemarkKind {
    /// Something failed during the measurement.
    Failed,
    /// The page cache was involved.
    Cached,
    /// The rate did not settle.
    Drifting,
    /// The figures are those of the last phase; an earlier one was different.
    Phases,
    /// The run's time limit left less time than planned.
    Shortened,
    /// Everything that was read back was correct.
    Verified,
}

impl RemarkKind {
    fn tone(self) -> Tone {
        match self {
            Self::Failed => Tone::Error,
            Self::Verified | Self::Phases | Self::Shortened => Tone::Note,
            Self::Cached | Self::Drifting => Tone::Warning,
        }
    }

    /// True if short pages show such remarks.
    pub(crate) fn is_urgent(self) -> bool {
        matches!(self, Self::Failed | Self::Verified)
    }
}

/// The remarks on a measurement as single words, for a cell of a table: `errors, unsettled`.
pub(crate) fn remark_words(measurement: &Row) -> String {
    let mut remarks = all_remarks(measurement);
    remarks.sort_by_key(|remark| remark.kind);
    let mut words: Vec<&str> = remarks.iter().map(|remark| remark.word).collect();
    words.dedup();
    words.join(", ")
}

/// The remarks of the selected kinds as sentences. Measurements with the same remark share one.
pub(crate) fn remark_blocks(
    measurements: &[&Row],
    is_selected: fn(RemarkKind) -> bool,
) -> Vec<Block> {
    let mut selected = Vec::new();
    for measurement in measurements {
        for remark in all_remarks(measurement) {
            if is_selected(remark.kind) {
                selected.push((remark, &measurement.data.workload.name));
            }
        }
    }
    let mut groups = grouped(selected);
    groups.sort_by_key(|(remark, _)| remark.kind);
    let mut notes = Vec::new();
    for (remark, names) in groups {
        let text = if names.len() < measurements.len() {
            format!("{}: {}", list(names), remark.text)
        } else {
            remark.text
        };
        notes.push(Block::toned_fact(remark.kind.tone(), remark.word, text));
    }
    notes
}

/// A remark on a measurement.
#[derive(PartialEq)]
struct Remark {
    kind: RemarkKind,
    /// The remark in a table.
    word: &'static str,
    /// The remark below the table.
    text: String,
}

impl Remark {
    fn new(kind: RemarkKind, word: &'static str, text: impl Into<String>) -> Self {
        Self {
            kind,
            word,
            text: text.into(),
        }
    }
}

fn all_remarks(measurement: &Row) -> Vec<Remark> {
    let mut remarks = Vec::new();
    remarks.extend(errors_remark(measurement));
    remarks.extend(ending_remark(measurement.data.stopped));
    if let Some(verify) = &measurement.data.verify
        && let Some(mut remark) = verification_remark(verify)
    {
        remark.text += &uncovered_end_text(&measurement.data);
        remarks.push(remark);
    }
    remarks.extend(missed_starts_remark(measurement));
    remarks.extend(cache_remark(measurement));
    if measurement.figures.settled == Some(false) {
        let text = "the rate was still changing at the end";
        remarks.push(Remark::new(RemarkKind::Drifting, "unsettled", text));
    }
    remarks.extend(phases_remark(measurement));
    remarks.extend(shortened_remark(measurement));
    remarks
}

/// Notes that the run's time limit, or its early end, shortened this measurement.
fn shortened_remark(measurement: &Row) -> Option<Remark> {
    let planned = format_duration(measurement.data.shortened_from_ns?);
    let time = format_duration(measurement.data.wall_ns);
    let text = format!("measured for {time} instead of {planned}, because the run was over");
    Some(Remark::new(RemarkKind::Shortened, "shortened", text))
}

/// Names the earlier phases that differ notably from the last one, and the time of all phases that
/// the figures omit. `None` where no phase differs notably.
fn phases_remark(measurement: &Row) -> Option<Remark> {
    let (steady, earlier) = measurement.figures.phases.split_last()?;
    let mut omitted_ns = 0;
    let mut texts = Vec::new();
    for phase in earlier {
        if phase.name != PhaseKind::FirstWrite {
            omitted_ns += phase_length_ns(phase);
        }
        if is_notable(phase, steady) {
            texts.push(phase_text(measurement, phase));
        }
    }
    if texts.is_empty() {
        return None;
    }
    let notable = list(texts);
    let text = match omitted_ns {
        0 => format!("the figures begin after {notable}"),
        ns => format!("the figures omit {}, with {notable}", format_duration(ns)),
    };
    Some(Remark::new(RemarkKind::Phases, "phases", text))
}

fn phase_length_ns(phase: &PhaseRecord) -> u64 {
    phase.end_ns.saturating_sub(phase.start_ns)
}

/// Says how long a phase lasted, and at which rates.
fn phase_text(measurement: &Row, phase: &PhaseRecord) -> String {
    let mut rates = Vec::new();
    for (kind, op) in &phase.ops {
        if *kind == OpKind::Sync {
            continue;
        }
        let rate = if measurement.is_rated_in_bytes() {
            op.throughput.text()
        } else {
            op.rate.text()
        };
        let mut text = format!("{}s at {rate}", kind.as_str());
        if let Some(ns) = op.latency.p50 {
            text.push_str(&format!(", p50 {}", format_latency(ns)));
        }
        rates.push(text);
    }
    let length = format_duration(phase_length_ns(phase));
    format!("{length} of {} ({})", phase.name.as_str(), list(rates))
}

/// True if a phase needs a remark: it is not the settling of the rate, which is ordinary, and its
/// rate or its operations differ from those of the last phase.
fn is_notable(phase: &PhaseRecord, steady: &PhaseRecord) -> bool {
    if phase.name == PhaseKind::Settling {
        return false;
    }
    for (kind, op) in &phase.ops {
        let Some(later) = steady.ops.get(kind) else {
            return true;
        };
        let change = (op.rate.value / later.rate.value - 1.0).abs();
        if change > NOTABLE_DIFFERENCE {
            return true;
        }
    }
    false
}

/// Phases need a remark if their rates differ by more than this share. With a smaller value, phases
/// get a remark that differ by no more than the usual noise of a rate.
const NOTABLE_DIFFERENCE: f64 = 0.05;

fn errors_remark(measurement: &Row) -> Option<Remark> {
    let failed = measurement.errors_total();
    if failed == 0 {
        return None;
    }
    let by_name = measurement.errors_by_name();
    let names = list(by_name.iter().map(|(name, n)| format!("{n} × {name}")));
    let count = counted(failed, "operation");
    let text = format!("{count} failed ({names}); the figure counts only successful operations");
    Some(Remark::new(RemarkKind::Failed, "errors", text))
}

fn ending_remark(stopped: StopReason) -> Option<Remark> {
    let (word, text) = match stopped {
        StopReason::Interrupted => ("cut short", "interrupted"),
        StopReason::Errors => ("stopped", "stopped: too many operations failed"),
        StopReason::Hung => ("hung", "stopped: the target no longer answered"),
        StopReason::TooSlow => ("stopped", "stopped: a request took longer than allowed"),
        StopReason::BelowFloor => ("stopped", "stopped: the rate fell below its limit"),
        StopReason::Overloaded => ("overloaded", "stopped: more was offered than was served"),
        StopReason::Precision
        | StopReason::Time
        | StopReason::Bytes
        | StopReason::Ops
        | StopReason::Companion
        | StopReason::Steady
        | StopReason::Unread => return None,
    };
    Some(Remark::new(RemarkKind::Failed, word, text))
}

fn missed_starts_remark(measurement: &Row) -> Option<Remark> {
    let missed = measurement.data.missed_starts?;
    if missed == 0 {
        return None;
    }
    let text = format!(
        "{} started over 1 ms late or not at all; latencies count from the intended start",
        counted(missed, "request")
    );
    Some(Remark::new(RemarkKind::Failed, "late starts", text))
}

fn cache_remark(measurement: &Row) -> Option<Remark> {
    let cache = &measurement.data.cache;
    // The page cache cannot answer synced writes.
    let is_commit = measurement.data.ops.contains_key(&OpKind::Commit)
        && !measurement.data.workload.streams.makes(OpKind::Read);
    let why = match (cache.used, &cache.why) {
        (CachePolicy::Direct, _) => return None,
        (_, Some(why)) => why,
        (CachePolicy::Buffered, None) => "through the page cache, emptied continuously",
        (CachePolicy::Cached, None) if is_commit => return None,
        (CachePolicy::Cached, None) => "the page cache may have answered instead of the disk",
    };
    // The page cache was used as requested, and the reason says that the disk had to read.
    let disk_had_to_read = cache.why.is_some() && cache.asked == cache.used;
    let used = cache.used.as_str();
    let word = match cache.used {
        CachePolicy::Buffered if disk_had_to_read => "buffered, with reads",
        CachePolicy::Cached if disk_had_to_read => "cached, with reads",
        CachePolicy::Direct | CachePolicy::Buffered | CachePolicy::Cached => used,
    };
    let text = format!("{used}: {why}");
    Some(Remark::new(RemarkKind::Cached, word, text))
}

/// Says whether the blocks that `runs` earlier runs wrote were correct. `None` where none was
/// checked.
fn earlier_data_remark(verify: &VerifyResult, runs: u64) -> Option<Remark> {
    if verify.blocks == 0 {
        return None;
    }
    let blocks = counted(verify.blocks, "block");
    let writers = match runs {
        0 | 1 => String::new(),
        _ => format!("; {runs} runs wrote them"),
    };
    let wrong = verify.wrong_blocks();
    // Used only where no block is wrong: then the bad ones were never written, or in another size.
    let unknown = verify.bad_blocks;
    let remark = if wrong > 0 {
        let text = format!("{wrong} of {blocks} are not what an earlier run wrote{writers}");
        Remark::new(RemarkKind::Failed, WRONG_DATA, text)
    } else if unknown == 0 {
        let text = format!("{blocks} of earlier writes checked, all correct{writers}");
        Remark::new(RemarkKind::Verified, VERIFIED, text)
    } else if unknown == verify.blocks {
        let text =
            format!("none of {blocks} could be verified: not written with --verify and this --bs");
        Remark::new(RemarkKind::Failed, UNVERIFIED, text)
    } else {
        let text = format!(
            "{} of {blocks} verified, all correct; {unknown} not written with --verify and this \
             --bs{writers}",
            verify.good_blocks()
        );
        Remark::new(RemarkKind::Verified, VERIFIED, text)
    };
    Some(remark)
}

/// A clause about the bytes at the end of the span that are less than a block, which no request
/// covers; empty where there are none.
fn uncovered_end_text(measurement: &Measurement) -> String {
    let workload = &measurement.workload;
    // Requests in the order of fio have sizes and places of their own.
    if workload.shape.order.fio.is_some() {
        return String::new();
    }
    match measurement.span_bytes % u64::from(workload.block_bytes.max(1)) {
        0 => String::new(),
        bytes => format!(
            "; the last {} of the span, less than a block, were neither written nor read",
            counted(bytes, "byte")
        ),
    }
}

const WRONG_DATA: &str = "wrong data";
const VERIFIED: &str = "verified";
const UNVERIFIED: &str = "unverified";

/// Says which share of the written blocks was read back, and whether they were correct. `None`
/// where nothing was to be checked.
fn verification_remark(verify: &VerifyResult) -> Option<Remark> {
    if let Some(runs) = verify.runs {
        return earlier_data_remark(verify, runs);
    }
    let is_whole = verify.unchecked() == 0;
    if is_whole && verify.blocks == 0 {
        return None;
    }
    let written = counted(verify.blocks_written.unwrap_or(verify.blocks), "block");
    let interrupted = if is_whole {
        ""
    } else {
        " before an interruption"
    };
    let cached = verify.cached_blocks.unwrap_or(0);
    let text = match (verify.blocks, verify.bad_blocks) {
        (_, 0) if cached > 0 => format!(
            "{} of {written} read back{interrupted}, all correct, but the page cache may still \
             have held {cached} of them",
            verify.blocks
        ),
        (0, _) => format!("0 of {written} read back{interrupted}"),
        (_, 0) if is_whole => format!("{written} read back, all correct"),
        (blocks, 0) => format!("{blocks} of {written} read back{interrupted}, all correct"),
        (blocks, bad) => {
            let checked = counted(blocks, "block");
            format!("{bad} of {checked} read back wrong{interrupted}")
        }
    };
    let (kind, word) = if verify.bad_blocks > 0 {
        (RemarkKind::Failed, WRONG_DATA)
    } else if is_whole && verify.proves_disk() {
        (RemarkKind::Verified, VERIFIED)
    } else {
        (RemarkKind::Failed, UNVERIFIED)
    };
    Some(Remark::new(kind, word, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::record::Estimate;
    use diskproof_model::row::{LatencySummary, PhaseOp};
    use std::collections::BTreeMap;

    /// A phase with reads at this rate.
    fn phase(name: PhaseKind, rate: f64) -> PhaseRecord {
        let latency = LatencySummary {
            unit: "ns".to_owned(),
            mean: 1e6,
            min: 1,
            p50: None,
            p90: None,
            p99: None,
            p99_9: None,
            p99_99: None,
            max: 1,
        };
        let reads = PhaseOp {
            count: 100,
            bytes: 409_600,
            rate: Estimate::new(10, rate, None, "1/s"),
            throughput: Estimate::new(10, 4096.0 * rate, None, "B/s"),
            latency,
        };
        PhaseRecord {
            name,
            start_ns: 0,
            end_ns: 1_000_000_000,
            ops: BTreeMap::from([(OpKind::Read, reads)]),
        }
    }

    #[test]
    fn phase_is_notable_beyond_a_twentieth_unless_the_rate_settled() {
        let steady = phase(PhaseKind::Steady, 1000.0);
        assert!(!is_notable(&phase(PhaseKind::Burst, 1049.0), &steady));
        assert!(is_notable(&phase(PhaseKind::Burst, 1051.0), &steady));
        assert!(is_notable(&phase(PhaseKind::Burst, 949.0), &steady));
        assert!(!is_notable(&phase(PhaseKind::Settling, 5000.0), &steady));
        let mut without_reads = steady;
        without_reads.ops.clear();
        assert!(is_notable(&phase(PhaseKind::Burst, 1000.0), &without_reads));
    }
}
