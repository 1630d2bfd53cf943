//! A record as metrics for Prometheus: valid in its own format (0.0.4, which node_exporter's textfile
//! collector reads) and in OpenMetrics 1.0. Names and labels are stable. Collectors drop a whole file
//! for one duplicate series, so every series is written once.

mod family;
mod health;

use crate::figures::{company, grade_value};
use crate::format::{Format, OutputFile, Requires};
use diskproof_model::finding::Severity;
use diskproof_model::record::{LatencySummary, MeasurementRecord, OpRecord, Record};
use diskproof_model::verdict::TrustLevel;
use family::{Labels, MetricFamily, MetricSample, gauge, with, write_family};
use health::of_health;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The format.
pub const FORMAT: Format = Format {
    extension: ".prom",
    description: "metrics for node_exporter's textfile collector",
    requires: Requires::Nothing,
    record: |record, path| vec![OutputFile::new(path, move |out| write_record(record, out))],
    comparison: None,
    identity: None,
};

/// Writes all metrics.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let mut families = of_run(record);
    families.extend(of_workloads(record));
    families.extend(of_surface(record));
    families.extend(of_health(record));
    families
        .iter()
        .filter(|family| !family.samples.is_empty())
        .try_for_each(|family| write_family(family, out))?;
    writeln!(out, "# EOF")
}

fn of_run(record: &Record) -> Vec<MetricFamily> {
    let start = record
        .started
        .parse::<jiff::Timestamp>()
        .map_or(f64::NAN, |time| time.as_second() as f64);
    let diskproof_model::plan::Origin::Native { verb, .. } = &record.plan.origin;
    let info = vec![
        ("run_id", record.run_id.clone()),
        ("version", record.tool.version.clone()),
        ("verb", verb.clone()),
        ("host", record.host.name.clone()),
    ];
    let severities = [
        (Severity::Failure, "failure"),
        (Severity::Warning, "warning"),
        (Severity::Note, "note"),
    ];
    let count = |severity| {
        record
            .findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count() as f64
    };
    let findings =
        severities.map(|(severity, name)| (vec![("severity", name.to_owned())], count(severity)));
    let missed = record
        .expectations
        .iter()
        .filter(|expectation| !expectation.met)
        .count() as f64;
    let found = record
        .findings
        .iter()
        .map(|finding| (vec![("code", finding.code.clone())], 1.0));
    vec![
        gauge(
            "diskproof_run_timestamp_seconds",
            "Start of the run, in seconds since the epoch.",
            vec![(Vec::new(), start)],
        ),
        gauge(
            "diskproof_run_info",
            "Identity of the run; always 1.",
            vec![(info, 1.0)],
        ),
        gauge(
            "diskproof_run_partial",
            "1 if the run ended early.",
            vec![(Vec::new(), f64::from(u8::from(record.partial)))],
        ),
        gauge(
            "diskproof_findings",
            "Number of findings by severity.",
            findings.to_vec(),
        ),
        gauge(
            "diskproof_finding",
            "1 for each finding, by its code.",
            found.collect(),
        ),
        gauge(
            "diskproof_grade",
            "Grade of the verdict: 2 good, 1 limited, 0 poor; no series where not graded.",
            grades(record),
        ),
        gauge(
            "diskproof_reliable",
            "1 if no finding concerns the figures, 0.5 if a warning does, 0 if a failure does.",
            reliable(record),
        ),
        gauge(
            "diskproof_expectations_missed",
            "Missed thresholds.",
            vec![(Vec::new(), missed)],
        ),
    ]
}

fn grades(record: &Record) -> Vec<(Labels, f64)> {
    let mut samples = Vec::new();
    for grade in record.verdict.iter().flat_map(|verdict| &verdict.grades) {
        let target = record
            .measurements
            .get(grade.measurement)
            .map_or(0, |m| m.target);
        let labels = with(&target_labels(record, target), "use", &grade.name);
        samples.extend(grade.grade.map(|grade| (labels, grade_value(grade))));
    }
    samples
}

