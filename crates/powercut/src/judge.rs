//! Judges a disk: compares the writes that were reported to the log as durable with what the target
//! holds. Pure.

use crate::page::SlotState;
use crate::run::{LogEnd, RunLog, StreamKind, WriteStream};
use serde::Serialize;
use std::collections::BTreeSet;

/// The content that one stream left on the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamContent {
    /// The state of each slot.
    Slots(Vec<SlotState>),
    /// The numbers in the names that exist.
    Names(BTreeSet<u64>),
}

/// Facts that the verifier has alongside the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifyFacts {
    /// True if the machine started anew since the run; `None` where the kernel does not say.
    pub has_restarted: Option<bool>,
    /// True if the target is that of the run, even with no data of the run on it: it is exactly as
    /// before the run, or the user says so. Nothing else can distinguish a disk that lost
    /// everything from one that was wiped since.
    pub is_same_target: bool,
}

/// The answer of a test. `--json` prints these names and those of [`CutReport`]: renaming breaks
/// the programs that read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutVerdict {
    /// The disk lost what it had only accepted, and nothing that it had acknowledged as durable.
    Honest,
    /// The disk lost or damaged what it had acknowledged as durable.
    Lying,
    /// The test shows neither.
    NotProven,
}

/// The reason why nothing is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotProvenReason {
    /// The writer stopped in an orderly way.
    Stopped,
    /// No acknowledged write was reported.
    NothingAcknowledged,
    /// Nothing vanished, so no loss of power was observed.
    NothingVanished,
    /// On this target a loss of power cannot be observed.
    NoEvidence,
    /// Nothing of the run is there, and the target may be another one.
    NoTrace,
    /// The target has writes that the run could not make before the log had more reports: the run
    /// goes on, or the log lost its end.
    LogBehind,
    /// A later run wrote over the target of this one.
    Overwritten,
}

impl NotProvenReason {
    /// True where the counts of lost writes follow from the reason and show nothing of the disk.
    pub fn voids_damage(self) -> bool {
        match self {
            Self::Stopped
            | Self::NothingAcknowledged
            | Self::NoTrace
            | Self::LogBehind
            | Self::Overwritten => true,
            Self::NothingVanished | Self::NoEvidence => false,
        }
    }
}

/// The fate of one stream's writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StreamOutcome {
    /// The stream wrote this kind of content.
    pub kind: StreamKind,
    /// Writes that the log knows as durable (of control pages: as accepted).
    pub acknowledged: u64,
    /// Acknowledged writes of which nothing is left in a place where no acknowledged write is left.
    pub lost: u64,
    /// Acknowledged writes in whose place an older acknowledged write is.
    pub stale: u64,
    /// Acknowledged writes of which only a part is left, or that cannot be read.
    pub torn: u64,
    /// The first acknowledged write that is not as it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_damaged: Option<u64>,
}

impl StreamOutcome {
    /// Acknowledged writes that are not as they should be.
    pub fn damaged(&self) -> u64 {
        self.lost + self.stale + self.torn
    }
}

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CutReport {
    /// The answer of the test.
    pub verdict: CutVerdict,
    /// The reason why nothing is proven; `None` with any other answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<NotProvenReason>,
    /// Id of the run.
    pub run: String,
    /// From the first report to the last one, in seconds.
    pub reported_seconds: f64,
    /// From the first damaged write's report to the last report: the work that cannot be relied on.
    pub lost_seconds: f64,
    /// Writes of the streams that were synced.
    pub streams: Vec<StreamOutcome>,
    /// True if anything of the run is left on the target.
    pub has_trace: bool,
    /// Control pages that the disk had accepted, without their own sync.
    pub control_accepted: u64,
    /// Places that got a control page. Only the last page of each can vanish.
    pub control_places: u64,
    /// Control pages that vanished, of the last that each place got.
    pub control_vanished: u64,
    /// True if control pages can show a loss of power on this target.
    pub is_control_evidence: bool,
    /// True if the machine started anew since the run; `None` where the kernel does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_restarted: Option<bool>,
}

