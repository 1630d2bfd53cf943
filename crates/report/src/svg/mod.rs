//! Charts as a self-contained SVG file: no script, font or style sheet. White, and dark in viewers
//! that support `prefers-color-scheme`.

mod colors;
mod frame;
mod marks;
mod ratios;

use crate::chart::{self, AxisSide, Chart, Guide, Ranges, Scale, SeriesMark};
use crate::format::OutputFile;
use colors::{FRAME, GRID, GUIDE, PLAIN};
pub(crate) use colors::{GUIDE_ON_WHITE, SERIES as SERIES_COLORS};
use diskproof_model::record::Record;
use frame::{
    Drawn, EDGE, Font, Frame, Pen, Picture, Tone, WIDTH, allowed, line, shortened, text,
    text_block, text_width,
};
pub(crate) use frame::{Point, px};
pub(crate) use marks::{dashes, dot};
use marks::{legend_mark, series_marks};
use maud::{Markup, html};
pub(crate) use ratios::write_comparison;
use std::io::{self, Write};
use std::path::Path;

/// In a file name, the id of a chart replaces this character, so that each chart gets its own file.
const EACH_CHART: char = '%';

/// The SVG files of a record: one for all charts, or one for each.
pub(crate) fn pictures<'a>(record: &'a Record, path: &Path) -> Vec<OutputFile<'a>> {
    let charts = chart::charts(record);
    let origin = chart::origin(record);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if !name.contains(EACH_CHART) {
        return vec![sheet_file(path, charts, origin)];
    }
    let mut files = Vec::new();
    for chart in charts {
        let own_path = path.with_file_name(name.replace(EACH_CHART, &chart.id));
        files.push(sheet_file(&own_path, vec![chart], origin.clone()));
    }
    files
}

fn sheet_file<'a>(path: &Path, charts: Vec<Chart>, origin: String) -> OutputFile<'a> {
    OutputFile::new(path, move |out| write_sheet(&charts, &origin, out))
}

/// The height of the plot. Between 16:9 and 5:2, slopes and steps are both easy to see.
const PLOT_HEIGHT: f64 = 380.0;
/// The space next to the plot for labels.
const SIDE_LABELS: f64 = 76.0;
/// The space on a side without labels, for half of the last label below.
const SIDE_FREE: f64 = 28.0;
/// The space below the plot for the labels and the name of the axis.
const BELOW: f64 = 48.0;

/// From this number of charts on, two share a row, so that a sheet fits a screen or a page.
const SIDE_BY_SIDE_FROM: usize = 3;

/// The subject of a chart.
const HEADLINE: Font = Font::new(19.0, Tone::Strong);
/// The main figures of a chart, below its headline.
const FIGURES: Font = Font::new(13.0, Tone::Plain);
/// The text below a chart that says how to read it.
const CAPTION: Font = Font::new(12.5, Tone::Plain);
/// The names of the series.
const LEGEND: Font = Font::new(12.5, Tone::Plain);
/// The labels of axes and guides.
const LABEL: Font = Font::new(12.0, Tone::Plain);
/// The line below all charts on disk, machine and run.
const ORIGIN: Font = Font::new(11.0, Tone::Faint);

/// Writes a picture of these charts, with `origin` below them.
pub fn write_sheet(charts: &[Chart], origin: &str, out: &mut dyn Write) -> io::Result<()> {
    let per_row = if charts.len() >= SIDE_BY_SIDE_FROM {
        2
    } else {
        1
    };
    let width = WIDTH * per_row as f64;
    let mut panels = Vec::new();
    let mut top = 0.0;
    for row in charts.chunks(per_row) {
        let mut row_height = 0.0_f64;
        for (column, chart) in row.iter().enumerate() {
            let panel = draw_panel(chart, column as f64 * WIDTH, top);
            row_height = row_height.max(panel.height);
            panels.push(panel.markup);
        }
        top += row_height;
    }
    let corner = Point::new(EDGE, top + 4.0);
    let origin = text_block(origin, ORIGIN, width - 2.0 * EDGE, corner);
    let height = top + 4.0 + origin.height + EDGE - 6.0;
    let titles: Vec<&str> = charts.iter().map(|chart| chart.title.as_str()).collect();
    let picture = Picture {
        width,
        height: height.ceil(),
        title: &titles.join(" · "),
        description: match charts {
            [chart] => Some(&chart.caption),
            _ => None,
        },
        content: html! { @for panel in panels { (panel) } (origin.markup) },
    };
    picture.write(out)
}

