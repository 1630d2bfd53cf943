//! The page of a comparison: verdict, sides, every ratio with its interval, and a chart of the
//! latencies of both sides.

use super::charts;
use super::document::{DataBlock, HtmlPage};
use super::elements::{section, shown, wide_table};
use super::read_back;
use crate::chart::{Axis, AxisSide, Chart, Scale, Series, SeriesMark};
use crate::describe::comparison::{
    MetricDetail, change_text, figure_name, interval_text, is_shown, letter, needed_text,
    ratio_text, reach, run_text, sides_text, subject_text,
};
use crate::labels;
use diskproof_model::comparison::{
    Candidate, Comparison, ConditionOutcome, Direction, Holder, MetricComparison, PercentilePair,
    PercentilePoint, Ratio, Side, Verdict,
};
use diskproof_model::units::format_percent;
use maud::{Markup, html};
use std::io::{self, Write};

/// Writes the page of a comparison.
pub fn write_comparison(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let several = comparison.candidates.len() > 1;
    let charts: Vec<Chart> = comparison
        .candidates
        .iter()
        .enumerate()
        .flat_map(|(index, c)| overlays(c, &letter(index), several))
        .collect();
    let mut sections = vec![("verdict", "Verdict"), ("metrics", "Metrics")];
    if !charts.is_empty() {
        sections.push(("charts", "Charts"));
    }
    sections.push(("data", "Data"));
    let body = html! {
        (overview(comparison))
        (section("metrics", "Metrics", &metrics(comparison)))
        @if !charts.is_empty() { (charts::section(&charts, None)) }
        (data())
    };
    let blocks = [
        DataBlock {
            id: "chart-data",
            json: charts::data(&charts).to_string(),
        },
        DataBlock {
            id: read_back::COMPARISON_ID,
            json: serde_json::to_string(comparison)?,
        },
    ];
    let title = format!("{} · comparison", names(comparison));
    out.write_all(
        HtmlPage {
            title: &title,
            sections: &sections,
            file_name: "diskproof-comparison",
            body,
            blocks: &blocks,
        }
        .render()
        .as_bytes(),
    )
}

fn data() -> Markup {
    let content = html! {
        p {
            "This file contains the whole comparison: every metric with its interval and the \
             latency distributions of both sides. "
            code { "diskproof show THIS-FILE.html" } " prints it."
        }
        p.buttons {
            button #save-record.scripted type="button" { "Save the comparison as JSON" }
            " "
            button #save-charts.scripted type="button" { "Save all charts as CSV" }
        }
    };
    section("data", "Data", &content)
}

fn names(comparison: &Comparison) -> String {
    let labels = std::iter::once(&comparison.baseline)
        .chain(comparison.candidates.iter().map(|c| &c.side))
        .map(|side| shown(&side.label));
    labels.collect::<Vec<_>>().join(" – ")
}

fn overview(comparison: &Comparison) -> Markup {
    html! {
        section.overview #verdict aria-labelledby="title" {
            p.kicker {
                "comparison · differences up to " (format_percent(comparison.margin)) " are ignored"
            }
            h1 #title { (names(comparison)) }
            @for candidate in &comparison.candidates {
                p.headline { (shown(&candidate.summary)) }
                (tally(candidate))
            }
            (conditions(comparison))
            div.cards {
                (side("A", &comparison.baseline))
                @for (index, candidate) in comparison.candidates.iter().enumerate() {
                    (side(&letter(index), &candidate.side))
                }
            }
        }
    }
}

fn side(letter: &str, side: &Side) -> Markup {
    html! {
        div.card {
            h3 { (letter) ": " (shown(&side.label)) }
            ul { @for run in &side.runs { li { (shown(&run_text(run))) } } }
        }
    }
}

