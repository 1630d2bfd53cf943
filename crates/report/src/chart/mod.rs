//! Charts as data: axes with units, series of points. SVG files, browser pages and the terminal
//! draw the same charts.

mod accept;
mod depth;
mod latency;
mod naming;
mod ping;
mod range;
mod rays;
mod surface;
mod time;
mod types;
mod units;

pub(crate) use naming::target_among_several;
pub use range::{Range, Ranges};
pub use types::{Axis, AxisSide, Chart, Guide, Scale, Series, SeriesMark, SeriesPoint};
pub(crate) use units::position_unit;

use crate::text::clean;
use diskproof_model::record::Record;
use std::collections::BTreeMap;

/// Every chart that this record has data for: surface, acceptance test, single requests, observed
/// load, boundary of reads and writes, depth, latency, then rates over time. All numbers are
/// finite, no series is empty, ids are unique, and texts have no hidden characters.
pub fn charts(record: &Record) -> Vec<Chart> {
    let mut charts = surface::charts(record);
    charts.extend(accept::charts(record));
    charts.extend(ping::charts(record));
    if let Some(observed) = record.observed() {
        charts.extend(time::observed_charts(observed));
    }
    charts.extend(rays::boundary_chart(record));
    match record.sweep() {
        // One picture for each of a hundred cells would hide the answer.
        Some(sweep) => charts.extend(depth::sweep_charts(sweep)),
        None => {
            charts.extend(depth::charts(record));
            charts.extend(latency::charts(record));
            charts.extend(time::charts(record));
        }
    }
    let mut used_ids = BTreeMap::new();
    let mut drawable_charts = Vec::new();
    for chart in charts {
        if let Some(mut chart) = drawable(chart) {
            chart.id = unused_id(&mut used_ids, &chart.id);
            drawable_charts.push(chart);
        }
    }
    drawable_charts
}

/// The chart without undrawable points; `None` if no point is left.
fn drawable(mut chart: Chart) -> Option<Chart> {
    for series in &mut chart.series {
        series.name = clean(&series.name);
        let y = match (series.side, &chart.y_right) {
            (AxisSide::Right, Some(right)) => right,
            _ => &chart.y,
        };
        keep_drawable(series, chart.x.scale, y.scale);
    }
    chart.series.retain(|series| !series.points.is_empty());
    if chart.series.is_empty() {
        return None;
    }
    let is_right_used = chart
        .series
        .iter()
        .any(|series| series.side != AxisSide::Left);
    if !is_right_used {
        chart.y_right = None;
        chart.guides.retain(|guide| guide.axis != AxisSide::Right);
    }
    limit_axis(&mut chart.x);
    limit_axis(&mut chart.y);
    if let Some(right) = &mut chart.y_right {
        limit_axis(right);
    }
    chart
        .guides
        .retain(|guide| guide.value.abs() < VALUE_ABS_MAX);
    for guide in &mut chart.guides {
        guide.label = clean(&guide.label);
    }
    chart.title = clean(&chart.title);
    chart.caption = clean(&chart.caption);
    Some(chart)
}

/// Larger values would make arithmetic on the ends of an axis overflow.
const VALUE_ABS_MAX: f64 = 1e100;

fn limit_axis(axis: &mut Axis) {
    axis.min = axis.min.filter(|end| end.abs() < VALUE_ABS_MAX);
    axis.max = axis.max.filter(|end| end.abs() < VALUE_ABS_MAX);
    axis.ticks.retain(|tick| tick.abs() < VALUE_ABS_MAX);
}

fn keep_drawable(series: &mut Series, x: Scale, y: Scale) {
    series
        .points
        .retain(|point| is_drawable(x, point.x) && is_drawable(y, point.y));
    for point in &mut series.points {
        if let Some(half_width) = point.half_width_95
            && !(half_width > 0.0 && half_width < VALUE_ABS_MAX)
        {
            point.half_width_95 = None;
        }
    }
}

