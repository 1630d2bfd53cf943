//! The latency distributions of a record as a histogram log of HdrHistogram, version 1.3: a comment
//! with the version, a comment with the start, the column names, then a tagged line per
//! distribution.

use crate::text::clean;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use std::io::{self, Write};

/// The column of the maximum is in milliseconds, as HdrHistogram's own writers print it
/// (`HistogramLogWriter`, `maxValueUnitRatio`).
const NS_PER_UNIT_OF_MAX: f64 = 1e6;

/// Writes every distribution: tag `WORKLOAD.OP`, with `.intended` where latency counts from the
/// intended start, and `.targetN` after the first target. Values are nanoseconds.
pub fn write_record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    let run = comment_text(&record.run_id);
    let (name, version) = (&record.tool.name, &record.tool.version);
    let start_s = match record.started.parse::<jiff::Timestamp>() {
        Ok(time) => time.as_millisecond() as f64 / 1e3,
        Err(_) => 0.0,
    };
    let started = comment_text(&record.started);
    writeln!(
        out,
        "#[Logged by {name} {version}, run {run}; values in ns]\n\
         #[Histogram log format version 1.3]\n\
         #[StartTime: {start_s:.3} (seconds since epoch), {started}]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\""
    )?;
    for measurement in &record.measurements {
        for (kind, op) in measurement.ops() {
            let name = format!("{}.{}", measurement.data.workload.name, kind.as_str());
            write_line(measurement, &name, &op.data.latency, out)?;
            if let Some(latency) = &op.data.latency_intended {
                write_line(measurement, &format!("{name}.intended"), latency, out)?;
            }
        }
    }
    Ok(())
}

/// Writes the line of a distribution; `name` is its tag without the target.
fn write_line(
    measurement: &Row,
    name: &str,
    latency: &LatencyHistogram,
    out: &mut dyn Write,
) -> io::Result<()> {
    let target = match measurement.data.target {
        0 => String::new(),
        index => format!(".target{}", index + 1),
    };
    let whole_name = format!("{name}{target}");
    writeln!(
        out,
        "Tag={},{:.3},{:.3},{:.3},{}",
        tag_text(&whole_name),
        measurement.steady_start_ns() as f64 / 1e9,
        measurement.steady_ns() as f64 / 1e9,
        latency.max_ns() as f64 / NS_PER_UNIT_OF_MAX,
        latency.to_hdr_base64()
    )
}

/// A name as a tag, without commas and blanks, which would end it.
fn tag_text(name: &str) -> String {
    clean(name).replace(|c: char| c == ',' || c.is_whitespace(), "_")
}

/// A text for a comment, without the brackets that would end it.
fn comment_text(text: &str) -> String {
    clean(text).replace([']', '['], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_is_one_word() {
        assert_eq!(
            tag_text("my load, at\tnight.read"),
            "my_load__at\\tnight.read"
        );
    }
}
