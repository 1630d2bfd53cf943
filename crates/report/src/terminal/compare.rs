//! The page of a comparison on a terminal: the summary, then its blocks.

use super::blocks::write_blocks;
use crate::describe::changes::short;
use crate::describe::comparison::{MetricDetail, blocks};
use crate::page::{Page, TextStyle};
use crate::style::Style;
use diskproof_model::comparison::Comparison;
use std::io::{self, Write};

/// Writes the comparison.
pub fn write_comparison(
    comparison: &Comparison,
    detail: MetricDetail,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let page = &mut Page::new(style, out);
    if detail == MetricDetail::Independent {
        return write_blocks(page, None, &short(comparison));
    }
    for candidate in &comparison.candidates {
        page.text(TextStyle::Bold.of(&candidate.summary))?;
    }
    page.blank()?;
    write_blocks(page, None, &blocks(comparison, detail))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Color;
    use diskproof_model::comparison::{Tally, Verdict};

    fn page(comparison: &Comparison, detail: MetricDetail) -> String {
        let style = Style {
            width: 80,
            color: Color::Plain,
        };
        let mut out = Vec::new();
        write_comparison(comparison, detail, &style, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn fixture() -> Comparison {
        let text = include_str!("../../../../tests/fixtures/comparison.json");
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn two_sides_take_a_screen_and_name_both() {
        let mut comparison = fixture();
        comparison.candidates.truncate(1);
        let names = [
            comparison.baseline.label.clone(),
            comparison.candidates[0].side.label.clone(),
        ];
        for verdict in [None, Some(Verdict::Undecided), Some(Verdict::NotComparable)] {
            let candidate = &mut comparison.candidates[0];
            candidate.notes = vec!["a long note ".repeat(12); 9];
            if let Some(verdict) = verdict {
                candidate.headline = Tally::default();
                for metric in &mut candidate.metrics {
                    metric.verdict = verdict;
                    if metric.headline {
                        candidate.headline.count(verdict);
                    }
                }
            }
            let page = page(&comparison, MetricDetail::Independent);
            assert!(page.lines().count() <= 24, "{page}");
            assert!(
                page.lines().all(|line| crate::text::columns(line) <= 80),
                "{page}"
            );
            assert!(names.iter().all(|name| page.contains(name)), "{page}");
        }
    }

    #[test]
    fn fifty_sides_are_a_line_each_and_outliers_are_marked() {
        let mut comparison = fixture();
        let candidate = comparison.candidates[0].clone();
        let side = |number: usize| {
            let mut candidate = candidate.clone();
            candidate.side.label = format!("node{number}");
            for metric in &mut candidate.metrics {
                let share = if number == 7 {
                    0.2
                } else {
                    1.0 + number as f64 / 1000.0
                };
                metric.b.value = metric.a.value * share;
            }
            candidate
        };
        comparison.candidates = (1..50).map(side).collect();
        let page = page(&comparison, MetricDetail::Independent);
        assert!(page.lines().count() <= 60, "{page}");
        let marked: Vec<&str> = page
            .lines()
            .filter(|line| line.ends_with("outlier"))
            .collect();
        assert_eq!(marked.len(), 1, "{page}");
        assert!(marked[0].starts_with("node7 "), "{page}");
        assert!(page.contains("Outliers: node7"), "{page}");
    }
}
