//! The search for the highest rate that keeps a promise about latency: the promise, the trial of
//! each offered rate, and the answer that follows from all of them.

use crate::latency_search::timed_requests;
use crate::measurement::{Measurement, StopReason};
use crate::op::OpKind;
use crate::shape::LatencyTarget;
use crate::window::{LateRequests, Window, WindowLatency};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// The promise of a search for the highest rate that keeps it, and the time for the search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RatePlan {
    /// The share of requests that are answered within the limit, in percent, above 0 and below 100.
    #[serde(deserialize_with = "read_percent")]
    pub percent: f64,
    /// The limit, from the intended start of a request, in nanoseconds.
    #[serde(deserialize_with = "read_duration")]
    pub limit_ns: u64,
    /// The search of one workload, in nanoseconds.
    #[serde(deserialize_with = "read_duration")]
    pub time_ns: u64,
    /// Nanoseconds for which the promised rate is held.
    pub hold_ns: u64,
}

/// Records may come from anywhere: a percentage out of its range would divide by zero later.
fn read_percent<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let percent = f64::deserialize(deserializer)?;
    if percent > 0.0 && percent < 100.0 {
        Ok(percent)
    } else {
        Err(D::Error::custom(format!(
            "a promise covers more than 0 and less than 100 % of the requests, not {percent} %"
        )))
    }
}

/// Refuses a time of 0, with which no search could be made.
fn read_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match u64::deserialize(deserializer)? {
        0 => Err(D::Error::custom("a limit and a time are more than nothing")),
        ns => Ok(ns),
    }
}

impl RatePlan {
    /// The share of requests that may be late: 0.01 of 99 %.
    pub fn late_share(&self) -> f64 {
        1.0 - self.percent / 100.0
    }
}

/// The purpose of offering a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateCellKind {
    /// Doubles the rate until it is not served any more.
    Doubling,
    /// Offers more than the target can serve.
    Saturation,
    /// One point of the coarse curve.
    Curve,
    /// Near the wanted rate.
    Near,
    /// Once more at a rate that was too high below the interval.
    Repeated,
    /// Holds the lower end of the interval for long.
    Hold,
    /// Offers a rate above the interval, where the promise must break.
    Control,
}

impl RateCellKind {
    /// True if its measurement has a row of figures: that of the promise, and of what breaks it.
    pub fn makes_a_row(self) -> bool {
        match self {
            Self::Hold | Self::Control => true,
            Self::Doubling | Self::Saturation | Self::Curve | Self::Near | Self::Repeated => false,
        }
    }

    /// The name of the row, or of the trials, that a workload is measured in.
    pub fn row_name(self, workload: &str) -> String {
        match self {
            Self::Hold => format!("{workload}-held"),
            Self::Control => format!("{workload}-control"),
            Self::Doubling | Self::Saturation | Self::Curve | Self::Near | Self::Repeated => {
                format!("{workload}-trial")
            }
        }
    }

    /// True if a search for the rate of `workload` made the row of this name.
    pub fn has_named_row(row_name: &str, workload: &str) -> bool {
        [Self::Hold, Self::Control]
            .iter()
            .any(|kind| kind.row_name(workload) == row_name)
    }

    /// The word used in records and on pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Doubling => "doubling",
            Self::Saturation => "saturation",
            Self::Curve => "curve",
            Self::Near => "near",
            Self::Repeated => "repeated",
            Self::Hold => "hold",
            Self::Control => "control",
        }
    }
}

/// Above this share of the late requests, those that this program's own delay made late may be the
/// reason for an overload. The answer of a search is void from the same share on.
const DELAYED_SHARE_MAX: f64 = 0.05;
/// From this share of its time on, waiting for processors may have made a trial more than its
/// target serves: with a fifth, whatever answers for a disk waits as well.
const WAITED_SHARE_MAX: f64 = 0.2;

/// The requests of one part of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RateBatch {
    /// Requests that were answered in it, including those in flight at the end of the trial.
    pub requests: u64,
    /// Requests that took longer than the limit.
    pub late: u64,
    /// The longest of them, from its intended start, in nanoseconds; absent without any and in
    /// older records.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub longest_ns: u64,
    /// Nanoseconds for which a thread of this program that was ready to run waited for a processor,
    /// on average over the threads; absent where it did not wait and in older records.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub waited_ns: u64,
}

impl RateBatch {
    /// Two batches that follow each other as one.
    fn plus(self, next: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(next.requests),
            late: self.late.saturating_add(next.late),
            longest_ns: self.longest_ns.max(next.longest_ns),
            waited_ns: self.waited_ns.saturating_add(next.waited_ns),
        }
    }
}