/// The verdicts over the headline metrics, counted.
fn tally(candidate: &Candidate) -> Markup {
    let tally = &candidate.headline;
    let counts = [
        (tally.better, Verdict::Better),
        (tally.worse, Verdict::Worse),
        (tally.same, Verdict::Same),
        (tally.faster_once, Verdict::FasterOnce),
        (tally.slower_once, Verdict::SlowerOnce),
        (tally.undecided, Verdict::Undecided),
        (tally.not_comparable, Verdict::NotComparable),
        (tally.observed_loads, Verdict::Observed),
    ];
    html! {
        ul.tally aria-label="Verdicts over the headline metrics" {
            @for (n, verdict) in counts.into_iter().filter(|(n, _)| *n > 0) {
                li class=(tone(verdict)) {
                    span.verdict { (n) " " (sign(verdict)) " " (verdict.as_str()) }
                }
            }
        }
    }
}

fn tone(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "good",
        Verdict::Worse => "failure",
        Verdict::Same | Verdict::Observed => "note",
        Verdict::FasterOnce | Verdict::SlowerOnce | Verdict::Undecided => "undecided",
        Verdict::NotComparable => "warning",
    }
}

/// The same as the colour, for readers who do not see it.
fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "▲",
        Verdict::Worse => "▼",
        Verdict::Same => "=",
        Verdict::FasterOnce => "△",
        Verdict::SlowerOnce => "▽",
        Verdict::Undecided => "?",
        Verdict::NotComparable => "≠",
        Verdict::Observed => "·",
    }
}

fn conditions(comparison: &Comparison) -> Markup {
    html! {
        @for condition in &comparison.conditions {
            @let (class, outcome) = match condition.outcome {
                ConditionOutcome::Holds => ("alert failure", "✕ Failed: "),
                ConditionOutcome::DoesNotHold => ("alert good", "✓ Passed: "),
                ConditionOutcome::Undecided => ("alert warning", "? Undecided: "),
                ConditionOutcome::Unanswered => ("alert failure", "✕ Unanswered: "),
            };
            p class=(class) {
                strong { (outcome) } code { (shown(&condition.expression)) } " ("
                (shown(&condition.candidate)) "): " (shown(&condition.why))
            }
        }
    }
}

fn metrics(comparison: &Comparison) -> Markup {
    html! {
        @for (index, candidate) in comparison.candidates.iter().enumerate() {
            @let letter = letter(index);
            @if comparison.candidates.len() > 1 {
                h3 { (letter) ": " (shown(&candidate.side.label)) }
            }
            @if !candidate.differences.is_empty() { (differences(&letter, candidate)) }
            @let label = format!("Metrics of {letter} against A");
            (wide_table(&label, &table(&letter, candidate, comparison.margin)))
            @for note in &candidate.notes { p.legend { strong { "Note: " } (shown(note)) } }
            (unmatched(&letter, candidate))
        }
        p.legend {
            "95 % is the confidence interval of the ratio. The dot is the ratio; the grey band is \
             the margin of ± "
            (format_percent(comparison.margin))
            ". Right of the line, B is larger. Better and worse: the difference is significant \
             after correction for the number of metrics, and exceeds the margin. Same: the whole \
             interval is within the margin."
        }
    }
}

fn differences(letter: &str, candidate: &Candidate) -> Markup {
    let table = html! {
        table.plain {
            caption { "What differs from A to " (letter) }
            thead {
                tr { th scope="col" { "What" } th scope="col" { "A" } th scope="col" { (letter) } }
            }
            tbody { @for difference in &candidate.differences { tr {
                th scope="row" { (shown(&difference.what)) }
                td { (shown(&difference.a)) }
                td { (shown(&difference.b)) }
            } } }
        }
    };
    wide_table(&format!("What differs from A to {letter}"), &table)
}

fn table(letter: &str, candidate: &Candidate, margin: f64) -> Markup {
    let rows: Vec<&MetricComparison> = candidate
        .metrics
        .iter()
        .filter(|m| is_shown(m, MetricDetail::Independent, candidate))
        .collect();
    let reach = reach(&rows, margin);
    html! {
        table.figures {
            thead { tr {
                th scope="col" { "Metric" }
                th.number scope="col" { "A" }
                th.number scope="col" { (letter) }
                th.number scope="col" { (letter) "/A" }
                th.number scope="col" { "Change" }
                th.number scope="col" { "95 %" }
                th scope="col" { span.unseen { "Ratio drawn" } }
                th scope="col" { "Verdict" } th scope="col" { "What would decide" }
            } }
            @for group in rows.chunk_by(|a, b| a.subject == b.subject && a.target == b.target) {
                tbody {
                    tr.head { th colspan="9" scope="rowgroup" { div.pinned {
                        strong { (shown(&subject_text(group[0]))) }
                        @if !group[0].reasons.is_empty() {
                            " "
                            span.reasons.warning {
                                strong { "not comparable: " } (reasons_text(group[0]))
                            }
                        }
                    } } }
                    @for metric in group { (row(metric, reach, margin)) }
                }
            }
        }
    }
}

