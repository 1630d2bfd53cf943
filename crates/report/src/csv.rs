//! A record, a comparison or a fleet as CSV: one self-contained row for each figure. Quoted as in
//! RFC 4180, but with Unix line ends, which every reader accepts, while many Unix tools mishandle
//! CR LF.

use crate::describe::fleet::{FleetFigure, figures as figures_of_fleet, median_of};
use crate::percentiles::{EXPORTED_PERCENTILES, latency_at};
use crate::text::clean;
use diskproof_model::comparison::{Comparison, MetricComparison};
use diskproof_model::figure::{Figure, figures, points};
use diskproof_model::fleet::{FleetRecord, TestedDisk};
use diskproof_model::fleet_sum::{FleetSum, WorkloadSum};
use diskproof_model::record::{Estimate, Record};
use diskproof_model::units::counted;
use std::io::{self, Write};

/// Columns of the file of a record. New ones go to the end: readers count them.
const HEADING: &str = "run_id,started,host,target,model,serial,workload,op,metric,value,\
                       half_width_95,n,unit,offset_bytes,distance_bytes,time_s,together_with";

/// Writes all figures and single requests, then all points of curves, accesses, scans and workloads
/// over time.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{HEADING}")?;
    for figure in figures(record).iter().chain(&points(record)) {
        let is_named = !figure.metric.name.is_empty() && !figure.key.subject.is_empty();
        // Spreadsheets have no infinity.
        if is_named && figure.value.is_finite() && !figure.is_undecided_rate() {
            writeln!(out, "{}", record_row(record, figure))?;
        }
    }
    Ok(())
}

fn record_row(record: &Record, figure: &Figure<'_>) -> String {
    let key = &figure.key;
    let target = record.targets.get(key.target);
    let first_disk = target.and_then(|target| target.disks().next());
    let path = match target {
        Some(target) => target.path.as_str(),
        None => "",
    };
    let (model, serial) = match first_disk {
        Some(disk) => (disk.model.as_deref(), disk.serial.as_deref()),
        None => (None, None),
    };
    [
        text_cell(&record.run_id),
        text_cell(&record.started),
        text_cell(&record.host.name),
        text_cell(path),
        text_cell(model.unwrap_or_default()),
        text_cell(serial.unwrap_or_default()),
        text_cell(&key.subject),
        text_cell(key.op),
        text_cell(&figure.name()),
        figure.value.to_string(),
        finite_cell(figure.half_width_95),
        number_cell(figure.n),
        text_cell(figure.unit),
        number_cell(key.offset_bytes),
        number_cell(key.distance_bytes),
        number_cell(key.time_s),
        // Last, so that the other columns keep their numbers.
        text_cell(&key.together_with.join("; ")),
    ]
    .join(",")
}

/// A value as a cell; empty without a value.
fn number_cell<T: ToString>(value: Option<T>) -> String {
    match value {
        Some(value) => value.to_string(),
        None => String::new(),
    }
}

/// A finite number as a cell; empty otherwise, because spreadsheets have no infinity.
fn finite_cell(value: Option<f64>) -> String {
    number_cell(value.filter(|value| value.is_finite()))
}

/// Columns of the file of a comparison.
const COMPARISON_HEADING: &str = "a,b,metric,unit,a_value,a_half_width_95,b_value,\
                                  b_half_width_95,ratio,ratio_low_95,ratio_high_95,\
                                  change_percent,verdict";

/// Writes a heading and a row per metric of each candidate.
pub(crate) fn write_comparison(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{COMPARISON_HEADING}")?;
    for candidate in &comparison.candidates {
        for metric in &candidate.metrics {
            let a = &comparison.baseline.label;
            let b = &candidate.side.label;
            writeln!(out, "{}", comparison_row(a, b, metric))?;
        }
    }
    Ok(())
}

