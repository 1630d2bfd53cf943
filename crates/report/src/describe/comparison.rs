//! A comparison in words: letters of sides, names of metrics, ratios, what would decide.

use super::run::start_text;
use crate::labels;
use crate::text::{glue, grouped, list};
use diskproof_model::block::{
    Align, Block, Cell, Column, Group, Mark, Place, Table, TableRow, Tone,
};
pub(crate) use diskproof_model::comparison::letter;
use diskproof_model::comparison::{
    Candidate, Comparison, Condition, ConditionOutcome, Difference, Figure, Holder,
    MetricComparison, Ratio, RunReference, Side, Verdict,
};
use diskproof_model::digits::{digits_of, figure_to_digits, rounded, to_digits};
use diskproof_model::units::{counted, format_duration, format_percent};

/// How many metrics are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricDetail {
    /// Independent metrics: in a closed loop the mean latency and the other rate follow from the
    /// first one.
    Independent,
    /// All metrics.
    All,
}

/// The parts of a comparison below its summary: the sides, what differs, the metrics, what would
/// decide, the conditions to fail on.
pub(crate) fn blocks(comparison: &Comparison, detail: MetricDetail) -> Vec<Block> {
    let letters: Vec<String> = (0..comparison.candidates.len()).map(letter).collect();
    let mut blocks = side("A", &comparison.baseline);
    for (letter, candidate) in letters.iter().zip(&comparison.candidates) {
        blocks.extend(side(letter, &candidate.side));
    }
    for (letter, candidate) in letters.iter().zip(&comparison.candidates) {
        blocks.extend(differences(letter, candidate));
        let metrics = metrics(letter, candidate, detail, comparison.margin);
        blocks.push(Block::Heading(format!("{letter} against A")));
        blocks.push(Block::Table(metrics));
        blocks.extend(open(candidate, detail));
        blocks.extend(unmatched(letter, candidate));
        let notes = candidate.notes.iter();
        blocks.extend(notes.map(|note| Block::toned_fact(Tone::Note, "note", note)));
    }
    blocks.extend(conditions(comparison));
    blocks.push(Block::text(Tone::Dim, legend(comparison)));
    blocks
}

fn side(letter: &str, side: &Side) -> Vec<Block> {
    if let [run] = side.runs.as_slice() {
        return vec![Block::fact(letter, run_text(run))];
    }
    let count = format!("{}: {}", side.label, counted(side.runs.len() as u64, "run"));
    let mut blocks = vec![Block::fact(letter, count)];
    let runs = side.runs.iter().zip(1..);
    blocks.extend(runs.map(|(run, n)| Block::fact(&format!("  {letter}{n}"), run_text(run))));
    blocks
}

fn differences(letter: &str, candidate: &Candidate) -> Vec<Block> {
    let row = |of: &Difference| TableRow::from(vec![of.what.clone(), of.a.clone(), of.b.clone()]);
    let title = format!("what differs from A to {letter}");
    let rows: Vec<TableRow> = candidate.differences.iter().map(row).collect();
    let table =
        (!rows.is_empty()).then(|| Block::words("Facts that differ", ["", "A", letter], rows));
    Block::headed(&title, table)
}

/// Every metric with its ratio, by workload.
fn metrics(letter: &str, candidate: &Candidate, detail: MetricDetail, margin: f64) -> Table {
    let is_shown = |metric: &&MetricComparison| is_shown(metric, detail, candidate);
    let shown: Vec<&MetricComparison> = candidate.metrics.iter().filter(is_shown).collect();
    let reach = reach(&shown, margin);
    let mut before = None;
    let rows = shown.iter().map(|metric| {
        let subject = (&metric.subject, metric.target);
        let is_new = before.replace(subject) != Some(subject);
        TableRow {
            group: is_new.then(|| group(metric)),
            ..row(metric, reach, margin)
        }
    });
    let (number, caption) = (Column::number, format!("Metrics of {letter} against A"));
    let columns = vec![
        Column::new("", Align::Left),
        Column::new("verdict", Align::Left),
        number("A", Place::Always),
        number(letter, Place::Always),
        number(&format!("{letter}/A"), Place::Roomy(1)),
        number("change", Place::Always),
        number("95 %", Place::Always),
        number("ratio", Place::Drawn),
    ];
    Table::new(&caption, columns, rows.collect())
}

fn group(metric: &MetricComparison) -> Group {
    let why = list(metric.reasons.iter().map(|reason| &reason.why));
    Group {
        title: subject_text(metric),
        warning: match why.as_str() {
            "" => why,
            why => format!("not comparable: {why}"),
        },
        ..Group::default()
    }
}

