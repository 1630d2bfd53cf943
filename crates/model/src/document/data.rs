//! What a single number of the measured data cannot tell.

use super::error::{DocumentError, index_below};
use crate::measurement::{Measurement, OpMeasurement};
use crate::record::{Record, TaskResult};
use crate::surface::SurfaceRecord;

/// Most cells of a measured time. The engine keeps 1,024 and makes them longer.
const CELLS_MAX: u64 = 1 << 16;

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
        check_result(record, result, &format!("/results/{place}"))?;
    }
    Ok(())
}

/// Checks what came of a task and stands at `path`.
fn check_result(record: &Record, result: &TaskResult, path: &str) -> Result<(), DocumentError> {
    match result {
        TaskResult::Files(files) => {
            for (place, step) in files.steps.iter().enumerate() {
                let path = format!("{path}/steps/{place}/data/op");
                check_op(&step.data.op, step.data.wall_ns, &path)?;
            }
            Ok(())
        }
        TaskResult::Survey(surface) => check_survey(record, surface, path),
        // Their readers take no number in them for an index, and divide by none.
        TaskResult::Sweep(_)
        | TaskResult::Depth(_)
        | TaskResult::Sustain(_)
        | TaskResult::Load(_)
        | TaskResult::Rays(_)
        | TaskResult::Layers(_)
        | TaskResult::Compared(_)
        | TaskResult::Inserts(_)
        | TaskResult::Accept(_)
        | TaskResult::Together(_)
        | TaskResult::Observed(_) => Ok(()),
    }
}

fn check_survey(record: &Record, surface: &SurfaceRecord, path: &str) -> Result<(), DocumentError> {
    index_below(
        format!("{path}/data/target"),
        surface.data.target,
        record.targets.len(),
        "targets",
    )?;
    for (place, stroke) in surface.figures.short_strokes.iter().enumerate() {
        index_below(
            format!("{path}/figures/short_strokes/{place}/measurement"),
            stroke.measurement,
            record.measurements.len(),
            "measurements",
        )?;
    }
    Ok(())
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
