//! The catalogue: a row for each figure, with its name in tables, its unit, its name in thresholds,
//! its family for Prometheus, and where a part of a record holds it. An empty name means that the
//! format omits the figure.

use super::field::{CatalogueRow, Field};
use super::key::Metric;
use crate::accept::{AcceptRecord, AcceptVerdict, RateByPosition};
use crate::expectation::{Expectation, ExpectationOutcome, Promise};
use crate::files_record::FileStepRow;
use crate::finding::LimitedBy;
use crate::health::DiskHealth;
use crate::layers::LayerCost;
use crate::measurement::OpMeasurement;
use crate::observed::{ObservedDevice, ObservedOps};
use crate::ping::{IdlePoint, SingleRequest};
use crate::postgres::{LoadRow, TrialRow};
use crate::rate::LoadFigures;
use crate::rays::RayBoundary;
use crate::row::CellOverTime;
use crate::row::{LatencySummary, OpFigures, PhaseOp, PhaseRecord, Row};
use crate::surface::{
    AccessPoint, Burst, CurvePoint, RateSummary, Scan, ScanCell, SeekSummary, ShortStroke,
    SlowBlock, SurfaceRecord, UnreadableRange,
};
use crate::sustain::{BucketFigures, RateDrop, SustainRecord};
use crate::sweep::{SweepCell, SweepMatrix};
use crate::verdict::{Grade, GradeThresholds, UseGrade};

macro_rules! tables {
    ($($table:ident: $subject:ty {
        $($name:expr, $unit:expr, $threshold:expr, $family:expr, |$it:ident| $value:expr;)*
    })*) => {
        $(pub(crate) static $table: &[CatalogueRow<$subject>] = &[$(CatalogueRow {
            metric: Metric {
                name: $name,
                unit: $unit,
                threshold: $threshold,
                family: $family,
            },
            value: |$it: &$subject| Field::known($value),
        }),*];)*
    };
}

/// The figures of a distribution; unknown percentiles have none. The record holds no p95, but the
/// distribution in it does.
macro_rules! latencies {
    ($table:ident, $prefix:literal, $max_family:literal) => {
        tables! { $table: LatencySummary {
            concat!($prefix, "mean"), "ns", "mean", concat!($prefix, "seconds"), |l| l.mean;
            concat!($prefix, "min"), "ns", "", "", |l| l.min;
            concat!($prefix, "p50"), "ns", "p50", concat!($prefix, "seconds"), |l| l.p50;
            concat!($prefix, "p90"), "ns", "p90", concat!($prefix, "seconds"), |l| l.p90;
            concat!($prefix, "p95"), "ns", "p95", "", |_l| None::<u64>;
            concat!($prefix, "p99"), "ns", "p99", concat!($prefix, "seconds"), |l| l.p99;
            concat!($prefix, "p99.9"), "ns", "p99.9", concat!($prefix, "seconds"), |l| l.p99_9;
            concat!($prefix, "p99.99"), "ns", "p99.99", concat!($prefix, "seconds"), |l| l.p99_99;
            concat!($prefix, "max"), "ns", "max", $max_family, |l| l.max;
        } }
    };
}

latencies!(LATENCY, "latency_", "latency_max_seconds");
latencies!(LATENCY_INTENDED, "latency_intended_", "");

