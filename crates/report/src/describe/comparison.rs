//! The whole page of a comparison: the sides and their differences, every metric with its ratio,
//! and what would decide the open ones. describe/changes.rs has the short page.

use super::ratio::{change_text, interval_text, longer_arm, percent_text, ratio_text, scale_reach};
use super::run::start_text;
use crate::labels;
use crate::text::{glue, grouped, list};
use diskproof_model::block::{
    Align, Block, Cell, Column, Group, Mark, Place, Table, TableRow, Tone,
};
pub(crate) use diskproof_model::comparison::letter;
use diskproof_model::comparison::{
    Candidate, Comparison, Condition, ConditionOutcome, Figure, Holder, MetricComparison, Ratio,
    RunReference, Side, Unmatched, Verdict,
};
use diskproof_model::digits::{digits_of, figure_to_digits, to_digits};
use diskproof_model::finding::Severity;
use diskproof_model::units::{counted, format_duration};

/// For a metric that needs more than this many times the length, no length is suggested: a run of
/// seconds would take hours. The text of [`needed_text`] states this limit. Chosen, not measured.
const TIMES_MAX: f64 = 1000.0;
/// A shorter measured time would print as 0 ms.
const SHORTEST_NS: u64 = 1_000_000;
/// The two figures of a row have at most this many digits, even where the printed change does not
/// follow from them. Chosen: longer numbers are hard to compare.
const DIGITS_MAX: i32 = 6;

/// The metrics that a page shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricDetail {
    /// Independent metrics: in a closed loop the mean latency and the other rate follow from the
    /// first one.
    Independent,
    /// All metrics.
    All,
}

/// Describes a comparison below its summary: the sides, their differences, the metrics, what would
/// decide open ones, the conditions to fail on.
pub(crate) fn blocks(comparison: &Comparison, detail: MetricDetail) -> Vec<Block> {
    let mut blocks = finding_facts(&comparison.baseline, usize::MAX);
    for candidate in &comparison.candidates {
        blocks.extend(finding_facts(&candidate.side, usize::MAX));
    }
    blocks.extend(side_facts("A", &comparison.baseline));
    for (index, candidate) in comparison.candidates.iter().enumerate() {
        blocks.extend(side_facts(&letter(index), &candidate.side));
    }
    for (index, candidate) in comparison.candidates.iter().enumerate() {
        let candidate_letter = letter(index);
        let table = metrics_table(&candidate_letter, candidate, detail, comparison.margin);
        blocks.extend(difference_blocks(&candidate_letter, candidate));
        blocks.push(Block::Heading(format!("{candidate_letter} against A")));
        blocks.push(Block::Table(table));
        blocks.extend(open_metric_blocks(candidate, detail));
        blocks.extend(unmatched_facts(&candidate_letter, &candidate.unmatched));
        for note in &candidate.notes {
            blocks.push(Block::toned_fact(Tone::Note, "note", note));
        }
    }
    blocks.extend(condition_facts(comparison));
    blocks.push(Block::text(Tone::Dim, legend_text(comparison)));
    blocks
}

fn side_facts(letter: &str, side: &Side) -> Vec<Block> {
    if let [run] = side.runs.as_slice() {
        return vec![Block::fact(letter, run_text(run))];
    }
    let count = counted(side.runs.len() as u64, "run");
    let mut blocks = vec![Block::fact(letter, format!("{}: {count}", side.label))];
    for (index, run) in side.runs.iter().enumerate() {
        let label = format!("  {letter}{}", index + 1);
        blocks.push(Block::fact(&label, run_text(run)));
    }
    blocks
}

