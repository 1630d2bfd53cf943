//! The page of a comparison on a terminal: the summary, then its blocks.

use super::blocks::{write_blocks, write_first_blocks};
use crate::describe::comparison::{MetricDetail, blocks, undecided};
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
    for candidate in &comparison.candidates {
        page.text(TextStyle::Bold.of(&candidate.summary))?;
    }
    match undecided(comparison).filter(|_| detail == MetricDetail::Independent) {
        Some(short) => write_first_blocks(page, None, &short),
        None => write_blocks(page, None, &blocks(comparison, detail)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Color;
    use diskproof_model::comparison::{Needed, Verdict};

    fn page(comparison: &Comparison, detail: MetricDetail) -> String {
        let style = Style {
            width: 80,
            color: Color::Plain,
        };
        let mut out = Vec::new();
        write_comparison(comparison, detail, &style, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn comparison_without_a_decision_takes_three_lines() {
        let text = include_str!("../../../../tests/fixtures/comparison.json");
        let mut comparison: Comparison = serde_json::from_str(text).unwrap();
        comparison.candidates.truncate(1);
        comparison.conditions.clear();
        for metric in &mut comparison.candidates[0].metrics {
            metric.verdict = Verdict::Undecided;
            metric.needed = Some(Needed {
                times: 2.0,
                measure_ns: Some(40),
                runs: None,
            });
        }
        comparison.candidates[0].summary = "B is undecided in all 8.".to_owned();
        let short = page(&comparison, MetricDetail::Independent);
        assert_eq!(short.lines().count(), 3, "{short}");
        assert!(short.contains("The changes lie between"), "{short}");
        assert!(!short.contains("0 ms"), "{short}");
        let long = page(&comparison, MetricDetail::All);
        assert!(
            long.contains("verdict") && long.lines().count() > 10,
            "{long}"
        );
    }
}
