//! The verdict of a run: what its figures mean for a database, and whether they can be relied on.
//! `analysis` computes it; printers show it. It fits seven lines of a terminal.

use crate::estimate::Estimate;
use crate::finding::Severity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The meaning of a run for its user.
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
    /// The reliance that the figures deserve.
    pub trust: Trust,
    /// Limits of the figures, a sentence each: a larger burst credit, the rest of a disk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<String>,
}

/// A use of disks by databases, and the grade of this disk for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UseGrade {
    /// `bulk load`, `scans`, `look-ups` or `commits`.
    pub name: String,
    /// Index into `measurements` of the workload that stands for the use.
    pub measurement: usize,
    /// The grade; `null` where the figure does not support one.
    pub grade: Option<Grade>,
    /// A second grade that the interval of the figure reaches: the disk may deserve either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub or: Option<Grade>,
    /// The reason why there is no grade, in a few words: `unstable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_graded: Option<String>,
    /// The figure that decides.
    pub figure: Estimate,
    /// The values that the figure is compared with.
    pub thresholds: GradeThresholds,
    /// Codes of the warnings and failures that concern this figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
}

impl UseGrade {
    /// The better and the worse end of the grades that the figure reaches; `None` where it supports
    /// none.
    pub fn range(&self) -> Option<[Grade; 2]> {
        let grade = self.grade?;
        let or = self.or.unwrap_or(grade);
        Some([grade.max(or), grade.min(or)])
    }

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

/// The grade of a disk for a use; a later one is better.
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
    /// The value from which on the grade is `limited`; below it the grade is `poor`.
    pub limited_from: f64,
    /// The value from which on the grade is `good`.
    pub good_from: f64,
    /// The source of the two values.
    pub source: String,
}

/// A finding in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeadingFinding {
    /// The weight of the finding.
    pub severity: Severity,
    /// The code of the finding, which never changes.
    pub code: String,
    /// The observation in at most eight words.
    pub title: String,
}

/// The reliance that the figures of a run deserve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trust {
    /// The degree of reliance.
    pub level: TrustLevel,
    /// The reason, in one sentence.
    pub why: String,
    /// The code of the finding that decides it; `null` where none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
}

/// A degree of reliance; a later one is worse.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum TrustLevel {
    /// They are the disk's, whatever they say of it.
    Reliable,
    /// At least one of the figures is less certain than it looks, or the run ended early.
    Doubtful,
    /// At least one of the figures is not the disk's.
    Unreliable,
}
