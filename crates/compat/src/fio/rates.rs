//! Sums what the jobs of an entry moved in each half second, from which fio takes the least, the
//! greatest and the mean rate.

use super::counted_ops::{is_done_in_warmup, ops_of_kinds};
use diskproof_model::measurement::{Measurement, OpKind};
use diskproof_model::series::Cell;

/// fio samples rates at this interval, the default of its option `bwavgtime`.
const INTERVAL_NS: u64 = 500_000_000;
const INTERVALS_PER_SECOND: f64 = 1e9 / INTERVAL_NS as f64;
const KIB: f64 = 1024.0;

/// What all members of an entry moved in one of fio's intervals.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct IntervalSum {
    pub bytes: f64,
    pub ops: f64,
}

impl IntervalSum {
    pub(super) fn kib_per_second(self) -> f64 {
        self.bytes / KIB * INTERVALS_PER_SECOND
    }

    pub(super) fn ops_per_second(self) -> f64 {
        self.ops * INTERVALS_PER_SECOND
    }
}

/// Adds the operations of these kinds to the sums, one for each whole interval of fio from the
/// start of the measurement. A job that is done in its warm-up adds nothing.
pub(super) fn add_to_intervals(
    sums: &mut Vec<IntervalSum>,
    measurement: &Measurement,
    kinds: &[OpKind],
) {
    if is_done_in_warmup(measurement) {
        return;
    }
    let count = (measurement.wall_ns / INTERVAL_NS) as usize;
    for op in ops_of_kinds(measurement, kinds) {
        if sums.len() < count {
            sums.resize(count, IntervalSum::default());
        }
        let mut start_ns = op.series.start_ns;
        for cell in &op.series.cells {
            let next_ns = start_ns.saturating_add(op.series.interval_ns);
            // The last cell ends with the measurement.
            let end_ns = next_ns.min(measurement.wall_ns).max(start_ns + 1);
            add_cell(&mut sums[..count], cell, start_ns, end_ns);
            start_ns = next_ns;
        }
    }
}

/// Adds a cell of the series between two times to each interval by the share of its time there:
/// from 41 s on the cells no longer divide the intervals, and from 5.5 minutes on they are longer.
/// What lies behind the last interval is left out.
fn add_cell(sums: &mut [IntervalSum], cell: &Cell, start_ns: u64, end_ns: u64) {
    debug_assert!(start_ns < end_ns, "{start_ns} {end_ns}");
    let mut part_ns = start_ns;
    while part_ns < end_ns {
        let index = part_ns / INTERVAL_NS;
        let part_end_ns = end_ns.min((index + 1) * INTERVAL_NS);
        let share = (part_end_ns - part_ns) as f64 / (end_ns - start_ns) as f64;
        if let Some(sum) = sums.get_mut(index as usize) {
            sum.bytes += cell.bytes as f64 * share;
            sum.ops += cell.ops as f64 * share;
        }
        part_ns = part_end_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: a cell from 0.4 s to 0.8 s has a quarter of its time in the first half second.
    #[test]
    fn cell_counts_in_each_interval_by_its_time_there() {
        let mut sums = [IntervalSum::default(); 2];
        let cell = Cell {
            ops: 8,
            bytes: 4096,
            ..Cell::default()
        };
        add_cell(&mut sums, &cell, 400_000_000, 800_000_000);
        let ops = sums.map(|sum| sum.ops);
        assert_eq!(ops, [2.0, 6.0]);
        let rates = sums.map(|sum| (sum.kib_per_second(), sum.ops_per_second()));
        assert_eq!(rates, [(2.0, 4.0), (6.0, 12.0)]);
        // A half of this one is behind the last interval.
        add_cell(&mut sums, &cell, 900_000_000, 1_100_000_000);
        assert_eq!(sums[1].ops, 10.0);
    }
}
