//! Latency percentiles: the whole distribution of every operation, on the axis of HdrHistogram's
//! own plots.

use super::types::{
    Axis, Chart, PERCENTILE_LINES, Scale, Series, SeriesMark, Unit, latency_unit, operation, slug,
};
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::units::{format_bytes, format_latency};
use std::collections::BTreeSet;

/// Points on a line between 90 and 99 %, and as many in each tenth of the rest.
const POINTS_PER_DECADE: usize = 20;
/// A point needs this many latencies beyond it, as a percentile in a table does.
const BEYOND_LEAST: f64 = 10.0;

/// Lines of one chart. More cannot be told apart, and each takes 240 kB while it is drawn.
const LINES_MAX: usize = 100;

/// One chart for each block size: only latencies of equal transfers are comparable.
pub(super) fn charts(record: &Record) -> Vec<Chart> {
    let sizes = record
        .measurements
        .iter()
        .map(|m| m.data.workload.block_bytes);
    let sizes: BTreeSet<u32> = sizes.collect();
    let only = sizes.len() == 1;
    let sizes = sizes.into_iter();
    sizes.filter_map(|size| chart(record, size, only)).collect()
}

/// The line of an operation.
struct LatencyLine {
    name: String,
    /// Whether other operations ran in the same workload.
    is_of_mix: bool,
    histogram: LatencyHistogram,
}

fn chart(record: &Record, block_bytes: u32, only: bool) -> Option<Chart> {
    let measurements = record.measurements.iter();
    let group = measurements.filter(|m| m.data.workload.block_bytes == block_bytes);
    let mut lines = group.flat_map(|m| distributions(record, m));
    let mut distributions: Vec<LatencyLine> = lines.by_ref().take(LINES_MAX).collect();
    // The first lines are drawn, the others wait in the legend.
    distributions.sort_by_key(|line| line.is_of_mix);
    let all = distributions.len();
    let mut caption = "At each percentile, that share of the operations took no longer than the \
                       line shows. A line ends where fewer than ten operations lie beyond it."
        .to_owned();
    if all > PERCENTILE_LINES {
        caption += &format!(
            " {PERCENTILE_LINES} of {all} lines are drawn. On the page, click the legend to show \
             or hide a line."
        );
    }
    if lines.next().is_some() {
        caption += &format!(" Only the first {LINES_MAX} lines are drawn.");
    }
    let longest_ns = distributions.iter().map(|d| d.histogram.max_ns()).max()?;
    // On a logarithmic axis the unit fits the middle, not the longest one.
    let unit = latency_unit(longest_ns as f64 / 5.0);
    let (block, longest) = (format_bytes(block_bytes.into()), format_latency(longest_ns));
    let percent = Axis::new("percentile", "%");
    let of_size = (!only).then(|| format!("-{}", slug(&block)));
    Some(Chart {
        id: format!("latency-percentiles{}", of_size.unwrap_or_default()),
        title: format!("Latency percentiles, {block} operations: longest {longest}"),
        caption,
        x: percent.scaled(Scale::Percentile).starting_at_zero(),
        y: Axis::new("latency", unit.0).scaled(Scale::Log),
        series: distributions.iter().map(|d| line(d, unit)).collect(),
        ..Chart::default()
    })
}

/// The headline operations; under an offered load also from the intended start, which includes the
/// time that a caller waited.
fn distributions(record: &Record, m: &Row) -> Vec<LatencyLine> {
    let mut all = Vec::new();
    let is_of_mix = m.headline_ops().len() > 1;
    for (kind, op) in m
        .headline_ops()
        .into_iter()
        .filter(|(_, op)| op.data.count > 0)
    {
        let name = operation(record, m, kind);
        all.push(LatencyLine {
            name: name.clone(),
            is_of_mix,
            histogram: op.data.latency.clone(),
        });
        if let Some(intended) = &op.data.latency_intended {
            all.push(LatencyLine {
                name: format!("{name} from the intended start"),
                is_of_mix,
                histogram: intended.clone(),
            });
        }
    }
    all
}

fn line(d: &LatencyLine, (_, ns): Unit) -> Series {
    let name = format!("{} (max {})", d.name, format_latency(d.histogram.max_ns()));
    let points = quantiles(&d.histogram).into_iter();
    let points = points.map(|(p, value)| (p * 100.0, value as f64 / ns));
    Series::new(name, SeriesMark::Line, points.collect())
}

/// The distribution at evenly spaced positions of the percentile axis, up to the last one with ten
/// latencies beyond it; the shortest latency first.
fn quantiles(histogram: &LatencyHistogram) -> Vec<(f64, u64)> {
    let count = histogram.count() as f64;
    let places = (0..).map(|k| 1.0 - 10.0_f64.powf(-(k as f64) / POINTS_PER_DECADE as f64));
    let is_known = |p: &f64| count * (1.0 - p) + 1e-6 >= BEYOND_LEAST;
    let mut places = places.take_while(is_known).peekable();
    let (mut seen, mut points) = (0, Vec::new());
    for (low, width, n) in histogram.buckets() {
        seen += n;
        while let Some(p) = places.next_if(|p| (p * count).ceil() <= seen as f64) {
            points.push((p, (low + width - 1).min(histogram.max_ns())));
        }
    }
    points
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
        for (p, value) in points {
            assert_eq!(value, histogram.value_at(p), "{p}");
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