/// A chart with its title, figures, legend and caption.
fn draw_panel(chart: &Chart, left: f64, top: f64) -> Drawn {
    let room = WIDTH - 2.0 * EDGE;
    let (title, title_figures) = chart.headline();
    let mut y = EDGE;
    let headline = text_block(title, HEADLINE, room, Point::new(EDGE, y));
    y += headline.height;
    let figures = text_block(title_figures, FIGURES, room, Point::new(EDGE, y));
    y += figures.height;
    let legend = draw_legend(chart, room, Point::new(EDGE, y + 4.0));
    y += legend.height;
    let top_of_data = y + 14.0 + guide_room(chart);
    let frame = place_frame(chart, top_of_data, top_of_data + PLOT_HEIGHT);
    y = frame.bottom + BELOW + 10.0;
    let caption = text_block(&chart.caption, CAPTION, room, Point::new(EDGE, y));
    y += caption.height;
    let markup = html! {
        g transform=(format!("translate({left} {top:.1})")) {
            (headline.markup) (figures.markup) (legend.markup)
            (plot(chart, &frame))
            (caption.markup)
        }
    };
    Drawn { markup, height: y }
}

/// The plot and its axes, for a page with its own title, legend, caption and colours.
pub(crate) fn inline(chart: &Chart) -> Markup {
    let frame = place_frame(chart, EDGE + guide_room(chart), EDGE + PLOT_HEIGHT);
    let height = frame.bottom + BELOW;
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img"
            aria-labelledby={"title-" (chart.id)}
        {
            (plot(chart, &frame))
        }
    }
}

/// Places the plot between two heights, with space next to it for the labels.
fn place_frame(chart: &Chart, top: f64, bottom: f64) -> Frame {
    let right_room = match chart.y_right {
        Some(_) => SIDE_LABELS,
        None => SIDE_FREE,
    };
    Frame {
        left: SIDE_LABELS,
        right: WIDTH - right_room,
        top,
        bottom,
        ranges: chart.ranges(),
    }
}

/// The grid, the series and the guides.
fn plot(chart: &Chart, frame: &Frame) -> Markup {
    // Lines last, so that dots do not hide them.
    let mut order: Vec<usize> = (0..chart.shown_at_first()).collect();
    order.sort_by_key(|index| chart.series[*index].mark == SeriesMark::Line);
    html! {
        (grid_markup(frame))
        (axis_names(chart, frame))
        @for index in order { (series_marks(chart, index, frame)) }
        (guide_lines(chart, frame))
        (guide_labels(chart, frame))
        rect.(FRAME.class) x=(frame.left) y=(frame.top) width=(frame.right - frame.left)
            height=(frame.bottom - frame.top) fill="none" stroke=(FRAME.on_white) {}
    }
}

/// Thin lines at the labels of the left and the horizontal axis, and the labels of all axes.
fn grid_markup(frame: &Frame) -> Markup {
    let columns = ticks_with_room(frame);
    let left = Point::new(frame.left - 8.0, 4.0);
    let below = Point::new(0.0, frame.bottom + 17.0);
    let right = Point::new(frame.right + 8.0, 4.0);
    html! {
        path.(GRID.class) d=(grid_path(&columns, frame)) stroke=(GRID.on_white) {}
        (label_group("end", left, &labels_at_side(AxisSide::Left, frame)))
        (label_group("middle", below, &labels_below(&columns, frame)))
        @if let Some(range) = &frame.ranges.y_right {
            (label_group("start", right, &labels_at_side(AxisSide::Right, frame)))
            @if !shares_lines(&frame.ranges) {
                @for tick in &range.ticks {
                    @let y = frame.y(AxisSide::Right, *tick);
                    @let inside = Point::new(frame.right - 5.0, y);
                    (line(FRAME, inside, Point::new(frame.right, y)))
                }
            }
        }
    }
}

