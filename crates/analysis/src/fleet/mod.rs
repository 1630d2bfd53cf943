//! Many hosts: which disk is not like the others, and why. Records come one after the other, and of
//! each only its figures, facts and latencies stay, so that memory grows with the number of rows.
//!
//! * `groups`: who is like whom: kinds of disks, and conditions of their workloads.
//! * `spread`: how far a row lies from the others, and how surely; `verdicts`: which rows differ.
//! * `sum`: what hosts that measured at the same instants gave together; `clock`: how their clocks
//!   lie to each other.
//! * `reasons`: what most of the others do not have. `names`: what rows are called. `result`: the
//!   document; `summary`: its sentence.

mod clock;
mod groups;
mod names;
mod question;
mod reasons;
mod result;
mod spread;
mod sum;
mod summary;
mod verdicts;

use crate::compare::RunGroup;
use diskproof_model::comparison::{SideVerdict, SideVerdicts};
use diskproof_model::fleet::FleetRecord;
use diskproof_model::record::{Record, Tool};
pub use question::FleetQuestion;

use groups::Groups;
use std::collections::BTreeSet;
use sum::TogetherRuns;

/// Rows that differ by less count as alike, unless the user sets another margin: 10 %.
pub const MARGIN: f64 = 0.10;

/// Collects the records of many hosts.
#[derive(Debug, Default)]
pub struct Fleet {
    groups: Groups,
    together: TogetherRuns,
    /// Ids of the runs that were added.
    seen: BTreeSet<String>,
    reference: Option<Box<FleetRecord>>,
}

/// What came of adding a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// It counts.
    Counted,
    /// The same run was added before.
    Again,
    /// It has no figure that could be compared.
    NoFigures,
}

impl Fleet {
    /// Without a record yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Of which the records are judged by a saved fleet.
    pub fn with_reference(reference: FleetRecord) -> Self {
        Self {
            groups: Groups::of_reference(&reference),
            together: TogetherRuns::default(),
            seen: BTreeSet::new(),
            reference: Some(Box::new(reference)),
        }
    }

    /// Adds a record, each run once.
    pub fn add(&mut self, record: &Record) -> Added {
        if !self.seen.insert(record.run_id.clone()) {
            return Added::Again;
        }
        self.together.add(record);
        if self.groups.add(&record.host.name, record) {
            Added::Counted
        } else {
            Added::NoFigures
        }
    }

    /// Whether a record of this run was added.
    pub fn has_run(&self, run_id: &str) -> bool {
        self.seen.contains(run_id)
    }

    /// The hosts of all rows, each with its rank.
    pub fn hosts(&self) -> Vec<(&str, Option<u32>)> {
        let rows = self.groups.rows.iter();
        rows.map(|row| (row.host.as_str(), row.rank)).collect()
    }

    /// Judges the rows.
    pub fn judge(self, question: FleetQuestion) -> FleetRecord {
        let sum = self.together.sum(question.storage);
        FleetRecord {
            sum,
            ..result::fleet_record(self.groups, self.reference.as_deref(), question)
        }
    }
}

/// Which of many sides of a comparison are not like the others. The runs of a side are averaged.
pub fn odd_sides(tool: Tool, sides: &[RunGroup<'_>]) -> SideVerdicts {
    let mut groups = Groups::of_everything();
    for side in sides {
        for run in &side.runs {
            groups.add(&side.label, run.record);
        }
    }
    let question = FleetQuestion {
        tool,
        margin: MARGIN,
        missing: Vec::new(),
        refused: Vec::new(),
        storage: None,
    };
    let fleet = result::fleet_record(groups, None, question);
    let mut verdicts = Vec::new();
    for row in fleet.rows {
        verdicts.push(SideVerdict {
            label: row.host,
            state: row.state,
            reasons: row.reasons.into_iter().map(|reason| reason.text).collect(),
        });
    }
    SideVerdicts {
        summary: fleet.summary,
        sides: verdicts,
    }
}

#[cfg(test)]
mod tests;
