//! A record as a table for spreadsheets and plotting programs: one self-contained row per figure.
//! Quoted as in RFC 4180, but with Unix line ends: every reader accepts them, while many Unix tools
//! mishandle CR LF.

use crate::figures::{FigureRow, figures, points};
use crate::format::{Format, OutputFile, Requires};
use crate::ping_rows::ping_rows;
use crate::text::clean;
use diskproof_model::comparison::{Comparison, MetricComparison};
use diskproof_model::record::Record;
use std::io::{self, Write};

const HEADING: &str = "run_id,started,host,target,model,serial,workload,op,metric,value,\
                       half_width_95,n,unit,offset_bytes,distance_bytes,time_s,together_with";

/// The format.
pub const FORMAT: Format = Format {
    extension: ".csv",
    description: "one row per figure, for spreadsheets and scripts",
    requires: Requires::Nothing,
    record: |record, path| vec![OutputFile::new(path, move |out| write_record(record, out))],
    comparison: Some(write_comparison),
    identity: None,
};

/// Writes all figures, single requests, then all points of curves, accesses, scans and of workloads
/// over time.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{HEADING}")?;
    let rows = [figures(record), ping_rows(record), points(record)];
    for figure in rows.iter().flatten() {
        // Spreadsheets have no infinity.
        if figure.value.is_finite() {
            writeln!(out, "{}", row(record, figure))?;
        }
    }
    Ok(())
}

fn row(record: &Record, figure: &FigureRow) -> String {
    let target = record.targets.get(figure.target);
    let disk = target.and_then(|target| target.disks().next());
    let words = [
        record.run_id.as_str(),
        &record.started,
        &record.host.name,
        target.map_or("", |target| &target.path),
        disk.and_then(|disk| disk.model.as_deref())
            .unwrap_or_default(),
        disk.and_then(|disk| disk.serial.as_deref())
            .unwrap_or_default(),
        &figure.workload,
        figure.op,
        figure.metric,
    ];
    let mut cells: Vec<String> = words.map(field).to_vec();
    let whole = |number: Option<u64>| number.map(|n| n.to_string()).unwrap_or_default();
    cells.push(figure.value.to_string());
    cells.push(
        figure
            .half_width_95
            .filter(|half| half.is_finite())
            .map(|half| half.to_string())
            .unwrap_or_default(),
    );
    cells.extend([
        whole(figure.n),
        figure.unit.to_owned(),
        whole(figure.offset_bytes),
        whole(figure.distance_bytes),
    ]);
    cells.push(
        figure
            .time_s
            .map(|seconds| seconds.to_string())
            .unwrap_or_default(),
    );
    // Last, so that the other columns keep their numbers.
    cells.push(field(&figure.together_with));
    cells.join(",")
}

const COMPARISON_HEADING: &str = "a,b,metric,unit,a_value,a_half_width_95,b_value,\
                                  b_half_width_95,ratio,ratio_low_95,ratio_high_95,\
                                  change_percent,verdict";

/// Writes a heading and a row per metric of each candidate.
fn write_comparison(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
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
}
