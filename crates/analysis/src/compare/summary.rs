//! A comparison in a sentence or two, and what a reader has to know alongside it. Said here once,
//! so that every printer says the same.

use super::reasons::{is_shared_disturbance, load};
use super::sides::{Run, RunGroup, Sides};
use crate::estimate::largest_by;
use crate::limiter::words::{credit_text, untested};
use diskproof_model::comparison::{Basis, MetricComparison, Tally, Verdict};
use diskproof_model::measurement::OpKind;
use diskproof_model::units::format_duration;
use std::collections::BTreeSet;

/// Metrics named one by one in a sentence; more are counted only.
const NAMED_MAX: usize = 3;
/// Runs of which one measured a workload this many times as long as another may have seen another
/// disk: a cache that was still filling, credits that were not yet spent.
const WALL_RATIO_MAX: f64 = 4.0;

/// `B is better in 5 of 8 workloads, worse in 1, same within 2 % in 2.` And what the details say
/// against it.
pub(super) fn sentence(
    letter: &str,
    margin: f64,
    headline: Tally,
    metrics: &[MetricComparison],
) -> String {
    if metrics.is_empty() {
        return format!(
            "A and {letter} measured nothing in common, so there is nothing to compare."
        );
    }
    let total = headline.total();
    if total > 0 && headline.not_comparable == total {
        let why = common_reason(metrics);
        return format!("{letter} cannot be compared with A: {why}.");
    }
    if total > 0 && headline.observed_loads == total {
        return loads(letter, metrics);
    }
    let same = format!("the same within {}", percent(margin));
    let counts = [
        (headline.better, "better"),
        (headline.worse, "worse"),
        (headline.same, same.as_str()),
        (headline.faster_once, "faster-once"),
        (headline.slower_once, "slower-once"),
        (headline.undecided, "undecided"),
        (headline.not_comparable, "not comparable"),
        (headline.observed_loads, "observed"),
    ];
    let seen: Vec<&(u32, &str)> = counts.iter().filter(|(n, _)| *n > 0).collect();
    let text = match seen.as_slice() {
        [(n, what)] if *n == 1 => format!("{letter} is {what}{}.", subject_of(metrics)),
        [(n, what)] => format!("{letter} is {what} in all {n}."),
        [(n, what), rest @ ..] => {
            let rest = rest.iter().map(|(n, what)| format!("{what} in {n}"));
            let rest: Vec<String> = rest.collect();
            format!("{letter} is {what} in {n} of {total}, {}.", rest.join(", "))
        }
        [] => String::new(),
    };
    let details = [
        (headline.worse, Verdict::Worse),
        (headline.better, Verdict::Better),
        (headline.slower_once, Verdict::SlowerOnce),
        (headline.faster_once, Verdict::FasterOnce),
    ];
    let untold = details.into_iter().filter(|(told, _)| *told == 0);
    let details = untold.filter_map(|(_, verdict)| against(metrics, verdict));
    let sentences: Vec<String> = [text].into_iter().chain(details).collect();
    sentences.join(" ")
}

/// Loads that were observed have no verdict.
fn loads(letter: &str, metrics: &[MetricComparison]) -> String {
    let rates: Vec<String> = metrics
        .iter()
        .filter(|metric| metric.headline)
        .map(|metric| {
            let kind = metric.op.map_or("requests", |op| match op {
                OpKind::Read => "reads",
                _ => "writes",
            });
            let times = two_digits(metric.b.value / metric.a.value);
            format!("{times} times as many {kind} on {}", metric.subject)
        })
        .collect();
    format!(
        "The load of {letter} has {} as that of A. Both loads were observed, so they show what \
         programs requested, not what the disks can do.",
        rates.join(" and ")
    )
}

/// `2.1`, `14`, `0.35`.
fn two_digits(value: f64) -> String {
    let digits = 1 - value.max(1e-9).log10().floor() as i32;
    format!("{value:.*}", digits.clamp(0, 9) as usize)
}

