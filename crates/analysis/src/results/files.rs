//! Makes the result of a run on many small files from what was measured, and its clause of the
//! headline.

use crate::files::files_record;
use crate::words::enumerated;
use diskproof_model::data::RunData;
use diskproof_model::digits::rounded;
use diskproof_model::files::{FileOperation, FileStep, FilesMeasurement};
use diskproof_model::files_record::FilesRecord;
use diskproof_model::record::Record;

/// Operations in the headline: the table of all follows.
const HEADLINE_OPERATIONS: [FileOperation; 3] = [
    FileOperation::Create,
    FileOperation::Read,
    FileOperation::Delete,
];

/// The steps on files. A run that ended before its first step still is one on files.
pub(super) fn files_result(record: &Record, data: &RunData) -> Option<FilesRecord> {
    match (&data.files, record.plan.files()) {
        (Some(measured), _) => Some(files_record(measured)),
        (None, Some(_)) => Some(files_record(&FilesMeasurement::default())),
        (None, None) => None,
    }
}

/// `12,300 creates/s, 160,000 stats/s and 21,000 deletes/s of files`, of the first order.
pub(super) fn files_clause(files: &FilesRecord) -> Option<String> {
    let steps = &files.steps;
    let order = steps.first()?.data.step.order;
    let mut figures = Vec::new();
    for operation in HEADLINE_OPERATIONS {
        let step = FileStep { operation, order };
        if let Some(known) = steps.iter().find(|known| known.data.step == step)
            && known.data.op.count > 0
        {
            let rate = rounded(known.figures.iops.value, known.figures.iops.half_width_95);
            figures.push(format!("{rate} {}s/s", operation.as_str()));
        }
    }
    if figures.is_empty() {
        return None;
    }
    Some(format!("{} of files", enumerated(&figures)))
}