fn reliable(record: &Record) -> Vec<(Labels, f64)> {
    let level = record.verdict.as_ref().map(|verdict| verdict.trust.level);
    let value = level.map(|level| match level {
        TrustLevel::Reliable => 1.0,
        TrustLevel::Doubtful => 0.5,
        TrustLevel::Unreliable => 0.0,
    });
    value.map(|value| (Vec::new(), value)).into_iter().collect()
}

/// The labels of a target.
fn target_labels(record: &Record, target: usize) -> Labels {
    let identity = record.targets.get(target);
    let serial = identity.and_then(|identity| identity.disks().next()?.serial.clone());
    vec![
        (
            "target",
            identity
                .map(|identity| identity.path.clone())
                .unwrap_or_default(),
        ),
        ("serial", serial.unwrap_or_default()),
    ]
}

/// Each measurement with its labels; a repeated name on the same target gets a number.
fn labelled(record: &Record) -> Vec<(Labels, &MeasurementRecord)> {
    let mut seen: BTreeMap<(usize, &str), usize> = BTreeMap::new();
    let mut all = Vec::new();
    for m in &record.measurements {
        let count = seen.entry((m.target, &m.workload.name)).or_insert(0);
        *count += 1;
        let name = if *count == 1 {
            m.workload.name.clone()
        } else {
            format!("{} ({count})", m.workload.name)
        };
        let labels = with(&target_labels(record, m.target), "workload", &name);
        // No label where it ran alone.
        all.push((with(&labels, "together_with", &company(m)), m));
    }
    all
}

fn of_workloads(record: &Record) -> Vec<MetricFamily> {
    let measurements = labelled(record);
    let per_op = |figure: &dyn Fn(&OpRecord) -> Option<f64>| -> Vec<(Labels, f64)> {
        let ops = measurements.iter().flat_map(|(labels, m)| {
            m.ops
                .iter()
                .map(move |(kind, op)| (with(labels, "op", kind.as_str()), op))
        });
        ops.filter_map(|(labels, op)| Some((labels, figure(op)?)))
            .collect()
    };
    let per_workload = |figure: &dyn Fn(&MeasurementRecord) -> Option<f64>| -> Vec<(Labels, f64)> {
        measurements
            .iter()
            .filter_map(|(labels, m)| Some((labels.clone(), figure(m)?)))
            .collect()
    };
    let errors = |op: &OpRecord| Some(op.errors.values().sum::<u64>() as f64);
    vec![
        gauge(
            "diskproof_iops",
            "Operations per second.",
            per_op(&|op| Some(op.iops.value)),
        ),
        gauge(
            "diskproof_iops_half_width",
            "Half of the 95 % interval of diskproof_iops.",
            per_op(&|op| op.iops.half_width_95),
        ),
        gauge(
            "diskproof_throughput_bytes_per_second",
            "Bytes moved per second.",
            per_op(&|op| Some(op.throughput.value)),
        ),
        latency(
            "diskproof_latency_seconds",
            "Latency from before the submission to the completion.",
            &measurements,
            |op| Some(&op.latency),
        ),
        gauge(
            "diskproof_latency_max_seconds",
            "Longest latency.",
            per_op(&|op| (op.count > 0).then_some(op.latency.max as f64 / 1e9)),
        ),
        latency(
            "diskproof_latency_intended_seconds",
            "Latency from the intended start, under an offered load.",
            &measurements,
            |op| op.latency_intended.as_ref(),
        ),
        gauge("diskproof_errors", "Failed operations.", per_op(&errors)),
        gauge(
            "diskproof_cpu_ratio",
            "CPU time of the program over wall time; 1 is one processor.",
            per_workload(&|m| Some(m.cpu_share())),
        ),
        gauge(
            "diskproof_accounted_ratio",
            "Bytes moved by the disks over bytes requested.",
            per_workload(&|m| m.device.accounted),
        ),
    ]
}