/// A line for each finding about the disks of a side: every failure, and at most `warnings_max`
/// warnings.
pub(crate) fn finding_facts(side: &Side, warnings_max: usize) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut warnings = 0;
    for finding in &side.findings {
        let (tone, label) = match finding.severity {
            Severity::Failure => (Tone::Error, "failure"),
            Severity::Warning | Severity::Note => {
                warnings += 1;
                (Tone::Warning, "warning")
            }
        };
        if warnings <= warnings_max {
            let text = format!("{}: {}", finding.run, finding.claim);
            blocks.push(Block::toned_fact(tone, label, text));
        }
    }
    if warnings > warnings_max {
        let text = format!("{} more of {}: --all", warnings - warnings_max, side.label);
        blocks.push(Block::toned_fact(Tone::Warning, "warning", text));
    }
    blocks
}

fn difference_blocks(letter: &str, candidate: &Candidate) -> Vec<Block> {
    if candidate.differences.is_empty() {
        return Vec::new();
    }
    let mut rows = Vec::new();
    for fact in &candidate.differences {
        let cells = vec![fact.what.clone(), fact.a.clone(), fact.b.clone()];
        rows.push(TableRow::from(cells));
    }
    vec![
        Block::Heading(format!("what differs from A to {letter}")),
        Block::words("Facts that differ", ["", "A", letter], rows),
    ]
}

/// The shown metrics with their ratios, in a group for each workload.
fn metrics_table(letter: &str, candidate: &Candidate, detail: MetricDetail, margin: f64) -> Table {
    let shown: Vec<&MetricComparison> = candidate
        .metrics
        .iter()
        .filter(|metric| is_shown(metric, detail, candidate))
        .collect();
    let scale_end = scale_reach(&shown, margin);
    let mut rows = Vec::new();
    let mut last_subject = None;
    for metric in shown {
        let mut row = metric_row(metric, scale_end, margin);
        let subject = (&metric.subject, metric.target);
        if last_subject != Some(subject) {
            row.group = Some(metric_group(metric));
        }
        last_subject = Some(subject);
        rows.push(row);
    }
    let columns = vec![
        Column::new("", Align::Left),
        Column::new("verdict", Align::Left),
        Column::number("A", Place::Always),
        Column::number(letter, Place::Always),
        Column::number(&format!("{letter}/A"), Place::Roomy(1)),
        Column::number("change", Place::Always),
        Column::number("95 %", Place::Always),
        Column::number("ratio", Place::Drawn),
    ];
    Table::new(&format!("Metrics of {letter} against A"), columns, rows)
}

fn metric_group(metric: &MetricComparison) -> Group {
    let mut warning = list(metric.reasons.iter().map(|reason| &reason.why));
    if !warning.is_empty() {
        warning.insert_str(0, "not comparable: ");
    }
    Group {
        title: subject_text(metric),
        warning,
        ..Group::default()
    }
}

fn metric_row(metric: &MetricComparison, reach: f64, margin: f64) -> TableRow {
    let [figure_of_a, figure_of_b] = sides_text(metric);
    let (tone, sign) = verdict_look(metric.verdict);
    let mark = match metric.ratio {
        Some(ratio) => Mark::Ratio {
            ratio,
            reach,
            margin,
        },
        None => Mark::None,
    };
    let cells = vec![
        format!("  {}", figure_name(metric)).into(),
        glue(&format!("{sign} {}", metric.verdict.as_str())).into(),
        figure_of_a.into(),
        figure_of_b.into(),
        labels::or_unknown(metric.ratio.map(ratio_text)).into(),
        labels::or_unknown(metric.ratio.map(change_text)).into(),
        labels::or_unknown(metric.ratio.map(interval_text)).into(),
        Cell::drawn(mark),
    ];
    TableRow {
        tone,
        ..TableRow::from(cells)
    }
}

/// The colour of a verdict, and a sign for readers who do not see the colour.
pub(crate) fn verdict_look(verdict: Verdict) -> (Tone, &'static str) {
    match verdict {
        Verdict::Better => (Tone::Good, "▲"),
        Verdict::Worse => (Tone::Error, "▼"),
        Verdict::Same => (Tone::Plain, "="),
        Verdict::FasterOnce => (Tone::Plain, "△"),
        Verdict::SlowerOnce => (Tone::Plain, "▽"),
        Verdict::Undecided => (Tone::Dim, "?"),
        Verdict::NotComparable => (Tone::Warning, "≠"),
        Verdict::Observed => (Tone::Plain, "·"),
    }
}

