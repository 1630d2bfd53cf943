//! Single requests: their latencies over time, and the first latency after each idle time.

use super::naming::{slug, subject_name};
use super::types::{Axis, AxisSide, Chart, Guide, Scale, Series, SeriesMark};
use super::units::latency_unit_of_log_axis;
use diskproof_model::measurement::OpKind;
use diskproof_model::ping::{PingFigures, SingleRequest};
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::units::{counted, format_latency};

/// The charts of each target.
pub(super) fn charts(record: &Record) -> Vec<Chart> {
    let mut charts = Vec::new();
    for row in &record.measurements {
        if let Some(ping) = &row.figures.ping {
            charts.extend(after_idle_chart(record, row, ping));
            charts.extend(requests_chart(record, row, ping));
        }
    }
    charts
}

/// The requests that count: without the warm-up and those that failed or were stopped.
fn counting_requests(row: &Row) -> Vec<&SingleRequest> {
    let requests = row.data.requests.iter();
    requests.filter(|request| request.counts()).collect()
}

/// A dot for each request over time; `None` without a request that counts.
fn requests_chart(record: &Record, row: &Row, ping: &PingFigures) -> Option<Chart> {
    let counting = counting_requests(row);
    let longest_ns = counting.iter().map(|request| request.latency_ns).max()?;
    let (unit, unit_ns) = latency_unit_of_log_axis(longest_ns);
    let kinds = [
        (OpKind::Read, "reads"),
        (OpKind::Write, "writes"),
        (OpKind::Commit, "durable writes"),
    ];
    let mut series = Vec::new();
    for (kind, name) in kinds {
        let points = latencies_over_time(&row.data.requests, kind, unit_ns);
        series.push(Series::new(name, SeriesMark::Dots, points));
    }
    Some(Chart {
        id: format!("requests-{}", slug(&row.data.workload.name)),
        title: format!(
            "Latency of {} over time, {}: longest {}",
            counted(counting.len() as u64, "request"),
            subject_name(record, row),
            format_latency(longest_ns)
        ),
        caption: "Each dot is one request: when it was sent, and how long it took. The figures \
                  exclude the warm-up at the start. Steps and rhythms reveal what a mean hides."
            .to_owned(),
        x: Axis::new("time", "s").starting_at_zero(),
        y: Axis::new("latency", unit).scaled(Scale::Log),
        series,
        guides: mean_guides(&row.data.requests, ping, unit_ns),
        ..Chart::default()
    })
}

/// Seconds after the first request, and the latency, of the requests of one kind that succeeded.
fn latencies_over_time(requests: &[SingleRequest], kind: OpKind, unit_ns: f64) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    for request in requests {
        if request.error.is_none() && request.op == kind {
            let sent_ns = request.at_ns.saturating_sub(requests[0].at_ns);
            points.push((sent_ns as f64 / 1e9, request.latency_ns as f64 / unit_ns));
        }
    }
    points
}

/// A guide at the mean of each kind of request, unless none of them succeeded.
fn mean_guides(requests: &[SingleRequest], ping: &PingFigures, unit_ns: f64) -> Vec<Guide> {
    let mut guides = Vec::new();
    for (kind, latency) in &ping.latency {
        let has_points = requests
            .iter()
            .any(|request| request.error.is_none() && request.op == *kind);
        if has_points {
            let label = format!("{} mean {}", kind.as_str(), latency.mean.text());
            let mean = latency.mean.value / unit_ns;
            guides.push(Guide::new(AxisSide::Left, label, mean));
        }
    }
    guides
}

/// The latency of the first request after each idle time; `None` where none was measured.
fn after_idle_chart(record: &Record, row: &Row, ping: &PingFigures) -> Option<Chart> {
    let longest_ns = ping.after_idle.iter().map(|point| point.max_ns).max()?;
    let (unit, unit_ns) = latency_unit_of_log_axis(longest_ns);
    let mut means = Vec::new();
    for point in &ping.after_idle {
        if point.idle_ns > 0 {
            means.push((idle_ms(point.idle_ns), &point.mean));
        }
    }
    let mut single = Vec::new();
    for request in counting_requests(row) {
        match request.idle_ns {
            None | Some(0) => {}
            Some(idle_ns) => {
                single.push((idle_ms(idle_ns), request.latency_ns as f64 / unit_ns));
            }
        }
    }
    let mut guides = Vec::new();
    if let Some(awake) = ping.after_idle.first()
        && awake.idle_ns == 0
    {
        let label = format!("without idle time {}", awake.mean.text());
        let mean = awake.mean.value / unit_ns;
        guides.push(Guide::new(AxisSide::Left, label, mean));
    }
    Some(Chart {
        id: format!("after-idle-{}", slug(&row.data.workload.name)),
        title: format!(
            "First request after an idle time, {}: longest {}",
            subject_name(record, row),
            format_latency(longest_ns)
        ),
        caption: "Line: mean latency of the first request after this idle time, with its 95 % \
                  interval; dots: single requests. A step upwards means that the disk, link or \
                  controller has to wake up."
            .to_owned(),
        x: Axis::new("idle time", "ms").scaled(Scale::Log),
        y: Axis::new("latency", unit).scaled(Scale::Log),
        series: vec![
            Series::estimates("mean", SeriesMark::Line, means, unit_ns),
            Series::new("requests", SeriesMark::Dots, single),
        ],
        guides,
        ..Chart::default()
    })
}

/// An idle time in the unit of its axis.
fn idle_ms(idle_ns: u64) -> f64 {
    idle_ns as f64 / 1e6
}
