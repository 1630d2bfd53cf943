//! The expectations of a run (`--expect`, and the promises of `--for`): how each came out, in
//! words.

use crate::labels::third_digit_unit;
use diskproof_model::block::{Block, Cell, TableRow, Tone};
use diskproof_model::digits::{figure_text, figure_to_digits, joined_range};
use diskproof_model::expectation::{Expectation, ExpectationOutcome};
use diskproof_model::figure::unit_of;
use diskproof_model::units::format_duration;

/// The digits that are tried, in turn, where a figure and its threshold are equal to three digits.
/// Chosen: no measured figure is known to nine digits.
const DISTINGUISHING_DIGITS: std::ops::RangeInclusive<i32> = 4..=9;

/// The unit of CPU time, whose thresholds are shares of one thread.
const PERCENT: &str = "%";

/// The unit of rotational speeds, which have no multiples and are printed whole.
const RPM: &str = "rpm";

/// A table of the expectations, and a fact for each one that is undecided. Empty without any.
pub(crate) fn expectation_blocks(all: &[Expectation]) -> Vec<Block> {
    if all.is_empty() {
        return Vec::new();
    }
    let names = ["result", "promised, allowance", "measured (95 % interval)"];
    let rows = all.iter().map(expectation_row).collect();
    let mut blocks = vec![Block::words("Each promise with its figure", names, rows)];
    for expectation in all {
        if let Some(decision) = decision_text(expectation) {
            let text = format!("{}: {decision}", promise_text(expectation));
            blocks.push(Block::toned_fact(Tone::Warning, "undecided", text));
        }
    }
    blocks
}

fn expectation_row(expectation: &Expectation) -> TableRow {
    let outcome = match expectation.outcome() {
        ExpectationOutcome::Met => Cell::toned(Tone::Good, "met"),
        ExpectationOutcome::Undecided => Cell::toned(Tone::Warning, "UNDECIDED"),
        ExpectationOutcome::Missed => Cell::toned(Tone::Error, "MISSED"),
    };
    TableRow::from(vec![
        outcome,
        promise_text(expectation).into(),
        measured_text(expectation).into(),
    ])
}

/// `random-read-d32.iops>=5000`, or a promise with its allowance: `transfer rate 92 MB/s, −5 %`.
fn promise_text(expectation: &Expectation) -> String {
    let Some(promise) = &expectation.promise else {
        return expectation.expression.clone();
    };
    let percent = (promise.passes / promise.promised - 1.0) * 100.0;
    let allowed = format!("{percent:+.0} %").replace('-', "−");
    let promised = unit_text(&promise.unit, promise.promised);
    format!("{} {promised}, {allowed}", promise.name)
}

/// Describes an expectation that was not met, in a line; `None` for one that was: `missed:
/// random-read-d32.iops>=5000: 4020/s (3900 to 4140/s)`.
pub fn unmet_text(expectation: &Expectation) -> Option<String> {
    let outcome = expectation.outcome();
    if outcome == ExpectationOutcome::Met {
        return None;
    }
    let mut text = format!(
        "{}: {}: {}",
        outcome.as_str(),
        promise_text(expectation),
        measured_text(expectation)
    );
    if let Some(objection) = &expectation.objection {
        text.push_str(&format!(": {objection}"));
    }
    Some(text)
}

/// Prints the figures of an expectation, so that a figure on one side of the threshold is not
/// printed as the threshold.
struct FigureFormat<'e> {
    /// `None` where the expression names no known metric: such figures are printed without a unit.
    unit: Option<&'e str>,
    /// `None` in a record that was read from a file and not judged again.
    threshold: Option<f64>,
}

impl<'e> FigureFormat<'e> {
    fn from_expectation(expectation: &'e Expectation) -> Self {
        match &expectation.promise {
            Some(promise) => Self {
                unit: Some(&promise.unit),
                threshold: Some(promise.passes),
            },
            None => Self {
                unit: unit_of_threshold(&expectation.expression),
                threshold: expectation.threshold,
            },
        }
    }

    fn text(&self, value: f64) -> String {
        match self.unit {
            Some(unit) => compared_text(unit, value, self.threshold),
            None => value.to_string(),
        }
    }
}

/// The unit of the figure in a threshold; `None` of a plain number.
fn unit_of_threshold(expression: &str) -> Option<&'static str> {
    let figure = expression.split(['<', '>', '=']).next()?;
    // A threshold in percent has a figure in percent, as `sustain.drop`.
    if figure.trim_end().ends_with(".cpu") || expression.trim_end().ends_with('%') {
        return Some(PERCENT);
    }
    unit_of(expression)
}

