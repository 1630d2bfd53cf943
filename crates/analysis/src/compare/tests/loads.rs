//! Observed loads: they have ratios, and no side is better.

use super::*;
use diskproof_model::observed::{ObservedDevice, ObservedOps, ObservedRecord};
use diskproof_model::record::Estimate;
use diskproof_model::series::TimeSeries;

fn ops(rate: f64) -> ObservedOps {
    let estimate = |value: f64, unit: &str| Estimate {
        n: 10,
        value,
        half_width_95: Some(value * 0.05),
        unit: unit.to_owned(),
    };
    ObservedOps {
        count: rate as u64 * 10,
        bytes: rate as u64 * 81_920,
        merges: 0,
        iops: estimate(rate, "1/s"),
        throughput: estimate(rate * 8192.0, "B/s"),
        latency_mean_ns: Some(1e6),
        seek_share: 0.5,
        sizes: Vec::new(),
        series: TimeSeries::new(1_000_000_000),
    }
}

/// A record of one device with these rates; no reads or writes at a rate of 0.
fn observed(name: &str, reads: f64, writes: f64) -> Record {
    let directions = [(OpKind::Read, reads), (OpKind::Write, writes)];
    let directions = directions.into_iter().filter(|(_, rate)| *rate > 0.0);
    let mut record = fixture::record();
    record.measurements.clear();
    record
        .results
        .push(TaskResult::Observed(Box::new(ObservedRecord {
            interval_ns: 1_000_000_000,
            devices: vec![ObservedDevice {
                target: 0,
                name: name.to_owned(),
                wall_ns: 10_000_000_000,
                ops: directions.map(|(kind, rate)| (kind, ops(rate))).collect(),
                flush_ops: None,
                queue_depth: 1.5,
                queue_depth_max: 3.0,
                seeks: None,
                processes: Vec::new(),
                capacity: None,
                load_share: None,
            }],
            hidden: Vec::new(),
            server: None,
        })));
    record
}

#[test]
fn loads_have_ratios_and_neither_is_better() {
    let (a, b) = (observed("sda", 100.0, 400.0), observed("sda", 250.0, 40.0));
    let candidate = held(&[&a], &[&b]);
    let reads = metric(&candidate, "sda.read.iops");
    assert!((reads.ratio.unwrap().value - 2.5).abs() < 1e-9);
    assert_all(&candidate, Verdict::Observed);
    assert_eq!(candidate.headline.observed_loads, 2);
    states(
        &candidate.summary,
        &["2.5 times", "reads on sda", "0.10 times", "writes on sda"],
    );
    let differs: Vec<&str> = candidate
        .differences
        .iter()
        .map(|d| d.what.as_str())
        .collect();
    assert_eq!(differs, ["reads"]);
    assert!(!candidate.notes.join("\n").contains("faster-once"));
}

#[test]
fn only_device_of_each_side_is_compared_whatever_its_name() {
    let (a, b) = (observed("sda", 100.0, 0.0), observed("nvme0n1", 200.0, 5.0));
    let candidate = held(&[&a], &[&b]);
    let expected =
        ["iops", "throughput", "mean"].map(|figure| format!("sda and nvme0n1.read.{figure}"));
    assert_eq!(names(&candidate), expected);
    assert_eq!(candidate.unmatched.len(), 1);
    assert_eq!(candidate.unmatched[0].subject, "writes of sda and nvme0n1");
}
