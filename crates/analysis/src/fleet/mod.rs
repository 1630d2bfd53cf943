//! Finds the disks among many hosts that differ from the others, and the reasons. Records are added
//! one after the other. Of each, only figures, facts and latencies are kept, so that memory grows
//! with the number of rows. docs/cluster.md describes the test.
//!
//! * `groups`, `row`: kinds of disks, their rows, and the conditions of their workloads;
//!   `machines`, `launch`: which runs of one name make one row; `names`: the names of rows.
//! * `judged`: what the rows are judged by; `spread`: the distance of a row from the others, with
//!   its p-value; `verdicts`: the rows that differ; `not_judged`: why some rows are not judged;
//!   `reasons`: facts and findings of a row that most others do not have.
//! * `sum`: the sum of hosts that measured at the same instants; `clock`: the offsets of their
//!   clocks; `launches`: which runs were started together.
//! * `result`: the document; `summary`: its sentence; `tested`: acceptance tests; `unmeasured`:
//!   targets of which a run has no figure; `arrived`: the runs for `--expect`.

mod arrived;
mod clock;
mod groups;
mod judged;
mod launch;
mod launches;
mod machines;
mod names;
mod not_judged;
mod question;
mod reasons;
mod result;
mod row;
mod spread;
mod sum;
mod summary;
mod tested;
mod unmeasured;
mod verdicts;

pub use arrived::{ArrivedRun, Repetition};
pub use launches::{Begins, Launched, launches};

use crate::compare::RunGroup;
use diskproof_model::expectation::ExpectationOutcome;
use diskproof_model::fleet::{FleetRecord, RowUnit, UnmetThreshold};
use diskproof_model::fleet_sum::{FleetSum, SumStorage};
use diskproof_model::record::{Record, Tool};
pub use question::{FleetQuestion, Surplus};

use groups::{Groups, Likeness};
use result::OtherAnswers;
use std::collections::BTreeMap;
use sum::TogetherRuns;
use tested::TestedDisks;
use unmeasured::{UnmeasuredTarget, host_name};

/// Rows that differ by at most this share are alike, unless the user sets another margin. Chosen: a
/// smaller difference between disks of one model is usual.
pub const MARGIN: f64 = 0.10;

/// Collects the records of many hosts, and judges them.
#[derive(Debug, Default)]
pub struct Fleet {
    groups: Groups,
    together: TogetherRuns,
    tested: TestedDisks,
    /// Targets that a run was to measure, and of which it has no figure.
    unmeasured: Vec<UnmeasuredTarget>,
    /// Thresholds of the runs that they did not meet.
    unmet: Vec<UnmetThreshold>,
    /// The runs that were added, by id, each with its host and start.
    added_runs: BTreeMap<String, AddedRun>,
    /// The runs of which a record counts.
    arrived: Vec<ArrivedRun>,
    reference: Option<Box<FleetRecord>>,
    /// Whether the hosts share their storage; `None` where the user did not say.
    storage: Option<SumStorage>,
}

/// The facts that distinguish two runs of one id.
#[derive(Debug)]
struct AddedRun {
    host: String,
    started: String,
}

/// The outcome of adding a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// The record counts: its targets are rows, or missing where its run measured nothing on them.
    Counted,
    /// It does not count, because its run was added before.
    Again,
    /// It does not count, because another run with its id was added before: a state of a process
    /// was cloned, or a record edited.
    SameId,
    /// It does not count, because its plan measures nothing that could be compared.
    NoFigures,
}

impl Fleet {
    /// A fleet without records. `storage` is the user's word on whether the hosts share their
    /// storage.
    pub fn new(storage: Option<SumStorage>) -> Self {
        Self {
            groups: Groups::new(match storage {
                Some(SumStorage::Shared) => Likeness::SameStorage,
                Some(SumStorage::Separate) | None => Likeness::SameKind,
            }),
            storage,
            ..Self::default()
        }
    }

    /// A fleet that is judged by a saved one. Its rows are hosts or disks as in that one, unless
    /// the user says otherwise.
    pub fn with_reference(reference: FleetRecord, storage: Option<SumStorage>) -> Self {
        let storage = match (storage, reference.rows_are) {
            (None, RowUnit::Hosts) => Some(SumStorage::Shared),
            (_, RowUnit::Hosts | RowUnit::Disks | RowUnit::Sides) => storage,
        };
        let mut fleet = Self::new(storage);
        fleet.groups.take_kinds(&reference);
        fleet.reference = Some(Box::new(reference));
        fleet
    }

