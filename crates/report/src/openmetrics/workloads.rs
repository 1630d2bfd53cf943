//! Metrics of the measurements, by workload and operation.

use super::family::{Labels, MetricFamily, MetricSample, gauge, target_labels, with};
use crate::figures::concurrent_names;
use diskproof_model::record::{LatencySummary, MeasurementRecord, OpRecord, Record};
use std::collections::BTreeMap;

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
        // Without the label if it ran alone.
        all.push((with(&labels, "together_with", &concurrent_names(m)), m));
    }
    all
}

fn limits(measurements: &[(Labels, &MeasurementRecord)]) -> MetricFamily {
    let known = measurements.iter().filter_map(|(labels, m)| {
        let limit = m.limited_by.as_ref()?.limit;
        Some((with(labels, "limit", limit.as_str()), 1.0))
    });
    gauge(
        "diskproof_limited_by",
        "1 for what limited the rate of a workload.",
        known.collect(),
    )
}

pub(super) fn of_workloads(record: &Record) -> Vec<MetricFamily> {
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
        limits(&measurements),
        gauge(
            "diskproof_iops",
            "Operations per second.",
            per_op(&|op| (!op.iops.is_unknown()).then_some(op.iops.value)),
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
        gauge(
            "diskproof_phase_iops",
            "Operations per second in a phase; the other figures are those of the last phase.",
            phase_rates(&measurements),
        ),
        gauge("diskproof_errors", "Failed operations.", per_op(&errors)),
        gauge(
            "diskproof_cpu_ratio",
            "CPU time of the program over the time of the figures; 1 is one processor.",
            per_workload(&|m| Some(m.cpu_share())),
        ),
        gauge(
            "diskproof_accounted_ratio",
            "Bytes moved by the disks over bytes requested.",
            per_workload(&|m| m.device.accounted),
        ),
    ]
}

/// The rate of each phase, where a measurement has several.
fn phase_rates(measurements: &[(Labels, &MeasurementRecord)]) -> Vec<(Labels, f64)> {
    let mut samples = Vec::new();
    for (labels, m) in measurements {
        for phase in &m.phases {
            let labels = with(labels, "phase", phase.name.as_str());
            for (kind, op) in &phase.ops {
                samples.push((with(&labels, "op", kind.as_str()), op.rate.value));
            }
        }
    }
    samples
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
        name: name.to_owned(),
        kind: "summary",
        help,
        samples,
    }
}
