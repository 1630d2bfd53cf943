//! Holds latency distributions for comparing: gives quantiles quickly, and finds the clusters of
//! long latencies, which make a run worth fewer independent latencies than it has.

use crate::estimate::widening;
use diskproof_model::comparison::PercentilePoint;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::row::OpRow;
use diskproof_model::series::Cell;

/// The threshold at which clusters are counted is so high that at most this share of the cells hold
/// a latency beyond it. Clusters cannot be seen where nearly all cells do: at 0.9, a cell more or
/// less moves θ by 4 % over a hundred cells, at 0.99 by 20 %.
const BUSY_CELLS_MAX: f64 = 0.9;
/// The lowest extremal index that is trusted: at this one, latencies come in groups of a hundred.
const EXTREMAL_INDEX_MIN: f64 = 0.01;
/// The percentile curve has this many points for each halving of the share beyond. Chosen, not
/// measured.
const STEPS_A_HALVING: i32 = 4;
/// The largest share of a latency that the width of its bucket is: each power of two has 1024
/// buckets (`LatencyHistogram`), but none is narrower than a nanosecond.
const BUCKET_WIDTH_MAX: f64 = 1.0 / 1024.0;
/// A percentile is reported if at least this many latencies lie beyond it, as in records: the rank
/// of fewer is known to worse than a third.
const BEYOND_MIN: f64 = 10.0;

/// A latency distribution as its filled buckets.
#[derive(Debug, Clone, Default)]
pub(super) struct LatencyDistribution {
    /// The upper end of each filled bucket, ascending.
    uppers_ns: Vec<u64>,
    /// The number of latencies up to each of these ends.
    cumulative: Vec<u64>,
    mean_ns: f64,
    /// Variance over the square of the mean.
    dispersion: f64,
}

/// The most by which the logarithms of two percentiles near `ns` differ where the latencies do not.
pub(super) fn bucket_width_log(ns: f64) -> f64 {
    BUCKET_WIDTH_MAX.max(1.0 / ns.max(1.0))
}

/// The percentiles of a distribution, ascending: those with enough latencies beyond them.
pub(crate) fn percentile_points(histogram: &LatencyHistogram) -> Vec<PercentilePoint> {
    match LatencyDistribution::merged([histogram]) {
        Some(distribution) => distribution.points(),
        None => Vec::new(),
    }
}

