//! Reads records, comparisons and fleets from outside: files, report pages, pipes, the history.
//! Every number and every list is compared with its limit before anything is built from the text.

mod data;
mod error;
mod measured;
mod walk;

pub use error::DocumentError;
pub(crate) use error::{index_below, target_of};
pub(crate) use measured::check_operation;

use crate::comparison::{COMPARISON_SCHEMA, Comparison};
use crate::fleet::{FLEET_SCHEMA, FleetRecord};
use crate::record::{RECORD_SCHEMA, Record};
use crate::saved::SavedRun;
use data::check_data;
use error::{explained, quoted};
use serde::de::DeserializeOwned;
use serde_json::Value;
use walk::check;

/// The beginning of every schema name of ours, which a version follows.
const VERSIONED: [&str; 3] = [
    "diskproof.record/",
    "diskproof.comparison/",
    "diskproof.fleet/",
];

/// A document of any kind that a file or a page holds.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyDocument {
    /// A run.
    Record(Box<Record>),
    /// A comparison of runs.
    Comparison(Box<Comparison>),
    /// The records of many hosts, judged together.
    Fleet(Box<FleetRecord>),
}

impl AnyDocument {
    /// Reads the JSON text of a record, a comparison or a fleet.
    pub fn from_json(text: &str) -> Result<Self, DocumentError> {
        #[derive(serde::Deserialize)]
        struct Head {
            schema: Option<String>,
            /// The first key of fio's JSON.
            #[serde(rename = "fio version")]
            fio: Option<String>,
        }
        check(text)?;
        let Ok(head) = serde_json::from_str::<Head>(text) else {
            return Err(DocumentError::Foreign);
        };
        match head.schema.as_deref() {
            Some(RECORD_SCHEMA) => {
                let record: Record = parse(text, "record")?;
                check_data(&record)?;
                Ok(Self::Record(Box::new(record)))
            }
            Some(COMPARISON_SCHEMA) => Ok(Self::Comparison(parse(text, "comparison")?)),
            Some(FLEET_SCHEMA) => {
                let fleet: FleetRecord = parse(text, "fleet")?;
                check_fleet(&fleet)?;
                Ok(Self::Fleet(Box::new(fleet)))
            }
            Some(other) if VERSIONED.iter().any(|kind| other.starts_with(kind)) => {
                Err(DocumentError::OtherVersion {
                    found: quoted(other),
                })
            }
            None if head.fio.is_some() => Err(DocumentError::Fio),
            _ => Err(DocumentError::Foreign),
        }
    }
}

impl Record {
    /// Reads the JSON text of a record.
    pub fn from_json(text: &str) -> Result<Self, DocumentError> {
        match AnyDocument::from_json(text)? {
            AnyDocument::Record(record) => Ok(*record),
            AnyDocument::Comparison(_) => Err(DocumentError::OtherKind {
                found: "comparison",
                needed: "record",
            }),
            AnyDocument::Fleet(_) => Err(DocumentError::OtherKind {
                found: "fleet",
                needed: "record",
            }),
        }
    }

    /// The record as a tree that can be changed. Made from its text: a second writer and a second
    /// reader of each type, which `serde_json::to_value` and `from_value` need, were a twelfth of
    /// the program.
    pub fn to_tree(&self) -> serde_json::Result<Value> {
        serde_json::from_str(&serde_json::to_string(self)?)
    }

    /// A record from such a tree.
    pub fn from_tree(tree: &Value) -> serde_json::Result<Self> {
        serde_json::from_str(&tree.to_string())
    }
}

impl SavedRun {
    /// Reads the short form that the history keeps alongside each record.
    pub fn from_json(text: &str) -> Result<Self, DocumentError> {
        check(text)?;
        parse(text, "short form")
    }
}

/// Builds a document from its text, which was checked.
fn parse<T: DeserializeOwned>(text: &str, kind: &'static str) -> Result<T, DocumentError> {
    serde_json::from_str(text).map_err(|error| DocumentError::Shape {
        kind,
        why: explained(&error),
    })
}

