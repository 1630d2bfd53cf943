//! Marks of series: lines, dots, bars and error bars. Series differ in colour, and in shape or
//! dashes.

use super::colors::{ERROR_BAR, SERIES, fill_class, stroke_class};
use super::frame::{Frame, Pen, Point, px};
use crate::chart::{Chart, Series, SeriesMark};
use maud::{Markup, html};

/// Dashes distinguish lines where colours do not, as in print.
const DASHES: [Option<&str>; 6] = [
    None,
    Some("9 4"),
    Some("2.5 3"),
    Some("11 3.5 2.5 3.5"),
    Some("5 3"),
    Some("15 4 5 4"),
];
/// The points of a line are marked if there are at most this many; more marks would merge.
const POINTS_SHOWN: usize = 40;
/// With more dots than this, they are small and translucent, so that their density shows.
const DOTS_MANY: usize = 150;
/// A dot that marks a point of a line: wider than the line, narrower than a dot without one.
const LINE_DOT: DotLook = DotLook::new(3.2, 1.0);
/// A dot of a series without a line.
const SINGLE_DOT: DotLook = DotLook::new(4.0, 0.9);
/// A dot of a chart that has more than [`DOTS_MANY`].
const CROWDED_DOT: DotLook = DotLook::new(2.4, 0.65);
/// A dot in the legend, as large as a single one and opaque.
const LEGEND_DOT: DotLook = DotLook::new(4.0, 1.0);
/// Error bars that are shorter than this are not drawn: the dot would cover them.
const ERROR_BAR_MIN: f64 = 2.0;
/// Half of the length of the short lines at the ends of an error bar.
const ERROR_BAR_END: f64 = 4.0;

/// The radius and the opacity of dots.
#[derive(Debug, Clone, Copy)]
struct DotLook {
    radius: f64,
    opacity: f64,
}

impl DotLook {
    const fn new(radius: f64, opacity: f64) -> Self {
        Self { radius, opacity }
    }
}

/// The look of a series, by its index in the chart.
struct SeriesStyle {
    /// The classes of filled marks and of lines, by which a style sheet changes the colour.
    fill_class: String,
    line_class: String,
    color: &'static str,
    /// The shape of its dots, from 0 to [`SHAPES`].
    shape: usize,
}

impl SeriesStyle {
    fn new(index: usize) -> Self {
        let color_index = index % SERIES.len();
        Self {
            fill_class: fill_class(color_index),
            line_class: stroke_class(color_index),
            color: SERIES[color_index],
            shape: index % SHAPES,
        }
    }
}

/// Draws a series. A single line gets a tint down to the axis.
pub(super) fn series_marks(chart: &Chart, index: usize, frame: &Frame) -> Markup {
    let series = &chart.series[index];
    let style = SeriesStyle::new(index);
    let mut points = Vec::new();
    for point in &series.points {
        points.push(Point::new(frame.x(point.x), frame.y(series.side, point.y)));
    }
    html! {
        @match series.mark {
            SeriesMark::Line => {
                @if lines_in(&chart.series) == 1 && points.len() > 1 {
                    (tint_path(&points, &style, frame.bottom))
                }
                (line_path(&points, &style, dashes(chart, index)))
                @if points.len() <= POINTS_SHOWN { (dots_path(&points, &style, LINE_DOT)) }
            }
            SeriesMark::Dots => {
                @if dots_in(&chart.series) > DOTS_MANY {
                    (dots_path(&points, &style, CROWDED_DOT))
                } @else {
                    (dots_path(&points, &style, SINGLE_DOT))
                }
            }
            SeriesMark::Bars => {
                @let width = chart.bar_width().unwrap_or(1.0);
                (bar_rects(series, &style, frame, width))
            }
        }
        @if series.has_intervals() { (error_bars_path(series, frame)) }
    }
}

fn lines_in(series: &[Series]) -> usize {
    series
        .iter()
        .filter(|series| series.mark == SeriesMark::Line)
        .count()
}

/// The number of dots that all series have together.
fn dots_in(all_series: &[Series]) -> usize {
    let mut dots = 0;
    for series in all_series {
        if series.mark == SeriesMark::Dots {
            dots += series.points.len();
        }
    }
    dots
}

