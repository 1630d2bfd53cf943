//! The comparison page: the verdict in a sentence, then what was compared, what differs, the table
//! of metrics, and what keeps the rest undecided.

use super::record::start_text;
use super::subject::fact;
use super::words;
use crate::page::{Columns, Ink, Lean, Page};
use crate::style::Style;
use crate::text::{glue, list};
use diskproof_model::comparison::{
    Candidate, Comparison, ConditionOutcome, Figure, Holder, MetricComparison, Needed, Ratio,
    RunReference, Side, Verdict,
};
use diskproof_model::record::Estimate;
use diskproof_model::units::{
    counted, format_duration, format_latency, format_rate, format_throughput,
};
use std::io::{self, Write};

const COLUMNS: usize = 6;
/// Column at which the figures begin when they do not fit side by side.
const STACKED_INDENT: usize = 14;
/// Column at which an explanation hangs.
const HANGING_INDENT: usize = 4;
/// More than this many times as much is not worth naming.
const TIMES_MAX: f64 = 1000.0;

/// How many metrics are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricDetail {
    /// Those that say something of their own: in a closed loop the mean latency and the other rate
    /// follow from the first one.
    Telling,
    /// All of them.
    All,
}

/// Writes the comparison.
pub fn write_comparison(
    comparison: &Comparison,
    detail: MetricDetail,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let page = &mut Page::new(style, out);
    let letters: Vec<String> = (0..comparison.candidates.len()).map(letter).collect();
    for candidate in &comparison.candidates {
        page.text(Ink::Strong, &candidate.summary)?;
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
    page.text(Ink::Faint, &legend(comparison))
}

/// B, C, D … for the candidates in their order.
pub(crate) fn letter(index: usize) -> String {
    ('B'..='Z')
        .nth(index)
        .map_or("?".to_owned(), |letter| letter.to_string())
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

pub(crate) fn run_text(run: &RunReference) -> String {
    let mut facts = vec![
        run.name.clone(),
        start_text(&run.started),
        format!("{} {}", run.verb, run.targets.join(", "))
            .trim_end()
            .to_owned(),
    ];
    facts.extend(Some(run.disks.join(", ")).filter(|disks| !disks.is_empty()));
    facts.push(run.host.clone());
    facts.extend(run.note.clone());
    if run.partial {
        facts.push("PARTIAL".to_owned());
    }
    facts
        .iter()
        .map(|fact| glue(fact))
        .collect::<Vec<_>>()
        .join(" · ")
}

fn write_candidate(
    page: &mut Page<'_>,
    letter: &str,
    candidate: &Candidate,
    detail: MetricDetail,
) -> io::Result<()> {
    if !candidate.differences.is_empty() {
        page.blank()?;
        page.text(Ink::Strong, &format!("what differs from A to {letter}"))?;
        for difference in &candidate.differences {
            let text = format!("{} → {}", difference.a, difference.b);
            page.entry(
                (Ink::Faint, &format!("  {}", difference.what)),
                19,
                (Ink::Plain, &text),
            )?;
        }
    }
    page.blank()?;
    write_table(page, letter, candidate, detail)?;
    write_undecided(page, candidate, detail)?;
    write_unmatched(page, letter, candidate)?;
    for note in &candidate.notes {
        page.entry((Ink::Hint, "note"), 6, (Ink::Plain, note))?;
    }
    Ok(())
}

pub(crate) fn is_shown(
    metric: &MetricComparison,
    detail: MetricDetail,
    candidate: &Candidate,
) -> bool {
    let lead = || {
        candidate
            .metrics
            .iter()
            .find(|m| m.headline && m.subject == metric.subject && m.target == metric.target)
    };
    let is_closed_loop =
        || lead().is_some_and(|lead| matches!(lead.figure, Figure::Iops | Figure::Throughput));
    let follows = matches!(
        metric.figure,
        Figure::Iops | Figure::Throughput | Figure::Mean
    ) && is_closed_loop();
    detail == MetricDetail::All || metric.headline || !follows
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
    let heading = ["", "A", letter, &format!("{letter}/A"), "95 %", "verdict"]
        .map(str::to_owned)
        .to_vec();
    let rows: Vec<Vec<String>> = shown.iter().map(|metric| row(metric)).collect();
    let mut leans = [Lean::Right; COLUMNS];
    (leans[0], leans[COLUMNS - 1]) = (Lean::Left, Lean::Left);
    let columns = Columns::fit(&leans, rows.iter().chain([&heading]));
    let is_table = page.has_room_for(columns.total());
    if is_table && !shown.is_empty() {
        page.unbroken(Ink::Faint, &columns.line(&heading))?;
    }
    let mut before = None;
    for (metric, row) in shown.iter().zip(&rows) {
        if before.replace((&metric.subject, metric.target))
            != Some((&metric.subject, metric.target))
        {
            page.text(Ink::Strong, &subject_text(metric))?;
            write_reasons(page, metric)?;
        }
        if is_table {
            page.unbroken(ink(metric), &columns.line(row))?
        } else {
            write_stacked(page, metric, &heading, row)?
        }
    }
    Ok(())
}

/// The workload with the number of its target, where there are several.
pub(crate) fn subject_text(metric: &MetricComparison) -> String {
    let prefix = metric
        .metric
        .split_once(metric.subject.as_str())
        .map_or("", |(prefix, _)| prefix);
    format!("{prefix}{}", metric.subject)
}

fn write_reasons(page: &mut Page<'_>, metric: &MetricComparison) -> io::Result<()> {
    let why = list(metric.reasons.iter().map(|reason| &reason.why));
    if why.is_empty() {
        Ok(())
    } else {
        page.entry(
            (Ink::Caution, "  not comparable:"),
            HANGING_INDENT,
            (Ink::Plain, &why),
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
    let text = list(figures.chain([format!("({})", row[4]), row[5].clone()]));
    page.entry((ink(metric), &row[0]), STACKED_INDENT, (Ink::Plain, &text))
}

fn ink(metric: &MetricComparison) -> Ink {
    match metric.verdict {
        Verdict::Better => Ink::Hint,
        Verdict::Worse => Ink::Alarm,
        Verdict::Same => Ink::Plain,
        Verdict::Undecided | Verdict::NotComparable => Ink::Faint,
    }
}

/// What follows the workload's name: `iops`, `read p99`.
pub(crate) fn figure_name(metric: &MetricComparison) -> String {
    let (_, figure) = metric
        .metric
        .split_once(metric.subject.as_str())
        .unwrap_or(("", &metric.metric));
    figure.trim_start_matches('.').replacen(
        '.',
        " ",
        usize::from(figure.matches('.').count() > 1 && !figure.starts_with(".p")),
    )
}

fn row(metric: &MetricComparison) -> Vec<String> {
    let name = format!("  {}", figure_name(metric));
    let ratio = metric
        .ratio
        .map_or(("–".to_owned(), "–".to_owned()), |ratio| {
            (ratio_text(ratio.value), interval_text(ratio))
        });
    vec![
        name,
        value_text(&metric.a),
        value_text(&metric.b),
        ratio.0,
        ratio.1,
        metric.verdict.as_str().to_owned(),
    ]
}

pub(crate) fn value_text(estimate: &Estimate) -> String {
    match estimate.unit.as_str() {
        "B/s" => format_throughput(estimate.value),
        "ns" => format_latency(estimate.value.round() as u64),
        _ => format!("{}/s", format_rate(estimate.value)),
    }
}

/// Three decimals tell a thousandth; from 10 on nobody asks for it.
pub(crate) fn ratio_text(ratio: f64) -> String {
    match ratio {
        r if r < 9.9995 => format!("{r:.3}"),
        r if r < 99.95 => format!("{r:.1}"),
        r => format!("{r:.0}"),
    }
}

pub(crate) fn interval_text(ratio: Ratio) -> String {
    match ratio.high_95 {
        Some(high) => format!("{}–{}", ratio_text(ratio.low_95), ratio_text(high)),
        None => format!("{} or more", ratio_text(ratio.low_95)),
    }
}

/// What would decide; metrics that need the same are told together.
fn write_undecided(
    page: &mut Page<'_>,
    candidate: &Candidate,
    detail: MetricDetail,
) -> io::Result<()> {
    let undecided =
        |m: &&MetricComparison| m.verdict == Verdict::Undecided && is_shown(m, detail, candidate);
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
    page.text(Ink::Strong, "what would decide")?;
    groups.into_iter().try_for_each(|(text, names)| {
        page.entry(
            (Ink::Plain, ""),
            2,
            (Ink::Plain, &format!("{}: {text}", list(names))),
        )
    })
}

pub(crate) fn needed_text(metric: &MetricComparison) -> String {
    match (metric.needed, metric.ratio) {
        (_, None) => {
            "measured for too short a time to have an interval; measure at least 2 s".to_owned()
        }
        (Some(Needed { times, .. }), _) if times > TIMES_MAX => {
            "more than 1000 times as long: too noisy, or as large as the margin; see --margin"
                .to_owned()
        }
        (
            Some(Needed {
                runs: Some(runs), ..
            }),
            _,
        ) => format!("about {runs} runs a side"),
        (
            Some(Needed {
                times,
                measure_ns: Some(ns),
                ..
            }),
            _,
        ) => {
            format!(
                "{} as long, {} a side",
                glue(&times_text(times)),
                glue(&format_duration(ns))
            )
        }
        (Some(Needed { times, .. }), _) => {
            format!("{} as many positions or accesses", glue(&times_text(times)))
        }
        (None, _) => "too few requests lie beyond it; measure longer".to_owned(),
    }
}

fn times_text(times: f64) -> String {
    if times < 9.95 {
        format!("{:.1} times", times.max(1.1))
    } else {
        format!("{times:.0} times")
    }
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
                    format!("{} (the other: {why})", u.subject)
                })
            })
            .collect();
        if !names.is_empty() {
            page.entry(
                (Ink::Faint, &format!("only in {name}")),
                11,
                (Ink::Plain, &list(names)),
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
    page.text(Ink::Strong, "conditions to fail on")?;
    for condition in &comparison.conditions {
        let (label, ink) = match condition.outcome {
            ConditionOutcome::Holds => ("  FAILED", Ink::Alarm),
            ConditionOutcome::DoesNotHold => ("  passed", Ink::Plain),
            ConditionOutcome::Undecided => ("  UNDECIDED", Ink::Caution),
            ConditionOutcome::Unanswered => ("  UNANSWERED", Ink::Alarm),
        };
        let of = if comparison.candidates.len() > 1 {
            format!(" ({})", condition.candidate)
        } else {
            String::new()
        };
        page.entry(
            (ink, label),
            14,
            (
                Ink::Plain,
                &format!("{}{of}: {}", condition.expression, condition.why),
            ),
        )?;
    }
    Ok(())
}

fn legend(comparison: &Comparison) -> String {
    let margin = words::percent(comparison.margin);
    format!(
        "95 % is the confidence interval of the ratio. better, worse: surely different, allowing \
         for the number of metrics, and by more than {margin}. same: all of the interval within \
         {margin}. Everything: --all, --json. What it means: docs/compare.md."
    )
}
