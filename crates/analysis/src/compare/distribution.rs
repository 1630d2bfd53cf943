//! Latency distributions for comparing: quick quantiles, and the clusters of long latencies, which
//! make a run worth fewer independent latencies than it has.

use crate::estimate::widening;
use diskproof_model::comparison::PercentilePoint;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::row::OpRow;
use diskproof_model::series::Cell;

/// The threshold at which clusters are counted is so high that at most this share of the cells hold
/// a latency beyond it. Clusters cannot be seen where nearly all cells do.
const BUSY_CELLS_MAX: f64 = 0.9;
/// The lowest extremal index that is trusted: at this one, latencies come in groups of a hundred.
const INDEX_MIN: f64 = 0.01;
/// The percentile curve has this many points for each halving of the share beyond.
const STEPS_A_HALVING: i32 = 4;
/// A percentile is reported if at least this many latencies lie beyond it.
const BEYOND_MIN: f64 = 10.0;

/// A latency distribution as its filled buckets.
#[derive(Debug, Clone, Default)]
pub(super) struct LatencyDistribution {
    /// The upper end of each filled bucket, in nanoseconds, ascending.
    uppers: Vec<u64>,
    /// The number of latencies up to each of these ends.
    cumulative: Vec<u64>,
    mean_ns: f64,
    /// Variance over the square of the mean.
    dispersion: f64,
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
        let (mut seen, mut sum, mut squares) = (0, 0.0, 0.0);
        let mut result = Self::default();
        for bucket in merged.buckets() {
            let (low, width, n) = (bucket.low_ns, bucket.width_ns, bucket.count);
            seen += n;
            result.uppers.push((low + width - 1).min(max_ns.max(low)));
            result.cumulative.push(seen);
            let middle = low as f64 + (width - 1) as f64 / 2.0;
            sum += middle * n as f64;
            squares += middle * middle * n as f64;
        }
        if seen == 0 {
            return None;
        }
        let count = seen as f64;
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
        let (low, middle, high) = (
            self.quantile_ns(0.16),
            self.quantile_ns(0.5),
            self.quantile_ns(0.84),
        );
        let width = high as f64 - low as f64;
        let dispersion = (width / (2.0 * (middle as f64).max(1.0))).powi(2);
        dispersion.min(self.dispersion)
    }

    /// The smallest latency that at least `quantile` of them do not exceed, in nanoseconds.
    pub(super) fn quantile_ns(&self, quantile: f64) -> u64 {
        let rank = ((quantile * self.count() as f64).ceil() as u64).max(1);
        let index = self.cumulative.partition_point(|seen| *seen < rank);
        let upper = self.uppers.get(index).or(self.uppers.last());
        upper.copied().unwrap_or(0)
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
    fn beyond(&self, ns: u64) -> f64 {
        let seen = match self.uppers.partition_point(|upper| *upper <= ns) {
            0 => 0,
            within => self.cumulative[within - 1],
        };
        1.0 - seen as f64 / self.count() as f64
    }

    /// The upper end of the bucket that holds `ns`: the histogram is no finer.
    fn bucket_end(&self, ns: u64) -> u64 {
        let index = self.uppers.partition_point(|upper| *upper < ns);
        self.uppers.get(index).copied().unwrap_or(ns)
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
    let mut longest: Vec<u64> = cells.iter().map(|cell| cell.latency_max_ns).collect();
    longest.sort_unstable();
    let quiet = ((1.0 - BUSY_CELLS_MAX) * longest.len() as f64).ceil() as usize;
    let lowest_visible = longest[quiet.min(longest.len() - 1)];
    let latency_ns = distribution
        .quantile_ns(quantile.min(1.0))
        .max(lowest_visible);
    let threshold = distribution.bucket_end(latency_ns);
    let share = distribution.beyond(threshold);
    let busy: Vec<f64> = cells
        .iter()
        .map(|cell| f64::from(u8::from(cell.latency_max_ns > threshold)))
        .collect();
    let seen: f64 = busy.iter().sum();
    if share <= 0.0 || seen == 0.0 {
        return 1.0;
    }
    let index = extremal_index(&cells, share, seen);
    (2.0 - index) / index * widening(&busy)
}

/// The θ at which Σ (1 − (1 − share)^(θ n)), over the operations n of each cell, is the number of
/// cells `seen` beyond the threshold.
fn extremal_index(cells: &[Cell], share: f64, seen: f64) -> f64 {
    let (mut low, mut high) = (INDEX_MIN, 1.0);
    if expected_busy(cells, share, high) <= seen {
        return high;
    }
    // Ten halvings leave an error of a thousandth.
    for _ in 0..10 {
        let middle = 0.5 * (low + high);
        if expected_busy(cells, share, middle) < seen {
            low = middle
        } else {
            high = middle
        }
    }
    0.5 * (low + high)
}

/// The expected number of cells with a latency beyond the threshold if θ is `index`.
fn expected_busy(cells: &[Cell], share: f64, index: f64) -> f64 {
    cells
        .iter()
        .map(|cell| 1.0 - ((1.0 - share).ln() * index * cell.ops as f64).exp())
        .sum()
}