fn row(metric: &MetricComparison, reach: f64, margin: f64) -> TableRow {
    let of_ratio = |text: fn(Ratio) -> String| labels::or_unknown(metric.ratio.map(text));
    let [of_a, of_b] = sides_text(metric);
    let (tone, sign) = look(metric.verdict);
    let mark = |ratio| Mark::Ratio {
        ratio,
        reach,
        margin,
    };
    let cells = vec![
        format!("  {}", figure_name(metric)).into(),
        glue(&format!("{sign} {}", metric.verdict.as_str())).into(),
        of_a.into(),
        of_b.into(),
        of_ratio(ratio_text).into(),
        of_ratio(change_text).into(),
        of_ratio(interval_text).into(),
        Cell::drawn(metric.ratio.map_or(Mark::None, mark)),
    ];
    TableRow {
        tone,
        ..TableRow::from(cells)
    }
}

/// The role of a verdict, and a sign for readers who do not see the colour.
pub(crate) fn look(verdict: Verdict) -> (Tone, &'static str) {
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

/// What would decide; metrics with the same answer share an entry.
fn open(candidate: &Candidate, detail: MetricDetail) -> Vec<Block> {
    let is_open = |m: &&MetricComparison| m.verdict.is_open() && is_shown(m, detail, candidate);
    let metrics = candidate.metrics.iter().filter(is_open);
    let groups = grouped(metrics.map(|metric| (needed_text(metric), &metric.metric)));
    let texts = groups.into_iter();
    let texts = texts.map(|(text, names)| format!("{}: {text}", list(names)));
    let blocks = texts.map(|text| Block::text(Tone::Plain, text));
    Block::headed("what would decide", blocks)
}

fn unmatched(letter: &str, candidate: &Candidate) -> Vec<Block> {
    let of_side = |(holder, name): (Holder, &str)| {
        let own = candidate.unmatched.iter().filter(|one| one.only == holder);
        let names = own.map(|one| match &one.why {
            Some(why) => format!("{} (not in the other: {why})", one.subject),
            None => one.subject.clone(),
        });
        let names = list(names);
        (!names.is_empty()).then(|| Block::fact(&format!("only in {name}"), names))
    };
    let sides = [(Holder::A, "A"), (Holder::B, letter)];
    sides.into_iter().filter_map(of_side).collect()
}

pub(crate) fn conditions(comparison: &Comparison) -> Vec<Block> {
    let fact = |condition: &Condition| {
        let (label, tone) = match condition.outcome {
            ConditionOutcome::Holds => ("FAILED", Tone::Error),
            ConditionOutcome::DoesNotHold => ("passed", Tone::Good),
            ConditionOutcome::Undecided => ("UNDECIDED", Tone::Warning),
            ConditionOutcome::Unanswered => ("UNANSWERED", Tone::Error),
        };
        let of = match comparison.candidates.len() {
            1 => String::new(),
            _ => format!(" ({})", condition.candidate),
        };
        let text = format!("{}{of}: {}", condition.expression, condition.why);
        Block::toned_fact(tone, label, text)
    };
    let facts = comparison.conditions.iter().map(fact);
    Block::headed("conditions to fail on", facts)
}

fn legend(comparison: &Comparison) -> String {
    let margin = format_percent(comparison.margin);
    format!(
        "95 %: confidence interval of the ratio. better, worse: significantly different after \
         correction for the number of metrics, and by more than {margin}. same: the whole interval \
         is within {margin}. All metrics: --all, --json. Explanations: diskproof help compare.md."
    )
}

/// A measurement this many times as long is not worth suggesting.
const TIMES_MAX: f64 = 1000.0;
/// A shorter time prints as 0 ms.
const SHORTEST_NS: u64 = 1_000_000;

/// A run with the facts that identify it.
fn run_text(run: &RunReference) -> String {
    let request = format!("{} {}", run.verb, run.targets.join(", "));
    let mut facts = vec![
        run.name.clone(),
        start_text(&run.started),
        request.trim_end().to_owned(),
    ];
    facts.extend(Some(run.disks.join(", ")).filter(|disks| !disks.is_empty()));
    facts.push(run.host.clone());
    facts.extend(run.note.clone());
    facts.extend(run.partial.then(|| "PARTIAL".to_owned()));
    let facts: Vec<String> = facts.iter().map(|fact| glue(fact)).collect();
    facts.join(" · ")
}

/// Whether a page of this detail shows the metric.
pub(crate) fn is_shown(
    metric: &MetricComparison,
    detail: MetricDetail,
    candidate: &Candidate,
) -> bool {
    use Figure::{Iops, Mean, Throughput};
    let is_lead = |m: &&MetricComparison| {
        m.headline && m.subject == metric.subject && m.target == metric.target
    };
    let lead = || candidate.metrics.iter().find(is_lead);
    let follows = matches!(metric.figure, Iops | Throughput | Mean)
        && lead().is_some_and(|lead| matches!(lead.figure, Iops | Throughput));
    detail == MetricDetail::All || metric.headline || !follows
}

/// The workload, with the number of its target if there are several.
pub(crate) fn subject_text(metric: &MetricComparison) -> String {
    let subject = metric.subject.as_str();
    let parts = metric.metric.split_once(subject);
    format!("{}{subject}", parts.map_or("", |(prefix, _)| prefix))
}

/// What follows the workload's name: `iops`, `read p99`.
pub(crate) fn figure_name(metric: &MetricComparison) -> String {
    let parts = metric.metric.split_once(metric.subject.as_str());
    let figure = parts.map_or(metric.metric.as_str(), |(_, figure)| figure);
    let has_operation = figure.matches('.').count() > 1 && !figure.starts_with(".p");
    let figure = figure.trim_start_matches('.');
    figure.replacen('.', " ", usize::from(has_operation))
}

/// Most digits of the two figures of a row.
const DIGITS_MAX: i32 = 6;

/// The figures of both sides: as many digits as the intervals support, and as many more as the
/// change needs to follow from the printed figures.
pub(crate) fn sides_text(metric: &MetricComparison) -> [String; 2] {
    let (a, b) = (&metric.a, &metric.b);
    let Some(ratio) = metric.ratio else {
        return [a.value_text(), b.value_text()];
    };
    let supported = [a, b].map(|side| digits_of(side.value, side.half_width_95));
    let least = supported[0].max(supported[1]);
    let agrees = |digits: &i32| {
        let value = to_digits(b.value, *digits) / to_digits(a.value, *digits);
        percent_text(value, half_width(ratio)) == change_text(ratio)
    };
    // The ratio of percentiles is that of the blocks of a live comparison, not that of the figures.
    let digits = (least..=DIGITS_MAX).find(agrees).unwrap_or(least);
    [a, b].map(|side| figure_to_digits(side.value, digits, &side.unit))
}

/// The ratio with the digits that its interval supports, and those from which the change follows.
fn ratio_text(ratio: Ratio) -> String {
    let half = half_width(ratio);
    let own = rounded(ratio.value, Some(half));
    let printed = own.replace(',', "").parse().unwrap_or(f64::NAN);
    if percent_text(printed, half) == change_text(ratio) {
        own
    } else {
        format!("{:.*}", 2 + percent_decimals(half), ratio.value)
    }
}

/// The ratio as a change, with the digits that its interval supports: `+14 %`, `−3.1 %`.
pub(crate) fn change_text(ratio: Ratio) -> String {
    percent_text(ratio.value, half_width(ratio))
}

/// The last digit is that of the half-width's first one, as in `rounded`, also where the change is
/// smaller than the half-width.
fn percent_decimals(half_width: f64) -> usize {
    (-(half_width * 100.0).log10().floor()).clamp(0.0, 2.0) as usize
}

pub(crate) fn percent_text(ratio: f64, half_width: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let digits = format!("{:.*}", percent_decimals(half_width), percent.abs());
    let is_zero = !digits.contains(|c: char| ('1'..='9').contains(&c));
    let sign = match percent {
        _ if is_zero => "±",
        percent if percent < 0.0 => "−",
        _ => "+",
    };
    glue(&format!("{sign}{digits} %"))
}

/// Half the width of a picture's scale, as the logarithm of a ratio: all intervals fit, up to a
/// factor of four.
pub(crate) fn reach(metrics: &[&MetricComparison], margin: f64) -> f64 {
    let ratios = metrics.iter().filter_map(|metric| metric.ratio);
    let ends = ratios.flat_map(|ratio| [ratio.low_95, ratio.high_95.unwrap_or(ratio.value)]);
    let distances = ends.filter(|end| *end > 0.0).map(|end| end.ln().abs());
    distances.fold(2.0 * margin, f64::max).min(4.0_f64.ln())
}

/// The place of a ratio on a picture's scale, from −1 to 1, so that half and double lie equally far
/// from one.
pub(crate) fn place(ratio: f64, reach: f64) -> f64 {
    match ratio {
        ratio if ratio > 0.0 => (ratio.ln() / reach).clamp(-1.0, 1.0),
        _ => -1.0,
    }
}

/// The 95 % interval of the ratio: `0.98–1.02`, `0.5 or more`.
pub(crate) fn interval_text(ratio: Ratio) -> String {
    let half_width = Some(half_width(ratio));
    let low = rounded(ratio.low_95, half_width);
    match ratio.high_95 {
        Some(high) => format!("{low}–{}", rounded(high, half_width)),
        None => format!("{low} or more"),
    }
}

/// The longer arm of the interval.
pub(crate) fn half_width(ratio: Ratio) -> f64 {
    let below = ratio.value - ratio.low_95;
    let high = ratio.high_95;
    high.map_or(below, |high| below.max(high - ratio.value))
}

/// What would decide an undecided metric.
pub(crate) fn needed_text(metric: &MetricComparison) -> String {
    if metric.ratio.is_none() {
        return "no interval: measured too briefly; measure for at least 2 s".to_owned();
    }
    let Some(needed) = metric.needed else {
        return "fewer than ten samples lie beyond it; measure longer".to_owned();
    };
    let times = glue(&times_text(needed.times));
    match (needed.runs, needed.measure_ns) {
        _ if needed.times > TIMES_MAX => {
            "over 1000 times as long; too noisy, or too close to the margin (--margin)".to_owned()
        }
        (Some(runs), _) => format!("about {runs} runs per side"),
        (None, Some(ns)) if ns < SHORTEST_NS => {
            format!("{times} as long; the runs measured almost nothing")
        }
        (None, Some(ns)) => format!("{times} as long, {} per side", glue(&format_duration(ns))),
        (None, None) => format!("{times} as many positions or accesses"),
    }
}

fn times_text(times: f64) -> String {
    match times {
        few if few < 9.95 => format!("{:.1} times", few.max(1.1)),
        many => format!("{many:.0} times"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use diskproof_model::comparison::{Basis, Direction};
    use diskproof_model::record::Estimate;

    #[test]
    fn changes_have_a_sign_and_the_digits_of_their_interval() {
        let text = |value: f64, low_95: f64, high_95: f64| {
            change_text(Ratio {
                value,
                low_95,
                high_95: Some(high_95),
            })
        };
        assert_eq!(text(1.14, 1.12, 1.16), "+14\u{a0}%");
        assert_eq!(text(0.969, 0.966, 0.972), "−3.1\u{a0}%");
        assert_eq!(text(1.001, 0.95, 1.05), "±0\u{a0}%");
        assert_eq!(text(3.2, 3.0, 3.4), "+220\u{a0}%");
    }

    /// Sign and size of the change follow from the printed figures and from the printed ratio.
    #[test]
    fn printed_figures_of_a_row_agree_with_its_change() {
        let number = |text: &str| -> f64 {
            let digits = text.split_whitespace().next().unwrap();
            digits.replace([',', '/', 's'], "").parse().unwrap()
        };
        let side = |value: f64, width: f64| Estimate {
            n: 10,
            value,
            half_width_95: Some(value * width),
            unit: "1/s".to_owned(),
        };
        let mut metric = MetricComparison {
            metric: "random-read-d1.iops".to_owned(),
            subject: "random-read-d1".to_owned(),
            target: 0,
            op: None,
            figure: Figure::Iops,
            headline: true,
            better: Direction::Higher,
            a: side(1.0, 0.1),
            b: side(1.0, 0.1),
            ratio: None,
            p_value: None,
            p_adjusted: None,
            basis: Basis::WithinRuns,
            variation: None,
            verdict: Verdict::Undecided,
            needed: None,
            reasons: Vec::new(),
        };
        let ends = [0.7, 0.9, 0.94, 0.969, 0.9969, 1.0, 1.004, 1.06, 1.4, 3.2];
        for (a, change) in [4570.0, 1003.0, 98.7, 13_688.0]
            .iter()
            .flat_map(|a| ends.map(|b| (*a, b)))
        {
            for (own, width) in [(0.5, 0.3), (0.18, 0.05), (0.02, 0.01), (0.002, 0.001)] {
                (metric.a, metric.b) = (side(a, own), side(a * change, own));
                let ratio = Ratio {
                    value: change,
                    low_95: change - width,
                    high_95: Some(change + width),
                };
                metric.ratio = Some(ratio);
                let [x, y] = sides_text(&metric);
                let of_figures = percent_text(number(&y) / number(&x), half_width(ratio));
                assert_eq!(of_figures, change_text(ratio), "{x} {y}");
                let of_ratio = percent_text(number(&ratio_text(ratio)), half_width(ratio));
                assert_eq!(of_ratio, change_text(ratio), "{}", ratio_text(ratio));
            }
        }
    }
}