/// A rate that was offered, and what the target made of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateTrial {
    /// The place of its workload in the plan, from 0.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub workload: usize,
    /// The purpose of the trial.
    pub kind: RateCellKind,
    /// Rate offered, per second, at random times.
    pub rate: f64,
    /// Start of its measured time, in nanoseconds after the start of the run.
    pub start_ns: u64,
    /// The time before it that does not count, in nanoseconds.
    pub warmup_ns: u64,
    /// Measured time in nanoseconds.
    pub wall_ns: u64,
    /// Rate served in it, per second.
    pub served: f64,
    /// True if it ended early, because a request had waited for too long.
    pub is_over: bool,
    /// Requests and late ones, batch by batch.
    pub batches: Vec<RateBatch>,
    /// 99 % of the requests that found a free session were sent within this time after their
    /// intended start, in nanoseconds; absent where there were too few. It is this program's own
    /// delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch_p99_ns: Option<u64>,
    /// Requests that were late by this program's own delay, and would not have been without it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub dispatch_late: u64,
}

impl RateTrial {
    /// Reads the trial out of a measurement of an open loop with a latency target; `None` of any
    /// other. `place` is that of its workload in the plan.
    pub fn measured(place: usize, kind: RateCellKind, measurement: &Measurement) -> Option<Self> {
        let workload = &measurement.workload;
        let target = workload.shape.latency_target?;
        let rate = workload.rate?;
        let mut answered = 0;
        for (operation, op) in OpKind::headline(&measurement.ops) {
            if workload.makes(operation) {
                answered += op.count;
            }
        }
        Some(Self {
            workload: place,
            kind,
            rate,
            start_ns: measurement.start_ns,
            warmup_ns: workload.warmup_ns,
            wall_ns: measurement.wall_ns,
            served: answered as f64 * 1e9 / measurement.wall_ns.max(1) as f64,
            is_over: measurement.stopped == StopReason::Overloaded,
            batches: batches(measurement, &target),
            dispatch_p99_ns: measurement.dispatch_p99_ns,
            dispatch_late: measurement.dispatch_late,
        })
    }

    /// The end of its measured time, in nanoseconds after the start of the run.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.wall_ns)
    }

    /// The requests of all its batches together.
    pub fn total(&self) -> LateRequests {
        let mut total = LateRequests::default();
        for batch in &self.batches {
            total = total.plus(LateRequests {
                requests: batch.requests,
                late: batch.late,
            });
        }
        total
    }

    /// True if this program may have made its requests wait: its own delay made many of them late,
    /// or its threads waited for processors for so long that what answers them did, too.
    fn may_be_of_generator(&self) -> bool {
        let late = self.total().late as f64;
        let waited_ns: u64 = self.batches.iter().map(|batch| batch.waited_ns).sum();
        self.dispatch_late as f64 > DELAYED_SHARE_MAX * late
            || waited_ns as f64 >= WAITED_SHARE_MAX * self.wall_ns as f64
    }

    /// The share of its requests that were late; 0 without any.
    pub fn late_share(&self) -> f64 {
        let total = self.total();
        total.late as f64 / total.requests.max(1) as f64
    }
}

/// Returns the requests of each batch: consecutive windows that together are as long as the window
/// of the target.
fn batches(measurement: &Measurement, target: &LatencyTarget) -> Vec<RateBatch> {
    let is_transaction = measurement.workload.transaction.is_some();
    let mut batches = Vec::new();
    let mut batch = RateBatch::default();
    let mut length_ns = 0;
    for window in &measurement.windows {
        batch = batch.plus(batch_of_window(window, target, is_transaction));
        length_ns += window.length_ns();
        if length_ns >= target.window_ns {
            batches.push(std::mem::take(&mut batch));
            length_ns = 0;
        }
    }
    // The rest is too short to show how lateness varies from batch to batch.
    match batches.last_mut() {
        Some(last) => *last = last.plus(batch),
        None => batches.push(batch),
    }
    batches
}

/// The timed requests of a window; of a transaction, the transactions.
fn batch_of_window(window: &Window, target: &LatencyTarget, is_transaction: bool) -> RateBatch {
    let mut longest_ns = 0;
    let late_requests = if is_transaction {
        match window.ops.get(&OpKind::Transaction) {
            Some(op) => {
                longest_ns = op.intended.max_ns();
                late_of(op, target)
            }
            None => LateRequests::default(),
        }
    } else {
        // A write that is synced ends with its sync, as a commit.
        for kind in OpKind::REQUESTS.into_iter().chain([OpKind::Commit]) {
            if let Some(op) = window.ops.get(&kind) {
                longest_ns = op.intended.max_ns().max(longest_ns);
            }
        }
        timed_requests(|kind| Some(late_of(window.ops.get(&kind)?, target)))
    };
    RateBatch {
        requests: late_requests.requests,
        late: late_requests.late,
        longest_ns,
        waited_ns: window.waited_ns / window.threads.max(1),
    }
}

