//! The short page of a comparison: a sentence with names and figures, then one line a workload. Of
//! many sides a line a side, with its distance from the median.

use super::comparison::{
    change_text, conditions, figure_name, half_width, letter, look, needed_text, percent_text,
    sides_text, subject_text,
};
use crate::labels;
use crate::text::{distinct, glue, list};
use diskproof_model::block::{Align, Block, Column, Place, Table, TableRow, Tone};
use diskproof_model::comparison::{
    Candidate, Comparison, MetricComparison, Ratio, RowState, Side, SideVerdict, SideVerdicts,
    Verdict,
};
use diskproof_model::digits::figure_text;
use diskproof_model::record::Estimate;
use diskproof_model::units::counted;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Workloads on the short page.
const ROWS_MAX: usize = 10;
/// Notes and reasons on the short page.
const NOTES_MAX: usize = 2;
/// More sides than these are a row each.
const SIDES_MAX: usize = 4;
/// Figures of a side where there are many.
const FIGURES_MAX: usize = 3;

/// The page for a terminal.
pub(crate) fn short(comparison: &Comparison) -> Vec<Block> {
    let mut blocks = answer_blocks(comparison);
    let legend = if comparison.candidates.len() >= SIDES_MAX {
        "slower and faster: surely, and by more than 10 % (diskproof help cluster) · each side \
         against the first: --all"
    } else {
        "A, B in the units shown; change with its 95 % interval · every metric, what differs \
         between the runs, and explanations: --all"
    };
    blocks.push(Block::text(Tone::Dim, legend));
    blocks
}

/// The answer in a sentence, which comes first, and the figures that it rests on.
pub(crate) fn answer_blocks(comparison: &Comparison) -> Vec<Block> {
    if comparison.candidates.len() >= SIDES_MAX {
        return ranking(comparison);
    }
    let mut blocks = Vec::new();
    for (index, candidate) in comparison.candidates.iter().enumerate() {
        blocks.extend(candidate_blocks(comparison, candidate, &letter(index)));
    }
    blocks.extend(conditions(comparison));
    blocks
}

fn candidate_blocks(comparison: &Comparison, candidate: &Candidate, letter: &str) -> Vec<Block> {
    let answer_text = answer(&comparison.baseline, candidate, letter);
    let mut blocks = vec![Block::text(Tone::Bold, answer_text)];
    let metrics = headline_metrics(candidate);
    if !metrics.is_empty() {
        let mut columns = Column::numbers(["", "change", "A", letter, "95 %"]);
        // The verdict stands where a narrow screen shows it.
        columns.insert(1, Column::new("verdict", Align::Left));
        let rows = metrics
            .iter()
            .take(ROWS_MAX)
            .map(|metric| metric_row(metric))
            .collect();
        let caption = format!("{letter} against A");
        blocks.push(Block::Table(Table::new(&caption, columns, rows)));
    }
    if metrics.len() > ROWS_MAX {
        let hidden = counted((metrics.len() - ROWS_MAX) as u64, "more workload");
        blocks.push(Block::text(Tone::Dim, format!("{hidden}: --all")));
    }
    if let Some(text) = needed_for_all(&metrics) {
        blocks.push(Block::text(Tone::Plain, text));
    }
    blocks.extend(notes(&comparison.baseline, candidate));
    blocks
}

/// The metrics that speak for their workloads.
fn headline_metrics(candidate: &Candidate) -> Vec<&MetricComparison> {
    candidate
        .metrics
        .iter()
        .filter(|metric| metric.headline)
        .collect()
}

/// The first notes, and reasons why figures are not comparable.
fn notes(baseline: &Side, candidate: &Candidate) -> Vec<Block> {
    let mut reasons = BTreeSet::new();
    for metric in headline_metrics(candidate) {
        for reason in &metric.reasons {
            reasons.insert(reason.why.as_str());
        }
    }
    let reason_blocks = reasons
        .into_iter()
        .map(|why| Block::toned_fact(Tone::Note, "not comparable", why));
    let note_blocks = candidate
        .notes
        .iter()
        .map(|note| Block::toned_fact(Tone::Note, "note", note));
    // What is missing matters more than why something has no verdict.
    let mut blocks: Vec<Block> = if has_partial_run(baseline) || has_partial_run(&candidate.side) {
        note_blocks.chain(reason_blocks).collect()
    } else {
        reason_blocks.chain(note_blocks).collect()
    };
    blocks.truncate(NOTES_MAX);
    blocks
}

