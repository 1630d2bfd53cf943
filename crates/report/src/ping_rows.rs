//! Single requests as figures: one row per request, and the latencies after each idle time.

use crate::figures::FigureRow;
use diskproof_model::ping::{IdlePoint, PingRecord, SingleRequest};
use diskproof_model::record::{MeasurementRecord, Record};

const SECOND_NS: u64 = 1_000_000_000;

/// The rows of all pings in a record.
pub(crate) fn ping_rows(record: &Record) -> Vec<FigureRow> {
    let mut all = Vec::new();
    for m in &record.measurements {
        if let Some(ping) = &m.ping {
            all.extend(rows(m, ping));
        }
    }
    all
}

fn rows(m: &MeasurementRecord, ping: &PingRecord) -> Vec<FigureRow> {
    let own = FigureRow {
        target: m.target,
        workload: m.workload.name.clone(),
        ..FigureRow::default()
    };
    let mut all: Vec<FigureRow> = ping
        .after_idle
        .iter()
        .flat_map(|point| after_idle(&own, point))
        .collect();
    let requests = ping.requests.iter();
    all.extend(requests.map(|request| single(&own, request, m.start_ns)));
    all
}

/// A request that counts has a latency; another one says so by its metric.
fn single(own: &FigureRow, request: &SingleRequest, start_ns: u64) -> FigureRow {
    let metric = match (&request.error, request.ignored) {
        (Some(_), _) => "request_failed",
        (None, Some(_)) => "request_ignored",
        (None, None) => "request_latency",
    };
    let time_s = (request.at_ns as f64 - start_ns as f64) / SECOND_NS as f64;
    FigureRow {
        op: request.op.as_str(),
        metric,
        value: request.latency_ns as f64,
        unit: "ns",
        offset_bytes: Some(request.offset_bytes),
        time_s: Some(time_s),
        ..own.clone()
    }
}

/// Requests after one idle time, as the workload `ping-after-20ms`.
fn after_idle(own: &FigureRow, point: &IdlePoint) -> Vec<FigureRow> {
    let row = |metric, value: f64, unit| FigureRow {
        workload: format!("{}-after-{}", own.workload, idle_word(point.idle_ns)),
        metric,
        value,
        unit,
        n: Some(point.mean.n),
        ..own.clone()
    };
    vec![
        FigureRow {
            half_width_95: point.mean.half_width_95,
            ..row("latency_mean", point.mean.value, "ns")
        },
        row("latency_p50", point.p50_ns as f64, "ns"),
        row("latency_min", point.min_ns as f64, "ns"),
        row("latency_max", point.max_ns as f64, "ns"),
        row("slow_requests", point.slow as f64, "1"),
    ]
}

/// `20ms`, `5s`.
fn idle_word(ns: u64) -> String {
    match ns {
        0 => "0".to_owned(),
        ns if ns.is_multiple_of(SECOND_NS) => format!("{}s", ns / SECOND_NS),
        ns => format!("{}ms", ns as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::measurement::OpKind;
    use diskproof_model::ping::IgnoredBecause;
    use diskproof_model::record::Estimate;

    fn own() -> FigureRow {
        FigureRow {
            workload: "ping".to_owned(),
            ..FigureRow::default()
        }
    }

    #[test]
    fn request_row_says_whether_it_counts() {
        let request = SingleRequest {
            number: 2,
            at_ns: 2_500_000_000,
            op: OpKind::Read,
            offset_bytes: 8192,
            latency_ns: 96_300,
            idle_ns: None,
            error: None,
            ignored: None,
        };
        let row = single(&own(), &request, 500_000_000);
        assert_eq!(
            (row.metric, row.op, row.unit),
            ("request_latency", "read", "ns")
        );
        assert_eq!((row.value, row.time_s), (96_300.0, Some(2.0)));
        assert_eq!(row.offset_bytes, Some(8192));
        let ignored = SingleRequest {
            ignored: Some(IgnoredBecause::Warmup),
            ..request.clone()
        };
        assert_eq!(single(&own(), &ignored, 0).metric, "request_ignored");
        let failed = SingleRequest {
            error: Some("EIO".to_owned()),
            ..request
        };
        assert_eq!(single(&own(), &failed, 0).metric, "request_failed");
    }

    #[test]
    fn idle_rows_are_named_by_their_idle_time() {
        let point = IdlePoint {
            idle_ns: 20_000_000,
            mean: Estimate {
                n: 6,
                value: 150e3,
                half_width_95: Some(5e3),
                unit: "ns".to_owned(),
            },
            p50_ns: 149_000,
            min_ns: 140_000,
            max_ns: 170_000,
            slow: 1,
        };
        let rows = after_idle(&own(), &point);
        assert!(rows.iter().all(|row| row.workload == "ping-after-20ms"));
        assert!(rows.iter().all(|row| row.n == Some(6)));
        assert_eq!((rows[0].value, rows[0].half_width_95), (150e3, Some(5e3)));
        assert_eq!(idle_word(5_000_000_000), "5s");
        assert_eq!(idle_word(0), "0");
    }
}
