//! A judgement in plain words, with the evidence that it rests on.

use serde::{Deserialize, Serialize};

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Good to know; the figures are valid.
    Note,
    /// The figures may not mean what they seem to.
    Warning,
    /// The figures are wrong, or the disk is.
    Failure,
}

/// A judgement on a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Stable name, such as `served-from-cache`.
    pub code: String,
    /// What was found, in at most eight words; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its weight.
    pub severity: Severity,
    /// One or two sentences a database administrator understands, with the figures.
    pub claim: String,
    /// What was observed; never empty.
    pub evidence: Vec<Evidence>,
    /// What to do about it.
    pub remedy: String,
    /// A command that shows the same thing, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reproduce: Option<String>,
}

/// One observation that a finding rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// Where in the record it stands, as a JSON pointer: `/measurements/2/device/accounted`.
    pub path: String,
    /// The value seen.
    pub observed: f64,
    /// The value it was compared with.
    pub threshold: f64,
    /// Unit of both; `1` for a ratio.
    pub unit: String,
}

impl Finding {
    /// The title, or the code where an earlier version gave none.
    pub fn heading(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.code)
    }

    /// Whether it rests on figures that were measured, and not on the disk's health alone.
    pub fn concerns_figures(&self) -> bool {
        let mut paths = self.evidence.iter().map(|evidence| &evidence.path);
        paths.any(|path| !path.starts_with("/health/"))
    }

    /// Whether its evidence points into a measurement.
    pub fn concerns(&self, measurement: usize) -> bool {
        let root = format!("/measurements/{measurement}");
        let rests = self.evidence.iter();
        let mut rests = rests.filter_map(|evidence| evidence.path.strip_prefix(&root));
        rests.any(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}
