//! Checks measurements from outside, of workloads and of steps on files.

use super::error::DocumentError;
use crate::measurement::{Measurement, OpMeasurement};

/// Most cells of a measured time. The engine keeps 1,024 and makes them longer.
const CELLS_MAX: u64 = 1 << 16;

/// Checks the operations and windows of a measurement, which stands at `path`.
pub(super) fn check_measurement(m: &Measurement, path: &str) -> Result<(), DocumentError> {
    for (kind, op) in &m.ops {
        check_operation(op, m.wall_ns, &format!("{path}/ops/{}", kind.as_str()))?;
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

/// Checks the series of an operation that was measured for `wall_ns` and stands at `path`.
pub(crate) fn check_operation(
    op: &OpMeasurement,
    wall_ns: u64,
    path: &str,
) -> Result<(), DocumentError> {
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