/// Compares the log of a run with the content of its target. `content` has one entry for each
/// stream of the run, in the order of its description.
pub fn judge(log: &RunLog, content: &[StreamContent], facts: VerifyFacts) -> CutReport {
    let counts = log.counts();
    let mut report = CutReport {
        verdict: CutVerdict::NotProven,
        reason: None,
        run: log.description.run.clone(),
        reported_seconds: seconds(last_report_ns(log)),
        lost_seconds: 0.0,
        streams: Vec::new(),
        has_trace: false,
        control_accepted: 0,
        control_places: 0,
        control_vanished: 0,
        is_control_evidence: log.description.is_control_evidence,
        has_restarted: facts.has_restarted,
    };
    debug_assert_eq!(content.len(), log.description.streams.len());
    let mut first_damage_ns: Option<u64> = None;
    let streams = log.description.streams.iter().zip(&counts).zip(content);
    for (index, ((stream, &count), content)) in streams.enumerate() {
        report.has_trace |= content.has_trace();
        if stream.kind == StreamKind::Control {
            report.control_accepted += count;
            report.control_places += count.min(u64::from(stream.slots));
            report.control_vanished += count_vanished(*stream, count, content);
            continue;
        }
        let outcome = match content {
            StreamContent::Slots(slots) => judge_slots(*stream, count, slots),
            StreamContent::Names(names) => judge_names(*stream, count, names),
        };
        if let Some(number) = outcome.first_damaged {
            first_damage_ns = earlier(first_damage_ns, log.reported_ns(index, number));
        }
        report.streams.push(outcome);
    }
    if let Some(damage_ns) = first_damage_ns {
        report.lost_seconds = seconds(last_report_ns(log).saturating_sub(damage_ns));
    }
    let reach = log_reach(log, &counts, content);
    (report.verdict, report.reason) = match conclude(&report, log.end, reach, facts) {
        Conclusion::Honest => (CutVerdict::Honest, None),
        Conclusion::Lying => (CutVerdict::Lying, None),
        Conclusion::NotProven(reason) => (CutVerdict::NotProven, Some(reason)),
    };
    report
}

/// The verdict, and the reason where it is that nothing is proven.
enum Conclusion {
    Honest,
    Lying,
    NotProven(NotProvenReason),
}

/// The reports of a log, compared with the writes on the target. The window of a stream keeps its
/// writes from getting further ahead of its reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LogReach {
    /// The log may have every report of the run.
    Whole,
    /// The run has reported more than the log has.
    Behind,
    /// Writes of a later run, which this log does not have.
    Overwritten,
}

/// Compares the reports of a log, `counts` of each stream, with the writes on the target.
fn log_reach(log: &RunLog, counts: &[u64], content: &[StreamContent]) -> LogReach {
    if content.iter().any(StreamContent::is_overwritten) {
        return LogReach::Overwritten;
    }
    let streams = log.description.streams.iter().zip(counts).zip(content);
    for ((stream, count), content) in streams {
        let is_reported = stream.kind != StreamKind::Control;
        if is_reported && content.newest() > count + stream.ahead_max() {
            return LogReach::Behind;
        }
    }
    LogReach::Whole
}

/// Draws the conclusion from the counts of a report. The order matters: damage counts only on a
/// target that is that of the run, and where the log has all reports, since later writes remove
/// what the earlier ones left. It proves a lie even where a loss of power cannot be seen.
fn conclude(report: &CutReport, end: LogEnd, reach: LogReach, facts: VerifyFacts) -> Conclusion {
    let is_target_of_run = report.has_trace || facts.is_same_target;
    let acknowledged: u64 = report.streams.iter().map(|s| s.acknowledged).sum();
    let damaged: u64 = report.streams.iter().map(StreamOutcome::damaged).sum();
    if end == LogEnd::Stopped {
        Conclusion::NotProven(NotProvenReason::Stopped)
    } else if reach == LogReach::Overwritten {
        Conclusion::NotProven(NotProvenReason::Overwritten)
    } else if !is_target_of_run {
        Conclusion::NotProven(NotProvenReason::NoTrace)
    } else if reach == LogReach::Behind {
        Conclusion::NotProven(NotProvenReason::LogBehind)
    } else if acknowledged == 0 {
        Conclusion::NotProven(NotProvenReason::NothingAcknowledged)
    } else if damaged > 0 {
        Conclusion::Lying
    } else if !report.is_control_evidence {
        Conclusion::NotProven(NotProvenReason::NoEvidence)
    } else if report.control_vanished == 0 {
        Conclusion::NotProven(NotProvenReason::NothingVanished)
    } else {
        Conclusion::Honest
    }
}

/// Returns the smaller of two numbers, of which each may be missing.
fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (Some(known), None) | (None, Some(known)) => Some(known),
        (None, None) => None,
    }
}

impl StreamContent {
    /// True if anything in it comes from the run.
    fn has_trace(&self) -> bool {
        match self {
            Self::Slots(slots) => slots.iter().any(SlotState::has_trace),
            Self::Names(names) => !names.is_empty(),
        }
    }

    /// True if a part of it cannot be read.
    pub(crate) fn has_unreadable(&self) -> bool {
        match self {
            Self::Slots(slots) => slots.contains(&SlotState::Unreadable),
            Self::Names(_) => false,
        }
    }

    /// True if a later run wrote over a part of it.
    fn is_overwritten(&self) -> bool {
        match self {
            Self::Slots(slots) => slots.contains(&SlotState::Overwritten),
            Self::Names(_) => false,
        }
    }

    /// Returns the number of the newest write that is certainly in it; 0 if there is none.
    fn newest(&self) -> u64 {
        match self {
            Self::Slots(slots) => slots.iter().map(SlotState::newest).max().unwrap_or(0),
            Self::Names(names) => names.last().copied().unwrap_or(0),
        }
    }
}