fn has_partial_run(side: &Side) -> bool {
    side.runs.iter().any(|run| run.partial)
}

/// `No difference found: /data1 (A) and /data2 (B), commits −20 % (−40 to +10 %). Both lie on vda.`
fn answer(baseline: &Side, candidate: &Candidate, letter: &str) -> String {
    let side = &candidate.side;
    let mut text = format!(
        "{} {} (A) and {} ({letter})",
        outcome_text(candidate),
        baseline.label,
        side.label
    );
    if let Some(metric) = leading_metric(candidate)
        && let Some(ratio) = metric.ratio
    {
        let subject = subject_text(metric);
        let change = change_text(ratio);
        text.push_str(&format!(
            ", {subject} {change} ({})",
            percent_interval(ratio)
        ));
    }
    text.push('.');
    if let Some(disks) = shared_disks(baseline, side) {
        text.push_str(&format!(" Both lie on {disks}."));
    }
    text
}

fn outcome_text(candidate: &Candidate) -> &str {
    let tally = &candidate.headline;
    let total = tally.total();
    if total > 0 && tally.undecided == total {
        "No difference found:"
    } else if total > 0 && tally.same == total {
        "No difference:"
    } else {
        &candidate.summary
    }
}

/// The metric that changed most of those with the firmest verdict; without one, the commits or the
/// first.
fn leading_metric(candidate: &Candidate) -> Option<&MetricComparison> {
    let metrics = headline_metrics(candidate);
    let largest = metrics
        .iter()
        .filter(|metric| firmness(metric.verdict) > 0)
        .max_by(|one, other| by_firmness_and_size(one, other));
    if largest.is_some() {
        return largest.copied();
    }
    let commits = metrics
        .iter()
        .find(|metric| metric.subject.contains("commit"));
    commits.or(metrics.first()).copied()
}

fn by_firmness_and_size(one: &MetricComparison, other: &MetricComparison) -> Ordering {
    firmness(one.verdict)
        .cmp(&firmness(other.verdict))
        .then_with(|| size_of_change(one).total_cmp(&size_of_change(other)))
}

fn firmness(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Better | Verdict::Worse => 2,
        Verdict::FasterOnce | Verdict::SlowerOnce => 1,
        Verdict::Same | Verdict::Undecided | Verdict::NotComparable | Verdict::Observed => 0,
    }
}

/// The distance of the ratio from one, so that half and double are equally far.
fn size_of_change(metric: &MetricComparison) -> f64 {
    match metric.ratio {
        Some(ratio) => ratio.value.ln().abs(),
        None => 0.0,
    }
}

/// The disks below both sides, where they are the same and the targets are not.
fn shared_disks(a: &Side, b: &Side) -> Option<String> {
    let disks = disks_of_hosts(a);
    if disks.is_empty() || disks != disks_of_hosts(b) {
        return None;
    }
    let targets_of_a = a.runs.iter().map(|run| &run.targets);
    let targets_of_b = b.runs.iter().map(|run| &run.targets);
    if targets_of_a.eq(targets_of_b) {
        return None;
    }
    Some(list(disks.iter().map(|(_, disk)| disk)))
}

/// The disks of all runs of a side, each with its host before it.
fn disks_of_hosts(side: &Side) -> BTreeSet<(&str, &str)> {
    let mut disks = BTreeSet::new();
    for run in &side.runs {
        for disk in &run.disks {
            disks.insert((run.host.as_str(), disk.as_str()));
        }
    }
    disks
}

/// `−40 to +10 %`.
fn percent_interval(ratio: Ratio) -> String {
    let half = half_width(ratio);
    let low = percent_text(ratio.low_95, half);
    match ratio.high_95 {
        Some(high) => {
            let low_number = low.trim_end_matches(['%', '\u{a0}']);
            format!("{low_number} to {}", percent_text(high, half))
        }
        None => format!("{low} or more"),
    }
}

