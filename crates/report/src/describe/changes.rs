//! The short page of a comparison: for each candidate a sentence with names and figures, then one
//! line for each workload. A comparison of many sides has the page of a fleet instead.

use super::comparison::{
    condition_facts, figure_name, finding_facts, letter, needed_text, sides_text, subject_text,
    verdict_look,
};
use super::fleet::{self, FleetDetail};
use super::ratio::{change_text, longer_arm, percent_text};
use crate::labels;
use crate::text::{glue, list};
use diskproof_model::block::{Align, Block, Column, Table, TableRow, Tone};
use diskproof_model::comparison::{
    Candidate, Comparison, Figure, MetricComparison, Ratio, Side, Verdict,
};
use diskproof_model::fleet::FleetRecord;
use diskproof_model::units::counted;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// The short page lists at most this many workloads; `--all` lists the others. With many more, the
/// sentence above them scrolls off a screen of 24 lines.
const ROWS_MAX: usize = 10;
/// The short page has at most this many notes and reasons, which may take several lines each.
const NOTES_MAX: usize = 3;
/// Up to this many sides each have a line on the short page, whether they differ or not. More would
/// hide those that differ.
const SIDE_ROWS_MAX: usize = 20;

/// The short page has at most this many warnings about the disks of a side, and all failures.
const WARNINGS_MAX: usize = 3;

/// The whole short page, with its legend.
pub(crate) fn short_blocks(comparison: &Comparison) -> Vec<Block> {
    let mut blocks = answer_blocks(comparison, FleetDetail::Differing);
    let legend = if comparison.fleet.is_some() {
        "speed: times as fast as the median of the others · slower and faster: surely, and by more \
         than 10 % (diskproof help cluster) · every side, and each against the first: --all"
    } else {
        "A, B in the units shown; change with its 95 % interval · every metric, what differs \
         between the runs, and explanations: --all"
    };
    blocks.push(Block::text(Tone::Dim, legend));
    blocks
}

/// The answer in a sentence and the figures on which it rests, for each candidate; then the
/// conditions to fail on.
pub(crate) fn answer_blocks(comparison: &Comparison, detail: FleetDetail) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(fleet) = &comparison.fleet {
        blocks.extend(fleet_sides_blocks(fleet, detail));
    } else {
        for index in 0..comparison.candidates.len() {
            blocks.extend(candidate_blocks(comparison, index));
        }
    }
    blocks.extend(condition_facts(comparison));
    blocks
}

fn candidate_blocks(comparison: &Comparison, index: usize) -> Vec<Block> {
    let candidate = &comparison.candidates[index];
    let side = letter(index);
    let answer_text = answer_text(&comparison.baseline, candidate, &side);
    let mut blocks = vec![Block::text(Tone::Bold, answer_text)];
    // What is wrong with a disk matters more than its figures. That of the baseline stands once.
    if index == 0 {
        blocks.extend(finding_facts(&comparison.baseline, WARNINGS_MAX));
    }
    blocks.extend(finding_facts(&candidate.side, WARNINGS_MAX));
    let metrics = headline_metrics(candidate);
    if !metrics.is_empty() {
        let mut columns = Column::numbers(["", "change", "A", side.as_str(), "95 %"]);
        // The verdict stands where a narrow screen shows it.
        columns.insert(1, Column::new("verdict", Align::Left));
        let rows = metrics
            .iter()
            .take(ROWS_MAX)
            .map(|metric| metric_row(metric))
            .collect();
        let caption = format!("{side} against A");
        blocks.push(Block::Table(Table::new(&caption, columns, rows)));
    }
    if metrics.len() > ROWS_MAX {
        let hidden = counted((metrics.len() - ROWS_MAX) as u64, "more workload");
        blocks.push(Block::text(Tone::Dim, format!("{hidden}: --all")));
    }
    if let Some(text) = needed_for_all_text(&metrics) {
        blocks.push(Block::text(Tone::Plain, text));
    }
    blocks.extend(note_facts(&comparison.baseline, candidate));
    blocks
}

/// The metrics that represent their workloads.
fn headline_metrics(candidate: &Candidate) -> Vec<&MetricComparison> {
    candidate
        .metrics
        .iter()
        .filter(|metric| metric.headline)
        .collect()
}

