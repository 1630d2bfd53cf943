//! The verdict on the terminal page: five lines before everything else, and after the figures what
//! they do not cover.

use crate::describe::commits::summary;
use crate::labels;
use crate::page::{Page, StyledText, TextStyle};
use crate::style::Style;
use crate::table::{Align, Columns};
use diskproof_model::digits::figure_text;
use diskproof_model::record::Record;
use diskproof_model::verdict::{Grade, RunVerdict, TrustLevel, UseGrade};
use std::io;

/// Column at which the text of a line begins, behind `bulk load`.
const INDENT: usize = 11;

/// Writes a line for each use and one for trust. Without grades, or where several targets have
/// grades of their own, the headline takes the place of those lines. The answer of `--for` always
/// comes first.
pub(super) fn write_verdict(page: &mut Page<'_>, record: &Record) -> io::Result<()> {
    let Some(verdict) = &record.verdict else {
        return Ok(());
    };
    page.blank()?;
    let graded = !verdict.grades.is_empty() && record.targets.len() <= 1;
    if !graded || record.plan.fit_for.is_some() {
        page.text(TextStyle::Bold.of(&verdict.headline))?;
    }
    if graded {
        write_rows(page, &verdict.grades.iter().collect::<Vec<_>>())?;
    }
    for (label, text) in summary(record) {
        page.entry(TextStyle::Bold.of(label), INDENT, TextStyle::Plain.of(text))?;
    }
    write_trust(page, verdict)
}

/// Writes what the figures do not cover.
pub(super) fn write_caveats(page: &mut Page<'_>, record: &Record) -> io::Result<()> {
    let caveats = record.verdict.iter().flat_map(|verdict| &verdict.caveats);
    for (index, caveat) in caveats.enumerate() {
        if index == 0 {
            page.blank()?;
        }
        page.text(TextStyle::Dim.of(caveat))?;
    }
    Ok(())
}

/// Writes the headline and the trust once more, for the end of a page that is longer than the
/// screen. Writes nothing for a run without a verdict.
pub fn write_verdict_again(
    record: &Record,
    style: &Style,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let Some(verdict) = &record.verdict else {
        return Ok(());
    };
    let page = &mut Page::new(style, out);
    page.blank()?;
    page.text(TextStyle::Bold.of(&verdict.headline))?;
    write_trust(page, verdict)
}

/// The grades of one of several targets.
pub(super) fn write_grades(page: &mut Page<'_>, record: &Record, target: usize) -> io::Result<()> {
    let grades = record.verdict.iter().flat_map(|verdict| &verdict.grades);
    let is_own = |grade: &&UseGrade| {
        let measurement = record.measurements.get(grade.measurement);
        measurement.is_some_and(|m| m.target == target)
    };
    write_rows(page, &grades.filter(is_own).collect::<Vec<_>>())
}

fn write_rows(page: &mut Page<'_>, grades: &[&UseGrade]) -> io::Result<()> {
    let rows: Vec<Vec<String>> = grades
        .iter()
        .map(|grade| {
            vec![
                format!("{:1$}", grade.name, INDENT - 2),
                grade.figure.value_text(),
                labels::interval(&grade.figure),
            ]
        })
        .collect();
    let aligns = [Align::Left, Align::Right, Align::Left];
    let Some(columns) = Columns::fit(&aligns, &rows, page.width()) else {
        return write_stacked(page, grades);
    };
    for (grade, row) in grades.iter().zip(&rows) {
        let row = columns.line(row);
        let start = columns.total() + 2;
        let words = words(grade);
        let hint = threshold_text(grade);
        let length = start + words.text.chars().count();
        let pad = " ".repeat(start.saturating_sub(crate::text::columns(&row)));
        let mut pieces = vec![TextStyle::Plain.of(row + &pad), words];
        if length + 2 + hint.chars().count() <= page.width() {
            pieces.push(TextStyle::Dim.of(format!("  {hint}")));
        }
        if length <= page.width() {
            page.pieces(&pieces)?;
        } else {
            write_stacked(page, &[grade])?;
        }
    }
    Ok(())
}

/// A grade as running text, for a narrow page.
fn write_stacked(page: &mut Page<'_>, grades: &[&UseGrade]) -> io::Result<()> {
    for grade in grades {
        let words = words(grade);
        let text = format!("{}, {}", grade.figure.value_text(), words.text);
        page.entry(
            TextStyle::Plain.of(&grade.name),
            INDENT,
            words.tone.of(text),
        )?;
    }
    Ok(())
}

/// The grade in words, in the colour of the worse one.
fn words(grade: &UseGrade) -> StyledText<'static> {
    let worse = grade
        .grade
        .map(|one| grade.or.map_or(one, |or| one.min(or)));
    let style = match worse {
        Some(Grade::Good) => TextStyle::Good,
        Some(Grade::Limited) | None => TextStyle::Warning,
        Some(Grade::Poor) => TextStyle::Error,
    };
    style.of(grade.words())
}

/// The figure that the next better grade requires; empty for a good one.
fn threshold_text(grade: &UseGrade) -> String {
    let thresholds = &grade.thresholds;
    let (name, from) = match (grade.grade, grade.or) {
        (Some(Grade::Poor), None) => (Grade::Limited, thresholds.limited_from),
        (Some(Grade::Good), None) | (None, _) => return String::new(),
        _ => (Grade::Good, thresholds.good_from),
    };
    let from = figure_text(from, Some(from * 1e-3), &grade.figure.unit);
    format!("({} from {from})", name.as_str())
}

/// Whether the figures can be relied on, with the most severe finding.
fn write_trust(page: &mut Page<'_>, verdict: &RunVerdict) -> io::Result<()> {
    let style = match verdict.trust.level {
        TrustLevel::Reliable => TextStyle::Good,
        TrustLevel::Doubtful => TextStyle::Warning,
        TrustLevel::Unreliable => TextStyle::Error,
    };
    let why = style.of(&verdict.trust.why);
    page.entry(TextStyle::Plain.of("trust"), INDENT, why)
}
