//! The verdict of a run as blocks: its grades, what limits the disk, and whether the figures can be
//! trusted.

use super::commits::commit_facts;
use super::findings::{limit_facts, severity_tone};
use crate::labels;
use diskproof_model::block::{Block, Cell, Column, Place, Table, TableRow, Tone};
use diskproof_model::digits::figure_text;
use diskproof_model::record::Record;
use diskproof_model::verdict::{Grade, RunVerdict, TrustLevel, UseGrade};

/// Describes the verdict. A run on one target has a row for each grade, and says how the methods of
/// committing compare. Each of several targets shows its own under its heading, so that here the
/// headline stands in place of the rows; so it does without grades. With `--for` the headline
/// always comes first. Empty for a run without a verdict.
pub(crate) fn verdict_blocks(record: &Record) -> Vec<Block> {
    let Some(verdict) = &record.verdict else {
        return Vec::new();
    };
    let has_one_target = record.targets.len() <= 1;
    let has_rows = !verdict.grades.is_empty() && has_one_target;
    let mut blocks = Vec::new();
    if !has_rows || record.plan.questions.fit_for.is_some() {
        blocks.push(Block::text(Tone::Bold, &verdict.headline));
    }
    if has_rows {
        blocks.extend(grades_table(record, |_| true));
    }
    if has_one_target {
        blocks.extend(commit_facts(record, 0));
    }
    blocks.extend(limit_facts(&record.findings));
    blocks.extend(weakness_fact(verdict));
    blocks.push(trust_fact(verdict));
    blocks
}

/// Describes the verdict without figures, for pages whose tables have them. Empty for a run without
/// a verdict.
pub(crate) fn headline_blocks(record: &Record) -> Vec<Block> {
    let Some(verdict) = &record.verdict else {
        return Vec::new();
    };
    let mut blocks = vec![Block::text(Tone::Bold, &verdict.headline)];
    blocks.extend(limit_facts(&record.findings));
    blocks.push(trust_fact(verdict));
    blocks
}

/// Names the weakness of the disk that the figures show, if any.
fn weakness_fact(verdict: &RunVerdict) -> Option<Block> {
    let finding = verdict.weakness.as_ref()?;
    let text = format!("{} ({})", finding.title, finding.code);
    Some(Block::toned_fact(
        severity_tone(finding.severity),
        "disk",
        text,
    ))
}

/// Returns the table of the selected targets' grades; `None` where they have none.
pub(crate) fn grades_table(record: &Record, is_selected: impl Fn(usize) -> bool) -> Option<Block> {
    let verdict = record.verdict.as_ref()?;
    let mut rows = Vec::new();
    for grade in &verdict.grades {
        let is_own = match record.measurements.get(grade.measurement) {
            Some(measurement) => is_selected(measurement.data.target),
            None => true,
        };
        if is_own {
            rows.push(grade_row(grade));
        }
    }
    if rows.is_empty() {
        return None;
    }
    let mut columns = Column::words([""; 5]);
    columns[1] = Column::number("", Place::Always);
    columns[4].place = Place::Roomy(1);
    Some(Block::Table(Table::new("", columns, rows)))
}

fn grade_row(grade: &UseGrade) -> TableRow {
    let tone = match worse_grade(grade) {
        Some(Grade::Good) => Tone::Good,
        Some(Grade::Limited) | None => Tone::Warning,
        Some(Grade::Poor) => Tone::Error,
    };
    TableRow::from(vec![
        // As wide as the labels of facts.
        format!("{:9}", grade.name).into(),
        grade.figure.value_text().into(),
        labels::interval(&grade.figure).into(),
        Cell::toned(tone, grade.words()),
        Cell::toned(Tone::Dim, threshold_text(grade)),
    ])
}

/// Returns the worse grade where the interval leaves two open; it decides the colour. `None` for a
/// figure without a grade.
pub(crate) fn worse_grade(grade: &UseGrade) -> Option<Grade> {
    let [_, worse] = grade.range()?;
    Some(worse)
}

/// A threshold is exact. This relative half-width makes it print with three to four digits.
const THRESHOLD_WIDTH: f64 = 1e-3;

/// `(good from 500 MB/s)`: the limit of the next better grade, or that of limited for a poor
/// figure. Empty for a good figure and for one without a grade.
fn threshold_text(grade: &UseGrade) -> String {
    let thresholds = &grade.thresholds;
    let (word, threshold) = match (grade.grade, grade.or) {
        (Some(Grade::Poor), None) => ("poor below", thresholds.limited_from),
        (Some(Grade::Good), None) | (None, _) => return String::new(),
        _ => ("good from", thresholds.good_from),
    };
    let text = figure_text(
        threshold,
        Some(threshold * THRESHOLD_WIDTH),
        &grade.figure.unit,
    );
    format!("({word} {text})")
}

/// Says whether the figures can be relied on, and why.
fn trust_fact(verdict: &RunVerdict) -> Block {
    let tone = match verdict.trust.level {
        TrustLevel::Reliable => Tone::Good,
        TrustLevel::Doubtful => Tone::Warning,
        TrustLevel::Unreliable => Tone::Error,
    };
    Block::toned_fact(tone, "trust", &verdict.trust.why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskproof_model::record::Estimate;
    use diskproof_model::verdict::GradeThresholds;

    fn graded(grade: Option<Grade>, or: Option<Grade>) -> UseGrade {
        UseGrade {
            name: "scans".to_owned(),
            measurement: 0,
            grade,
            or,
            not_graded: None,
            figure: Estimate {
                n: 10,
                value: 1500e6,
                half_width_95: Some(5e6),
                unit: "B/s".to_owned(),
            },
            thresholds: GradeThresholds {
                limited_from: 1000e6,
                good_from: 2000e6,
                source: String::new(),
            },
            doubts: Vec::new(),
        }
    }

    #[test]
    fn colour_is_that_of_the_worse_of_two_grades() {
        use Grade::{Good, Limited, Poor};
        for (grade, or, worse) in [
            (Some(Good), None, Some(Good)),
            (Some(Good), Some(Limited), Some(Limited)),
            (Some(Limited), Some(Good), Some(Limited)),
            (Some(Limited), Some(Poor), Some(Poor)),
            (None, None, None),
        ] {
            assert_eq!(worse_grade(&graded(grade, or)), worse, "{grade:?} {or:?}");
        }
    }

    #[test]
    fn threshold_is_that_of_a_better_grade() {
        use Grade::{Good, Limited, Poor};
        for (grade, or, text) in [
            (Some(Good), None, ""),
            (None, None, ""),
            (Some(Good), Some(Limited), "(good from 2000 MB/s)"),
            (Some(Limited), None, "(good from 2000 MB/s)"),
            (Some(Poor), Some(Limited), "(good from 2000 MB/s)"),
            (Some(Poor), None, "(poor below 1000 MB/s)"),
        ] {
            let threshold = threshold_text(&graded(grade, or));
            assert_eq!(threshold.replace('\u{a0}', " "), text);
        }
    }
}