fn comparison_row(label_a: &str, label_b: &str, metric: &MetricComparison) -> String {
    let ratio = metric.ratio;
    let change = ratio.map(|ratio| (ratio.value - 1.0) * 100.0);
    [
        text_cell(label_a),
        text_cell(label_b),
        text_cell(&metric.metric),
        text_cell(&metric.a.unit),
        finite_cell(Some(metric.a.value)),
        finite_cell(metric.a.half_width_95),
        finite_cell(Some(metric.b.value)),
        finite_cell(metric.b.half_width_95),
        finite_cell(ratio.map(|ratio| ratio.value)),
        finite_cell(ratio.map(|ratio| ratio.low_95)),
        finite_cell(ratio.and_then(|ratio| ratio.high_95)),
        finite_cell(change),
        text_cell(metric.verdict.as_str()),
    ]
    .join(",")
}

/// Columns of the file of a fleet. The rows of figures, of tested disks and of the sum each fill
/// some of them.
const FLEET_HEADING: &str = "disk,host,rank,target,serial,model,state,workload,metric,unit,value,\
                             error,median,speed,t,p_value,p_adjusted,reason,\
                             half_width_95,slots,overlap";

/// Writes a heading, a row for each figure of each disk, and a row for each figure of the sum of
/// the hosts. The state of the latter is `sum`.
pub(crate) fn write_fleet(fleet: &FleetRecord, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{FLEET_HEADING}")?;
    for figure in figures_of_fleet(fleet) {
        writeln!(out, "{}", fleet_row(fleet, &figure))?;
    }
    for disk in &fleet.tested {
        for row in tested_rows(disk) {
            writeln!(out, "{row}")?;
        }
    }
    if let Some(sum) = &fleet.sum {
        for workload in &sum.workloads {
            for row in sum_rows(sum, workload) {
                writeln!(out, "{row}")?;
            }
        }
    }
    Ok(())
}

/// The sizes and rates of a disk that was tested; the state is its verdict.
fn tested_rows(disk: &TestedDisk) -> Vec<String> {
    let mut rows = Vec::new();
    for (metric, value, unit) in [
        ("accept.claimed_size", Some(disk.claimed_bytes as f64), "B"),
        (
            "accept.real_size",
            disk.real_bytes.map(|bytes| bytes as f64),
            "B",
        ),
        ("accept.write.throughput", disk.write_rate, "B/s"),
        ("accept.read.throughput", disk.read_rate, "B/s"),
    ] {
        if value.is_none() {
            continue;
        }
        rows.push(fleet_line(&[
            ("disk", text_cell(&disk.name)),
            ("host", text_cell(&disk.host)),
            ("rank", number_cell(disk.rank)),
            ("target", text_cell(&disk.target)),
            ("serial", text_cell(&disk.serials.join("; "))),
            ("model", text_cell(&disk.model)),
            ("state", disk.verdict.as_str().to_owned()),
            ("workload", "accept".to_owned()),
            ("metric", metric.to_owned()),
            ("unit", unit.to_owned()),
            ("value", finite_cell(value)),
            ("speed", finite_cell(disk.slower)),
            ("reason", text_cell(&disk.answer)),
        ]));
    }
    rows
}

/// Rates and usual percentiles of a workload's sum. Latencies are of whole slots, and have no
/// interval.
fn sum_rows(sum: &FleetSum, workload: &WorkloadSum) -> Vec<String> {
    let name = format!("{}.{}", workload.workload, workload.op.as_str());
    let mut rows = vec![
        sum_row(sum, workload, &format!("{name}.iops"), &workload.iops),
        sum_row(
            sum,
            workload,
            &format!("{name}.throughput"),
            &workload.throughput,
        ),
    ];
    let Some(latencies) = &workload.latencies else {
        return rows;
    };
    for percent in EXPORTED_PERCENTILES {
        if let Some(latency_ns) = latency_at(&latencies.percentiles, percent) {
            let latency = Estimate::new(0, latency_ns as f64, None, "ns");
            let metric = format!("{name}.p{percent}");
            rows.push(sum_row(sum, workload, &metric, &latency));
        }
    }
    rows
}

