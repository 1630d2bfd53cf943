//! Marks: lines, dots, bars and error bars. Colour and shape or dashes distinguish the series.

use super::frame::{Frame, Pen, px};
use crate::chart::{Chart, Series, SeriesMark};
use maud::{Markup, html};

/// Colours that colour-blind readers can distinguish, after Okabe and Ito and darkened for white
/// paper.
pub(crate) const COLORS: [&str; 8] = [
    "#0a64c8", "#d1490c", "#00835f", "#a63fb0", "#9a6a00", "#0b7f99", "#c2185b", "#4a5260",
];
/// Dashes of lines, so that they stay apart in print.
const DASHES: [Option<&str>; 6] = [
    None,
    Some("9 4"),
    Some("2.5 3"),
    Some("11 3.5 2.5 3.5"),
    Some("5 3"),
    Some("15 4 5 4"),
];
/// A line with at most so many points marks each of them.
const POINTS_SHOWN: usize = 40;
/// Many dots are drawn small and see-through, so that their density shows.
const DOTS_MANY: usize = 150;

fn color(index: usize) -> &'static str {
    COLORS[index % COLORS.len()]
}

fn class(kind: char, index: usize) -> String {
    format!("{kind}{}", index % COLORS.len())
}

/// A series. A single line gets a tint down to the axis.
pub(super) fn mark(chart: &Chart, index: usize, frame: &Frame) -> Markup {
    let series = &chart.series[index];
    let place = |(x, y)| (frame.x(x), frame.y(series.side, y));
    let points: Vec<(f64, f64)> = series.points.iter().copied().map(place).collect();
    let all = || chart.series.iter();
    let of_kind = |mark: SeriesMark| all().filter(move |series| series.mark == mark);
    let counts = of_kind(SeriesMark::Dots).map(|series| series.points.len());
    let dots_count: usize = counts.sum();
    html! {
        @match series.mark {
            SeriesMark::Line => {
                @if of_kind(SeriesMark::Line).count() == 1 && points.len() > 1 {
                    (tint(&points, index, frame.bottom))
                }
                (line(&points, index, dashes(chart, index)))
                @if points.len() <= POINTS_SHOWN { (dots(&points, index, 3.2, 1.0)) }
            }
            SeriesMark::Dots => {
                @let is_crowded = dots_count > DOTS_MANY;
                @let (size, opacity) = if is_crowded { (2.4, 0.65) } else { (4.0, 0.9) };
                (dots(&points, index, size, opacity))
            }
            SeriesMark::Bars => { (bars(series, index, frame, chart.bar_width().unwrap_or(1.0))) }
        }
        @if !series.half_widths_95.is_empty() { (error_bars(series, frame)) }
    }
}

/// The mark of a series in the legend.
pub(super) fn sample(
    chart: &Chart,
    index: usize,
    (left, middle): (f64, f64),
    width: f64,
) -> Markup {
    let series = &chart.series[index];
    html! {
        @match series.mark {
            SeriesMark::Line => {
                (line(&[(left, middle), (left + width, middle)], index, dashes(chart, index)))
                @if series.points.len() <= POINTS_SHOWN {
                    (dots(&[(left + width / 2.0, middle)], index, 3.2, 1.0))
                }
            }
            SeriesMark::Dots => { (dots(&[(left + width / 2.0, middle)], index, 4.0, 1.0)) }
            SeriesMark::Bars => {
                rect class=(class('f', index)) x=(px(left + width / 2.0 - 7.0)) y=(px(middle - 6.0))
                    width="14" height="12" fill=(color(index)) fill-opacity="0.6" {}
            }
        }
    }
}

/// Counts only lines, so that the first line is solid.
pub(crate) fn dashes(chart: &Chart, index: usize) -> Option<&'static str> {
    let before = chart.series[..index].iter();
    let lines = before.filter(|series| series.mark == SeriesMark::Line);
    DASHES[lines.count() % DASHES.len()]
}

fn through(points: &[(f64, f64)]) -> Pen {
    let (mut pen, mut points) = (Pen::default(), points.iter());
    if let Some(first) = points.next() {
        pen.move_to(*first);
    }
    points.for_each(|point| pen.line_to(*point));
    pen
}

fn line(points: &[(f64, f64)], index: usize, dashes: Option<&str>) -> Markup {
    html! {
        path class=(class('s', index)) d=(through(points).path()) fill="none" stroke=(color(index))
            stroke-width="2.2" stroke-linejoin="round" stroke-linecap="round"
            stroke-dasharray=[dashes] {}
    }
}