/// The mark of a series in the legend, from this point to the right.
pub(super) fn legend_mark(chart: &Chart, index: usize, start: Point, width: f64) -> Markup {
    let series = &chart.series[index];
    let style = SeriesStyle::new(index);
    let middle = Point::new(start.x + width / 2.0, start.y);
    let end = Point::new(start.x + width, start.y);
    html! {
        @match series.mark {
            SeriesMark::Line => {
                (line_path(&[start, end], &style, dashes(chart, index)))
                @if series.points.len() <= POINTS_SHOWN { (dots_path(&[middle], &style, LINE_DOT)) }
            }
            SeriesMark::Dots => { (dots_path(&[middle], &style, LEGEND_DOT)) }
            SeriesMark::Bars => {
                rect class=(style.fill_class) x=(px(middle.x - 7.0)) y=(px(middle.y - 6.0))
                    width="14" height="12" fill=(style.color) fill-opacity="0.6" {}
            }
        }
    }
}

/// The dashes of a line. Only lines are counted, so that the first line is solid.
pub(crate) fn dashes(chart: &Chart, index: usize) -> Option<&'static str> {
    DASHES[lines_in(&chart.series[..index]) % DASHES.len()]
}

fn polyline(points: &[Point]) -> Pen {
    let mut pen = Pen::default();
    for (index, point) in points.iter().enumerate() {
        if index == 0 {
            pen.move_to(*point);
        } else {
            pen.line_to(*point);
        }
    }
    pen
}

fn line_path(points: &[Point], style: &SeriesStyle, dashes: Option<&str>) -> Markup {
    html! {
        path class=(style.line_class) d=(polyline(points).path()) fill="none"
            stroke=(style.color) stroke-width="2.2" stroke-linejoin="round"
            stroke-linecap="round" stroke-dasharray=[dashes] {}
    }
}

fn tint_path(points: &[Point], style: &SeriesStyle, ground: f64) -> Markup {
    let first = points[0];
    let last = points[points.len() - 1];
    let mut pen = polyline(points);
    pen.line_to(Point::new(last.x, ground));
    pen.line_to(Point::new(first.x, ground));
    let path = pen.path() + "z";
    html! {
        path class=(style.fill_class) d=(path) fill=(style.color)
            fill-opacity="0.1" {}
    }
}

fn dots_path(points: &[Point], style: &SeriesStyle, look: DotLook) -> Markup {
    let DotLook { radius, opacity } = look;
    if style.shape == 0 {
        return discs(points, style, look);
    }
    let outline = Outline::new(style.shape, radius);
    let mut pen = Pen::default();
    for point in points {
        pen.move_to(outline.corner(*point));
        pen.stamp(&outline.path);
    }
    html! {
        path class=(style.fill_class) d=(pen.path()) fill=(style.color)
            fill-opacity=(opacity) {}
    }
}

/// Circles as round ends of lines without length, which take a third of the bytes of outlines.
fn discs(points: &[Point], style: &SeriesStyle, look: DotLook) -> Markup {
    let DotLook { radius, opacity } = look;
    let mut pen = Pen::default();
    for point in points {
        pen.move_to(*point);
        pen.stamp("h0");
    }
    let stroke_opacity = if opacity < 1.0 { Some(opacity) } else { None };
    html! {
        path class=(style.line_class) d=(pen.path()) fill="none"
            stroke=(style.color) stroke-width=(px(radius * 2.0)) stroke-linecap="round"
            stroke-opacity=[stroke_opacity] {}
    }
}

/// One dot of a series as an outline, for a legend.
pub(crate) fn dot(index: usize, middle: Point, radius: f64) -> String {
    let shape = index % SHAPES;
    if shape == 0 {
        let left = px(middle.x - radius);
        let y = px(middle.y);
        let width = px(radius * 2.0);
        let arc = format!("a{radius} {radius} 0 1 0");
        return format!("M{left} {y}{arc} {width} 0{arc}-{width} 0Z");
    }
    let outline = Outline::new(shape, radius);
    let corner = outline.corner(middle);
    format!("M{} {}{}", px(corner.x), px(corner.y), outline.path)
}

/// The number of shapes: circle, square, triangle, diamond and inverted triangle.
const SHAPES: usize = 5;