impl LatencyDistribution {
    /// The distribution of several histograms together; `None` where they are empty.
    pub(super) fn merged<'a>(
        histograms: impl IntoIterator<Item = &'a LatencyHistogram>,
    ) -> Option<Self> {
        let mut merged = LatencyHistogram::new();
        for histogram in histograms {
            merged.merge(histogram);
        }
        let max_ns = merged.max_ns();
        let mut latencies_up_to = 0;
        let mut sum = 0.0;
        let mut squares = 0.0;
        let mut result = Self::default();
        for bucket in merged.buckets() {
            let (low_ns, width_ns) = (bucket.low_ns, bucket.width_ns);
            let upper_ns = (low_ns + width_ns - 1).min(max_ns.max(low_ns));
            latencies_up_to += bucket.count;
            result.uppers_ns.push(upper_ns);
            result.cumulative.push(latencies_up_to);
            let middle_ns = low_ns as f64 + (width_ns - 1) as f64 / 2.0;
            sum += middle_ns * bucket.count as f64;
            squares += middle_ns * middle_ns * bucket.count as f64;
        }
        if latencies_up_to == 0 {
            return None;
        }
        let count = latencies_up_to as f64;
        let mean = sum / count;
        result.mean_ns = mean;
        if mean > 0.0 {
            result.dispersion = (squares / count / (mean * mean) - 1.0).max(0.0);
        }
        Some(result)
    }

    /// The number of latencies.
    pub(super) fn count(&self) -> u64 {
        self.cumulative.last().copied().unwrap_or(0)
    }

    /// Variance over the square of the mean.
    pub(super) fn dispersion(&self) -> f64 {
        self.dispersion
    }

    /// The dispersion of a normal distribution with the same 16th and 84th percentiles: it
    /// describes typical latencies without the tail. At most [`Self::dispersion`].
    pub(super) fn typical_dispersion(&self) -> f64 {
        let low = self.quantile_ns(0.16);
        let middle = self.quantile_ns(0.5);
        let high = self.quantile_ns(0.84);
        let width = high as f64 - low as f64;
        let dispersion = (width / (2.0 * (middle as f64).max(1.0))).powi(2);
        dispersion.min(self.dispersion)
    }

    /// The smallest latency that at least `quantile` of them do not exceed, in nanoseconds.
    pub(super) fn quantile_ns(&self, quantile: f64) -> u64 {
        let rank = ((quantile * self.count() as f64).ceil() as u64).max(1);
        let bucket = self.cumulative.partition_point(|count| *count < rank);
        let upper_ns = self.uppers_ns.get(bucket).or(self.uppers_ns.last());
        upper_ns.copied().unwrap_or(0)
    }

    /// The quantile, or `None` where fewer than [`BEYOND_MIN`] latencies lie beyond it.
    pub(super) fn percentile(&self, quantile: f64) -> Option<u64> {
        // 1 - 0.99 is not exact: without the addition, p99 of 1000 latencies has 9.99… beyond.
        let beyond = self.count() as f64 * (1.0 - quantile) + 1e-6;
        if beyond >= BEYOND_MIN {
            Some(self.quantile_ns(quantile))
        } else {
            None
        }
    }

    /// The share of the latencies that are longer than `ns`.
    fn share_beyond(&self, ns: u64) -> f64 {
        let buckets_within = self.uppers_ns.partition_point(|upper_ns| *upper_ns <= ns);
        let latencies_within = match buckets_within.checked_sub(1) {
            Some(last_within) => self.cumulative[last_within],
            None => 0,
        };
        1.0 - latencies_within as f64 / self.count() as f64
    }

    /// The upper end of the bucket that holds `ns`: the histogram is no finer.
    fn bucket_end_ns(&self, ns: u64) -> u64 {
        let bucket = self.uppers_ns.partition_point(|upper_ns| *upper_ns < ns);
        self.uppers_ns.get(bucket).copied().unwrap_or(ns)
    }

    /// The points of a percentile chart, spaced as HdrHistogram spaces them, up to the last
    /// percentile that may be reported.
    pub(super) fn points(&self) -> Vec<PercentilePoint> {
        let mut points = Vec::new();
        for step in 0.. {
            let halvings = f64::from(step) / f64::from(STEPS_A_HALVING);
            let quantile = 1.0 - 0.5_f64.powf(halvings);
            let Some(latency_ns) = self.percentile(quantile) else {
                break;
            };
            points.push(PercentilePoint {
                percent: quantile * 100.0,
                latency_ns,
            });
        }
        points
    }
}

/// The number of clustered latencies that are worth one independent latency at `quantile`.
///
/// A record keeps the longest latency of each cell of its series. Where latencies were independent,
/// the share of cells with one beyond a threshold would follow from the histogram; where they
/// cluster, fewer cells have one. The ratio is the extremal index θ (the blocks estimator, Smith &
/// Weissman 1994): clusters hold 1/θ latencies on average, and with sizes spread geometrically a
/// count of them varies by (2 − θ)/θ as much as one of independent ones. Clusters that reach over
/// several cells show as correlation among cells, which widens it further.
///
/// The threshold is the quantile itself, or the lowest above it at which not nearly every cell has
/// one: below it clusters cannot be seen.
pub(super) fn cluster_size(
    op: OpRow<'_>,
    distribution: &LatencyDistribution,
    quantile: f64,
) -> f64 {
    let mut cells = op.data.shown_series().cells;
    cells.retain(|cell| cell.ops > 0);
    if cells.is_empty() {
        return 1.0;
    }
    let mut longest_ns: Vec<u64> = cells.iter().map(|cell| cell.latency_max_ns).collect();
    longest_ns.sort_unstable();
    let quiet_cells = ((1.0 - BUSY_CELLS_MAX) * longest_ns.len() as f64).ceil() as usize;
    let lowest_visible_ns = longest_ns[quiet_cells.min(longest_ns.len() - 1)];
    let latency_ns = distribution
        .quantile_ns(quantile.min(1.0))
        .max(lowest_visible_ns);
    let threshold_ns = distribution.bucket_end_ns(latency_ns);
    let share_beyond = distribution.share_beyond(threshold_ns);
    // 1 for each cell with a latency beyond the threshold, else 0.
    let busy_flags: Vec<f64> = cells
        .iter()
        .map(|cell| f64::from(u8::from(cell.latency_max_ns > threshold_ns)))
        .collect();
    let busy_cells: f64 = busy_flags.iter().sum();
    if share_beyond <= 0.0 || busy_cells == 0.0 {
        return 1.0;
    }
    let extremal_index = find_extremal_index(&cells, share_beyond, busy_cells);
    (2.0 - extremal_index) / extremal_index * widening(&busy_flags)
}

