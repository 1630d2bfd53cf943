//! Percentiles of the latencies of many hosts or disks, as all pages and files name them.

use diskproof_model::comparison::PercentilePoint;

/// Percentiles that differ by less are the same one: the last bit of a computed one may be wrong.
const PERCENT_ROUNDING: f64 = 1e-9;

/// The percentiles that files for other programs have. The same in all files, so that series go on.
pub(crate) const EXPORTED_PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 99.99];

/// The latency, in nanoseconds, at this percentile or the next higher known one; `None` where only
/// lower ones are known.
pub(crate) fn latency_at(ascending: &[PercentilePoint], percent: f64) -> Option<u64> {
    for point in ascending {
        if point.percent >= percent - PERCENT_ROUNDING {
            return Some(point.latency_ns);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_is_that_of_the_next_higher_known_percentile() {
        let known =
            [(50.0, 100), (98.999_999_999_9, 300)].map(|(percent, latency_ns)| PercentilePoint {
                percent,
                latency_ns,
            });
        assert_eq!(latency_at(&known, 50.0), Some(100));
        assert_eq!(latency_at(&known, 90.0), Some(300));
        assert_eq!(latency_at(&known, 99.0), Some(300));
        assert_eq!(latency_at(&known, 99.9), None);
    }
}
