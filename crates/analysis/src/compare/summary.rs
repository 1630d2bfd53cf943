//! Writes a comparison in a sentence or two, which all printers show.

use diskproof_model::comparison::{MetricComparison, Tally, Unmatched, Verdict};
use diskproof_model::measurement::OpKind;

/// A sentence names up to this many metrics; more are only counted.
const NAMED_MAX: usize = 3;

/// What a summary is about.
pub(super) struct Summarised<'a> {
    /// The name of the candidate in sentences.
    pub letter: &'a str,
    pub margin: f64,
    /// The verdicts of the headlines among the metrics.
    pub headline: Tally,
    pub metrics: &'a [MetricComparison],
    pub unmatched: &'a [Unmatched],
    /// The answers of the searches of both sides in a sentence.
    pub answers: Option<&'a str>,
}

/// The summary, such as `B is better in 5 of 8, worse in 1, the same within 2 % in 2.` The answers
/// of searches stand before it. Then follow the details whose verdict no headline has.
pub(super) fn summary_sentences(summarised: &Summarised<'_>) -> String {
    let Summarised {
        letter,
        margin,
        headline,
        metrics,
        unmatched,
        answers,
    } = *summarised;
    if headline.total() == 0
        && let Some(why) = unmatched.iter().find_map(|entry| entry.why.as_ref())
    {
        return format!("{letter} cannot be compared with A: {why}.");
    }
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
        return load_sentence(letter, metrics);
    }
    let mut sentences: Vec<String> = answers.map(str::to_owned).into_iter().collect();
    sentences.push(headline_sentence(letter, margin, headline, metrics));
    for (count, verdict) in [
        (headline.worse, Verdict::Worse),
        (headline.better, Verdict::Better),
        (headline.slower_once, Verdict::SlowerOnce),
        (headline.faster_once, Verdict::FasterOnce),
    ] {
        if count == 0 {
            sentences.extend(details_sentence(metrics, verdict));
        }
    }
    sentences.join(" ")
}

/// The number of headlines with each verdict.
fn headline_sentence(
    letter: &str,
    margin: f64,
    headline: Tally,
    metrics: &[MetricComparison],
) -> String {
    let same = format!("the same within {}", percent(margin));
    let mut counts = vec![
        (headline.better, "better"),
        (headline.worse, "worse"),
        (headline.same, same.as_str()),
        (headline.faster_once, "faster-once"),
        (headline.slower_once, "slower-once"),
        (headline.undecided, "undecided"),
        (headline.not_comparable, "not comparable"),
        (headline.observed_loads, "observed"),
    ];
    counts.retain(|(count, _)| *count > 0);
    match counts.as_slice() {
        [(1, verdict)] => format!("{letter} is {verdict}{}.", subject_of(metrics)),
        [(count, verdict)] => format!("{letter} is {verdict} in all {count}."),
        [(count, verdict), others @ ..] => {
            let mut text = format!("{letter} is {verdict} in {count} of {}", headline.total());
            for (count, verdict) in others {
                text.push_str(&format!(", {verdict} in {count}"));
            }
            text + "."
        }
        [] => String::new(),
    }
}

/// The sentence on observed loads, which have no verdict.
fn load_sentence(letter: &str, metrics: &[MetricComparison]) -> String {
    let mut rates = Vec::new();
    for metric in metrics {
        if !metric.headline {
            continue;
        }
        let kind = match metric.op {
            Some(OpKind::Read) => "reads",
            Some(_) => "writes",
            None => "requests",
        };
        let times = two_digits(metric.b.value / metric.a.value);
        rates.push(format!(
            "{times} times as many {kind} on {}",
            metric.subject
        ));
    }
    format!(
        "The load of {letter} has {} as that of A. Both loads were observed, so they show what \
         programs requested, not what the disks can do.",
        rates.join(" and ")
    )
}

/// Two significant digits, such as `2.1`, `14` or `0.35`.
fn two_digits(value: f64) -> String {
    let digits = 1 - value.max(1e-9).log10().floor() as i32;
    format!("{value:.*}", digits.clamp(0, 9) as usize)
}

/// The details with a verdict that no headline has.
fn details_sentence(metrics: &[MetricComparison], verdict: Verdict) -> Option<String> {
    let names: Vec<&str> = metrics
        .iter()
        .filter(|metric| !metric.headline && metric.verdict == verdict)
        .map(|metric| metric.metric.as_str())
        .collect();
    let verdict = verdict.as_str();
    match names.len() {
        0 => None,
        1..=NAMED_MAX => Some(format!(
            "Among the details {verdict}: {}.",
            names.join(", ")
        )),
        count => Some(format!(
            "Among the details {verdict} in {count}, such as {}.",
            names[..NAMED_MAX].join(", ")
        )),
    }
}

/// ` in random-read-d32.iops`: the metric of the only headline; empty without one.
fn subject_of(metrics: &[MetricComparison]) -> String {
    match metrics.iter().find(|metric| metric.headline) {
        Some(headline) => format!(" in {}", headline.metric),
        None => String::new(),
    }
}

fn has_reason(metric: &MetricComparison, why: &str) -> bool {
    metric.reasons.iter().any(|reason| reason.why == why)
}

/// The reason that most headlines have; of equally frequent ones the last.
fn common_reason(metrics: &[MetricComparison]) -> String {
    let headlines: Vec<&MetricComparison> =
        metrics.iter().filter(|metric| metric.headline).collect();
    let mut common = "";
    let mut highest_count = 0;
    for reason in headlines.iter().flat_map(|metric| &metric.reasons) {
        let count = headlines
            .iter()
            .filter(|metric| has_reason(metric, &reason.why))
            .count();
        if count >= highest_count {
            highest_count = count;
            common = &reason.why;
        }
    }
    common.to_owned()
}

/// `2 %`, `0.5 %`.
fn percent(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 1e2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factor_has_two_digits() {
        for (value, text) in [
            (2.14, "2.1"),
            (14.2, "14"),
            (0.346, "0.35"),
            (0.0123, "0.012"),
            (130.0, "130"),
        ] {
            assert_eq!(two_digits(value), text);
        }
    }

    #[test]
    fn percentage_keeps_two_decimals_at_most() {
        assert_eq!(percent(0.02), "2 %");
        assert_eq!(percent(0.005), "0.5 %");
        assert_eq!(percent(0.00125), "0.13 %");
    }
}
