//! What a picture shows, before anybody draws it: axes with units, series of points. The SVG files, the pages and the terminal draw the same charts, so
//! that a figure is the same in each of them.

use diskproof_model::record::Record;

/// One picture.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Stable name, such as `curve` or `latency-percentiles-random-read-d32`: part of file names and anchors.
    pub id: String,
    /// What it shows, with the figures that a reader would ask for first.
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
}

/// How values are spread along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By powers of ten.
    Log,
    /// Percentiles as HdrHistogram plots them: by 1/(1−p), so that 90 %, 99 %, 99.9 % lie evenly apart. Values are in percent.
    Percentile,
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    pub mark: Mark,
    /// Which axis it is held against.
    pub side: Side,
    /// (x, y) in the units of the axes, x ascending for lines.
    pub points: Vec<(f64, f64)>,
    /// Half-widths of the 95 % intervals, one for each point; empty where there are none.
    pub half_widths_95: Vec<f64>,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A line.
    Line,
    /// Dots.
    Dots,
    /// Bars.
    Bars,
}

/// The axis of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The left one.
    Left,
    /// The right one.
    Right,
}

/// Every chart that this record has data for, in the order in which a reader wants them.
pub fn charts(_record: &Record) -> Vec<Chart> {
    Vec::new()
}
