//! A comparison as a picture: a row for each metric, with its ratio and the interval on a
//! logarithmic scale.

use super::colors::{BETTER, EQUALITY, NEITHER, WORSE};
use super::frame::{EDGE, Font, Picture, Point, Tone, WIDTH, line, px, text};
use crate::describe::comparison::{
    MetricDetail, figure_name, is_shown, letter, sides_text, subject_text,
};
use crate::describe::ratio::{change_text, interval_text, scale_position, scale_reach};
use diskproof_model::comparison::{Comparison, MetricComparison, Ratio, Verdict};
use maud::{Markup, html};
use std::io::{self, Write};

/// The height of a row of text.
const ROW: f64 = 24.0;
/// The right end of the column with the figures of the baseline.
const RIGHT_A: f64 = 380.0;
/// The right end of the column with the figures of the candidate.
const RIGHT_B: f64 = 470.0;
/// The right end of the column of changes.
const RIGHT_CHANGE: f64 = 550.0;
/// The left end of the scale of ratios.
const LEFT_PLOT: f64 = 575.0;
/// The right end of the scale of ratios.
const RIGHT_PLOT: f64 = 790.0;
/// The middle of the scale, where a ratio is one.
const MIDDLE_PLOT: f64 = f64::midpoint(LEFT_PLOT, RIGHT_PLOT);
/// The left end of the column of verdicts.
const LEFT_VERDICT: f64 = 810.0;

/// The sentence of a candidate.
const SUMMARY: Font = Font::new(15.0, Tone::Strong);
/// The names of the columns.
const HEADING: Font = Font::new(12.0, Tone::Faint);
/// The names and figures of the metrics, and their verdicts.
const FIGURE: Font = Font::new(13.0, Tone::Plain);
/// The changes, which readers look for first.
const CHANGE: Font = Font::new(13.0, Tone::Strong);

/// Writes the picture, with one table for each candidate.
pub(crate) fn write_comparison(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let mut top = EDGE + ROW;
    let mut rows = Vec::new();
    for (index, candidate) in comparison.candidates.iter().enumerate() {
        rows.push(text_from(EDGE, top, SUMMARY, &candidate.summary));
        top += ROW;
        rows.push(heading_row(top, &letter(index)));
        top += ROW;
        let metrics: Vec<&MetricComparison> = candidate
            .metrics
            .iter()
            .filter(|metric| is_shown(metric, MetricDetail::Independent, candidate))
            .collect();
        let scale_reach = scale_reach(&metrics, comparison.margin);
        for metric in &metrics {
            rows.push(metric_row(metric, top, scale_reach));
            top += ROW;
        }
        top += ROW;
    }
    let picture = Picture {
        width: WIDTH,
        height: (top + EDGE).ceil(),
        title: "Comparison: ratios with their 95 % intervals",
        description: None,
        content: html! { @for row in rows { (row) } },
    };
    picture.write(out)
}

fn text_from(left: f64, y: f64, font: Font, content: &str) -> Markup {
    text(Point::new(left, y), "start", font, content)
}

fn text_up_to(right: f64, y: f64, font: Font, content: &str) -> Markup {
    text(Point::new(right, y), "end", font, content)
}

fn heading_row(top: f64, letter: &str) -> Markup {
    let middle = Point::new(MIDDLE_PLOT, top);
    html! {
        (text_up_to(RIGHT_A, top, HEADING, "A"))
        (text_up_to(RIGHT_B, top, HEADING, letter))
        (text_up_to(RIGHT_CHANGE, top, HEADING, "change"))
        (text(middle, "middle", HEADING, "95 % interval of the ratio"))
    }
}

fn metric_row(metric: &MetricComparison, top: f64, reach: f64) -> Markup {
    let name = format!("{} {}", subject_text(metric), figure_name(metric));
    let change = metric.ratio.map(change_text).unwrap_or_default();
    let [a, b] = sides_text(metric);
    html! {
        (text_from(EDGE, top, FIGURE, &name))
        (text_up_to(RIGHT_A, top, FIGURE, &a))
        (text_up_to(RIGHT_B, top, FIGURE, &b))
        (text_up_to(RIGHT_CHANGE, top, CHANGE, &change))
        @if let Some(ratio) = metric.ratio {
            (interval_markup(metric, ratio, top - 4.0, reach))
        }
        (text_from(LEFT_VERDICT, top, FIGURE, metric.verdict.as_str()))
    }
}

fn interval_markup(metric: &MetricComparison, ratio: Ratio, y: f64, reach: f64) -> Markup {
    let low = x_of_ratio(ratio.low_95, reach);
    let high = x_of_ratio(ratio.high_95.unwrap_or(f64::MAX), reach);
    let equal = x_of_ratio(1.0, reach);
    let equal_top = Point::new(equal, y - ROW / 2.0);
    let equal_bottom = Point::new(equal, y + ROW / 2.0);
    let color = match metric.verdict {
        Verdict::Better => BETTER,
        Verdict::Worse => WORSE,
        Verdict::Same
        | Verdict::FasterOnce
        | Verdict::SlowerOnce
        | Verdict::Undecided
        | Verdict::NotComparable
        | Verdict::Observed => NEITHER,
    };
    // Viewers show the title of a group when the pointer is over it.
    html! {
        g {
            title { (interval_text(ratio)) }
            (line(EQUALITY, equal_top, equal_bottom))
            line x1=(px(low)) x2=(px(high))
                y1=(px(y)) y2=(px(y))
                stroke=(color) stroke-width="2" {}
            circle cx=(px(x_of_ratio(ratio.value, reach))) cy=(px(y))
                r="4" fill=(color) {}
        }
    }
}

fn x_of_ratio(ratio: f64, reach: f64) -> f64 {
    MIDDLE_PLOT + scale_position(ratio, reach) * (RIGHT_PLOT - MIDDLE_PLOT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_of_an_interval_is_not_that_of_the_picture() {
        let comparison = crate::fixture::comparison();
        let svg = crate::fixture::written(|out| write_comparison(&comparison, out));
        let document = roxmltree::Document::parse(&svg).unwrap();
        let titles = document
            .descendants()
            .filter(|node| node.has_tag_name("title"));
        let mut parents: Vec<&str> = Vec::new();
        for title in titles {
            parents.push(title.parent().unwrap().tag_name().name());
        }
        let (first, others) = parents.split_first().unwrap();
        assert_eq!(*first, "svg");
        assert!(!others.is_empty());
        assert!(others.iter().all(|parent| *parent == "g"), "{parents:?}");
    }
}
