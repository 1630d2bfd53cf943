//! A comparison in words: letters of sides, names of metrics, ratios, what would decide.

use super::run::start_text;
use crate::text::glue;
use diskproof_model::comparison::{
    Candidate, Figure, MetricComparison, Needed, Ratio, RunReference,
};
use diskproof_model::digits::{digits_of, figure_to_digits, rounded, to_digits};
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
pub(crate) fn ratio_text(ratio: Ratio) -> String {
    let own = rounded(ratio.value, Some(half_width(ratio)));
    let printed = own.replace(',', "").parse().unwrap_or(f64::NAN);
    match percent_text(printed, half_width(ratio)) == change_text(ratio) {
        true => own,
        false => format!(
            "{:.*}",
            2 + percent_decimals(half_width(ratio)),
            ratio.value
        ),
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

fn percent_text(ratio: f64, half_width: f64) -> String {
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
    use diskproof_model::comparison::{Basis, Direction, Verdict};
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
            let digits = text
                .split_whitespace()
                .next()
                .unwrap()
                .replace([',', '/', 's'], "");
            digits.parse().unwrap()
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
