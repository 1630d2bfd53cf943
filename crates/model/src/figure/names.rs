//! Reads the name of a figure as thresholds write it, and lists such names.

use super::field::CatalogueRow;
use super::key::{Metric, Part};
use super::tables::{ACCESS, BURST, CURVE, LATENCY, LOAD, OPERATION, WORKLOAD};
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

/// The metrics of a table that have a name in thresholds.
fn metrics<T>(table: &'static [CatalogueRow<T>]) -> impl Iterator<Item = &'static Metric> {
    table
        .iter()
        .map(|row| &row.metric)
        .filter(|metric| !metric.threshold.is_empty())
}

/// The metrics of workloads and of steps on files.
fn workload_metrics() -> impl Iterator<Item = &'static Metric> {
    metrics(OPERATION)
        .chain(metrics(LATENCY))
        .chain(metrics(WORKLOAD))
}

/// Every name of a metric of a workload.
pub fn threshold_names() -> Vec<&'static str> {
    workload_metrics().map(|metric| metric.threshold).collect()
}

/// The text before a dot and a last word, which may contain a dot: `a` of `a.p99.9`.
fn text_before<'t>(text: &'t str, last: &str) -> Option<&'t str> {
    text.strip_suffix(last)?.strip_suffix('.')
}

/// Parses `random-read-d32.iops`, `mixed-random.read.p99.9` or `curve.average`; `None` without a
/// known metric.
pub fn named(text: &str) -> Option<Named<'_>> {
    let random = Part::Access(SeekPattern::Random);
    let of_part = named_part(text, Part::Curve, "curve", metrics(CURVE))
        .or_else(|| named_part(text, random, "access", metrics(ACCESS)))
        .or_else(|| named_part(text, Part::Burst, "burst", metrics(BURST)))
        .or_else(|| named_part(text, Part::Load, "load", metrics(LOAD)));
    if of_part.is_some() {
        return of_part;
    }
    for metric in workload_metrics() {
        if let Some(place) = text_before(text, metric.threshold) {
            return named_workload(place, metric);
        }
    }
    None
}

/// The names that thresholds give to the figures of a part of a survey, such as `curve.average`.
pub fn names_of_part(part: Part) -> Vec<String> {
    match part {
        Part::Curve => names_in("curve", metrics(CURVE)),
        Part::Access(_) => names_in("access", metrics(ACCESS)),
        Part::Burst => names_in("burst", metrics(BURST)),
        Part::Workload | Part::Load | Part::FileStep | Part::Observed | Part::Other => Vec::new(),
    }
}

/// The names `subject.metric` of these metrics.
fn names_in(subject: &str, metrics: impl Iterator<Item = &'static Metric>) -> Vec<String> {
    metrics
        .map(|metric| format!("{subject}.{}", metric.threshold))
        .collect()
}

/// True if a metric of a workload with this name would be read as that of a part of a survey:
/// `burst.throughput`, `access.p50`, `curve.max`. No workload may have such a name.
pub fn names_part_of_survey(name: &str) -> bool {
    workload_metrics().any(|metric| {
        named(&format!("{name}.{}", metric.threshold))
            .is_some_and(|found| found.part != Part::Workload)
    })
}

/// The metric of a part of a survey that has this subject.
fn named_part<'t>(
    text: &str,
    part: Part,
    subject: &'t str,
    metrics: impl Iterator<Item = &'static Metric>,
) -> Option<Named<'t>> {
    for metric in metrics {
        if text_before(text, metric.threshold) == Some(subject) {
            return Some(Named {
                part,
                subject,
                op: None,
                metric,
            });
        }
    }
    None
}

/// The metric of the workload that `place` names, perhaps with a kind of operation.
fn named_workload<'t>(place: &'t str, metric: &'static Metric) -> Option<Named<'t>> {
    let (mut subject, mut op) = (place, None);
    for kind in OpKind::ALL {
        if let Some(before_kind) = text_before(place, kind.as_str()) {
            subject = before_kind;
            op = Some(kind);
            break;
        }
    }
    if subject.is_empty() {
        return None;
    }
    Some(Named {
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
    match named(figure.trim())?.metric.unit {
        "1" => None,
        unit => Some(unit),
    }
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
    fn names_of_parts_of_a_survey_are_no_names_of_workloads() {
        for name in ["curve", "access", "burst"] {
            assert!(names_part_of_survey(name), "{name}");
        }
        // A load has no metric that a workload has, too.
        for name in ["load", "curve-2", "bursts", "a.burst", "random-read-d1"] {
            assert!(!names_part_of_survey(name), "{name}");
        }
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
