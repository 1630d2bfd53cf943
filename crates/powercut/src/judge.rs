//! The judgement: what the log says is durable against what the target holds. Pure.

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

/// Facts that the verifier knows alongside the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifyFacts {
    /// True if the machine started anew since the run; `None` where the kernel does not say.
    pub has_restarted: Option<bool>,
    /// True if the target is that of the run, even with no data of the run on it: it is exactly as
    /// before the run, or the user says so. Nothing else can tell a disk that lost everything from
    /// one that was wiped since.
    pub is_same_target: bool,
}

/// The answer of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutVerdict {
    /// The disk lost what it had only accepted, and nothing that it had acknowledged as durable.
    Honest,
    /// The disk lost or damaged what it had acknowledged as durable.
    Lying,
    /// Neither can be said.
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
    /// Control pages that vanished, of the last that each place got.
    pub control_vanished: u64,
    /// True if control pages can show a loss of power on this target.
    pub is_control_evidence: bool,
    /// True if the machine started anew since the run; `None` where the kernel does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_restarted: Option<bool>,
}

/// Compares the log of a run with the content of its target.
pub fn judge(log: &RunLog, content: &[StreamContent], facts: VerifyFacts) -> CutReport {
    let counts = log.counts();
    let mut report = CutReport {
        verdict: CutVerdict::NotProven,
        reason: None,
        run: log.description.run.clone(),
        reported_seconds: seconds(elapsed(log)),
        lost_seconds: 0.0,
        streams: Vec::new(),
        has_trace: false,
        control_accepted: 0,
        control_vanished: 0,
        is_control_evidence: log.description.is_control_evidence,
        has_restarted: facts.has_restarted,
    };
    let mut first_damage_ns = None;
    let streams = log.description.streams.iter().zip(&counts).zip(content);
    for (index, ((stream, &count), content)) in streams.enumerate() {
        report.has_trace |= content.has_trace();
        if stream.kind == StreamKind::Control {
            report.control_accepted += count;
            report.control_vanished += vanished(*stream, count, content);
            continue;
        }
        let outcome = match content {
            StreamContent::Slots(slots) => judge_slots(*stream, count, slots),
            StreamContent::Names(names) => judge_names(*stream, count, names),
        };
        if let Some(number) = outcome.first_damaged {
            let reported_ns = log.reported_at(index, number);
            first_damage_ns = first_damage_ns.into_iter().chain(reported_ns).min();
        }
        report.streams.push(outcome);
    }
    if let Some(damage_ns) = first_damage_ns {
        report.lost_seconds = seconds(elapsed(log).saturating_sub(damage_ns));
    }
    let is_known = report.has_trace || facts.is_same_target;
    (report.verdict, report.reason) = conclude(&report, log.end, is_known);
    report
}

/// The answer, with the reason where nothing is proven.
fn conclude(
    report: &CutReport,
    end: LogEnd,
    is_known_target: bool,
) -> (CutVerdict, Option<NotProvenReason>) {
    let acknowledged: u64 = report.streams.iter().map(|s| s.acknowledged).sum();
    let damaged: u64 = report.streams.iter().map(StreamOutcome::damaged).sum();
    let reason = if end == LogEnd::Stopped {
        NotProvenReason::Stopped
    } else if !is_known_target {
        NotProvenReason::NoTrace
    } else if acknowledged == 0 {
        NotProvenReason::NothingAcknowledged
    } else if damaged > 0 {
        return (CutVerdict::Lying, None);
    } else if !report.is_control_evidence {
        NotProvenReason::NoEvidence
    } else if report.control_vanished == 0 {
        NotProvenReason::NothingVanished
    } else {
        return (CutVerdict::Honest, None);
    };
    (CutVerdict::NotProven, Some(reason))
}

impl StreamContent {
    fn has_trace(&self) -> bool {
        match self {
            Self::Slots(slots) => slots
                .iter()
                .any(|state| matches!(state, SlotState::Whole(_) | SlotState::Mixed { .. })),
            Self::Names(names) => !names.is_empty(),
        }
    }
}

fn elapsed(log: &RunLog) -> u64 {
    match log.progress.last() {
        Some(last) => last.elapsed_ns,
        None => 0,
    }
}

fn seconds(ns: u64) -> f64 {
    // To the millisecond: reports come at that pace.
    (ns / 1_000_000) as f64 / 1e3
}

/// The number of a stream's first `count` writes that went to the slot after its write `number`.
fn later_writes(stream: WriteStream, slot: u32, number: u64, count: u64) -> u64 {
    let last = stream.last_of(slot, count);
    let first = number.max(u64::from(slot) + 1);
    match (last, number) {
        (0, _) => 0,
        (last, 0) => (last - first) / u64::from(stream.slots) + 1,
        (last, number) => last.saturating_sub(number) / u64::from(stream.slots),
    }
}

fn judge_slots(stream: WriteStream, count: u64, slots: &[SlotState]) -> StreamOutcome {
    let mut outcome = StreamOutcome {
        kind: stream.kind,
        acknowledged: count,
        lost: 0,
        stale: 0,
        torn: 0,
        first_damaged: None,
    };
    for slot in 0..stream.slots {
        let last = stream.last_of(slot, count);
        if last == 0 {
            continue;
        }
        // A write that was in flight may have left anything in its place; it cannot bring an older
        // one back.
        let may_be_in_flight = last + u64::from(stream.slots) <= count + stream.window();
        let state = slots.get(slot as usize).copied();
        let damaged_from = match state.unwrap_or(SlotState::Foreign) {
            SlotState::Whole(number) if number >= last => None,
            SlotState::Whole(0) | SlotState::Foreign => {
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
        outcome.first_damaged = outcome.first_damaged.into_iter().chain(damaged_from).min();
    }
    outcome
}

/// Step `n` makes name `n` and removes name `n - slots`.
fn judge_names(stream: WriteStream, count: u64, names: &BTreeSet<u64>) -> StreamOutcome {
    let slots = u64::from(stream.slots);
    // Steps in flight may have removed these.
    let kept_from = (count + stream.window()).saturating_sub(slots) + 1;
    let missing: BTreeSet<u64> = (kept_from..=count).filter(|n| !names.contains(n)).collect();
    // Name n is gone after step n + slots. A step whose name is missing, too, counts once.
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

/// Control pages of which only an older write of the same place is left: whole, so that the loss of
/// a write that was accepted is the only explanation.
fn vanished(stream: WriteStream, count: u64, content: &StreamContent) -> u64 {
    let StreamContent::Slots(slots) = content else {
        return 0;
    };
    let mut older = 0;
    for (slot, state) in slots.iter().enumerate() {
        let last = stream.last_of(slot as u32, count);
        if last > 0 && matches!(state, SlotState::Whole(number) if *number < last) {
            older += 1;
        }
    }
    older
}

#[cfg(test)]
mod tests;