/// Reasons why figures are not comparable, and notes. After a partial run the notes come first,
/// because they say what is missing. All beyond [`NOTES_MAX`] are dropped, but never the first
/// note, which is the weightiest: what changes the promise of a figure.
fn note_facts(baseline: &Side, candidate: &Candidate) -> Vec<Block> {
    let mut reasons = BTreeSet::new();
    for metric in headline_metrics(candidate) {
        for reason in &metric.reasons {
            reasons.insert(reason.why.as_str());
        }
    }
    let mut reason_blocks: Vec<Block> = reasons
        .into_iter()
        .map(|why| Block::toned_fact(Tone::Note, "not comparable", why))
        .collect();
    let mut note_blocks: Vec<Block> = candidate
        .notes
        .iter()
        .map(|note| Block::toned_fact(Tone::Note, "note", note))
        .collect();
    let mut blocks = if has_partial_run(baseline) || has_partial_run(&candidate.side) {
        note_blocks.append(&mut reason_blocks);
        note_blocks
    } else {
        reason_blocks.truncate(NOTES_MAX - note_blocks.len().min(1));
        reason_blocks.append(&mut note_blocks);
        reason_blocks
    };
    blocks.truncate(NOTES_MAX);
    blocks
}

fn has_partial_run(side: &Side) -> bool {
    side.runs.iter().any(|run| run.partial)
}

/// The answer on a candidate: `Undecided: /data1 (A) and /data2 (B), commits −20 % (−40
/// to +10 %). Both lie on vda.`
fn answer_text(baseline: &Side, candidate: &Candidate, letter: &str) -> String {
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

/// The summary of the candidate, or fewer words where no metric differs. The rates of two disks may
/// agree while their tails do not.
fn outcome_text(candidate: &Candidate) -> &str {
    let tally = &candidate.headline;
    let total = tally.total();
    let differs = candidate
        .metrics
        .iter()
        .any(|metric| firmness(metric.verdict) > Firmness::Open);
    // The summary begins with the answers of searches.
    let has_promised_rate = candidate
        .metrics
        .iter()
        .any(|metric| metric.figure == Figure::PromisedRate);
    if differs || has_promised_rate || candidate.answers.is_some() {
        &candidate.summary
    } else if total > 0 && tally.undecided == total {
        // Their intervals may leave room for a large one.
        "Undecided:"
    } else if total > 0 && tally.same == total {
        "No difference:"
    } else {
        &candidate.summary
    }
}

/// The headline metric that the sentence states: among those with the firmest verdict the one with
/// the largest change. If all verdicts are open, that of the commits, or the first.
fn leading_metric(candidate: &Candidate) -> Option<&MetricComparison> {
    let metrics = headline_metrics(candidate);
    let largest = metrics
        .iter()
        .filter(|metric| firmness(metric.verdict) > Firmness::Open)
        .max_by(|one, other| compare_firmness_and_change(one, other));
    if largest.is_some() {
        return largest.copied();
    }
    // By the names of workloads: `commit-fdatasync` of `check`, for instance.
    let commits = metrics
        .iter()
        .find(|metric| metric.subject.contains("commit"));
    commits.or(metrics.first()).copied()
}

fn compare_firmness_and_change(one: &MetricComparison, other: &MetricComparison) -> Ordering {
    firmness(one.verdict)
        .cmp(&firmness(other.verdict))
        .then_with(|| size_of_change(one).total_cmp(&size_of_change(other)))
}

/// How firmly a verdict says that the sides differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Firmness {
    /// It does not say so.
    Open,
    /// They differed in these runs; the next ones may not.
    Once,
    /// They differ.
    Firm,
}

fn firmness(verdict: Verdict) -> Firmness {
    match verdict {
        Verdict::Better | Verdict::Worse => Firmness::Firm,
        Verdict::FasterOnce | Verdict::SlowerOnce => Firmness::Once,
        Verdict::Same | Verdict::Undecided | Verdict::NotComparable | Verdict::Observed => {
            Firmness::Open
        }
    }
}

/// The absolute logarithm of the ratio, so that half and double are changes of equal size.
fn size_of_change(metric: &MetricComparison) -> f64 {
    match metric.ratio {
        Some(ratio) => ratio.value.ln().abs(),
        None => 0.0,
    }
}

/// Names the disks below both sides, if both lie on the same disks but have different targets.
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

/// The disks of all runs of a side, as pairs of host and disk.
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
    let half = longer_arm(ratio);
    let low = percent_text(ratio.low_95, half);
    match ratio.high_95 {
        Some(high) if ratio.low_95 == 0.0 => format!("{} or less", percent_text(high, half)),
        Some(high) => {
            let low_number = low.trim_end_matches(['%', '\u{a0}']);
            format!("{low_number} to {}", percent_text(high, half))
        }
        None => format!("{low} or more"),
    }
}