/// True if the labels of the right axis stand on the grid lines of the left one.
fn shares_lines(ranges: &Ranges) -> bool {
    match &ranges.y_right {
        Some(right) => {
            let has_as_many_ticks = right.ticks.len() == ranges.y.ticks.len();
            right.scale == Scale::Linear && has_as_many_ticks
        }
        None => false,
    }
}

/// The path of the grid. It runs to and fro, which takes fewer bytes.
fn grid_path(columns: &[f64], frame: &Frame) -> String {
    let mut pen = Pen::default();
    let mut row_ends = [frame.left, frame.right];
    for tick in &frame.ranges.y.ticks {
        let y = frame.y(AxisSide::Left, *tick);
        pen.line(Point::new(row_ends[0], y), Point::new(row_ends[1], y));
        row_ends.reverse();
    }
    let mut column_ends = [frame.top, frame.bottom];
    for tick in columns {
        let x = frame.x(*tick);
        pen.line(Point::new(x, column_ends[0]), Point::new(x, column_ends[1]));
        column_ends.reverse();
    }
    pen.path()
}

/// A label of an axis; the position that all labels of the axis share is `None`.
struct AxisLabel {
    x: Option<f64>,
    y: Option<f64>,
    text: String,
}

/// The labels of a vertical axis.
fn labels_at_side(side: AxisSide, frame: &Frame) -> Vec<AxisLabel> {
    let range = frame.ranges.along(side);
    let mut labels = Vec::new();
    for tick in &range.ticks {
        labels.push(AxisLabel {
            x: None,
            y: Some(frame.y(side, *tick)),
            text: range.label(*tick),
        });
    }
    labels
}

/// The labels of the horizontal axis.
fn labels_below(columns: &[f64], frame: &Frame) -> Vec<AxisLabel> {
    let mut labels = Vec::new();
    for tick in columns {
        labels.push(AxisLabel {
            x: Some(frame.x(*tick)),
            y: None,
            text: frame.ranges.x.label(*tick),
        });
    }
    labels
}

/// Draws the labels of an axis. Their attributes are written once, on the group.
fn label_group(anchor: &str, origin: Point, labels: &[AxisLabel]) -> Markup {
    let shift = format!("translate({} {})", px(origin.x), px(origin.y));
    let color = LABEL.tone.color();
    html! {
        g.(color.class) transform=(shift) text-anchor=(anchor) font-size=(LABEL.size)
            fill=(color.on_white)
        {
            @for label in labels {
                text x=[label.x.map(px)] y=[label.y.map(px)] { (allowed(&label.text)) }
            }
        }
    }
}

/// The ticks whose labels do not overlap.
fn ticks_with_room(frame: &Frame) -> Vec<f64> {
    let range = &frame.ranges.x;
    let mut free_from = f64::NEG_INFINITY;
    let mut uncrowded = Vec::new();
    for tick in &range.ticks {
        let half = text_width(&range.label(*tick), LABEL.size) / 2.0 + 4.0;
        let middle = frame.x(*tick);
        if middle - half >= free_from {
            free_from = middle + half;
            uncrowded.push(*tick);
        }
    }
    uncrowded
}

fn axis_names(chart: &Chart, frame: &Frame) -> Markup {
    let center = px(f64::midpoint(frame.left, frame.right));
    let below = px(frame.bottom + 40.0);
    html! {
        g.(PLAIN.class) text-anchor="middle" font-size="13" fill=(PLAIN.on_white) {
            text x=(center) y=(below) { (allowed(&chart.x.name())) }
            (upright_name(EDGE + 2.0, -90, frame, &chart.y.name()))
            @if let Some(right) = &chart.y_right {
                (upright_name(WIDTH - EDGE - 2.0, 90, frame, &right.name()))
            }
        }
    }
}

/// The name of a vertical axis, turned by this angle.
fn upright_name(x: f64, degrees: i32, frame: &Frame, name: &str) -> Markup {
    let middle = px(f64::midpoint(frame.top, frame.bottom));
    let place = format!("translate({} {middle})rotate({degrees})", px(x));
    html! { text transform=(place) { (allowed(name)) } }
}

