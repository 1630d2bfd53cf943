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
    Candidate, Comparison, MetricComparison, Ratio, RunReference, Side, Verdict,
};
use diskproof_model::digits::figure_text;
use diskproof_model::record::Estimate;
use diskproof_model::units::counted;
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
    let text = if comparison.candidates.len() >= SIDES_MAX {
        "outlier: more than 1.5 interquartile ranges beyond the quartiles · each side against \
         the first: --all"
    } else {
        "A, B in the units shown; change with its 95 % interval · every metric, what differs \
         between the runs, and explanations: --all"
    };
    blocks.push(Block::text(Tone::Dim, text));
    blocks
}

/// The answer in a sentence, which comes first, and the figures that it rests on.
pub(crate) fn answer_blocks(comparison: &Comparison) -> Vec<Block> {
    if comparison.candidates.len() >= SIDES_MAX {
        return many(comparison);
    }
    let mut blocks = Vec::new();
    for (index, candidate) in comparison.candidates.iter().enumerate() {
        blocks.extend(of_candidate(comparison, candidate, &letter(index)));
    }
    blocks.extend(conditions(comparison));
    blocks
}

fn of_candidate(comparison: &Comparison, candidate: &Candidate, letter: &str) -> Vec<Block> {
    let answer = answer(comparison, candidate, letter);
    let mut blocks = vec![Block::text(Tone::Bold, answer)];
    let headline = || candidate.metrics.iter().filter(|metric| metric.headline);
    let rows: Vec<TableRow> = headline().take(ROWS_MAX).map(row).collect();
    if !rows.is_empty() {
        let mut columns = Column::numbers(["", "change", "A", letter, "95 %"]);
        // The verdict stands where a narrow screen shows it.
        columns.insert(1, Column::new("verdict", Align::Left));
        let caption = format!("{letter} against A");
        blocks.push(Block::Table(Table::new(&caption, columns, rows)));
    }
    let hidden = headline().count().saturating_sub(ROWS_MAX) as u64;
    if hidden > 0 {
        let text = format!("{}: --all", counted(hidden, "more workload"));
        blocks.push(Block::text(Tone::Dim, text));
    }
    blocks.extend(to_decide(candidate).map(|text| Block::text(Tone::Plain, text)));
    let reasons = headline().flat_map(|metric| &metric.reasons);
    let reasons: BTreeSet<&str> = reasons.map(|reason| reason.why.as_str()).collect();
    let reasons = reasons.into_iter().map(|why| ("not comparable", why));
    let notes = candidate.notes.iter().map(|note| ("note", note.as_str()));
    let mut runs = comparison.baseline.runs.iter().chain(&candidate.side.runs);
    // What is missing matters more than why something has no verdict.
    let told: Vec<(&str, &str)> = if runs.any(|run| run.partial) {
        notes.chain(reasons).collect()
    } else {
        reasons.chain(notes).collect()
    };
    let shown = told.iter().take(NOTES_MAX);
    blocks.extend(shown.map(|(label, text)| Block::toned_fact(Tone::Note, label, *text)));
    blocks
}

/// `No difference found: /data1 (A) and /data2 (B), commits −20 % (−40 to +10 %). Both lie on vda.`
fn answer(comparison: &Comparison, candidate: &Candidate, letter: &str) -> String {
    let (a, b) = (&comparison.baseline, &candidate.side);
    let names = format!("{} (A) and {} ({letter})", a.label, b.label);
    let lead = lead(candidate).and_then(|metric| Some((metric, metric.ratio?)));
    let figure = lead.map_or(String::new(), |(metric, ratio)| {
        let (change, ends) = (change_text(ratio), percent_interval(ratio));
        format!(", {} {change} ({ends})", subject_text(metric))
    });
    let tally = &candidate.headline;
    let found = match tally.total() {
        1.. if tally.undecided == tally.total() => "No difference found:",
        1.. if tally.same == tally.total() => "No difference:",
        _ => &candidate.summary,
    };
    let mut text = format!("{found} {names}{figure}.");
    if let Some(disks) = shared_disks(a, b) {
        text.push_str(&format!(" Both lie on {disks}."));
    }
    text
}

