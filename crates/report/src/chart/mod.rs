//! Charts as data: axes with units, series of points. SVG files, browser pages and the terminal
//! draw the same charts.

mod depth;
mod latency;
mod ping;
mod range;
mod rays;
mod surface;
mod time;
mod types;

pub use range::{Range, Ranges};
pub use types::{Axis, AxisSide, Chart, Guide, Scale, Series, SeriesMark};
pub(crate) use types::{position_unit, target_among_several};

use crate::text::clean;
use diskproof_model::record::Record;
use std::collections::BTreeMap;

/// Every chart that this record has data for: surface, single requests, observed load, boundary of
/// reads and writes, depth, latency, then rates over time. All numbers are finite, no series is
/// empty, ids are unique, and texts have no hidden characters.
pub fn charts(record: &Record) -> Vec<Chart> {
    let mut charts = surface::charts(record);
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
    chart.guides.retain(|guide| guide.at.abs() < VALUE_ABS_MAX);
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
    let points = std::mem::take(&mut series.points);
    let half_widths = std::mem::take(&mut series.half_widths_95);
    for (index, point) in points.into_iter().enumerate() {
        if !is_drawable(x, point.0) || !is_drawable(y, point.1) {
            continue;
        }
        let half_width = match half_widths.get(index) {
            Some(width) if (0.0..VALUE_ABS_MAX).contains(width) => *width,
            _ => 0.0,
        };
        series.points.push(point);
        series.half_widths_95.push(half_width);
    }
    if series.half_widths_95.iter().all(|width| *width == 0.0) {
        series.half_widths_95.clear();
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
    use super::types::{SLUG_MAX, slug};
    use super::*;

    fn boundary_chart(points: Vec<(f64, f64)>) -> Chart {
        let mut series = Series::new("a\u{1b}", SeriesMark::Line, points);
        series.half_widths_95 = vec![f64::NAN, 0.5];
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
                at: f64::INFINITY,
            }],
        }
    }

    #[test]
    fn undrawable_points_are_removed() {
        let points = [(0.0, 1.0), (1.0, 2.0), (2.0, 0.0), (f64::NAN, 1.0)];
        let kept = drawable(boundary_chart(points.to_vec())).unwrap();
        assert_eq!(kept.series[0].points, [(0.0, 1.0), (1.0, 2.0)]);
        assert_eq!(kept.series[0].half_widths_95, [0.0, 0.5]);
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
