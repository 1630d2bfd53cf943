//! The parts of a chart: axes, series, marks, guides.

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
    pub(crate) fn new(label: &str, unit: &str) -> Self {
        Self {
            label: label.to_owned(),
            unit: unit.to_owned(),
            scale: Scale::Linear,
            min: None,
            max: None,
            ticks: Vec::new(),
        }
    }

    pub(crate) fn starting_at_zero(self) -> Self {
        Self {
            min: Some(0.0),
            ..self
        }
    }

    pub(crate) fn scaled(self, scale: Scale) -> Self {
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
    pub(crate) fn new(name: impl Into<String>, mark: SeriesMark, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            mark,
            side: AxisSide::Left,
            points,
            half_widths_95: Vec::new(),
        }
    }

    pub(crate) fn on_the_right(self) -> Self {
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
