//! The comparison page: the verdict in a sentence, then the sides, what differs, the table of
//! metrics, and what would decide the undecided ones.

use super::facts::fact;
use crate::describe::comparison::{
    MetricDetail, change_text, figure_name, interval_text, is_shown, letter, needed_text,
    ratio_text, run_text, sides_text, subject_text,
};
use crate::labels;
use crate::page::{Page, TextStyle};
use crate::style::Style;
use crate::table::{Align, Columns};
use crate::text::list;
use diskproof_model::comparison::{
    Candidate, Comparison, ConditionOutcome, Holder, MetricComparison, Ratio, Side, Verdict,
};
use diskproof_model::units::{counted, format_percent};
use std::io::{self, Write};

const COLUMNS: usize = 7;
/// Column at which the figures begin if they do not fit side by side.
const STACKED_INDENT: usize = 14;
/// Column at which an explanation begins.
const HANGING_INDENT: usize = 4;

/// Writes the comparison.
pub fn write_comparison(
    comparison: &Comparison,
    detail: MetricDetail,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let page = &mut Page::new(style, out);
    if let [candidate] = comparison.candidates.as_slice()
        && detail == MetricDetail::Independent
        && is_all_undecided(candidate)
    {
        write_all_undecided(page, candidate)?;
        return write_conditions(page, comparison);
    }
    let letters: Vec<String> = (0..comparison.candidates.len()).map(letter).collect();
    for candidate in &comparison.candidates {
        page.text(TextStyle::Bold.of(&candidate.summary))?;
    }
    page.blank()?;
    write_side(page, "A", &comparison.baseline)?;
    for (letter, candidate) in letters.iter().zip(&comparison.candidates) {
        write_side(page, letter, &candidate.side)?;
    }
    for (letter, candidate) in letters.iter().zip(&comparison.candidates) {
        write_candidate(page, letter, candidate, detail)?;
    }
    write_conditions(page, comparison)?;
    page.blank()?;
    page.text(TextStyle::Dim.of(legend(comparison)))
}

/// Whether the table would repeat one word.
fn is_all_undecided(candidate: &Candidate) -> bool {
    let mut metrics = candidate.metrics.iter().peekable();
    metrics.peek().is_some() && metrics.all(|metric| metric.verdict == Verdict::Undecided)
}

/// Three lines instead of a table: the summary, the largest changes, what would decide.
fn write_all_undecided(page: &mut Page<'_>, candidate: &Candidate) -> io::Result<()> {
    page.text(TextStyle::Bold.of(&candidate.summary))?;
    let ratios = candidate.metrics.iter().filter(|metric| metric.headline);
    let mut ratios: Vec<Ratio> = ratios.filter_map(|metric| metric.ratio).collect();
    ratios.sort_by(|one, other| one.value.total_cmp(&other.value));
    let changes = match ratios.as_slice() {
        [] => "No change has an interval: too little was measured.".to_owned(),
        [one] => format!(
            "The change is {} (95 %: {}).",
            change_text(*one),
            interval_text(*one)
        ),
        [first, .., last] => format!(
            "The changes lie between {} and {}.",
            change_text(*first),
            change_text(*last)
        ),
    };
    page.text(TextStyle::Plain.of(format!("{changes} The table: --all.")))?;
    let needed = candidate.metrics.iter().filter(|metric| metric.headline);
    let longest = needed.max_by(|one, other| times(one).total_cmp(&times(other)));
    let text = longest.map_or_else(
        || "Measure for longer.".to_owned(),
        |metric| format!("To decide every workload: {}.", needed_text(metric)),
    );
    page.text(TextStyle::Plain.of(text))
}

/// How much more it would take; infinite where that is unknown.
fn times(metric: &MetricComparison) -> f64 {
    metric.needed.map_or(f64::INFINITY, |needed| needed.times)
}