/// Says what would decide the open metrics. Metrics with the same answer share a line.
fn open_metric_blocks(candidate: &Candidate, detail: MetricDetail) -> Vec<Block> {
    let mut needs = Vec::new();
    for metric in &candidate.metrics {
        if metric.verdict.is_open() && is_shown(metric, detail, candidate) {
            needs.push((needed_text(metric), &metric.metric));
        }
    }
    let mut blocks = Vec::new();
    for (needed, names) in grouped(needs) {
        let text = format!("{}: {needed}", list(names));
        blocks.push(Block::text(Tone::Plain, text));
    }
    Block::headed("what would decide", blocks)
}

/// Names the metrics that only one of the two sides has, and what is not compared: a fact for each
/// side that has any, and one for both.
fn unmatched_facts(letter: &str, unmatched: &[Unmatched]) -> Vec<Block> {
    let mut facts = Vec::new();
    for holder in [Holder::A, Holder::B, Holder::Both] {
        let label = match holder {
            Holder::A => "only in A".to_owned(),
            Holder::B => format!("only in {letter}"),
            Holder::Both => "not compared".to_owned(),
        };
        let mut subjects = Vec::new();
        for metric in unmatched {
            if metric.only != holder {
                continue;
            }
            subjects.push(match &metric.why {
                Some(why) if holder == Holder::Both => format!("{} ({why})", metric.subject),
                Some(why) => format!("{} (not in the other: {why})", metric.subject),
                None => metric.subject.clone(),
            });
        }
        if !subjects.is_empty() {
            facts.push(Block::fact(&label, list(subjects)));
        }
    }
    facts
}

pub(crate) fn condition_facts(comparison: &Comparison) -> Vec<Block> {
    let sides = comparison.candidates.len();
    let mut facts = Vec::new();
    for (index, condition) in comparison.conditions.iter().enumerate() {
        let mut subject = condition.expression.clone();
        if sides > 1 {
            // Each condition has an entry for every candidate, in their order. Reasons name them by
            // letter.
            let letter = letter(index % sides);
            subject.push_str(&format!(" ({letter}: {})", condition.candidate));
        }
        facts.push(condition_fact(condition, &subject));
    }
    Block::headed("conditions to fail on", facts)
}

fn condition_fact(condition: &Condition, subject: &str) -> Block {
    let (label, tone) = match condition.outcome {
        ConditionOutcome::Holds => ("FAILED", Tone::Error),
        ConditionOutcome::DoesNotHold => ("passed", Tone::Good),
        ConditionOutcome::Undecided => ("UNDECIDED", Tone::Warning),
        ConditionOutcome::Unanswered => ("UNANSWERED", Tone::Error),
    };
    Block::toned_fact(tone, label, format!("{subject}: {}", condition.why))
}

/// The margin as the user gave it, to a millionth of a percent: `2 %`.
pub(crate) fn margin_text(margin: f64) -> String {
    format!("{} %", (margin * 1e8).round() / 1e6)
}

fn legend_text(comparison: &Comparison) -> String {
    let margin = margin_text(comparison.margin);
    format!(
        "95 %: confidence interval of the ratio. better, worse: significantly different after \
         correction for the number of metrics, and by more than {margin}. same: the whole \
         interval is within {margin}. All metrics: --all, --json. Explanations: diskproof help \
         compare.md."
    )
}