/// The shape of the dots of a series. All shapes have about the area of the first one, a circle.
struct Outline {
    /// The offset of one of its corners from the middle of the shape.
    right: f64,
    down: f64,
    /// The path from that corner back to it. It is short, because a picture has thousands of dots.
    path: String,
}

impl Outline {
    fn new(shape: usize, radius: f64) -> Self {
        // The factors make the areas of the shapes about that of the circle, πr².
        let side = radius * 1.76;
        let tip = radius * 1.3;
        let half = radius * 1.2;
        let height = px(radius * 2.15);
        let [s, t, h, w] = [side, tip, half, half * 2.0].map(px);
        let (right, down, path) = match shape {
            1 => (-side / 2.0, -side / 2.0, format!("h{s}v{s}h-{s}Z")),
            2 => (0.0, -tip, format!("l{h} {height}h-{w}Z")),
            3 => (0.0, -tip, format!("l{t} {t}-{t} {t}-{t}-{t}Z")),
            _ => (0.0, tip, format!("l{h}-{height}h-{w}Z")),
        };
        Self { right, down, path }
    }

    /// The corner at which the path of a dot with this middle begins.
    fn corner(&self, middle: Point) -> Point {
        Point::new(middle.x + self.right, middle.y + self.down)
    }
}

fn bar_rects(series: &Series, style: &SeriesStyle, frame: &Frame, width: f64) -> Markup {
    html! {
        @for point in &series.points {
            @let left = frame.x(point.x - width / 2.0);
            @let right = frame.x(point.x + width / 2.0);
            @let top = frame.y(series.side, point.y);
            // Pale, so that dots of other series stand out on them.
            rect class={(style.fill_class) " " (style.line_class)}
                x=(px(left)) y=(px(top))
                width=(px(right - left)) height=(px(frame.bottom - top))
                fill=(style.color) fill-opacity="0.25"
                stroke=(style.color) stroke-width="1.6" {}
        }
    }
}

/// A vertical line over the interval with short ends; invisible ones are skipped.
fn error_bars_path(series: &Series, frame: &Frame) -> Markup {
    let mut pen = Pen::default();
    for point in &series.points {
        let Some(half_width) = point.half_width_95 else {
            continue;
        };
        let middle = frame.x(point.x);
        let high = frame.y(series.side, point.y + half_width);
        let low = frame.y(series.side, point.y - half_width);
        if low - high >= ERROR_BAR_MIN {
            let (left, right) = (middle - ERROR_BAR_END, middle + ERROR_BAR_END);
            pen.line(Point::new(left, high), Point::new(right, high));
            pen.line(Point::new(middle, high), Point::new(middle, low));
            pen.line(Point::new(left, low), Point::new(right, low));
        }
    }
    let path = pen.path();
    html! {
        @if !path.is_empty() {
            path.(ERROR_BAR.class) d=(path) fill="none" stroke=(ERROR_BAR.on_white)
                stroke-width="1.4" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Axis, Scale};

    /// The strokes of the error bars of two points on a logarithmic axis.
    fn error_strokes(half_widths: [f64; 2]) -> usize {
        let mut rates = Series::new("rate", SeriesMark::Dots, vec![(1.0, 100.0), (2.0, 250.0)]);
        for (point, half_width) in rates.points.iter_mut().zip(half_widths) {
            point.half_width_95 = Some(half_width);
        }
        let mut chart = Chart {
            y: Axis::new("rate", "1/s"),
            series: vec![rates],
            ..Chart::default()
        };
        chart.y.scale = Scale::Log;
        let frame = Frame {
            left: 0.0,
            right: 400.0,
            top: 0.0,
            bottom: 300.0,
            ranges: chart.ranges(),
        };
        let drawn = error_bars_path(&chart.series[0], &frame).into_string();
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        drawn.matches('m').count() + drawn.matches('M').count()
    }

    #[test]
    fn error_bar_of_an_uncertain_value_ends_at_the_axis() {
        let both = error_strokes([50.0, 20.0]);
        assert!(both > 0);
        for half_width in [99.9, 100.0, 130.0, 1e6] {
            assert_eq!(error_strokes([half_width, 20.0]), both, "{half_width}");
        }
    }
}