/// A summary: its quantiles, how many there were, and their sum.
fn latency(
    name: &'static str,
    help: &'static str,
    measurements: &[(Labels, &MeasurementRecord)],
    pick: impl Fn(&OpRecord) -> Option<&LatencySummary>,
) -> MetricFamily {
    let mut samples: Vec<MetricSample> = Vec::new();
    for (labels, m) in measurements {
        for (kind, op) in m.ops.iter().filter(|(_, op)| op.count > 0) {
            let (labels, Some(l)) = (with(labels, "op", kind.as_str()), pick(op)) else {
                continue;
            };
            let quantiles = [
                ("0.5", l.p50),
                ("0.9", l.p90),
                ("0.99", l.p99),
                ("0.999", l.p99_9),
                ("0.9999", l.p99_99),
            ];
            let known = quantiles
                .iter()
                .filter_map(|(quantile, ns)| Some((quantile, (*ns)?)));
            samples.extend(
                known.map(|(quantile, ns)| {
                    ("", with(&labels, "quantile", quantile), ns as f64 / 1e9)
                }),
            );
            samples.push(("_sum", labels.clone(), l.mean * op.count as f64 / 1e9));
            samples.push(("_count", labels, op.count as f64));
        }
    }
    MetricFamily {
        name,
        kind: "summary",
        help,
        samples,
    }
}

fn of_surface(record: &Record) -> Vec<MetricFamily> {
    let Some(surface) = &record.surface else {
        return Vec::new();
    };
    let labels = with(
        &target_labels(record, surface.target),
        "op",
        surface.operation.as_str(),
    );
    let rates = surface.rate.iter().flat_map(|rate| {
        [
            ("min", rate.min),
            ("average", rate.average.value),
            ("max", rate.max),
        ]
    });
    let seeks =
        |figure: &dyn Fn(&diskproof_model::surface::SeekSummary) -> f64| -> Vec<(Labels, f64)> {
            surface
                .seeks
                .iter()
                .map(|(seek, summary)| (with(&labels, "seek", seek.as_str()), figure(summary)))
                .collect()
        };
    let scan = |figure: &dyn Fn(&diskproof_model::surface::Scan) -> f64| -> Vec<(Labels, f64)> {
        surface
            .scan
            .iter()
            .map(|scan| (labels.clone(), figure(scan)))
            .collect()
    };
    let burst = surface
        .burst
        .iter()
        .map(|burst| (labels.clone(), burst.throughput.value));
    let strokes = surface.short_strokes.iter().map(|stroke| {
        (
            with(&labels, "percent", &stroke.percent.to_string()),
            stroke.iops.value,
        )
    });
    vec![
        gauge(
            "diskproof_curve_bytes_per_second",
            "Transfer rate by position: min, average and max.",
            rates
                .map(|(figure, value)| (with(&labels, "figure", figure), value))
                .collect(),
        ),
        gauge(
            "diskproof_burst_bytes_per_second",
            "Rate of repeated reads of the same bytes.",
            burst.collect(),
        ),
        gauge(
            "diskproof_access_time_seconds",
            "Mean access time by seek pattern.",
            seeks(&|seek| seek.mean.value / 1e9),
        ),
        gauge(
            "diskproof_access_time_max_seconds",
            "Longest access time by seek pattern.",
            seeks(&|seek| seek.max_ns as f64 / 1e9),
        ),
        gauge(
            "diskproof_short_stroke_iops",
            "Random reads per second within the first part of the disk.",
            strokes.collect(),
        ),
        gauge(
            "diskproof_scan_slow_blocks",
            "Slow blocks.",
            scan(&|scan| scan.slow_blocks as f64),
        ),
        gauge(
            "diskproof_scan_unreadable_bytes",
            "Unreadable bytes.",
            scan(&|scan| scan.unreadable_bytes as f64),
        ),
    ]
}
