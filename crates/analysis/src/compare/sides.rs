//! The runs of a comparison, and the two sides that they form.

use diskproof_model::comparison::{Holder, Unmatched};
use diskproof_model::record::Record;
use std::collections::BTreeSet;

/// A run, as the user named it.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    /// An id, a file, a label.
    pub name: String,
    /// What it recorded.
    pub record: &'a Record,
}

/// Runs that count as repetitions of one experiment.
#[derive(Debug, Clone)]
pub struct RunGroup<'a> {
    /// What they are called together.
    pub label: String,
    /// At least one.
    pub runs: Vec<Run<'a>>,
}

/// Each run once: one that is named twice does not count as a repetition.
pub(super) fn distinct<'a, 'r>(group: &'r RunGroup<'a>) -> Vec<&'r Run<'a>> {
    let mut seen = BTreeSet::new();
    let runs = group.runs.iter();
    runs.filter(|run| seen.insert(&run.record.run_id)).collect()
}

/// Whether two runs are sides of one live comparison: their slices followed each other alternately.
pub(super) fn is_live_pair(a: &Record, b: &Record) -> bool {
    let sides = a.campaign().zip(b.campaign());
    sides.is_some_and(|(a, b)| a.id == b.id && a.side != b.side)
}

/// Both sides, with what their runs are called in sentences: `A`, or `A1`, `A2` where there are
/// several.
pub(super) struct Sides<'a> {
    pub(super) a: Vec<(String, &'a Run<'a>)>,
    pub(super) b: Vec<(String, &'a Run<'a>)>,
}

impl<'a> Sides<'a> {
    pub(super) fn of(a: &'a RunGroup<'a>, b: &'a RunGroup<'a>, letter: &str) -> Self {
        let named = |group: &'a RunGroup<'a>, letter: &str| {
            let runs = distinct(group);
            let name = |index: usize| match runs.len() {
                ..=1 => letter.to_owned(),
                _ => format!("{letter}{}", index + 1),
            };
            runs.iter()
                .enumerate()
                .map(|(index, run)| (name(index), *run))
                .collect()
        };
        Self {
            a: named(a, "A"),
            b: named(b, letter),
        }
    }

    /// Every workload of either side, in the order of their plans, the baseline's first.
    pub(super) fn workloads(&self) -> Vec<(usize, &'a str)> {
        let runs = self.a.iter().chain(&self.b);
        let mut keys = Vec::new();
        for m in runs.flat_map(|(_, run)| &run.record.measurements) {
            let key = (m.data.target, m.data.workload.name.as_str());
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }
}

/// What one side alone has; `None` where both or neither have it.
pub(super) fn only<T>(subject: &str, a: &[T], b: &[T]) -> Option<Unmatched> {
    match (a.is_empty(), b.is_empty()) {
        (false, true) => Some(unmatched(subject, Holder::A)),
        (true, false) => Some(unmatched(subject, Holder::B)),
        _ => None,
    }
}

/// Of a subject that only this side has.
pub(super) fn unmatched(subject: &str, only: Holder) -> Unmatched {
    Unmatched {
        subject: subject.to_owned(),
        only,
        why: None,
    }
}
