//! Charts as a self-contained SVG file: no script, font or style sheet. White, and dark in viewers
//! that support `prefers-color-scheme`.

mod frame;
mod marks;
mod ratios;

use crate::chart::{self, AxisSide, Chart, Guide, Scale, SeriesMark};
use crate::format::OutputFile;
use diskproof_model::record::Record;
pub(crate) use frame::px;
use frame::{EDGE, Frame, Pen, Tone, WIDTH, allowed, line, shortened, text, text_block};
use frame::{text_width, write_picture};
pub(crate) use marks::{COLORS, dashes, dot};
use marks::{mark, sample};
use maud::{Markup, html};
pub(crate) use ratios::write_comparison;
use std::io::{self, Write};
use std::path::Path;

/// In a file name, replaced by the name of a chart: each chart then gets its own file.
const EACH: char = '%';

/// The pictures of a record.
pub(crate) fn pictures<'a>(record: &'a Record, path: &Path) -> Vec<OutputFile<'a>> {
    let (charts, origin) = (chart::charts(record), chart::origin(record));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let file = |path: &Path, charts: Vec<Chart>| {
        let origin = origin.clone();
        OutputFile::new(path, move |out| write_sheet(&charts, &origin, out))
    };
    if !name.contains(EACH) {
        return vec![file(path, charts)];
    }
    let each = charts.into_iter().map(|chart| {
        let path = path.with_file_name(name.replace(EACH, &chart.id));
        file(&path, vec![chart])
    });
    each.collect()
}

/// Height of the plot. Between 16:9 and 5:2, slopes and steps are both easy to see.
const PLOT_HEIGHT: f64 = 380.0;
/// Room next to the plot for labels.
const SIDE_LABELS: f64 = 76.0;
/// Room on a side without labels, for the last label below.
const SIDE_FREE: f64 = 28.0;
/// Room below the data for the labels and the name of the axis.
const BELOW: f64 = 48.0;

/// From this number of charts on, two share a row, so that a sheet fits a screen or a page.
const SIDE_BY_SIDE_FROM: usize = 3;

/// Writes a picture of these charts, with `origin` below them.
pub fn write_sheet(charts: &[Chart], origin: &str, out: &mut dyn Write) -> io::Result<()> {
    let per_row = 1 + usize::from(charts.len() >= SIDE_BY_SIDE_FROM);
    let width = WIDTH * per_row as f64;
    let (mut panels, mut top) = (Vec::new(), 0.0);
    for row in charts.chunks(per_row) {
        let row = row.iter().enumerate();
        let row = row.map(|(column, chart)| panel(chart, column as f64 * WIDTH, top));
        let (drawn, heights): (Vec<Markup>, Vec<f64>) = row.unzip();
        panels.extend(drawn);
        top += heights.into_iter().fold(0.0, f64::max);
    }
    let (look, room) = ((11.0, Tone::Faint), width - 2.0 * EDGE);
    let (origin, origin_height) = text_block(origin, look, room, (EDGE, top + 4.0));
    let height = top + 4.0 + origin_height + EDGE - 6.0;
    let titles: Vec<&str> = charts.iter().map(|chart| chart.title.as_str()).collect();
    let content = html! { @for panel in panels { (panel) } (origin) };
    let caption = match charts {
        [chart] => Some(chart.caption.as_str()),
        _ => None,
    };
    let names = (titles.join(" · "), caption);
    write_picture((width, height.ceil()), (&names.0, names.1), &content, out)
}

/// A chart with its texts, and its height.
fn panel(chart: &Chart, left: f64, top: f64) -> (Markup, f64) {
    let room = WIDTH - 2.0 * EDGE;
    let block = |content: &str, look, top| text_block(content, look, room, (EDGE, top));
    let (headline, figures) = chart.headline();
    let (headline, height) = block(headline, (19.0, Tone::Strong), EDGE);
    let below = EDGE + height;
    let (figures, height) = block(figures, (13.0, Tone::Plain), below);
    let below = below + height;
    let (legend, height) = legend(chart, room, (EDGE, below + 4.0));
    let top_of_data = below + height + 14.0 + guide_room(chart);
    let frame = frame(chart, top_of_data, top_of_data + PLOT_HEIGHT);
    let below = frame.bottom + BELOW + 10.0;
    let (caption, height) = block(&chart.caption, (12.5, Tone::Plain), below);
    let drawn = html! {
        g transform=(format!("translate({left} {top:.1})")) {
            (headline) (figures) (legend) (plot(chart, &frame)) (caption)
        }
    };
    (drawn, below + height)
}

/// The data and its axes, for a page with its own title, legend, caption and colours.
pub(crate) fn inline(chart: &Chart) -> Markup {
    let frame = frame(chart, EDGE + guide_room(chart), EDGE + PLOT_HEIGHT);
    let height = frame.bottom + BELOW;
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img"
            aria-labelledby={"title-" (chart.id)}
        {
            (plot(chart, &frame))
        }
    }
}