/// `before · 2026-11-20 10:00 UTC · check /data · sda · db1`: the facts that identify a run.
fn run_text(run: &RunReference) -> String {
    let request = format!("{} {}", run.verb, run.targets.join(", "));
    let mut facts = vec![
        glue(&run.name),
        glue(&start_text(&run.started)),
        glue(request.trim_end()),
    ];
    let disks = run.disks.join(", ");
    if !disks.is_empty() {
        facts.push(glue(&disks));
    }
    facts.push(glue(&run.host));
    if let Some(note) = &run.note {
        facts.push(glue(note));
    }
    if run.partial {
        facts.push("PARTIAL".to_owned());
    }
    facts.join(" · ")
}

/// True if pages of this detail show the metric.
pub(crate) fn is_shown(
    metric: &MetricComparison,
    detail: MetricDetail,
    candidate: &Candidate,
) -> bool {
    if detail == MetricDetail::All || metric.headline {
        return true;
    }
    // In a closed loop these figures follow from the headline if that is a rate.
    let may_follow = is_rate(metric.figure) || metric.figure == Figure::Mean;
    !may_follow || !has_rate_as_headline(candidate, metric)
}

fn is_rate(figure: Figure) -> bool {
    matches!(figure, Figure::Iops | Figure::Throughput)
}

/// True if a rate is the headline of the metric's workload.
fn has_rate_as_headline(candidate: &Candidate, metric: &MetricComparison) -> bool {
    for other in &candidate.metrics {
        if other.headline && other.subject == metric.subject && other.target == metric.target {
            return is_rate(other.figure);
        }
    }
    false
}

/// The workload, with the number of its target if there are several.
pub(crate) fn subject_text(metric: &MetricComparison) -> String {
    let subject = metric.subject.as_str();
    match metric.metric.split_once(subject) {
        Some((target, _)) => format!("{target}{subject}"),
        None => subject.to_owned(),
    }
}

/// The part of the metric's name after the workload: `iops`, `read p99`.
pub(crate) fn figure_name(metric: &MetricComparison) -> String {
    let suffix = match metric.metric.split_once(metric.subject.as_str()) {
        Some((_, suffix)) => suffix,
        None => metric.metric.as_str(),
    };
    let name = suffix.trim_start_matches('.');
    let has_operation = suffix.matches('.').count() > 1 && !suffix.starts_with(".p");
    if has_operation {
        name.replacen('.', " ", 1)
    } else {
        name.to_owned()
    }
}

/// The figures of both sides, with the digits that the intervals support, and as many more as
/// readers need to recompute the printed change.
pub(crate) fn sides_text(metric: &MetricComparison) -> [String; 2] {
    let mut texts = figures_text(metric);
    if metric.figure == Figure::PromisedRate {
        for (text, side) in texts.iter_mut().zip([&metric.a, &metric.b]) {
            // Of a search, only an answer without an upper end has no interval.
            if side.half_width_95.is_none() {
                text.insert_str(0, "≥\u{a0}");
            }
        }
    }
    texts
}

fn figures_text(metric: &MetricComparison) -> [String; 2] {
    let (a, b) = (&metric.a, &metric.b);
    let Some(ratio) = metric.ratio else {
        return [a.value_text(), b.value_text()];
    };
    let supported_by_a = digits_of(a.value, a.half_width_95);
    let supported_by_b = digits_of(b.value, b.half_width_95);
    let supported = supported_by_a.max(supported_by_b);
    // The ratio of percentiles is that of the blocks of a live comparison, not that of the figures.
    let digits = (supported..=DIGITS_MAX)
        .find(|digits| is_change_recomputable(a.value, b.value, *digits, ratio))
        .unwrap_or(supported);
    [a, b].map(|side| figure_to_digits(side.value, digits, &side.unit))
}

/// True if a reader who divides the two figures, printed with this many digits, gets the printed
/// change.
fn is_change_recomputable(a: f64, b: f64, digits: i32, ratio: Ratio) -> bool {
    let printed_ratio = to_digits(b, digits) / to_digits(a, digits);
    percent_text(printed_ratio, longer_arm(ratio)) == change_text(ratio)
}

