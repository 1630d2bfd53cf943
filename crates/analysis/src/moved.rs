//! Counts the requests and bytes that a run moved, in all and before a given moment. All of them
//! use up burst credit and caches, so the warm-up and the filling of scratch files count, too.

use diskproof_model::measurement::{Measurement, MovedTotal, OpKind};
use diskproof_model::plan::Plan;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::series::TimeSeries;
use diskproof_model::slice::WARMUP_PARTS;

/// A later slice spends a ninth of its measured time on the warm-up before it, which is one tenth
/// of its whole time. The first slice has the whole warm-up of the workload.
const LATER_WARMUP_PARTS: u64 = WARMUP_PARTS - 1;

/// Requests and bytes of the whole run; `None` where nothing was measured. Counters cover the
/// warm-up, too, but for workloads that ran together each counter includes the others, so that
/// only the measured operations are summed there.
pub(crate) fn total(measurements: &[Measurement], plan: &Plan) -> Option<MovedTotal> {
    let mut total = MovedTotal::default();
    for measurement in measurements {
        let mut requests = 0;
        let mut bytes = 0;
        for kind in OpKind::TRANSFERS {
            if let Some(op) = measurement.ops.get(&kind) {
                requests += op.count;
                bytes += op.bytes;
            }
        }
        let has_no_company = match plan.group_of(&measurement.workload.name) {
            Some(group) => group.is_alone(),
            None => true,
        };
        let is_alone = has_no_company && plan.targets.len() <= 1;
        let with_warmup = if is_alone {
            measurement.asked.total().max(bytes)
        } else {
            bytes
        };
        // The requests of the warm-up are as large as the measured ones.
        let scale = with_warmup as f64 / bytes.max(1) as f64;
        total.requests += (requests as f64 * scale) as u64;
        total.bytes += with_warmup;
        if let Some(laid_out) = measurement.laid_out {
            total.requests += laid_out.requests;
            total.bytes += laid_out.bytes;
        }
    }
    if total.requests > 0 {
        Some(total)
    } else {
        None
    }
}

/// Requests and bytes before a moment, and the time that they took. Fractions arise from cells and
/// warm-ups that are scaled.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct MovedBefore {
    /// Reads and writes.
    pub(crate) requests: f64,
    /// Bytes of these.
    pub(crate) bytes: f64,
    /// From the start of the first of them to the moment, in nanoseconds.
    pub(crate) took_ns: f64,
}

/// A part of a measurement that ran without a break, in nanoseconds after the start of the run.
struct RunPart {
    begin_ns: f64,
    warmup_ns: f64,
    wall_ns: f64,
    /// Measured time of the slices before it.
    offset_ns: u64,
}

/// The moment at which row `index` had measured for `at_ns`, in nanoseconds after the start of the
/// run.
pub(crate) fn moment_ns(record: &Record, index: usize, at_ns: u64) -> f64 {
    let own = parts(record, &record.measurements[index]);
    match own.iter().rfind(|part| part.offset_ns < at_ns.max(1)) {
        Some(last) => last.begin_ns + (at_ns - last.offset_ns) as f64,
        None => 0.0,
    }
}

/// The kinds of requests that a sum counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountedKinds {
    ReadsAndWrites,
    Writes,
}

impl CountedKinds {
    fn kinds(self) -> &'static [OpKind] {
        match self {
            Self::ReadsAndWrites => &OpKind::TRANSFERS,
            Self::Writes => &[OpKind::Write],
        }
    }
}