/// Details that go the other way than every headline.
fn against(metrics: &[MetricComparison], verdict: Verdict) -> Option<String> {
    let metrics = metrics.iter();
    let names: Vec<&str> = metrics
        .filter(|m| !m.headline && m.verdict == verdict)
        .map(|m| m.metric.as_str())
        .collect();
    names.first()?;
    let what = verdict.as_str();
    Some(match names.len() {
        0..=NAMED_MAX => format!("Among the details {what}: {}.", names.join(", ")),
        n => format!(
            "Among the details {what} in {n}, such as {}.",
            names[..NAMED_MAX].join(", ")
        ),
    })
}

fn subject_of(metrics: &[MetricComparison]) -> String {
    let headline = metrics.iter().find(|m| m.headline);
    headline.map_or(String::new(), |m| format!(" in {}", m.metric))
}

/// The reason that most metrics have.
fn common_reason(metrics: &[MetricComparison]) -> String {
    let gives = |m: &MetricComparison, why: &str| m.reasons.iter().any(|reason| reason.why == why);
    let count = |why: &&String| metrics.iter().filter(|m| gives(m, why)).count();
    let reasons = metrics.iter().flat_map(|m| &m.reasons);
    let all = reasons.map(|reason| &reason.why);
    all.max_by_key(count).cloned().unwrap_or_default()
}

/// `2 %`, `0.5 %`.
fn percent(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 1e2)
}

