//! Numbers as fio shortens them: by thousands or by 1024, until they have few enough digits.

use super::values::Base;

const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];

/// A number with at most so many digits, its prefix and its unit.
pub(super) fn short(number: u64, digits: usize, base: Base, unit: &str) -> String {
    let (step, binary) = match base {
        Base::Decimal => (1000, ""),
        Base::Binary => (1024, "i"),
    };
    let (mut whole, mut rest, mut prefix) = (number, None, 0);
    while length(whole) > digits && prefix + 1 < PREFIXES.len() {
        rest = Some(whole % step);
        whole /= step;
        prefix += 1;
    }
    let kind = match (base, PREFIXES[prefix]) {
        (_, "") => String::new(),
        (Base::Binary, "k") => "Ki".to_owned(),
        (_, letter) => format!("{letter}{binary}"),
    };
    let Some(rest) = rest else {
        return format!("{whole}{kind}{unit}");
    };
    let decimals = digits.saturating_sub(length(whole) + 1);
    if decimals == 0 {
        return format!("{}{kind}{unit}", whole + u64::from(rest * 2 >= step));
    }
    let value = whole as f64 + rest as f64 / step as f64;
    format!("{value:.decimals$}{kind}{unit}")
}

fn length(number: u64) -> usize {
    number.to_string().len()
}

/// `95.5MiB (100MB)`, with `/s` behind each unit for a rate.
pub(super) fn both(bytes: u64, per: &str) -> (String, String) {
    let unit = format!("B{per}");
    (
        short(bytes, 4, Base::Binary, &unit),
        short(bytes, 4, Base::Decimal, &unit),
    )
}

/// A time in nanoseconds, the way fio chooses the unit of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TimeFigures {
    pub min: u64,
    pub max: u64,
    pub mean: f64,
    pub deviation: f64,
}

impl TimeFigures {
    /// In the largest unit that keeps the digits, and the name of the unit.
    pub(super) fn scaled(mut self) -> (Self, &'static str) {
        let mut unit = "nsec";
        for larger in ["usec", "msec"] {
            if self.min <= 2000 || self.max <= 99_999 || self.deviation <= 1000.0 {
                break;
            }
            self.min /= 1000;
            self.max /= 1000;
            self.mean /= 1000.0;
            self.deviation /= 1000.0;
            unit = larger;
        }
        (self, unit)
    }
}
