//! Single requests: their latencies over time, and the first latency after each idle time.

use super::types::{
    Axis, AxisSide, Chart, Guide, Scale, Series, SeriesMark, latency_unit, slug, subject,
};
use diskproof_model::measurement::OpKind;
use diskproof_model::ping::PingFigures;
use diskproof_model::record::Record;
use diskproof_model::row::Row;
use diskproof_model::units::{counted, format_latency};

/// The charts of each target.
pub(super) fn charts(record: &Record) -> Vec<Chart> {
    let mut charts = Vec::new();
    for m in &record.measurements {
        if let Some(ping) = &m.figures.ping {
            charts.extend(after_idle(record, m, ping));
            charts.extend(over_time(record, m, ping));
        }
    }
    charts
}

/// The latencies in the order of the requests.
fn over_time(record: &Record, m: &Row, ping: &PingFigures) -> Option<Chart> {
    let all = || m.data.requests.iter();
    let shown = || all().filter(|request| request.error.is_none());
    let counting = || all().filter(|request| request.counts());
    let longest_ns = counting().map(|request| request.latency_ns).max()?;
    let (unit, ns) = latency_unit(longest_ns as f64 / 5.0);
    let start_ns = m.data.requests.first()?.at_ns;
    let kinds = [
        (OpKind::Read, "reads"),
        (OpKind::Write, "writes"),
        (OpKind::Commit, "durable writes"),
    ];
    let series = kinds.map(|(kind, name)| {
        let points = shown().filter(|request| request.op == kind).map(|request| {
            let at = request.at_ns.saturating_sub(start_ns) as f64 / 1e9;
            (at, request.latency_ns as f64 / ns)
        });
        Series::new(name, SeriesMark::Dots, points.collect())
    });
    let guides = ping.latency.iter().filter_map(|(kind, latency)| {
        let is_shown = shown().any(|request| request.op == *kind);
        let label = format!("{} mean {}", kind.as_str(), latency.mean.text());
        is_shown.then(|| Guide::new(AxisSide::Left, label, latency.mean.value / ns))
    });
    Some(Chart {
        id: format!("requests-{}", slug(&m.data.workload.name)),
        title: format!(
            "Latency of {} over time, {}: longest {}",
            counted(counting().count() as u64, "request"),
            subject(record, m),
            format_latency(longest_ns)
        ),
        caption: "Each dot is one request: when it was sent, and how long it took. The figures \
                  exclude the warm-up at the start. Steps and rhythms reveal what a mean hides."
            .to_owned(),
        x: Axis::new("time", "s").starting_at_zero(),
        y: Axis::new("latency", unit).scaled(Scale::Log),
        series: series.into(),
        guides: guides.collect(),
        ..Chart::default()
    })
}

/// The mean latency of the first request after each idle time.
fn after_idle(record: &Record, m: &Row, ping: &PingFigures) -> Option<Chart> {
    let longest_ns = ping.after_idle.iter().map(|point| point.max_ns).max()?;
    let (unit, ns) = latency_unit(longest_ns as f64 / 5.0);
    let place = |idle_ns: u64| idle_ns as f64 / 1e6;
    let idle = ping.after_idle.iter().filter(|point| point.idle_ns > 0);
    let mean = idle.map(|point| (place(point.idle_ns), &point.mean));
    let single = m.data.requests.iter().filter(|request| request.counts());
    let single = single.filter_map(|request| {
        let idle_ns = request.idle_ns.filter(|idle_ns| *idle_ns > 0)?;
        Some((place(idle_ns), request.latency_ns as f64 / ns))
    });
    let awake = ping.after_idle.first().filter(|point| point.idle_ns == 0);
    let guides = awake.map(|point| {
        let label = format!("without idle time {}", point.mean.text());
        Guide::new(AxisSide::Left, label, point.mean.value / ns)
    });
    let (subject, longest) = (subject(record, m), format_latency(longest_ns));
    Some(Chart {
        id: format!("after-idle-{}", slug(&m.data.workload.name)),
        title: format!("First request after an idle time, {subject}: longest {longest}"),
        caption: "Line: mean latency of the first request after this idle time, with its 95 % \
                  interval; dots: single requests. A step upwards means that the disk, link or \
                  controller has to wake up."
            .to_owned(),
        x: Axis::new("idle time", "ms").scaled(Scale::Log),
        y: Axis::new("latency", unit).scaled(Scale::Log),
        series: vec![
            Series::estimates("mean", SeriesMark::Line, mean, ns),
            Series::new("requests", SeriesMark::Dots, single.collect()),
        ],
        guides: guides.into_iter().collect(),
        ..Chart::default()
    })
}
