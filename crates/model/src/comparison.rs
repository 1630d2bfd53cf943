//! Two or more runs compared: metric by metric two figures, their ratio with its interval, a
//! verdict, or the reasons why they cannot be compared. Its JSON form is the published contract
//! `schema/comparison.v1.schema.json`.

use crate::estimate::Estimate;
use crate::finding::Severity;
use crate::fleet::FleetRecord;
use crate::op::OpKind;
use crate::record::Tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::metric::{Direction, Figure, PercentilePoint, Reason};

/// Version of the comparison's shape.
pub const COMPARISON_SCHEMA: &str = "diskproof.comparison/1";

/// A baseline, and what was compared with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Always [`COMPARISON_SCHEMA`].
    pub schema: String,
    /// The program that made it.
    pub tool: Tool,
    /// Differences of up to this share count as none: 0.02 is 2 %.
    pub margin: f64,
    /// The side that the others are compared with: A.
    pub baseline: Side,
    /// The others, each compared as B.
    pub candidates: Vec<Candidate>,
    /// Conditions that the user set, and how they came out; one entry for each condition and
    /// candidate.
    pub conditions: Vec<Condition>,
    /// The sides that are not like the others, where there are five or more, each side a row;
    /// absent where there are fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<Box<FleetRecord>>,
}

/// One side of a comparison: a run, or several that count as repetitions of one experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Side {
    /// A label of the user, or the names of its runs.
    pub label: String,
    /// The runs whose figures are taken together.
    pub runs: Vec<RunReference>,
    /// Failures and warnings of its runs about their disks, such as health or stalls, failures
    /// first. A verdict is about figures only, so none contains them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<SideFinding>,
}

impl Side {
    /// The first finding that says that a disk of this side failed; `None` where none does.
    pub fn failure(&self) -> Option<&SideFinding> {
        self.findings
            .iter()
            .find(|finding| finding.severity == Severity::Failure)
    }
}

/// A finding about the disk of a side, whatever its figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SideFinding {
    /// The name of the side in sentences, or of its run: `A`, `B` or `A2`.
    pub run: String,
    /// Code of the finding.
    pub code: String,
    /// The weight of the finding.
    pub severity: Severity,
    /// The observation in at most eight words.
    pub title: String,
    /// The claim of the finding, with its figures.
    pub claim: String,
}

/// A run, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunReference {
    /// The name that the user gave it: an id, a file, a label.
    pub name: String,
    /// The id in its record.
    pub run_id: String,
    /// The start in UTC, RFC 3339.
    pub started: String,
    /// The verb that made it.
    pub verb: String,
    /// Name of the machine.
    pub host: String,
    /// Paths of the targets, as the run was given them.
    pub targets: Vec<String>,
    /// The disks at the bottom: model and serial as far as they are known, else the kernel's name.
    pub disks: Vec<String>,
    /// The note that the user gave the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// True if the run ended before its plan did.
    pub partial: bool,
}

/// One side compared with the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// The side that is compared with A.
    pub side: Side,
    /// The verdicts counted over the headline metrics: one a workload, the survey's average rate
    /// and random access time, and the rate that a search promises.
    pub headline: Tally,
    /// The verdicts counted over all metrics.
    pub all: Tally,
    /// The whole comparison in a sentence or two.
    pub summary: String,
    /// The answers of the searches of both sides in a sentence, which is also the first one of the
    /// summary; absent where they searched nothing, or not the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<String>,
    /// Further differences between the sides, perhaps on purpose. Figures compare all the same.
    pub differences: Vec<Difference>,
    /// Remarks that a reader must know in addition to the verdicts.
    pub notes: Vec<String>,
    /// Every metric that both sides have, in the order of the baseline's plan.
    pub metrics: Vec<MetricComparison>,
    /// Figures that only one side has, and results that are not compared.
    pub unmatched: Vec<Unmatched>,
    /// Latency distributions for overlaying, in the order of the baseline's plan.
    pub percentiles: Vec<PercentilePair>,
}