/// Says what would decide an open metric: `4.0 times as long, 12 s per side`.
pub(crate) fn needed_text(metric: &MetricComparison) -> String {
    let Some(ratio) = metric.ratio else {
        return missing_ratio_text(metric).to_owned();
    };
    let Some(needed) = metric.needed else {
        if metric.figure == Figure::PromisedRate {
            return "a search that answers \"at least\" has no upper end; search longer (--time)"
                .to_owned();
        }
        if ratio.high_95.is_some() {
            return "its slices or runs disagree; measure more of them".to_owned();
        }
        return "fewer than ten samples lie beyond it; measure longer".to_owned();
    };
    if needed.times > TIMES_MAX {
        return "over 1000 times as long; too noisy, or too close to the margin (--margin)"
            .to_owned();
    }
    if let Some(runs) = needed.runs {
        return format!("about {runs} runs per side");
    }
    let times = glue(&times_text(needed.times));
    match needed.measure_ns {
        Some(ns) if ns < SHORTEST_NS => {
            format!("{times} as long; the runs measured almost nothing")
        }
        Some(ns) => format!("{times} as long, {} per side", glue(&format_duration(ns))),
        None => match metric.figure {
            // A survey reads its burst again and again for a fixed time.
            Figure::Throughput => "more runs per side; no flag makes a burst longer".to_owned(),
            Figure::CurveMin
            | Figure::CurveMax
            | Figure::CurveAverage
            | Figure::AccessTime
            | Figure::Iops
            | Figure::Mean
            | Figure::P50
            | Figure::P99
            | Figure::P99_9
            | Figure::PromisedRate => format!("{times} as many positions or accesses"),
        },
    }
}

/// The reason why a metric without a reason against its comparison has no ratio.
fn missing_ratio_text(metric: &MetricComparison) -> &'static str {
    if metric.a.value <= 0.0 || metric.b.value <= 0.0 {
        return "no ratio: a side is 0";
    }
    match metric.figure {
        Figure::PromisedRate => "both searches answer \"at least\"; search longer (--time)",
        Figure::CurveMin | Figure::CurveMax => {
            "no interval: the curves need ten points or more, and the same number of them"
        }
        Figure::Iops
        | Figure::Throughput
        | Figure::Mean
        | Figure::P50
        | Figure::P99
        | Figure::P99_9
        | Figure::CurveAverage
        | Figure::AccessTime => "no interval: measured too briefly; measure for at least 2 s",
    }
}

