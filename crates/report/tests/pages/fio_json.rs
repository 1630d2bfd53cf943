//! fio's JSON: compared with the output of the real fio, and valid for records of any content.

use crate::{RECORDS, fixture, is_harmless, written};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::measurement::{OpKind, PerOp};
use diskproof_model::record::Record;
use diskproof_model::row::LatencySummary;
use diskproof_model::series::{Cell, TimeSeries};
use diskproof_model::window::TimeSlice;
use diskproof_report::fio_json;
use proptest::prelude::*;
use serde_json::Value;
use std::process::Command;
use std::sync::LazyLock;

fn text(record: &Record) -> String {
    written(|out| fio_json::write_record(record, out))
}

fn document(record: &Record) -> Value {
    serde_json::from_str(&text(record)).expect("fio's JSON is JSON")
}

/// A slice of a row from `start_ms` on.
fn slice_at(start_ms: u64) -> TimeSlice {
    TimeSlice {
        start_ns: start_ms * 1_000_000,
        wall_ns: 500_000_000,
        ops: PerOp::new(),
        slot: None,
    }
}

/// Two targets on one disk were measured at the same instants, in slices that alternate with those
/// of another workload: each of their rows has the requests of both.
#[test]
fn disk_counts_requests_of_targets_in_the_same_slices_once() {
    let mut record = fixture::every_severity();
    record.measurements.truncate(3);
    for (row, (target, start_ms, read_ops)) in std::iter::zip(
        &mut record.measurements,
        [(0, 0, 700), (1, 0, 690), (0, 500, 20)],
    ) {
        row.data.target = target;
        row.data.device.disks = vec!["vda".to_owned()];
        row.data.device.unresolved = None;
        row.data.device.read_ops = read_ops;
        row.data.slices = vec![slice_at(start_ms), slice_at(start_ms + 1000)];
    }
    let disks = &document(&record)["disk_util"];
    assert_eq!(disks[0]["name"], "vda");
    assert_eq!(disks[0]["read_ios"], 720);
}

/// Latencies of few values, so that a person can check the document.
fn known_latency() -> LatencyHistogram {
    let mut latency = LatencyHistogram::new();
    for (ns, n) in [
        (90_000, 100),
        (104_960, 800),
        (250_000, 95),
        (20_000_000, 5),
    ] {
        latency.record_many(ns, n);
    }
    latency
}

/// Built once: the fixture's histograms take time.
static KNOWN: LazyLock<Record> = LazyLock::new(known_record);

/// Commits and a mix, of which each cell is known.
fn known() -> Record {
    KNOWN.clone()
}

fn known_record() -> Record {
    let mut record = fixture::every_severity();
    record.measurements.drain(..6);
    record.findings[0].evidence[0].path = "/measurements/0/data/device/accounted".to_owned();
    record.findings[1].evidence[0].path = "/measurements/1/data/device/others".to_owned();
    for measurement in &mut record.measurements {
        measurement.data.device.disks = vec!["vda".to_owned()];
        (
            measurement.data.device.read_bytes,
            measurement.data.device.write_bytes,
        ) = (1 << 20, 2 << 20);
        (
            measurement.data.device.read_ops,
            measurement.data.device.write_ops,
        ) = (128, 256);
        for op in measurement.figures.ops.values_mut() {
            op.latency = LatencySummary::from_histogram(&known_latency());
        }
        for op in measurement.data.ops.values_mut() {
            op.latency = known_latency();
            op.series = TimeSeries::new(100_000_000);
            for index in 0..70 {
                let cell = Cell {
                    ops: 100 + index % 10,
                    bytes: 819_200,
                    ..Cell::default()
                };
                op.series.add(index * 100_000_000, &cell, 100);
            }
        }
    }
    record
}

#[test]
fn fio_json_of_a_check_snapshot() {
    insta::assert_snapshot!("fio_json", text(&known()));
}