fn row(metric: &MetricComparison, reach: f64, margin: f64) -> Markup {
    let better = if metric.better == Direction::Higher {
        "more is better"
    } else {
        "less is better"
    };
    let [of_a, of_b] = sides_text(metric);
    html! {
        tr class=(tone(metric.verdict)) {
            th.operation scope="row" title=(better) {
                span.beside aria-hidden="true" { (sign(metric.verdict)) }
                (shown(&figure_name(metric)))
            }
            td.number { (of_a) }
            td.number { (of_b) }
            td.number { (metric.ratio.map_or(labels::UNKNOWN.to_owned(), ratio_text)) }
            td.number { strong { (metric.ratio.map_or(labels::UNKNOWN.to_owned(), change_text)) } }
            td.number { (metric.ratio.map_or(labels::UNKNOWN.to_owned(), interval_text)) }
            td.drawn { @if let Some(ratio) = metric.ratio { (forest(ratio, reach, margin)) } }
            td { span.verdict { (sign(metric.verdict)) " " (metric.verdict.as_str()) } }
            td.conditions {
                @if metric.verdict.is_open() { (shown(&needed_text(metric))) }
            }
        }
    }
}

fn reasons_text(metric: &MetricComparison) -> String {
    metric
        .reasons
        .iter()
        .map(|reason| shown(&reason.why))
        .collect::<Vec<_>>()
        .join(" · ")
}

/// A ratio with its interval on a logarithmic scale, so that half and double lie equally far from
/// one.
fn forest(ratio: Ratio, reach: f64, margin: f64) -> Markup {
    let place = |ratio: f64| {
        (80.0
            + (if ratio > 0.0 {
                ratio.ln()
            } else {
                f64::NEG_INFINITY
            } / reach)
                .clamp(-1.0, 1.0)
                * 76.0)
            .clamp(3.0, 157.0)
    };
    let px = |value: f64| format!("{value:.1}");
    let (low, high) = (
        place(ratio.low_95),
        place(ratio.high_95.unwrap_or(f64::INFINITY)),
    );
    let (band_low, band_high) = (place(1.0 - margin), place(1.0 / (1.0 - margin)));
    html! {
        svg.forest viewBox="0 0 160 16" width="160" height="16" aria-hidden="true" focusable="false"
        {
            rect.band x=(px(band_low)) width=(px(band_high - band_low)) y="0" height="16" {}
            line.one x1="80" x2="80" y1="0" y2="16" {}
            line.reach x1=(px(low)) x2=(px(high)) y1="8" y2="8" {}
            circle.value cx=(px(place(ratio.value))) cy="8" r="3.5" {}
        }
    }
}

fn unmatched(letter: &str, candidate: &Candidate) -> Markup {
    html! {
        @if !candidate.unmatched.is_empty() {
            p { strong { "Only on one side:" } }
            ul { @for item in &candidate.unmatched { li {
                (shown(&item.subject)) " (only in "
                @if item.only == Holder::A { "A" } @else { (letter) }
                ")"
                @if let Some(why) = &item.why { ": " (shown(why)) }
            } } }
        }
    }
}

/// The percentile curves of both sides, a chart for each workload.
fn overlays(candidate: &Candidate, letter: &str, several: bool) -> Vec<Chart> {
    candidate
        .percentiles
        .iter()
        .enumerate()
        .filter_map(|(index, pair)| overlay(pair, index, letter, several))
        .collect()
}

