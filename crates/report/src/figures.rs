//! A record as a list of figures, for tables and monitoring. Names and units are stable.

use diskproof_model::layers::{LayerCost, LayerDifference};
use diskproof_model::measurement::OpKind;
use diskproof_model::observed::ObservedDevice;
use diskproof_model::postgres::LoadRecord;
use diskproof_model::record::{
    Estimate, Expectation, ExpectationOutcome, FileStepRecord, LatencySummary, MeasurementRecord,
    OpRecord, PhaseKind, PhaseRecord, Record,
};
use diskproof_model::surface::{SeekPattern, SeekSummary, SurfaceRecord};
use diskproof_model::sweep::{CellState, SweepMatrix};
use diskproof_model::trial::TrialRecord;
use diskproof_model::verdict::Grade;

/// One figure.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct FigureRow {
    /// Index of its target.
    pub(crate) target: usize,
    /// The workload it belongs to, or the part of a survey: `curve`, `burst`, `access-random`,
    /// `scan`.
    pub(crate) workload: String,
    /// The kind of operation; empty for a figure of the whole workload.
    pub(crate) op: &'static str,
    /// Its name, such as `iops`.
    pub(crate) metric: &'static str,
    /// The figure.
    pub(crate) value: f64,
    /// Half of its 95 % interval.
    pub(crate) half_width_95: Option<f64>,
    /// The number of independent batches or events that it rests on.
    pub(crate) n: Option<u64>,
    /// Its unit: `1/s`, `B/s`, `ns`, `B`, `1`.
    pub(crate) unit: &'static str,
    /// Its position on the target.
    pub(crate) offset_bytes: Option<u64>,
    /// Distance from the previous access.
    pub(crate) distance_bytes: Option<u64>,
    /// Its time, in seconds after the start of the measured time.
    pub(crate) time_s: Option<f64>,
    /// The workloads that ran at the same time on the same target; empty if it ran alone.
    pub(crate) together_with: String,
}

/// Names of the workloads that ran together with this one, as one text.
pub(crate) fn concurrent_names(m: &MeasurementRecord) -> String {
    m.workload.together_with.join("; ")
}

impl FigureRow {
    fn with(self, metric: &'static str, value: f64, unit: &'static str) -> Self {
        Self {
            metric,
            value,
            unit,
            ..self
        }
    }

    fn estimated(self, metric: &'static str, estimate: &Estimate, unit: &'static str) -> Self {
        Self {
            half_width_95: estimate.half_width_95,
            n: Some(estimate.n),
            ..self.with(metric, estimate.value, unit)
        }
    }
}

/// All figures except single points: per workload, operation and part of a survey, and the grades.
pub(crate) fn figures(record: &Record) -> Vec<FigureRow> {
    let mut all: Vec<FigureRow> = record
        .measurements
        .iter()
        .flat_map(of_measurement)
        .collect();
    all.extend(record.surface.iter().flat_map(of_surface));
    let steps = record.files.iter().flat_map(|files| &files.steps);
    all.extend(steps.flat_map(of_step));
    let costs = record.layers.iter().flat_map(|layers| &layers.costs);
    all.extend(costs.flat_map(of_layer));
    all.extend(
        record
            .observed
            .iter()
            .flat_map(|observed| &observed.devices)
            .flat_map(of_device),
    );
    let matrices = record.sweep.iter().flat_map(|sweep| &sweep.matrices);
    all.extend(matrices.flat_map(of_matrix));
    if let Some(postgres) = &record.postgres {
        all.extend(postgres.loads.iter().flat_map(of_load));
        all.extend(postgres.trials.iter().flat_map(of_trial));
    }
    all.extend(record.expectations.iter().flat_map(of_expectation));
    for grade in record.verdict.iter().flat_map(|verdict| &verdict.grades) {
        let measurement = record.measurements.get(grade.measurement);
        let value = grade.grade.map(grade_value);
        all.extend(
            measurement
                .zip(value)
                .map(|(m, value)| of_workload(m).with("grade", value, "1")),
        );
    }
    all
}

