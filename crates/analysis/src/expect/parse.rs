//! Reads a threshold such as `random-read-d32.iops>=5000` or `findings<=2`, with its unit.

use super::threshold::{Expected, Quantity, Relation};
use diskproof_model::figure::{Metric, Part, named, threshold_names};
use diskproof_model::measurement::OpKind;
use diskproof_model::units;
use std::str::FromStr;

/// In `findings<=2` this word stands where other thresholds name a workload.
const FINDINGS: &str = "findings";

/// A threshold that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpectError {
    /// No comparison.
    #[error(
        "'{0}' is not a comparison; write WORKLOAD.METRIC>=VALUE with >=, <=, > or <, such as \
         random-read-d32.iops>=5000"
    )]
    Relation(String),
    /// No known metric.
    #[error(
        "'{0}' has no metric; write WORKLOAD.METRIC or WORKLOAD.read.METRIC with one of {names}; \
         or findings=0",
        names = threshold_names().join(", ")
    )]
    Metric(String),
    /// A metric without a workload.
    #[error(
        "'{metric}' names no workload; write WORKLOAD.{metric}, such as \
         random-read-d32.{metric}{rest}"
    )]
    Workload {
        /// The metric.
        metric: String,
        /// The relation and the threshold, as given.
        rest: String,
    },
    /// A number of findings that is not an upper limit.
    #[error(
        "'{0}': findings counts warnings and failures; write findings=0, or a limit such as \
         findings<=2"
    )]
    Findings(String),
    /// CPU time of one kind of operation.
    #[error(
        "'{0}': cpu applies to the whole workload. Omit the kind of operation ({kinds})",
        kinds = OpKind::ALL.map(OpKind::as_str).join(", ")
    )]
    CpuOfOp(String),
    /// A value that does not fit the metric.
    #[error("'{value}' is not {what}")]
    Value {
        /// As given.
        value: String,
        /// What it should have been, with an example.
        what: &'static str,
    },
}

impl Relation {
    /// Splits an expression at its relation into the name of the figure, the relation and the
    /// threshold. `None` without a relation.
    pub(crate) fn split(text: &str) -> Option<(&str, Self, &str)> {
        let relation_start = text.find(['<', '>'])?;
        let (figure, rest) = text.split_at(relation_start);
        for (sign, relation) in [
            (">=", Self::AtLeast),
            ("<=", Self::AtMost),
            (">", Self::Above),
            ("<", Self::Below),
        ] {
            if let Some(value) = rest.strip_prefix(sign) {
                return Some((figure.trim(), relation, value.trim()));
            }
        }
        None
    }
}

impl FromStr for Expected {
    type Err = ExpectError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if let Some(limit) = text.strip_prefix(FINDINGS) {
            return findings_limit(text, limit);
        }
        let (figure, relation, value) =
            Relation::split(text).ok_or_else(|| ExpectError::Relation(text.to_owned()))?;
        if threshold_names().contains(&figure) {
            return Err(ExpectError::Workload {
                metric: figure.to_owned(),
                rest: text[figure.len()..].trim_start().to_owned(),
            });
        }
        let named = named(figure).ok_or_else(|| ExpectError::Metric(figure.to_owned()))?;
        if is_cpu(named.metric) && named.op.is_some() {
            return Err(ExpectError::CpuOfOp(figure.to_owned()));
        }
        Ok(Self {
            expression: text.to_owned(),
            part: named.part,
            workload: named.subject.to_owned(),
            op: named.op,
            quantity: Quantity::Figure(named.metric),
            relation,
            threshold: parse_threshold(named.metric, value)?,
        })
    }
}

/// Returns `true` if a metric is the CPU time, the only share that a threshold can name.
pub(super) fn is_cpu(metric: &Metric) -> bool {
    metric.unit == "1"
}

/// Parses `findings=0`, `findings<=2` or `findings<3`. `limit` is `text` without its first word.
fn findings_limit(text: &str, limit: &str) -> Result<Expected, ExpectError> {
    let Some((relation, count)) = parse_findings_limit(limit.trim_start()) else {
        return Err(ExpectError::Findings(text.to_owned()));
    };
    Ok(Expected {
        expression: text.to_owned(),
        part: Part::Other,
        workload: FINDINGS.to_owned(),
        op: None,
        quantity: Quantity::Findings,
        relation,
        threshold: f64::from(count),
    })
}