/// The requests of these kinds on the target of row `index` before that row had measured for
/// `at_ns`, its own among them.
pub(crate) fn before(
    record: &Record,
    index: usize,
    at_ns: u64,
    kinds: CountedKinds,
) -> MovedBefore {
    let fallen = &record.measurements[index];
    let moment_ns = moment_ns(record, index, at_ns);
    let mut moved = MovedBefore::default();
    let mut first_ns = moment_ns;
    for row in &record.measurements {
        if row.data.target != fallen.data.target {
            continue;
        }
        for part in parts(record, row) {
            let cut_ns = if std::ptr::eq(row, fallen) {
                (at_ns.saturating_sub(part.offset_ns) as f64).min(part.wall_ns)
            } else if part.begin_ns + part.wall_ns <= moment_ns {
                part.wall_ns
            } else {
                0.0
            };
            if cut_ns > 0.0 {
                first_ns = first_ns.min(part.begin_ns - part.warmup_ns);
                moved.add_part(row, &part, cut_ns, kinds);
            }
        }
        if let Some(laid_out) = row.data.laid_out
            && row.data.start_ns as f64 <= moment_ns
        {
            moved.requests += laid_out.requests as f64;
            moved.bytes += laid_out.bytes as f64;
            let rows = record.measurements.iter().map(|row| &row.data);
            first_ns = first_ns.min(filled_from_ns(rows, row.data.start_ns) as f64);
        }
    }
    moved.took_ns = moment_ns - first_ns;
    moved
}

impl MovedBefore {
    /// Adds what a row moved in the first `cut_ns` of one of its parts, with the warm-up before it
    /// at the same rate.
    fn add_part(&mut self, row: &Row, part: &RunPart, cut_ns: f64, kinds: CountedKinds) {
        let from_ns = part.offset_ns;
        let to_ns = from_ns + cut_ns as u64;
        let mut counted = CountedCells::default();
        for kind in kinds.kinds() {
            if let Some(op) = row.op(*kind) {
                counted.add(&op.data.shown_series(), from_ns, to_ns);
            }
        }
        let scale = 1.0 + part.warmup_ns / cut_ns;
        self.requests += counted.requests * scale;
        self.bytes += counted.bytes * scale;
    }
}

/// The moment from which on the file of a row that began at `begin_ns` was filled, in nanoseconds
/// after the start of the run. A file is filled just before the first row that needs it, so this is
/// the end of the measurement before that row, or 0 where there was none.
pub(crate) fn filled_from_ns<'a>(
    measurements: impl Iterator<Item = &'a Measurement>,
    begin_ns: u64,
) -> u64 {
    let mut ends = Vec::new();
    for measurement in measurements {
        if measurement.slices.is_empty() {
            ends.push(measurement.start_ns + measurement.wall_ns);
        }
        for slice in &measurement.slices {
            ends.push(slice.start_ns + slice.wall_ns);
        }
    }
    let before = ends.into_iter().filter(|end_ns| *end_ns < begin_ns);
    before.max().unwrap_or(0)
}

/// Operations and bytes in a part of the measured time; fractions where a cell counts in part.
#[derive(Default)]
struct CountedCells {
    requests: f64,
    bytes: f64,
}

impl CountedCells {
    /// Adds what a series counted between two moments of the measured time.
    fn add(&mut self, series: &TimeSeries, from_ns: u64, to_ns: u64) {
        let cell_ns = series.interval_ns.max(1);
        for (number, cell) in series.cells.iter().enumerate() {
            let begin_ns = series.start_ns + number as u64 * cell_ns;
            let end_ns = to_ns.min(begin_ns + cell_ns);
            let covered_ns = end_ns.saturating_sub(begin_ns.max(from_ns));
            let share = covered_ns as f64 / cell_ns as f64;
            self.requests += cell.ops as f64 * share;
            self.bytes += cell.bytes as f64 * share;
        }
    }
}

