//! Charts as data: axes with units, series of points. SVG files, browser pages and the terminal
//! draw the same charts.

mod depth;
mod latency;
mod ping;
mod range;
mod surface;
mod time;
mod types;

pub use range::{Range, Ranges};
pub(crate) use types::position_unit;
pub use types::{Axis, AxisSide, Chart, Guide, Scale, Series, SeriesMark};

use crate::text::clean;
use diskproof_model::record::Record;
use std::collections::BTreeMap;

/// Every chart that this record has data for: surface, single requests, observed load, depth,
/// latency, then rates over time. All numbers are finite, no series is empty, ids are unique, and
/// texts have no hidden characters.
pub fn charts(record: &Record) -> Vec<Chart> {
    let mut charts = surface::charts(record);
    charts.extend(ping::charts(record));
    charts.extend(
        record
            .observed()
            .into_iter()
            .flat_map(time::observed_charts),
    );
    match record.sweep() {
        // One picture for each of a hundred cells would hide the answer.
        Some(sweep) => charts.extend(depth::sweep_charts(sweep)),
        None => {
            charts.extend(depth::charts(record));
            charts.extend(latency::charts(record));
            charts.extend(time::charts(record));
        }
    }
    charts = charts.into_iter().filter_map(drawable).collect();
    let mut ids = BTreeMap::new();
    for chart in &mut charts {
        chart.id = unused(&mut ids, &chart.id);
    }
    charts
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
    let mut sides = chart.series.iter().map(|series| series.side);
    if sides.all(|side| side == AxisSide::Left) {
        chart.y_right = None;
        chart.guides.retain(|guide| guide.axis != AxisSide::Right);
    }
    let axes = [&mut chart.x, &mut chart.y].into_iter();
    for axis in axes.chain(&mut chart.y_right) {
        axis.min = axis.min.filter(|end| end.abs() < VALUE_ABS_MAX);
        axis.max = axis.max.filter(|end| end.abs() < VALUE_ABS_MAX);
        axis.ticks.retain(|tick| tick.abs() < VALUE_ABS_MAX);
    }
    chart.guides.retain(|guide| guide.at.abs() < VALUE_ABS_MAX);
    for guide in &mut chart.guides {
        guide.label = clean(&guide.label);
    }
    (chart.title, chart.caption) = (clean(&chart.title), clean(&chart.caption));
    (!chart.series.is_empty()).then_some(chart)
}

/// Larger values would make arithmetic on the ends of an axis overflow.
const VALUE_ABS_MAX: f64 = 1e100;

fn keep_drawable(series: &mut Series, x: Scale, y: Scale) {
    let fits = |scale: Scale, value: f64| match scale {
        Scale::Linear => value.abs() < VALUE_ABS_MAX,
        Scale::Log => value < VALUE_ABS_MAX && value > 1.0 / VALUE_ABS_MAX,
        Scale::Percentile => (0.0..100.0).contains(&value),
    };
    let widths = std::mem::take(&mut series.half_widths_95).into_iter();
    let widths = widths.map(|width| match width {
        0.0..VALUE_ABS_MAX => width,
        _ => 0.0,
    });
    let points = std::mem::take(&mut series.points).into_iter();
    let all = points.zip(widths.chain(std::iter::repeat(0.0)));
    let drawable = all.filter(|(point, _)| fits(x, point.0) && fits(y, point.1));
    (series.points, series.half_widths_95) = drawable.unzip();
    if series.half_widths_95.iter().all(|width| *width == 0.0) {
        series.half_widths_95.clear();
    }
}

/// The id, with a number if another chart has it. `used` counts the charts by id.
fn unused(used: &mut BTreeMap<String, usize>, id: &str) -> String {
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
            let disk = target.disks().next();
            facts.extend(disk.and_then(|disk| disk.model.clone()));
            let serial = disk.and_then(|disk| disk.serial.as_ref());
            facts.extend(serial.map(|serial| format!("serial {serial}")));
            facts.push(target.path.clone());
        }
        targets => facts.extend(targets.iter().map(|target| target.path.clone())),
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

    fn chart(points: Vec<(f64, f64)>) -> Chart {
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
        let kept = drawable(chart(points.to_vec())).unwrap();
        assert_eq!(kept.series[0].points, [(0.0, 1.0), (1.0, 2.0)]);
        assert_eq!(kept.series[0].half_widths_95, [0.0, 0.5]);
        assert_eq!(kept.series[0].name, "a\\u{1b}");
        assert!(kept.guides.is_empty() && kept.y_right.is_none());
        assert_eq!(drawable(chart(vec![(0.0, -1.0)])), None);
    }

    #[test]
    fn ids_are_unique_and_fit_for_file_names() {
        assert_eq!(slug("Random Read/d32"), "random-read-d32");
        assert_eq!(slug("../../etc\u{1b}"), "etc");
        assert_eq!(slug("数据"), "unnamed");
        assert!(slug(&"ab ".repeat(90)).len() <= SLUG_MAX);
        let mut ids = BTreeMap::new();
        assert_eq!([(); 3].map(|()| unused(&mut ids, "a")), ["a", "a-2", "a-3"]);
    }
}