/// The place of the data, with room next to it for the labels.
fn frame(chart: &Chart, top: f64, bottom: f64) -> Frame {
    let right_room = chart.y_right.as_ref().map_or(SIDE_FREE, |_| SIDE_LABELS);
    Frame {
        left: SIDE_LABELS,
        right: WIDTH - right_room,
        top,
        bottom,
        ranges: chart.ranges(),
    }
}

/// The data and its axes.
fn plot(chart: &Chart, frame: &Frame) -> Markup {
    // Lines last, so that dots do not hide them.
    let mut order: Vec<usize> = (0..chart.shown_at_first()).collect();
    order.sort_by_key(|index| chart.series[*index].mark == SeriesMark::Line);
    html! {
        (grid(frame))
        (axis_names(chart, frame))
        @for index in order { (mark(chart, index, frame)) }
        (guide_lines(chart, frame))
        (guide_labels(chart, frame))
        rect.frame x=(frame.left) y=(frame.top) width=(frame.right - frame.left)
            height=(frame.bottom - frame.top) fill="none" stroke="#8a93a1" {}
    }
}

/// Thin lines at the labels of the left axis and of the horizontal one, and all labels.
fn grid(frame: &Frame) -> Markup {
    let ranges = &frame.ranges;
    let shares_lines = ranges.y_right.as_ref().is_some_and(|right| {
        right.scale == Scale::Linear && right.ticks.len() == ranges.y.ticks.len()
    });
    let rows = &ranges.y.ticks;
    let columns = uncrowded(frame);
    let row = |tick: &f64| frame.y(AxisSide::Left, *tick);
    let column = |tick: &f64| frame.x(*tick);
    let mut lines = Pen::default();
    // To and fro, which is shorter.
    let mut ends = [frame.left, frame.right];
    for y in rows.iter().map(row) {
        lines.line((ends[0], y), (ends[1], y));
        ends.reverse();
    }
    let mut ends = [frame.top, frame.bottom];
    for x in columns.iter().map(column) {
        lines.line((x, ends[0]), (x, ends[1]));
        ends.reverse();
    }
    let left = |tick: &f64| (None, Some(row(tick)), ranges.y.label(*tick));
    let below = |tick: &f64| (Some(column(tick)), None, ranges.x.label(*tick));
    html! {
        path.grid d=(lines.path()) stroke="#e4e7ec" {}
        (labels("end", (frame.left - 8.0, 4.0), rows.iter().map(left)))
        (labels("middle", (0.0, frame.bottom + 17.0), columns.iter().map(below)))
        @if let Some(right) = &ranges.y_right {
            @let beside = |tick: &f64| {
                (None, Some(frame.y(AxisSide::Right, *tick)), right.label(*tick))
            };
            (labels("start", (frame.right + 8.0, 4.0), right.ticks.iter().map(beside)))
            @for tick in right.ticks.iter().filter(|_| !shares_lines) {
                @let y = frame.y(AxisSide::Right, *tick);
                (line("frame", "#8a93a1", (frame.right - 5.0, y), (frame.right, y)))
            }
        }
    }
}

/// The labels of an axis, from an origin on; what they share is written once.
fn labels(
    anchor: &str,
    origin: (f64, f64),
    texts: impl Iterator<Item = (Option<f64>, Option<f64>, String)>,
) -> Markup {
    let shift = format!("translate({} {})", px(origin.0), px(origin.1));
    html! {
        g.plain transform=(shift) text-anchor=(anchor) font-size="12" fill=(Tone::Plain.look().1) {
            @for (x, y, label) in texts {
                text x=[x.map(px)] y=[y.map(px)] { (allowed(&label)) }
            }
        }
    }
}

/// The ticks whose labels do not overlap.
fn uncrowded(frame: &Frame) -> Vec<f64> {
    let x = &frame.ranges.x;
    let mut free_from = f64::NEG_INFINITY;
    let is_free = |tick: &f64| {
        let half = text_width(&x.label(*tick), 12.0) / 2.0 + 4.0;
        let at = frame.x(*tick);
        let is_free = at - half >= free_from;
        if is_free {
            free_from = at + half;
        }
        is_free
    };
    x.ticks.iter().copied().filter(is_free).collect()
}

fn axis_names(chart: &Chart, frame: &Frame) -> Markup {
    let middle = f64::midpoint(frame.top, frame.bottom);
    let upright = |x: f64, turn: i32, name: &str| {
        let place = format!("translate({} {})rotate({turn})", px(x), px(middle));
        html! { text transform=(place) { (allowed(name)) } }
    };
    let center = f64::midpoint(frame.left, frame.right);
    let below = frame.bottom + 40.0;
    html! {
        g.plain text-anchor="middle" font-size="13" fill=(Tone::Plain.look().1) {
            text x=(px(center)) y=(px(below)) { (allowed(&chart.x.name())) }
            (upright(EDGE + 2.0, -90, &chart.y.name()))
            @if let Some(right) = &chart.y_right {
                (upright(WIDTH - EDGE - 2.0, 90, &right.name()))
            }
        }
    }
}

