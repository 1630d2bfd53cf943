//! A record as a table for spreadsheets and plotting programs: one self-contained row per figure.
//! Quoted as in RFC 4180, but with Unix line ends: every reader accepts them, while many Unix tools
//! mishandle CR LF.

use crate::text::clean;
use diskproof_model::comparison::{Comparison, MetricComparison};
use diskproof_model::figure::{Figure, figures, points};
use diskproof_model::record::Record;
use std::io::{self, Write};

const HEADING: &str = "run_id,started,host,target,model,serial,workload,op,metric,value,\
                       half_width_95,n,unit,offset_bytes,distance_bytes,time_s,together_with";

/// Writes all figures, single requests, then all points of curves, accesses, scans and of workloads
/// over time.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{HEADING}")?;
    let rows = [figures(record), points(record)];
    for figure in rows.iter().flatten() {
        let is_named = !figure.metric.name.is_empty() && !figure.key.subject.is_empty();
        // Spreadsheets have no infinity.
        if is_named && figure.value.is_finite() {
            writeln!(out, "{}", row(record, figure))?;
        }
    }
    Ok(())
}

fn row(record: &Record, figure: &Figure<'_>) -> String {
    fn number<T: ToString>(number: Option<T>) -> String {
        number.map(|number| number.to_string()).unwrap_or_default()
    }
    let key = &figure.key;
    let target = record.targets.get(key.target);
    let disk = target.and_then(|target| target.disks().next());
    let word = |text: Option<&String>| field(text.map_or("", String::as_str));
    [
        field(&record.run_id),
        field(&record.started),
        field(&record.host.name),
        word(target.map(|target| &target.path)),
        word(disk.and_then(|disk| disk.model.as_ref())),
        word(disk.and_then(|disk| disk.serial.as_ref())),
        field(&key.subject),
        field(key.op),
        field(&figure.name()),
        figure.value.to_string(),
        number(figure.half_width_95.filter(|half| half.is_finite())),
        number(figure.n),
        figure.unit.to_owned(),
        number(key.offset_bytes),
        number(key.distance_bytes),
        number(key.time_s),
        // Last, so that the other columns keep their numbers.
        field(&key.together_with.join("; ")),
    ]
    .join(",")
}

const COMPARISON_HEADING: &str = "a,b,metric,unit,a_value,a_half_width_95,b_value,\
                                  b_half_width_95,ratio,ratio_low_95,ratio_high_95,\
                                  change_percent,verdict";

/// Writes a heading and a row per metric of each candidate.
pub(crate) fn write_comparison(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{COMPARISON_HEADING}")?;
    for candidate in &comparison.candidates {
        for metric in &candidate.metrics {
            let labels = [&comparison.baseline.label, &candidate.side.label];
            writeln!(out, "{}", comparison_row(labels, metric))?;
        }
    }
    Ok(())
}

fn comparison_row(labels: [&String; 2], metric: &MetricComparison) -> String {
    let number = |value: Option<f64>| {
        let finite = value.filter(|value| value.is_finite());
        finite.map(|value| value.to_string()).unwrap_or_default()
    };
    let ratio = metric.ratio;
    [
        field(labels[0]),
        field(labels[1]),
        field(&metric.metric),
        field(&metric.a.unit),
        number(Some(metric.a.value)),
        number(metric.a.half_width_95),
        number(Some(metric.b.value)),
        number(metric.b.half_width_95),
        number(ratio.map(|ratio| ratio.value)),
        number(ratio.map(|ratio| ratio.low_95)),
        number(ratio.and_then(|ratio| ratio.high_95)),
        number(ratio.map(|ratio| (ratio.value - 1.0) * 100.0)),
        field(metric.verdict.as_str()),
    ]
    .join(",")
}

/// A text as one cell. Spreadsheets run text that begins with these signs as a formula (CWE-1236);
/// an apostrophe prevents it.
fn field(text: &str) -> String {
    let mut text = clean(text);
    if text.trim_start().starts_with(['=', '+', '-', '@']) {
        text.insert(0, '\'');
    }
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(field(text), cell);
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
