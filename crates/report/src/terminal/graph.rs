//! A chart in text: a grid of characters with both axes. Lines are drawn in braille, eight dots to
//! a character. Single points are other characters, so that they differ in shape as well as colour.

use crate::chart::{Axis, AxisSide, Chart, Range, Ranges, SeriesMark};
use crate::page::{Page, push_text};
use crate::text::{columns, glue};
use diskproof_model::block::{Span, Tone};

/// The bits of the dots of a braille character, by column and row.
const BRAILLE: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
/// A braille character has two columns of dots.
const DOTS_ACROSS: usize = 2;
/// It has four rows of dots.
const DOTS_UPWARD: usize = 4;
/// The braille character without dots. The dots are bits that are added to it.
const BRAILLE_BLANK: u32 = 0x2800;
/// The marks of series of dots, in turn.
const DOT_MARKS: [char; 3] = ['•', 'x', '+'];
/// Width over height at which steep and flat curves are easiest to read; a character is twice as
/// high as wide.
const COLUMNS_PER_ROW: usize = 6;
/// The least and the most rows of a graph: with fewer, steps look like slopes; with more, graph and
/// legend do not fit a screen.
const ROWS: std::ops::RangeInclusive<usize> = 10..=24;
/// A graph has at least this many columns, even if it then exceeds the page.
const COLUMNS_MIN: usize = 20;

/// Writes a chart as wide as the page: the legend, then the graph. Every line is drawn. Of dots,
/// the lowest and the highest of each column are drawn.
pub(super) fn write_graph(page: &mut Page<'_>, chart: &Chart) {
    let ranges = chart.ranges();
    let left = widest_label(&ranges.y).max(columns(&chart.y.unit));
    let right = match &ranges.y_right {
        Some(range) => widest_label(range) + 2,
        None => 0,
    };
    let width = page
        .width()
        .saturating_sub(left + 2 + right)
        .max(COLUMNS_MIN);
    let height = (width / COLUMNS_PER_ROW).clamp(*ROWS.start(), *ROWS.end());
    let mut canvas = Canvas::new(width, height);
    canvas.draw(chart, &ranges);
    page.text(Tone::Dim.span(legend_text(chart)));
    write_units(page, chart, left, width);
    let left_labels = row_labels(&ranges.y, height);
    let right_labels = ranges
        .y_right
        .as_ref()
        .map(|range| row_labels(range, height));
    for (row, left_label) in left_labels.iter().enumerate() {
        let axis = match left_label {
            Some(label) => format!("{label:>left$} ┤"),
            None => format!("{:left$} │", ""),
        };
        let mut pieces = vec![Tone::Dim.span(axis)];
        pieces.extend(canvas.row(row));
        if let Some(labels) = &right_labels {
            pieces.push(match &labels[row] {
                Some(label) => Tone::Dim.span(format!("├ {label}")),
                None => Tone::Dim.span("│"),
            });
        }
        page.spans(&pieces);
    }
    write_x_axis(page, &ranges.x, &chart.x, Margin { left, width });
}

/// The columns to the left of a graph, and those of the graph itself.
struct Margin {
    left: usize,
    width: usize,
}

/// The width of the widest label of an axis, in columns.
fn widest_label(range: &Range) -> usize {
    let mut widest = 0;
    for tick in &range.ticks {
        widest = widest.max(columns(&range.label(*tick)));
    }
    widest
}

/// The names of all series, each with its mark.
fn legend_text(chart: &Chart) -> String {
    let mut dot_marks = DOT_MARKS.iter().cycle();
    let mut has_extremes = false;
    let mut names = Vec::new();
    for series in &chart.series {
        let mut mark = '⠒';
        if series.mark == SeriesMark::Dots {
            mark = *dot_marks.next().unwrap_or(&DOT_MARKS[0]);
            has_extremes |= series.points.len() > 1;
        }
        let side = match series.side {
            AxisSide::Right => ", right axis",
            _ => "",
        };
        names.push(glue(&format!("{mark} {}{side}", series.name)));
    }
    let legend = names.join("   ");
    if has_extremes {
        format!("{legend}   (dots: lowest and highest in each column)")
    } else {
        legend
    }
}