/// `4.0 times`, `12 times`: two digits. A factor below 1.1 prints as 1.1, because `1.0 times as
/// long` would read as no change.
fn times_text(times: f64) -> String {
    // From here on, one decimal would print `10.0`.
    if times < 9.95 {
        format!("{:.1} times", times.max(1.1))
    } else {
        format!("{times:.0} times")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use diskproof_model::comparison::{Basis, Direction, Needed};
    use diskproof_model::record::Estimate;

    fn ratio(value: f64, low_95: f64, high_95: f64) -> Ratio {
        Ratio {
            value,
            low_95,
            high_95: Some(high_95),
        }
    }

    fn number(text: &str) -> f64 {
        let digits = text.split_whitespace().next().unwrap();
        digits.replace([',', '/', 's'], "").parse().unwrap()
    }

    #[test]
    fn metric_without_a_ratio_has_the_reason_of_its_figure() {
        let reason = |figure, b| {
            let mut compared = metric(rate(1.0, 0.1), rate(b, 0.1), ratio(1.0, 0.9, 1.1));
            (compared.figure, compared.ratio) = (figure, None);
            needed_text(&compared)
        };
        assert!(reason(Figure::Iops, 1.0).contains("2 s"));
        assert!(!reason(Figure::Iops, 0.0).contains("2 s"));
        assert!(!reason(Figure::CurveMin, 1.0).contains("2 s"));
    }

    /// Of a burst no flag makes more: other accesses can be more.
    #[test]
    fn undecided_burst_needs_more_runs() {
        let needs_runs = |figure| {
            let mut compared = metric(rate(1.0, 0.1), rate(1.1, 0.1), ratio(1.1, 0.9, 1.3));
            compared.figure = figure;
            compared.needed = Some(Needed {
                times: 4.0,
                measure_ns: None,
                runs: None,
            });
            needed_text(&compared).contains("runs per side")
        };
        assert!(needs_runs(Figure::Throughput));
        assert!(!needs_runs(Figure::AccessTime));
    }

    #[test]
    fn promised_rate_without_an_upper_end_is_marked() {
        let without_interval = Estimate::new(10, 601.0, None, "1/s");
        let mut compared = metric(rate(300.0, 0.1), without_interval, ratio(2.0, 1.9, 2.1));
        compared.figure = Figure::PromisedRate;
        let [a, b] = sides_text(&compared);
        assert!(!a.contains('≥') && b.starts_with('≥'), "{a} {b}");
        compared.figure = Figure::Iops;
        assert!(!sides_text(&compared)[1].contains('≥'));
    }

    #[test]
    fn legend_states_a_small_margin() {
        let mut comparison = crate::fixture::comparison();
        for (margin, text) in [
            (0.0003, "than 0.03 %."),
            (0.02, "than 2 %."),
            (0.1, "than 10 %."),
        ] {
            comparison.margin = margin;
            assert!(legend_text(&comparison).contains(text), "{margin}");
        }
    }

    fn rate(value: f64, relative_width: f64) -> Estimate {
        Estimate {
            n: 10,
            value,
            half_width_95: Some(value * relative_width),
            unit: "1/s".to_owned(),
        }
    }

    fn metric(a: Estimate, b: Estimate, ratio: Ratio) -> MetricComparison {
        MetricComparison {
            metric: "random-read-d1.iops".to_owned(),
            subject: "random-read-d1".to_owned(),
            target: 0,
            op: None,
            figure: Figure::Iops,
            headline: true,
            better: Direction::Higher,
            a,
            b,
            ratio: Some(ratio),
            p_value: None,
            p_adjusted: None,
            basis: Basis::WithinRuns,
            variation: None,
            verdict: Verdict::Undecided,
            needed: None,
            reasons: Vec::new(),
        }
    }

    fn assert_change_follows(a: f64, change: f64, own_width: f64, ratio_width: f64) {
        let ratio_of_sides = ratio(change, change - ratio_width, change + ratio_width);
        let compared = metric(
            rate(a, own_width),
            rate(a * change, own_width),
            ratio_of_sides,
        );
        let [text_of_a, text_of_b] = sides_text(&compared);
        let printed_ratio = number(&text_of_b) / number(&text_of_a);
        let of_figures = percent_text(printed_ratio, longer_arm(ratio_of_sides));
        assert_eq!(
            of_figures,
            change_text(ratio_of_sides),
            "{text_of_a} {text_of_b}"
        );
        let text = ratio_text(ratio_of_sides);
        let of_ratio = percent_text(number(&text), longer_arm(ratio_of_sides));
        assert_eq!(of_ratio, change_text(ratio_of_sides), "{text}");
    }

    /// Sign and size of the change follow from the printed figures and from the printed ratio.
    #[test]
    fn printed_figures_of_a_row_agree_with_its_change() {
        let changes = [0.7, 0.9, 0.94, 0.969, 0.9969, 1.0, 1.004, 1.06, 1.4, 3.2];
        for a in [4570.0, 1003.0, 98.7, 13_688.0] {
            for change in changes {
                assert_change_follows(a, change, 0.5, 0.3);
                assert_change_follows(a, change, 0.18, 0.05);
                assert_change_follows(a, change, 0.02, 0.01);
                assert_change_follows(a, change, 0.002, 0.001);
            }
        }
    }
}