fn write_side(page: &mut Page<'_>, letter: &str, side: &Side) -> io::Result<()> {
    match side.runs.as_slice() {
        [run] => fact(page, letter, &run_text(run)),
        runs => {
            fact(
                page,
                letter,
                &format!("{}: {}", side.label, counted(runs.len() as u64, "run")),
            )?;
            runs.iter().enumerate().try_for_each(|(index, run)| {
                fact(page, &format!("  {letter}{}", index + 1), &run_text(run))
            })
        }
    }
}

fn write_candidate(
    page: &mut Page<'_>,
    letter: &str,
    candidate: &Candidate,
    detail: MetricDetail,
) -> io::Result<()> {
    if !candidate.differences.is_empty() {
        page.blank()?;
        page.text(TextStyle::Bold.of(format!("what differs from A to {letter}")))?;
        for difference in &candidate.differences {
            let text = format!("{} → {}", difference.a, difference.b);
            page.entry(
                TextStyle::Dim.of(format!("  {}", difference.what)),
                19,
                TextStyle::Plain.of(&text),
            )?;
        }
    }
    page.blank()?;
    write_table(page, letter, candidate, detail)?;
    write_undecided(page, candidate, detail)?;
    write_unmatched(page, letter, candidate)?;
    for note in &candidate.notes {
        page.entry(TextStyle::Note.of("note"), 6, TextStyle::Plain.of(note))?;
    }
    Ok(())
}

fn write_table(
    page: &mut Page<'_>,
    letter: &str,
    candidate: &Candidate,
    detail: MetricDetail,
) -> io::Result<()> {
    let shown: Vec<&MetricComparison> = candidate
        .metrics
        .iter()
        .filter(|metric| is_shown(metric, detail, candidate))
        .collect();
    let ratio = format!("{letter}/A");
    let heading = ["", "A", letter, &ratio, "change", "95 %", "verdict"]
        .map(str::to_owned)
        .to_vec();
    let rows: Vec<Vec<String>> = shown.iter().map(|metric| row(metric)).collect();
    let mut aligns = [Align::Right; COLUMNS];
    (aligns[0], aligns[COLUMNS - 1]) = (Align::Left, Align::Left);
    let table = Columns::fit(&aligns, rows.iter().chain([&heading]), page.width());
    if let Some(columns) = table.as_ref().filter(|_| !shown.is_empty()) {
        page.unbroken(TextStyle::Dim.of(columns.line(&heading)))?;
    }
    let mut before = None;
    for (metric, row) in shown.iter().zip(&rows) {
        if before.replace((&metric.subject, metric.target))
            != Some((&metric.subject, metric.target))
        {
            page.text(TextStyle::Bold.of(subject_text(metric)))?;
            write_reasons(page, metric)?;
        }
        match &table {
            Some(columns) => page.unbroken(style(metric).of(columns.line(row)))?,
            None => write_stacked(page, metric, &heading, row)?,
        }
    }
    Ok(())
}

fn write_reasons(page: &mut Page<'_>, metric: &MetricComparison) -> io::Result<()> {
    let why = list(metric.reasons.iter().map(|reason| &reason.why));
    if why.is_empty() {
        Ok(())
    } else {
        page.entry(
            TextStyle::Warning.of("  not comparable:"),
            HANGING_INDENT,
            TextStyle::Plain.of(&why),
        )
    }
}

fn write_stacked(
    page: &mut Page<'_>,
    metric: &MetricComparison,
    heading: &[String],
    row: &[String],
) -> io::Result<()> {
    let figures = heading[1..4]
        .iter()
        .zip(&row[1..4])
        .map(|(name, cell)| format!("{name} {cell}"));
    let rest = [row[4].clone(), format!("({})", row[5]), row[6].clone()];
    let text = list(figures.chain(rest));
    page.entry(
        style(metric).of(&row[0]),
        STACKED_INDENT,
        TextStyle::Plain.of(&text),
    )
}