/// What a reader has to know alongside the verdicts.
pub(super) fn notes(
    baseline: &RunGroup<'_>,
    group: &RunGroup<'_>,
    sides: &Sides<'_>,
    letter: &str,
    metrics: &[MetricComparison],
) -> Vec<String> {
    let mut notes = Vec::new();
    let both: Vec<&(String, &Run<'_>)> = sides.a.iter().chain(&sides.b).collect();
    for (name, count) in [
        ("A", baseline.runs.len() - sides.a.len()),
        (letter, group.runs.len() - sides.b.len()),
    ] {
        if count > 0 {
            notes.push(format!(
                "A run that is named twice in {name} counts once, because it is not a repetition."
            ));
        }
    }
    let ids = |side: &[(String, &Run<'_>)]| -> BTreeSet<String> {
        side.iter()
            .map(|(_, run)| run.record.run_id.clone())
            .collect()
    };
    if !ids(&sides.a).is_disjoint(&ids(&sides.b)) {
        notes.push(format!(
            "A and {letter} contain the same run, which cannot differ from itself."
        ));
    }
    let partial = both.iter().filter(|(_, run)| run.record.partial);
    let partial: Vec<&str> = partial.map(|(name, _)| name.as_str()).collect();
    if !partial.is_empty() {
        notes.push(format!(
            "{} ended early; only complete measurements are compared.",
            partial.join(" and ")
        ));
    }
    notes.extend(busy(&both));
    notes.extend(unsettled(&both));
    notes.extend(lengths(sides));
    for side in [sides.a.first(), sides.b.first()].into_iter().flatten() {
        notes.extend(burst(side));
    }
    notes.extend(variation(sides, metrics));
    notes
}

/// What a side showed of a burst credit, or for how long it was tested.
fn burst((name, run): &(String, &Run<'_>)) -> Vec<String> {
    let mut notes = Vec::new();
    for credit in &run.record.burst_credits {
        notes.push(match run.record.targets.get(credit.target) {
            Some(target) if run.record.targets.len() > 1 => format!(
                "The disk of {} in {name} allows {}.",
                target.path,
                credit_text(credit)
            ),
            Some(_) | None => format!("The disk of {name} allows {}.", credit_text(credit)),
        });
    }
    if !notes.is_empty() || run.record.plan.layers().is_some() {
        return notes;
    }
    for untested in untested(run.record) {
        notes.push(format!(
            "Without a pause {name} kept {}; a burst that lasts longer would not have shown. '{}' \
             tests for one.",
            untested.kept, untested.command
        ));
    }
    notes
}

/// Where the variation from run to run comes from, or that it is unknown.
fn variation(sides: &Sides<'_>, metrics: &[MetricComparison]) -> Option<String> {
    if let Some(note) = blocks(sides, metrics) {
        return Some(note);
    }
    let known = metrics.iter().filter_map(|m| m.variation);
    if let Some(earlier) = known.map(|variation| variation.earlier_runs).max() {
        return (earlier > 0).then(|| {
            format!(
                "The intervals include the variation of {earlier} earlier runs of the same target \
                 and plan (history)."
            )
        });
    }
    let is_pair = sides.a.len() == 1 && sides.b.len() == 1;
    let may_vary = |m: &MetricComparison| m.ratio.is_some() && m.verdict != Verdict::Observed;
    (is_pair && metrics.iter().any(may_vary)).then(|| {
        "There is one run per side and no earlier run of this target and plan, so the intervals \
         omit the variation between runs. faster-once and slower-once apply only to this pair. \
         Compare three runs per side."
            .to_owned()
    })
}

/// How a live comparison was measured.
fn blocks(sides: &Sides<'_>, metrics: &[MetricComparison]) -> Option<String> {
    let headline = metrics.iter().filter(|m| m.headline);
    let counts = headline.filter(|m| m.basis == Basis::Blocks).map(|m| m.a.n);
    let (least, most) = (counts.clone().min()?, counts.max()?);
    let count = if least == most {
        format!("{most} blocks")
    } else {
        format!("{least} to {most} blocks")
    };
    let mut runs = sides.a.iter().chain(&sides.b);
    let disturbed = if runs.any(|(_, run)| is_shared_disturbance(run.record)) {
        " Other programs used the disk during the comparison; the random order spreads their \
         effect over both sides."
    } else {
        ""
    };
    Some(format!(
        "Measured in alternation: {count} of each workload, each with one slice of either side in \
         random order. The intervals come from the differences within the blocks.{disturbed}"
    ))
}

/// A machine with more to do than processors: what waits for one looks like a slow disk, and
/// differs from run to run by more than any interval tells.
fn busy(runs: &[&(String, &Run<'_>)]) -> Option<String> {
    let loads = runs
        .iter()
        .filter_map(|(name, run)| Some((name.as_str(), load(run.record)?, run.record.host.cpus)));
    let busy: Vec<(&str, f64, u32)> = loads
        .filter(|(_, load, cpus)| *load > f64::from(*cpus))
        .collect();
    let (_, load, cpus) = *largest_by(&busy, |(_, load, _)| *load)?;
    let names = match busy.len() {
        ..=NAMED_MAX => {
            let names: Vec<&str> = busy.iter().map(|(name, ..)| *name).collect();
            names.join(", ")
        }
        many => format!("{many} of {} runs", runs.len()),
    };
    let up_to = if busy.len() > 1 { "up to " } else { "" };
    Some(format!(
        "{names} began at a load of {up_to}{load:.1} on {cpus} processors, so waits for a \
         processor count as the disk's time. Compare runs from a quiet machine."
    ))
}

fn unsettled(runs: &[&(String, &Run<'_>)]) -> Option<String> {
    let of_run = |(name, run): &&(String, &Run<'_>)| {
        let unsettled = run.record.measurements.iter();
        let unsettled = unsettled.filter(|m| m.figures.settled == Some(false));
        let names = unsettled.map(|m| format!("{} in {name}", m.data.workload.name));
        names.collect::<Vec<_>>()
    };
    let names = runs.iter().flat_map(of_run).collect::<Vec<_>>();
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!("The rate had not settled at the end: {names}. Use longer runs.")
    })
}

/// Workloads that one side measured much longer than the other.
fn lengths(sides: &Sides<'_>) -> Option<String> {
    let wall = |runs: &[(String, &Run<'_>)], key: (usize, &str)| {
        let all = runs.iter().flat_map(|(_, run)| &run.record.measurements);
        let all = all.filter(|m| (m.data.target, m.data.workload.name.as_str()) == key);
        all.map(|m| m.data.wall_ns).max()
    };
    let far = |key: &(usize, &str)| {
        let (a, b) = (wall(&sides.a, *key)?, wall(&sides.b, *key)?);
        let ratio = a.max(b) as f64 / a.min(b).max(1) as f64;
        let text = || {
            format!(
                "{} ({} and {})",
                key.1,
                format_duration(a),
                format_duration(b)
            )
        };
        (ratio > WALL_RATIO_MAX).then(text)
    };
    let found: Vec<String> = sides.workloads().iter().filter_map(far).collect();
    (!found.is_empty()).then(|| {
        format!(
            "The measured times differ widely: {}. Caches and burst credits may cause the \
             difference.",
            found.join(", ")
        )
    })
}
