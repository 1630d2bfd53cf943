//! Rates that keep a promise: one search, and one for each of several shares of reads. Their
//! trials are workloads.

use super::{OwnRequests, ResultAnswer, ResultOfTask};
use crate::data::RunData;
use crate::digits::to_a_percent;
use crate::document::DocumentError;
use crate::figure::tables::{BOUNDARY, LOAD};
use crate::figure::{FigureList, Key, Part, target_labels};
use crate::rate::LoadRecord;
use crate::rays::RaysRecord;
use crate::record::Record;

/// A search has one target.
const TARGET: usize = 0;

impl ResultOfTask for LoadRecord {
    fn own_requests(&self) -> Option<OwnRequests<'_>> {
        None
    }

    fn answer(&self) -> ResultAnswer {
        ResultAnswer::decided(self.figures.outcome.is_promise())
    }

    fn restore(&self, data: &mut RunData) {
        data.trials.extend_from_slice(&self.data.trials);
    }

    fn add_figures<'r>(&'r self, record: &'r Record, list: &mut FigureList<'r>) {
        let mut key = Key::of(Part::Load, "load");
        key.labels = target_labels(record, TARGET);
        list.table(&key, LOAD, &self.figures);
    }

    fn check(&self, _: &Record, _: &str) -> Result<(), DocumentError> {
        Ok(())
    }
}

impl ResultOfTask for RaysRecord {
    fn own_requests(&self) -> Option<OwnRequests<'_>> {
        None
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
            let percent = to_a_percent(ray.read_share * 100.0);
            let mut key = Key::of(Part::Other, format!("load-reads-{percent}"));
            key.labels = target_labels(record, TARGET);
            list.table(&key.label("reads_percent", &percent), LOAD, &ray.load);
        }
        if let Some(boundary) = &self.figures.boundary {
            list.table(&Key::of(Part::Other, "boundary"), BOUNDARY, boundary);
        }
    }

    fn check(&self, _: &Record, _: &str) -> Result<(), DocumentError> {
        Ok(())
    }
}
