//! Answers the questions that every result answers for operations on many small files, in a
//! directory of the first target.

use super::{OwnError, OwnRequests, ResultAnswer, ResultOfTask};
use crate::data::RunData;
use crate::document::{DocumentError, check_operation};
use crate::figure::tables::FILE_STEP;
use crate::figure::{FigureList, Key, Part, target_labels};
use crate::files::FilesMeasurement;
use crate::files_record::FilesRecord;
use crate::record::Record;

impl ResultOfTask for FilesRecord {
    fn own_requests(&self) -> Option<OwnRequests<'_>> {
        let mut own = OwnRequests {
            target: 0,
            end_ns: 0,
            has_figures: false,
            error: None,
        };
        for step in &self.steps {
            for round in &step.data.rounds {
                own.end_ns = own.end_ns.max(round.start_ns.saturating_add(round.wall_ns));
            }
            own.has_figures |= step.data.op.count > 0;
            if let Some(errno) = step.data.op.errors.keys().next()
                && own.error.is_none()
            {
                own.error = Some(OwnError {
                    doing: "using files in",
                    errno: Some(errno),
                });
            }
        }
        Some(own)
    }

    fn answer(&self) -> ResultAnswer {
        ResultAnswer::Given
    }

    fn restore(&self, data: &mut RunData) {
        data.files = Some(FilesMeasurement {
            steps: self.steps.iter().map(|step| step.data.clone()).collect(),
            caches: self.caches.clone(),
            leftover_files: self.leftover_files,
            stalls: self.stalls.clone(),
        });
    }

    fn add_figures<'r>(&'r self, record: &'r Record, list: &mut FigureList<'r>) {
        for step in &self.steps {
            let planned = &step.data.step;
            let mut key = Key::new(Part::FileStep, planned.name()).op(planned.operation.as_str());
            // The directory is the only target. Exports call a step a workload.
            key.labels = target_labels(record, 0);
            key.labels.push(("workload", planned.name()));
            list.table(&key, FILE_STEP, step);
            list.operation(key, step.op());
        }
    }

    fn check(&self, _: &Record, path: &str) -> Result<(), DocumentError> {
        for (place, step) in self.steps.iter().enumerate() {
            let path = format!("{path}/steps/{place}/data/op");
            check_operation(&step.data.op, step.data.wall_ns, &path)?;
        }
        Ok(())
    }

    fn keep_what_is_shown(&mut self) {
        for step in &mut self.steps {
            step.data.op.keep_what_is_shown();
        }
    }
}
