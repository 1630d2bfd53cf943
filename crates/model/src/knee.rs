//! Finds the knee of a curve of rates over the depth, or over the block size.
//!
//! A curve of rates bends at the largest power, which is throughput over response time (Kleinrock,
//! ICC 1979). By Little's law, power is the square of the rate over what is offered: the depth, or
//! the block size. A disk that serves `n` requests in parallel has the knee at depth `n`. One whose
//! requests take their own time and that of their transfer has it at the block size for which the
//! two are equal.

use crate::estimate::Estimate;

/// The fewest points that can show a knee, since it has one on each side.
pub const KNEE_POINTS_MIN: usize = 3;

/// A point of the curve.
#[derive(Debug, Clone, Copy)]
pub struct KneePoint<'a> {
    /// The depth, or the block size.
    pub offered: u32,
    /// The rate, in operations or bytes.
    pub rate: &'a Estimate,
}

impl<'a> KneePoint<'a> {
    /// The power as a logarithm; `None` where nothing was done.
    fn log_power(&self) -> Option<LogPower<'a>> {
        let power = self.rate.value.powi(2) / f64::from(self.offered.max(1));
        if power.is_nan() || power <= 0.0 {
            return None;
        }
        let relative_error = self.rate.relative_half_width();
        Some(LogPower {
            point: *self,
            log: power.ln(),
            // The logarithm of a square has twice the relative error.
            half_width: relative_error.map(|relative| 2.0 * relative),
        })
    }

    /// Operations per second, of a curve of throughput over block sizes.
    pub fn operations(&self) -> f64 {
        self.rate.value / f64::from(self.offered.max(1))
    }
}

/// The power at a point of the curve, as a logarithm.
#[derive(Debug, Clone, Copy)]
struct LogPower<'a> {
    point: KneePoint<'a>,
    log: f64,
    /// `None` where the rate has no interval.
    half_width: Option<f64>,
}

impl LogPower<'_> {
    /// Returns `true` if the intervals allow that this power is as large as `best`. Two independent
    /// powers do not differ while their distance is at most the root of the sum of the squared
    /// half-widths. One without an interval may be as large where `best` may be as small.
    fn may_equal(&self, best: &Self) -> bool {
        let half_width = self.half_width.unwrap_or(0.0);
        let best_half_width = best.half_width.unwrap_or(0.0);
        best.log - self.log <= best_half_width.hypot(half_width)
    }
}

/// A knee among the measured points.
#[derive(Debug, Clone, Copy)]
pub struct Knee<'a> {
    /// The depth, or the block size, of the knee.
    pub offered: u32,
    /// The smallest point that the intervals allow.
    pub low: u32,
    /// The largest one; `None` where it may be beyond the last point.
    pub high: Option<u32>,
    /// The rate there.
    pub rate: &'a Estimate,
}

/// The knee of these points, which ascend; `None` of too few with an interval, and where the
/// intervals allow all of them.
pub fn find_knee<'a>(points: &[KneePoint<'a>]) -> Option<Knee<'a>> {
    let powers: Vec<LogPower<'a>> = points.iter().flat_map(KneePoint::log_power).collect();
    let mut known = powers.clone();
    known.retain(|power| power.half_width.is_some());
    if known.len() < KNEE_POINTS_MIN {
        return None;
    }
    let best = known
        .iter()
        .max_by(|one, other| one.log.total_cmp(&other.log))?;
    let allowed: Vec<u32> = powers
        .iter()
        .filter(|power| power.may_equal(best))
        .map(|power| power.point.offered)
        .collect();
    let low = *allowed.first()?;
    let high = *allowed.last()?;
    let last = powers.last()?.point.offered;
    if low == powers.first()?.point.offered && high == last {
        return None;
    }
    Some(Knee {
        offered: best.point.offered,
        low,
        high: if high < last { Some(high) } else { None },
        rate: best.point.rate,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(values: &[f64], relative: f64) -> Vec<Estimate> {
        let rate = |value: &f64| Estimate {
            n: 30,
            value: *value,
            half_width_95: Some(value * relative),
            unit: "1/s".to_owned(),
        };
        values.iter().map(rate).collect()
    }

    fn knee_of(offered: &[u32], values: &[f64], relative: f64) -> Option<(u32, u32, Option<u32>)> {
        let rates = rates(values, relative);
        let points: Vec<KneePoint<'_>> = offered
            .iter()
            .zip(&rates)
            .map(|(offered, rate)| KneePoint {
                offered: *offered,
                rate,
            })
            .collect();
        let knee = find_knee(&points)?;
        Some((knee.offered, knee.low, knee.high))
    }

    const DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

    #[test]
    fn knee_is_the_number_of_requests_that_a_disk_serves_in_parallel() {
        for parallel in [1, 4, 16] {
            let rates: Vec<f64> = DEPTHS
                .iter()
                .map(|depth| f64::from((*depth).min(parallel)) * 1000.0)
                .collect();
            let found = knee_of(&DEPTHS, &rates, 0.02).unwrap();
            assert_eq!(found, (parallel, parallel, Some(parallel)));
        }
    }

    #[test]
    fn knee_beyond_the_last_depth_is_open_and_rough_rates_have_none() {
        let rates: Vec<f64> = DEPTHS
            .iter()
            .map(|depth| f64::from(*depth) * 1000.0)
            .collect();
        assert_eq!(knee_of(&DEPTHS, &rates, 0.02), Some((64, 64, None)));
        assert_eq!(knee_of(&DEPTHS, &rates, 2.0), None);
        assert_eq!(knee_of(&DEPTHS[..2], &rates[..2], 0.02), None);
    }

    /// Powers 1, 2, 2.25, 1.53 in units: 2 and 2.25 differ by 12 % and are known to 20 % each.
    #[test]
    fn interval_holds_every_depth_that_may_be_the_knee() {
        let rates = [1000.0, 2000.0, 3000.0, 3500.0];
        let found = knee_of(&DEPTHS[..4], &rates, 0.1).unwrap();
        assert_eq!(found, (4, 2, Some(4)));
    }

    /// Nobody knows that the knee is at 4 while the rate at 8 may be twice as high.
    #[test]
    fn high_rate_without_an_interval_may_be_the_knee() {
        let mut rates = rates(&[1000.0, 2000.0, 4000.0, 8000.0, 8000.0], 0.02);
        rates[3].half_width_95 = None;
        let mut points = Vec::new();
        for (offered, rate) in [1, 2, 4, 8, 16].into_iter().zip(&rates) {
            points.push(KneePoint { offered, rate });
        }
        let knee = find_knee(&points).unwrap();
        assert_eq!((knee.offered, knee.low, knee.high), (16, 4, None));
    }

    /// 100 µs and 1 GB/s: a block of 100 kB takes as long as everything else.
    #[test]
    fn knee_over_the_block_size_is_where_the_transfer_takes_half() {
        let sizes = [4u32, 16, 64, 128, 256, 1024].map(|kib| kib << 10);
        let rates: Vec<f64> = sizes
            .iter()
            .map(|bytes| f64::from(*bytes) / (100e-6 + f64::from(*bytes) / 1e9))
            .collect();
        let known = knee_of(&sizes, &rates, 0.001).unwrap();
        assert_eq!(known, (128 << 10, 128 << 10, Some(128 << 10)));
        // The powers at 64 and 128 KiB differ by 2 %.
        let rough = knee_of(&sizes, &rates, 0.01).unwrap();
        assert_eq!(rough, (128 << 10, 64 << 10, Some(128 << 10)));
    }
}