/// The requests of one kind in a window, from their intended starts.
fn late_of(op: &WindowLatency, target: &LatencyTarget) -> LateRequests {
    LateRequests {
        requests: op.intended.count(),
        late: op.intended.count_above(target.latency_ns),
    }
}

/// The search for the highest rate: its trials, and what they say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadRecord {
    /// The trials, in the order of time.
    pub data: LoadData,
    /// The answer, which follows from the trials.
    pub figures: LoadFigures,
}

/// The trials of a search.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LoadData {
    /// Every rate that was offered.
    pub trials: Vec<RateTrial>,
}

impl LoadRecord {
    /// The lowest rate of the doubling at which more waited than was served: no higher one can be
    /// kept. `None` where there was none, and where a stall, or this program itself, may have been
    /// the reason. The cells of a curve are too short to show it.
    pub fn lowest_overload(&self) -> Option<f64> {
        if self.figures.stalls.met > 0 {
            return None;
        }
        self.data
            .trials
            .iter()
            .filter(|trial| {
                let is_overload = trial.is_over && trial.kind == RateCellKind::Doubling;
                is_overload && !trial.may_be_of_generator()
            })
            .map(|trial| trial.rate)
            .reduce(f64::min)
    }
}

/// The answer of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadFigures {
    /// The extent of the answer.
    pub outcome: LoadOutcome,
    /// Lower end of the 95 % interval of the highest rate that keeps the promise, per second.
    pub low: f64,
    /// The promised rate with its interval.
    pub rate: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Rate that the target served when more was offered, per second.
    pub saturated: f64,
    /// The percentage by which lateness grows when the rate grows by one percent.
    pub slope: f64,
    /// Independent late episodes that were seen near the rate; fewer than six decide nothing.
    pub episodes: f64,
    /// The number of the trial that held the lower end, among all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<usize>,
    /// The rate above it at which the promise had to break.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<LoadControl>,
    /// The share by which the rate changed while it was measured, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<f64>,
    /// Times that the target became so much slower that the search began anew.
    pub falls: u32,
    /// A credit of up to so many requests over a base of half the rate would not have shown.
    pub unseen_credit: f64,
    /// The stalls that were met, and those that would not have shown.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub stalls: LoadStalls,
    /// The middle one of this program's own delays in the trials near the rate, over the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_share: Option<f64>,
    /// The share of their late requests that only this delay made late.
    pub generator_late_share: f64,
    /// The thing that broke the promise above the rate.
    pub cause: BreakCause,
}

/// The stalls of a search: times in which the target answered nothing, long enough to be told from
/// the lateness of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LoadStalls {
    /// Stalls that were met.
    pub met: u32,
    /// The trials that do not show whether the target stalled, because this program was kept off
    /// the processors for as long.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub own_trials: u32,
    /// The mean length of the stalls beyond the limit, in nanoseconds; 0 without any.
    pub mean_ns: u64,
    /// The time in which a stall would have shown, in nanoseconds.
    pub observed_ns: u64,
    /// With 95 %, stalls of which none was met are rarer than one in this time, in nanoseconds.
    pub unseen_every_ns: u64,
    /// If they come that often, stalls of this length break the promise at the lower end of the
    /// interval, in nanoseconds; absent where stalls were met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen_ns: Option<u64>,
}

/// A rate that may be promised, with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PromisedRate {
    /// Lower end, per second.
    pub low: f64,
    /// The rate that was found, per second.
    pub rate: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl LoadFigures {
    /// The rate that the target served when more was offered, per second; `None` where the search
    /// ended before it offered more.
    pub fn served_when_saturated(&self) -> Option<f64> {
        if self.saturated > 0.0 {
            Some(self.saturated)
        } else {
            None
        }
    }

    /// The rate that may be promised; `None` of an answer that promises nothing.
    pub fn promised(&self) -> Option<PromisedRate> {
        if !self.outcome.is_promise() {
            return None;
        }
        Some(PromisedRate {
            low: self.low,
            rate: self.rate,
            high: self.high,
        })
    }
}

