//! The errors of a campaign's cells that are in no row of the results: trials, rows that are
//! measured again, cells that the user cut short. An error of the disk counts wherever it comes, so
//! a row of the same workload or search takes it, or else another one of the same side.

use diskproof_analysis::campaign::CampaignRow;
use diskproof_model::measurement::{Measurement, OpKind};
use std::collections::BTreeMap;

/// Errors that wait for their row.
#[derive(Debug, Default)]
pub(super) struct CellErrors(BTreeMap<CampaignRow, ErrorCounts>);

/// Errors by kind of operation and name.
type ErrorCounts = BTreeMap<(OpKind, String), u64>;

impl CellErrors {
    /// Adds the errors of a measured cell to its row; until there is one, they wait.
    pub(super) fn add(&mut self, row: CampaignRow, cell: &Measurement, rows: &mut [Measurement]) {
        match rows.iter_mut().find(|measured| is_row(measured, &row)) {
            Some(measurement) => add_errors(measurement, errors_of(cell)),
            None => self.keep(row, cell),
        }
    }

    /// Keeps the errors of a measured cell until its row comes.
    pub(super) fn keep(&mut self, row: CampaignRow, cell: &Measurement) {
        let errors = errors_of(cell);
        if errors.is_empty() {
            return;
        }
        let waiting = self.0.entry(row).or_default();
        for (name, count) in errors {
            *waiting.entry(name).or_default() += count;
        }
    }

    /// Gives a new part of a row the errors that wait for it.
    pub(super) fn give_to(&mut self, row: &CampaignRow, measurement: &mut Measurement) {
        if let Some(errors) = self.0.remove(row) {
            add_errors(measurement, errors);
        }
    }

    /// Gives the errors whose row never came to another row of the same side; without any they are
    /// lost.
    pub(super) fn give_rest(&mut self, rows: &mut [Measurement]) {
        for (row, errors) in std::mem::take(&mut self.0) {
            if let Some(measurement) = rows.iter_mut().find(|measured| measured.target == row.side)
            {
                add_errors(measurement, errors);
            }
        }
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
        let mut held = measured("rate", 1);
        errors.give_to(&row("rate"), &mut held);
        rows.push(held);
        // Of a trial after the row.
        errors.add(row("rate"), &measured("rate", 4), &mut rows);
        errors.give_rest(&mut rows);
        assert_eq!([eio(&rows[0]), eio(&rows[1])], [0, 10]);
    }

    #[test]
    fn errors_without_a_row_of_their_workload_are_in_another_one() {
        let mut errors = CellErrors::default();
        let mut rows = vec![measured("sequential", 0)];
        errors.add(row("rate"), &measured("rate", 2), &mut rows);
        errors.give_rest(&mut rows);
        assert_eq!(eio(&rows[0]), 2);
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
        errors.give_rest(&mut rows);
        assert_eq!(eio(&rows[0]), 0);
    }
}