fn is_drawable(scale: Scale, value: f64) -> bool {
    match scale {
        Scale::Linear => value.abs() < VALUE_ABS_MAX,
        Scale::Log => value < VALUE_ABS_MAX && value > 1.0 / VALUE_ABS_MAX,
        Scale::Percentile => (0.0..100.0).contains(&value),
    }
}

/// The id, with a number if another chart has it. `used` counts the charts by id.
fn unused_id(used: &mut BTreeMap<String, usize>, id: &str) -> String {
    let mut free = id.to_owned();
    while used.contains_key(&free) {
        let count = used.entry(id.to_owned()).or_insert(1);
        *count += 1;
        free = format!("{id}-{count}");
    }
    used.insert(free.clone(), 1);
    free
}

/// Disk, machine, time and run, for the line below every picture. Without hidden characters.
pub fn origin(record: &Record) -> String {
    let mut facts: Vec<String> = Vec::new();
    match record.targets.as_slice() {
        [target] => {
            if let Some(disk) = target.disks().next() {
                facts.extend(disk.model.clone());
                if let Some(serial) = &disk.serial {
                    facts.push(format!("serial {serial}"));
                }
            }
            facts.push(target.path.clone());
        }
        targets => {
            for target in targets {
                facts.push(target.path.clone());
            }
        }
    }
    facts.push(format!("on {}", record.host.name));
    facts.push(record.started.clone());
    facts.push(format!("{} {}", record.tool.name, record.tool.version));
    facts.push(format!("run {}", record.run_id));
    clean(&facts.join(" · "))
}

#[cfg(test)]
mod tests {
    use super::naming::{SLUG_MAX, slug};
    use super::*;

    fn boundary_chart(points: Vec<(f64, f64)>) -> Chart {
        let mut series = Series::new("a\u{1b}", SeriesMark::Line, points);
        for (point, half_width) in series.points.iter_mut().zip([f64::NAN, 0.5]) {
            point.half_width_95 = Some(half_width);
        }
        Chart {
            id: "c".to_owned(),
            title: String::new(),
            caption: String::new(),
            x: Axis::new("depth", ""),
            y: Axis::new("latency", "ms").scaled(Scale::Log),
            y_right: Some(Axis::new("rate", "1/s")),
            series: vec![series],
            guides: vec![Guide {
                label: "knee".to_owned(),
                axis: AxisSide::X,
                value: f64::INFINITY,
            }],
        }
    }

    #[test]
    fn undrawable_points_are_removed() {
        let points = [(0.0, 1.0), (1.0, 2.0), (2.0, 0.0), (f64::NAN, 1.0)];
        let kept = drawable(boundary_chart(points.to_vec())).unwrap();
        let kept_point = |x: f64, y: f64, half_width_95: Option<f64>| SeriesPoint {
            x,
            y,
            half_width_95,
        };
        let expected = [kept_point(0.0, 1.0, None), kept_point(1.0, 2.0, Some(0.5))];
        assert_eq!(kept.series[0].points, expected);
        assert_eq!(kept.series[0].name, "a\\u{1b}");
        assert!(kept.guides.is_empty() && kept.y_right.is_none());
        assert_eq!(drawable(boundary_chart(vec![(0.0, -1.0)])), None);
    }

    #[test]
    fn ids_are_unique_and_fit_for_file_names() {
        assert_eq!(slug("Random Read/d32"), "random-read-d32");
        assert_eq!(slug("../../etc\u{1b}"), "etc");
        assert_eq!(slug("数据"), "unnamed");
        assert!(slug(&"ab ".repeat(90)).len() <= SLUG_MAX);
        let mut ids = BTreeMap::new();
        assert_eq!(
            [(); 3].map(|()| unused_id(&mut ids, "a")),
            ["a", "a-2", "a-3"]
        );
    }
}