fn metric_row(metric: &MetricComparison) -> TableRow {
    let [figure_of_a, figure_of_b] = sides_text(metric);
    let (tone, sign) = look(metric.verdict);
    let subject = subject_text(metric);
    let name = match figure_name(metric).as_str() {
        "iops" | "throughput" => subject,
        figure => format!("{subject} {figure}"),
    };
    let cells = vec![
        name,
        glue(&format!("{sign} {}", metric.verdict.as_str())),
        labels::or_unknown(metric.ratio.map(change_text)),
        figure_of_a,
        figure_of_b,
        labels::or_unknown(metric.ratio.map(percent_interval)),
    ];
    TableRow {
        tone,
        ..TableRow::from(cells)
    }
}

/// Says how long a measurement would decide every workload; `None` where all are decided.
fn needed_for_all(metrics: &[&MetricComparison]) -> Option<String> {
    let longest = metrics
        .iter()
        .filter(|metric| metric.verdict.is_open())
        .max_by(|one, other| needed_times(one).total_cmp(&needed_times(other)))?;
    let needed = needed_text(longest);
    match longest.ratio {
        Some(_) => Some(format!("To decide all, each workload needs {needed}.")),
        None => Some(format!("To decide every workload: {needed}.")),
    }
}

fn needed_times(metric: &MetricComparison) -> f64 {
    match metric.needed {
        Some(needed) => needed.times,
        None => f64::INFINITY,
    }
}

/// One of many sides with its figures, by the first of which the sides are sorted.
struct RankedSide<'c> {
    label: &'c str,
    figures: Vec<Option<&'c Estimate>>,
}

impl RankedSide<'_> {
    /// The figure by which the sides are sorted; `None` where it was not measured.
    fn leading_value(&self) -> Option<f64> {
        match self.figures.first() {
            Some(Some(figure)) => Some(figure.value),
            _ => None,
        }
    }

    /// Sides without a figure come last.
    fn sort_value(&self) -> f64 {
        self.leading_value().unwrap_or(0.0)
    }
}

/// The median of the sides' leading figures, and what each side comes to.
struct SideJudgement<'c> {
    median: f64,
    verdicts: Option<&'c SideVerdicts>,
}