/// The slices of a row, or the row as one part where it ran without a break.
fn parts(record: &Record, row: &Row) -> Vec<RunPart> {
    let planned = record
        .plan
        .workloads()
        .iter()
        .find(|workload| workload.name == row.data.workload.name);
    let warmup_ns = match planned {
        Some(workload) => workload.warmup_ns,
        None => 0,
    };
    if row.data.slices.is_empty() {
        return vec![RunPart {
            begin_ns: row.data.start_ns as f64,
            warmup_ns: warmup_ns as f64,
            wall_ns: row.data.wall_ns as f64,
            offset_ns: 0,
        }];
    }
    let mut offset_ns = 0;
    let mut parts = Vec::new();
    for slice in &row.data.slices {
        let own_warmup_ns = if parts.is_empty() {
            warmup_ns
        } else {
            (slice.wall_ns / LATER_WARMUP_PARTS).min(warmup_ns)
        };
        parts.push(RunPart {
            begin_ns: slice.start_ns as f64,
            warmup_ns: own_warmup_ns as f64,
            wall_ns: slice.wall_ns as f64,
            offset_ns,
        });
        offset_ns += slice.wall_ns;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::window::TimeSlice;
    use std::collections::BTreeMap;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn second_file_is_filled_after_the_row_before_it() {
        let mut run = fixture::run();
        run.measurements.truncate(3);
        for (number, m) in (0u64..).zip(&mut run.measurements) {
            m.start_ns = number * 100 * SECOND_NS + 10 * SECOND_NS;
            m.wall_ns = 5 * SECOND_NS;
            m.slices.clear();
        }
        let [first, second, third] = &run.measurements[..] else {
            panic!("three rows");
        };
        let from_ns = |m: &Measurement| filled_from_ns(run.measurements.iter(), m.start_ns);
        assert_eq!(from_ns(first), 0);
        assert_eq!(from_ns(second), 15 * SECOND_NS);
        assert_eq!(from_ns(third), 115 * SECOND_NS);
    }

    #[test]
    fn all_that_a_run_moved_includes_warm_up_and_filling() {
        let mut run = fixture::run();
        run.measurements
            .retain(|m| m.workload.name == "random-read-d32");
        let m = &mut run.measurements[0];
        assert_eq!(m.ops[&OpKind::Read].count, 50_000);
        m.asked.read_bytes = 55_000 * 8192;
        m.laid_out = Some(MovedTotal {
            requests: 1000,
            bytes: 1000 << 20,
        });
        let moved = total(&run.measurements, &run.facts.plan).unwrap();
        assert_eq!(moved.requests, 56_000);
        assert_eq!(moved.bytes, 55_000 * 8192 + (1000 << 20));
        assert_eq!(total(&[], &run.facts.plan), None);
    }

    /// 10,000/s in slices of 1 s that begin at 10, 20, 30, 40 and 50 s: 1.5 s of it end at 20.5 s.
    #[test]
    fn slices_before_a_moment_count_with_what_ran_between_them() {
        let mut record = fixture::record();
        let slice = |start_s: u64| TimeSlice {
            start_ns: start_s * SECOND_NS,
            wall_ns: SECOND_NS,
            ops: BTreeMap::new(),
            slot: None,
        };
        let names = ["random-read-d32", "mixed-random"];
        record
            .measurements
            .retain(|m| names.contains(&m.data.workload.name.as_str()));
        for workload in record.plan.workloads_mut() {
            workload.warmup_ns = SECOND_NS / 2;
        }
        record.measurements[0].data.slices = [10, 20, 30, 40, 50].map(slice).to_vec();
        // Another workload between the first and the second slice.
        let other = &mut record.measurements[1];
        (other.data.start_ns, other.data.wall_ns) = (12 * SECOND_NS, 5 * SECOND_NS);
        let moved = before(&record, 0, 3 * SECOND_NS / 2, CountedKinds::ReadsAndWrites);
        // With the warm-ups: 15,000 and 5000 × (1 + 2/9), and 55,000 of the other workload.
        assert!((moved.requests - 76_111.0).abs() < 1.0, "{moved:?}");
        assert_eq!(moved.took_ns, 11e9);
        let writes = before(&record, 0, 3 * SECOND_NS / 2, CountedKinds::Writes);
        assert!(writes.requests < moved.requests / 2.0, "{writes:?}");
    }
}
