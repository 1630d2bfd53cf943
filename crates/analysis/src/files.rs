//! Derives the figures of operations on many small files: the rate of each step, and its interval.

use crate::estimate::{Settling, rate_after};
use crate::slices::widen_estimate;
use diskproof_model::files::{FileStepMeasurement, FilesMeasurement};
use diskproof_model::files_record::{FileStepRow, FilesRecord};
use diskproof_model::row::{LatencySummary, OpFigures};

/// The record of all steps, in the order in which they were measured.
pub(crate) fn files_record(measured: &FilesMeasurement) -> FilesRecord {
    FilesRecord {
        steps: measured.steps.iter().map(step_row).collect(),
        caches: measured.caches.clone(),
        leftover_files: measured.leftover_files,
        stalls: measured.stalls.clone(),
    }
}

/// The row of a step. Nothing is skipped as warm-up: a step is a given amount of work, and its rate
/// is that of the whole. The interval is the wider of that within the rounds and that between them.
fn step_row(measured: &FileStepMeasurement) -> FileStepRow {
    let mut rate = rate_after(&measured.op.series, measured.wall_ns, Settling::WHOLE);
    let rates: Vec<f64> = measured
        .rounds
        .iter()
        .map(|round| round.count as f64 * 1e9 / round.wall_ns.max(1) as f64)
        .collect();
    widen_estimate(&mut rate.ops, &rates, measured.op.count);
    // Bytes follow the files, whose sizes are given.
    if let Some(relative) = rate.ops.relative_half_width()
        && rate.bytes.value > 0.0
    {
        let half_width = relative * rate.bytes.value;
        let own = rate.bytes.half_width_95.unwrap_or(0.0);
        rate.bytes.half_width_95 = Some(own.max(half_width));
    }
    let figures = OpFigures {
        iops: rate.ops,
        throughput: rate.bytes,
        latency: LatencySummary::from_histogram(&measured.op.latency),
        latency_intended: None,
    };
    let mut data = measured.clone();
    data.op.keep_longest_latencies();
    FileStepRow { data, figures }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::files::{file_step, files_plan, files_record};
    use diskproof_model::files::{FileOperation, FileSyncTime};

    #[test]
    fn rate_is_that_of_all_rounds_and_its_interval_covers_them() {
        let record = step_row(&file_step(FileOperation::Stat, &[980, 1000, 1020]));
        let rate = record.figures.iops;
        assert!((rate.value - 10_000.0).abs() < 1e-6, "{rate:?}");
        // By hand: a deviation of 200 between the rounds, 4.3027 × 200 / √3 = 496.8. The interval
        // of the batches within them may be wider, and the wider one counts.
        assert!(rate.half_width_95.unwrap() >= 496.8, "{rate:?}");
        assert_eq!(record.data.op.count, 3000);
    }

    /// 5 × 100 creates of 1 ms each: 0.5 s. 0.3 s of it are fsyncs of files, 0.1 s of directories.
    #[test]
    fn share_of_fsync_is_that_of_the_time_of_all_operations() {
        let mut step = file_step(FileOperation::Create, &[100; 5]);
        step.sync = FileSyncTime {
            file_sync_ns: 300_000_000,
            directory_sync_ns: 100_000_000,
        };
        let stat = file_step(FileOperation::Stat, &[100; 5]);
        let record = files_record("a", files_plan(), vec![step, stat]);
        let files = record.files().unwrap();
        let share = files.sync_share(FileOperation::Create).unwrap();
        assert!((share.file - 0.6).abs() < 0.001, "{share:?}");
        assert!((share.directory - 0.2).abs() < 0.001, "{share:?}");
        assert_eq!(files.sync_share(FileOperation::Stat), None);
        assert_eq!(files.steps[1].sync_time(), None);
    }
}
