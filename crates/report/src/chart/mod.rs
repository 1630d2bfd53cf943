//! Charts as data: axes with units, series of points. SVG files, browser pages and the terminal draw
//! the same charts.

mod depth;
mod latency;
mod range;
mod surface;
mod time;

pub use range::{Range, Ranges};

use crate::text::clean;
use diskproof_model::measurement::OpKind;
use diskproof_model::record::{MeasurementRecord, Record};
use std::collections::BTreeMap;

/// One picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Stable name, such as `curve` or `latency-percentiles-random-read-d32`: part of file names
    /// and anchors.
    pub id: String,
    /// What it shows, with the main figures.
    pub title: String,
    /// One sentence: how to read it.
    pub caption: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The left axis.
    pub y: Axis,
    /// The right axis, where some series have another unit.
    pub y_right: Option<Axis>,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Values that matter, drawn as thin lines across the picture.
    pub guides: Vec<Guide>,
}

/// A value that matters, such as the knee, an average or a limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Guide {
    /// What it is, with its figure.
    pub label: String,
    /// The axis that it is a value of.
    pub axis: GuideAxis,
    /// The value, in the unit of that axis.
    pub at: f64,
}

/// The axis that a guide is a value of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuideAxis {
    /// The horizontal axis: the line is upright.
    X,
    /// The left axis.
    Left,
    /// The right axis.
    Right,
}

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it measures, such as `position`.
    pub label: String,
    /// Its unit as printed, such as `GB`, `MB/s`, `ms`; values are in it.
    pub unit: String,
    /// How values are spread.
    pub scale: Scale,
    /// Where it begins; `None`: with the smallest value.
    pub min: Option<f64>,
    /// Where it ends; `None`: with the largest value.
    pub max: Option<f64>,
    /// Positions of labels where only some values make sense (measured depths); empty: at round
    /// values.
    pub ticks: Vec<f64>,
}

impl Axis {
    fn new(label: &str, unit: &str) -> Self {
        Self {
            label: label.to_owned(),
            unit: unit.to_owned(),
            scale: Scale::Linear,
            min: None,
            max: None,
            ticks: Vec::new(),
        }
    }

    fn starting_at_zero(self) -> Self {
        Self {
            min: Some(0.0),
            ..self
        }
    }

    fn scaled(self, scale: Scale) -> Self {
        Self { scale, ..self }
    }
}

/// How values are spread along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By powers of ten.
    Log,
    /// Percentiles as HdrHistogram plots them: by 1/(1−p), so that 90 %, 99 %, 99.9 % lie evenly
    /// apart. Values are in percent.
    Percentile,
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    pub mark: SeriesMark,
    /// Its vertical axis.
    pub side: AxisSide,
    /// (x, y) in the units of the axes, x ascending for lines.
    pub points: Vec<(f64, f64)>,
    /// Half-widths of the 95 % intervals, one for each point, 0 where one point has none; empty
    /// where no point has one.
    pub half_widths_95: Vec<f64>,
}

impl Series {
    fn new(name: impl Into<String>, mark: SeriesMark, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            mark,
            side: AxisSide::Left,
            points,
            half_widths_95: Vec::new(),
        }
    }

    fn on_the_right(self) -> Self {
        Self {
            side: AxisSide::Right,
            ..self
        }
    }
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesMark {
    /// A line.
    Line,
    /// Dots.
    Dots,
    /// Bars.
    Bars,
}

/// The axis of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AxisSide {
    /// The left one.
    Left,
    /// The right one.
    Right,
}

/// Every chart that this record has data for: surface, depth, latency, then rates over time. All
/// numbers are finite, no series is empty, ids are unique, and texts hold no hidden characters.
pub fn charts(record: &Record) -> Vec<Chart> {
    let mut charts = surface::charts(record);
    charts.extend(depth::charts(record));
    charts.extend(latency::charts(record));
    charts.extend(time::charts(record));
    let mut ids = BTreeMap::new();
    charts
        .into_iter()
        .filter_map(drawable)
        .map(|chart| Chart {
            id: unused(&mut ids, &chart.id),
            ..chart
        })
        .collect()
}

/// The chart without points that cannot be drawn; `None` without any others.
fn drawable(mut chart: Chart) -> Option<Chart> {
    for series in &mut chart.series {
        series.name = clean(&series.name);
        keep_drawable(
            series,
            chart.x.scale,
            scale_of(series.side, &chart.y, chart.y_right.as_ref()),
        );
    }
    chart.series.retain(|series| !series.points.is_empty());
    chart.guides.retain(|guide| guide.at.abs() < VALUE_ABS_MAX);
    for axis in [
        Some(&mut chart.x),
        Some(&mut chart.y),
        chart.y_right.as_mut(),
    ]
    .into_iter()
    .flatten()
    {
        axis.min = axis.min.filter(|end| end.abs() < VALUE_ABS_MAX);
        axis.max = axis.max.filter(|end| end.abs() < VALUE_ABS_MAX);
        axis.ticks.retain(|tick| tick.abs() < VALUE_ABS_MAX);
    }
    chart
        .guides
        .iter_mut()
        .for_each(|guide| guide.label = clean(&guide.label));
    if !chart
        .series
        .iter()
        .any(|series| series.side == AxisSide::Right)
    {
        chart.y_right = None;
        chart.guides.retain(|guide| guide.axis != GuideAxis::Right);
    }
    (chart.title, chart.caption) = (clean(&chart.title), clean(&chart.caption));
    (!chart.series.is_empty()).then_some(chart)
}