/// The θ at which Σ (1 − (1 − `share_beyond`)^(θ n)), over the operations n of each cell, is the
/// number of busy cells, which hold a latency beyond the threshold.
fn find_extremal_index(cells: &[Cell], share_beyond: f64, busy_cells: f64) -> f64 {
    debug_assert!(share_beyond > 0.0 && share_beyond < 1.0, "{share_beyond}");
    let (mut low, mut high) = (EXTREMAL_INDEX_MIN, 1.0);
    if expected_busy_cells(cells, share_beyond, high) <= busy_cells {
        return high;
    }
    // Ten halvings leave an error of a thousandth.
    for _ in 0..10 {
        let middle = 0.5 * (low + high);
        if expected_busy_cells(cells, share_beyond, middle) < busy_cells {
            low = middle
        } else {
            high = middle
        }
    }
    0.5 * (low + high)
}

/// The expected number of busy cells if θ is `extremal_index`.
fn expected_busy_cells(cells: &[Cell], share_beyond: f64, extremal_index: f64) -> f64 {
    let log_of_share_within = (1.0 - share_beyond).ln();
    cells
        .iter()
        .map(|cell| 1.0 - (log_of_share_within * extremal_index * cell.ops as f64).exp())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::histogram::LatencyHistogram;
    use diskproof_model::measurement::OpKind;
    use diskproof_model::row::Row;
    use diskproof_model::series::TimeSeries;

    const SHORT_NS: u64 = 100_000;
    const LONG_NS: u64 = 5_000_000;
    const CELLS: u64 = 1000;
    const READS_A_CELL: u64 = 10;
    const LONG_READS: u64 = 100;

    /// A thousand cells of ten reads: one read in a hundred is long, and so many cells, scattered,
    /// hold the long ones.
    fn row(busy_cells: u64) -> Row {
        let mut record = fixture::record();
        let mut row = fixture::measured(&mut record, "random-read-d32").clone();
        let data = row.data.ops.get_mut(&OpKind::Read).unwrap();
        data.latency = LatencyHistogram::new();
        data.latency.record_many(LONG_NS, LONG_READS);
        let short_reads = CELLS * READS_A_CELL - LONG_READS;
        data.latency.record_many(SHORT_NS, short_reads);
        data.series = TimeSeries::new(1_000_000_000);
        for index in 0..CELLS {
            // 617 has no factor in common with 1000, so each cell has a place of its own.
            let is_busy = index * 617 % CELLS < busy_cells;
            data.series.cells.push(Cell {
                ops: READS_A_CELL,
                latency_max_ns: if is_busy { LONG_NS } else { SHORT_NS },
                ..Cell::default()
            });
        }
        row
    }

    fn cluster_size_at(busy_cells: u64, quantile: f64) -> f64 {
        let row = row(busy_cells);
        let reads = row.op(OpKind::Read).unwrap();
        let distribution = LatencyDistribution::merged([&reads.data.latency]).unwrap();
        cluster_size(reads, &distribution, quantile)
    }

    /// Of a hundred long reads at random, 1000 × (1 − 0.99^10) = 96 cells have one.
    #[test]
    fn each_of_independent_latencies_counts() {
        assert_eq!(cluster_size_at(96, 0.5), 1.0);
    }

    /// ln(1 − 0.025) / (10 ln 0.99) = 0.252 is θ, and (2 − θ) / θ = 6.94.
    #[test]
    fn clusters_of_four_are_worth_a_seventh() {
        let size = cluster_size_at(25, 0.99);
        assert!((size - 6.94).abs() < 0.1, "{size}");
    }

    /// At the shortest latency every cell has one beyond: clusters are counted at the next one.
    #[test]
    fn clusters_are_counted_where_they_are_visible() {
        assert_eq!(cluster_size_at(25, 0.0), cluster_size_at(25, 0.99));
    }

    #[test]
    fn typical_dispersion_leaves_out_the_tail() {
        let mut latency = LatencyHistogram::new();
        latency.record_many(SHORT_NS, 990);
        latency.record_many(LONG_NS, 10);
        let distribution = LatencyDistribution::merged([&latency]).unwrap();
        assert_eq!(distribution.typical_dispersion(), 0.0);
        // Mean 149 µs, standard deviation 487.5 µs.
        assert!((distribution.dispersion() - 10.7).abs() < 0.2);
    }
}