tables! {
    WORKLOAD: Row {
        "wall_time", "ns", "", "", |m| m.data.wall_ns;
        "steady_time", "ns", "", "", |m| m.steady_ns();
        "cpu_share", "1", "cpu", "cpu_ratio", |m| m.cpu_share();
        "achieved_depth", "1", "", "", |m| m.data.achieved_depth;
        "accounted", "1", "", "accounted_ratio", |m| m.data.device.accounted;
    }
    OPERATION_COUNTS: OpMeasurement {
        "operations", "1", "", "", |op| op.count;
        "bytes", "B", "", "", |op| op.bytes;
        "errors", "1", "", "errors", |op| op.errors.values().sum::<u64>();
    }
    OPERATION: OpFigures {
        "iops", "1/s", "iops", "iops", |op| &op.iops;
        "throughput", "B/s", "throughput", "throughput_bytes_per_second", |op| &op.throughput;
    }
    PHASE: PhaseRecord {
        "time", "ns", "", "", |phase| phase.end_ns.saturating_sub(phase.start_ns);
    }
    PHASE_OPERATION: PhaseOp {
        "iops", "1/s", "", "phase_iops", |op| &op.rate;
        "latency_p50", "ns", "", "", |op| op.latency.p50;
        "latency_p99", "ns", "", "", |op| op.latency.p99;
    }
    LIMITED_BY: LimitedBy {
        "", "1", "", "limited_by", |_limit| 1.0;
    }
    CURVE: RateSummary {
        "throughput_min", "B/s", "min", "curve_bytes_per_second", |rate| rate.min;
        "throughput_max", "B/s", "max", "curve_bytes_per_second", |rate| rate.max;
        "throughput", "B/s", "average", "curve_bytes_per_second", |rate| &rate.average;
    }
    CURVE_COST: SurfaceRecord {
        "bytes", "B", "", "", |surface| surface.figures.curve_bytes;
        "share_of_span", "1", "", "", |surface| surface.figures.curve_share;
        "cpu_share", "1", "", "", |surface| surface.figures.curve_cpu_share;
    }
    LOAD: LoadFigures {
        "rate", "1/s", "rate", "load_rate", |load| load.promised();
        "saturated", "1/s", "", "load_saturated", |load| load.served_when_saturated();
    }
    SUSTAINED: SustainRecord {
        "lasting", "1/s", "", "sustained_iops", |found| &found.lasting;
        "fall_factor", "1", "", "sustained_fall_factor",
            |found| found.drop.as_ref().map(RateDrop::factor);
        "bytes_before_fall", "B", "", "sustained_bytes_before_fall",
            |found| found.drop.as_ref().map(|fall| fall.moved.bytes);
        "steady", "1", "", "sustained_steady", |found| u32::from(found.steady_state.is_steady);
    }
    BUCKET: BucketFigures {
        "bucket_base", "", "", "", |bucket| &bucket.base;
        "bucket_burst", "", "", "", |bucket| &bucket.burst;
        "bucket_refill", "ns", "", "", |bucket| &bucket.refill;
    }
    ACCEPTED: AcceptRecord {
        "verdict", "1", "", "accept_verdict", |test| verdict_value(test.figures.verdict);
        "claimed_size", "B", "", "accept_claimed_bytes", |test| test.data.plan.size_bytes;
        "real_size", "B", "", "accept_real_bytes", |test| test.figures.real_bytes;
        "written", "B", "", "accept_written_bytes", |test| test.data.writes.bytes;
        "read", "B", "", "accept_read_bytes", |test| test.data.reads.bytes;
        "wrong", "B", "", "accept_wrong_bytes", |test| test.data.bad_bytes.wrong();
        "unreadable", "B", "", "accept_unreadable_bytes", |test| test.data.bad_bytes.failed;
        "unwritable", "B", "", "accept_unwritable_bytes", |test| test.data.failed_writes_bytes;
    }
    ACCEPTED_RATE: RateByPosition {
        "throughput_min", "B/s", "min", "accept_bytes_per_second", |rate| rate.min;
        "throughput_max", "B/s", "max", "accept_bytes_per_second", |rate| rate.max;
        "throughput", "B/s", "average", "accept_bytes_per_second", |rate| rate.average;
    }
    BOUNDARY: RayBoundary {
        "reads", "1/s", "", "", |boundary| &boundary.reads;
        "writes", "1/s", "", "", |boundary| &boundary.writes;
        "write_cost", "1", "", "", |boundary| &boundary.write_cost;
    }
    BURST: Burst {
        "throughput", "B/s", "throughput", "burst_bytes_per_second", |burst| &burst.throughput;
    }
    ACCESS: SeekSummary {
        "latency_mean", "ns", "mean", "access_time_seconds", |seek| &seek.mean;
        "latency_min", "ns", "", "", |seek| seek.min_ns;
        "latency_p50", "ns", "p50", "", |seek| seek.p50_ns;
        "latency_max", "ns", "max", "access_time_max_seconds", |seek| seek.max_ns;
        "iops", "1/s", "iops", "", |seek| (seek.iops, seek.n);
    }
    SHORT_STROKE: ShortStroke {
        "gain", "1", "", "", |stroke| stroke.gain;
        "curve_throughput", "B/s", "", "", |stroke| stroke.throughput;
        "", "1/s", "", "short_stroke_iops", |stroke| &stroke.iops;
    }
    SCAN: Scan {
        "latency_p50", "ns", "", "", |scan| scan.latency_p50_ns;
        "slow_blocks", "1", "", "scan_slow_blocks", |scan| scan.slow_blocks;
        "unreadable_bytes", "B", "", "scan_unreadable_bytes", |scan| scan.unreadable_bytes;
    }
    FILE_STEP: FileStepRow {
        "wall_time", "ns", "", "", |row| row.data.wall_ns;
        "cpu_share", "1", "cpu", "", |row| row.cpu_share();
        "disk_read_bytes", "B", "", "", |row| row.data.disk.map(|moved| moved.read_bytes);
        "disk_write_bytes", "B", "", "", |row| row.data.disk.map(|moved| moved.write_bytes);
    }
    LAYER: LayerCost {
        "layer_own_time", "ns", "", "", |layer| &layer.own_time;
        "layer_share", "1", "", "", |layer| &layer.share;
        "layer_rate_change", "1", "", "", |layer| layer.rate_change.as_ref();
    }
    OBSERVED: ObservedDevice {
        "wall_time", "ns", "", "", |device| device.wall_ns;
        "queue_depth", "1", "", "", |device| device.queue_depth;
        "load_share", "1", "", "", |device| device.load_share;
    }
    OBSERVED_OPERATION: ObservedOps {
        "count", "1", "", "", |op| op.count;
        "iops", "1/s", "", "", |op| &op.iops;
        "throughput", "B/s", "", "", |op| &op.throughput;
        "latency_mean", "ns", "", "", |op| op.latency_mean_ns;
        "seek_share", "1", "", "", |op| op.seek_share;
    }
    MATRIX: SweepMatrix {
        "knee_depth", "1", "", "", |m| m.knee.as_ref().map(|knee| knee.depth);
        "knee_depth_low", "1", "", "", |m| m.knee.as_ref().map(|knee| knee.depth_low);
        "knee_depth_high", "1", "", "", |m| m.knee.as_ref().map(|knee| knee.depth_high);
        "bandwidth_limit", "B", "", "", |m| m.bandwidth_limit.as_ref().map(|b| b.block_bytes);
        "bandwidth_limit_low", "B", "", "",
            |m| m.bandwidth_limit.as_ref().map(|b| b.block_bytes_low);
        "bandwidth_limit_high", "B", "", "",
            |m| m.bandwidth_limit.as_ref().map(|b| b.block_bytes_high);
        "cost_base", "ns", "", "", |m| m.cost_model.map(|model| model.base_ns);
        "cost_request", "ns", "", "", |m| m.cost_model.map(|model| model.request_ns);
        "cost_throughput", "B/s", "", "", |m| m.cost_model.map(|model| model.bytes_per_second);
        "cost_error", "1", "", "", |m| m.cost_model.map(|model| model.model_error);
    }
    PREDICTED_CELL: SweepCell {
        "iops_predicted", "1/s", "", "", |cell| cell.iops.as_ref();
        "latency_mean_predicted", "ns", "", "", |cell| cell.latency_mean_ns;
    }
    SERVER_LOAD: LoadRow {
        "iops", "1/s", "iops", "iops", |load| &load.figures.iops;
        "wal_bytes_per_commit", "B", "", "", |load| load.figures.wal_bytes_per_commit;
        "latency_p50", "ns", "", "", |load| load.figures.latency_p50_ns;
        "latency_p99", "ns", "", "", |load| load.figures.latency_p99_ns;
        "latency_max", "ns", "", "", |load| load.figures.latency_max_ns;
        "iops_disk_alone", "1/s", "", "", |load| load.figures.own.as_ref().map(|own| &own.iops);
        "commits_per_sync", "1", "", "", |load| load.figures.commits_per_sync;
        "client_cpu_per_commit", "ns", "", "", |load| load.figures.client_cpu_ns;
    }
    TRIAL: TrialRow {
        "gain", "1", "", "", |step| step.figures.gain.as_ref();
        "disk_read_share", "1", "", "", |step| step.figures.read_share;
    }
    PROMISE: Promise {
        "promised", "", "", "promised*", |promise| promise.promised;
    }
    EXPECTATION: Expectation {
        "expected_result", "1", "", "expectation", |one| outcome_value(one);
        "", "", "", "expectation_observed*", |one| one.observed;
    }
    GRADE: UseGrade {
        "grade", "1", "", "grade", |fitness| fitness.range().map(grade_value);
    }
    LIMITED_FROM: GradeThresholds {
        "", "", "", "grade_threshold*", |fitness| fitness.limited_from;
    }
    GOOD_FROM: GradeThresholds {
        "", "", "", "grade_threshold*", |fitness| fitness.good_from;
    }
    AFTER_IDLE: IdlePoint {
        "latency_mean", "ns", "", "", |point| &point.mean;
        "latency_p50", "ns", "", "", |point| point.p50_ns;
        "latency_min", "ns", "", "", |point| point.min_ns;
        "latency_max", "ns", "", "", |point| point.max_ns;
        "slow_requests", "1", "", "", |point| point.slow;
    }
    REQUEST: SingleRequest {
        "request_failed", "ns", "", "",
            |one| one.error.is_some().then_some(one.latency_ns);
        "request_ignored", "ns", "", "",
            |one| (one.error.is_none() && one.ignored.is_some()).then_some(one.latency_ns);
        "request_latency", "ns", "", "", |one| one.counts().then_some(one.latency_ns);
    }
    CURVE_POINT: CurvePoint {
        "throughput_at", "B/s", "", "", |point| (point.bytes > 0).then_some(point.bytes_per_second);
    }
    CURVE_POINT_ERRORS: CurvePoint {
        "errors_at", "1", "", "", |point| (point.errors > 0).then_some(point.errors);
    }
    ACCESS_POINT: AccessPoint {
        "latency_at", "ns", "", "", |point| point.latency_ns;
    }
    SCAN_CELL: ScanCell {
        "latency_max_at", "ns", "", "", |cell| cell.latency_max_ns;
    }
    SLOW_BLOCK: SlowBlock {
        "slow_block_at", "ns", "", "", |block| block.latency_ns;
    }
    UNREADABLE: UnreadableRange {
        "unreadable_at", "B", "", "", |range| range.length_bytes;
    }
    CELL: CellOverTime {
        "iops_at", "1/s", "", "", |cell| cell.counts.ops as f64 / cell.length_s;
        "throughput_at", "B/s", "", "", |cell| cell.counts.bytes as f64 / cell.length_s;
        "latency_max_at", "ns", "", "", |cell| cell.counts.latency_max_ns;
    }
    HEALTH: DiskHealth {
        "", "1", "", "health_known", |d| u32::from(d.source.is_some());
        "", "1", "", "health_passed", |d| d.passed.map(u32::from);
        "", "1", "", "health_alarms", |d| d.source.as_ref().map(|_| d.alarms.len() as u64);
        "", "C", "", "health_temperature_celsius", |d| d.temperature_celsius.map(f64::from);
        "", "C", "", "health_temperature_limit_celsius",
            |d| d.temperature_limit_celsius.map(f64::from);
        "", "1", "", "health_endurance_used_ratio", |d| d.wear_percent.map(share);
        "", "1", "", "health_spare_ratio", |d| d.spare_percent.map(share);
        "", "1", "", "health_spare_threshold_ratio", |d| d.spare_threshold_percent.map(share);
        "", "s", "", "health_power_on_seconds", |d| d.power_on_hours.map(|h| h as f64 * 3600.0);
        "", "B", "", "health_written_bytes", |d| d.written_bytes;
        "", "1", "", "health_reallocated_sectors", |d| d.reallocated_sectors;
        "", "1", "", "health_pending_sectors", |d| d.pending_sectors;
        "", "1", "", "health_uncorrectable_sectors", |d| d.uncorrectable_sectors;
        "", "1", "", "health_media_errors", |d| d.media_errors;
        "", "1", "", "health_link_errors", |d| d.link_errors;
        "", "1", "", "health_unsafe_shutdowns", |d| d.unsafe_shutdowns;
    }
}

/// The verdict of an acceptance test: 1 accepted, 0 rejected, 0.5 neither.
fn verdict_value(verdict: AcceptVerdict) -> f64 {
    match verdict {
        AcceptVerdict::Accept => 1.0,
        AcceptVerdict::NoFraudFound | AcceptVerdict::Undecided => 0.5,
        AcceptVerdict::Reject => 0.0,
    }
}

/// The result of an expectation: 1 met, 0.5 undecided, 0 missed.
fn outcome_value(expectation: &Expectation) -> f64 {
    match expectation.outcome() {
        ExpectationOutcome::Met => 1.0,
        ExpectationOutcome::Undecided => 0.5,
        ExpectationOutcome::Missed => 0.0,
    }
}

/// A grade: 2 good, 1 limited, 0 poor. The mean of two where the interval reaches both.
fn grade_value(range: [Grade; 2]) -> f64 {
    let mut sum = 0.0;
    for grade in range {
        sum += match grade {
            Grade::Poor => 0.0,
            Grade::Limited => 1.0,
            Grade::Good => 2.0,
        };
    }
    sum / 2.0
}

/// A percentage as a share.
fn share(percent: u32) -> f64 {
    f64::from(percent) / 100.0
}