fn sum_row(sum: &FleetSum, workload: &WorkloadSum, metric: &str, figure: &Estimate) -> String {
    let hosts = counted(sum.members.len() as u64, "host");
    fleet_line(&[
        ("disk", text_cell(&format!("{hosts} together"))),
        ("state", "sum".to_owned()),
        ("workload", text_cell(&workload.workload)),
        ("metric", text_cell(metric)),
        ("unit", text_cell(&figure.unit)),
        ("value", finite_cell(Some(figure.value))),
        ("half_width_95", finite_cell(figure.half_width_95)),
        ("slots", workload.slots.to_string()),
        ("overlap", finite_cell(Some(workload.overlap))),
    ])
}

/// Joins the cells of a row in the order of [`FLEET_HEADING`]. Each cell has the name of its
/// column; a column without a cell is empty.
fn fleet_line(named_cells: &[(&str, String)]) -> String {
    for (name, text) in named_cells {
        let has_column = FLEET_HEADING.split(',').any(|column| column == *name);
        debug_assert!(has_column, "no column {name} for {text}");
    }
    let mut line = Vec::new();
    for column in FLEET_HEADING.split(',') {
        let cell = named_cells.iter().find(|(name, _)| *name == column);
        line.push(match cell {
            Some((_, text)) => text.as_str(),
            None => "",
        });
    }
    line.join(",")
}

fn fleet_row(fleet: &FleetRecord, figure: &FleetFigure<'_>) -> String {
    let FleetFigure { row, value, metric } = figure;
    let model = match row.group.and_then(|group| fleet.groups.get(group)) {
        Some(group) => group.model.as_str(),
        None => "",
    };
    let distance = value.distance;
    let mut reasons: Vec<&str> = row
        .reasons
        .iter()
        .map(|reason| reason.text.as_str())
        .collect();
    if let Some(not_judged) = &value.not_judged {
        reasons.insert(0, &not_judged.why);
    }
    fleet_line(&[
        ("disk", text_cell(&row.name)),
        ("host", text_cell(&row.host)),
        ("rank", number_cell(row.rank)),
        ("target", text_cell(&row.target)),
        ("serial", text_cell(&row.serials.join("; "))),
        ("model", text_cell(model)),
        ("state", text_cell(value.state.as_str())),
        ("workload", text_cell(&metric.subject)),
        ("metric", text_cell(&metric.metric)),
        ("unit", text_cell(&metric.unit)),
        ("value", finite_cell(Some(value.value))),
        ("error", finite_cell(Some(value.error * value.value))),
        ("median", finite_cell(median_of(metric))),
        (
            "speed",
            finite_cell(distance.map(|distance| distance.speed)),
        ),
        ("t", finite_cell(distance.map(|distance| distance.t))),
        (
            "p_value",
            finite_cell(distance.map(|distance| distance.p_value)),
        ),
        (
            "p_adjusted",
            finite_cell(distance.map(|distance| distance.p_adjusted)),
        ),
        ("reason", text_cell(&reasons.join("; "))),
    ])
}