/// The metric that changed most of those with the firmest verdict; without one, the commits or the
/// first.
fn lead(candidate: &Candidate) -> Option<&MetricComparison> {
    let headline = || candidate.metrics.iter().filter(|metric| metric.headline);
    let firmness = |metric: &MetricComparison| match metric.verdict {
        Verdict::Better | Verdict::Worse => 2,
        Verdict::FasterOnce | Verdict::SlowerOnce => 1,
        _ => 0,
    };
    let size = |metric: &MetricComparison| metric.ratio.map_or(0.0, |ratio| ratio.value.ln().abs());
    let decided = headline().filter(|metric| firmness(metric) > 0);
    let largest = decided.max_by(|one, other| {
        let by_size = size(one).total_cmp(&size(other));
        firmness(one).cmp(&firmness(other)).then(by_size)
    });
    let commits = || headline().find(|metric| metric.subject.contains("commit"));
    largest.or_else(commits).or_else(|| headline().next())
}

/// The disks below both sides, where they are the same.
fn shared_disks(a: &Side, b: &Side) -> Option<String> {
    let disks = |side: &Side| -> BTreeSet<(String, String)> {
        let runs = side.runs.iter();
        let named = |run: &RunReference, disk: &String| (run.host.clone(), disk.clone());
        runs.flat_map(|run| run.disks.iter().map(|disk| named(run, disk)))
            .collect()
    };
    let shared = disks(a);
    let [of_a, of_b] = [a, b].map(|side| side.runs.iter().map(|run| &run.targets));
    let is_told = !shared.is_empty() && shared == disks(b) && !of_a.eq(of_b);
    is_told.then(|| list(shared.into_iter().map(|(_, disk)| disk)))
}

/// `−40 to +10 %`.
fn percent_interval(ratio: Ratio) -> String {
    let half = half_width(ratio);
    let low = percent_text(ratio.low_95, half);
    match ratio.high_95 {
        Some(high) => {
            let high = percent_text(high, half);
            format!("{} to {high}", low.trim_end_matches(['%', '\u{a0}']))
        }
        None => format!("{low} or more"),
    }
}

fn row(metric: &MetricComparison) -> TableRow {
    let [of_a, of_b] = sides_text(metric);
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
        of_a,
        of_b,
        labels::or_unknown(metric.ratio.map(percent_interval)),
    ];
    TableRow {
        tone,
        ..TableRow::from(cells)
    }
}

/// How long a measurement would decide every workload; nothing where all are decided.
fn to_decide(candidate: &Candidate) -> Option<String> {
    let headline = candidate.metrics.iter().filter(|metric| metric.headline);
    let open = headline.filter(|metric| metric.verdict.is_open());
    let times = |of: &MetricComparison| of.needed.map_or(f64::INFINITY, |needed| needed.times);
    let longest = open.max_by(|one, other| times(one).total_cmp(&times(other)))?;
    let needed = needed_text(longest);
    Some(match longest.ratio {
        Some(_) => format!("To decide all, each workload needs {needed}."),
        None => format!("To decide every workload: {needed}."),
    })
}

/// A side and its figures, by the first of which the sides are sorted.
type Standing<'c> = (&'c str, Vec<Option<&'c Estimate>>);

fn first((_, figures): &Standing<'_>) -> Option<f64> {
    Some((*figures.first()?)?.value)
}

/// The quartiles of the sides.
fn quartiles(sides: &[Standing<'_>]) -> [f64; 3] {
    let mut sorted: Vec<f64> = sides.iter().filter_map(first).collect();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1) as f64;
    let quantile = |share: f64| sorted.get((last * share).round() as usize);
    [0.25, 0.5, 0.75].map(|share| quantile(share).copied().unwrap_or(0.0))
}

fn side_row(side: &Standing<'_>, median: f64, is_outlier: bool) -> TableRow {
    let value = first(side).filter(|_| median > 0.0);
    let distance = labels::or_unknown(value.map(|value| {
        let percent = (value / median - 1.0) * 100.0;
        format!("{percent:+.0} %").replace('-', "−")
    }));
    let (name, figures) = side;
    let mut cells = vec![(*name).to_owned()];
    cells.extend(figures.iter().map(|of| match of {
        Some(of) => figure_text(of.value, of.half_width_95, &of.unit),
        None => "not measured".to_owned(),
    }));
    cells.insert(cells.len().min(2), distance);
    let (tone, word) = match is_outlier {
        true => (Tone::Warning, "outlier"),
        false => (Tone::Plain, ""),
    };
    cells.push(word.to_owned());
    TableRow {
        tone,
        ..TableRow::from(cells)
    }
}

