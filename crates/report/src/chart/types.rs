//! The parts of a chart: axes, series, points, marks, guides.

use diskproof_model::record::Estimate;
use serde::Serialize;

/// A picture of one aspect of a record.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Chart {
    /// Stable name, such as `curve` or `latency-percentiles-random-read-d32`: part of file names
    /// and anchors.
    pub id: String,
    /// The subject and, after a colon, the main figures.
    pub title: String,
    /// One sentence or more on how to read it.
    pub caption: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The left axis.
    pub y: Axis,
    /// The right axis, if some series have another unit.
    pub y_right: Option<Axis>,
    /// The data, in the order in which it is drawn and named.
    pub series: Vec<Series>,
    /// Marked values, drawn as thin lines across the picture.
    pub guides: Vec<Guide>,
}

/// A percentile chart shows at most this many lines at first, because more cannot be distinguished.
pub(super) const PERCENTILE_LINES: usize = 5;

impl Chart {
    /// The two parts of the title: the subject and the main figures.
    pub(crate) fn headline(&self) -> (&str, &str) {
        self.title.split_once(": ").unwrap_or((&self.title, ""))
    }

    /// The number of series that are drawn until the reader chooses others.
    pub(crate) fn shown_at_first(&self) -> usize {
        match self.x.scale {
            Scale::Percentile => PERCENTILE_LINES.min(self.series.len()),
            Scale::Linear | Scale::Log => self.series.len(),
        }
    }
}

/// A marked value, such as the knee, an average or a limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Guide {
    /// Name and figure, such as `average 180 MB/s`.
    pub label: String,
    /// The axis of the value; the line of a horizontal one is vertical.
    pub axis: AxisSide,
    /// The value, in the unit of that axis.
    pub value: f64,
}

impl Guide {
    pub(crate) fn new(axis: AxisSide, label: String, value: f64) -> Self {
        Self { label, axis, value }
    }

    /// True if it is drawn as a vertical line.
    pub(crate) fn is_vertical(&self) -> bool {
        self.axis == AxisSide::X
    }
}

/// An axis, with its unit and range.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Axis {
    /// The quantity on the axis, such as `position`.
    pub label: String,
    /// The unit of the values as printed, such as `GB`, `MB/s` or `ms`.
    pub unit: String,
    /// The spacing of values.
    pub scale: Scale,
    /// The start; `None` for the smallest value.
    pub min: Option<f64>,
    /// The end; `None` for the largest value.
    pub max: Option<f64>,
    /// Positions of labels where only some values make sense, such as measured depths. Empty: round
    /// values.
    pub ticks: Vec<f64>,
}

impl Axis {
    pub(crate) fn new(label: &str, unit: &str) -> Self {
        Self {
            label: label.to_owned(),
            unit: unit.to_owned(),
            ..Self::default()
        }
    }

    /// The label with the unit.
    pub(crate) fn name(&self) -> String {
        match self.unit.as_str() {
            "" => self.label.clone(),
            unit => format!("{} ({unit})", self.label),
        }
    }

    pub(crate) fn starting_at_zero(self) -> Self {
        Self {
            min: Some(0.0),
            ..self
        }
    }

    pub(crate) fn between(self, min: Option<f64>, max: Option<f64>) -> Self {
        Self { min, max, ..self }
    }

    pub(crate) fn labelled_at(self, ticks: impl Iterator<Item = f64>) -> Self {
        Self {
            ticks: ticks.collect(),
            ..self
        }
    }

    pub(crate) fn scaled(self, scale: Scale) -> Self {
        Self { scale, ..self }
    }
}

/// The spacing of values along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Equal differences are equally far apart.
    #[default]
    Linear,
    /// Equal ratios are equally far apart.
    Log,
    /// Percentiles as HdrHistogram plots them, by 1/(1−p): 90 %, 99 % and 99.9 % are equally far
    /// apart. Values are in percent.
    Percentile,
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// Line, dots or bars.
    pub mark: SeriesMark,
    /// The vertical axis of its values.
    pub side: AxisSide,
    /// Its points; of a line, x ascends.
    pub points: Vec<SeriesPoint>,
}

/// A point of a series, in the units of the axes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesPoint {
    /// The place along the horizontal axis.
    pub x: f64,
    /// The place along the vertical axis of the series.
    pub y: f64,
    /// The half-width of the 95 % interval of `y`; `None` of a point without one.
    pub half_width_95: Option<f64>,
}

impl Series {
    /// Points (x, y) without intervals.
    pub(crate) fn new(name: impl Into<String>, mark: SeriesMark, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            mark,
            side: AxisSide::Left,
            points: points
                .into_iter()
                .map(|(x, y)| SeriesPoint {
                    x,
                    y,
                    half_width_95: None,
                })
                .collect(),
        }
    }

    /// A line or bars of estimates, each divided by `unit`, with their intervals.
    pub(crate) fn estimates<'a>(
        name: impl Into<String>,
        mark: SeriesMark,
        estimates: impl IntoIterator<Item = (f64, &'a Estimate)>,
        unit: f64,
    ) -> Self {
        let mut series = Self::new(name, mark, Vec::new());
        for (x, estimate) in estimates {
            series.points.push(SeriesPoint {
                x,
                y: estimate.value / unit,
                half_width_95: estimate.half_width_95.map(|half_width| half_width / unit),
            });
        }
        series
    }

    /// True if any of its points has an interval.
    pub(crate) fn has_intervals(&self) -> bool {
        self.points
            .iter()
            .any(|point| point.half_width_95.is_some())
    }

    /// The name, and the axis if it is the right one.
    pub(crate) fn legend(&self) -> String {
        match self.side {
            AxisSide::Right => format!("{} (right axis)", self.name),
            AxisSide::X | AxisSide::Left => self.name.clone(),
        }
    }

    pub(crate) fn on_the_right(self) -> Self {
        Self {
            side: AxisSide::Right,
            ..self
        }
    }
}

/// The kind of mark of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SeriesMark {
    /// A line through all points.
    Line,
    /// Single dots.
    Dots,
    /// Bars from the axis up to the points.
    Bars,
}

/// One of the axes of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AxisSide {
    /// The horizontal axis.
    X,
    /// The left axis.
    Left,
    /// The right axis.
    Right,
}