fn write_units(page: &mut Page<'_>, chart: &Chart, left: usize, width: usize) {
    let mut units = format!("{:>left$}", chart.y.unit);
    if let Some(axis) = &chart.y_right {
        units += &format!("{:width$}  {}", "", axis.unit);
    }
    page.spans(&[Tone::Dim.span(units)]);
}

/// The labels of the rows, from the top.
fn row_labels(range: &Range, height: usize) -> Vec<Option<String>> {
    let mut rows = vec![None; height];
    for tick in &range.ticks {
        let row = nearest(1.0 - range.position(*tick), height - 1);
        rows[row] = Some(range.label(*tick));
    }
    rows
}

/// The horizontal axis with as many labels as fit, and its unit behind the last one.
fn write_x_axis(page: &mut Page<'_>, x: &Range, axis: &Axis, margin: Margin) {
    let Margin { left, width } = margin;
    let mut line = vec!['─'; width];
    let mut text = String::new();
    for tick in &x.ticks {
        let column = nearest(x.position(*tick), width - 1);
        let label = x.label(*tick);
        let start = column.saturating_sub(columns(&label) / 2);
        let free_from = match columns(&text) {
            0 => 0,
            taken => taken + 2,
        };
        if start >= free_from && start + columns(&label) <= width {
            line[column] = '┴';
            text = format!("{text:start$}{label}");
        }
    }
    let axis_line: String = line.into_iter().collect();
    page.spans(&[Tone::Dim.span(format!("{:left$} └{axis_line}", ""))]);
    if columns(&text) + 1 + columns(&axis.unit) <= width {
        text += &format!(" {}", axis.unit);
    }
    page.spans(&[Tone::Dim.span(format!("{:left$}  {text}", ""))]);
}

/// A position on a graph: from left to right and from bottom to top, each from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Place {
    x: f64,
    y: f64,
}

impl Place {
    fn new(x: f64, y: f64) -> Self {
        Self { x, y }
    }

    /// The position at a share of the way to another one.
    fn towards(self, end: Self, share: f64) -> Self {
        Self {
            x: self.x + (end.x - self.x) * share,
            y: self.y + (end.y - self.y) * share,
        }
    }
}

/// The index, from 0 to `last`, that is nearest to a share of the whole. Shares beyond the ends get
/// the index of that end.
fn nearest(share: f64, last: usize) -> usize {
    (share.clamp(0.0, 1.0) * last as f64).round() as usize
}

/// The lowest and the highest point of a column.
#[derive(Debug, Clone, Copy)]
struct Extremes {
    low: f64,
    high: f64,
}

/// The characters of a graph.
struct Canvas {
    width: usize,
    height: usize,
    /// The braille dots of each character.
    braille_dots: Vec<u8>,
    /// The mark of each character that has one, drawn in place of its dots.
    marks: Vec<Option<char>>,
}

impl Canvas {
    fn new(width: usize, height: usize) -> Self {
        Self {
            width,
            height,
            braille_dots: vec![0; width * height],
            marks: vec![None; width * height],
        }
    }

    fn draw(&mut self, chart: &Chart, ranges: &Ranges) {
        let mut dot_marks = DOT_MARKS.iter().cycle();
        for series in &chart.series {
            let y = ranges.along(series.side);
            let mut places = Vec::new();
            for point in &series.points {
                places.push(Place::new(ranges.x.position(point.x), y.position(point.y)));
            }
            match series.mark {
                SeriesMark::Line => self.polyline(&places),
                SeriesMark::Dots => {
                    self.extremes(&places, *dot_marks.next().unwrap_or(&DOT_MARKS[0]))
                }
                SeriesMark::Bars => {
                    for top in places {
                        self.line(Place::new(top.x, 0.0), top);
                    }
                }
            }
        }
    }

    /// Draws straight lines from point to point. A single point is a dot.
    fn polyline(&mut self, places: &[Place]) {
        if let [place] = places {
            self.line(*place, *place);
        }
        for pair in places.windows(2) {
            self.line(pair[0], pair[1]);
        }
    }

