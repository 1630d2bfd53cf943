//! The verdict of a run: what its figures mean for a database, and whether they can be relied on.
//! `analysis` computes it; printers show it. It fits seven lines of a terminal.

use crate::estimate::Estimate;
use crate::finding::Severity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a run means.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunVerdict {
    /// One sentence: the grades in words; the main figures where nothing is graded.
    pub headline: String,
    /// Bulk load, scans, look-ups and commits, as far as `check` measured them.
    pub grades: Vec<UseGrade>,
    /// The finding of the greatest severity; `null` where there is no warning and no failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<LeadingFinding>,
    /// The most severe finding on the disk itself: its figures are right, and show a weakness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weakness: Option<LeadingFinding>,
    /// Whether the figures can be relied on.
    pub trust: Trust,
    /// What the figures do not cover, a sentence each: a larger burst credit, the rest of a disk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<String>,
}

/// What a database does with a disk, and how well the disk does it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UseGrade {
    /// `bulk load`, `scans`, `look-ups` or `commits`.
    pub name: String,
    /// Index into `measurements`.
    pub measurement: usize,
    /// The grade; `null` where the figure does not support one.
    pub grade: Option<Grade>,
    /// A second grade that the interval of the figure reaches: the disk may deserve either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub or: Option<Grade>,
    /// Why there is no grade, in a few words: `unstable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_graded: Option<String>,
    /// The figure that decides.
    pub figure: Estimate,
    /// What the figure is compared with.
    pub thresholds: GradeThresholds,
    /// Codes of the warnings and failures that concern this figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
}

impl UseGrade {
    /// The grade in words: `good`, `limited or good`, `not graded: unstable`.
    pub fn words(&self) -> String {
        match (self.grade, self.or, &self.not_graded) {
            (Some(grade), Some(or), _) => {
                format!("{} or {}", grade.min(or).as_str(), grade.max(or).as_str())
            }
            (Some(grade), None, _) => grade.as_str().to_owned(),
            (None, _, Some(why)) => format!("not graded: {why}"),
            (None, _, None) => "not graded".to_owned(),
        }
    }
}

/// How well a disk serves a use; a later one is better.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// Users notice the disk.
    Poor,
    /// The disk works; plan with its figure as the limit.
    Limited,
    /// Something other than the disk is the limit.
    Good,
}

impl Grade {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Poor => "poor",
            Self::Limited => "limited",
            Self::Good => "good",
        }
    }
}

/// The figures at which the grade changes, in the unit of the figure; more is better.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GradeThresholds {
    /// From here on `limited`, below it `poor`.
    pub limited_from: f64,
    /// From here on `good`.
    pub good_from: f64,
    /// Where the two come from.
    pub source: String,
}

/// A finding in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeadingFinding {
    /// Its weight.
    pub severity: Severity,
    /// Its stable name.
    pub code: String,
    /// What was found, in at most eight words.
    pub title: String,
}

/// Whether the figures of a run can be relied on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trust {
    /// How far.
    pub level: TrustLevel,
    /// Why, in one sentence.
    pub why: String,
    /// The code of the finding that decides it; `null` where none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
}

/// How far figures can be relied on; a later one is worse.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum TrustLevel {
    /// They are the disk's, whatever they say of it.
    Reliable,
    /// At least one of them is less certain than it looks, or the run ended early.
    Doubtful,
    /// At least one of them is not the disk's.
    Unreliable,
}
