//! IOPS and latency over depth, where measurements of a record differ in depth only.

use super::names::{latency_unit, slug};
use super::types::{Axis, Chart, Guide, GuideAxis, Scale, Series, SeriesMark};
use diskproof_model::digits::rounded;
use diskproof_model::measurement::OpKind;
use diskproof_model::plan::Access;
use diskproof_model::record::{MeasurementRecord, OpRecord, Record, WorkloadRecord};
use diskproof_model::units::format_bytes;

/// Fewer depths cannot show a knee.
const DEPTHS_LEAST: usize = 3;

/// One chart for each group and kind of operation.
pub(super) fn charts(record: &Record) -> Vec<Chart> {
    let mut charts = Vec::new();
    for group in groups(record) {
        for (kind, _) in OpKind::headline(&group[0].ops) {
            charts.extend(chart(record, &group, kind));
        }
    }
    charts
}

/// Measurements that differ in depth only.
fn groups(record: &Record) -> Vec<Vec<&MeasurementRecord>> {
    let mut groups: Vec<Vec<&MeasurementRecord>> = Vec::new();
    for m in record
        .measurements
        .iter()
        .filter(|m| m.workload.rate.is_none())
    {
        let alike = |group: &&mut Vec<&MeasurementRecord>| {
            group.iter().all(|other| differ_in_depth(other, m))
        };
        match groups.iter_mut().find(alike) {
            Some(group) => group.push(m),
            None => groups.push(vec![m]),
        }
    }
    groups
}

fn differ_in_depth(a: &MeasurementRecord, b: &MeasurementRecord) -> bool {
    // Names always differ. So may the engine: a depth of one needs no queue.
    let same = |w: &WorkloadRecord| WorkloadRecord {
        name: String::new(),
        depth: 0,
        workers: 0,
        engine: a.workload.engine,
        ..w.clone()
    };
    a.target == b.target
        && in_flight(&a.workload) != in_flight(&b.workload)
        && same(&a.workload) == same(&b.workload)
}

fn in_flight(w: &WorkloadRecord) -> u64 {
    u64::from(w.depth) * u64::from(w.workers)
}

fn chart(record: &Record, group: &[&MeasurementRecord], kind: OpKind) -> Option<Chart> {
    let points = group.iter().filter_map(|m| {
        let op = m.ops.get(&kind).filter(|op| op.count > 0)?;
        Some((in_flight(&m.workload), op))
    });
    let mut points: Vec<(u64, &OpRecord)> = points.collect();
    points.sort_by_key(|(depth, _)| *depth);
    if points.len() < DEPTHS_LEAST {
        return None;
    }
    let longest = &points.last()?.1.latency;
    let (latency, ns) = latency_unit(longest.p99.map_or(longest.mean, |ns| ns as f64));
    let at = || points.iter().map(|(depth, op)| (*depth as f64, *op));
    let iops = at().map(|(depth, op)| (depth, &op.iops));
    let mean = at().map(|(depth, op)| (depth, op.latency.mean / ns));
    let p99 = at().filter_map(|(depth, op)| Some((depth, op.latency.p99? as f64 / ns)));
    let rates = points.iter().map(|(_, op)| &op.iops);
    let best = rates.max_by(|a, b| a.value.total_cmp(&b.value))?;
    let best = rounded(best.value, best.half_width_95);
    let what = what(record, group[0], kind);
    let knee = knee(&points);
    Some(Chart {
        id: format!("depth-{}", slug(&what)),
        title: format!("IOPS and latency over depth: {what}, at most {best} IOPS"),
        caption: caption(knee.as_ref()),
        x: Axis {
            ticks: at().map(|(depth, _)| depth).collect(),
            ..Axis::new("requests in flight", "").scaled(Scale::Log)
        },
        y: Axis::new("rate", "IOPS").starting_at_zero(),
        y_right: Some(Axis::new("latency", latency).starting_at_zero()),
        series: vec![
            Series::estimates("IOPS", SeriesMark::Line, iops, 1.0),
            Series::new("mean latency", SeriesMark::Line, mean.collect()).on_the_right(),
            Series::new("p99 latency", SeriesMark::Dots, p99.collect()).on_the_right(),
        ],
        guides: knee.into_iter().collect(),
    })
}

fn caption(knee: Option<&Guide>) -> String {
    match knee {
        Some(_) => {
            "More requests in flight give more IOPS up to the knee; beyond it they wait longer. \
             The knee is where IOPS over latency is largest."
        }
        None => {
            "More requests in flight give more IOPS until the disk is busy; then they wait \
             longer. These depths and intervals show no knee."
        }
    }
    .to_owned()
}

/// Block size, order and kind of operation: `8 KiB random reads`.
fn what(record: &Record, m: &MeasurementRecord, kind: OpKind) -> String {
    let order = match m.workload.access {
        Access::Random { .. } | Access::Zoned { .. } => "random ",
        Access::Sequential | Access::Backward | Access::Stride { .. } => "",
    };
    let streams = &m.workload.streams;
    let reads = f64::from(streams.permille(OpKind::Read)) / 10.0;
    let mixed = streams.is_mix().then(|| format!(" at {reads} % reads"));
    let target = record
        .targets
        .get(m.target)
        .filter(|_| record.targets.len() > 1);
    let target = target.map(|target| format!(" on {}", target.path));
    let block = format_bytes(u64::from(m.workload.block_bytes));
    format!(
        "{block} {order}{}s{}{}",
        kind.as_str(),
        mixed.unwrap_or_default(),
        target.unwrap_or_default()
    )
}

/// The depth of the largest power, which is throughput over response time (Kleinrock, ICC 1979). By
/// Little's law power is the square of the rate over the depth. A disk that serves `n` requests in
/// parallel has its knee at depth `n`. `None` where the intervals leave open which depth that is,
/// and at the smallest and the largest depth, beyond which there may be more.
fn knee(points: &[(u64, &OpRecord)]) -> Option<Guide> {
    let power = |(depth, op): &(u64, &OpRecord)| op.iops.value.powi(2) / *depth as f64;
    let best = points.iter().max_by(|a, b| power(a).total_cmp(&power(b)))?;
    let (depth, _) = best;
    // A square has twice the relative error.
    let width = |(_, op): &(u64, &OpRecord)| Some(2.0 * op.iops.relative_half_width()?);
    let low = power(best) * (1.0 - width(best)?);
    for other in points.iter().filter(|(other, _)| other != depth) {
        if power(other) * (1.0 + width(other)?) >= low {
            return None;
        }
    }
    let is_end = points.first()?.0 == *depth || points.last()?.0 == *depth;
    let label = format!("knee at {depth}");
    (!is_end).then(|| Guide::new(GuideAxis::X, label, *depth as f64))
}