/// INSERTs of a PostgreSQL server: `postgres-fdatasync-c4`.
fn of_load(of: &LoadRecord) -> Vec<FigureRow> {
    let whole = FigureRow {
        workload: format!("postgres-{}", of.load.name),
        op: "insert",
        ..FigureRow::default()
    };
    let mut all = vec![
        whole.clone().estimated("iops", &of.iops, "1/s"),
        whole
            .clone()
            .with("wal_bytes_per_commit", of.wal_bytes_per_commit, "B"),
    ];
    let latencies = [
        ("latency_p50", of.latency_p50_ns),
        ("latency_p99", of.latency_p99_ns),
        ("latency_max", of.latency_max_ns),
    ];
    for (metric, ns) in latencies {
        all.extend(ns.map(|ns| whole.clone().with(metric, ns as f64, "ns")));
    }
    let own = of.own.iter();
    all.extend(own.map(|own| whole.clone().estimated("iops_disk_alone", &own.iops, "1/s")));
    let shared = of.commits_per_sync;
    all.extend(shared.map(|count| whole.clone().with("commits_per_sync", count, "1")));
    all
}

/// A setting that a server tried: `postgres-tried-random_page_cost`.
fn of_trial(of: &TrialRecord) -> Vec<FigureRow> {
    let whole = FigureRow {
        workload: format!("postgres-tried-{}", of.trial.setting),
        n: Some(of.pairs.len() as u64),
        ..FigureRow::default()
    };
    let mut all = Vec::new();
    if let Some(gain) = &of.gain {
        all.push(FigureRow {
            half_width_95: Some((gain.high_95 - gain.low_95) / 2.0),
            ..whole.clone().with("gain", gain.value, "1")
        });
    }
    let share = of.read_share;
    all.extend(share.map(|share| whole.clone().with("disk_read_share", share, "1")));
    all
}

/// The observed load of a device: `observed-sda`.
fn of_device(device: &ObservedDevice) -> Vec<FigureRow> {
    let whole = FigureRow {
        target: device.target,
        workload: format!("observed-{}", device.name),
        ..FigureRow::default()
    };
    let mut all = vec![
        whole.clone().with("wall_time", device.wall_ns as f64, "ns"),
        whole.clone().with("queue_depth", device.queue_depth, "1"),
    ];
    let load = device.load_share;
    all.extend(load.map(|share| whole.clone().with("load_share", share, "1")));
    for (kind, op) in &device.ops {
        let row = FigureRow {
            op: kind.as_str(),
            ..whole.clone()
        };
        all.push(row.clone().with("count", op.count as f64, "1"));
        all.push(row.clone().estimated("iops", &op.iops, "1/s"));
        all.push(row.clone().estimated("throughput", &op.throughput, "B/s"));
        let latency = op.latency_mean_ns;
        all.extend(latency.map(|ns| row.clone().with("latency_mean", ns, "ns")));
        all.push(row.with("seek_share", op.seek_share, "1"));
    }
    all
}

/// A step on many small files: `create-random`.
fn of_step(of: &FileStepRecord) -> Vec<FigureRow> {
    let whole = FigureRow {
        workload: of.step.name(),
        op: of.step.operation.as_str(),
        ..FigureRow::default()
    };
    let mut all = vec![
        whole.clone().with("wall_time", of.wall_ns as f64, "ns"),
        whole.clone().with("cpu_share", of.cpu_share(), "1"),
    ];
    let disk = |metric, bytes: u64| whole.clone().with(metric, bytes as f64, "B");
    all.extend(of.disk.iter().flat_map(|moved| {
        [
            disk("disk_read_bytes", moved.read_bytes),
            disk("disk_write_bytes", moved.write_bytes),
        ]
    }));
    all.extend(of_operation(&whole, &of.figures));
    all
}

/// What a layer costs in a workload, against the layer below.
fn of_layer(of: &LayerCost) -> Vec<FigureRow> {
    let row = FigureRow {
        target: of.target,
        workload: of.workload.clone(),
        op: OpKind::Read.as_str(),
        ..FigureRow::default()
    };
    let with = |metric, difference: &LayerDifference, unit| FigureRow {
        half_width_95: difference.half_width_95,
        n: Some(difference.n),
        ..row.clone().with(metric, difference.difference, unit)
    };
    let mut all = vec![
        with("layer_own_time", &of.own_time, "ns"),
        with("layer_share", &of.share, "1"),
    ];
    let rate_change = of.rate_change.as_ref();
    all.extend(rate_change.map(|change| with("layer_rate_change", change, "1")));
    all
}

/// What was promised, and the result: 1 met, 0.5 undecided, 0 missed.
fn of_expectation(expectation: &Expectation) -> Vec<FigureRow> {
    let row = FigureRow {
        workload: expectation.expression.clone(),
        ..FigureRow::default()
    };
    let result = row
        .clone()
        .with("expected_result", expectation_value(expectation), "1");
    let Some(promise) = &expectation.promise else {
        return vec![result];
    };
    let unit = match promise.unit.as_str() {
        "B/s" => "B/s",
        "ns" => "ns",
        "rpm" => "rpm",
        _ => "1/s",
    };
    vec![row.with("promised", promise.promised, unit), result]
}