/// Returns the time of the last report, in nanoseconds since the first write; 0 without a report.
fn last_report_ns(log: &RunLog) -> u64 {
    match log.progress.last() {
        Some(last) => last.elapsed_ns,
        None => 0,
    }
}

/// Converts nanoseconds to seconds.
fn seconds(ns: u64) -> f64 {
    // To the millisecond: reports come at that pace.
    (ns / 1_000_000) as f64 / 1e3
}

/// Returns how many of a stream's first `count` writes went to the slot after its write `number`,
/// which is 0 for the layout.
fn later_writes(stream: WriteStream, slot: u32, number: u64, count: u64) -> u64 {
    let slots = u64::from(stream.slots);
    let last = stream.last_write_to(slot, count);
    if last == 0 {
        return 0;
    }
    if number == 0 {
        let first = u64::from(slot) + 1;
        return (last - first) / slots + 1;
    }
    last.saturating_sub(number) / slots
}

/// Judges the first `count` writes of a stream by the state of its slots.
fn judge_slots(stream: WriteStream, count: u64, slots: &[SlotState]) -> StreamOutcome {
    let mut outcome = StreamOutcome {
        kind: stream.kind,
        acknowledged: count,
        lost: 0,
        stale: 0,
        torn: 0,
        first_damaged: None,
    };
    let has_trace = slots.iter().any(SlotState::has_trace);
    for slot in 0..stream.slots {
        let last = stream.last_write_to(slot, count);
        if last == 0 {
            continue;
        }
        // A write that was in flight may have garbled its place. It cannot bring back what was
        // there before: an older write, blank sectors, or the data of another run.
        let may_be_in_flight = last + u64::from(stream.slots) <= count + stream.ahead_max();
        let state = match slots.get(slot as usize) {
            Some(state) => *state,
            None => SlotState::Foreign,
        };
        // The first write to this slot that is damaged.
        let first_damaged = match state {
            SlotState::Whole(number) if number >= last => None,
            // An interrupted write can garble every sector of its page, but not of all pages. A
            // file is replaced by a rename, which leaves the old one or the new one.
            SlotState::Garbled if may_be_in_flight && stream.is_paged() && has_trace => None,
            SlotState::Whole(0)
            | SlotState::Foreign
            | SlotState::Overwritten
            | SlotState::Garbled => {
                outcome.lost += later_writes(stream, slot, 0, count);
                Some(u64::from(slot) + 1)
            }
            SlotState::Whole(number) => {
                outcome.stale += later_writes(stream, slot, number, count);
                Some(number + u64::from(stream.slots))
            }
            SlotState::Mixed {
                oldest,
                has_invalid: false,
            } if oldest >= last => None,
            SlotState::Mixed {
                has_invalid: true, ..
            }
            | SlotState::Unreadable
                if may_be_in_flight =>
            {
                None
            }
            SlotState::Mixed { .. } | SlotState::Unreadable => {
                outcome.torn += 1;
                Some(last)
            }
        };
        outcome.first_damaged = earlier(outcome.first_damaged, first_damaged);
    }
    outcome
}

/// Judges the first `count` writes of a stream by the names that exist. Write `n` makes name `n`
/// and removes name `n - slots`.
fn judge_names(stream: WriteStream, count: u64, names: &BTreeSet<u64>) -> StreamOutcome {
    let slots = u64::from(stream.slots);
    // Writes in flight may have removed the names before this one.
    let kept_from = (count + stream.ahead_max()).saturating_sub(slots) + 1;
    let missing: BTreeSet<u64> = (kept_from..=count).filter(|n| !names.contains(n)).collect();
    // Name n is gone after write n + slots. A write whose own name is missing, too, counts once.
    let undone: BTreeSet<u64> = match count.checked_sub(slots) {
        Some(removed) => names.range(..=removed).map(|name| name + slots).collect(),
        None => BTreeSet::new(),
    };
    StreamOutcome {
        kind: stream.kind,
        acknowledged: count,
        lost: missing.len() as u64,
        stale: undone.difference(&missing).count() as u64,
        torn: 0,
        first_damaged: missing.union(&undone).next().copied(),
    }
}

/// Counts the slots of control pages that hold an older write than the last accepted one. The older
/// write is whole, so that the loss of the accepted one is the only explanation.
fn count_vanished(stream: WriteStream, count: u64, content: &StreamContent) -> u64 {
    let StreamContent::Slots(slots) = content else {
        return 0;
    };
    let mut older = 0;
    for (slot, state) in slots.iter().enumerate() {
        let last = stream.last_write_to(slot as u32, count);
        if last > 0 && matches!(state, SlotState::Whole(number) if *number < last) {
            older += 1;
        }
    }
    older
}

#[cfg(test)]
mod tests;
