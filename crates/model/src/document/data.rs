//! What a single number of the measured data cannot tell.

use super::error::{DocumentError, index_below};
use crate::data::RunData;
use crate::measurement::{Measurement, OpMeasurement};
use crate::record::Record;

/// Most cells of a measured time. The engine keeps 1,024 and makes them longer.
const CELLS_MAX: u64 = 1 << 16;

/// Checks what the judgement relies on.
pub(super) fn check_data(data: &RunData, record: &Record) -> Result<(), DocumentError> {
    let targets = record.targets.len();
    if data.measurements.len() != record.measurements.len() {
        return Err(DocumentError::Data {
            path: "/data/measurements".to_owned(),
            why: "there is not one of them for each row of the record",
        });
    }
    for (place, m) in data.measurements.iter().enumerate() {
        let path = format!("/data/measurements/{place}");
        index_below(format!("{path}/target"), m.target, targets, "targets")?;
        check_measurement(m, &path)?;
        if let Some(first) = &m.first_write {
            check_measurement(first, &format!("{path}/first_write"))?;
        }
    }
    for (place, step) in data.files.iter().flat_map(|f| &f.steps).enumerate() {
        let path = format!("/data/files/steps/{place}/op");
        check_op(&step.op, step.wall_ns, &path)?;
    }
    let path = "/data/surface/target".to_owned();
    data.surface
        .iter()
        .try_for_each(|surface| index_below(path.clone(), surface.target, targets, "targets"))
}

fn check_measurement(m: &Measurement, path: &str) -> Result<(), DocumentError> {
    for (kind, op) in &m.ops {
        check_op(op, m.wall_ns, &format!("{path}/ops/{}", kind.as_str()))?;
    }
    let mut end_ns = 0;
    for (place, window) in m.windows.iter().enumerate() {
        if window.start_ns < end_ns || window.end_ns <= window.start_ns {
            return Err(DocumentError::Data {
                path: format!("{path}/windows/{place}"),
                why: "it does not follow the window before it",
            });
        }
        end_ns = window.end_ns;
    }
    Ok(())
}

fn check_op(op: &OpMeasurement, wall_ns: u64, path: &str) -> Result<(), DocumentError> {
    let path = format!("{path}/series");
    match wall_ns.checked_div(op.series.interval_ns) {
        None => Err(DocumentError::NoLength { path }),
        Some(CELLS_MAX..) => Err(DocumentError::Data {
            path,
            why: "its cells are too short for the measured time",
        }),
        Some(_) => Ok(()),
    }
}