    fn line(&mut self, from: Place, to: Place) {
        // A point far outside the axes would need one step per dot of its distance.
        let Some((start, end)) = clipped(from, to) else {
            return;
        };
        let across = (end.x - start.x) * self.last_dot_across() as f64;
        let upward = (end.y - start.y) * self.last_dot_upward() as f64;
        let steps = across.abs().max(upward.abs()).ceil().max(1.0);
        for step in 0..=steps as usize {
            self.dot(start.towards(end, step as f64 / steps));
        }
    }

    fn last_dot_across(&self) -> usize {
        self.width * DOTS_ACROSS - 1
    }

    fn last_dot_upward(&self) -> usize {
        self.height * DOTS_UPWARD - 1
    }

    fn dot(&mut self, place: Place) {
        let across = nearest(place.x, self.last_dot_across());
        let downward = nearest(1.0 - place.y, self.last_dot_upward());
        let row = downward / DOTS_UPWARD;
        let column = across / DOTS_ACROSS;
        let dot = BRAILLE[across % DOTS_ACROSS][downward % DOTS_UPWARD];
        self.braille_dots[row * self.width + column] |= dot;
    }

    /// Draws the lowest and the highest point of each column, which keeps every outlier.
    fn extremes(&mut self, places: &[Place], mark: char) {
        let mut columns: Vec<Option<Extremes>> = vec![None; self.width];
        for place in places {
            let column = &mut columns[nearest(place.x, self.width - 1)];
            *column = Some(match column {
                Some(known) => Extremes {
                    low: known.low.min(place.y),
                    high: known.high.max(place.y),
                },
                None => Extremes {
                    low: place.y,
                    high: place.y,
                },
            });
        }
        for (column, extremes) in columns.into_iter().enumerate() {
            if let Some(Extremes { low, high }) = extremes {
                self.point(column, low, mark);
                self.point(column, high, mark);
            }
        }
    }

    fn point(&mut self, column: usize, y: f64, mark: char) {
        let row = nearest(1.0 - y, self.height - 1);
        self.marks[row * self.width + column] = Some(mark);
    }

    /// A row as pieces of one style each.
    fn row(&self, row: usize) -> Vec<Span<'static>> {
        let mut pieces = Vec::new();
        for index in row * self.width..(row + 1) * self.width {
            let (tone, c) = self.character(index);
            push_text(&mut pieces, tone, c.encode_utf8(&mut [0; 4]));
        }
        pieces
    }

    /// The character at an index. Lines hide single points.
    fn character(&self, index: usize) -> (Tone, char) {
        let dots = self.braille_dots[index];
        if dots != 0 {
            let braille = char::from_u32(BRAILLE_BLANK + u32::from(dots)).unwrap_or(' ');
            return (Tone::Plain, braille);
        }
        match self.marks[index] {
            None => (Tone::Plain, ' '),
            Some(mark) if mark == DOT_MARKS[0] => (Tone::Dot, mark),
            // The first series of dots is what the chart is about. Another one, such as unreadable
            // blocks, stands out.
            Some(mark) => (Tone::Error, mark),
        }
    }
}