#[test]
fn fio_json_figures_equal_the_record() {
    for (name, record) in &*RECORDS {
        let document = document(record);
        let jobs = document["jobs"].as_array().unwrap();
        for (m, job) in record.measurements.iter().zip(jobs) {
            for (kind, op) in m.ops().filter(|(kind, _)| *kind != OpKind::Commit) {
                let direction = &job[kind.as_str()];
                let latency = &direction["lat_ns"];
                assert_eq!(direction["total_ios"], op.data.count, "{name}");
                assert_eq!(latency["min"], op.figures.latency.min, "{name}");
                assert_eq!(latency["max"], op.figures.latency.max, "{name}");
                let bins = latency["bins"].as_object().unwrap().values();
                let sum: u64 = bins.map(|n| n.as_u64().unwrap()).sum();
                assert_eq!(latency["N"], sum, "{name}");
                let pairs = [
                    ("50.000000", op.figures.latency.p50),
                    ("99.000000", op.figures.latency.p99),
                    ("99.990000", op.figures.latency.p99_99),
                ];
                for (key, ns) in pairs {
                    let found = latency["percentile"].get(key).and_then(Value::as_u64);
                    assert_eq!(found, ns, "{name} {key}");
                }
                if kind != OpKind::Sync {
                    assert_eq!(direction["clat_ns"], *latency, "{name}");
                    let iops = direction["iops"].as_f64().unwrap();
                    assert!((iops / op.figures.iops.value - 1.0).abs() < 1e-6, "{name}");
                }
            }
        }
    }
}

#[test]
fn second_target_and_errors_are_reported() {
    let mut record = fixture::two_targets();
    let read = record.measurements[1]
        .data
        .ops
        .get_mut(&OpKind::Read)
        .unwrap();
    read.errors = [("EIO".to_owned(), 2), ("ETIMEDOUT".to_owned(), 7)].into();
    let document = document(&record);
    let jobs = document["jobs"].as_array().unwrap();
    assert_eq!(
        (&jobs[1]["error"], &jobs[1]["total_err"]),
        (&110.into(), &9.into())
    );
    assert_eq!(
        (&jobs[0]["error"], jobs[0].get("total_err")),
        (&0.into(), None)
    );
    let names: Vec<&str> = jobs
        .iter()
        .map(|job| job["jobname"].as_str().unwrap())
        .collect();
    assert!(
        names[..3].iter().all(|name| !name.contains("target")),
        "{names:?}"
    );
    assert!(names[3].ends_with(".target2"), "{names:?}");
    let description = jobs[3]["desc"].as_str().unwrap();
    assert!(
        description.contains("on /dev/nvme1n1, run "),
        "{description}"
    );
}

#[test]
fn fio_json_contains_no_hostile_text() {
    for (name, record) in &*RECORDS {
        let text = text(record);
        assert!(
            text.chars().all(is_harmless) && text.ends_with("}\n"),
            "{name}"
        );
    }
}

/// What fio 3.33 and 3.42 print of a disk (`json_array_add_disk_util()` in stat.c, diskutil.c
/// before); only a machine whose disks it finds shows it.
const DISK_KEYS: &str = "name read_ios write_ios read_sectors write_sectors read_merges \
                         write_merges read_ticks write_ticks in_queue util";

/// A document of the real one in which every kind of operation has samples.
fn of_fio() -> Option<Value> {
    let words = "--name=a --ioengine=null --size=1M --bs=4k --rw=randrw --fsync=4 \
                 --lat_percentiles=1 --clat_percentiles=1 --description=b --continue_on_error=io \
                 --output-format=json+";
    let ran = Command::new("fio")
        .args(words.split_whitespace())
        .current_dir("/tmp")
        .output()
        .ok()?;
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    Some(serde_json::from_slice(&ran.stdout).expect("fio prints JSON"))
}