impl<'c> SideJudgement<'c> {
    fn new(sides: &[RankedSide<'_>], verdicts: Option<&'c SideVerdicts>) -> Self {
        let mut sorted: Vec<f64> = sides.iter().flat_map(RankedSide::leading_value).collect();
        sorted.sort_by(f64::total_cmp);
        Self {
            median: quantile(&sorted, 0.5),
            verdicts,
        }
    }

    /// What a side comes to; `None` of one that is like the others, or was not judged.
    fn verdict(&self, side: &RankedSide<'_>) -> Option<&'c SideVerdict> {
        let sides = &self.verdicts?.sides;
        let verdict = sides.iter().find(|one| one.label == side.label)?;
        match verdict.state {
            RowState::Slower | RowState::Faster | RowState::Suspect | RowState::Errors => {
                Some(verdict)
            }
            RowState::Alike | RowState::NotJudged => None,
        }
    }

    /// Says how far a side is from the median, in percent.
    fn distance_text(&self, side: &RankedSide<'_>) -> String {
        match side.leading_value() {
            Some(value) if self.median > 0.0 => {
                let percent = (value / self.median - 1.0) * 100.0;
                format!("{percent:+.0} %").replace('-', "−")
            }
            _ => labels::UNKNOWN.to_owned(),
        }
    }
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1) as f64;
    let index = (last * share).round() as usize;
    sorted.get(index).copied().unwrap_or(0.0)
}

fn side_row(side: &RankedSide<'_>, judgement: &SideJudgement<'_>) -> TableRow {
    let mut cells = vec![side.label.to_owned()];
    for figure in &side.figures {
        cells.push(match figure {
            Some(figure) => figure_text(figure.value, figure.half_width_95, &figure.unit),
            None => "not measured".to_owned(),
        });
    }
    // Behind the name and the figure that it refers to.
    cells.insert(2, judgement.distance_text(side));
    let mut tone = Tone::Plain;
    let mut remark = "";
    if let Some(verdict) = judgement.verdict(side) {
        tone = Tone::Warning;
        remark = verdict.state.as_str();
    }
    cells.push(remark.to_owned());
    TableRow {
        tone,
        ..TableRow::from(cells)
    }
}

/// Names of the leading metrics, the most important first.
fn leading_names(comparison: &Comparison) -> Vec<&str> {
    let headline = comparison.candidates.iter().flat_map(headline_metrics);
    let mut names = distinct(headline.map(|metric| metric.metric.as_str()));
    names.truncate(FIGURES_MAX);
    names
}

/// A row a side, the highest first.
fn ranking(comparison: &Comparison) -> Vec<Block> {
    let names = leading_names(comparison);
    let mut sides = ranked_sides(comparison, &names);
    sides.sort_by(|one, other| other.sort_value().total_cmp(&one.sort_value()));
    let judgement = SideJudgement::new(&sides, comparison.odd_sides.as_ref());
    let sorted_by = names.first().unwrap_or(&"nothing in common");
    let text = match &comparison.odd_sides {
        Some(verdicts) => format!("{} Sorted by {sorted_by}.", verdicts.summary),
        None => format!(
            "{}, sorted by {sorted_by}.",
            counted(sides.len() as u64, "side")
        ),
    };
    let mut blocks = vec![Block::text(Tone::Bold, text)];
    if !names.is_empty() {
        let rows = sides
            .iter()
            .map(|side| side_row(side, &judgement))
            .collect();
        let table = Table::new("Sides", ranking_columns(&names), rows);
        blocks.push(Block::Table(table));
    }
    blocks.extend(conditions(comparison));
    blocks
}

fn ranking_columns(names: &[&str]) -> Vec<Column> {
    let mut columns = vec![Column::new("side", Align::Left)];
    for (rank, name) in names.iter().enumerate() {
        // The figures that the sides are not sorted by give way.
        let place = match rank {
            0 => Place::Always,
            rank => Place::Roomy(rank as u8),
        };
        columns.push(Column::number(name, place));
    }
    columns.insert(2, Column::number("from median", Place::Always));
    columns.push(Column::new("", Align::Left));
    columns
}

/// The baseline and all candidates with the named figures.
fn ranked_sides<'c>(comparison: &'c Comparison, names: &[&str]) -> Vec<RankedSide<'c>> {
    let mut baseline = RankedSide {
        label: &comparison.baseline.label,
        figures: Vec::new(),
    };
    for name in names {
        // Every candidate that has the metric states the baseline's figure, too.
        let metric = comparison
            .candidates
            .iter()
            .find_map(|candidate| metric_named(candidate, name));
        baseline.figures.push(metric.map(|metric| &metric.a));
    }
    let mut sides = vec![baseline];
    for candidate in &comparison.candidates {
        let figures = names
            .iter()
            .map(|name| Some(&metric_named(candidate, name)?.b))
            .collect();
        sides.push(RankedSide {
            label: &candidate.side.label,
            figures,
        });
    }
    sides
}

fn metric_named<'c>(candidate: &'c Candidate, name: &str) -> Option<&'c MetricComparison> {
    candidate
        .metrics
        .iter()
        .find(|metric| metric.metric == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::comparison;

    fn leads(candidate: &Candidate, index: usize) -> bool {
        std::ptr::eq(
            leading_metric(candidate).unwrap(),
            &candidate.metrics[index],
        )
    }

    #[test]
    fn sentence_has_the_figure_of_the_firmest_verdict() {
        let mut candidate = comparison().candidates.remove(0);
        candidate.metrics.retain(|metric| metric.ratio.is_some());
        for metric in &mut candidate.metrics {
            metric.verdict = Verdict::Undecided;
            metric.headline = true;
        }
        let last = candidate.metrics.len() - 1;
        candidate.metrics[last].verdict = Verdict::FasterOnce;
        assert!(leads(&candidate, last));
        candidate.metrics[1].verdict = Verdict::Worse;
        assert!(leads(&candidate, 1));
    }

    fn has_note_before_reason(comparison: &Comparison) -> bool {
        let blocks = candidate_blocks(comparison, &comparison.candidates[0], "B");
        let text = format!("{blocks:?}");
        let reason = text.find("engine aio").unwrap();
        match text.find("ended early") {
            Some(note) => note < reason,
            None => false,
        }
    }

    #[test]
    fn note_on_an_early_end_precedes_the_reasons() {
        let mut comparison = comparison();
        comparison.candidates[0].notes = vec!["B ended early".to_owned()];
        assert!(!has_note_before_reason(&comparison));
        comparison.candidates[0].side.runs[0].partial = true;
        assert!(has_note_before_reason(&comparison));
    }
}
