//! Checks the measured data of a record from outside, as far as more than a single number is
//! concerned: indices, and the order of windows.

use super::error::{DocumentError, index_below, target_of};
use super::measured::check_measurement;
use crate::record::Record;

/// Checks what the judgement takes for an index, and the order of windows.
pub(super) fn check_data(record: &Record) -> Result<(), DocumentError> {
    for (place, row) in record.measurements.iter().enumerate() {
        let path = format!("/measurements/{place}/data");
        target_of(record, format!("{path}/target"), row.data.target)?;
        check_measurement(&row.data, &path)?;
        if let Some(first) = &row.data.first_write {
            check_measurement(first, &format!("{path}/first_write"))?;
        }
    }
    for (place, result) in record.results.iter().enumerate() {
        result.inner().check(record, &format!("/results/{place}"))?;
    }
    for (place, slice) in record.dropped.iter().enumerate() {
        target_of(record, format!("/dropped/{place}/target"), slice.target)?;
    }
    if let Some(stalled) = &record.stalled
        && let Some(target) = stalled.target
    {
        target_of(record, "/stalled/target".to_owned(), target)?;
    }
    for (place, silence) in record.silences.iter().enumerate() {
        target_of(record, format!("/silences/{place}/target"), silence.target)?;
    }
    for (place, answer) in record.first_answers.iter().enumerate() {
        let path = format!("/first_answers/{place}/target");
        target_of(record, path, answer.target)?;
    }
    check_references(record)
}

/// Checks the indices of what follows from the measurements.
fn check_references(record: &Record) -> Result<(), DocumentError> {
    let count = record.measurements.len();
    for (place, credit) in record.burst_credits.iter().enumerate() {
        let path = format!("/burst_credits/{place}");
        target_of(record, format!("{path}/target"), credit.target)?;
        for index in &credit.at_base {
            index_below(format!("{path}/at_base"), *index, count, "measurements")?;
        }
        for index in &credit.in_burst {
            index_below(format!("{path}/in_burst"), *index, count, "measurements")?;
        }
    }
    for (place, grade) in record.verdict.iter().flat_map(|v| &v.grades).enumerate() {
        let path = format!("/verdict/grades/{place}/measurement");
        index_below(path, grade.measurement, count, "measurements")?;
    }
    Ok(())
}
