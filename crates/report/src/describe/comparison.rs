//! A comparison in words: letters of sides, names of metrics, ratios, what would decide.

use super::run::start_text;
use crate::text::glue;
use diskproof_model::comparison::{
    Candidate, Figure, MetricComparison, Needed, Ratio, RunReference,
};
use diskproof_model::digits::rounded;
use diskproof_model::units::format_duration;

/// How many metrics are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricDetail {
    /// Independent metrics: in a closed loop the mean latency and the other rate follow from the
    /// first one.
    Independent,
    /// All metrics.
    All,
}

/// A measurement this many times as long is not worth suggesting.
const TIMES_MAX: f64 = 1000.0;
/// A shorter time prints as 0 ms.
const SHORTEST_NS: u64 = 1_000_000;

/// B, C, D … for the candidates in their order.
pub(crate) fn letter(index: usize) -> String {
    ('B'..='Z')
        .nth(index)
        .map_or("?".to_owned(), |letter| letter.to_string())
}

/// A run with the facts that identify it.
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

/// Whether a page of this detail shows the metric.
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

/// The workload, with the number of its target if there are several.
pub(crate) fn subject_text(metric: &MetricComparison) -> String {
    let prefix = metric
        .metric
        .split_once(metric.subject.as_str())
        .map_or("", |(prefix, _)| prefix);
    format!("{prefix}{}", metric.subject)
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

/// The ratio with the digits that its interval supports.
pub(crate) fn ratio_text(ratio: Ratio) -> String {
    rounded(ratio.value, Some(half_width(ratio)))
}

/// The ratio as a change, with the digits that its interval supports: `+14 %`, `−3.1 %`.
pub(crate) fn change_text(ratio: Ratio) -> String {
    let percent = (ratio.value - 1.0) * 100.0;
    // The last digit is that of the half-width's first one, as in `rounded`, also where the change
    // is smaller than the half-width.
    let order = (half_width(ratio) * 100.0).log10().floor();
    let digits = format!("{:.*}", (-order).clamp(0.0, 2.0) as usize, percent.abs());
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
    let farthest = ends
        .filter(|end| *end > 0.0)
        .map(|end| end.ln().abs())
        .fold(2.0 * margin, f64::max);
    farthest.min(4.0_f64.ln())
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
fn half_width(ratio: Ratio) -> f64 {
    let below = ratio.value - ratio.low_95;
    ratio
        .high_95
        .map_or(below, |high| below.max(high - ratio.value))
}

/// What would decide an undecided metric.
pub(crate) fn needed_text(metric: &MetricComparison) -> String {
    match (metric.needed, metric.ratio) {
        (_, None) => "no interval: measured too briefly; measure for at least 2 s".to_owned(),
        (Some(Needed { times, .. }), _) if times > TIMES_MAX => {
            "over 1000 times as long; too noisy, or too close to the margin (--margin)".to_owned()
        }
        (
            Some(Needed {
                runs: Some(runs), ..
            }),
            _,
        ) => format!("about {runs} runs per side"),
        (
            Some(Needed {
                times,
                measure_ns: Some(ns),
                ..
            }),
            _,
        ) if ns < SHORTEST_NS => {
            format!(
                "{} as long; the runs measured almost nothing",
                glue(&times_text(times))
            )
        }
        (
            Some(Needed {
                times,
                measure_ns: Some(ns),
                ..
            }),
            _,
        ) => {
            format!(
                "{} as long, {} per side",
                glue(&times_text(times)),
                glue(&format_duration(ns))
            )
        }
        (Some(Needed { times, .. }), _) => {
            format!("{} as many positions or accesses", glue(&times_text(times)))
        }
        (None, _) => "fewer than ten samples lie beyond it; measure longer".to_owned(),
    }
}

fn times_text(times: f64) -> String {
    if times < 9.95 {
        format!("{:.1} times", times.max(1.1))
    } else {
        format!("{times:.0} times")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
