//! Holds a row of a fleet while records are added: a disk of a host, with the figures of each of
//! its runs.

use super::launch::Launch;
use diskproof_model::comparison::Reason;
use diskproof_model::finding::Severity;
use diskproof_model::fleet::FleetRun;
use diskproof_model::histogram::StoredLatencies;
use diskproof_model::op::OpKind;

/// The runs that a row has, of those of its host's name and target.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RowScope {
    /// All, or all of its rank.
    #[default]
    AllRuns,
    /// Those of the machine with this id.
    Machine(String),
    /// The run with this id: which of the others are of the same machine is not known.
    Run(String),
}

/// A disk of a host.
#[derive(Debug)]
pub(super) struct Row {
    pub host: String,
    pub rank: Option<u32>,
    pub target: String,
    pub disks: Vec<String>,
    pub serials: Vec<String>,
    /// The index of its kind among those of the groups.
    pub kind: usize,
    pub scope: RowScope,
    /// Why it is not the only row of its host's name, or that nothing proves its runs to be of one
    /// machine; `None` where neither is so.
    pub identity: Option<Reason>,
    pub runs: Vec<RunOfRow>,
}

/// One run of a row, with the figures of the row's target only.
#[derive(Debug)]
pub(super) struct RunOfRow {
    pub run: FleetRun,
    pub launch: Launch,
    /// Empty of a run that only scanned its target, or failed before it had a figure.
    pub values: Vec<Value>,
    /// True if it looked for unreadable blocks.
    pub has_scanned: bool,
    /// The conditions of its target, each with its name and its value.
    pub facts: Vec<(&'static str, String)>,
    pub findings: Vec<FindingOfRow>,
    /// The silence of its target that ended the run, or that the run did not wait for.
    pub silence: Option<Reason>,
}

impl RunOfRow {
    /// True if the finding of this code warns of its figures, and the disk has not failed: requests
    /// that a full filesystem refused end a run as those that a disk failed.
    pub(super) fn is_only_a_warning(&self, code: &str) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.code == code && !finding.is_failure)
    }
}

/// The parts of a finding that explain a row.
#[derive(Debug, Clone)]
pub(super) struct FindingOfRow {
    pub code: String,
    pub title: String,
    pub severity: Severity,
    /// True if the disk failed by it.
    pub is_failure: bool,
    /// True if it is about the disk itself, and serious.
    pub is_trouble: bool,
}

/// A figure of one run.
#[derive(Debug)]
pub(super) struct Value {
    /// Index of the metric in the kind; `None` where too many conditions are compared already.
    pub metric: Option<usize>,
    pub value: f64,
    /// The logarithm of the figure, negative for times, so that more is faster.
    pub log_speed: f64,
    /// The standard error of `log_speed`.
    pub error: f64,
    /// Differences from the usual conditions that the disk itself caused.
    pub symptoms: Vec<Reason>,
    /// Why the figure cannot be judged; `None` where it can.
    pub fault: Option<Reason>,
    pub latencies: Vec<(OpKind, StoredLatencies)>,
}