fn tint(points: &[(f64, f64)], index: usize, ground: f64) -> Markup {
    let (first, last) = (points[0].0, points[points.len() - 1].0);
    let mut pen = through(points);
    pen.line_to((last, ground));
    pen.line_to((first, ground));
    let path = pen.path() + "z";
    html! { path class=(class('f', index)) d=(path) fill=(color(index)) fill-opacity="0.1" {} }
}

fn dots(points: &[(f64, f64)], index: usize, size: f64, opacity: f64) -> Markup {
    if index.is_multiple_of(SHAPES) {
        return discs(points, index, size, opacity);
    }
    let ((left, top), path) = outline(index, size);
    let mut pen = Pen::default();
    for (x, y) in points {
        pen.move_to((x + left, y + top));
        pen.stamp(&path);
    }
    html! {
        path class=(class('f', index)) d=(pen.path()) fill=(color(index)) fill-opacity=(opacity) {}
    }
}

/// Circles as the round ends of lines without length, in a third of the bytes of outlines.
fn discs(points: &[(f64, f64)], index: usize, radius: f64, opacity: f64) -> Markup {
    let mut pen = Pen::default();
    for point in points {
        pen.move_to(*point);
        pen.stamp("h0");
    }
    let opacity = (opacity < 1.0).then_some(opacity);
    html! {
        path class=(class('s', index)) d=(pen.path()) fill="none" stroke=(color(index))
            stroke-width=(px(radius * 2.0)) stroke-linecap="round" stroke-opacity=[opacity] {}
    }
}

/// One dot of a series as an outline, for a legend.
pub(crate) fn dot(index: usize, (x, y): (f64, f64), r: f64) -> String {
    if index.is_multiple_of(SHAPES) {
        let (left, y, d) = (px(x - r), px(y), px(r * 2.0));
        return format!("M{left} {y}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0-{d} 0Z");
    }
    let ((left, top), path) = outline(index, r);
    format!("M{} {}{path}", px(x + left), px(y + top))
}

/// Circle, square, triangle, diamond and inverted triangle.
const SHAPES: usize = 5;

/// A square, triangle, diamond or inverted triangle of about the area of the first series' circle:
/// one of its corners, from the middle of the shape, and the path from there back to it. Short,
/// because a picture has thousands of them.
fn outline(index: usize, r: f64) -> ((f64, f64), String) {
    let (side, tip, half, low) = (r * 1.76, r * 1.3, r * 1.2, r * 2.15);
    let [s, t, h, l, w] = [side, tip, half, low, half * 2.0].map(px);
    match index % SHAPES {
        1 => ((-side / 2.0, -side / 2.0), format!("h{s}v{s}h-{s}Z")),
        2 => ((0.0, -tip), format!("l{h} {l}h-{w}Z")),
        3 => ((0.0, -tip), format!("l{t} {t}-{t} {t}-{t}-{t}Z")),
        _ => ((0.0, tip), format!("l{h}-{l}h-{w}Z")),
    }
}

fn bars(series: &Series, index: usize, frame: &Frame, width: f64) -> Markup {
    html! {
        @for (x, y) in &series.points {
            @let (left, top) = (frame.x(x - width / 2.0), frame.y(series.side, *y));
            @let right = frame.x(x + width / 2.0);
            // Pale, so that dots of other series stand out on them.
            @let classes = format!("{} {}", class('f', index), class('s', index));
            rect class=(classes) x=(px(left)) y=(px(top)) width=(px(right - left))
                height=(px(frame.bottom - top)) fill=(color(index)) fill-opacity="0.25"
                stroke=(color(index)) stroke-width="1.6" {}
        }
    }
}

/// A vertical line over the interval with short ends; invisible ones are skipped.
fn error_bars(series: &Series, frame: &Frame) -> Markup {
    let mut pen = Pen::default();
    for ((x, y), half) in series.points.iter().zip(&series.half_widths_95) {
        let x = frame.x(*x);
        let [high, low] = [y + half, y - half].map(|end| frame.y(series.side, end));
        if low - high >= 2.0 {
            pen.line((x - 4.0, high), (x + 4.0, high));
            pen.line((x, high), (x, low));
            pen.line((x - 4.0, low), (x + 4.0, low));
        }
    }
    let path = pen.path();
    html! {
        @if !path.is_empty() {
            path.error d=(path) fill="none" stroke="#12161c" stroke-width="1.4" {}
        }
    }
}