fn metric_row(metric: &MetricComparison) -> TableRow {
    let [figure_of_a, figure_of_b] = sides_text(metric);
    let (tone, sign) = verdict_look(metric.verdict);
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

/// Says which measurement would decide every workload; `None` where all are decided.
fn needed_for_all_text(metrics: &[&MetricComparison]) -> Option<String> {
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

/// Describes many sides as a fleet: those that differ from the others, then a line for each side.
/// The short page drops the latter if there are more than [`SIDE_ROWS_MAX`].
pub(crate) fn fleet_sides_blocks(fleet: &FleetRecord, detail: FleetDetail) -> Vec<Block> {
    let mut blocks = vec![Block::text(Tone::Bold, fleet.summary.clone())];
    blocks.extend(fleet::answer_blocks(fleet, detail));
    if detail == FleetDetail::All || fleet.rows.len() <= SIDE_ROWS_MAX {
        blocks.extend(fleet::speed_tables(fleet));
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::describe::comparison::MetricDetail;
    use crate::fixture::comparison;
    use diskproof_model::comparison::{SideFinding, Tally};
    use diskproof_model::finding::Severity;

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

    /// All headlines have this verdict; the detail has its own.
    fn outcome_with(headlines: Verdict, detail: Verdict) -> String {
        let mut candidate = comparison().candidates.remove(0);
        candidate.summary = "summary".to_owned();
        candidate.headline = Tally::default();
        for (index, metric) in candidate.metrics.iter_mut().enumerate() {
            metric.headline = index > 0;
            metric.verdict = if metric.headline { headlines } else { detail };
        }
        match headlines {
            Verdict::Same => candidate.headline.same = 1,
            _ => candidate.headline.undecided = 1,
        }
        outcome_text(&candidate).to_owned()
    }

    #[test]
    fn sentence_does_not_deny_the_difference_of_a_detail() {
        for headlines in [Verdict::Same, Verdict::Undecided] {
            let outcome = |detail| outcome_with(headlines, detail);
            assert_ne!(outcome(Verdict::Undecided), "summary");
            for detail in [Verdict::Worse, Verdict::Better, Verdict::SlowerOnce] {
                assert_eq!(outcome(detail), "summary", "{headlines:?}, {detail:?}");
            }
        }
    }

    /// The disk of A reports that it is failing; the figures are those of the fixture.
    #[test]
    fn failure_of_a_disk_follows_the_answer() {
        let mut comparison = comparison();
        comparison.baseline.findings.push(SideFinding {
            run: "A".to_owned(),
            code: "health-failing".to_owned(),
            severity: Severity::Failure,
            title: "The disk reports that it is failing".to_owned(),
            claim: "sda reports that it is failing.".to_owned(),
        });
        for candidate in 0..8 {
            comparison.candidates[0].side.findings.push(SideFinding {
                severity: Severity::Warning,
                claim: format!("warning {candidate}"),
                ..comparison.baseline.findings[0].clone()
            });
        }
        let blocks = candidate_blocks(&comparison, 0);
        let labels: Vec<&str> = blocks[1..=5].iter().filter_map(fact_label).collect();
        assert_eq!(
            labels,
            ["failure", "warning", "warning", "warning", "warning"]
        );
        assert!(matches!(blocks[6], Block::Table(_)));
        // The whole page has all of them, before anything else.
        let all = super::super::comparison::blocks(&comparison, MetricDetail::All);
        let labels: Vec<&str> = all.iter().filter_map(fact_label).collect();
        assert_eq!(
            labels[..9],
            ["failure"; 1]
                .into_iter()
                .chain(["warning"; 8])
                .collect::<Vec<_>>()
        );
    }

    fn fact_label(block: &Block) -> Option<&str> {
        match block {
            Block::Fact(fact) => Some(&fact.label),
            _ => None,
        }
    }

    fn has_note_before_reason(comparison: &Comparison) -> bool {
        let blocks = candidate_blocks(comparison, 0);
        let text = format!("{blocks:?}");
        let reason = text.find("engine aio").unwrap();
        match text.find("ended early") {
            Some(note) => note < reason,
            None => false,
        }
    }

    /// Many reasons drop later notes, and never the first.
    #[test]
    fn weightiest_note_is_never_left_out() {
        let mut comparison = comparison();
        let candidate = &mut comparison.candidates[0];
        candidate.notes = vec!["weightiest".to_owned(), "light".to_owned()];
        let mut many = Vec::new();
        for metric in candidate
            .metrics
            .iter_mut()
            .filter(|metric| metric.headline)
        {
            let Some(reason) = metric.reasons.first().cloned() else {
                continue;
            };
            for number in 0..5 {
                let mut other = reason.clone();
                other.why = format!("reason {number}");
                metric.reasons.push(other);
            }
            many.extend(metric.reasons.clone());
        }
        assert!(many.len() > NOTES_MAX);
        let text = format!("{:?}", candidate_blocks(&comparison, 0));
        assert!(
            text.contains("weightiest") && !text.contains("light\""),
            "{text}"
        );
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
