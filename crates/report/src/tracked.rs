//! Formats of services that follow figures from run to run. They hold the figures that can have a
//! threshold, with their names in thresholds. A figure that is not the disk's is left out, as is
//! one of a workload with requests that were never answered, which are in no histogram: these
//! services judge by the number alone, and a disk that hung would have the best latencies.

use diskproof_model::comparison::Direction;
use diskproof_model::figure::{Figure, figures};
use diskproof_model::postgres::INSERT;
use diskproof_model::record::Record;
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// A figure that the services follow.
struct TrackedFigure<'a> {
    /// Its name without that of the metric, `random-read-d1.read`: the workload or part of a
    /// survey, and the kind of operation. With several targets the path precedes it, since a name
    /// must stand for one figure.
    subject: String,
    figure: Figure<'a>,
}

impl TrackedFigure<'_> {
    /// Half of the interval; `None` where it is unknown.
    fn half_width(&self) -> Option<f64> {
        self.figure
            .half_width_95
            .filter(|half_width| half_width.is_finite())
    }
}

/// The known figures of a record that are the disk's, in its order.
fn tracked_figures(record: &Record) -> Vec<TrackedFigure<'_>> {
    let mut tracked = Vec::new();
    for figure in figures(record) {
        if is_tracked(&figure) && is_the_disks(record, &figure) {
            let subject = figure_subject(record, &figure);
            tracked.push(TrackedFigure { subject, figure });
        }
    }
    tracked
}

fn figure_subject(record: &Record, figure: &Figure<'_>) -> String {
    let key = &figure.key;
    let mut subject = key.subject.to_string();
    // Thresholds name the INSERTs of a load by its name alone.
    if !key.op.is_empty() && key.op != INSERT {
        subject = format!("{subject}.{}", key.op);
    }
    match record.targets.get(key.target) {
        Some(target) if record.targets.len() > 1 => format!("{}: {subject}", target.path),
        _ => subject,
    }
}

/// True if a figure is known, is that of a whole workload, and has a name in thresholds.
fn is_tracked(figure: &Figure<'_>) -> bool {
    let key = &figure.key;
    let is_plain = key.phase.is_none() && key.label.is_none() && key.offset_bytes.is_none();
    let is_named = !figure.metric.threshold.is_empty() && !key.subject.is_empty();
    is_plain && is_named && figure.value.is_finite() && !figure.estimate().is_unknown()
}

fn is_the_disks(record: &Record, figure: &Figure<'_>) -> bool {
    record.objection_to(figure).is_none()
}

/// True if a record has a figure that these services could follow. A watched load has none, so a
/// file of it would be empty.
pub(crate) fn has_figures(record: &Record) -> bool {
    figures(record).iter().any(is_tracked)
}

/// Counts the figures that are left out because they are not the disk's, or not all of it.
pub(crate) fn count_left_out(record: &Record) -> usize {
    figures(record)
        .iter()
        .filter(|figure| is_tracked(figure) && !is_the_disks(record, figure))
        .count()
}

/// Writes the figures of which this direction is better for github-action-benchmark: a JSON list of
/// name, unit, value and range (<https://github.com/benchmark-action/github-action-benchmark>).
/// Shares and counts have no unit and no better direction.
pub(crate) fn write_better(
    record: &Record,
    better: Direction,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut elements = Vec::new();
    for tracked in tracked_figures(record) {
        let figure = &tracked.figure;
        if figure.unit == "1" || Direction::of_unit(figure.unit) != better {
            continue;
        }
        let mut element = json!({
            "name": format!("{}.{}", tracked.subject, figure.metric.threshold),
            "unit": figure.unit,
            "value": figure.value,
        });
        if let Some(half_width) = tracked.half_width() {
            element["range"] = json!(format!("± {half_width}"));
        }
        elements.push(element);
    }
    serde_json::to_writer_pretty(&mut *out, &elements)?;
    writeln!(out)
}