/// A text as a cell. Spreadsheets run text that begins with these signs as a formula (CWE-1236);
/// an apostrophe prevents it.
fn text_cell(text: &str) -> String {
    let mut cell = clean(text);
    if cell.trim_start().starts_with(['=', '+', '-', '@']) {
        cell.insert(0, '\'');
    }
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::comparison::PercentilePoint;
    use diskproof_model::fleet::FleetLatencies;

    #[test]
    fn sum_of_a_fleet_has_rows_with_its_interval() {
        let mut fleet = crate::fixture::fleet(8);
        fleet.sum = Some(crate::fixture::fleet_sum());
        let text = crate::fixture::written(|out| write_fleet(&fleet, out));
        let mut lines = text.lines();
        let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
        let mut rows: Vec<Vec<&str>> = Vec::new();
        for line in lines {
            rows.push(line.split(',').collect());
        }
        assert!(rows.iter().all(|row| row.len() == columns.len()), "{text}");
        let cell = |row: &[&str], name: &str| -> String {
            let place = columns.iter().position(|column| *column == name);
            row[place.unwrap()].to_owned()
        };
        let sums = rows.iter().filter(|row| cell(row, "state") == "sum");
        let mut figures = Vec::new();
        for row in sums {
            figures.push(
                ["metric", "value", "half_width_95", "slots", "overlap"]
                    .map(|name| cell(row, name)),
            );
        }
        assert_eq!(
            figures,
            [
                ["random-read-d32.read.iops", "9000", "12.5", "5", "0.75"],
                [
                    "random-read-d32.read.throughput",
                    "36864000",
                    "",
                    "5",
                    "0.75"
                ],
            ]
        );
        assert_eq!(rows.len() - figures.len(), 8);
    }

    #[test]
    fn sum_has_the_usual_percentiles_and_no_other_points() {
        let mut fleet = crate::fixture::fleet(8);
        let mut sum = crate::fixture::fleet_sum();
        // As many points as a page draws.
        let mut percentiles = Vec::new();
        for step in 0..400_u64 {
            percentiles.push(PercentilePoint {
                percent: step as f64 / 4.0,
                latency_ns: 1000 + step,
            });
        }
        sum.workloads[0].latencies = Some(FleetLatencies {
            op: sum.workloads[0].op,
            count: 1_000_000,
            percentiles,
        });
        fleet.sum = Some(sum);
        let text = crate::fixture::written(|out| write_fleet(&fleet, out));
        let mut metrics = Vec::new();
        for line in text.lines().filter(|line| line.contains(",sum,")) {
            let cells: Vec<&str> = line.split(',').collect();
            metrics.push((cells[8].rsplit_once('.').unwrap().1, cells[10]));
        }
        assert_eq!(
            metrics[2..],
            [("p50", "1200"), ("p90", "1360"), ("p99", "1396")]
        );
    }

    #[test]
    fn csv_cell_is_never_a_formula() {
        let cases = [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            (
                "=HYPERLINK(\"http://x\",1)",
                "\"'=HYPERLINK(\"\"http://x\"\",1)\"",
            ),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            (" =1", "' =1"),
            ("\t=1\n", "\\t=1\\n"),
            ("", ""),
        ];
        for (text, cell) in cases {
            assert_eq!(text_cell(text), cell);
        }
    }

    #[test]
    fn request_row_says_whether_it_counts_and_idle_row_after_which_time() {
        let mut record = crate::fixture::record();
        let mean = r#"{"n": 6, "value": 150e3, "half_width_95": 5e3, "unit": "ns"}"#;
        let requests = r#"[
            {"number": 1, "at_ns": 2500000000, "op": "read", "offset_bytes": 8192,
              "latency_ns": 96300},
            {"number": 2, "at_ns": 0, "op": "read", "offset_bytes": 0, "latency_ns": 1,
              "ignored": "warmup"},
            {"number": 3, "at_ns": 0, "op": "read", "offset_bytes": 0, "latency_ns": 1,
              "error": "EIO"}]"#;
        let ping = format!(
            r#"{{"latency": {{}}, "after_idle": [{{"idle_ns": 20000000, "mean": {mean},
              "p50_ns": 149000, "min_ns": 140000, "max_ns": 170000, "slow": 1}}]}}"#
        );
        record.measurements.truncate(1);
        record.measurements[0].data.start_ns = 500_000_000;
        record.measurements[0].data.workload.name = "ping".to_owned();
        record.measurements[0].data.requests = serde_json::from_str(requests).unwrap();
        record.measurements[0].figures.ping = Some(serde_json::from_str(&ping).unwrap());
        let text = crate::fixture::written(|out| write_record(&record, out));
        for row in [
            ",ping,read,request_latency,96300,,,ns,8192,,2,",
            ",ping,read,request_ignored,1,",
            ",ping,read,request_failed,1,",
            ",ping-after-20ms,,latency_mean,150000,5000,6,ns,",
            ",ping-after-20ms,,slow_requests,1,,6,1,",
        ] {
            assert!(text.contains(row), "{row}: {text}");
        }
    }
}
