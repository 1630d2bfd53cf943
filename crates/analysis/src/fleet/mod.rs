//! Many hosts: which disk is not like the others, and why. Records come one after the other, and of
//! each only its figures, facts and latencies stay, so that memory grows with the number of rows.
//!
//! * `groups`: who is like whom: kinds of disks, and conditions of their workloads.
//! * `spread`: how far a row lies from the others, and how surely; `verdicts`: which rows differ.
//! * `sum`: what hosts that measured at the same instants gave together; `clock`: how their clocks
//!   lie to each other.
//! * `reasons`: what most of the others do not have. `names`: what rows are called. `result`: the
//!   document; `summary`: its sentence. `tested`: acceptance tests.

mod clock;
mod groups;
mod names;
mod question;
mod reasons;
mod result;
mod spread;
mod sum;
mod summary;
mod tested;
mod verdicts;

use crate::compare::RunGroup;
use diskproof_model::fleet::{FleetRecord, RowUnit};
use diskproof_model::fleet_sum::{FleetSum, SumStorage};
use diskproof_model::record::{Record, Tool};
pub use question::FleetQuestion;

use groups::{Groups, Likeness};
use std::collections::BTreeSet;
use sum::TogetherRuns;
use tested::TestedDisks;

/// Rows that differ by less count as alike, unless the user sets another margin: 10 %.
pub const MARGIN: f64 = 0.10;

/// Collects the records of many hosts.
#[derive(Debug, Default)]
pub struct Fleet {
    groups: Groups,
    together: TogetherRuns,
    tested: TestedDisks,
    /// Ids of the runs that were added.
    seen: BTreeSet<String>,
    reference: Option<Box<FleetRecord>>,
    /// Whether the hosts share their storage, where the user says so.
    storage: Option<SumStorage>,
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
    /// Without a record yet; the user may say whether the hosts share their storage.
    pub fn new(storage: Option<SumStorage>) -> Self {
        Self {
            groups: Groups::of(match storage {
                Some(SumStorage::Shared) => Likeness::SameStorage,
                Some(SumStorage::Separate) | None => Likeness::SameKind,
            }),
            storage,
            ..Self::default()
        }
    }

    /// Of which the records are judged by a saved fleet. Its rows are hosts or disks, unless the
    /// user says otherwise.
    pub fn with_reference(reference: FleetRecord, storage: Option<SumStorage>) -> Self {
        let asked = match (storage, reference.rows_are) {
            (None, RowUnit::Hosts) => Some(SumStorage::Shared),
            (storage, _) => storage,
        };
        let mut fleet = Self::new(asked);
        fleet.groups.take_kinds(&reference);
        fleet.reference = Some(Box::new(reference));
        fleet
    }

    /// Adds a record, each run once.
    pub fn add(&mut self, record: &Record) -> Added {
        if !self.seen.insert(record.run_id.clone()) {
            return Added::Again;
        }
        self.together.add(record);
        let is_tested = self.tested.add(record);
        if self.groups.add(&record.host.name, record) || is_tested {
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
        rows.map(|row| (row.host.as_str(), row.rank))
            .chain(self.tested.hosts())
            .collect()
    }

    /// Judges the rows.
    pub fn judge(mut self, question: FleetQuestion) -> FleetRecord {
        let sum = self.together.sum(self.storage);
        let rows_are = row_unit(self.storage, sum.as_ref());
        if rows_are == RowUnit::Hosts {
            self.groups.join_targets();
        }
        let tested = self.tested.judge(question.margin);
        let reference = self.reference.as_deref();
        let fleet = result::fleet_record(self.groups, reference, rows_are, tested, question);
        FleetRecord { sum, ..fleet }
    }
}

/// Whether rows are disks, or hosts: where all use one storage, by the user's word or by what the
/// hosts that measured together have mounted.
fn row_unit(asked: Option<SumStorage>, sum: Option<&FleetSum>) -> RowUnit {
    let storage = asked.or_else(|| sum.map(|sum| sum.storage));
    match storage {
        Some(SumStorage::Shared) => RowUnit::Hosts,
        Some(SumStorage::Separate) | None => RowUnit::Disks,
    }
}

/// Many sides of a comparison as rows: which of them are not like the others. The runs of a side
/// are averaged. It is no reference for further records, so it keeps none as an example.
pub fn fleet_of_sides(tool: Tool, sides: &[RunGroup<'_>]) -> FleetRecord {
    let mut groups = Groups::of(Likeness::Everything);
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
    };
    let mut fleet = result::fleet_record(groups, None, RowUnit::Sides, Vec::new(), question);
    fleet.examples.clear();
    for group in &mut fleet.groups {
        for metric in &mut group.metrics {
            metric.example = None;
        }
    }
    fleet
}

#[cfg(test)]
mod tests;