/// Writes the Bencher Metric Format: an object of benchmarks, one for each workload and kind of
/// operation, each an object of measures with their value and the ends of its interval
/// (<https://bencher.dev/docs/reference/bencher-metric-format>).
pub(crate) fn write_bencher(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let mut benchmarks: Map<String, Value> = Map::new();
    for tracked in tracked_figures(record) {
        let figure = &tracked.figure;
        let mut measure = json!({ "value": figure.value });
        if let Some(half_width) = tracked.half_width() {
            measure["lower_value"] = json!((figure.value - half_width).max(0.0));
            measure["upper_value"] = json!(figure.value + half_width);
        }
        let measures = benchmarks
            .entry(tracked.subject)
            .or_insert_with(|| json!({}));
        // A measure's name becomes its slug, which has no dots.
        measures[figure.metric.threshold.replace('.', "-")] = measure;
    }
    serde_json::to_writer_pretty(&mut *out, &benchmarks)?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::written;
    use diskproof_model::finding::{Cause, Evidence, Finding, Meaning, Severity};
    use diskproof_model::histogram::LatencyHistogram;
    use diskproof_model::measurement::Hang;
    use diskproof_model::postgres::{
        LoadFigures, LoadMeasurement, LoadRow, PostgresLoad, PostgresRecord,
    };
    use diskproof_model::record::{Estimate, TaskResult};
    use std::collections::BTreeMap;

    #[test]
    fn every_figure_stands_in_one_of_the_two_lists() {
        let record = crate::fixture::record();
        let bigger = units(&record, Direction::Higher);
        let smaller = units(&record, Direction::Lower);
        assert!(bigger.iter().all(|unit| unit == "1/s" || unit == "B/s"));
        assert!(smaller.iter().all(|unit| unit == "ns"));
        let mut with_unit = tracked_figures(&record);
        with_unit.retain(|tracked| tracked.figure.unit != "1");
        assert_eq!(bigger.len() + smaller.len(), with_unit.len());
        assert!(!bigger.is_empty() && !smaller.is_empty());
    }

    /// The units of the figures of which this direction is better.
    fn units(record: &Record, better: Direction) -> Vec<String> {
        let text = written(|out| write_better(record, better, out));
        let elements: Vec<Value> = serde_json::from_str(&text).unwrap();
        elements
            .iter()
            .map(|element| element["unit"].as_str().unwrap().to_owned())
            .collect()
    }

    fn subjects(record: &Record) -> Vec<String> {
        tracked_figures(record)
            .into_iter()
            .map(|tracked| tracked.subject)
            .collect()
    }

    #[test]
    fn figure_that_is_not_the_disks_is_left_out() {
        let mut record = crate::fixture::record();
        record.findings.clear();
        let all = subjects(&record);
        record.findings = vec![Finding {
            code: "served-from-cache".to_owned(),
            title: None,
            severity: Severity::Failure,
            says: Meaning::NotTheDisk {
                cause: Cause::Cache,
            },
            claim: String::new(),
            evidence: vec![Evidence {
                path: "/measurements/0/data/device/read_bytes".to_owned(),
                observed: 0.0,
                threshold: 1.0,
                unit: "B".to_owned(),
            }],
            remedy: String::new(),
            reproduce: None,
        }];
        assert_first_is_left_out(&all, &record);
        let name = record.measurements[0].data.workload.name.clone();
        let text = written(|out| write_bencher(&record, out));
        assert!(!text.contains(&name), "{text}");
    }

    /// Asserts that of the subjects of a record, `all`, those of its first workload are left out
    /// now.
    fn assert_first_is_left_out(all: &[String], record: &Record) {
        let name = &record.measurements[0].data.workload.name;
        let left = subjects(record);
        assert!(all.iter().any(|subject| subject.contains(name)), "{all:?}");
        assert!(
            !left.iter().any(|subject| subject.contains(name)),
            "{left:?}"
        );
        assert_eq!(count_left_out(record), all.len() - left.len());
    }

    /// A load of 400 INSERTs per second.
    fn inserts() -> TaskResult {
        TaskResult::Inserts(PostgresRecord {
            version: "15.8".to_owned(),
            loads: vec![LoadRow {
                data: LoadMeasurement {
                    load: PostgresLoad {
                        name: "fdatasync-c1".to_owned(),
                        clients: 1,
                        synchronous_commit: true,
                        wal_sync_method: "fdatasync".to_owned(),
                        pgbench: false,
                    },
                    slices: Vec::new(),
                    latency: LatencyHistogram::new(),
                },
                figures: LoadFigures {
                    iops: Estimate {
                        n: 10,
                        value: 400.0,
                        half_width_95: Some(4.0),
                        unit: "1/s".to_owned(),
                    },
                    latency_p50_ns: None,
                    latency_p99_ns: None,
                    latency_max_ns: None,
                    wal_bytes_per_commit: 200.0,
                    commits_per_sync: None,
                    client_cpu_ns: None,
                    own: None,
                    parts: None,
                },
            }],
            trials: Vec::new(),
            end_ns: None,
            errors: BTreeMap::new(),
            silence_before_ns: 0,
        })
    }

    /// The rate of INSERTs has the name of its thresholds, and a series.
    #[test]
    fn rate_of_inserts_is_tracked_as_thresholds_name_it() {
        let mut record = crate::fixture::record();
        record.findings.clear();
        record.results.push(inserts());
        let better = written(|out| write_better(&record, Direction::Higher, out));
        assert!(
            better.contains("\"postgres-fdatasync-c1.iops\""),
            "{better}"
        );
        let bencher = written(|out| write_bencher(&record, out));
        assert!(bencher.contains("\"postgres-fdatasync-c1\""), "{bencher}");
        let metrics = written(|out| crate::openmetrics::write_record(&record, out));
        for family in ["diskproof_iops{", "diskproof_iops_half_width{"] {
            let series = metrics.lines().filter(|line| {
                line.starts_with(family) && line.contains("workload=\"postgres-fdatasync-c1\"")
            });
            assert_eq!(series.count(), 1, "{family}");
        }
    }

    /// The first workload has requests without an answer.
    fn late_finding() -> Finding {
        Finding {
            code: "late".to_owned(),
            title: None,
            severity: Severity::Warning,
            says: Meaning::EndedEarly,
            claim: String::new(),
            evidence: vec![Evidence {
                path: "/measurements/0/data/hang/lasted_ns".to_owned(),
                observed: 5e9,
                threshold: 0.0,
                unit: "ns".to_owned(),
            }],
            remedy: String::new(),
            reproduce: None,
        }
    }

    /// The latencies of a disk that hung are those of the requests that it answered.
    #[test]
    fn figure_of_a_workload_without_all_answers_is_left_out() {
        let mut record = crate::fixture::record();
        record.findings.clear();
        let all = subjects(&record);
        record.measurements[0].data.hang = Some(Hang {
            since_ns: 0,
            lasted_ns: 5_000_000_000,
            requests: 1,
            late: true,
        });
        record.findings = vec![late_finding()];
        assert_first_is_left_out(&all, &record);
    }

    #[test]
    fn interval_surrounds_the_value_and_is_absent_where_unknown() {
        let record = crate::fixture::record();
        let json: Value =
            serde_json::from_str(&written(|out| write_bencher(&record, out))).unwrap();
        let rate = &record.measurements[0]
            .figures
            .ops
            .values()
            .next()
            .unwrap()
            .iops;
        let benchmarks = json.as_object().unwrap();
        let measures = benchmarks
            .values()
            .flat_map(|benchmark| benchmark.as_object().unwrap());
        let mut has_rate = false;
        for (name, measure) in measures {
            assert!(!name.contains('.'), "{name}");
            let value = measure["value"].as_f64().unwrap();
            let ends = [&measure["lower_value"], &measure["upper_value"]].map(Value::as_f64);
            if let [Some(low), Some(high)] = ends {
                assert!(low <= value && value <= high, "{name} {measure}");
                has_rate |= name == "iops" && value == rate.value;
            }
        }
        assert!(has_rate, "{json}");
    }
}