    /// Adds a record. Each run counts once.
    pub fn add(&mut self, record: &Record) -> Added {
        let run = AddedRun {
            host: host_name(record),
            started: record.started.clone(),
        };
        if let Some(earlier) = self.added_runs.get(&record.run_id) {
            // A copy may have another name of the host, as an anonymous one has.
            let is_copy = earlier.host == run.host || earlier.started == run.started;
            return if is_copy { Added::Again } else { Added::SameId };
        }
        self.added_runs.insert(record.run_id.clone(), run);
        self.together.add(record);
        let is_tested = self.tested.add(record);
        let measured = self.groups.add(&record.host.name, record);
        let unmeasured = unmeasured::unmeasured_targets(record, &measured);
        let unmet = unmet_thresholds(record);
        if measured.is_empty() && unmeasured.is_empty() && unmet.is_empty() && !is_tested {
            return Added::NoFigures;
        }
        self.unmet.extend(unmet);
        self.unmeasured.extend(unmeasured);
        self.arrived.push(ArrivedRun::of_record(record));
        Added::Counted
    }

    /// Returns `true` if a record of this run was added.
    pub fn has_run(&self, run_id: &str) -> bool {
        self.added_runs.contains_key(run_id)
    }

    /// Returns `true` if no record counts.
    pub fn is_empty(&self) -> bool {
        self.arrived.is_empty()
    }

    /// The runs of which a record counts.
    pub fn arrived(&self) -> &[ArrivedRun] {
        &self.arrived
    }

    /// The number of machines that certainly stand behind each name of a host.
    pub fn machines_of_hosts(&self) -> BTreeMap<&str, usize> {
        arrived::machines_of_hosts(&self.arrived)
    }

    /// Judges the rows by each other or by the reference.
    pub fn judge(mut self, mut question: FleetQuestion) -> FleetRecord {
        let unmet = std::mem::take(&mut self.unmet);
        let sum = self.together.sum(self.storage);
        let rows_are = row_unit(self.storage, sum.as_ref());
        self.groups.join_launches();
        let unmeasured = unmeasured::missing_rows(&self.unmeasured, &self.groups.rows);
        question.missing.extend(unmeasured);
        if rows_are == RowUnit::Hosts {
            self.groups.join_targets();
        }
        let tested = self.tested.judge(question.margin);
        let reference = self.reference.as_deref();
        let fleet = result::fleet_record(
            self.groups,
            reference,
            rows_are,
            OtherAnswers { tested, unmet },
            question,
        );
        FleetRecord { sum, ..fleet }
    }
}

/// The thresholds of a record that were missed or left undecided.
fn unmet_thresholds(record: &Record) -> Vec<UnmetThreshold> {
    let name = host_name(record);
    let mut unmet = Vec::new();
    for expectation in &record.expectations {
        let outcome = expectation.outcome();
        if outcome != ExpectationOutcome::Met {
            unmet.push(UnmetThreshold {
                name: name.clone(),
                expression: expectation.expression.clone(),
                undecided: outcome == ExpectationOutcome::Undecided,
            });
        }
    }
    unmet
}

/// The unit of a row: a host where all use one storage, else a disk. `asked` is the user's word;
/// without it the mounts of hosts that measured together decide.
fn row_unit(asked: Option<SumStorage>, sum: Option<&FleetSum>) -> RowUnit {
    let storage = asked.or_else(|| sum.map(|sum| sum.storage));
    match storage {
        Some(SumStorage::Shared) => RowUnit::Hosts,
        Some(SumStorage::Separate) | None => RowUnit::Disks,
    }
}

/// The sides of a comparison as rows of a fleet. The runs of a side are averaged. The result is no
/// reference for further records, so it keeps no examples.
pub fn fleet_of_sides(tool: Tool, sides: &[RunGroup<'_>]) -> FleetRecord {
    let mut groups = Groups::new(Likeness::Everything);
    for side in sides {
        for run in &side.runs {
            groups.add(&side.label, run.record);
        }
    }
    let question = FleetQuestion {
        tool,
        margin: MARGIN,
        missing: Vec::new(),
        surplus: Surplus::default(),
        refused: Vec::new(),
    };
    let mut fleet = result::fleet_record(
        groups,
        None,
        RowUnit::Sides,
        OtherAnswers::default(),
        question,
    );
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
