//! Keeps the errors and the hang of those cells of a campaign that are in no row of the results:
//! trials, rows that are measured again, cells that the user or the end of the time cut short. An
//! error of the disk, or a request without an answer, counts wherever it comes, so a row of the
//! same workload or search takes it.
//!
//! Until such a row comes, a *stand-in* without figures has them, also where the run ends or hangs
//! before. At the end of a whole run another row of the side takes the errors that are left; a hang
//! stays with its workload.

use diskproof_analysis::campaign::CampaignRow;
use diskproof_model::measurement::{MeasuredSpan, Measurement, OpKind};
use std::collections::{BTreeMap, BTreeSet};

/// The stand-ins: rows of the results that only hold errors or a hang.
#[derive(Debug, Default)]
pub(super) struct CellErrors {
    stand_ins: BTreeSet<CampaignRow>,
}

/// Errors by kind of operation and name.
type ErrorCounts = BTreeMap<(OpKind, String), u64>;

impl CellErrors {
    /// Adds the errors and the hang of a measured cell to its row, or to a stand-in for that.
    pub(super) fn add(
        &mut self,
        row: CampaignRow,
        cell: &Measurement,
        rows: &mut Vec<Measurement>,
    ) {
        let errors = errors_of(cell);
        if errors.is_empty() && cell.hang.is_none() {
            return;
        }
        if let Some(measurement) = rows.iter_mut().find(|measured| is_row(measured, &row)) {
            add_errors(measurement, errors);
            measurement.hang = measurement.hang.or(cell.hang);
            return;
        }
        let mut stand_in = stand_in(&row, cell);
        add_errors(&mut stand_in, errors);
        rows.push(stand_in);
        self.stand_ins.insert(row);
    }

    /// Moves what a row's stand-in holds to a new measurement of the row, and removes the
    /// stand-in.
    pub(super) fn move_errors_to(
        &mut self,
        row: &CampaignRow,
        measurement: &mut Measurement,
        rows: &mut Vec<Measurement>,
    ) {
        if self.stand_ins.remove(row) {
            for stand_in in rows.extract_if(.., |measured| is_row(measured, row)) {
                add_errors(measurement, errors_of(&stand_in));
                measurement.hang = measurement.hang.or(stand_in.hang);
            }
        }
    }

    /// Moves the errors of the remaining stand-ins to another row of the same side, where it has
    /// one. One with a hang stays: no other workload stopped getting answers.
    pub(super) fn move_remaining(&mut self, rows: &mut Vec<Measurement>) {
        for row in std::mem::take(&mut self.stand_ins) {
            let Some(place) = rows
                .iter()
                .position(|measured| is_row(measured, &row) && measured.hang.is_none())
            else {
                continue;
            };
            let stand_in = rows.remove(place);
            match rows.iter_mut().find(|measured| measured.target == row.side) {
                Some(other) => add_errors(other, errors_of(&stand_in)),
                None => rows.insert(place, stand_in),
            }
        }
    }
}

/// A row with no figures, for errors of a cell that is in none.
fn stand_in(row: &CampaignRow, cell: &Measurement) -> Measurement {
    let mut workload = cell.workload.clone();
    workload.name.clone_from(&row.workload);
    let span = MeasuredSpan::new(cell.span_start_bytes, cell.span_bytes);
    Measurement {
        target: row.side,
        start_ns: cell.start_ns,
        wall_ns: cell.wall_ns,
        hang: cell.hang,
        laid_out: cell.laid_out,
        stopped: cell.stopped,
        ..Measurement::unmeasured(workload, span, cell.engine.clone(), cell.cache.clone())
    }
}

fn is_row(measured: &Measurement, row: &CampaignRow) -> bool {
    measured.target == row.side && measured.workload.name == row.workload
}

fn errors_of(measured: &Measurement) -> ErrorCounts {
    let mut errors = ErrorCounts::new();
    for (kind, op) in &measured.ops {
        for (name, count) in &op.errors {
            errors.insert((*kind, name.clone()), *count);
        }
    }
    errors
}