/// The relation and the number of findings in `=0`, `==0`, `<=2` or `< 3`; `None` of all else.
fn parse_findings_limit(limit: &str) -> Option<(Relation, u32)> {
    for (sign, relation) in [("<=", Relation::AtMost), ("<", Relation::Below)] {
        if let Some(count) = limit.strip_prefix(sign) {
            return Some((relation, count.trim().parse().ok()?));
        }
    }
    let count = match limit.strip_prefix("==") {
        Some(count) => count,
        None => limit.strip_prefix('=')?,
    };
    // A run with exactly two findings is not better than one with none.
    match count.trim().parse::<u32>() {
        Ok(0) => Some((Relation::AtMost, 0)),
        _ => None,
    }
}

/// The threshold in the unit of the metric. It must have the unit that a user would write.
fn parse_threshold(metric: &Metric, value: &str) -> Result<f64, ExpectError> {
    let (threshold, what) = match metric.unit {
        "1/s" => (
            scaled_number(value),
            "a number of operations per second, such as 5000 or 5k",
        ),
        "B/s" => (
            parse_throughput(value),
            "a throughput; write it per second, such as 200MB/s or 1.5GiB/s",
        ),
        _ if is_cpu(metric) => (
            parse_percent(value),
            "a share of one CPU; write it in percent, such as 50%",
        ),
        _ => (
            parse_latency(value),
            "a latency; write it with ns, us, ms or s, such as 200us or 5ms",
        ),
    };
    threshold.ok_or(ExpectError::Value {
        value: value.to_owned(),
        what,
    })
}

/// Bytes per second from `200MB/s`; `None` of any other text.
fn parse_throughput(value: &str) -> Option<f64> {
    let size = value.strip_suffix("/s")?;
    // Without a `B`, an M would mean MiB.
    if !size.ends_with('B') {
        return None;
    }
    Some(units::parse_size(size).ok()? as f64)
}

/// The number before a percent sign; `None` of any other text.
fn parse_percent(value: &str) -> Option<f64> {
    parse_number(value.strip_suffix('%')?)
}

/// Nanoseconds from `200us`; `None` of any other text.
fn parse_latency(value: &str) -> Option<f64> {
    let ns = units::parse_latency(value).ok()?;
    Some(ns as f64)
}

/// A number with an optional k or M, which are 10³ and 10⁶ as in the results; `None` of any other
/// text.
pub fn scaled_number(text: &str) -> Option<f64> {
    let text = text.trim();
    for (suffix, factor) in [("k", 1e3), ("K", 1e3), ("M", 1e6)] {
        if let Some(digits) = text.strip_suffix(suffix) {
            return Some(parse_number(digits)? * factor);
        }
    }
    parse_number(text)
}

/// A finite number that is not negative.
fn parse_number(text: &str) -> Option<f64> {
    let number: f64 = text.trim().parse().ok()?;
    if number.is_finite() && number >= 0.0 {
        Some(number)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::states;

    #[test]
    fn errors_say_what_is_possible() {
        for (text, part) in [
            ("random-read-d32.iops=5000", ">=, <=, > or <"),
            ("random-read-d32.speed>5", "p99.99"),
            ("iops>5", "WORKLOAD.iops"),
            ("a.iops>=8kB", "5000"),
            ("findings", "findings=0"),
            ("findings=1", "findings=0"),
            ("findings>=0", "findings=0"),
            ("findings<=few", "findings=0"),
            ("a.throughput>=200", "200MB/s"),
            ("curve.average>=80", "200MB/s"),
            ("a.p99<=5", "5ms"),
            ("a.p99<=5m", "5ms"),
            ("a.throughput>=200M/s", "200MB/s"),
            ("a.read.cpu<=5%", "workload"),
            ("a.cpu<=5", "50%"),
            ("a.iops>=NaN", "5000"),
        ] {
            states(&text.parse::<Expected>().unwrap_err().to_string(), &[part]);
        }
    }
}
