//! Prints the ratio of two sides as a change in percent and as an interval, and places it on a
//! logarithmic scale.

use crate::text::glue;
use diskproof_model::comparison::{MetricComparison, Ratio};
use diskproof_model::digits::rounded;

/// The ratio with the digits that its interval supports, or with as many as the printed change
/// needs to follow from it.
pub(super) fn ratio_text(ratio: Ratio) -> String {
    let half_width = longer_arm(ratio);
    let text = rounded(ratio.value, Some(half_width));
    let printed_ratio = text.replace(',', "").parse().unwrap_or(f64::NAN);
    if percent_text(printed_ratio, half_width) == change_text(ratio) {
        return text;
    }
    // A percent is the second decimal of a ratio.
    let decimals = 2 + percent_decimals(half_width);
    format!("{:.decimals$}", ratio.value)
}

/// The ratio as a change, with the digits that its interval supports: `+14 %`, `−3.1 %`.
pub(crate) fn change_text(ratio: Ratio) -> String {
    percent_text(ratio.value, longer_arm(ratio))
}

/// The decimals of a change in percent. Its last digit is the first one of the half-width, as in
/// `rounded`, even where the change is smaller than the half-width.
fn percent_decimals(half_width: f64) -> usize {
    (-(half_width * 100.0).log10().floor()).clamp(0.0, 2.0) as usize
}

/// A ratio as a change with a sign: `−3.1 %`, or `±0 %` where all printed digits are zero.
pub(crate) fn percent_text(ratio: f64, half_width: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let digits = format!("{:.*}", percent_decimals(half_width), percent.abs());
    let is_zero = !digits.contains(|c: char| ('1'..='9').contains(&c));
    let sign = if is_zero {
        "±"
    } else if percent < 0.0 {
        "−"
    } else {
        "+"
    };
    glue(&format!("{sign}{digits} %"))
}

/// A scale of ratios ends at most at this factor and its inverse, so that one wide interval does
/// not flatten the others.
const SCALE_RATIO_MAX: f64 = 4.0;

/// The logarithm of the ratio at the upper end of a scale on which all intervals fit, up to
/// [`SCALE_RATIO_MAX`]. The margin takes at most half of each side.
pub(crate) fn scale_reach(metrics: &[&MetricComparison], margin: f64) -> f64 {
    let mut reach = 2.0 * margin;
    for metric in metrics {
        let Some(ratio) = metric.ratio else {
            continue;
        };
        for end in [ratio.low_95, ratio.high_95.unwrap_or(ratio.value)] {
            if end > 0.0 {
                reach = reach.max(end.ln().abs());
            }
        }
    }
    reach.min(SCALE_RATIO_MAX.ln())
}

/// The position of a ratio on a scale with this [`scale_reach`], from −1 to 1. Half and double are
/// equally far from the middle.
pub(crate) fn scale_position(ratio: f64, reach: f64) -> f64 {
    if ratio > 0.0 {
        (ratio.ln() / reach).clamp(-1.0, 1.0)
    } else {
        -1.0
    }
}

/// The 95 % interval of the ratio: `0.98–1.02`, `0.5 or more`, `2.0 or less`.
pub(crate) fn interval_text(ratio: Ratio) -> String {
    let half_width = Some(longer_arm(ratio));
    let low = rounded(ratio.low_95, half_width);
    match ratio.high_95 {
        Some(high) if ratio.low_95 == 0.0 => format!("{} or less", rounded(high, half_width)),
        Some(high) => format!("{low}–{}", rounded(high, half_width)),
        None => format!("{low} or more"),
    }
}

/// The longer arm of the interval, which decides how many digits of the ratio are printed.
pub(crate) fn longer_arm(ratio: Ratio) -> f64 {
    let below = ratio.value - ratio.low_95;
    match ratio.high_95 {
        // Nothing bounds it from below.
        Some(high) if ratio.low_95 == 0.0 => high - ratio.value,
        Some(high) => below.max(high - ratio.value),
        None => below,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(value: f64, low_95: f64, high_95: f64) -> Ratio {
        Ratio {
            value,
            low_95,
            high_95: Some(high_95),
        }
    }

    #[test]
    fn changes_have_a_sign_and_the_digits_of_their_interval() {
        assert_eq!(change_text(ratio(1.14, 1.12, 1.16)), "+14\u{a0}%");
        assert_eq!(change_text(ratio(0.969, 0.966, 0.972)), "−3.1\u{a0}%");
        assert_eq!(change_text(ratio(1.001, 0.95, 1.05)), "±0\u{a0}%");
        assert_eq!(change_text(ratio(3.2, 3.0, 3.4)), "+220\u{a0}%");
    }

    #[test]
    fn interval_without_a_lower_end_has_the_digits_of_its_upper_arm() {
        assert_eq!(interval_text(ratio(0.526, 0.0, 0.553)), "0.55 or less");
        let unbounded = Ratio {
            high_95: None,
            ..ratio(1.9, 1.81, 0.0)
        };
        assert_eq!(interval_text(unbounded), "1.81 or more");
        assert_eq!(change_text(ratio(0.9052, 0.0, 0.9091)), "−9.5\u{a0}%");
    }

    /// The reach of a scale for these ratios, with a margin of 0.1, as a ratio again.
    fn reached(ratios: &[Ratio]) -> f64 {
        let template = &crate::fixture::comparison().candidates[0].metrics[0];
        let mut metrics = vec![MetricComparison {
            ratio: None,
            ..template.clone()
        }];
        for ratio in ratios {
            metrics.push(MetricComparison {
                ratio: Some(*ratio),
                ..template.clone()
            });
        }
        let metrics: Vec<&MetricComparison> = metrics.iter().collect();
        scale_reach(&metrics, 0.1).exp()
    }

    #[test]
    fn scale_reaches_all_intervals_up_to_a_factor_of_four() {
        let is_near = |value: f64, expected: f64| (value - expected).abs() < 1e-9;
        assert!(is_near(reached(&[]), 0.2f64.exp()));
        assert!(is_near(reached(&[ratio(1.0, 0.99, 1.01)]), 0.2f64.exp()));
        assert!(is_near(reached(&[ratio(0.8, 0.5, 1.25)]), 2.0));
        assert!(is_near(reached(&[ratio(1.0, 0.8, 3.0)]), 3.0));
        assert!(is_near(reached(&[ratio(9.0, 5.0, 12.0)]), 4.0));
        assert!(is_near(reached(&[ratio(0.7, 0.0, 1.5)]), 1.5));
    }

    #[test]
    fn half_and_double_are_equally_far_from_the_middle_of_a_scale() {
        let reach = 4f64.ln();
        let expected = [(1.0, 0.0), (2.0, 0.5), (0.5, -0.5), (9.0, 1.0), (0.0, -1.0)];
        for (ratio, position) in expected {
            assert!(
                (scale_position(ratio, reach) - position).abs() < 1e-12,
                "{ratio}"
            );
        }
    }
}
