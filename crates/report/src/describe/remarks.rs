//! Remarks on the figures of a measurement: failed operations, the page cache, a rate that did not
//! settle, the result of a verification.

use crate::text::{grouped, list};
use diskproof_model::block::{Block, Tone};
use diskproof_model::measurement::{OpKind, StopReason, VerifyResult};
use diskproof_model::plan::CachePolicy;
use diskproof_model::row::{PhaseKind, PhaseRecord, Row};
use diskproof_model::units::{counted, format_duration, format_latency};

/// The kind of a remark.
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
}

/// The words of the remarks on a measurement, for a table.
pub(crate) fn words(m: &Row) -> String {
    let mut remarks = remarks(m);
    remarks.sort_by_key(|(kind, ..)| *kind);
    let mut words: Vec<&str> = remarks.iter().map(|(_, word, _)| *word).collect();
    words.dedup();
    words.join(", ")
}

/// The remarks of the selected kinds on all measurements, grouped by text.
pub(crate) fn notes(measurements: &[&Row], is_selected: fn(RemarkKind) -> bool) -> Vec<Block> {
    let all = measurements.iter().flat_map(|m| {
        let own = remarks(m).into_iter();
        let own = own.filter(|(kind, ..)| is_selected(*kind));
        own.map(|one| (one, &m.data.workload.name))
    });
    let mut notes = grouped(all);
    notes.sort_by_key(|((kind, ..), _)| *kind);
    let note = |((kind, word, mut text), names): (Remark, Vec<&String>)| {
        if names.len() < measurements.len() {
            text = format!("{}: {text}", list(names));
        }
        Block::toned_fact(kind.tone(), word, text)
    };
    notes.into_iter().map(note).collect()
}

