//! The names of figures in thresholds.

use super::field::CatalogueRow;
use super::key::{Metric, Part};
use super::tables::{ACCESS, BURST, CURVE, LATENCY, OPERATION, WORKLOAD};
use crate::op::OpKind;
use crate::surface::SeekPattern;

/// A figure as a threshold names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named<'t> {
    /// A workload (or a step), or a part of a survey.
    pub part: Part,
    /// The workload, the step, or the part of a survey.
    pub subject: &'t str,
    /// The kind of operation, where it is named.
    pub op: Option<OpKind>,
    /// The figure.
    pub metric: &'static Metric,
}

fn metrics<T>(table: &'static [CatalogueRow<T>]) -> impl Iterator<Item = &'static Metric> {
    let metrics = table.iter().map(|row| &row.metric);
    metrics.filter(|metric| !metric.threshold.is_empty())
}

/// The metrics of workloads and of steps on files.
fn of_workloads() -> impl Iterator<Item = &'static Metric> {
    metrics(OPERATION)
        .chain(metrics(LATENCY))
        .chain(metrics(WORKLOAD))
}

/// Every name of a metric of a workload.
pub fn threshold_names() -> Vec<&'static str> {
    of_workloads().map(|metric| metric.threshold).collect()
}

/// The text before a dot and a last word, which may contain a dot: `a` of `a.p99.9`.
fn before<'t>(text: &'t str, last: &str) -> Option<&'t str> {
    text.strip_suffix(last)?.strip_suffix('.')
}

/// Parses `random-read-d32.iops`, `mixed-random.read.p99.9` or `curve.average`; `None` without a
/// known metric.
pub fn named(text: &str) -> Option<Named<'_>> {
    let surveyed = [
        (Part::Curve, "curve", metrics(CURVE).collect::<Vec<_>>()),
        (
            Part::Access(SeekPattern::Random),
            "access",
            metrics(ACCESS).collect(),
        ),
        (Part::Burst, "burst", metrics(BURST).collect()),
    ];
    for (part, subject, metrics) in surveyed {
        let of_subject = |metric: &&&Metric| before(text, metric.threshold) == Some(subject);
        if let Some(metric) = metrics.iter().find(of_subject) {
            return Some(Named {
                part,
                subject,
                op: None,
                metric,
            });
        }
    }
    let (place, metric) =
        of_workloads().find_map(|metric| Some((before(text, metric.threshold)?, metric)))?;
    let op = OpKind::ALL
        .into_iter()
        .find_map(|op| Some((before(place, op.as_str())?, op)));
    let (subject, op) = op.map_or((place, None), |(subject, op)| (subject, Some(op)));
    (!subject.is_empty()).then_some(Named {
        part: Part::Workload,
        subject,
        op,
        metric,
    })
}

/// The unit of the figure in a threshold such as `random-read-d32.p99.9 <= 5ms`; `None` of a plain
/// number.
pub fn unit_of(threshold: &str) -> Option<&'static str> {
    let figure = threshold.split(['<', '>', '=']).next()?;
    let unit = named(figure.trim())?.metric.unit;
    Some(unit).filter(|unit| *unit != "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_with_a_dot_differs_from_the_one_before_the_dot() {
        let quantile = |text: &str| named(text).unwrap().metric.quantile();
        assert_eq!(quantile("a.p50"), Some(0.5));
        assert_eq!(quantile("a.p99"), Some(0.99));
        assert_eq!(quantile("a.p99.9"), Some(0.999));
        assert_eq!(quantile("a.b.commit.p99.99"), Some(0.9999));
        assert_eq!(quantile("curve.max"), None);
    }

    #[test]
    fn subject_may_contain_dots_and_the_operation_is_optional() {
        let parts = |text| named(text).map(|of| (of.subject, of.op, of.metric.unit));
        let sync = Some(("a.b", Some(OpKind::Sync), "ns"));
        assert_eq!(parts("a.b.sync.mean"), sync);
        assert_eq!(parts("a.throughput"), Some(("a", None, "B/s")));
        assert_eq!(parts("access.iops"), Some(("access", None, "1/s")));
        assert_eq!(parts("curve.average"), Some(("curve", None, "B/s")));
        assert_eq!([parts("iops"), parts("a.speed"), parts(".iops")], [None; 3]);
    }
}