fn style(metric: &MetricComparison) -> TextStyle {
    match metric.verdict {
        Verdict::Better => TextStyle::Note,
        Verdict::Worse => TextStyle::Error,
        Verdict::Same | Verdict::FasterOnce | Verdict::SlowerOnce | Verdict::Observed => {
            TextStyle::Plain
        }
        Verdict::Undecided | Verdict::NotComparable => TextStyle::Dim,
    }
}

fn row(metric: &MetricComparison) -> Vec<String> {
    let name = format!("  {}", figure_name(metric));
    let of_ratio =
        |text: fn(Ratio) -> String| metric.ratio.map_or(labels::UNKNOWN.to_owned(), text);
    let [of_a, of_b] = sides_text(metric);
    vec![
        name,
        of_a,
        of_b,
        of_ratio(ratio_text),
        of_ratio(change_text),
        of_ratio(interval_text),
        metric.verdict.as_str().to_owned(),
    ]
}

/// What would decide; metrics with the same answer share an entry.
fn write_undecided(
    page: &mut Page<'_>,
    candidate: &Candidate,
    detail: MetricDetail,
) -> io::Result<()> {
    let undecided = |m: &&MetricComparison| m.verdict.is_open() && is_shown(m, detail, candidate);
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for metric in candidate.metrics.iter().filter(undecided) {
        let says = needed_text(metric);
        match groups.iter_mut().find(|(text, _)| *text == says) {
            Some((_, names)) => names.push(&metric.metric),
            None => groups.push((says, vec![&metric.metric])),
        }
    }
    if groups.is_empty() {
        return Ok(());
    }
    page.blank()?;
    page.text(TextStyle::Bold.of("what would decide"))?;
    groups.into_iter().try_for_each(|(text, names)| {
        page.entry(
            TextStyle::Plain.of(""),
            2,
            TextStyle::Plain.of(format!("{}: {text}", list(names))),
        )
    })
}

fn write_unmatched(page: &mut Page<'_>, letter: &str, candidate: &Candidate) -> io::Result<()> {
    for (holder, name) in [(Holder::A, "A"), (Holder::B, letter)] {
        let of_holder = candidate
            .unmatched
            .iter()
            .filter(|unmatched| unmatched.only == holder);
        let names: Vec<String> = of_holder
            .map(|u| {
                u.why.as_ref().map_or(u.subject.clone(), |why| {
                    format!("{} (not in the other: {why})", u.subject)
                })
            })
            .collect();
        if !names.is_empty() {
            page.entry(
                TextStyle::Dim.of(format!("only in {name}")),
                11,
                TextStyle::Plain.of(list(names)),
            )?;
        }
    }
    Ok(())
}

fn write_conditions(page: &mut Page<'_>, comparison: &Comparison) -> io::Result<()> {
    if comparison.conditions.is_empty() {
        return Ok(());
    }
    page.blank()?;
    page.text(TextStyle::Bold.of("conditions to fail on"))?;
    for condition in &comparison.conditions {
        let (label, style) = match condition.outcome {
            ConditionOutcome::Holds => ("  FAILED", TextStyle::Error),
            ConditionOutcome::DoesNotHold => ("  passed", TextStyle::Plain),
            ConditionOutcome::Undecided => ("  UNDECIDED", TextStyle::Warning),
            ConditionOutcome::Unanswered => ("  UNANSWERED", TextStyle::Error),
        };
        let of = if comparison.candidates.len() > 1 {
            format!(" ({})", condition.candidate)
        } else {
            String::new()
        };
        page.entry(
            style.of(label),
            14,
            TextStyle::Plain.of(format!("{}{of}: {}", condition.expression, condition.why)),
        )?;
    }
    Ok(())
}

fn legend(comparison: &Comparison) -> String {
    let margin = format_percent(comparison.margin);
    format!(
        "95 %: confidence interval of the ratio. better, worse: significantly different after \
         correction for the number of metrics, and by more than {margin}. same: the whole interval \
         is within {margin}. All metrics: --all, --json. Explanations: docs/compare.md."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Color;
    use diskproof_model::comparison::Needed;

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
