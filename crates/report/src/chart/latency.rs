//! Latency percentiles: the whole distribution of every operation, on the axis of HdrHistogram's
//! own plots.

use super::naming::{operation_name, slug};
use super::types::{Axis, Chart, PERCENTILE_LINES, Scale, Series, SeriesMark};
use super::units::latency_unit_of_log_axis;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::units::{format_bytes, format_latency};
use std::collections::BTreeSet;

/// Points on a line between 90 and 99 %, and as many in each tenth of the rest.
const POINTS_PER_DECADE: usize = 20;
/// A point needs at least this many latencies beyond it, as a percentile in a table does.
const BEYOND_MIN: f64 = 10.0;
/// The arithmetic of shares makes exactly ten latencies a little less than ten.
const ROUNDING: f64 = 1e-6;

/// A chart has at most this many lines. More cannot be distinguished, and each takes 240 kB while
/// it is drawn.
const LINES_MAX: usize = 100;

/// One chart for each block size: only latencies of equal transfers are comparable.
pub(super) fn charts(record: &Record) -> Vec<Chart> {
    let sizes: BTreeSet<u32> = record
        .measurements
        .iter()
        .map(|row| row.data.workload.block_bytes)
        .collect();
    let mut charts = Vec::new();
    for size in &sizes {
        if let Some(mut chart) = chart_of_size(record, *size) {
            if sizes.len() > 1 {
                let block = format_bytes(u64::from(*size));
                chart.id += &format!("-{}", slug(&block));
            }
            charts.push(chart);
        }
    }
    charts
}

/// The line of an operation.
struct LatencyLine<'a> {
    name: String,
    /// True if other operations ran in the same workload.
    is_part_of_mix: bool,
    histogram: &'a LatencyHistogram,
}

/// The latencies of the operations that moved blocks of this size; `None` without any.
fn chart_of_size(record: &Record, block_bytes: u32) -> Option<Chart> {
    let mut lines = Vec::new();
    for row in &record.measurements {
        if row.data.workload.block_bytes == block_bytes {
            lines.extend(lines_of_row(record, row));
        }
    }
    let caption = percentile_caption(lines.len());
    lines.truncate(LINES_MAX);
    // The first lines are drawn, the others wait in the legend.
    lines.sort_by_key(|line| line.is_part_of_mix);
    let longest_ns = lines.iter().map(|line| line.histogram.max_ns()).max()?;
    let (unit, unit_ns) = latency_unit_of_log_axis(longest_ns);
    Some(Chart {
        id: "latency-percentiles".to_owned(),
        title: format!(
            "Latency percentiles, {} operations: longest {}",
            format_bytes(u64::from(block_bytes)),
            format_latency(longest_ns)
        ),
        caption,
        x: Axis::new("percentile", "%")
            .scaled(Scale::Percentile)
            .starting_at_zero(),
        y: Axis::new("latency", unit).scaled(Scale::Log),
        series: lines
            .iter()
            .map(|line| latency_series(line, unit_ns))
            .collect(),
        ..Chart::default()
    })
}

/// Says how to read the chart, and how many of the `found` lines it has.
fn percentile_caption(found: usize) -> String {
    let lines = found.min(LINES_MAX);
    let mut caption = "At each percentile, that share of the operations took no longer than the \
                       line shows. A line ends where fewer than ten operations lie beyond it."
        .to_owned();
    if lines > PERCENTILE_LINES {
        caption += &format!(
            " {PERCENTILE_LINES} of {lines} lines are drawn. On the page, click the legend to \
             show or hide a line."
        );
    }
    if found > LINES_MAX {
        caption += &format!(" Only the first {LINES_MAX} lines are drawn.");
    }
    caption
}

/// The headline operations; under an offered load also from the intended start, which includes the
/// time that a caller waited.
fn lines_of_row<'a>(record: &Record, row: &'a Row) -> Vec<LatencyLine<'a>> {
    let mut lines = Vec::new();
    let ops = row.headline_ops();
    let is_part_of_mix = ops.len() > 1;
    for (kind, op) in ops {
        if op.data.count == 0 {
            continue;
        }
        let name = operation_name(record, row, kind);
        let intended_name = format!("{name} from the intended start");
        lines.push(LatencyLine {
            name,
            is_part_of_mix,
            histogram: &op.data.latency,
        });
        if let Some(intended) = &op.data.latency_intended {
            lines.push(LatencyLine {
                name: intended_name,
                is_part_of_mix,
                histogram: intended,
            });
        }
    }
    lines
}

fn latency_series(line: &LatencyLine<'_>, unit_ns: f64) -> Series {
    let max = format_latency(line.histogram.max_ns());
    let mut points = Vec::new();
    for quantile in quantiles(line.histogram) {
        let percent = quantile.share * 100.0;
        points.push((percent, quantile.latency_ns as f64 / unit_ns));
    }
    Series::new(
        format!("{} (max {max})", line.name),
        SeriesMark::Line,
        points,
    )
}

/// A point of a distribution.
struct Quantile {
    /// The share of the latencies that are not longer than this one, from 0 to 1.
    share: f64,
    latency_ns: u64,
}

/// The distribution at evenly spaced positions of the percentile axis, up to the last one with ten
/// latencies beyond it; the shortest latency first.
fn quantiles(histogram: &LatencyHistogram) -> Vec<Quantile> {
    let count = histogram.count() as f64;
    let mut seen = 0;
    let mut step = 0_u32;
    let mut quantiles = Vec::new();
    for bucket in histogram.buckets() {
        seen += bucket.count;
        let latency_ns = (bucket.low_ns + bucket.width_ns - 1).min(histogram.max_ns());
        loop {
            let share = 1.0 - 10.0_f64.powf(-f64::from(step) / POINTS_PER_DECADE as f64);
            let is_known = count * (1.0 - share) + ROUNDING >= BEYOND_MIN;
            if !is_known || (share * count).ceil() > seen as f64 {
                break;
            }
            quantiles.push(Quantile { share, latency_ns });
            step += 1;
        }
    }
    quantiles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_line_equals_the_histogram() {
        let mut histogram = LatencyHistogram::new();
        (1..=100_000).for_each(|k| histogram.record(k * 1000));
        let points = quantiles(&histogram);
        // Up to 99.99 %, where ten lie beyond.
        assert_eq!(points.len(), 4 * POINTS_PER_DECADE + 1);
        for point in points {
            let Quantile { share, latency_ns } = point;
            assert_eq!(latency_ns, histogram.value_at(share), "{share}");
        }
    }

    #[test]
    fn latency_line_needs_enough_samples() {
        let mut histogram = LatencyHistogram::new();
        (0..9).for_each(|_| histogram.record(5));
        assert!(quantiles(&histogram).is_empty());
        assert!(quantiles(&LatencyHistogram::new()).is_empty());
    }

    #[test]
    fn latency_chart_draws_a_limited_number_of_lines() {
        let mut record = crate::fixture::record();
        assert!(!charts(&record).pop().unwrap().caption.contains("100 lines"));
        let one = record.measurements[1].clone();
        record.measurements = vec![one; LINES_MAX + 1];
        let chart = charts(&record).pop().unwrap();
        assert_eq!(chart.series.len(), LINES_MAX);
        assert!(chart.caption.contains("100 lines"), "{}", chart.caption);
    }
}
