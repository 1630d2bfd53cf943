//! Rounds figures to the digits that their interval supports. Every printer and every sentence
//! rounds here; JSON keeps full precision.

use crate::estimate::{Estimate, positive_interval};
use crate::units::format_percent;

/// The most digits of a figure. A fourth would say nothing about a disk: ten equal runs of 5 s
/// differed by 5 to 15 %.
const DIGITS_MAX: i32 = 3;
/// The fewest digits of a figure, also without an interval. A single digit would be off by up to a
/// third, and figures that belong together (IOPS and MB/s) would contradict each other.
const DIGITS_MIN: i32 = 2;

/// Returns a value rounded to the digits that its half-width supports. The last digit printed is
/// that of the half-width's first digit, and there are two or three. Without a half-width two
/// digits remain. Digits that are not known become zeros: 13,688 ± 821 is `13,700`.
pub fn rounded(value: f64, half_width: Option<f64>) -> String {
    grouped(&rounded_ungrouped(value, half_width))
}

/// As [`rounded`], without commas between the digits: `13700`. Configuration files need it.
pub fn rounded_ungrouped(value: f64, half_width: Option<f64>) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    to_place(value, last_place(value, half_width))
}

/// Returns the number that [`rounded`] prints: 13,700 for 13,688 ± 821.
pub fn rounded_number(value: f64, half_width: Option<f64>) -> f64 {
    if !value.is_finite() || value == 0.0 {
        return value;
    }
    let last = last_place(value, half_width);
    let step = 10f64.powi(last.abs());
    if last >= 0 {
        (value / step).round() * step
    } else {
        // Dividing by a whole number gives the double nearest to the decimal fraction.
        (value * step).round() / step
    }
}

/// The place of the last digit that a half-width supports: 2 for hundreds, -1 for tenths.
fn last_place(value: f64, half_width: Option<f64>) -> i32 {
    let first = exponent(value);
    let last_of_most_digits = first - DIGITS_MAX + 1;
    let last_of_fewest_digits = first - DIGITS_MIN + 1;
    match half_width {
        Some(half_width) if !half_width.is_finite() => last_of_fewest_digits,
        Some(half_width) if half_width > 0.0 => {
            exponent(half_width).clamp(last_of_most_digits, last_of_fewest_digits)
        }
        Some(_) => last_of_most_digits,
        None => last_of_fewest_digits,
    }
}

/// A value with its last digit at this place, without commas.
fn to_place(value: f64, last: i32) -> String {
    let step = 10f64.powi(last.abs());
    let rounded = match last {
        0.. => (value / step).round() * step,
        _ => value,
    };
    let decimals = usize::try_from(-last).unwrap_or(0);
    format!("{rounded:.decimals$}")
}

/// The number of significant digits of a value that its half-width supports.
pub fn digits_of(value: f64, half_width: Option<f64>) -> i32 {
    match half_width.filter(|half_width| *half_width > 0.0 && half_width.is_finite()) {
        Some(half_width) => {
            (exponent(value) - exponent(half_width) + 1).clamp(DIGITS_MIN, DIGITS_MAX)
        }
        None => DIGITS_MIN,
    }
}

/// A value other than zero, rounded to so many digits.
pub fn to_digits(value: f64, digits: i32) -> f64 {
    let step = 10f64.powi(exponent(value) - digits + 1);
    (value / step).round() * step
}

/// A figure in its unit with so many digits.
pub fn figure_to_digits(value: f64, digits: i32, unit: &str) -> String {
    in_unit(value, unit, |by| {
        grouped(&to_place(value / by, exponent(value / by) - digits + 1))
    })
}

/// Place of the first digit: 0 for 1 to 9.99, 3 for 1000; 0 for zero, which has none.
fn exponent(value: f64) -> i32 {
    if value == 0.0 {
        return 0;
    }
    value.abs().log10().floor() as i32
}