fn scale_of(side: AxisSide, y: &Axis, y_right: Option<&Axis>) -> Scale {
    match (side, y_right) {
        (AxisSide::Right, Some(axis)) => axis.scale,
        _ => y.scale,
    }
}

/// Arithmetic on the ends of an axis would overflow with larger values.
const VALUE_ABS_MAX: f64 = 1e100;

fn keep_drawable(series: &mut Series, x: Scale, y: Scale) {
    let fits = |scale: Scale, value: f64| match scale {
        Scale::Linear => value.abs() < VALUE_ABS_MAX,
        Scale::Log => value < VALUE_ABS_MAX && value > 1.0 / VALUE_ABS_MAX,
        Scale::Percentile => (0.0..100.0).contains(&value),
    };
    let widths = std::mem::take(&mut series.half_widths_95);
    let width = |index: usize| {
        widths
            .get(index)
            .copied()
            .filter(|width| (0.0..VALUE_ABS_MAX).contains(width))
            .unwrap_or(0.0)
    };
    let points = std::mem::take(&mut series.points)
        .into_iter()
        .enumerate()
        .filter(|(_, point)| fits(x, point.0) && fits(y, point.1));
    let (points, widths): (Vec<_>, Vec<_>) =
        points.map(|(index, point)| (point, width(index))).unzip();
    series.points = points;
    series.half_widths_95 = if widths.iter().any(|width| *width > 0.0) {
        widths
    } else {
        Vec::new()
    };
}

/// The id, numbered when another chart has it. `used` counts the charts by id.
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

/// A name as a part of ids and file names: lower-case letters, digits and single hyphens.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars().map(|c| c.to_ascii_lowercase()) {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.len() >= SLUG_MAX {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() {
        "unnamed".to_owned()
    } else {
        slug.to_owned()
    }
}

/// File names may have 255 bytes, and an extension and a folder's own prefix come on top.
const SLUG_MAX: usize = 60;

/// The name of a measurement among others: its workload, and its target where the run has several.
fn subject(record: &Record, m: &MeasurementRecord) -> String {
    match record.targets.get(m.target) {
        Some(target) if record.targets.len() > 1 => {
            format!("{} on {}", m.workload.name, target.path)
        }
        _ => m.workload.name.clone(),
    }
}

/// The name of an operation among others.
fn operation(record: &Record, m: &MeasurementRecord, kind: OpKind) -> String {
    if m.headline_ops().len() > 1 {
        format!("{} {}s", subject(record, m), kind.as_str())
    } else {
        subject(record, m)
    }
}

/// Disk, machine, time and run: the line below every picture. Without hidden characters.
pub fn origin(record: &Record) -> String {
    let mut facts: Vec<String> = Vec::new();
    match record.targets.as_slice() {
        [target] => {
            let disk = target.disks().next();
            facts.extend(disk.and_then(|disk| disk.model.clone()));
            facts.extend(
                disk.and_then(|disk| disk.serial.as_ref())
                    .map(|serial| format!("serial {serial}")),
            );
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

/// A unit, and how many of the record's own unit make one.
pub(crate) type Unit = (&'static str, f64);

/// Decimal, as disks are sold.
pub(crate) fn position_unit(bytes_max: f64) -> Unit {
    if bytes_max >= 1e9 {
        ("GB", 1e9)
    } else {
        ("MB", 1e6)
    }
}

/// Milliseconds, or microseconds where all values are below two milliseconds.
fn latency_unit(ns_largest: f64) -> Unit {
    if ns_largest >= 2e6 {
        ("ms", 1e6)
    } else {
        ("µs", 1e3)
    }
}

#[cfg(test)]
mod tests {
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
                axis: GuideAxis::X,
                at: f64::INFINITY,
            }],
        }
    }

    #[test]
    fn undrawable_points_are_removed() {
        let kept = drawable(chart(vec![
            (0.0, 1.0),
            (1.0, 2.0),
            (2.0, 0.0),
            (f64::NAN, 1.0),
        ]))
        .unwrap();
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
        assert_eq!(
            [
                unused(&mut ids, "a"),
                unused(&mut ids, "a"),
                unused(&mut ids, "a")
            ],
            ["a", "a-2", "a-3"]
        );
    }
}
