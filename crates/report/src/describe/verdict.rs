//! The verdict as blocks: a row for each use, the decision of `commit`, and trust.

use super::commits;
use super::findings::limits;
use crate::labels;
use diskproof_model::block::{Block, Cell, Column, Place, Row, Table, Tone};
use diskproof_model::digits::figure_text;
use diskproof_model::record::Record;
use diskproof_model::verdict::{Grade, RunVerdict, TrustLevel, UseGrade};

/// A row for each use and one for trust. Without grades, or where several targets have grades of
/// their own, the headline takes the place of those rows. The answer of `--for` always comes first.
pub(crate) fn verdict(record: &Record) -> Vec<Block> {
    let Some(verdict) = &record.verdict else {
        return Vec::new();
    };
    let graded = !verdict.grades.is_empty() && record.targets.len() <= 1;
    let mut blocks = Vec::new();
    if !graded || record.plan.fit_for.is_some() {
        blocks.push(Block::text(Tone::Bold, &verdict.headline));
    }
    if graded {
        blocks.extend(grades(record, |_| true));
    }
    let summary = commits::summary(record).into_iter();
    blocks.extend(summary.map(|(label, text)| Block::toned_fact(Tone::Bold, label, text)));
    blocks.extend(limits(&record.findings));
    blocks.push(trust(verdict));
    blocks
}

/// The headline and the trust once more, for the end of a page that is longer than the screen.
pub(crate) fn answer(record: &Record) -> Vec<Block> {
    let Some(verdict) = &record.verdict else {
        return Vec::new();
    };
    let mut blocks = vec![Block::text(Tone::Bold, &verdict.headline)];
    blocks.extend(limits(&record.findings));
    blocks.push(trust(verdict));
    blocks
}

/// The grades of the selected targets.
pub(crate) fn grades(record: &Record, is_selected: impl Fn(usize) -> bool) -> Option<Block> {
    let grades = record.verdict.iter().flat_map(|verdict| &verdict.grades);
    let is_own = |grade: &&UseGrade| {
        let measurement = record.measurements.get(grade.measurement);
        measurement.is_none_or(|m| is_selected(m.target))
    };
    let rows: Vec<Row> = grades.filter(is_own).map(row).collect();
    let mut columns = Column::words([""; 5]);
    columns[1] = Column::number("", Place::Always);
    columns[4].place = Place::Roomy(1);
    (!rows.is_empty()).then(|| Block::Table(Table::new("", columns, rows)))
}

fn row(grade: &UseGrade) -> Row {
    let tone = match worse(grade) {
        Some(Grade::Good) => Tone::Good,
        Some(Grade::Limited) | None => Tone::Warning,
        Some(Grade::Poor) => Tone::Error,
    };
    Row::from(vec![
        // As wide as the labels of facts.
        format!("{:9}", grade.name).into(),
        grade.figure.value_text().into(),
        labels::interval(&grade.figure).into(),
        Cell::toned(tone, grade.words()),
        Cell::toned(Tone::Dim, threshold_text(grade)),
    ])
}

/// The worse of two grades, which decides the colour.
pub(crate) fn worse(of: &UseGrade) -> Option<Grade> {
    of.grade
        .map(|grade| of.or.map_or(grade, |or| grade.min(or)))
}

/// The figure that decides about the next better grade; empty for a good one.
fn threshold_text(grade: &UseGrade) -> String {
    let thresholds = &grade.thresholds;
    let (word, from) = match (grade.grade, grade.or) {
        (Some(Grade::Poor), None) => ("poor below", thresholds.limited_from),
        (Some(Grade::Good), None) | (None, _) => return String::new(),
        _ => ("good from", thresholds.good_from),
    };
    let from = figure_text(from, Some(from * 1e-3), &grade.figure.unit);
    format!("({word} {from})")
}

/// Whether the figures can be relied on.
fn trust(verdict: &RunVerdict) -> Block {
    let tone = match verdict.trust.level {
        TrustLevel::Reliable => Tone::Good,
        TrustLevel::Doubtful => Tone::Warning,
        TrustLevel::Unreliable => Tone::Error,
    };
    Block::toned_fact(tone, "trust", &verdict.trust.why)
}
