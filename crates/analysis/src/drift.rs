//! Judges the series of `sustain --every`: whether its latency changes over the days, by a line
//! through the points, and at which hour of the day it is slow, by the mean of each hour in
//! comparison with the others.

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
        let (mean_day, level) = (mean(days), mean(latencies));
        let (mut products, mut day_squares) = (0.0, 0.0);
        for (day, latency) in days.iter().zip(latencies) {
            products += (day - mean_day) * (latency - level);
            day_squares += (day - mean_day) * (day - mean_day);
        }
        if day_squares <= 0.0 {
            return None;
        }
        let slope = products / day_squares;
        let mut residuals = Vec::new();
        let mut error_squares = 0.0;
        for (day, latency) in days.iter().zip(latencies) {
            let residual = latency - level - slope * (day - mean_day);
            error_squares += residual * residual;
            residuals.push(residual);
        }
        let freedom = days.len() as f64 - 2.0;
        // Neighbours are alike where the latency follows the hours of the day, or wanders.
        let variance = error_squares / freedom / day_squares * widening(&residuals);
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
        let (mut in_hour, mut others) = (Vec::new(), Vec::new());
        for (point, residual) in points.iter().zip(residuals) {
            if point.at_s.div_euclid(HOUR_S).rem_euclid(HOURS) == hour {
                in_hour.push(*residual);
            } else {
                others.push(*residual);
            }
        }
        if in_hour.len() < HOUR_POINTS_MIN || others.len() < HOUR_POINTS_MIN {
            continue;
        }
        let difference = mean(&in_hour) - mean(&others);
        let spread = variance(&others).max(variance(&in_hour));
        let error = (spread * (1.0 / in_hour.len() as f64 + 1.0 / others.len() as f64)).sqrt();
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
    fn latency_that_falls_gets_better() {
        let falling = week(|hour| 1000.0 * (1.0 - 0.02 * hour as f64 / 24.0));
        assert_eq!(drift(&falling).unwrap().answer(), DriftAnswer::Better);
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

    fn points(values: &[(i64, f64)]) -> Vec<LatencyPoint> {
        values
            .iter()
            .map(|(at_s, latency_ns)| LatencyPoint {
                at_s: *at_s,
                latency_ns: *latency_ns,
            })
            .collect()
    }

    /// By hand: the slope of 0, 1, 2, 3, 4 days at 10, 12, 11, 14, 13 is 8/10 a day, the squares of
    /// the residuals are 3.6, and three degrees of freedom leave an error of √(3.6/3/10).
    #[test]
    fn slope_and_its_error_are_those_of_least_squares() {
        let days = [0.0, 1.0, 2.0, 3.0, 4.0];
        let line = Line::fitted(&days, &[10.0, 12.0, 11.0, 14.0, 13.0]).unwrap();
        let error = (3.6_f64 / 3.0 / 10.0 * widening(&line.residuals)).sqrt();
        assert!((line.slope - 0.8).abs() < 1e-9, "{}", line.slope);
        assert!((line.slope_error - error).abs() < 1e-9, "{error}");
    }

    /// A latency that follows the hours has as much noise as the same values in another order, but
    /// its neighbours say the same, so that the slope is known less well.
    #[test]
    fn neighbours_that_are_alike_widen_the_interval() {
        let wave = |hour: i64| 1000.0 * (1.0 + 0.3 * (hour as f64 / 12.0).sin());
        let alike = drift(&week(wave)).unwrap();
        let shuffled = drift(&week(|hour| wave(hour * 61 % 168))).unwrap();
        assert_eq!(alike.answer(), DriftAnswer::NoTrend);
        assert!(
            alike.half_width_95 > 1.5 * shuffled.half_width_95,
            "{alike:?} {shuffled:?}"
        );
    }

    /// Hours of a day without the first one, at 1000, and so many points of the first one.
    fn first_hour(latencies: &[f64]) -> Vec<LatencyPoint> {
        let mut values = Vec::new();
        for (day, latency) in (0..).zip(latencies) {
            values.push((day * 86_400, *latency));
        }
        for hour in 1..24 {
            values.push((hour * HOUR_S, 1000.0));
        }
        points(&values)
    }

    fn slow_hour_of(latencies: &[f64]) -> Option<u32> {
        let points = first_hour(latencies);
        let residuals: Vec<f64> = points
            .iter()
            .map(|point| point.latency_ns - 1000.0)
            .collect();
        slow_hour(&points, &residuals, 1000.0).map(|slow| slow.hour)
    }

    #[test]
    fn hour_is_slow_from_three_points_on() {
        assert_eq!(slow_hour_of(&[1300.0, 1301.0]), None);
        assert_eq!(slow_hour_of(&[1300.0, 1301.0, 1299.0]), Some(0));
    }

    /// By the spread of the others alone, which is none, it would be slow.
    #[test]
    fn hour_that_scatters_is_not_slow() {
        assert_eq!(slow_hour_of(&[500.0, 1100.0, 1700.0]), None);
    }

    /// Three points around a mean, and 23 others: the error of the difference is that of their
    /// larger spread, and 3.3 of it are needed.
    #[test]
    fn hour_is_slow_beyond_3_3_standard_errors() {
        let spread: f64 = 10.0;
        let error = (spread * spread * (1.0 / 3.0 + 1.0 / 23.0)).sqrt();
        for (errors, expected) in [(3.29, None), (3.31, Some(0))] {
            let level = 1000.0 + errors * error;
            let latencies = [level - spread, level, level + spread];
            assert_eq!(slow_hour_of(&latencies), expected, "{errors}");
        }
    }
}