fn guide_lines(chart: &Chart, frame: &Frame) -> Markup {
    let mut pen = Pen::default();
    for guide in &chart.guides {
        if guide.is_vertical() {
            let x = frame.x(guide.value);
            pen.line(Point::new(x, frame.top), Point::new(x, frame.bottom));
        } else {
            let y = frame.y(guide.axis, guide.value);
            pen.line(Point::new(frame.left, y), Point::new(frame.right, y));
        }
    }
    dashed_path(pen)
}

fn dashed_path(pen: Pen) -> Markup {
    let path = pen.path();
    html! {
        @if !path.is_empty() {
            path.(GUIDE.class) d=(path) fill="none" stroke=(GUIDE.on_white)
                stroke-dasharray="5 4" {}
        }
    }
}

/// The height of a line of guide labels.
const GUIDE_ROW: f64 = 18.0;
/// The length of the dashed line before the names of the level guides.
const GUIDE_SAMPLE: f64 = 28.0;

/// The space above the plot for the labels of guides, where these cover no data.
fn guide_room(chart: &Chart) -> f64 {
    let mut room = vertical_guide_room(chart);
    if !chart.guides.iter().all(Guide::is_vertical) {
        room += GUIDE_ROW;
    }
    room
}

fn vertical_guide_room(chart: &Chart) -> f64 {
    if chart.guides.iter().any(Guide::is_vertical) {
        GUIDE_ROW
    } else {
        0.0
    }
}

/// The labels of vertical guides stand above them. Those of level guides share a line above that.
fn guide_labels(chart: &Chart, frame: &Frame) -> Markup {
    let mut level = Vec::new();
    let mut vertical = Vec::new();
    for guide in &chart.guides {
        if guide.is_vertical() {
            vertical.push(guide);
        } else {
            level.push(guide.label.as_str());
        }
    }
    let baseline = frame.top - 6.0;
    html! {
        @for guide in vertical {
            @let x_max = frame.right - text_width(&guide.label, LABEL.size);
            @let x = frame.x(guide.value).min(x_max).max(frame.left);
            (text(Point::new(x, baseline), "start", LABEL, &guide.label))
        }
        @if !level.is_empty() {
            (level_labels(&level.join(" · "), baseline - vertical_guide_room(chart), frame))
        }
    }
}

/// The names of the level guides at the right, after a piece of their dashed line.
fn level_labels(names: &str, baseline: f64, frame: &Frame) -> Markup {
    let room = frame.right - frame.left - GUIDE_SAMPLE;
    let names = shortened(names, room, LABEL.size);
    if names.is_empty() {
        return Markup::default();
    }
    let end = frame.right - text_width(&names, LABEL.size) - 5.0;
    let middle = baseline - 4.0;
    let mut pen = Pen::default();
    pen.line(
        Point::new(end - GUIDE_SAMPLE + 5.0, middle),
        Point::new(end, middle),
    );
    html! {
        (dashed_path(pen))
        (text(Point::new(frame.right, baseline), "end", LABEL, &names))
    }
}

/// The height of a line of the legend.
const LEGEND_ROW: f64 = 20.0;
/// The width of a mark in the legend, with the gap before its name.
const LEGEND_SAMPLE: f64 = 34.0;

/// Draws the marks of the series with their names, as many side by side as fit.
fn draw_legend(chart: &Chart, room: f64, corner: Point) -> Drawn {
    let mut entries = Vec::new();
    let mut taken = 0.0;
    let mut row = 0;
    for index in 0..chart.shown_at_first() {
        let series = &chart.series[index];
        let name = shortened(&series.legend(), room - LEGEND_SAMPLE, LEGEND.size);
        let width = LEGEND_SAMPLE + text_width(&name, LEGEND.size) + 18.0;
        if taken + width > room && taken > 0.0 {
            taken = 0.0;
            row += 1;
        }
        let left = corner.x + taken;
        let middle = corner.y + f64::from(row) * LEGEND_ROW + LEGEND_ROW / 2.0;
        let mark_start = Point::new(left, middle);
        let name_start = Point::new(left + LEGEND_SAMPLE, middle + 4.5);
        entries.push(html! {
            (legend_mark(chart, index, mark_start, LEGEND_SAMPLE - 8.0))
            (text(name_start, "start", LEGEND, &name))
        });
        taken += width;
    }
    Drawn {
        markup: html! { @for entry in entries { (entry) } },
        height: f64::from(row + 1) * LEGEND_ROW,
    }
}
