//! Gives the figures that fio prints of a distribution of latencies: minimum, maximum, mean and
//! deviation, and the percentiles as fio reads them from its bins.

use diskproof_model::fio_bins::bins;
use diskproof_model::histogram::LatencyHistogram;
use std::collections::BTreeMap;

/// Figures of a distribution of latencies, in nanoseconds unless they are scaled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TimeFigures {
    pub min: u64,
    pub max: u64,
    pub mean: f64,
    pub deviation: f64,
}

impl TimeFigures {
    /// The figures in the unit that fio chooses: the largest in which they keep enough digits. The
    /// limits are those of `nsec_to_usec` in its stat.h.
    pub(super) fn scaled(mut self) -> ScaledFigures {
        let mut unit = "nsec";
        for larger in ["usec", "msec"] {
            if self.min <= 2000 || self.max <= 99_999 || self.deviation <= 1000.0 {
                break;
            }
            self.min /= 1000;
            self.max /= 1000;
            self.mean /= 1000.0;
            self.deviation /= 1000.0;
            unit = larger;
        }
        ScaledFigures {
            figures: self,
            unit,
        }
    }
}

/// Figures of a distribution in the unit of this name.
pub(super) struct ScaledFigures {
    pub figures: TimeFigures,
    pub unit: &'static str,
}

/// The figures of a distribution, in nanoseconds.
pub(super) fn figures(histogram: &LatencyHistogram) -> TimeFigures {
    let mean = histogram.mean_ns();
    let (min, deviation) = match histogram.count() {
        0 => (0, 0.0),
        _ => (histogram.min_ns(), histogram.deviation_ns(mean)),
    };
    TimeFigures {
        min,
        max: histogram.max_ns(),
        mean,
        deviation,
    }
}

/// A latency that so many percent of all requests do not exceed.
pub(super) struct Percentile {
    pub percent: f64,
    pub ns: u64,
}

/// The percentiles of a list, as fio reads them from its bins.
pub(super) fn percentiles(histogram: &LatencyHistogram, list: &[f64]) -> Vec<Percentile> {
    let total = histogram.count();
    if total == 0 {
        return Vec::new();
    }
    let bins = bins(histogram);
    let mut percentiles = Vec::new();
    for percent in list {
        percentiles.push(Percentile {
            percent: *percent,
            ns: percentile_ns(&bins, total, *percent),
        });
    }
    percentiles
}

/// The bin in which so many percent of the total are reached.
fn percentile_ns(bins: &BTreeMap<u64, u64>, total: u64, percent: f64) -> u64 {
    let rank = (percent / 100.0 * total as f64).ceil().max(1.0) as u64;
    let mut latencies_up_to = 0;
    let mut last_ns = 0;
    for (ns, count) in bins {
        latencies_up_to += count;
        last_ns = *ns;
        if latencies_up_to >= rank {
            break;
        }
    }
    last_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_is_the_bin_in_which_its_share_is_reached() {
        let bins = BTreeMap::from([(100, 50), (200, 49), (300, 1)]);
        for (percent, ns) in [
            (0.0, 100),
            (50.0, 100),
            (51.0, 200),
            (99.0, 200),
            (99.5, 300),
        ] {
            assert_eq!(percentile_ns(&bins, 100, percent), ns, "{percent} %");
        }
    }

    #[test]
    fn unit_is_the_largest_that_keeps_enough_digits() {
        let figures = TimeFigures {
            min: 2001,
            max: 100_000,
            mean: 50_000.0,
            deviation: 1000.5,
        };
        assert_eq!(figures.scaled().unit, "usec");
        assert_eq!(figures.scaled().figures.min, 2);
        for (min, max, deviation) in [
            (2000, 100_000, 1000.5),
            (2001, 99_999, 1000.5),
            (2001, 100_000, 1000.0),
        ] {
            let smaller = TimeFigures {
                min,
                max,
                deviation,
                ..figures
            };
            assert_eq!(smaller.scaled().unit, "nsec");
        }
    }
}