/// The extent of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadOutcome {
    /// The lower end was held, and the promise broke above the upper one.
    Sustained,
    /// The lower end was held. Nothing that was offered broke the promise, or the hold alone shows
    /// that it is kept, and between it and the rate that broke it too few late episodes were seen.
    AtLeast,
    /// Nothing is promised: perhaps no rate keeps the promise.
    PerhapsNone,
    /// The lower end did not last.
    NotHeld,
    /// Too few late episodes were seen.
    FewEpisodes,
    /// This program did not offer what it was to offer.
    Generator,
    /// Something else answered than the disk, or nothing shows that the disk did, as a finding
    /// says.
    NotTheDisk,
    /// The search ended before it had an answer.
    Unfinished,
}

impl LoadOutcome {
    /// True if its interval has two ends: the lower one was held, and the promise broke above the
    /// upper one.
    pub fn has_both_ends(self) -> bool {
        self == Self::Sustained
    }

    /// The words on pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sustained => "sustained",
            Self::AtLeast => "at least",
            Self::PerhapsNone => "perhaps none",
            Self::NotHeld => "the lower end did not last",
            Self::FewEpisodes => "too few late episodes",
            Self::Generator => "this program was late",
            Self::NotTheDisk => "not shown to be the disk's",
            Self::Unfinished => "ended early",
        }
    }

    /// True if its lower end may be promised.
    pub fn is_promise(self) -> bool {
        match self {
            Self::Sustained | Self::AtLeast => true,
            Self::PerhapsNone
            | Self::NotHeld
            | Self::FewEpisodes
            | Self::Generator
            | Self::NotTheDisk
            | Self::Unfinished => false,
        }
    }
}

/// The control of a search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadControl {
    /// The offered rate over the found rate.
    pub factor: f64,
    /// Rate offered, per second.
    pub rate: f64,
    /// The share of late requests; absent where requests waited for so long that it was ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_share: Option<f64>,
    /// True if the promise broke, as it must.
    pub failed: bool,
    /// The number of its last trial among all.
    pub trial: usize,
}

/// The thing that a transaction or a request waits for where the promise breaks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BreakCause {
    /// The kind of request that it waits for.
    pub limit: BreakLimit,
    /// The evidence, as a clause.
    pub why: String,
}

/// The kind of request that breaks a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BreakLimit {
    /// Reads take longer than below the rate.
    Reads,
    /// Writes take longer than below the rate.
    Writes,
    /// Syncs take longer than below the rate.
    Flushes,
    /// The filesystem's journal: syncs took longer while the disk was flushed less often.
    Journal,
    /// A control group or the type of the volume caps the rate.
    Cap,
    /// The processors had no time.
    Cpu,
    /// The trials do not show it.
    Unknown,
}

impl BreakLimit {
    /// The words on pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::Flushes => "flushes",
            Self::Journal => "the filesystem's journal",
            Self::Cap => "a cap",
            Self::Cpu => "the processors",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_has_the_longest_request_and_the_waits_of_its_threads() {
        let target = LatencyTarget {
            latency_ns: 5_000_000,
            percent: 99.0,
            window_ns: 1_000_000_000,
        };
        let mut window = Window {
            waited_ns: 600,
            threads: 2,
            ..Window::default()
        };
        let mut answered = WindowLatency::default();
        answered.intended.record_many(1_000_000, 9);
        answered.intended.record_many(7_000_000, 1);
        window.ops.insert(OpKind::Read, answered);
        let batch = batch_of_window(&window, &target, false);
        assert_eq!((batch.requests, batch.late), (10, 1));
        assert_eq!((batch.longest_ns, batch.waited_ns), (7_000_000, 300));
        assert_eq!(
            batch.plus(batch),
            RateBatch {
                requests: 20,
                late: 2,
                longest_ns: 7_000_000,
                waited_ns: 600,
            }
        );
    }

    #[test]
    fn plan_that_nobody_can_carry_out_is_refused() {
        let read = |percent: f64, limit_ns: u64, time_ns: u64| {
            serde_json::from_value::<RatePlan>(serde_json::json!({
                "percent": percent,
                "limit_ns": limit_ns,
                "time_ns": time_ns,
                "hold_ns": 1,
            }))
        };
        assert!(read(99.9, 1, 1).is_ok());
        for (percent, limit_ns, time_ns) in [
            (0.0, 1, 1),
            (100.0, 1, 1),
            (-5.0, 1, 1),
            (99.0, 0, 1),
            (99.0, 1, 0),
        ] {
            assert!(read(percent, limit_ns, time_ns).is_err(), "{percent}");
        }
    }
}