/// The figure with its interval: `5,020/s (4,900 to 5,140/s)`.
fn measured_text(expectation: &Expectation) -> String {
    let format = FigureFormat::from_expectation(expectation);
    let Some(value) = expectation.observed else {
        return match expectation.observed_at_least {
            Some(low) => format!("{} or more", format.text(low)),
            None => "not measured".to_owned(),
        };
    };
    let text = format.text(value);
    if expectation.objection.is_some() {
        return format!("{text}, which decides nothing");
    }
    match expectation.interval {
        Some([low, high]) => {
            let range = joined_range(&format.text(low.max(0.0)), &format.text(high));
            format!("{text} ({range})")
        }
        None if expectation.undecided => format!("{text}, interval unknown"),
        None => text,
    }
}

/// Says what would decide an undecided expectation: `measure it for 42 s to decide`. Where the
/// figure is not the disk's, says why instead. `None` for a decided one.
fn decision_text(expectation: &Expectation) -> Option<String> {
    if let Some(objection) = &expectation.objection {
        return Some(objection.clone());
    }
    let time = format_duration(expectation.decided_by_ns?);
    match expectation.observed_at_least {
        Some(_) => Some(format!(
            "too few operations: measure it for {time} or more to decide"
        )),
        None => Some(format!("measure it for {time} to decide")),
    }
}

/// A figure with three digits, or with as many as distinguish it from the threshold: 199.6, not
/// 200.
fn compared_text(unit: &str, value: f64, threshold: Option<f64>) -> String {
    let usual = unit_text(unit, value);
    let Some(threshold) = threshold else {
        return usual;
    };
    if threshold == value || unit == RPM || unit_text(unit, threshold) != usual {
        return usual;
    }
    for digits in DISTINGUISHING_DIGITS {
        let text = figure_to_digits(value, digits, unit);
        if text != figure_to_digits(threshold, digits, unit) {
            return text;
        }
    }
    usual
}

/// A figure with three digits and its unit.
fn unit_text(unit: &str, value: f64) -> String {
    match unit {
        RPM => format!("{value:.0} rpm"),
        unit => figure_text(value, Some(third_digit_unit(value)), unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expectation(expression: &str, observed: Option<f64>) -> Expectation {
        Expectation {
            expression: expression.to_owned(),
            threshold: None,
            observed,
            interval: None,
            observed_at_least: None,
            met: false,
            undecided: false,
            decided_by_ns: None,
            objection: None,
            promise: None,
        }
    }

    #[test]
    fn percentile_of_few_operations_has_a_lower_end_and_a_time_that_decides() {
        let few = Expectation {
            observed_at_least: Some(4_300_000.0),
            undecided: true,
            decided_by_ns: Some(6_000_000_000),
            ..expectation("etcd-wal.sync.p99<=10ms", None)
        };
        assert_eq!(measured_text(&few), "4.30 ms or more");
        assert!(decision_text(&few).unwrap().contains("6.0 s or more"));
    }

    #[test]
    fn a_missed_threshold_is_outside_the_printed_interval() {
        let near = Expectation {
            threshold: Some(200.0),
            interval: Some([190.4, 199.7]),
            ..expectation("a.iops>=200", Some(195.0))
        };
        assert_eq!(measured_text(&near), "195/s (190 to 199.7/s)");
        let latency = Expectation {
            threshold: Some(5e6),
            interval: Some([5_000_400.0, 5_200_000.0]),
            ..expectation("a.p99<=5ms", Some(5_100_000.0))
        };
        assert_eq!(measured_text(&latency), "5.10 ms (5.0004 to 5.20 ms)");
    }

    #[test]
    fn observed_value_has_the_unit_of_its_metric() {
        let cases = [
            ("random-read-d32.iops>=5000", 8213.4, "8210/s"),
            ("commit-fdatasync.p99.9<=5ms", 8_210_000.0, "8.21 ms"),
            ("mixed-random.read.p99 < 5ms", 8_210_000.0, "8.21 ms"),
            ("sequential-read.throughput>=1GB", 1.234e9, "1230 MB/s"),
            ("curve.min>=80MB/s", 49e6, "49.0 MB/s"),
            ("access.mean<=15ms", 14_900_000.0, "14.9 ms"),
            ("etcd-wal.sync.p99<=10ms", 185_471.0, "185 µs"),
            ("randread.cpu<=50%", 32.3498565, "32.3 %"),
            ("randread.cpu <= 50%", 4.0, "4.00 %"),
            ("sustain.drop<=20%", 81.2, "81.2 %"),
            ("x.other>1", 0.5, "0.5"),
        ];
        for (expression, value, text) in cases {
            let observed = expectation(expression, Some(value));
            assert_eq!(measured_text(&observed), text);
        }
    }
}
