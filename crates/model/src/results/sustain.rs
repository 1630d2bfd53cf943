//! Answers the questions that every result answers for a sustained load on the first target. Its
//! requests are those of a workload.

use super::{OwnRequests, ResultAnswer, ResultOfTask};
use crate::data::RunData;
use crate::document::DocumentError;
use crate::figure::tables::{BUCKET, SUSTAINED};
use crate::figure::{FigureList, Key, Part, target_labels};
use crate::record::Record;
use crate::sustain::SustainRecord;

impl ResultOfTask for SustainRecord {
    fn own_requests(&self) -> Option<OwnRequests<'_>> {
        None
    }

    fn answer(&self) -> ResultAnswer {
        ResultAnswer::Given
    }

    fn restore(&self, data: &mut RunData) {
        data.counted.clone_from(&self.counted);
    }

    fn add_figures<'r>(&'r self, record: &'r Record, list: &mut FigureList<'r>) {
        let mut key = Key::new(Part::Other, self.workload.as_str());
        key.labels = target_labels(record, 0);
        list.table(&key, SUSTAINED, self);
        if let Some(bucket) = &self.bucket {
            key.unit = &bucket.base.unit;
            list.table(&key, BUCKET, bucket);
        }
    }

    fn check(&self, _: &Record, _: &str) -> Result<(), DocumentError> {
        Ok(())
    }
}
