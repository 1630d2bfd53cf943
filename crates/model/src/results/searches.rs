//! Answers the questions that every result answers for searches of rates that keep a promise: a
//! single one, and one for each of several shares of reads. Their trials are workloads.

use super::{OwnRequests, ResultAnswer, ResultOfTask};
use crate::data::RunData;
use crate::document::{DocumentError, index_below};
use crate::figure::tables::{BOUNDARY, LOAD};
use crate::figure::{FigureList, Key, Part, target_labels};
use crate::rate::{LoadData, LoadFigures, LoadRecord, RateTrial};
use crate::rays::RaysRecord;
use crate::record::Record;

/// A search has one target.
const TARGET: usize = 0;

impl ResultOfTask for LoadRecord {
    fn own_requests(&self) -> Option<OwnRequests<'_>> {
        None
    }

    fn trials_end_ns(&self) -> Option<u64> {
        self.data.trials.iter().map(RateTrial::end_ns).max()
    }

    fn answer(&self) -> ResultAnswer {
        ResultAnswer::decided(self.figures.outcome.is_promise())
    }

    fn restore(&self, data: &mut RunData) {
        data.trials.extend_from_slice(&self.data.trials);
    }

    fn add_figures<'r>(&'r self, record: &'r Record, list: &mut FigureList<'r>) {
        let mut key = Key::new(Part::Load, "load");
        key.labels = target_labels(record, TARGET);
        list.table(&key, LOAD, &self.figures);
    }

    fn check(&self, record: &Record, path: &str) -> Result<(), DocumentError> {
        check_search(record, &self.data, &self.figures, SearchPath::alone(path))
    }
}

impl ResultOfTask for RaysRecord {
    fn own_requests(&self) -> Option<OwnRequests<'_>> {
        None
    }

    fn trials_end_ns(&self) -> Option<u64> {
        self.data
            .rays
            .iter()
            .flat_map(|ray| &ray.trials)
            .map(RateTrial::end_ns)
            .max()
    }

    fn answer(&self) -> ResultAnswer {
        ResultAnswer::decided(self.figures.boundary.is_some())
    }

    fn restore(&self, data: &mut RunData) {
        for ray in &self.data.rays {
            data.trials.extend_from_slice(&ray.trials);
        }
    }

    fn add_figures<'r>(&'r self, record: &'r Record, list: &mut FigureList<'r>) {
        for ray in &self.figures.rays {
            let mut key = Key::new(Part::Other, ray.subject());
            key.labels = target_labels(record, TARGET);
            let key = key.label("reads_percent", &ray.read_percent());
            list.table(&key, LOAD, &ray.load);
        }
        if let Some(boundary) = &self.figures.boundary {
            list.table(&Key::new(Part::Other, "boundary"), BOUNDARY, boundary);
        }
    }

    fn check(&self, record: &Record, path: &str) -> Result<(), DocumentError> {
        let no_trials = LoadData::default();
        for (number, ray) in self.figures.rays.iter().enumerate() {
            let data = self.data.rays.get(number).unwrap_or(&no_trials);
            check_search(record, data, &ray.load, SearchPath::ray(path, number))?;
        }
        Ok(())
    }
}

/// The JSON pointers of a search: to what was measured, and to its figures.
struct SearchPath {
    data: String,
    figures: String,
}

impl SearchPath {
    /// The paths of a search that is a result of its own.
    fn alone(path: &str) -> Self {
        Self {
            data: format!("{path}/data"),
            figures: format!("{path}/figures"),
        }
    }

    /// The paths of a search that is one ray of a result.
    fn ray(path: &str, number: usize) -> Self {
        Self {
            data: format!("{path}/data/rays/{number}"),
            figures: format!("{path}/figures/rays/{number}/load"),
        }
    }
}

/// Checks that the trials of a search have a workload, and that its figures name trials.
fn check_search(
    record: &Record,
    data: &LoadData,
    figures: &LoadFigures,
    path: SearchPath,
) -> Result<(), DocumentError> {
    let workloads = record.plan.workloads().len();
    for (place, trial) in data.trials.iter().enumerate() {
        let path = format!("{}/trials/{place}/workload", path.data);
        index_below(path, trial.workload, workloads, "workloads")?;
    }
    let trials = data.trials.len();
    if let Some(held) = figures.held {
        index_below(format!("{}/held", path.figures), held, trials, "trials")?;
    }
    if let Some(control) = &figures.control {
        let path = format!("{}/control/trial", path.figures);
        index_below(path, control.trial, trials, "trials")?;
    }
    Ok(())
}
