//! The latency distributions of a record as a histogram log of HdrHistogram, version 1.3: a comment
//! with the version, a comment with the start, the column names, then a tagged line per
//! distribution.

use crate::format::{Format, OutputFile, Requires};
use diskproof_model::record::{LatencySummary, MeasurementRecord, Record};
use std::io::{self, Write};

/// The maximum is in milliseconds, as HdrHistogram's own writers print nanoseconds
/// (`HistogramLogWriter`, `maxValueUnitRatio`).
const NS_PER_UNIT_OF_MAX: f64 = 1e6;

/// The format.
pub const FORMAT: Format = Format {
    extension: ".hlog",
    description: "every latency distribution, for HdrHistogram's tools",
    requires: Requires::Nothing,
    record: |record, path| vec![OutputFile::new(path, move |out| write_record(record, out))],
    comparison: None,
    identity: None,
};

/// Writes every distribution: tag `WORKLOAD.OP`, with `.intended` where latency counts from the
/// intended start, and `.targetN` after the first target. Values are nanoseconds.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "#[Logged by {} {}, run {}; values in ns]",
        record.tool.name,
        record.tool.version,
        comment(&record.run_id)
    )?;
    writeln!(out, "#[Histogram log format version 1.3]")?;
    let start = record
        .started
        .parse::<jiff::Timestamp>()
        .map_or(0.0, |time| time.as_millisecond() as f64 / 1e3);
    writeln!(
        out,
        "#[StartTime: {start:.3} (seconds since epoch), {}]",
        comment(&record.started)
    )?;
    writeln!(
        out,
        "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\""
    )?;
    for m in &record.measurements {
        for (kind, op) in &m.ops {
            let name = format!("{}.{}", m.workload.name, kind.as_str());
            write_line(m, &name, &op.latency, out)?;
            op.latency_intended
                .iter()
                .try_for_each(|latency| write_line(m, &format!("{name}.intended"), latency, out))?;
        }
    }
    Ok(())
}

fn write_line(
    m: &MeasurementRecord,
    name: &str,
    latency: &LatencySummary,
    out: &mut dyn Write,
) -> io::Result<()> {
    let target = if m.target == 0 {
        String::new()
    } else {
        format!(".target{}", m.target + 1)
    };
    let (start, length) = (m.steady_start_ns() as f64 / 1e9, m.steady_ns() as f64 / 1e9);
    let max = latency.max as f64 / NS_PER_UNIT_OF_MAX;
    writeln!(
        out,
        "Tag={},{start:.3},{length:.3},{max:.3},{}",
        tag(&format!("{name}{target}")),
        latency.hdr
    )
}

/// Tags end at commas, blanks and line ends.
fn tag(name: &str) -> String {
    crate::text::clean(name)
        .chars()
        .map(|c| {
            if c == ',' || c.is_whitespace() {
                '_'
            } else {
                c
            }
        })
        .collect()
}

fn comment(text: &str) -> String {
    crate::text::clean(text).replace([']', '['], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_is_one_word() {
        assert_eq!(tag("my load, at\tnight.read"), "my_load__at\\tnight.read");
    }
}