fn overlay(pair: &PercentilePair, index: usize, letter: &str, several: bool) -> Option<Chart> {
    let points = |points: &[PercentilePoint]| {
        points
            .iter()
            .filter(|p| p.latency_ns > 0)
            .map(|p| (p.percent, p.latency_ns as f64 / 1e6))
            .collect()
    };
    let line = |name: &str, points: Vec<(f64, f64)>| Series {
        name: name.to_owned(),
        mark: SeriesMark::Line,
        side: AxisSide::Left,
        points,
        half_widths_95: Vec::new(),
    };
    let series = [line("A", points(&pair.a)), line(letter, points(&pair.b))];
    if series.iter().any(|series| series.points.is_empty()) {
        return None;
    }
    let axis = |label: &str, unit: &str, scale| Axis {
        label: label.to_owned(),
        unit: unit.to_owned(),
        scale,
        min: None,
        max: None,
        ticks: Vec::new(),
    };
    let against = if several {
        format!(", {letter} against A")
    } else {
        String::new()
    };
    let doubt = if pair.comparable {
        ""
    } else {
        " (not comparable)"
    };
    Some(Chart {
        id: format!("percentiles-{}-{index}", letter.to_lowercase()),
        title: format!(
            "{} {} latency{against}{doubt}",
            shown(&pair.subject),
            pair.op.as_str()
        ),
        caption: "At each percentile, that share of the operations took no longer than the line \
                  shows. The lower line is better."
            .to_owned(),
        x: axis("percentile", "%", Scale::Percentile),
        y: axis("latency", "ms", Scale::Log),
        y_right: None,
        series: series.into(),
        guides: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison() -> Comparison {
        serde_json::from_str(include_str!("../../../../tests/fixtures/comparison.json")).unwrap()
    }

    fn page(comparison: &Comparison) -> String {
        let mut out = Vec::new();
        write_comparison(comparison, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn comparison_page_shows_verdicts_reasons_and_both_curves() {
        let page = page(&comparison());
        for part in [
            "▲ better",
            "▼ worse",
            "? undecided",
            "≠ not comparable",
            "not comparable: ",
            "class=\"forest\"",
            "id=\"chart-percentiles-b-0\"",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(page.len() < 400_000, "{} bytes", page.len());
    }

    #[test]
    fn hostile_text_never_becomes_markup() {
        let scripts = page(&comparison()).matches("<script").count();
        let hostile = "</script><script>alert(1)</script>\"><img src=x onerror=alert(1)>\u{202e}";
        let mut comparison = comparison();
        comparison.baseline.label = hostile.to_owned();
        let candidate = &mut comparison.candidates[0];
        candidate.summary = hostile.to_owned();
        candidate.side.runs[0].name = hostile.to_owned();
        candidate.notes.push(hostile.to_owned());
        for metric in &mut candidate.metrics {
            (metric.subject, metric.metric) = (hostile.to_owned(), hostile.to_owned());
        }
        for pair in &mut candidate.percentiles {
            pair.subject = hostile.to_owned();
        }
        let page = page(&comparison);
        assert!(page.matches("<script").count() == scripts && !page.contains("<img"));
        let (markup, _) = page.split_once("<script type=").unwrap();
        assert!(!markup.contains('\u{202e}'));
    }

    #[test]
    fn forest_places_half_and_double_equally_far_from_one() {
        let drawn = |value| {
            forest(
                Ratio {
                    value,
                    low_95: value,
                    high_95: Some(value),
                },
                4.0_f64.ln(),
                0.02,
            )
            .into_string()
        };
        assert!(
            drawn(0.5).contains("cx=\"42.0\"") && drawn(2.0).contains("cx=\"118.0\""),
            "{}",
            drawn(2.0)
        );
        // A ratio beyond the scale is drawn at its edge; an interval without an end reaches it.
        assert!(drawn(100.0).contains("cx=\"156.0\""));
        let open = forest(
            Ratio {
                value: 1.0,
                low_95: 0.0,
                high_95: None,
            },
            1.0,
            0.02,
        )
        .into_string();
        assert!(open.contains("x1=\"4.0\" x2=\"156.0\""), "{open}");
    }
}