/// The number of verdicts of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Metrics that are better in B.
    pub better: u32,
    /// Metrics that are worse in B.
    pub worse: u32,
    /// Same within the margin.
    pub same: u32,
    /// Faster in this one pair of runs.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub faster_once: u32,
    /// Slower in this one pair of runs.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub slower_once: u32,
    /// Metrics whose intervals leave the answer open.
    pub undecided: u32,
    /// Metrics that do not measure the same thing on both sides.
    pub not_comparable: u32,
    /// Observed.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub observed_loads: u32,
}

impl Tally {
    /// Counts one more verdict of this kind.
    pub fn count(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Better => &mut self.better,
            Verdict::Worse => &mut self.worse,
            Verdict::Same => &mut self.same,
            Verdict::FasterOnce => &mut self.faster_once,
            Verdict::SlowerOnce => &mut self.slower_once,
            Verdict::Undecided => &mut self.undecided,
            Verdict::NotComparable => &mut self.not_comparable,
            Verdict::Observed => &mut self.observed_loads,
        } += 1;
    }

    /// The number of verdicts of all kinds.
    pub fn total(&self) -> u32 {
        self.better
            + self.worse
            + self.same
            + self.faster_once
            + self.slower_once
            + self.undecided
            + self.not_comparable
            + self.observed_loads
    }
}

/// A fact that differs between the sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The condition that differs: `disk`, `firmware`, `kernel`, say.
    pub what: String,
    /// The value on the baseline's side; several where its runs differ among themselves.
    pub a: String,
    /// The value on the candidate's side.
    pub b: String,
}

/// One metric on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricComparison {
    /// The metric's name, unique within the candidate: `random-read-d32.iops`,
    /// `mixed-random.read.p99`, `curve.average`, `access.random`, `load.rate`. With several
    /// targets the target's number (from 1) stands before it: `2:random-read-d32.iops`.
    pub metric: String,
    /// The workload that the figure belongs to, or `curve`, `burst`, `access`, `load`.
    pub subject: String,
    /// Index of the target.
    pub target: usize,
    /// The kind of operation; `null` where all of them are meant.
    pub op: Option<OpKind>,
    /// The kind of figure.
    pub figure: Figure,
    /// True of the one metric that speaks for its subject in the summary.
    pub headline: bool,
    /// The direction in which the figure is better.
    pub better: Direction,
    /// The baseline's figure. For percentiles the half-width is the longer arm of the interval.
    pub a: Estimate,
    /// The figure of B.
    pub b: Estimate,
    /// B over A; `null` where one of them has no interval or is zero.
    pub ratio: Option<Ratio>,
    /// Probability of a difference this large by chance alone where there is none; `null` without
    /// a ratio.
    pub p_value: Option<f64>,
    /// `p` after allowing for the number of metrics that were looked at (Holm); a verdict of better
    /// or worse rests on it.
    pub p_adjusted: Option<f64>,
    /// The source of the intervals.
    pub basis: Basis,
    /// Variation of the figure from run to run; `null` where only one run a side is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variation: Option<RunVariation>,
    /// The answer from the baseline's point of view: `better` means that B is better.
    pub verdict: Verdict,
    /// The time or runs that an answer would take, where it is undecided, or decided for one pair
    /// of runs only.
    pub needed: Option<Needed>,
    /// Reasons why it is not comparable; empty where it is.
    pub reasons: Vec<Reason>,
}

/// The figure of B over that of A.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// The quotient.
    pub value: f64,
    /// Lower end of its 95 % interval.
    pub low_95: f64,
    /// Upper end of its 95 % interval; `null` where the figure is known from below only.
    pub high_95: Option<f64>,
}

/// Variation of a figure from run to run of the same target and plan.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunVariation {
    /// Standard deviation of the figure of one run, as a share of it.
    pub deviation: f64,
    /// The part of it that the intervals of the single runs do not explain, as a share of the
    /// figure.
    pub component: f64,
    /// Degrees of freedom of Student's t.
    pub freedom: f64,
    /// Earlier runs of the history among those that show it.
    pub earlier_runs: u64,
}

/// The source of the intervals of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The interval follows from how the figure varied within one run a side. Changes from run to
    /// run are not in it.
    WithinRuns,
    /// The interval follows from how runs differ among themselves: those of a side, and earlier
    /// ones of the same target and plan.
    BetweenRuns,
    /// The interval follows from the differences between the curves, position by position.
    Positions,
    /// The interval follows from the differences between slices of both sides that followed each
    /// other, block by block.
    Blocks,
}

