//! Holds the runs of a comparison, and the two sides that they form.

use diskproof_model::comparison::{Holder, Unmatched};
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use std::collections::BTreeSet;

/// The name of a run that no sentence names.
pub(super) const UNNAMED: &str = "";

/// A run, as the user named it.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    /// As the user wrote it: an id, a file or a label.
    pub name: String,
    /// The record of the run.
    pub record: &'a Record,
}

impl<'a> Run<'a> {
    /// A run that no sentence names.
    pub(super) fn without_name(record: &'a Record) -> Self {
        Self {
            name: UNNAMED.to_owned(),
            record,
        }
    }
}

/// Runs that count as repetitions of one experiment.
#[derive(Debug, Clone)]
pub struct RunGroup<'a> {
    /// The common name of the runs.
    pub label: String,
    /// At least one.
    pub runs: Vec<Run<'a>>,
}

/// The runs of a group, each once: a run that is named twice is not a repetition.
fn distinct_runs<'a, 'r>(group: &'r RunGroup<'a>) -> Vec<&'r Run<'a>> {
    let mut run_ids = BTreeSet::new();
    let mut runs = Vec::new();
    for run in &group.runs {
        if run_ids.insert(&run.record.run_id) {
            runs.push(run);
        }
    }
    runs
}

/// Returns `true` if two runs are sides of one live comparison, with alternating slices.
pub(super) fn is_live_pair(a: &Record, b: &Record) -> bool {
    match (a.campaign(), b.campaign()) {
        (Some(a), Some(b)) => a.id == b.id && a.side != b.side,
        _ => false,
    }
}

/// The letter of the first side.
pub(super) const BASELINE: &str = "A";

/// A run of a side.
pub(super) struct NamedRun<'a> {
    /// Its name in sentences: `A`, or `A1` and `A2` where its side has several runs.
    pub(super) name: String,
    pub(super) run: &'a Run<'a>,
}

/// The two sides of a comparison.
pub(super) struct Sides<'a> {
    pub(super) a: Vec<NamedRun<'a>>,
    pub(super) b: Vec<NamedRun<'a>>,
}

impl<'a> Sides<'a> {
    /// The sides of two groups, each run once. `letter` names the second one.
    pub(super) fn from_groups(a: &'a RunGroup<'a>, b: &'a RunGroup<'a>, letter: &str) -> Self {
        Self {
            a: named_runs(a, BASELINE),
            b: named_runs(b, letter),
        }
    }

    /// The runs of both sides.
    pub(super) fn runs(&self) -> impl Iterator<Item = &NamedRun<'a>> {
        self.a.iter().chain(&self.b)
    }

    /// The workloads of both sides, each once, in the order of their plans, the baseline's first.
    pub(super) fn workloads(&self) -> Vec<WorkloadKey<'a>> {
        let mut keys = Vec::new();
        for named in self.runs() {
            for row in &named.run.record.measurements {
                let key = WorkloadKey::from_row(row);
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        keys
    }
}

/// The identity of a workload in several runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WorkloadKey<'a> {
    /// The index of its target in the run.
    pub target: usize,
    pub name: &'a str,
}

impl<'a> WorkloadKey<'a> {
    /// The key of the workload of a row.
    pub(super) fn from_row(row: &'a Row) -> Self {
        Self {
            target: row.data.target,
            name: &row.data.workload.name,
        }
    }
}

/// The runs of a side with their names in sentences.
pub(super) fn named_runs<'a>(group: &'a RunGroup<'a>, letter: &str) -> Vec<NamedRun<'a>> {
    let runs = distinct_runs(group);
    let is_single = runs.len() == 1;
    let mut named = Vec::new();
    for (index, run) in runs.into_iter().enumerate() {
        let name = if is_single {
            letter.to_owned()
        } else {
            format!("{letter}{}", index + 1)
        };
        named.push(NamedRun { name, run });
    }
    named
}

/// The side that alone has something; `None` where both or neither have it.
pub(super) fn sole_holder<T>(a: &[T], b: &[T]) -> Option<Holder> {
    if !a.is_empty() && b.is_empty() {
        Some(Holder::A)
    } else if a.is_empty() && !b.is_empty() {
        Some(Holder::B)
    } else {
        None
    }
}

/// The entry for a subject that only this side has, without a reason.
pub(super) fn unmatched_entry(subject: &str, holder: Holder) -> Unmatched {
    Unmatched {
        subject: subject.to_owned(),
        only: holder,
        why: None,
    }
}