fn guide_lines(chart: &Chart, frame: &Frame) -> Markup {
    let ends = |guide: &Guide| match guide.axis {
        AxisSide::X => {
            let x = frame.x(guide.at);
            ((x, frame.top), (x, frame.bottom))
        }
        side => {
            let y = frame.y(side, guide.at);
            ((frame.left, y), (frame.right, y))
        }
    };
    guide_strokes(chart.guides.iter().map(ends))
}

/// Dashed lines from point to point.
fn guide_strokes(lines: impl IntoIterator<Item = ((f64, f64), (f64, f64))>) -> Markup {
    let mut pen = Pen::default();
    for (from, to) in lines {
        pen.line(from, to);
    }
    let path = pen.path();
    html! {
        @if !path.is_empty() {
            path.guide d=(path) fill="none" stroke="#5a6472" stroke-dasharray="5 4" {}
        }
    }
}

/// Height of a line of guide labels.
const GUIDE_ROW: f64 = 18.0;
/// The piece of a dashed line before the names of the level lines.
const GUIDE_SAMPLE: f64 = 28.0;

fn has_guide(chart: &Chart, is_vertical: bool) -> bool {
    let mut guides = chart.guides.iter();
    guides.any(|guide| (guide.axis == AxisSide::X) == is_vertical)
}

/// Room above the plot for the labels of guides, where they cover no data.
fn guide_room(chart: &Chart) -> f64 {
    let rows = [true, false].map(|kind| f64::from(u8::from(has_guide(chart, kind))));
    GUIDE_ROW * (rows[0] + rows[1])
}

/// Labels of vertical guides stand above them, those of level lines in a line above that.
fn guide_labels(chart: &Chart, frame: &Frame) -> Markup {
    let width = |label: &str| text_width(label, 12.0);
    let is_vertical = |guide: &&Guide| guide.axis == AxisSide::X;
    let level = chart.guides.iter().filter(|guide| !is_vertical(guide));
    let level: Vec<&str> = level.map(|guide| guide.label.as_str()).collect();
    let room = frame.right - frame.left - GUIDE_SAMPLE;
    let level = shortened(&level.join(" · "), room, 12.0);
    let has_row = has_guide(chart, true);
    let above = if has_row { GUIDE_ROW } else { 0.0 };
    let y = frame.top - 6.0;
    html! {
        @for guide in chart.guides.iter().filter(is_vertical) {
            @let at = frame.x(guide.at).min(frame.right - width(&guide.label));
            (text(at.max(frame.left), y, "start", 12.0, Tone::Plain, &guide.label))
        }
        @if !level.is_empty() {
            @let end = frame.right - width(&level) - 5.0;
            @let (from, to) = ((end - GUIDE_SAMPLE + 5.0, y - above - 4.0), (end, y - above - 4.0));
            (guide_strokes([(from, to)]))
            (text(frame.right, y - above, "end", 12.0, Tone::Plain, &level))
        }
    }
}

const LEGEND_ROW: f64 = 20.0;
const LEGEND_SAMPLE: f64 = 34.0;
const LEGEND_SIZE: f64 = 12.5;

/// The marks of the series with their names from a corner on, as many side by side as fit, and
/// their height.
fn legend(chart: &Chart, room: f64, (left, top): (f64, f64)) -> (Markup, f64) {
    let (mut x, mut rows) = (0.0, 0);
    let mut entries = Vec::new();
    let drawn = chart.series.iter().take(chart.shown_at_first());
    for (index, series) in drawn.enumerate() {
        let name = shortened(&series.legend(), room - LEGEND_SAMPLE, LEGEND_SIZE);
        let width = LEGEND_SAMPLE + text_width(&name, LEGEND_SIZE) + 18.0;
        if x + width > room && x > 0.0 {
            (x, rows) = (0.0, rows + 1);
        }
        let left = left + x;
        let middle = top + f64::from(rows) * LEGEND_ROW + LEGEND_ROW / 2.0;
        let (start, baseline) = (left + LEGEND_SAMPLE, middle + 4.5);
        entries.push(html! {
            (sample(chart, index, (left, middle), LEGEND_SAMPLE - 8.0))
            (text(start, baseline, "start", LEGEND_SIZE, Tone::Plain, &name))
        });
        x += width;
    }
    let drawn = html! { @for entry in entries { (entry) } };
    (drawn, f64::from(rows + 1) * LEGEND_ROW)
}