/// The answer for a metric.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// B is better: surely, and by more than the margin as far as can be told.
    Better,
    /// B is worse: surely, and by more than the margin as far as can be told.
    Worse,
    /// The whole interval lies within the margin.
    Same,
    /// B was faster in this one pair of runs, as [`Self::Better`] by what varied within them. How
    /// much the figure varies from run to run is unknown.
    FasterOnce,
    /// B was slower in this one pair of runs, as [`Self::Worse`] by what varied within them. How
    /// much the figure varies from run to run is unknown.
    SlowerOnce,
    /// The interval is too wide for any of these.
    Undecided,
    /// The figures do not measure the same thing.
    NotComparable,
    /// The figures are of an observed load: what programs requested, not what a disk can do.
    Observed,
}

impl Verdict {
    /// The words used in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "same",
            Self::FasterOnce => "faster-once",
            Self::SlowerOnce => "slower-once",
            Self::Undecided => "undecided",
            Self::NotComparable => "not comparable",
            Self::Observed => "observed",
        }
    }

    /// True if more measurements could still decide.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Undecided | Self::FasterOnce | Self::SlowerOnce)
    }
}

/// The effort that would decide, if the ratio stays where it is: the width of an interval falls
/// with the root of what it rests on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Needed {
    /// Times as much as there is: as long where one run a side was measured, as many runs where
    /// several were.
    pub times: f64,
    /// The measured time that each side would need, in nanoseconds; `null` where runs, positions or
    /// accesses are what is needed.
    pub measure_ns: Option<u64>,
    /// The runs that each side would need; `null` where more of one run would do.
    pub runs: Option<u64>,
}

/// A figure that only one side has, or a result that is not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unmatched {
    /// The workload, or `curve`, `burst`, `access`, `load`, or a result in words.
    pub subject: String,
    /// The side that has it.
    pub only: Holder,
    /// The reason why the other side has none, as far as its record says, or why both are not
    /// compared.
    pub why: Option<String>,
}

/// The side that has something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Holder {
    /// The baseline has it.
    A,
    /// The candidate has it.
    B,
    /// Both sides have it, and it is not compared, as `why` says.
    Both,
}

/// The latency distributions of both sides, the runs of a side merged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PercentilePair {
    /// Name of the workload.
    pub subject: String,
    /// Index of the target.
    pub target: usize,
    /// The kind of operation.
    pub op: OpKind,
    /// True if the two are comparable, as the metrics say.
    pub comparable: bool,
    /// Percentiles of the baseline, ascending.
    pub a: Vec<PercentilePoint>,
    /// Percentiles of the candidate, ascending.
    pub b: Vec<PercentilePoint>,
}

/// A condition that the user set, checked on one candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Condition {
    /// The words of the user: `random-read-d32.iops<-5%`.
    pub expression: String,
    /// Label of the candidate that it was applied to.
    pub candidate: String,
    /// The change of the metric, as a share: −0.05 is 5 % less; `null` when there is none.
    pub change: Option<f64>,
    /// The answer.
    pub outcome: ConditionOutcome,
    /// The answer in a sentence, with the figures.
    pub why: String,
}

/// The answer to a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConditionOutcome {
    /// The whole interval of the change lies beyond the threshold.
    Holds,
    /// No part of the interval lies beyond the threshold.
    DoesNotHold,
    /// The threshold lies within the interval, or the interval is from one run per side, which
    /// does not show how runs vary.
    Undecided,
    /// The metric is not comparable, or one side does not have it.
    Unanswered,
}

/// B, C, D … Z, AA, AB … for the candidates in their order.
pub fn letter(index: usize) -> String {
    let mut rest = index + 2;
    let mut letters = Vec::new();
    while rest > 0 {
        rest -= 1;
        letters.insert(0, char::from(b'A' + (rest % 26) as u8));
        rest /= 26;
    }
    letters.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_side_has_a_letter_of_its_own() {
        assert_eq!(
            [0, 24, 25, 26, 701].map(letter),
            ["B", "Z", "AA", "AB", "AAA"]
        );
    }
}
