//! Charts of the page: a picture that needs no script, the frame for the script's chart, and the
//! data for its plot, table and CSV file.

use super::elements::{self, shown, shown_whole};
use crate::chart::{Axis, AxisSide, Chart, Range, Series, SeriesMark};
use crate::svg::{Point, SERIES_COLORS, dashes, dot, inline};
use maud::{Markup, html};
use serde_json::{Value, json};

/// The section `charts`: the map of a scan if there is one, then the charts.
pub(super) fn section(charts: &[Chart], map: Option<Markup>) -> Markup {
    let content = html! {
        p.legend.scripted {
            "Point at a chart to read values; drag to zoom, double-click to show all. Keyboard: \
             arrow keys read, + and − zoom, 0 shows all."
        }
        @if let Some(map) = map { (map) }
        (groups(charts))
    };
    elements::section("charts", "Charts", &content)
}

/// Charts with the same explanation stand together below it.
pub(super) fn groups(charts: &[Chart]) -> Markup {
    html! {
        @for group in charts.chunk_by(|a, b| a.caption == b.caption) {
            @let caption = format!("how-{}", group[0].id);
            p.how id=(caption) { (shown_whole(&group[0].caption)) }
            div.charts { @for chart in group { (chart_figure(chart, &caption)) } }
        }
    }
}

/// A chart with more series takes the whole width of the page, which its legend needs.
const NARROW_SERIES_MAX: usize = 4;

fn chart_figure(chart: &Chart, caption: &str) -> Markup {
    let id = &chart.id;
    let class = match chart.series.len() {
        ..=NARROW_SERIES_MAX => "chart",
        _ => "chart broad",
    };
    html! {
        figure class=(class) id={"chart-" (id)} data-chart=(id) aria-labelledby={"title-" (id)}
            aria-describedby=(caption)
        {
            figcaption { h3 id={"title-" (id)} { (shown(&chart.title)) } }
            // The picture for paper and for browsers without scripts; the script replaces it.
            div.plot { div.still { (inline(chart)) } }
            div.under { (series_legend(chart)) (chart_buttons()) }
            (values_table())
        }
    }
}

/// What only the script uses; it adds the attributes, which would be a tenth of the page.
fn chart_buttons() -> Markup {
    html! {
        div.buttons.scripted {
            button.scale { "Log" }
            button.zoom-out disabled { "Show all" }
            button.csv { "CSV" }
        }
    }
}

/// The place of the script's table.
pub(super) fn values_table() -> Markup {
    html! { details.values.scripted { summary { "Values as a table" } div.wide {} } }
}

/// The names of the series; a click shows or hides one.
fn series_legend(chart: &Chart) -> Markup {
    html! {
        ul.series aria-label="Series" {
            @for (index, series) in chart.series.iter().enumerate() {
                li {
                    @let pressed = index < chart.shown_at_first();
                    button aria-pressed=(pressed) data-series=(index) {
                        svg.key aria-hidden="true" { (legend_mark(chart, series, index)) }
                        (shown(&series.name))
                    }
                }
            }
        }
    }
}

/// The mark of a series in the legend.
fn legend_mark(chart: &Chart, series: &Series, index: usize) -> Markup {
    let color = index % SERIES_COLORS.len();
    let middle = Point::new(12.0, 6.0);
    html! {
        @match series.mark {
            SeriesMark::Line => path class={"s" (color)} d="M1 6h22"
                stroke-dasharray=[dashes(chart, index)] {},
            SeriesMark::Dots => path class={"f" (color)} d=(dot(index, middle, 4.0)) {},
            SeriesMark::Bars => rect class={"f" (color)} x="7" y="1" width="10" height="10" {},
        }
    }
}

/// The data for the script's charts, tables and CSV files.
pub(super) fn data(charts: &[Chart]) -> Value {
    charts.iter().map(chart_data).collect()
}

fn chart_data(chart: &Chart) -> Value {
    let ranges = chart.ranges();
    let mut series = Vec::new();
    for (index, one) in chart.series.iter().enumerate() {
        series.push(series_data(chart, one, index));
    }
    let y_right = chart
        .y_right
        .as_ref()
        .map(|axis| axis_data(axis, ranges.y_right.as_ref()));
    json!({
        "id": chart.id,
        "title": chart.title,
        "x": axis_data(&chart.x, None),
        "y": axis_data(&chart.y, Some(&ranges.y)),
        "yRight": y_right,
        "series": series,
        "guides": chart.guides,
    })
}

/// An axis; `whole` is its range without zoom. It equals the range of the picture, so that nothing
/// moves when the script takes over.
fn axis_data(axis: &Axis, whole: Option<&Range>) -> Value {
    let mut data = json!(axis);
    data["whole"] = match whole {
        Some(range) => range_data(range),
        None => Value::Null,
    };
    data
}

fn range_data(range: &Range) -> Value {
    let ticks: Vec<f64> = range.ticks.iter().copied().map(rounded).collect();
    json!({ "low": rounded(range.low), "high": rounded(range.high), "ticks": ticks })
}

fn series_data(chart: &Chart, series: &Series, index: usize) -> Value {
    let mut dash = Vec::new();
    for length in dashes(chart, index).unwrap_or_default().split_whitespace() {
        dash.extend(length.parse::<f64>().ok());
    }
    let mut x = Vec::new();
    let mut y = Vec::new();
    let mut half_widths = Vec::new();
    for point in &series.points {
        x.push(rounded(point.x));
        y.push(rounded(point.y));
        if series.has_intervals() {
            half_widths.push(rounded(point.half_width_95.unwrap_or(0.0)));
        }
    }
    json!({
        "name": series.name,
        "mark": series.mark,
        "dash": dash,
        "right": series.side == AxisSide::Right,
        "hidden": index >= chart.shown_at_first(),
        "x": x,
        "y": y,
        "half": half_widths,
    })
}

/// Seven significant digits halve the size of the data and keep percentiles such as 99.99995.
pub(super) fn rounded(value: f64) -> f64 {
    format!("{value:.6e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_seven_digits() {
        let values = [1.0 / 3.0, 123_456_789.0, 99.99995, 0.0].map(rounded);
        assert_eq!(values, [0.333_333_3, 123_456_800.0, 99.999_95, 0.0]);
    }
}
