//! Sorts latencies and queue depths into fio's bins, ranges and levels. Two printers show them.

use crate::histogram::LatencyHistogram;
use std::collections::BTreeMap;

/// The percentiles that fio prints by default (its option `percentile_list`).
pub const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];
/// fio distinguishes latencies to this many binary digits after the first (`FIO_IO_U_PLAT_BITS` in
/// its stat.h).
const BIN_BITS: u32 = 6;
/// The start of fio's last bin, which counts all longer latencies (`plat_val_to_idx()` in its
/// stat.c). fio's readers know no larger one.
const LAST_BIN_NS: u64 = (1 << 33) + (63 << 27);
/// Number of fio's bins (`FIO_IO_U_PLAT_NR` in its stat.h).
pub const BINS: usize = 29 << BIN_BITS;
/// Upper ends of fio's ranges of nanoseconds, microseconds and milliseconds.
const RANGES: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
/// The words of these ranges in fio's output; only milliseconds have the last two.
const LABELS: [&str; 12] = [
    "2", "4", "10", "20", "50", "100", "250", "500", "750", "1000", "2000", ">=2000",
];

/// The middle of the bin in which fio counts this latency; fio names bins by it.
pub fn bin(ns: u64) -> u64 {
    let kept_ns = ns.min(LAST_BIN_NS);
    let lost = lost_digits(kept_ns);
    let width = 1 << lost;
    (kept_ns >> lost << lost) + width / 2
}

/// The number of binary digits at the end of a latency that its bin does not keep.
fn lost_digits(ns: u64) -> u32 {
    (u64::BITS - ns.leading_zeros()).saturating_sub(BIN_BITS + 1)
}

/// The place of the bin in which fio counts this latency, from 0, below [`BINS`].
pub fn bin_index(ns: u64) -> usize {
    let kept_ns = ns.min(LAST_BIN_NS);
    let lost = lost_digits(kept_ns);
    // The bins of an octave begin with a one that the index of the octave replaces.
    ((u64::from(lost) << BIN_BITS) + (kept_ns >> lost)) as usize
}

/// Latencies by fio's bins. Ours are finer and none crosses a border of fio's, so the counts are
/// exact.
pub fn bins(histogram: &LatencyHistogram) -> BTreeMap<u64, u64> {
    let mut bins = BTreeMap::new();
    for bucket in histogram.buckets() {
        *bins.entry(bin(bucket.low_ns)).or_default() += bucket.count;
    }
    bins
}

/// Rates at intervals; zeros without any.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RateSamples {
    /// The lowest sample.
    pub min: f64,
    /// The highest sample.
    pub max: f64,
    /// The mean of the samples.
    pub mean: f64,
    /// Standard deviation of the sample.
    pub deviation: f64,
    /// The number of samples.
    pub count: u64,
}

impl RateSamples {
    /// The figures of these rates.
    pub fn from_rates(rates: impl IntoIterator<Item = f64>) -> Self {
        let rates: Vec<f64> = rates.into_iter().collect();
        if rates.is_empty() {
            return Self::default();
        }
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
        Self {
            min: rates.iter().copied().fold(f64::INFINITY, f64::min),
            max: rates.iter().copied().fold(0.0, f64::max),
            mean,
            // The square of one rate is 0.
            deviation: (squares / (rates.len() - 1).max(1) as f64).sqrt(),
            count: rates.len() as u64,
        }
    }

    /// The share of these KiB per second in the bytes per second of a group, in percent.
    pub fn share_of(&self, bytes_per_second: f64) -> f64 {
        if bytes_per_second > 0.0 {
            (self.mean * 1024.0 * 100.0 / bytes_per_second).min(100.0)
        } else {
            0.0
        }
    }
}

