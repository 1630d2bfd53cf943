//! The figures that a service follows from run to run: those that can have a threshold, with their
//! names in thresholds. Shared by the formats of such services.

use diskproof_model::figure::{Figure, figures};
use diskproof_model::record::Record;

/// A figure and its names.
pub(crate) struct Tracked<'r> {
    /// The workload or part of a survey, and the kind of operation: `random-read-d1.read`.
    pub(crate) subject: String,
    /// `iops`, `p99.9`.
    pub(crate) metric: &'static str,
    /// The figure.
    pub(crate) figure: Figure<'r>,
}

/// Those of a record that are known, in its order. With several targets their paths precede the
/// names, since a name must stand for one figure.
pub(crate) fn tracked(record: &Record) -> Vec<Tracked<'_>> {
    let is_tracked = |figure: &Figure<'_>| {
        let key = &figure.key;
        let is_plain = key.phase.is_none() && key.label.is_none() && key.offset_bytes.is_none();
        let is_named = !figure.metric.threshold.is_empty() && !key.subject.is_empty();
        is_plain && is_named && figure.value.is_finite() && !figure.estimate().is_unknown()
    };
    let known = figures(record).into_iter().filter(is_tracked);
    known.map(|figure| named(record, figure)).collect()
}

fn named<'r>(record: &Record, figure: Figure<'r>) -> Tracked<'r> {
    let key = &figure.key;
    let mut subject = key.subject.to_string();
    if !key.op.is_empty() {
        subject = format!("{subject}.{}", key.op);
    }
    if let ([_, _, ..], Some(target)) = (&record.targets[..], record.targets.get(key.target)) {
        subject = format!("{}: {subject}", target.path);
    }
    Tracked {
        subject,
        metric: figure.metric.threshold,
        figure,
    }
}