/// The result of an expectation as a number: 1 met, 0.5 undecided, 0 missed.
pub(crate) fn expectation_value(expectation: &Expectation) -> f64 {
    match expectation.outcome() {
        ExpectationOutcome::Met => 1.0,
        ExpectationOutcome::Undecided => 0.5,
        ExpectationOutcome::Missed => 0.0,
    }
}

/// A grade as a number: 2 good, 1 limited, 0 poor.
pub(crate) fn grade_value(grade: Grade) -> f64 {
    match grade {
        Grade::Poor => 0.0,
        Grade::Limited => 1.0,
        Grade::Good => 2.0,
    }
}

/// A row of a workload, before it has a figure.
fn of_workload(m: &MeasurementRecord) -> FigureRow {
    FigureRow {
        target: m.target,
        workload: m.workload.name.clone(),
        together_with: concurrent_names(m),
        ..FigureRow::default()
    }
}

fn of_measurement(m: &MeasurementRecord) -> Vec<FigureRow> {
    let whole = of_workload(m);
    let mut all = vec![
        whole.clone().with("wall_time", m.wall_ns as f64, "ns"),
        whole
            .clone()
            .with("steady_time", m.steady_ns() as f64, "ns"),
        whole.clone().with("cpu_share", m.cpu_share(), "1"),
        whole.clone().with("achieved_depth", m.achieved_depth, "1"),
    ];
    all.extend(
        m.device
            .accounted
            .map(|share| whole.clone().with("accounted", share, "1")),
    );
    for (kind, op) in &m.ops {
        all.extend(of_operation(
            &FigureRow {
                op: kind.as_str(),
                ..whole.clone()
            },
            op,
        ));
    }
    all.extend(m.phases.iter().flat_map(|phase| of_phase(m, &whole, phase)));
    all
}

/// The figures of a phase, at the time of its start.
fn of_phase(m: &MeasurementRecord, whole: &FigureRow, phase: &PhaseRecord) -> Vec<FigureRow> {
    let [duration, iops, p50, p99] = match phase.name {
        PhaseKind::Settling => SETTLING_METRICS,
        PhaseKind::Burst => BURST_METRICS,
        PhaseKind::FirstWrite => FIRST_WRITE_METRICS,
        PhaseKind::Steady => STEADY_METRICS,
    };
    let whole = FigureRow {
        time_s: Some((phase.start_ns as f64 - m.start_ns as f64) / 1e9),
        ..whole.clone()
    };
    let length_ns = phase.end_ns.saturating_sub(phase.start_ns);
    let mut all = vec![whole.clone().with(duration, length_ns as f64, "ns")];
    for (kind, op) in &phase.ops {
        let of_kind = FigureRow {
            op: kind.as_str(),
            ..whole.clone()
        };
        all.push(of_kind.clone().estimated(iops, &op.rate, "1/s"));
        let percentiles = [(p50, op.latency.p50), (p99, op.latency.p99)];
        all.extend(
            percentiles
                .into_iter()
                .filter_map(|(metric, ns)| Some(of_kind.clone().with(metric, ns? as f64, "ns"))),
        );
    }
    all
}

const SETTLING_METRICS: [&str; 4] = [
    "phase_settling_time",
    "phase_settling_iops",
    "phase_settling_latency_p50",
    "phase_settling_latency_p99",
];
const BURST_METRICS: [&str; 4] = [
    "phase_burst_time",
    "phase_burst_iops",
    "phase_burst_latency_p50",
    "phase_burst_latency_p99",
];
const FIRST_WRITE_METRICS: [&str; 4] = [
    "phase_first_write_time",
    "phase_first_write_iops",
    "phase_first_write_latency_p50",
    "phase_first_write_latency_p99",
];
const STEADY_METRICS: [&str; 4] = [
    "phase_steady_time",
    "phase_steady_iops",
    "phase_steady_latency_p50",
    "phase_steady_latency_p99",
];