/// The share of all transfers in each range, in percent.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeShares {
    /// Shares of latencies below a microsecond, by the word that fio has for the range.
    pub ns: Vec<(&'static str, f64)>,
    /// Shares of latencies below a millisecond, and above those in `ns`.
    pub us: Vec<(&'static str, f64)>,
    /// Shares of all longer latencies.
    pub ms: Vec<(&'static str, f64)>,
}

/// The shares of all latencies in fio's ranges.
pub fn range_shares<'a>(histograms: impl Iterator<Item = &'a LatencyHistogram>) -> RangeShares {
    let mut counts = [[0_u64; LABELS.len()]; 3];
    for bucket in histograms.flat_map(LatencyHistogram::buckets) {
        let place = place(bucket.low_ns + bucket.width_ns / 2);
        counts[place.unit][place.range] += bucket.count;
    }
    let total = counts.iter().flatten().sum::<u64>().max(1);
    RangeShares {
        ns: labelled_shares(&counts[0][..10], total),
        us: labelled_shares(&counts[1][..10], total),
        ms: labelled_shares(&counts[2], total),
    }
}

/// The share of each count in the total, in percent, with the label of its range.
fn labelled_shares(counts: &[u64], total: u64) -> Vec<(&'static str, f64)> {
    let mut shares = Vec::new();
    for (label, count) in LABELS.into_iter().zip(counts) {
        shares.push((label, *count as f64 * 100.0 / total as f64));
    }
    shares
}

/// The unit and the range in it that a latency belongs to, as fio's `io_u_mark_latency()` has it:
/// whole units, and the label is the end that is not reached.
fn place(ns: u64) -> RangePlace {
    let (unit, count) = match ns {
        0..1_000 => (0, ns),
        1_000..1_000_000 => (1, ns / 1_000),
        _ => (2, ns / 1_000_000),
    };
    let beyond = if count < 2000 { 10 } else { 11 };
    let range = RANGES.iter().position(|end| count < *end);
    RangePlace {
        unit,
        range: range.unwrap_or(beyond),
    }
}

/// A range of fio's output.
#[derive(Debug, PartialEq, Eq)]
struct RangePlace {
    /// 0: nanoseconds, 1: microseconds, 2: milliseconds.
    unit: usize,
    /// Index into [`LABELS`].
    range: usize,
}

/// `iodepth_level` of a queue with this many requests in flight on average: everything at one
/// level.
pub fn depth_shares(in_flight: f64) -> Vec<(&'static str, f64)> {
    let levels = ["1", "2", "4", "8", "16", "32", ">=64"];
    let depth = in_flight.round().clamp(1.0, 64.0) as u64;
    let level = depth.ilog2() as usize;
    levels
        .into_iter()
        .enumerate()
        .map(|(index, label)| (label, if index == level { 100.0 } else { 0.0 }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_equal_those_of_fio() {
        // As fio 3.42 prints them: exact below 128 ns, then the middle of 64 bins an octave, and
        // one for all that is longer than 17 s.
        for (ns, named) in [
            (0, 0),
            (127, 127),
            (128, 129),
            (129, 129),
            (255, 255),
            (256, 258),
            (1_000, 1_004),
            (87_100, 87_552),
            (104_500, 104_960),
            (17_045_651_456, 17_112_760_320),
            (u64::MAX, 17_112_760_320),
        ] {
            assert_eq!(bin(ns), named, "{ns}");
        }
    }

    #[test]
    fn places_of_bins_equal_those_of_fio() {
        // `plat_val_to_idx()` of its stat.c.
        let fio = |ns: u64| {
            let first = 63 - (ns | 1).leading_zeros() as usize;
            match first.checked_sub(6) {
                None | Some(0) => ns as usize,
                Some(lost) => (((lost + 1) << 6) + ((ns >> lost) & 63) as usize).min(BINS - 1),
            }
        };
        let near = (0..40).flat_map(|bit| [0, 1, 7].map(|more| (1_u64 << bit) + more));
        for ns in near.chain([87_100, 104_500, 17_045_651_455, u64::MAX]) {
            assert_eq!(bin_index(ns), fio(ns), "{ns}");
        }
    }

    #[test]
    fn ranges_equal_those_of_fio() {
        for (ns, expected) in [
            (1, (0, 0)),
            (2, (0, 1)),
            (999, (0, 9)),
            (1_000, (1, 0)),
            (1_999, (1, 0)),
            (2_000, (1, 1)),
            (999_999, (1, 9)),
            (1_000_000, (2, 0)),
            (999_999_999, (2, 9)),
            (1_000_000_000, (2, 10)),
            (2_000_000_000, (2, 11)),
        ] {
            let place = place(ns);
            assert_eq!((place.unit, place.range), expected, "{ns}");
        }
    }
}