/// Checks of a fleet that concern more than a single number: indices, lists of a fixed length.
fn check_fleet(fleet: &FleetRecord) -> Result<(), DocumentError> {
    for record in &fleet.examples {
        check_data(record)?;
    }
    for (place, group) in fleet.groups.iter().enumerate() {
        for (number, metric) in group.metrics.iter().enumerate() {
            let path = format!("/groups/{place}/metrics/{number}");
            if let Some(index) = metric.example {
                let count = fleet.examples.len();
                index_below(format!("{path}/example"), index, count, "examples")?;
                let targets = fleet.examples[index].targets.len();
                index_below(format!("{path}/target"), metric.target, targets, "targets")?;
            }
            if !matches!(metric.five_numbers.len(), 0 | 5) {
                return Err(DocumentError::Data {
                    path: format!("{path}/five_numbers"),
                    why: "it is neither empty nor five numbers",
                });
            }
        }
        for (number, overall) in group.overall.iter().enumerate() {
            for index in &overall.metrics {
                let path = format!("/groups/{place}/overall/{number}/metrics");
                index_below(path, *index, group.metrics.len(), "metrics")?;
            }
        }
    }
    for (place, row) in fleet.rows.iter().enumerate() {
        let Some(index) = row.group else {
            continue;
        };
        let path = format!("/rows/{place}");
        index_below(format!("{path}/group"), index, fleet.groups.len(), "groups")?;
        let metrics = fleet.groups[index].metrics.len();
        for value in &row.values {
            index_below(format!("{path}/values"), value.metric, metrics, "metrics")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::LatencyHistogram;
    use crate::limits::DOCUMENT_BYTES_MAX;
    use serde_json::json;

    const CHECK: &str = include_str!("../../../../tests/fixtures/check-directory.json");
    const SCAN: &str = include_str!("../../../../tests/fixtures/curve-scan.json");
    const COMPARED: &str = include_str!("../../../../tests/fixtures/comparison.json");

    /// The text of a fixture with another value at a pointer.
    fn with(text: &str, pointer: &str, value: Value) -> String {
        let mut document: Value = serde_json::from_str(text).unwrap();
        *document.pointer_mut(pointer).expect(pointer) = value;
        document.to_string()
    }

    fn error(text: &str) -> String {
        AnyDocument::from_json(text).unwrap_err().to_string()
    }

    #[test]
    fn own_documents_are_read_unchanged() {
        for text in [CHECK, SCAN] {
            let record = Record::from_json(text).unwrap();
            assert_eq!(record, serde_json::from_str(text).unwrap());
        }
        let comparison = AnyDocument::from_json(COMPARED).unwrap();
        assert!(matches!(comparison, AnyDocument::Comparison(_)));
        let other = Record::from_json(COMPARED).unwrap_err();
        assert!(matches!(other, DocumentError::OtherKind { .. }), "{other}");
    }

    #[test]
    fn numbers_beyond_every_measurement_are_refused_with_path_and_value() {
        let read = "/measurements/2/data/ops/read";
        let rate = "/measurements/2/figures/ops/read/iops";
        let cases = [
            (CHECK, format!("{rate}/value"), json!(1e300)),
            (
                CHECK,
                "/measurements/0/data/wall_ns".to_owned(),
                json!(u64::MAX),
            ),
            (CHECK, format!("{read}/count"), json!(1u64 << 61)),
            (
                SCAN,
                "/results/0/data/curve/3/offset_bytes".to_owned(),
                json!(1e19),
            ),
        ];
        for (text, path, number) in cases {
            let (parent, key) = path.rsplit_once('/').unwrap();
            let mut document: Value = serde_json::from_str(text).unwrap();
            document.pointer_mut(parent).unwrap()[key] = number;
            let found = AnyDocument::from_json(&document.to_string()).unwrap_err();
            let DocumentError::Number { path: at, .. } = found else {
                panic!("{path}: {found}")
            };
            assert_eq!(at, path);
        }
    }

    #[test]
    fn numbers_of_another_type_are_refused() {
        let read = "/measurements/2/data/ops/read";
        let rate = "/measurements/2/figures/ops/read/iops";
        let cases = [
            (format!("{rate}/n"), json!(1.5)),
            (format!("{rate}/n"), json!(-1)),
            (format!("{read}/count"), json!(-1)),
            (
                "/measurements/0/data/workload/depth".into(),
                json!(1u64 << 32),
            ),
        ];
        for (path, number) in cases {
            let found = AnyDocument::from_json(&with(CHECK, &path, number)).unwrap_err();
            let is_shape = matches!(found, DocumentError::Shape { .. });
            assert!(is_shape, "{path}: {found}");
        }
    }

    #[test]
    fn indices_without_an_element_are_refused() {
        let strokes = "/results/0/figures/short_strokes/0/measurement";
        let count = Record::from_json(SCAN).unwrap().measurements.len();
        for (text, path, index, count) in [
            (CHECK, "/measurements/1/data/target", 7, 1),
            (SCAN, strokes, 99, count),
        ] {
            let message = error(&with(text, path, json!(index)));
            assert!(
                message.starts_with(&format!("{path} is {index}, ")),
                "{message}"
            );
            assert!(message.contains(&format!(" {count} ")), "{message}");
        }
    }

    /// The text of the check with something added that it has not.
    fn check_with(key: &str, value: Value) -> String {
        let mut document: Value = serde_json::from_str(CHECK).unwrap();
        document[key] = value;
        document.to_string()
    }

    /// The data and the figures of a search with one trial.
    fn search(workload: usize, held: usize, control: usize) -> (Value, Value) {
        let trial = json!({
            "workload": workload, "kind": "hold", "rate": 1.0, "start_ns": 0, "warmup_ns": 0,
            "wall_ns": 1, "served": 1.0, "is_over": false, "batches": [],
        });
        let control = json!({ "factor": 1.2, "rate": 1.0, "failed": true, "trial": control });
        let figures = json!({
            "outcome": "sustained", "low": 1.0, "rate": 1.0, "high": 1.0, "saturated": 1.0,
            "slope": 1.0, "episodes": 9.0, "held": held, "control": control, "falls": 0,
            "unseen_credit": 0.0, "generator_late_share": 0.0,
            "cause": { "limit": "unknown", "why": "" },
        });
        (json!({ "trials": [trial] }), figures)
    }

    fn load(workload: usize, held: usize, control: usize) -> Value {
        let (data, figures) = search(workload, held, control);
        json!([{ "kind": "load", "data": data, "figures": figures }])
    }

    fn rays(workload: usize, held: usize, control: usize) -> Value {
        let (data, figures) = search(workload, held, control);
        let ray = json!({ "read_share": 0.5, "load": figures });
        json!([{ "kind": "rays", "data": { "rays": [data] }, "figures": { "rays": [ray] } }])
    }

    /// An observed device, in steps of `interval_ns`.
    fn observed(target: usize, interval_ns: u64, cell_ns: u64) -> Value {
        let rate = json!({ "n": 1, "value": 1.0, "half_width_95": null, "unit": "1/s" });
        let read = json!({
            "count": 1, "bytes": 1, "merges": 0, "iops": rate, "throughput": rate,
            "seek_share": 0.0, "sizes": [],
            "series": { "start_ns": 0, "interval_ns": cell_ns },
        });
        let device = json!({
            "target": target, "name": "sda", "wall_ns": 1, "ops": { "read": read },
            "queue_depth": 0.0, "queue_depth_max": 0.0,
        });
        json!([{ "kind": "observed", "interval_ns": interval_ns, "devices": [device] }])
    }

    fn layers(place: usize, cost: usize, below: usize) -> Value {
        let difference = json!({ "n": 1, "difference": 0.0, "half_width_95": null });
        let place = json!({
            "target": place, "start_bytes": 0, "length_bytes": 1, "blocks": "top", "compared": 0,
        });
        let cost = json!({
            "workload": "w", "target": cost, "below": below, "own_time": difference,
            "share": difference, "meaning": "real",
        });
        json!([{ "kind": "layers", "places": [place], "costs": [cost] }])
    }

    #[test]
    fn indices_of_every_result_are_checked() {
        let second = 1_000_000_000;
        for valid in [
            load(0, 0, 0),
            rays(0, 0, 0),
            observed(0, second, second),
            layers(0, 0, 0),
        ] {
            let text = check_with("results", valid.clone());
            AnyDocument::from_json(&text).unwrap_or_else(|error| panic!("{valid}: {error}"));
        }
        for (results, place) in [
            (load(99, 0, 0), "data/trials/0/workload is 99"),
            (load(0, 1, 0), "figures/held is 1"),
            (load(0, 0, 1), "figures/control/trial is 1"),
            (rays(99, 0, 0), "data/rays/0/trials/0/workload is 99"),
            (rays(0, 1, 0), "figures/rays/0/load/held is 1"),
            (rays(0, 0, 1), "figures/rays/0/load/control/trial is 1"),
            (observed(1, second, second), "devices/0/target is 1"),
            (observed(0, 0, second), "interval_ns is 0"),
            (layers(1, 0, 0), "places/0/target is 1"),
            (layers(0, 1, 0), "costs/0/target is 1"),
            (layers(0, 0, 1), "costs/0/below is 1"),
        ] {
            let message = error(&check_with("results", results));
            let expected = format!("/results/0/{place}");
            assert!(message.starts_with(&expected), "{expected}: {message}");
        }
        let message = error(&check_with("results", observed(0, second, 0)));
        assert!(message.contains("no length"), "{message}");
    }

    #[test]
    fn indices_of_what_follows_are_checked() {
        let credit = |target: usize, at_base: usize, in_burst: usize| {
            json!([{
                "target": target, "unit": "1/s", "base": 1.0, "burst": 2.0, "credit": 1.0,
                "burst_ns": 1, "refill_ns": 1, "at_base": [at_base], "in_burst": [in_burst],
                "has_reads": true,
            }])
        };
        AnyDocument::from_json(&check_with("burst_credits", credit(0, 0, 0))).unwrap();
        for (credits, place) in [
            (credit(1, 0, 0), "target is 1"),
            (credit(0, 99, 0), "at_base is 99"),
            (credit(0, 0, 99), "in_burst is 99"),
        ] {
            let message = error(&check_with("burst_credits", credits));
            let expected = format!("/burst_credits/0/{place}");
            assert!(message.starts_with(&expected), "{expected}: {message}");
        }
    }

    /// 4,096 small texts, each of which is a distribution with every bucket filled.
    #[test]
    fn distributions_that_would_fill_the_memory_are_refused() {
        let mut full = LatencyHistogram::new();
        for bits in 0..57 {
            for part in 0..64 {
                full.record((1 << bits) + (part << bits) / 64);
            }
        }
        let path = "/measurements/2/data/ops/read/latency/hdr";
        let row: Value = serde_json::from_str(&with(CHECK, path, json!(full.to_hdr_base64())))
            .map(|document: Value| document["measurements"][2].clone())
            .unwrap();
        let many = with(CHECK, "/measurements", json!(vec![row; 4096]));
        let found = AnyDocument::from_json(&many).unwrap_err();
        let is_refused = matches!(found, DocumentError::TooLong { most: 100_000, .. });
        assert!(is_refused, "{found}");
    }

    /// A sweep of 960 cells on ten disks.
    #[test]
    fn rows_of_many_workloads_on_many_targets_are_read() {
        let mut document: Value = serde_json::from_str(CHECK).unwrap();
        let mut row = document["measurements"][0].clone();
        row["data"]["ops"] = json!({});
        row["data"]["windows"] = json!([]);
        document["measurements"] = json!(vec![row; 9600]);
        let record = Record::from_json(&document.to_string()).unwrap();
        assert_eq!(record.measurements.len(), 9600);
    }

    #[test]
    fn series_that_would_fill_the_memory_are_refused() {
        let mut document: Value = serde_json::from_str(CHECK).unwrap();
        let mut record = Record::from_json(CHECK).unwrap();
        let op = record.measurements[2].data.ops.values_mut().next().unwrap();
        op.series.cells = vec![Default::default(); 8000];
        let row = serde_json::to_value(&record.measurements[2]).unwrap();
        document["measurements"] = json!(vec![row; 2000]);
        let found = AnyDocument::from_json(&document.to_string()).unwrap_err();
        let is_refused = matches!(
            found,
            DocumentError::TooLong {
                most: 8_000_000,
                ..
            }
        );
        assert!(is_refused, "{found}");
    }

    #[test]
    fn damaged_histograms_are_named() {
        let path = "/measurements/2/data/ops/read/latency/hdr";
        let message = error(&with(CHECK, path, json!("AAAA")));
        assert!(message.contains("histogram"), "{message}");
    }

    #[test]
    fn what_is_too_long_too_deep_or_no_number_is_refused() {
        let cells = |count: usize| json!({ "cells": vec![json!({}); count] });
        let path = "/measurements/2/data/ops/read";
        let (long, many) = (json!("x".repeat(2 << 20)), json!(vec![0; 20_000]));
        let cases = [
            (with(CHECK, path, cells(20_001)), " 20000 "),
            (
                with(CHECK, "/run_id", long),
                "/run_id has more than 1048576 ",
            ),
            (
                with(CHECK, "/findings", many),
                "/findings has more than 10000 ",
            ),
            (" ".repeat(DOCUMENT_BYTES_MAX + 1), "64 MiB"),
            ("[".repeat(1 << 20), "recursion"),
            ("{\"a\":".repeat(1 << 20), "recursion"),
            ("{\"schema\": 1e999}".into(), "number"),
            ("{\"schema\": NaN}".into(), "value"),
            ("{\"curve\": -9e99}".into(), "/curve is -9e99"),
            (
                format!("{{\"x\": [{}0]}}", "[[0],[0]],".repeat(10_001)),
                "/x has more than 10000",
            ),
            ("{} {}".into(), "trailing"),
            ("{}".into(), "diskproof"),
            ("{\"fio version\": \"3.36\"}".into(), "fio's JSON"),
            (
                "{\"schema\": \"diskproof.record/9\"}".into(),
                "diskproof.record/9",
            ),
        ];
        for (text, part) in cases {
            let message = error(&text);
            assert!(
                message.contains(part) && message.len() < 500,
                "{part}: {message}"
            );
        }
    }
}
