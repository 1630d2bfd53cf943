//! A comparison as a picture: every ratio with its interval on a logarithmic scale, a row a metric.

use super::frame::{EDGE, Tone, WIDTH, line, px, text, write_picture};
use crate::describe::comparison::{
    MetricDetail, change_text, figure_name, interval_text, is_shown, letter, place, reach,
    sides_text, subject_text,
};
use diskproof_model::comparison::{Comparison, MetricComparison, Ratio, Verdict};
use maud::{Markup, html};
use std::io::{self, Write};

const ROW: f64 = 24.0;
/// Where the columns of text end, and where the scale begins and ends.
const RIGHT_A: f64 = 380.0;
const RIGHT_B: f64 = 470.0;
const RIGHT_CHANGE: f64 = 550.0;
const PLOT: (f64, f64) = (575.0, 790.0);
const LEFT_VERDICT: f64 = 810.0;

/// Writes the picture.
pub(crate) fn write_comparison(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let mut top = EDGE + ROW;
    let mut rows = Vec::new();
    for (index, candidate) in comparison.candidates.iter().enumerate() {
        let summary = &candidate.summary;
        rows.push(text(EDGE, top, "start", 15.0, Tone::Strong, summary));
        top += ROW;
        rows.push(heading(top, &letter(index)));
        top += ROW;
        let metrics = candidate.metrics.iter();
        let is_shown =
            |metric: &&MetricComparison| is_shown(metric, MetricDetail::Independent, candidate);
        let metrics: Vec<_> = metrics.filter(is_shown).collect();
        let reach = reach(&metrics, comparison.margin);
        for metric in &metrics {
            rows.push(row(metric, top, reach));
            top += ROW;
        }
        top += ROW;
    }
    let title = "Comparison: ratios with their 95 % intervals";
    let content = html! { @for row in rows { (row) } };
    write_picture((WIDTH, (top + EDGE).ceil()), (title, None), &content, out)
}

fn heading(top: f64, letter: &str) -> Markup {
    let middle = f64::midpoint(PLOT.0, PLOT.1);
    html! {
        (text(RIGHT_A, top, "end", 12.0, Tone::Faint, "A"))
        (text(RIGHT_B, top, "end", 12.0, Tone::Faint, letter))
        (text(RIGHT_CHANGE, top, "end", 12.0, Tone::Faint, "change"))
        (text(middle, top, "middle", 12.0, Tone::Faint, "95 % interval of the ratio"))
    }
}

fn row(metric: &MetricComparison, top: f64, reach: f64) -> Markup {
    let name = format!("{} {}", subject_text(metric), figure_name(metric));
    let change = metric.ratio.map(change_text).unwrap_or_default();
    let [of_a, of_b] = sides_text(metric);
    html! {
        (text(EDGE, top, "start", 13.0, Tone::Plain, &name))
        (text(RIGHT_A, top, "end", 13.0, Tone::Plain, &of_a))
        (text(RIGHT_B, top, "end", 13.0, Tone::Plain, &of_b))
        (text(RIGHT_CHANGE, top, "end", 13.0, Tone::Strong, &change))
        @if let Some(ratio) = metric.ratio { (interval(metric, ratio, top - 4.0, reach)) }
        (text(LEFT_VERDICT, top, "start", 13.0, Tone::Plain, metric.verdict.as_str()))
    }
}

fn interval(metric: &MetricComparison, ratio: Ratio, y: f64, reach: f64) -> Markup {
    let high = ratio.high_95.unwrap_or(f64::MAX);
    let [low, one, high] = [ratio.low_95, 1.0, high].map(|ratio| placed(ratio, reach));
    let color = match metric.verdict {
        Verdict::Better => "#1a7f4b",
        Verdict::Worse => "#c4314b",
        _ => "#5f6977",
    };
    html! {
        title { (interval_text(ratio)) }
        (line("grid", "#c5ccd6", (one, y - ROW / 2.0), (one, y + ROW / 2.0)))
        line x1=(px(low)) x2=(px(high)) y1=(px(y)) y2=(px(y)) stroke=(color) stroke-width="2" {}
        circle cx=(px(placed(ratio.value, reach))) cy=(px(y)) r="4" fill=(color) {}
    }
}

fn placed(ratio: f64, reach: f64) -> f64 {
    let middle = f64::midpoint(PLOT.0, PLOT.1);
    middle + place(ratio, reach) * (PLOT.1 - middle)
}