/// The leading metrics, the most important first.
fn leading(comparison: &Comparison) -> Vec<&str> {
    let candidates = comparison.candidates.iter();
    let metrics = candidates.flat_map(|candidate| &candidate.metrics);
    let headline = metrics.filter(|metric| metric.headline);
    let mut names = distinct(headline.map(|metric| metric.metric.as_str()));
    names.truncate(FIGURES_MAX);
    names
}

/// A row a side, the highest first.
fn many(comparison: &Comparison) -> Vec<Block> {
    let names = leading(comparison);
    let mut sides = standings(comparison, &names);
    let value = |side: &Standing<'_>| first(side).unwrap_or(0.0);
    sides.sort_by(|one, other| value(other).total_cmp(&value(one)));
    let [low, median, high] = quartiles(&sides);
    let reach = 1.5 * (high - low);
    let is_far = |value| value < low - reach || value > high + reach;
    let is_outlier = |side: &Standing<'_>| first(side).is_some_and(is_far);
    let far = sides.iter().filter(|side| is_outlier(side));
    let far: Vec<&str> = far.map(|(name, _)| *name).collect();
    let found = match far.as_slice() {
        [] => "No side is an outlier.".to_owned(),
        far => format!("Outliers: {}.", list(far)),
    };
    let shown = names.first().copied().unwrap_or("nothing in common");
    let count = counted(sides.len() as u64, "side");
    let text = format!("{count}, sorted by {shown}. {found}");
    let mut blocks = vec![Block::text(Tone::Bold, text)];
    if !names.is_empty() {
        let mut columns = Column::numbers(["side"].into_iter().chain(names.iter().copied()));
        // The figures that the sides are not sorted by give way.
        for (column, rank) in columns.iter_mut().skip(2).zip(1..) {
            column.place = Place::Roomy(rank);
        }
        columns.insert(2, Column::number("from median", Place::Always));
        columns.push(Column::new("", Align::Left));
        let rows = sides.iter();
        let rows = rows.map(|side| side_row(side, median, is_outlier(side)));
        blocks.push(Block::Table(Table::new("Sides", columns, rows.collect())));
    }
    blocks.extend(conditions(comparison));
    blocks
}

fn standings<'c>(comparison: &'c Comparison, names: &[&str]) -> Vec<Standing<'c>> {
    let of = |metrics: &'c [MetricComparison], name: &str| {
        metrics.iter().find(|metric| metric.metric == name)
    };
    let baseline = names.iter().map(|name| {
        let mut all = comparison.candidates.iter();
        all.find_map(|candidate| Some(&of(&candidate.metrics, name)?.a))
    });
    let mut all = vec![(comparison.baseline.label.as_str(), baseline.collect())];
    all.extend(comparison.candidates.iter().map(|candidate| {
        let own = |name: &&str| Some(&of(&candidate.metrics, name)?.b);
        let figures = names.iter().map(own).collect();
        (candidate.side.label.as_str(), figures)
    }));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::comparison;

    #[test]
    fn sentence_has_the_figure_of_the_firmest_verdict() {
        let mut candidate = comparison().candidates.remove(0);
        candidate.metrics.retain(|metric| metric.ratio.is_some());
        for metric in &mut candidate.metrics {
            (metric.verdict, metric.headline) = (Verdict::Undecided, true);
        }
        let lead_is = |candidate: &Candidate, index: usize| {
            std::ptr::eq(lead(candidate).unwrap(), &candidate.metrics[index])
        };
        let last = candidate.metrics.len() - 1;
        candidate.metrics[last].verdict = Verdict::FasterOnce;
        assert!(lead_is(&candidate, last));
        candidate.metrics[1].verdict = Verdict::Worse;
        assert!(lead_is(&candidate, 1));
    }

    #[test]
    fn early_end_is_told_before_the_reasons() {
        let mut comparison = comparison();
        comparison.candidates[0].notes = vec!["B ended early".to_owned()];
        let first = |comparison: &Comparison| {
            let blocks = of_candidate(comparison, &comparison.candidates[0], "B");
            let text = format!("{blocks:?}");
            let (note, reason) = (text.find("ended early"), text.find("engine aio").unwrap());
            note.is_some_and(|note| note < reason)
        };
        assert!(!first(&comparison));
        comparison.candidates[0].side.runs[0].partial = true;
        assert!(first(&comparison));
    }
}
