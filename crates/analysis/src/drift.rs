//! Finds out whether the latency of a load that is measured again and again changes over the days,
//! and the hour of the day at which it is slow, by a line through the points, and by the mean of
//! each hour in comparison with the others.

use crate::estimate::student::multiple_95;
use crate::estimate::{mean, variance, widening};
use diskproof_model::trend::{Drift, LatencyPoint, SlowHour};

/// With fewer points no line is fitted: with three, its slope has an interval of 13 standard
/// errors.
const POINTS_MIN: usize = 4;
/// An hour with fewer points is not called slow: one late measurement would be enough.
const HOUR_POINTS_MIN: usize = 3;
/// An hour is slow beyond this many standard errors. By chance, one of 24 equal hours is beyond it
/// in 5 % of all cases (Bonferroni, with some allowance for few points).
const HOUR_ERRORS: f64 = 3.3;
/// Seconds of a day.
const DAY_S: f64 = 86_400.0;
/// Seconds of an hour.
const HOUR_S: i64 = 3600;
/// Hours of a day.
const HOURS: i64 = 24;

/// The change of these latencies over the days; `None` of too few points, and where all are of one
/// moment. The points should be in the order of time: the correlation of neighbours widens the
/// interval.
pub fn drift(points: &[LatencyPoint]) -> Option<Drift> {
    if points.len() < POINTS_MIN {
        return None;
    }
    let latencies: Vec<f64> = points.iter().map(|point| point.latency_ns).collect();
    let level = mean(&latencies);
    let first_s = points[0].at_s;
    let days: Vec<f64> = points
        .iter()
        .map(|point| (point.at_s - first_s) as f64 / DAY_S)
        .collect();
    let line = Line::fitted(&days, &latencies)?;
    if level <= 0.0 {
        return None;
    }
    let freedom = points.len() as f64 - 2.0;
    Some(Drift {
        per_day: line.slope / level,
        half_width_95: multiple_95(freedom) * line.slope_error / level,
        slow_hour: slow_hour(points, &line.residuals, level),
    })
}

/// A line through points by least squares.
struct Line {
    slope: f64,
    /// The standard error of the slope.
    slope_error: f64,
    /// The distance of each point from the line.
    residuals: Vec<f64>,
}

impl Line {
    /// The line through the latencies of these days; `None` where all are of one moment.
    fn fitted(days: &[f64], latencies: &[f64]) -> Option<Self> {
        let (middle, level) = (mean(days), mean(latencies));
        let (mut products, mut squares) = (0.0, 0.0);
        for (day, latency) in days.iter().zip(latencies) {
            products += (day - middle) * (latency - level);
            squares += (day - middle) * (day - middle);
        }
        if squares <= 0.0 {
            return None;
        }
        let slope = products / squares;
        let mut residuals = Vec::new();
        let mut error_squares = 0.0;
        for (day, latency) in days.iter().zip(latencies) {
            let residual = latency - level - slope * (day - middle);
            error_squares += residual * residual;
            residuals.push(residual);
        }
        let freedom = days.len() as f64 - 2.0;
        // Neighbours are alike where the latency follows the hours of the day, or wanders.
        let variance = error_squares / freedom / squares * widening(&residuals);
        Some(Self {
            slope,
            slope_error: variance.sqrt(),
            residuals,
        })
    }
}

/// The slowest hour of the day (UTC); `None` where chance explains the differences. `residuals` has
/// what the drift leaves of each point's latency, and `level` their mean latency.
fn slow_hour(points: &[LatencyPoint], residuals: &[f64], level: f64) -> Option<SlowHour> {
    let mut slowest: Option<SlowHour> = None;
    for hour in 0..HOURS {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for (point, residual) in points.iter().zip(residuals) {
            if point.at_s.div_euclid(HOUR_S).rem_euclid(HOURS) == hour {
                own.push(*residual);
            } else {
                others.push(*residual);
            }
        }
        if own.len() < HOUR_POINTS_MIN || others.len() < HOUR_POINTS_MIN {
            continue;
        }
        let difference = mean(&own) - mean(&others);
        let spread = variance(&others).max(variance(&own));
        let error = (spread * (1.0 / own.len() as f64 + 1.0 / others.len() as f64)).sqrt();
        let change = difference / level;
        let is_slower = match slowest {
            Some(known) => change > known.change,
            None => true,
        };
        if difference > HOUR_ERRORS * error && is_slower {
            slowest = Some(SlowHour {
                hour: hour as u32,
                change,
            });
        }
    }
    slowest
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::trend::DriftAnswer;

    /// Hourly points of a week, with noise of about 2 % that follows from their number.
    fn week(latency: impl Fn(i64) -> f64) -> Vec<LatencyPoint> {
        let mut points = Vec::new();
        for hour in 0..168 {
            let noise = (hour * 7919 % 101) as f64 / 50.0 - 1.0;
            points.push(LatencyPoint {
                at_s: 1_700_000_000 / HOUR_S * HOUR_S + hour * HOUR_S,
                latency_ns: latency(hour) * (1.0 + 0.02 * noise),
            });
        }
        points
    }

    #[test]
    fn slope_is_found_with_its_interval() {
        let growing = week(|hour| 1000.0 * (1.0 + 0.02 * hour as f64 / 24.0));
        let drift = drift(&growing).unwrap();
        assert_eq!(drift.answer(), DriftAnswer::Worse);
        // 2 % of the first latency a day, of the mean latency of 107 %.
        assert!(
            (drift.per_day - 0.0187).abs() < drift.half_width_95 + 0.001,
            "{drift:?}"
        );
        assert!(drift.half_width_95 < 0.003, "{drift:?}");
    }

    #[test]
    fn even_latency_has_neither_trend_nor_slow_hour() {
        let drift = drift(&week(|_| 1000.0)).unwrap();
        assert_eq!(drift.answer(), DriftAnswer::NoTrend);
        assert_eq!(drift.slow_hour, None);
    }

    #[test]
    fn slow_hour_is_named() {
        let start_hour = 1_700_000_000 / HOUR_S;
        let latency = |hour: i64| {
            if (start_hour + hour).rem_euclid(24) == 3 {
                1300.0
            } else {
                1000.0
            }
        };
        let slow = drift(&week(latency)).unwrap().slow_hour.unwrap();
        assert_eq!(slow.hour, 3);
        assert!((slow.change - 0.3).abs() < 0.02, "{slow:?}");
    }

    #[test]
    fn few_points_show_nothing() {
        let points = week(|_| 1000.0);
        assert_eq!(drift(&points[..3]), None);
        assert!(drift(&points[..4]).unwrap().slow_hour.is_none());
        let at_once = [points[0]; 5];
        assert_eq!(drift(&at_once), None);
    }
}