fn of_operation(whole: &FigureRow, op: &OpRecord) -> Vec<FigureRow> {
    let mut all = vec![
        whole.clone().with("operations", op.count as f64, "1"),
        whole.clone().with("bytes", op.bytes as f64, "B"),
        whole
            .clone()
            .with("errors", op.errors.values().sum::<u64>() as f64, "1"),
        whole.clone().estimated("iops", &op.iops, "1/s"),
        whole.clone().estimated("throughput", &op.throughput, "B/s"),
    ];
    let whole = &FigureRow {
        n: Some(op.count),
        ..whole.clone()
    };
    if op.count > 0 {
        all.extend(of_latency(whole, &op.latency, &LATENCY_METRICS));
        all.extend(
            op.latency_intended
                .iter()
                .flat_map(|intended| of_latency(whole, intended, &INTENDED_METRICS)),
        );
    }
    all
}

const LATENCY_METRICS: [&str; 8] = [
    "latency_mean",
    "latency_min",
    "latency_p50",
    "latency_p90",
    "latency_p99",
    "latency_p99.9",
    "latency_p99.99",
    "latency_max",
];
const INTENDED_METRICS: [&str; 8] = [
    "latency_intended_mean",
    "latency_intended_min",
    "latency_intended_p50",
    "latency_intended_p90",
    "latency_intended_p99",
    "latency_intended_p99.9",
    "latency_intended_p99.99",
    "latency_intended_max",
];