/// The part of a line that lies within the unit square, by Liang and Barsky (ACM TOG 3, 1984);
/// `None` where no part does.
fn clipped(from: Place, to: Place) -> Option<(Place, Place)> {
    let (mut start, mut end) = (0.0_f64, 1.0_f64);
    for (first, last) in [(from.x, to.x), (from.y, to.y)] {
        let distance = last - first;
        if distance == 0.0 {
            if !(0.0..=1.0).contains(&first) {
                return None;
            }
            continue;
        }
        let at_low_side = -first / distance;
        let at_high_side = (1.0 - first) / distance;
        start = start.max(at_low_side.min(at_high_side));
        end = end.min(at_low_side.max(at_high_side));
    }
    if start <= end {
        Some((from.towards(to, start), from.towards(to, end)))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Series;

    #[test]
    fn line_is_clipped_to_the_graph() {
        let middle = Place::new(0.5, 0.5);
        assert_eq!(
            clipped(Place::new(-1.0, 0.5), Place::new(3.0, 0.5)),
            Some((Place::new(0.0, 0.5), Place::new(1.0, 0.5)))
        );
        assert_eq!(clipped(Place::new(2.0, 0.0), Place::new(3.0, 1.0)), None);
        assert_eq!(clipped(middle, middle), Some((middle, middle)));
        // 2^50 bytes beyond an axis of one byte: an unclipped line would take 10^17 steps.
        let mut canvas = Canvas::new(20, 10);
        canvas.polyline(&[
            Place::new(0.0, 0.5),
            Place::new(1e15, 0.5),
            Place::new(1e90, 1e90),
            Place::new(-1e90, 0.0),
        ]);
        assert!(canvas.braille_dots.iter().any(|dots| *dots != 0));
    }

    #[test]
    fn graph_line_reaches_both_corners() {
        let mut canvas = Canvas::new(2, 1);
        canvas.polyline(&[Place::new(0.0, 1.0), Place::new(1.0, 0.0)]);
        let line = [Tone::Plain.span("⠑⢄".to_owned())];
        assert_eq!(canvas.row(0), line);
        canvas.extremes(&[Place::new(0.0, 0.5)], '•');
        assert_eq!(
            canvas.row(0),
            line,
            "lines hide points, not the other way round"
        );
    }

    /// A chart from (0, 0) to (1, 1) with these series of dots or bars.
    fn unit_chart(series: Vec<Series>) -> Chart {
        Chart {
            series,
            ..Chart::default()
        }
    }

    #[test]
    fn series_of_dots_have_the_marks_of_the_legend() {
        let chart = unit_chart(vec![
            Series::new("line", SeriesMark::Line, vec![(0.0, 0.0), (1.0, 1.0)]),
            Series::new("a", SeriesMark::Dots, vec![(0.0, 1.0), (1.0, 0.0)]),
            Series::new("b", SeriesMark::Dots, vec![(0.5, 1.0)]),
        ]);
        let legend = legend_text(&chart);
        assert!(
            legend.contains(&glue("• a")) && legend.contains(&glue("x b")),
            "{legend}"
        );
        let ranges = chart.ranges();
        let mut canvas = Canvas::new(11, 3);
        canvas.draw(&chart, &ranges);
        let marks: Vec<char> = canvas.marks.iter().flatten().copied().collect();
        assert_eq!(marks.iter().filter(|mark| **mark == '•').count(), 2);
        assert_eq!(marks.iter().filter(|mark| **mark == 'x').count(), 1);
        let of_b = canvas
            .marks
            .iter()
            .position(|mark| *mark == Some('x'))
            .unwrap();
        assert_eq!(canvas.character(of_b), (Tone::Error, 'x'));
    }

    #[test]
    fn bar_reaches_from_the_axis_to_its_value() {
        let mut canvas = Canvas::new(1, 1);
        canvas.line(Place::new(0.0, 0.0), Place::new(0.0, 1.0));
        assert_eq!(canvas.row(0), [Tone::Plain.span("⡇")]);
        let bars = unit_chart(vec![Series::new(
            "bar",
            SeriesMark::Bars,
            vec![(0.0, 0.0), (1.0, 1.0)],
        )]);
        let mut canvas = Canvas::new(20, 2);
        canvas.draw(&bars, &bars.ranges());
        let dots: u32 = canvas
            .braille_dots
            .iter()
            .map(|dots| dots.count_ones())
            .sum();
        // A column of eight dots, and the dot of the bar without a height.
        assert_eq!(dots, 9);
    }

    #[test]
    fn graph_beside_wide_labels_keeps_its_least_width() {
        let mut chart = unit_chart(vec![Series::new(
            "rate",
            SeriesMark::Line,
            vec![(0.0, 0.0), (1.0, 1.0)],
        )]);
        chart.y = Axis::new("rate", &"u".repeat(30));
        let text = crate::fixture::written(|out| {
            let mut page = Page::new(&crate::fixture::plain(40), out);
            write_graph(&mut page, &chart);
            page.finish()
        });
        let axis = text.lines().find(|line| line.contains('└')).unwrap();
        let drawn = axis.chars().skip_while(|c| *c != '└').skip(1).count();
        assert_eq!(drawn, COLUMNS_MIN, "{text}");
    }
}
