//! A record as a table for spreadsheets and plotting programs: one self-contained row per figure.
//! Quoted as in RFC 4180, but with Unix line ends: every reader accepts them, while many Unix tools
//! mishandle CR LF.

use crate::figures::{FigureRow, figures, points};
use crate::format::{Format, OutputFile, Requires};
use crate::text::clean;
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
    comparison: None,
    identity: None,
};

/// Writes all figures, then all points of curves, accesses, scans and of workloads over time.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{HEADING}")?;
    for figure in figures(record).iter().chain(&points(record)) {
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