/// Commas between groups of three digits, from five digits on.
fn grouped(number: &str) -> String {
    // The fraction with its point.
    let (whole, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let digits = whole.trim_start_matches('-').len();
    if digits < 5 {
        return number.to_owned();
    }
    let mut text = String::new();
    for (index, digit) in whole.chars().enumerate() {
        let digits_left = whole.len() - index;
        if digit.is_ascii_digit() && digits_left < digits && digits_left.is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + fraction
}

/// A figure in its unit (`1/s`, `B/s`, `ns`, or any other as it stands), with the digits that its
/// half-width supports: `13,700/s`, `812 MB/s`, `0.48 ms`.
pub fn figure_text(value: f64, half_width: Option<f64>, unit: &str) -> String {
    in_unit(value, unit, |by| {
        rounded(value / by, half_width.map(|half_width| half_width / by))
    })
}

/// A value with as many digits as an interval of one percent supports.
pub fn to_a_percent(value: f64) -> String {
    rounded(value, Some(value / 100.0))
}

/// A value in its unit; `scaled` prints it divided by a power of ten.
fn in_unit(value: f64, unit: &str, scaled: impl Fn(f64) -> String) -> String {
    match unit {
        "1/s" if value.abs() >= 999_500.0 => format!("{} M/s", scaled(1e6)),
        "1/s" => format!("{}/s", scaled(1.0)),
        "B/s" => format!("{} MB/s", scaled(1e6)),
        "ns" => match value.abs() {
            ns if ns < 1e3 => format!("{} ns", scaled(1.0)),
            ns if ns < 999_500.0 => format!("{} µs", scaled(1e3)),
            ns if ns < 999_500_000.0 => format!("{} ms", scaled(1e6)),
            _ => format!("{} s", scaled(1e9)),
        },
        // As sellers write sizes.
        "B" => match value.abs() {
            bytes if bytes < 1e3 => format!("{} B", scaled(1.0)),
            bytes if bytes < 999_500.0 => format!("{} kB", scaled(1e3)),
            bytes if bytes < 999_500_000.0 => format!("{} MB", scaled(1e6)),
            bytes if bytes < 999_500_000_000.0 => format!("{} GB", scaled(1e9)),
            _ => format!("{} TB", scaled(1e12)),
        },
        "1" => scaled(1.0),
        unit => format!("{} {unit}", scaled(1.0)),
    }
}

/// The unit behind a number: `/s` of `13,700/s`.
fn unit_behind(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii_digit() || " ,.-".contains(c))
}

impl Estimate {
    /// True where nothing happened in the measured time, so that zero is only the lower limit of
    /// the value.
    pub fn is_unknown(&self) -> bool {
        self.value == 0.0 && self.half_width_95.is_none()
    }

    /// The value in its unit, with the digits that the interval supports: `13,700/s`.
    pub fn value_text(&self) -> String {
        if self.is_unknown() {
            "undecided".to_owned()
        } else {
            figure_text(self.value, self.half_width_95, &self.unit)
        }
    }

    /// The half of the interval relative to the value: `±6 %`; `None` when it is unknown.
    pub fn width_text(&self) -> Option<String> {
        let width = self.relative_half_width()?;
        // Whole percents from one percent on: an interval is not known better than that.
        let whole = match width {
            width if width < 0.0095 => width,
            _ => (width * 100.0).round() / 100.0,
        };
        Some(format!("±{}", format_percent(whole)))
    }

    /// The value and its interval: `13,700/s ±6 %`.
    pub fn text(&self) -> String {
        match self.width_text() {
            Some(width) => format!("{} {width}", self.value_text()),
            None => self.value_text(),
        }
    }

    /// The ends of the interval: `140 to 480/s`; the value alone when it is unknown.
    pub fn range_text(&self) -> String {
        let Some(half_width) = self.half_width_95 else {
            return self.value_text();
        };
        // Two digits each: an interval that is worth printing as a range is a wide one.
        let [low, high] = positive_interval(self.value, half_width);
        let low = figure_text(low, None, &self.unit);
        let high = figure_text(high, None, &self.unit);
        joined_range(&low, &high)
    }
}

/// Two figures as a range, with their unit once where it is the same: `140 to 480/s`, but `700 ms
/// to 1.2 s`.
pub fn joined_range(low: &str, high: &str) -> String {
    let unit = unit_behind(low);
    let mut low_text = low;
    if unit == unit_behind(high)
        && let Some(number) = low.strip_suffix(unit)
    {
        low_text = number.trim_end();
    }
    format!("{low_text} to {high}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rounded_keeps_the_digits_that_the_half_width_supports() {
        let cases = [
            (13_688.0, Some(821.0), "13,700"),
            (13_688.0, Some(9_000.0), "14,000"),
            (15_355.0, Some(12_000.0), "15,000"),
            (13_688.0, Some(1.0), "13,700"),
            (13_688.0, Some(0.0), "13,700"),
            (13_688.0, None, "14,000"),
            (999.96, Some(3.0), "1000"),
            (8.214, Some(0.2), "8.2"),
            (8.214, Some(0.02), "8.21"),
            (0.5231, Some(0.03), "0.52"),
            (-13_688.0, Some(821.0), "-13,700"),
            (0.0, None, "0"),
            (1_234_567.0, Some(2_000.0), "1,230,000"),
        ];
        for (value, half_width, text) in cases {
            assert_eq!(rounded(value, half_width), text, "{value} ± {half_width:?}");
        }
        assert_eq!(rounded(f64::NAN, None), "NaN");
        assert_eq!(rounded_ungrouped(13_688.0, Some(821.0)), "13700");
        assert_eq!(rounded_number(13_688.0, Some(821.0)), 13_700.0);
        // 51 times the double 0.1 would be 5.1000000000000005.
        assert_eq!(rounded_number(5.12, Some(0.1)), 5.1);
    }

    #[test]
    fn estimates_print_in_their_unit() {
        let of = |value, half_width_95, unit: &str| Estimate {
            n: 30,
            value,
            half_width_95,
            unit: unit.to_owned(),
        };
        let rate = of(13_688.0, Some(821.0), "1/s");
        assert_eq!(rate.text(), "13,700/s ±6 %");
        assert_eq!(rate.range_text(), "13,000 to 15,000/s");
        assert_eq!(of(812.4e6, Some(16e6), "B/s").text(), "810 MB/s ±2 %");
        assert_eq!(of(480_000.0, Some(10_000.0), "ns").text(), "480 µs ±2 %");
        let large = of(1_283_000.0, Some(15_000.0), "1/s");
        assert_eq!(large.text(), "1.28 M/s ±1 %");
        assert_eq!(of(480_000.0, None, "ns").text(), "480 µs");
    }

    #[test]
    fn zero_has_digits() {
        assert_eq!(figure_to_digits(0.0, 3, "1/s"), "0.00/s");
        assert_eq!(digits_of(0.0, Some(1.0)), DIGITS_MIN);
        assert_eq!(to_digits(0.0, 3), 0.0);
    }

    #[test]
    fn range_names_a_common_unit_once() {
        assert_eq!(joined_range("140/s", "480/s"), "140 to 480/s");
        assert_eq!(joined_range("1.0 s", "1.2 s"), "1.0 to 1.2 s");
        assert_eq!(joined_range("700 ms", "1.2 s"), "700 ms to 1.2 s");
        assert_eq!(joined_range("900 µs", "1.1 ms"), "900 µs to 1.1 ms");
        assert_eq!(joined_range("900/s", "1.1 k/s"), "900/s to 1.1 k/s");
        assert_eq!(joined_range("3", "5"), "3 to 5");
    }

    proptest! {
        #[test]
        fn rounding_stays_within_half_a_unit_of_the_half_width(
            value in 1e-3f64..1e12,
            share in 0.01f64..1.0,
        ) {
            let half_width = value * share;
            let text = rounded_ungrouped(value, Some(half_width));
            let printed: f64 = text.parse().expect("a number");
            prop_assert!((printed - value).abs() <= half_width * 0.51, "{value} {text}");
            let number = rounded_number(value, Some(half_width));
            prop_assert!((number - value).abs() <= half_width * 0.51, "{value} {number}");
        }
    }
}
