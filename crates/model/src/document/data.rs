//! Checks of the measured data that concern more than a single number.

use super::error::{DocumentError, index_below};
use super::measured::check_measurement;
use crate::record::Record;

/// Checks what the judgement relies on.
pub(super) fn check_data(record: &Record) -> Result<(), DocumentError> {
    let targets = record.targets.len();
    for (place, row) in record.measurements.iter().enumerate() {
        let path = format!("/measurements/{place}/data");
        index_below(
            format!("{path}/target"),
            row.data.target,
            targets,
            "targets",
        )?;
        check_measurement(&row.data, &path)?;
        if let Some(first) = &row.data.first_write {
            check_measurement(first, &format!("{path}/first_write"))?;
        }
    }
    for (place, result) in record.results.iter().enumerate() {
        result.inner().check(record, &format!("/results/{place}"))?;
    }
    Ok(())
}
