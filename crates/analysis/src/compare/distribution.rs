//! Latency distributions for comparing: quick quantiles, and how many independent latencies a run
//! is worth.

use crate::estimate::widening;
use diskproof_model::comparison::PercentilePoint;
use diskproof_model::histogram::LatencyHistogram;
use diskproof_model::row::OpRow;
use diskproof_model::series::Cell;

/// Share of the cells that may hold a latency beyond the threshold at which clusters are counted:
/// where nearly all do, how they cluster cannot be seen.
const BUSY_CELLS_MAX: f64 = 0.9;
/// The extremal index is not trusted below this: a hundred latencies that always come together.
const INDEX_MIN: f64 = 0.01;
/// A step of the percentile curve is this many points to the next halving of what lies beyond.
const STEPS_A_HALVING: i32 = 4;
/// The fewest latencies beyond a percentile that is reported.
const BEYOND_MIN: f64 = 10.0;

/// A latency distribution as its filled buckets.
#[derive(Debug, Clone, Default)]
pub(super) struct LatencyDistribution {
    /// Upper end of each filled bucket, in nanoseconds.
    uppers: Vec<u64>,
    /// Latencies up to there.
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
        let mut all = LatencyHistogram::new();
        for histogram in histograms {
            all.merge(histogram);
        }
        let max_ns = all.max_ns();
        let (mut seen, mut sum, mut squares) = (0, 0.0, 0.0);
        let mut result = Self::default();
        for bucket in all.buckets() {
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

    /// Number of latencies.
    pub(super) fn count(&self) -> u64 {
        self.cumulative.last().copied().unwrap_or(0)
    }

    /// Variance over the square of the mean.
    pub(super) fn dispersion(&self) -> f64 {
        self.dispersion
    }

    /// The same for latencies between the 16th and 84th percentile alone, as if they were part of a
    /// normal distribution: what varies among typical ones.
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

    /// The same, or `None` where fewer than ten lie beyond.
    pub(super) fn percentile(&self, quantile: f64) -> Option<u64> {
        let beyond = self.count() as f64 * (1.0 - quantile) + 1e-6;
        if beyond >= BEYOND_MIN {
            Some(self.quantile_ns(quantile))
        } else {
            None
        }
    }

    /// Share of the latencies that are longer than `ns`.
    fn beyond(&self, ns: u64) -> f64 {
        let seen = match self.uppers.partition_point(|upper| *upper <= ns) {
            0 => 0,
            within => self.cumulative[within - 1],
        };
        1.0 - seen as f64 / self.count() as f64
    }

    /// Upper end of the bucket that holds `ns`: the histogram tells no finer.
    fn bucket_end(&self, ns: u64) -> u64 {
        let index = self.uppers.partition_point(|upper| *upper < ns);
        self.uppers.get(index).copied().unwrap_or(ns)
    }

    /// Points for a chart: evenly spaced as HdrHistogram plots them, as far as ten latencies lie
    /// beyond.
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

/// Latencies that come in clusters tell less than as many independent ones: how many of them make
/// one, at `quantile`.
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

/// θ such that Σ (1 − (1 − share)^(θ n)) over the cells' operations n is the number of cells that
/// were seen to have one.
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

/// The cells that have a latency beyond the threshold where θ is `index`.
fn expected_busy(cells: &[Cell], share: f64, index: f64) -> f64 {
    cells
        .iter()
        .map(|cell| 1.0 - ((1.0 - share).ln() * index * cell.ops as f64).exp())
        .sum()
}