/// Whether fio has each of these keys too, in the same place and of the same type.
fn held_against(ours: &Value, fio: &Value, place: &str) {
    match (ours, fio) {
        (Value::Object(ours), Value::Object(fio)) => {
            // Their keys are figures and the options' own names.
            let any_key = ["/bins", "/job options"]
                .iter()
                .any(|end| place.ends_with(end));
            for (key, value) in ours.iter().filter(|_| !any_key) {
                let there = fio
                    .get(key)
                    .unwrap_or_else(|| panic!("fio has no {place}/{key}"));
                held_against(value, there, &format!("{place}/{key}"));
            }
            let order: Vec<&String> = fio.keys().filter(|key| ours.contains_key(*key)).collect();
            assert!(
                any_key || order == ours.keys().collect::<Vec<_>>(),
                "order of {place}: {order:?}"
            );
        }
        (Value::Array(ours), Value::Array(fio)) => ours
            .iter()
            .for_each(|ours| held_against(ours, &fio[0], place)),
        (Value::Number(ours), Value::Number(fio)) => {
            assert_eq!(ours.is_f64(), fio.is_f64(), "{place}: {ours} and {fio}")
        }
        _ => assert_eq!(
            std::mem::discriminant(ours),
            std::mem::discriminant(fio),
            "{place}: {ours} and {fio}"
        ),
    }
}

#[test]
fn fio_knows_every_key() {
    let Some(fio) = of_fio() else {
        eprintln!("SKIPPED: fio_knows_every_key: fio is not installed");
        return;
    };
    let mut record = known();
    let read = record.measurements[0]
        .data
        .ops
        .get_mut(&OpKind::Read)
        .unwrap();
    read.errors.insert("EIO".to_owned(), 1);
    let mut ours = document(&record);
    // Newer than the fio of Debian 12: 3.36 has it.
    for job in ours["jobs"].as_array_mut().unwrap() {
        job.as_object_mut().unwrap().shift_remove("job_start");
    }
    let disks = ours
        .as_object_mut()
        .unwrap()
        .shift_remove("disk_util")
        .unwrap();
    for key in disks[0].as_object().unwrap().keys() {
        assert!(DISK_KEYS.split(' ').any(|known| known == key), "{key}");
    }
    held_against(&ours, &fio, "");
}

fn any_count() -> impl Strategy<Value = u64> {
    prop_oneof![0..1_000_u64, any::<u64>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn fio_json_is_valid_for_any_record(
        words in any::<String>(),
        started in any::<String>(),
        names in prop::collection::vec(any::<String>(), 4),
        counts in prop::collection::vec(any_count(), 16),
        figures in prop::collection::vec(any::<f64>(), 4),
        latencies in prop::collection::vec(any_count(), 0..40),
        is_readable in any::<bool>(),
    ) {
        let mut record = known();
        record.started = if is_readable { "2026-11-20T10:00:00.5Z".to_owned() } else { started };
        (record.run_id, record.tool.version) = (names[0].clone(), names[1].clone());
        let m = &mut record.measurements[0];
        m.data.workload.name = names[2].clone();
        m.figures.reproduce = format!("fio --name={} --bs=8192 {words}", names[2]);
        (m.data.start_ns, m.data.wall_ns, m.data.cpu.user_ns) = (counts[0], counts[1], counts[2]);
        m.data.target = (counts[3] % 3) as usize;
        (m.data.device.read_bytes, m.data.device.read_ops) = (counts[4], counts[5]);
        let mut histogram = LatencyHistogram::new();
        latencies.iter().for_each(|ns| histogram.record(*ns));
        let read = m.figures.ops.get_mut(&OpKind::Read).unwrap();
        read.latency = LatencySummary::from_histogram(&histogram);
        read.latency.mean = figures[0];
        (read.iops.value, read.throughput.value) = (figures[1], figures[2]);
        let read = m.data.ops.get_mut(&OpKind::Read).unwrap();
        read.latency = histogram;
        (read.count, read.bytes, read.short) = (counts[6], counts[7], counts[8]);
        read.errors = [(names[3].clone(), counts[9] % 5)].into();
        let cell = Cell { ops: counts[12], bytes: counts[13], ..Cell::default() };
        read.series = TimeSeries {
            start_ns: counts[10],
            interval_ns: counts[11],
            cells: vec![cell; 3],
        };
        let document = document(&record);
        let read = &document["jobs"][0]["read"];
        prop_assert_eq!(read["total_ios"].as_u64(), Some(counts[6]));
        if let Some(bins) = read["lat_ns"].get("bins") {
            let sum: u64 = bins.as_object().unwrap().values().filter_map(Value::as_u64).sum();
            prop_assert_eq!(read["lat_ns"]["N"].as_u64(), Some(sum));
        }
    }
}
