//! The page of a comparison: verdict, sides, every ratio with its interval, and a chart of the
//! latencies of both sides.

use super::blocks::{blocks, tone_class};
use super::charts;
use super::document::{DataBlock, Document, NavigationEntry};
use super::elements::{section, shown, shown_whole};
use super::saved_page::COMPARISON_ID;
use crate::chart::{Axis, Chart, Scale, Series, SeriesMark};
use crate::describe;
use crate::describe::changes::answer_blocks;
use crate::describe::comparison::margin_text;
use crate::describe::comparison::{MetricDetail, letter, verdict_look};
use crate::describe::fleet::FleetDetail;
use diskproof_model::block::Block;
use diskproof_model::comparison::{
    Candidate, Comparison, PercentilePair, PercentilePoint, Verdict,
};
use maud::{Markup, html};
use std::io::{self, Write};

/// Writes the page of a comparison.
pub fn write_comparison(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let charts = charts_of_candidates(comparison);
    let mut sections = vec![
        NavigationEntry::new("verdict", "Verdict"),
        NavigationEntry::new("metrics", "Metrics"),
    ];
    if !charts.is_empty() {
        sections.push(NavigationEntry::new("charts", "Charts"));
    }
    sections.push(NavigationEntry::new("data", "Data"));
    let described = describe::comparison::blocks(comparison, MetricDetail::Independent);
    let body = html! {
        (overview_section(comparison))
        (section("metrics", "Metrics", &blocks(&described, None)))
        @if !charts.is_empty() { (charts::section(&charts, None)) }
        (data_section())
    };
    let data = [
        DataBlock::new("chart-data", charts::data(&charts).to_string()),
        DataBlock::new(COMPARISON_ID, serde_json::to_string(comparison)?),
    ];
    let title = format!("{} · comparison", side_names(comparison));
    let document = Document {
        title: &title,
        sections: &sections,
        file_name: "diskproof-comparison",
        body: &body,
        data: &data,
    };
    out.write_all(document.html().as_bytes())
}

/// The percentiles of each candidate over those of the baseline.
fn charts_of_candidates(comparison: &Comparison) -> Vec<Chart> {
    let mut charts = Vec::new();
    for (index, candidate) in comparison.candidates.iter().enumerate() {
        let candidate_letter = letter(index);
        for (number, pair) in candidate.percentiles.iter().enumerate() {
            let mut subject = format!("{} {} latency", shown(&pair.subject), pair.op.as_str());
            if comparison.candidates.len() > 1 {
                subject += &format!(", {candidate_letter} against A");
            }
            if !pair.comparable {
                subject += " (not comparable)";
            }
            if let Some(overlay) = overlay_chart(pair, &candidate_letter) {
                charts.push(Chart {
                    id: format!("percentiles-{}-{number}", candidate_letter.to_lowercase()),
                    title: subject,
                    ..overlay
                });
            }
        }
    }
    charts
}

fn data_section() -> Markup {
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

fn side_names(comparison: &Comparison) -> String {
    let mut names = vec![shown(&comparison.baseline.label)];
    for candidate in &comparison.candidates {
        names.push(shown(&candidate.side.label));
    }
    names.join(" – ")
}

/// The answer, the tally and the figures that the answer rests on.
fn overview_section(comparison: &Comparison) -> Markup {
    let described = answer_blocks(comparison, FleetDetail::All);
    // The first block is the sentence with the answer.
    let (answer, figures) = match described.split_first() {
        Some((Block::Text(_, answer), figures)) => (shown_whole(answer), figures),
        _ => (side_names(comparison), described.as_slice()),
    };
    html! {
        section.overview #verdict aria-labelledby="title" {
            p.kicker {
                "comparison · differences up to " (margin_text(comparison.margin)) " are ignored"
            }
            h1 #title { (answer) }
            @for candidate in &comparison.candidates { (tally_markup(candidate)) }
            (blocks(figures, None))
        }
    }
}

/// The verdicts over the headline metrics, counted.
fn tally_markup(candidate: &Candidate) -> Markup {
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
            @for (n, verdict) in counts {
                @if n > 0 {
                    @let (tone, sign) = verdict_look(verdict);
                    li class=(tone_class(tone)) {
                        span.verdict { (n) " " (sign) " " (verdict.as_str()) }
                    }
                }
            }
        }
    }
}

/// The percentile curves of both sides of a workload; `None` if one has no latency.
fn overlay_chart(pair: &PercentilePair, letter: &str) -> Option<Chart> {
    two_percentiles_chart("A", &pair.a, letter, &pair.b)
}

/// Two percentile curves; `None` if one has no latency.
pub(super) fn two_percentiles_chart(
    name_a: &str,
    a: &[PercentilePoint],
    name_b: &str,
    b: &[PercentilePoint],
) -> Option<Chart> {
    let baseline = percentile_series(name_a, a);
    let candidate = percentile_series(name_b, b);
    if baseline.points.is_empty() || candidate.points.is_empty() {
        return None;
    }
    Some(Chart {
        caption: "At each percentile, that share of the operations took no longer than the line \
                  shows. The lower line is better."
            .to_owned(),
        x: Axis::new("percentile", "%").scaled(Scale::Percentile),
        y: Axis::new("latency", "ms").scaled(Scale::Log),
        series: vec![baseline, candidate],
        ..Chart::default()
    })
}

fn percentile_series(name: &str, percentiles: &[PercentilePoint]) -> Series {
    let mut points = Vec::new();
    for point in percentiles {
        if point.latency_ns > 0 {
            points.push((point.percent, point.latency_ns as f64 / 1e6));
        }
    }
    Series::new(name, SeriesMark::Line, points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{comparison, written};

    fn page(comparison: &Comparison) -> String {
        written(|out| write_comparison(comparison, out))
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
}