/// The figures of a distribution; unknown percentiles have none.
fn of_latency(
    whole: &FigureRow,
    l: &LatencySummary,
    metrics: &[&'static str; 8],
) -> Vec<FigureRow> {
    let ns = |value: u64| Some(value as f64);
    let percentile = |value: Option<u64>| value.map(|ns| ns as f64);
    let percentiles = [l.p50, l.p90, l.p99, l.p99_9, l.p99_99].map(percentile);
    let values = [Some(l.mean), ns(l.min)]
        .into_iter()
        .chain(percentiles)
        .chain([ns(l.max)]);
    metrics
        .iter()
        .zip(values)
        .filter_map(|(metric, value)| Some(whole.clone().with(metric, value?, "ns")))
        .collect()
}

/// What follows from the matrix of a sweep, and what its cost model predicts.
fn of_matrix(matrix: &SweepMatrix) -> Vec<FigureRow> {
    let part = |workload: String| FigureRow {
        workload,
        ..FigureRow::default()
    };
    let whole = part(format!("sweep-{}", matrix.operation.as_str()));
    let mut all = Vec::new();
    let mut add = |metric, value: f64, unit| all.push(whole.clone().with(metric, value, unit));
    if let Some(knee) = &matrix.knee {
        add("knee_depth", f64::from(knee.depth), "1");
        add("knee_depth_low", f64::from(knee.depth_low), "1");
        if let Some(high) = knee.depth_high {
            add("knee_depth_high", f64::from(high), "1");
        }
    }
    if let Some(limit) = &matrix.bandwidth_limit {
        add("bandwidth_limit", f64::from(limit.block_bytes), "B");
        add("bandwidth_limit_low", f64::from(limit.block_bytes_low), "B");
        if let Some(high) = limit.block_bytes_high {
            add("bandwidth_limit_high", f64::from(high), "B");
        }
    }
    if let Some(model) = &matrix.cost_model {
        add("cost_base", model.base_ns, "ns");
        add("cost_request", model.request_ns, "ns");
        add("cost_throughput", model.bytes_per_second, "B/s");
        add("cost_error", model.model_error, "1");
    }
    for cell in matrix
        .cells
        .iter()
        .filter(|cell| cell.state == CellState::Predicted)
    {
        let row = part(matrix.operation.cell_name(cell.block_bytes, cell.depth));
        let iops = cell.iops.iter();
        all.extend(iops.map(|iops| row.clone().estimated("iops_predicted", iops, "1/s")));
        let mean = cell.latency_mean_ns.iter();
        all.extend(mean.map(|ns| row.clone().with("latency_mean_predicted", *ns, "ns")));
    }
    all
}

fn of_surface(s: &SurfaceRecord) -> Vec<FigureRow> {
    let part = |workload: &str| FigureRow {
        target: s.target,
        workload: workload.to_owned(),
        op: s.operation.as_str(),
        ..FigureRow::default()
    };
    let mut all = Vec::new();
    if let Some(rate) = &s.rate {
        all.push(part("curve").with("throughput_min", rate.min, "B/s"));
        all.push(part("curve").with("throughput_max", rate.max, "B/s"));
        all.push(part("curve").estimated("throughput", &rate.average, "B/s"));
        all.push(part("curve").with("bytes", s.curve_bytes as f64, "B"));
        all.push(part("curve").with("share_of_span", s.curve_share, "1"));
        all.push(part("curve").with("cpu_share", s.curve_cpu_share, "1"));
    }
    all.extend(
        s.burst
            .iter()
            .map(|burst| part("burst").estimated("throughput", &burst.throughput, "B/s")),
    );
    for (seek, summary) in &s.seeks {
        all.extend(of_seek(&part(&access_name(*seek)), summary));
    }
    for stroke in &s.short_strokes {
        let whole = part(&format!("short-stroke-{}", stroke.percent));
        all.push(whole.clone().with("gain", stroke.gain, "1"));
        all.extend(
            stroke
                .throughput
                .map(|rate| whole.with("curve_throughput", rate, "B/s")),
        );
    }
    if let Some(scan) = &s.scan {
        all.push(FigureRow {
            n: Some(scan.blocks),
            ..part("scan").with("latency_p50", scan.latency_p50_ns as f64, "ns")
        });
        all.push(part("scan").with("slow_blocks", scan.slow_blocks as f64, "1"));
        all.push(part("scan").with("unreadable_bytes", scan.unreadable_bytes as f64, "B"));
    }
    all
}

/// `access-track-to-track`
fn access_name(seek: SeekPattern) -> String {
    format!("access-{}", seek.as_str().replace(' ', "-"))
}

fn of_seek(whole: &FigureRow, seek: &SeekSummary) -> Vec<FigureRow> {
    vec![
        whole.clone().estimated("latency_mean", &seek.mean, "ns"),
        whole.clone().with("latency_min", seek.min_ns as f64, "ns"),
        whole.clone().with("latency_p50", seek.p50_ns as f64, "ns"),
        whole.clone().with("latency_max", seek.max_ns as f64, "ns"),
        FigureRow {
            n: Some(seek.n),
            ..whole.clone().with("iops", seek.iops, "1/s")
        },
    ]
}

/// Single points: of the curve, of accesses, of a scan, and of each workload over time.
pub(crate) fn points(record: &Record) -> Vec<FigureRow> {
    let target = record.surface.as_ref().map_or(0, |surface| surface.target);
    let op = record
        .surface
        .as_ref()
        .map_or(OpKind::Read, |surface| surface.operation)
        .as_str();
    let place = |workload: String, offset: u64| FigureRow {
        target,
        op,
        workload,
        offset_bytes: Some(offset),
        ..FigureRow::default()
    };
    let mut all = Vec::new();
    for p in record.curve.iter().filter(|p| p.bytes > 0) {
        all.push(place("curve".to_owned(), p.offset_bytes).with(
            "throughput_at",
            p.bytes_per_second,
            "B/s",
        ));
    }
    for p in record.curve.iter().filter(|p| p.errors > 0) {
        all.push(place("curve".to_owned(), p.offset_bytes).with("errors_at", p.errors as f64, "1"));
    }
    for p in &record.access {
        let point = place(access_name(p.seek), p.offset_bytes).with(
            "latency_at",
            p.latency_ns as f64,
            "ns",
        );
        all.push(FigureRow {
            distance_bytes: Some(p.distance_bytes),
            ..point
        });
    }
    if let Some(scan) = record
        .surface
        .as_ref()
        .and_then(|surface| surface.scan.as_ref())
    {
        let at = |offset| place("scan".to_owned(), offset);
        all.extend(scan.map.iter().map(|cell| {
            at(cell.offset_bytes).with("latency_max_at", cell.latency_max_ns as f64, "ns")
        }));
        all.extend(scan.slow.iter().map(|block| {
            at(block.offset_bytes).with("slow_block_at", block.latency_ns as f64, "ns")
        }));
        all.extend(scan.unreadable.iter().map(|range| {
            at(range.offset_bytes).with("unreadable_at", range.length_bytes as f64, "B")
        }));
    }
    all.extend(record.measurements.iter().flat_map(over_time));
    all
}

fn over_time(m: &MeasurementRecord) -> Vec<FigureRow> {
    let mut all = Vec::new();
    for (kind, op) in m.headline_ops() {
        let whole = FigureRow {
            op: kind.as_str(),
            ..of_workload(m)
        };
        for (at, seconds, cell) in m.cells_over_time(op) {
            let at = |metric, value, unit| FigureRow {
                time_s: Some(at),
                ..whole.clone().with(metric, value, unit)
            };
            all.push(at("iops_at", cell.ops as f64 / seconds, "1/s"));
            all.push(at("throughput_at", cell.bytes as f64 / seconds, "B/s"));
            all.push(at("latency_max_at", cell.latency_max_ns as f64, "ns"));
        }
    }
    all
}