/// A remark on a measurement: its kind, a word for a table, a text.
type Remark = (RemarkKind, &'static str, String);

/// All remarks on a measurement.
fn remarks(measurement: &Row) -> Vec<Remark> {
    let all = [
        errors(measurement),
        ending(measurement.data.stopped),
        measurement.data.verify.as_ref().and_then(verification),
        missed_starts(measurement),
        cache(measurement),
        (measurement.figures.settled == Some(false)).then(|| {
            let text = "the rate was still changing at the end".to_owned();
            (RemarkKind::Drifting, "unsettled", text)
        }),
        phases(measurement),
        shortened(measurement),
    ];
    all.into_iter().flatten().collect()
}

/// Slower steps before it took the time.
fn shortened(measurement: &Row) -> Option<Remark> {
    let planned_ns = measurement.data.shortened_from_ns?;
    let [time, planned] = [measurement.data.wall_ns, planned_ns].map(format_duration);
    let why = "because of the time limit of the run";
    let text = format!("measured for {time} instead of {planned} {why}");
    Some((RemarkKind::Shortened, "shortened", text))
}

/// What came before the last phase, where it differs by enough to matter, and the time of all
/// phases that the figures omit.
fn phases(measurement: &Row) -> Option<Remark> {
    let (_, earlier) = measurement.figures.phases.split_last()?;
    let length_ns = |phase: &PhaseRecord| phase.end_ns.saturating_sub(phase.start_ns);
    let is_omitted = |phase: &&PhaseRecord| phase.name != PhaseKind::FirstWrite;
    let omitted_ns: u64 = earlier.iter().filter(is_omitted).map(length_ns).sum();
    let told = earlier.iter();
    let told = told.filter(|phase| is_notable(measurement, phase));
    let each = told.map(|phase| {
        let rates = phase.ops.iter().filter(|(kind, _)| **kind != OpKind::Sync);
        let rates = rates.map(|(kind, op)| {
            let p50 = op.latency.p50;
            let p50 = p50.map_or(String::new(), |ns| format!(", p50 {}", format_latency(ns)));
            let rate = if measurement.is_rated_in_bytes() {
                op.throughput.text()
            } else {
                op.rate.text()
            };
            format!("{}s at {rate}{p50}", kind.as_str())
        });
        let (length, name) = (format_duration(length_ns(phase)), phase.name.as_str());
        format!("{length} of {name} ({})", list(rates))
    });
    let text = list(each);
    (!text.is_empty()).then(|| {
        let text = match omitted_ns {
            0 => format!("the figures begin after {text}"),
            ns => format!("the figures omit {}, with {text}", format_duration(ns)),
        };
        (RemarkKind::Phases, "phases", text)
    })
}

/// A slow start is ordinary; only a phase of another kind needs a remark.
fn is_notable(measurement: &Row, phase: &PhaseRecord) -> bool {
    let steady = measurement.figures.phases.last();
    let mut changes = phase.ops.iter().map(|(kind, op)| {
        let later = steady.and_then(|steady| steady.ops.get(kind));
        later.map_or(f64::INFINITY, |later| {
            (op.rate.value / later.rate.value - 1.0).abs()
        })
    });
    phase.name != PhaseKind::Settling && changes.any(|change| change > NOTABLE_DIFFERENCE)
}

/// Difference between the rates of two phases that needs a remark.
const NOTABLE_DIFFERENCE: f64 = 0.05;

fn errors(measurement: &Row) -> Option<Remark> {
    let failed = measurement.errors_total();
    let by_name = measurement.errors_by_name();
    let names = list(by_name.iter().map(|(name, n)| format!("{n} × {name}")));
    let count = counted(failed, "operation");
    let text = format!("{count} failed ({names}); the figure counts only successful operations");
    (failed > 0).then_some((RemarkKind::Failed, "errors", text))
}

fn ending(stopped: StopReason) -> Option<Remark> {
    let (word, text) = match stopped {
        StopReason::Interrupted => ("cut short", "interrupted"),
        StopReason::Errors => ("stopped", "stopped: too many operations failed"),
        StopReason::Hung => ("hung", "stopped: the target no longer answered"),
        StopReason::TooSlow => ("stopped", "stopped: a request took longer than allowed"),
        StopReason::BelowFloor => ("stopped", "stopped: the rate fell below its limit"),
        StopReason::Precision
        | StopReason::Time
        | StopReason::Bytes
        | StopReason::Ops
        | StopReason::Companion
        | StopReason::Steady
        | StopReason::Unread => return None,
    };
    Some((RemarkKind::Failed, word, text.to_owned()))
}

fn missed_starts(measurement: &Row) -> Option<Remark> {
    let missed = measurement
        .data
        .missed_starts
        .filter(|missed| *missed > 0)?;
    let text = format!(
        "{} started over 1 ms late or not at all; latencies count from the intended start",
        counted(missed, "request")
    );
    Some((RemarkKind::Failed, "late starts", text))
}

fn cache(measurement: &Row) -> Option<Remark> {
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
    let used = cache.used.as_str();
    // As asked, and yet the disk had to read.
    let has_reads = cache.why.is_some() && cache.asked == cache.used;
    let word = match cache.used {
        CachePolicy::Buffered if has_reads => "buffered, with reads",
        CachePolicy::Cached if has_reads => "cached, with reads",
        _ => used,
    };
    Some((RemarkKind::Cached, word, format!("{used}: {why}")))
}

/// Whether the blocks that earlier runs wrote were correct.
fn earlier_data(verify: &VerifyResult, runs: u64) -> Option<Remark> {
    let blocks = (verify.blocks > 0).then(|| counted(verify.blocks, "block"))?;
    let by = match runs {
        0 | 1 => String::new(),
        _ => format!("; {runs} runs wrote them"),
    };
    let (kind, text) = match (verify.wrong_blocks(), verify.bad_blocks) {
        (0, 0) => (
            RemarkKind::Verified,
            format!("{blocks} of earlier writes checked, all correct{by}"),
        ),
        (0, unknown) if unknown == verify.blocks => (
            RemarkKind::Failed,
            format!("none of {blocks} could be verified: not written with --verify and this --bs"),
        ),
        (0, unknown) => (
            RemarkKind::Verified,
            format!(
                "{} of {blocks} verified, all correct; {unknown} not written with --verify and \
                 this --bs{by}",
                verify.good_blocks()
            ),
        ),
        (wrong, _) => (
            RemarkKind::Failed,
            format!("{wrong} of {blocks} are not what an earlier run wrote{by}"),
        ),
    };
    Some(verified(kind, verify.wrong_blocks() > 0, text))
}

fn verified(kind: RemarkKind, is_wrong: bool, text: String) -> Remark {
    let word = match (kind, is_wrong) {
        (_, true) => "wrong data",
        (RemarkKind::Verified, false) => "verified",
        (_, false) => "unverified",
    };
    (kind, word, text)
}

/// The share of the written blocks that was read back, and whether they were correct.
fn verification(verify: &VerifyResult) -> Option<Remark> {
    if let Some(runs) = verify.runs {
        return earlier_data(verify, runs);
    }
    let written = counted(verify.blocks_written.unwrap_or(verify.blocks), "block");
    let is_whole = verify.unchecked() == 0;
    let interrupted = if is_whole {
        ""
    } else {
        " before an interruption"
    };
    let kind = match verify.bad_blocks {
        0 if is_whole => RemarkKind::Verified,
        _ => RemarkKind::Failed,
    };
    let text = match (verify.blocks, verify.bad_blocks) {
        (0, _) if is_whole => return None,
        (0, _) => format!("0 of {written} read back{interrupted}"),
        (_, 0) if is_whole => format!("{written} read back, all correct"),
        (blocks, 0) => format!("{blocks} of {written} read back{interrupted}, all correct"),
        (blocks, bad) => {
            let blocks = counted(blocks, "block");
            format!("{bad} of {blocks} read back wrong{interrupted}")
        }
    };
    Some(verified(kind, verify.bad_blocks > 0, text))
}
