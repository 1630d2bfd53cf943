//! Figures of single requests (ping): the mean latency of each kind of operation, and the latency
//! of the first request after an idle time. docs/ping.md shows them.

use crate::estimate::mean_latency;
use diskproof_model::measurement::Measurement;
use diskproof_model::ping::{IdlePoint, PingFigures, PingLatency};
use std::collections::BTreeMap;

/// A request is slow if its latency exceeds all of three limits, which were chosen, not measured.
/// The first is this multiple of the median of requests without an idle time before them.
const SLOW_TIMES: u64 = 3;
/// The second limit is this time above that median: on a fast disk, less is noise of the machine.
const SLOW_BEYOND_NS: u64 = 1_000_000;
/// The third limit is this quantile of the requests without an idle time.
const USUAL_QUANTILE: f64 = 0.9;

/// Mean latencies and the effect of idle times, from the single requests of a measurement.
pub(crate) fn ping_figures(measurement: &Measurement) -> PingFigures {
    let mut latency = BTreeMap::new();
    for (kind, op) in &measurement.ops {
        let own: Vec<f64> = measurement
            .requests
            .iter()
            .filter(|request| request.counts() && request.op == *kind)
            .map(|request| request.latency_ns as f64)
            .collect();
        if own.is_empty() {
            continue;
        }
        let mean_ns = op.latency.mean_ns();
        let ping_latency = PingLatency {
            mean: mean_latency(&own, mean_ns),
            deviation_ns: op.latency.deviation_ns(mean_ns),
        };
        latency.insert(*kind, ping_latency);
    }
    let slow_from_ns = slow_from_ns(measurement);
    PingFigures {
        latency,
        after_idle: idle_points(measurement, slow_from_ns),
        slow_from_ns,
    }
}

/// The latencies of the counted requests by the idle time before them, in their order.
fn latencies_by_idle_time(measurement: &Measurement) -> BTreeMap<u64, Vec<u64>> {
    let mut by_idle: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for request in &measurement.requests {
        if let Some(idle_ns) = request.idle_ns
            && request.counts()
        {
            by_idle.entry(idle_ns).or_default().push(request.latency_ns);
        }
    }
    by_idle
}

/// The latency from which on a request is slow, in nanoseconds; `None` without requests that follow
/// at once.
fn slow_from_ns(measurement: &Measurement) -> Option<u64> {
    let by_idle = latencies_by_idle_time(measurement);
    let mut awake = by_idle.get(&0)?.clone();
    awake.sort_unstable();
    let median_ns = quantile(&awake, 0.5);
    let slow_ns = (SLOW_TIMES * median_ns).max(median_ns + SLOW_BEYOND_NS);
    Some(slow_ns.max(quantile(&awake, USUAL_QUANTILE)))
}

/// A point for each idle time, ascending. Without a limit no request counts as slow.
fn idle_points(measurement: &Measurement, slow_from_ns: Option<u64>) -> Vec<IdlePoint> {
    let mut points = Vec::new();
    for (idle_ns, in_order) in latencies_by_idle_time(measurement) {
        let values: Vec<f64> = in_order.iter().map(|ns| *ns as f64).collect();
        let mean_ns = values.iter().sum::<f64>() / values.len() as f64;
        let mut sorted = in_order;
        sorted.sort_unstable();
        points.push(IdlePoint {
            idle_ns,
            mean: mean_latency(&values, mean_ns),
            p50_ns: quantile(&sorted, 0.5),
            min_ns: sorted[0],
            max_ns: sorted[sorted.len() - 1],
            slow: match slow_from_ns {
                Some(limit_ns) => sorted.iter().filter(|ns| **ns > limit_ns).count() as u64,
                None => 0,
            },
        });
    }
    points
}

/// The smallest value that at least `share` of the values do not exceed. `sorted` must not be
/// empty.
fn quantile(sorted: &[u64], share: f64) -> u64 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use diskproof_model::measurement::OpKind;

    #[test]
    fn latencies_are_grouped_by_the_idle_time_before_them() {
        let m =
            fixture::ping::pinged(&[(0, 100_000), (0, 120_000), (0, 110_000), (2_000, 9_000_000)]);
        let record = ping_figures(&m);
        assert_eq!(record.slow_from_ns, Some(1_110_000));
        let points: Vec<_> = record
            .after_idle
            .iter()
            .map(|point| (point.idle_ns, point.p50_ns, point.mean.n, point.slow))
            .collect();
        assert_eq!(points, [(0, 110_000, 3, 0), (2_000, 9_000_000, 1, 1)]);
        let latency = &record.latency[&OpKind::Read];
        assert!(latency.mean.n == 4 && latency.mean.half_width_95.is_some());
    }

    #[test]
    fn quantile_is_a_value_that_was_seen() {
        assert_eq!(quantile(&[7], 0.5), 7);
        assert_eq!(quantile(&[1, 2, 3, 4], 0.5), 2);
        assert_eq!(quantile(&(1..=10).collect::<Vec<u64>>(), 0.9), 9);
    }
}