fn add_errors(measured: &mut Measurement, errors: ErrorCounts) {
    for ((kind, name), count) in errors {
        let op = measured.ops.entry(kind).or_default();
        *op.errors.entry(name).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_engine::{FakeDisk, simulate};
    use diskproof_model::measurement::Hang;
    use diskproof_model::plan::Workload;
    use diskproof_model::progress::{Control, Progress, Watch};

    struct Unwatched;

    impl Watch for Unwatched {
        fn tick(&mut self, _: &Progress<'_>) -> Control {
            Control::Continue
        }
    }

    /// A measurement of the first side in which so many reads failed.
    fn measured(name: &str, errors: u64) -> Measurement {
        let disk = FakeDisk {
            service_ns: 100_000,
            jitter_ns: 0,
            channels: 1,
            size_bytes: 1 << 20,
        };
        let mut workload = Workload::named(name);
        workload.stop.ops = Some(10);
        let mut measured = simulate(&workload, disk, 1, &mut Unwatched).unwrap();
        let op = measured.ops.entry(OpKind::Read).or_default();
        if errors > 0 {
            op.errors.insert("EIO".to_owned(), errors);
        }
        measured
    }

    fn row(workload: &str) -> CampaignRow {
        CampaignRow {
            side: 0,
            workload: workload.to_owned(),
        }
    }

    fn eio(measured: &Measurement) -> u64 {
        let errors = &measured.ops[&OpKind::Read].errors;
        errors.get("EIO").copied().unwrap_or(0)
    }

    #[test]
    fn errors_of_trials_are_in_the_row_of_their_workload() {
        let mut errors = CellErrors::default();
        let mut rows = vec![measured("other", 0)];
        errors.add(row("rate"), &measured("rate", 2), &mut rows);
        errors.add(row("rate"), &measured("rate", 3), &mut rows);
        errors.add(row("rate"), &measured("rate", 0), &mut rows);
        // Also where the run hangs now.
        assert_eq!([eio(&rows[0]), eio(&rows[1])], [0, 5]);
        assert_eq!(rows[1].ops[&OpKind::Read].latency.count(), 0);
        let mut held = measured("rate", 1);
        errors.move_errors_to(&row("rate"), &mut held, &mut rows);
        rows.push(held);
        assert_eq!(rows.len(), 2);
        // Of a trial after the row.
        errors.add(row("rate"), &measured("rate", 4), &mut rows);
        errors.move_remaining(&mut rows);
        assert_eq!([eio(&rows[0]), eio(&rows[1])], [0, 10]);
    }

    /// As of a cell that the end of the time cut short while the disk did not answer.
    #[test]
    fn hang_of_a_cell_in_no_row_is_in_the_row_of_its_workload_or_in_one_of_its_own() {
        let hang = Some(Hang {
            since_ns: 7,
            lasted_ns: 12,
            requests: 4,
            late: true,
        });
        let mut cut = measured("d8", 0);
        cut.hang = hang;
        for (known, hung) in [("d8", 0), ("d4", 1)] {
            let mut errors = CellErrors::default();
            let mut rows = vec![measured(known, 0)];
            errors.add(row("d8"), &cut, &mut rows);
            errors.move_remaining(&mut rows);
            assert_eq!((rows.len(), rows[hung].hang), (hung + 1, hang), "{known}");
            assert_eq!(rows[hung].workload.name, "d8");
        }
        // A healthy cell leaves nothing.
        let mut errors = CellErrors::default();
        let mut rows = Vec::new();
        errors.add(row("d8"), &measured("d8", 0), &mut rows);
        assert!(rows.is_empty());
    }

    #[test]
    fn errors_without_a_row_of_their_workload_are_in_another_one() {
        let mut errors = CellErrors::default();
        let mut rows = vec![measured("sequential", 0)];
        errors.add(row("rate"), &measured("rate", 2), &mut rows);
        errors.move_remaining(&mut rows);
        assert_eq!((rows.len(), eio(&rows[0])), (1, 2));
    }

    /// As of a search that the user stops before its first hold.
    #[test]
    fn errors_without_any_row_stay_in_the_results() {
        let mut errors = CellErrors::default();
        let mut rows = Vec::new();
        errors.add(row("rate"), &measured("trial", 0), &mut rows);
        assert!(rows.is_empty());
        errors.add(row("rate"), &measured("trial", 2), &mut rows);
        errors.add(row("rate"), &measured("trial", 3), &mut rows);
        errors.move_remaining(&mut rows);
        assert_eq!((rows.len(), eio(&rows[0])), (1, 5));
        assert_eq!(rows[0].workload.name, "rate");
    }

    /// A healthy disk does not take the errors of the one that it is compared with.
    #[test]
    fn errors_stay_on_their_side() {
        let mut errors = CellErrors::default();
        let mut rows = vec![measured("rate", 0)];
        let other_side = CampaignRow {
            side: 1,
            ..row("rate")
        };
        errors.add(other_side, &measured("rate", 2), &mut rows);
        errors.move_remaining(&mut rows);
        assert_eq!((eio(&rows[0]), rows[0].target), (0, 0));
        assert_eq!((eio(&rows[1]), rows[1].target), (2, 1));
    }
}
