//! Answers what the rest of the program asks of the result of a task without caring which one it
//! is; each kind of result has a file. How a result follows from what was measured, and its clause
//! in the headline, stand in `crates/analysis/src/results`; its blocks on a page in
//! `crates/report/src/describe`.

mod accept;
mod files;
mod inserts;
mod observed;
mod of_workloads;
mod searches;
mod survey;
mod sustain;

use crate::data::RunData;
use crate::document::DocumentError;
use crate::figure::FigureList;
use crate::ping::REQUESTS_MAX;
use crate::record::{Kept, Record, TaskResult};

/// The interface of every result to the rest of the program.
pub trait ResultOfTask {
    /// The requests that were made for the result itself and belong to no workload; `None` of a
    /// result that follows from the measurements.
    fn own_requests(&self) -> Option<OwnRequests<'_>>;

    /// The end of the last of its trials that are in no row, in nanoseconds after the start of the
    /// run; `None` without such trials.
    fn trials_end_ns(&self) -> Option<u64> {
        None
    }

    /// The answer to the question of its run.
    fn answer(&self) -> ResultAnswer;

    /// Puts what it was derived from back into the data of a run, so that it can be derived again.
    fn restore(&self, data: &mut RunData);

    /// Adds its figures, which CSV, Prometheus, thresholds and the history name.
    fn add_figures<'r>(&'r self, record: &'r Record, list: &mut FigureList<'r>);

    /// Checks every number of a result from outside that its readers take for an index or divide
    /// by. `path` is its JSON pointer.
    fn check(&self, record: &Record, path: &str) -> Result<(), DocumentError>;

    /// Drops what no page shows, which is nothing of most results.
    fn keep_what_is_shown(&mut self) {}
}

/// Requests that were made for a result itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OwnRequests<'a> {
    /// Index of their target.
    pub target: usize,
    /// The time at which the last of them ended, in nanoseconds after the start of the run.
    pub end_ns: u64,
    /// True if they gave a figure; an interrupted run may have none.
    pub has_figures: bool,
    /// The error of a request; `None` where nothing failed, or where failures are the answer
    /// itself.
    pub error: Option<OwnError<'a>>,
}

/// A request of a result that the target answered with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnError<'a> {
    /// The step that failed, as in "error reading '/dev/sdb'".
    pub doing: &'static str,
    /// Name of the first error, such as `EIO`; `None` where only the failed bytes were counted.
    pub errno: Option<&'a str>,
}

/// The answer of a result to the question of its run. A run that asked for a yes, and got something
/// else, exits with another code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultAnswer {
    /// The question is answered, with yes or no; or the result asks none.
    Given,
    /// The disk must not be used.
    Rejected,
    /// The measurement decides nothing.
    Undecided,
}

impl ResultAnswer {
    /// The answer of a result that does not reject the disk.
    fn decided(is_decided: bool) -> Self {
        if is_decided {
            Self::Given
        } else {
            Self::Undecided
        }
    }
}

impl TaskResult {
    /// The result itself, of whichever kind.
    pub fn inner(&self) -> &dyn ResultOfTask {
        match self {
            Self::Survey(survey) => &**survey,
            Self::Sweep(sweep) => sweep,
            Self::Depth(depth) => depth,
            Self::Sustain(sustain) => &**sustain,
            Self::Load(load) => &**load,
            Self::Rays(rays) => &**rays,
            Self::Layers(layers) => layers,
            Self::Compared(part) => part,
            Self::Files(files) => files,
            Self::Inserts(inserts) => inserts,
            Self::Accept(accept) => &**accept,
            Self::Together(together) => together,
            Self::Observed(observed) => &**observed,
        }
    }

    /// As [`Self::inner`], to drop what no page shows.
    fn inner_mut(&mut self) -> &mut dyn ResultOfTask {
        match self {
            Self::Survey(survey) => &mut **survey,
            Self::Sweep(sweep) => sweep,
            Self::Depth(depth) => depth,
            Self::Sustain(sustain) => &mut **sustain,
            Self::Load(load) => &mut **load,
            Self::Rays(rays) => &mut **rays,
            Self::Layers(layers) => layers,
            Self::Compared(part) => part,
            Self::Files(files) => files,
            Self::Inserts(inserts) => inserts,
            Self::Accept(accept) => &mut **accept,
            Self::Together(together) => together,
            Self::Observed(observed) => &mut **observed,
        }
    }
}

impl Record {
    /// Time from the start of the run to the end of its last measurement, trial, survey, load of a
    /// server or step on files, or of the wait for a disk that hung, in nanoseconds. A slice that
    /// counts in no row took its time, too.
    pub fn elapsed_ns(&self) -> u64 {
        let mut end_ns = 0;
        for row in &self.measurements {
            end_ns = row.end_ns().max(end_ns);
            if let Some(hang) = row.data.hang {
                end_ns = hang.since_ns.saturating_add(hang.lasted_ns).max(end_ns);
            }
        }
        for slice in &self.dropped {
            end_ns = slice.end_ns().max(end_ns);
        }
        for result in &self.results {
            if let Some(own) = result.inner().own_requests() {
                end_ns = own.end_ns.max(end_ns);
            }
            if let Some(trials_end_ns) = result.inner().trials_end_ns() {
                end_ns = trials_end_ns.max(end_ns);
            }
        }
        end_ns
    }

    /// True if results have figures of their own, and not only those of rows: from requests that
    /// were made for the result, or from trials that are in no row.
    pub fn has_figures_of_results(&self) -> bool {
        self.results.iter().any(|result| {
            let has_own_figures = match result.inner().own_requests() {
                Some(own) => own.has_figures,
                None => false,
            };
            has_own_figures || result.inner().trials_end_ns().is_some()
        })
    }

    /// True if the record keeps figures only and, for all that can be seen, lacks the data that
    /// they follow from: its series are those that pages show, or its rows hold as many single
    /// requests as rows hold at most.
    pub fn lacks_data(&self) -> bool {
        let has_all_requests = self
            .measurements
            .iter()
            .all(|row| row.data.requests.len() < REQUESTS_MAX);
        let has_series = !self.measurements.is_empty() || self.files().is_some();
        self.kept == Kept::FiguresOnly
            && (!has_all_requests || (has_series && self.keeps_what_is_shown()))
    }

    /// True if the record keeps figures only, and has nothing more than what pages show.
    pub fn keeps_what_is_shown(&self) -> bool {
        self.kept == Kept::FiguresOnly && self.clone().figures_only() == *self
    }

    /// The same with what pages show alone, which takes less memory and text. It cannot be judged
    /// again.
    pub fn figures_only(mut self) -> Self {
        for row in &mut self.measurements {
            row.data.keep_what_is_shown();
        }
        for result in &mut self.results {
            result.inner_mut().keep_what_is_shown();
        }
        Self {
            kept: Kept::FiguresOnly,
            ..self
        }
    }
}
