//! A threshold for a figure, set by the user or promised by a data sheet, and whether the
//! measurement met it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A threshold that the user set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Expectation {
    /// The expression as given: `random-read-d32.iops>=5000`.
    pub expression: String,
    /// The threshold in the unit of the figure, set where a record is judged.
    #[serde(skip)]
    pub threshold: Option<f64>,
    /// The measured figure; `null` when it was not measured.
    pub observed: Option<f64>,
    /// The 95 % interval of what was measured, from its lower to its upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// The lower end of the 95 % interval of a percentile with fewer than ten operations beyond it.
    /// The upper end is unknown, and `observed` is `null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at_least: Option<f64>,
    /// True if it was met. An undecided one was not.
    pub met: bool,
    /// True if the interval leaves open if it was met.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
    /// The measured time of the workload that decides it in four of five cases, in nanoseconds,
    /// where the interval leaves it open. Absent where a day would not, or nothing tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by_ns: Option<u64>,
    /// The reason why the figure may not decide: it is not the disk's, or waits for processors
    /// explain a miss, or a load is not steady yet. `observed` is what was measured all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objection: Option<String>,
    /// The figure of the data sheet that it judges (`--spec`); absent for a condition of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promise: Option<Promise>,
}

/// A figure of the data sheet, and what passes for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Promise {
    /// The name of the figure, such as `transfer rate`.
    pub name: String,
    /// The value that the data sheet promises.
    pub promised: f64,
    /// The limit from which on, or up to which, a measured figure passes. Data sheets round, and
    /// omit the electronics.
    pub passes: f64,
    /// The unit of both and of what was measured: `1/s`, `B/s`, `ns`, `rpm` or `B`.
    pub unit: String,
}

impl Expectation {
    /// The outcome of the comparison with the measurement.
    pub fn outcome(&self) -> ExpectationOutcome {
        match (self.met, self.undecided) {
            (true, _) => ExpectationOutcome::Met,
            (false, false) => ExpectationOutcome::Missed,
            (false, true) => ExpectationOutcome::Undecided,
        }
    }
}

/// The outcome of a threshold; a later one is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExpectationOutcome {
    /// The whole interval meets it.
    Met,
    /// A part of the interval meets it, or the figure was not measured.
    Undecided,
    /// No part of the interval meets it.
    Missed,
}

impl ExpectationOutcome {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Undecided => "undecided",
            Self::Missed => "missed",
        }
    }
}
